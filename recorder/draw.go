package recorder

import (
	"bytes"
	"encoding/binary"
	"image"
	"strings"

	"github.com/engine-acceptance/acceptance/redaction"
	"github.com/skip2/go-qrcode"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

func get64(b []byte) uint64    { return binary.LittleEndian.Uint64(b) }
func put32(b []byte, v uint32) { binary.LittleEndian.PutUint32(b, v) }

// Colours as BGRX.
var (
	ground  = redaction.Colour{0x22, 0x1c, 0x1b, 0xff}
	bar     = redaction.Colour{0x38, 0x2f, 0x2c, 0xff}
	ink     = redaction.Colour{0xf0, 0xea, 0xe8, 0xff}
	soft    = redaction.Colour{0xb4, 0xa8, 0xa2, 0xff}
	warn    = redaction.Colour{0x55, 0xc3, 0xff, 0xff}
	hatched = redaction.Colour{0x30, 0x29, 0x27, 0xff}
)

// picture is a BGRX picture in memory. It keeps account of what was drawn since [planes.turn] took it last, block by block: whatever writes
// into pix marks it.
type picture struct {
	pix  []byte
	w, h int
	// drawn has a bit for each block of blockSize x 2 pixels, words of them a pair of rows.
	drawn []uint64
	words int
}

// blockSize is the width in pixels of what is compared, marked and converted at once; a block is two rows high.
const blockSize = 16

func newPicture(w, h int) *picture {
	words := ((w+blockSize-1)/blockSize + 63) / 64
	return &picture{make([]byte, w*h*4), w, h, make([]uint64, (h+1)/2*words), words}
}

// mark says that pixels of r are new.
func (p *picture) mark(r redaction.Rect) {
	if r = r.Clip(p.w, p.h); r.Empty() {
		return
	}
	first, last := r.X/blockSize, (r.X+r.W-1)/blockSize
	for y := r.Y / 2; y <= (r.Y+r.H-1)/2; y++ {
		row := p.drawn[y*p.words:][:p.words]
		for b := first; b <= last; b++ {
			row[b/64] |= 1 << (b % 64)
		}
	}
}

func (p *picture) fill(r redaction.Rect, c redaction.Colour) {
	redaction.Mask(p.pix, p.w, p.h, p.w*4, []redaction.Rect{r}, c)
	p.mark(r)
}

// blit makes r show rows of src, sw pixels wide. Only blocks that differ are copied and marked: most of a desk stands still.
func (p *picture) blit(r redaction.Rect, src []byte, sw int) {
	for y := range r.H {
		at := ((r.Y+y)*p.w + r.X) * 4
		to, from := p.pix[at:at+r.W*4], src[y*sw*4:][:r.W*4]
		if bytes.Equal(to, from) {
			continue
		}
		row := p.drawn[(r.Y+y)/2*p.words:][:p.words]
		for x := 0; x < r.W; {
			b := (r.X + x) / blockSize
			end := min((b+1)*blockSize-r.X, r.W)
			if t, f := to[x*4:end*4], from[x*4:end*4]; !bytes.Equal(t, f) {
				copy(t, f)
				row[b/64] |= 1 << (b % 64)
			}
			x = end
		}
	}
}

// typeface holds the glyphs of printable ASCII as coverage, all of one size.
type typeface struct {
	w, h   int
	glyphs [128][]byte
}

// newTypeface renders a monospaced face of px pixels.
func newTypeface(px float64) (*typeface, error) {
	f, err := opentype.Parse(gomono.TTF)
	if err != nil {
		return nil, err
	}
	face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: px, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return nil, err
	}
	defer face.Close()
	m := face.Metrics()
	adv, _ := face.GlyphAdvance('0')
	t := &typeface{w: adv.Ceil(), h: (m.Ascent + m.Descent).Ceil()}
	for r := rune(' '); r < 127; r++ {
		a := image.NewAlpha(image.Rect(0, 0, t.w, t.h))
		d := font.Drawer{Dst: a, Src: image.Opaque, Face: face, Dot: fixed.P(0, m.Ascent.Ceil())}
		d.DrawString(string(r))
		t.glyphs[r] = a.Pix
	}
	return t, nil
}

// text draws one line with its top left corner at x, y, cut at width pixels. What is not printable ASCII shows as '?'.
func (p *picture) text(t *typeface, x, y, width int, s string, c redaction.Colour) {
	p.mark(redaction.Rect{X: x, Y: y, W: min(width, t.w*len(s)), H: t.h})
	for _, r := range s {
		if width -= t.w; width < 0 {
			return
		}
		if r < ' ' || r > '~' {
			r = '?'
		}
		g := t.glyphs[r]
		for gy := range t.h {
			if y+gy < 0 || y+gy >= p.h {
				continue
			}
			for gx := range t.w {
				v := uint32(g[gy*t.w+gx])
				if v == 0 || x+gx < 0 || x+gx >= p.w {
					continue
				}
				d := p.pix[((y+gy)*p.w+x+gx)*4:]
				for i := range 3 {
					d[i] = byte((uint32(d[i])*(255-v) + uint32(c[i])*v) / 255)
				}
			}
		}
		x += t.w
	}
}

// code draws a QR code of s centred in r and says whether it fits.
func (p *picture) code(r redaction.Rect, s string) bool {
	q, err := qrcode.New(s, qrcode.Medium)
	if err != nil {
		return false
	}
	bits := q.Bitmap() // with its quiet zone
	side := len(bits) * codeModule
	if side > r.W || side > r.H {
		return false
	}
	p.fill(r, redaction.Colour{0xff, 0xff, 0xff, 0xff})
	x0, y0 := r.X+(r.W-side)/2, r.Y+(r.H-side)/2
	for y, row := range bits {
		for x, on := range row {
			if on {
				p.fill(redaction.Rect{X: x0 + x*codeModule, Y: y0 + y*codeModule, W: codeModule, H: codeModule}, redaction.Black)
			}
		}
	}
	return true
}

// sprite is the pointer's picture: ARGB with multiplied alpha, as the X server gives it. X and Y are its corner on the desk.
type sprite struct {
	x, y, w, h int
	argb       []uint32
}

// maxSprite is the largest pointer that is drawn: a page can set its own, and a large one would be a picture of its own.
const maxSprite = 64

// draw draws the pointer on a desk of w x h pixels, BGRX.
func (s sprite) draw(desk []byte, w, h int) {
	if s.w > maxSprite || s.h > maxSprite || len(s.argb) < s.w*s.h {
		return
	}
	for y := range s.h {
		for x := range s.w {
			dx, dy := s.x+x, s.y+y
			if dx < 0 || dy < 0 || dx >= w || dy >= h {
				continue
			}
			v := s.argb[y*s.w+x]
			a := v >> 24
			if a == 0 {
				continue
			}
			d := desk[(dy*w+dx)*4:]
			for i := range 3 {
				d[i] = byte(min(255, v>>(8*i)&0xff+uint32(d[i])*(255-a)/255))
			}
		}
	}
}

// hatch marks r as a place without pixels.
func (p *picture) hatch(r redaction.Rect) {
	p.fill(r, ground)
	for y := r.Y; y < r.Y+r.H; y++ {
		for x := r.X + (16-y%16)%16; x < r.X+r.W-4; x += 16 {
			for i := range 4 {
				copy(p.pix[(y*p.w+x+i)*4:], hatched[:])
			}
		}
	}
}

// wrap cuts s into lines of at most n characters.
func wrap(s string, n, lines int) []string {
	var out []string
	for len(s) > n && len(out) < lines-1 {
		cut := n
		if i := strings.LastIndexAny(s[:n], ",[/-"); i > n/2 {
			cut = i + 1
		}
		out = append(out, s[:cut])
		s = s[cut:]
	}
	return append(out, s)
}
