package recorder

import "bytes"

// inputPixels is ffmpeg's name for what the encoder is fed: planes at a third of the bytes of a BGRX canvas.
const inputPixels = "yuv420p"

// yuvBlock is the width in pixels of what is compared and converted at once.
const yuvBlock = 16

// planes turns a canvas into YUV 4:2:0 (BT.601, limited range), block by block, and only where the canvas has changed since the last
// turn: most of a desk stands still.
type planes struct {
	w, h   int    // even
	out    []byte // Y, then U, then V
	shadow []byte // the canvas as it was converted
	fresh  bool   // out holds nothing yet
}

func newPlanes(w, h int) *planes {
	return &planes{w: w, h: h, out: make([]byte, w*h*3/2), shadow: make([]byte, w*h*4), fresh: true}
}

// turn converts what has changed in pix and returns the planes, which the next turn overwrites.
func (p *planes) turn(pix []byte) []byte {
	stride := p.w * 4
	for y := 0; y < p.h; y += 2 {
		rows, old := pix[y*stride:(y+2)*stride], p.shadow[y*stride:(y+2)*stride]
		if !p.fresh && bytes.Equal(rows, old) {
			continue
		}
		for x := 0; x < p.w; x += yuvBlock {
			a, b := x*4, min(x+yuvBlock, p.w)*4
			if p.fresh || !bytes.Equal(rows[a:b], old[a:b]) || !bytes.Equal(rows[stride+a:stride+b], old[stride+a:stride+b]) {
				p.block(rows[a:b], rows[stride+a:stride+b], x, y)
			}
		}
		copy(old, rows)
	}
	p.fresh = false
	return p.out
}

// block converts two rows of pixels that stand at x, y.
func (p *planes) block(top, low []byte, x, y int) {
	n := len(top) / 4
	y0 := p.out[y*p.w+x:][:n]
	y1 := p.out[(y+1)*p.w+x:][:n]
	c := p.w*p.h + (y/2)*(p.w/2) + x/2
	u := p.out[c:][:n/2]
	v := p.out[c+p.w*p.h/4:][:n/2]
	low = low[:len(top)]
	for i := 0; i+1 < n; i += 2 {
		t, l := top[i*4:i*4+8], low[i*4:i*4+8]
		b0, g0, r0 := int32(t[0]), int32(t[1]), int32(t[2])
		b1, g1, r1 := int32(t[4]), int32(t[5]), int32(t[6])
		b2, g2, r2 := int32(l[0]), int32(l[1]), int32(l[2])
		b3, g3, r3 := int32(l[4]), int32(l[5]), int32(l[6])
		y0[i] = luma(r0, g0, b0)
		y0[i+1] = luma(r1, g1, b1)
		y1[i] = luma(r2, g2, b2)
		y1[i+1] = luma(r3, g3, b3)
		r, g, b := r0+r1+r2+r3, g0+g1+g2+g3, b0+b1+b2+b3
		u[i/2] = byte((-38*r-74*g+112*b+512)>>10 + 128)
		v[i/2] = byte((112*r-94*g-18*b+512)>>10 + 128)
	}
}

func luma(r, g, b int32) byte { return byte((66*r+129*g+25*b+128)>>8 + 16) }
