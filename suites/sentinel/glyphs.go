package sentinel

import (
	"image"
	"image/draw"

	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"
)

// drawn is a face that draws each glyph once: the person types the same few hundred all day, and an outline costs a hundred times its picture.
// Like the face that it holds, it is for one goroutine.
type drawn struct {
	font.Face
	glyphs map[glyphAt]glyph
}

// glyphAt is a rune and where between two pixels it begins.
type glyphAt struct {
	r    rune
	x, y fixed.Int26_6
}

type glyph struct {
	at      image.Rectangle // relative to the pixel in which the dot lies
	mask    *image.Alpha
	advance fixed.Int26_6
	ok      bool
}

// maxGlyphs bounds what is kept; whoever types more different characters pays for them.
const maxGlyphs = 1024

func newDrawn(f font.Face) *drawn { return &drawn{f, map[glyphAt]glyph{}} }

// Glyph implements [font.Face]. The mask is kept and must not be written to.
func (d *drawn) Glyph(dot fixed.Point26_6, r rune) (image.Rectangle, image.Image, image.Point, fixed.Int26_6, bool) {
	whole := image.Pt(dot.X.Floor(), dot.Y.Floor())
	key := glyphAt{r, dot.X & 63, dot.Y & 63}
	g, known := d.glyphs[key]
	if !known {
		at, mask, from, advance, ok := d.Face.Glyph(dot, r)
		g = glyph{at: at.Sub(whole), advance: advance, ok: ok}
		if mask != nil { // also of a rune that the face lacks: it draws a box
			g.mask = image.NewAlpha(image.Rectangle{Max: at.Size()})
			draw.Draw(g.mask, g.mask.Rect, mask, from, draw.Src)
		}
		if len(d.glyphs) < maxGlyphs {
			d.glyphs[key] = g
		}
	}
	if g.mask == nil {
		return image.Rectangle{}, nil, image.Point{}, g.advance, g.ok
	}
	return g.at.Add(whole), g.mask, image.Point{}, g.advance, g.ok
}
