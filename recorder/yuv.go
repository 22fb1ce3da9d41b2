package recorder

import "math/bits"

// inputPixels is ffmpeg's name for what the encoder is fed: planes at a third of the bytes of a BGRX canvas.
const inputPixels = "yuv420p"

// planes turns a canvas into YUV 4:2:0 (BT.601, limited range), and only those blocks of it that were drawn since the last turn.
type planes struct {
	w, h int    // even
	out  []byte // Y, then U, then V
}

func newPlanes(w, h int) *planes { return &planes{w: w, h: h, out: make([]byte, w*h*3/2)} }

// turn converts what was drawn on p, which is of the planes' size and always the same picture, and returns the planes, which the next turn overwrites.
func (p *planes) turn(pic *picture) []byte {
	stride := p.w * 4
	for y := 0; y < p.h; y += 2 {
		top, low := pic.pix[y*stride:(y+1)*stride], pic.pix[(y+1)*stride:(y+2)*stride]
		for i, word := range pic.drawn[y/2*pic.words:][:pic.words] {
			for word != 0 {
				// A run of blocks that were drawn is converted at once.
				from := bits.TrailingZeros64(word)
				n := bits.TrailingZeros64(^(word >> from))
				a, b := (i*64+from)*blockSize, min((i*64+from+n)*blockSize, p.w)
				p.block(top[a*4:b*4], low[a*4:b*4], a, y)
				if from+n == 64 {
					break
				}
				word &= ^uint64(0) << (from + n)
			}
		}
	}
	clear(pic.drawn)
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
