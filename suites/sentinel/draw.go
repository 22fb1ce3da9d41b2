package sentinel

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomedium"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// The window: a head with its name and a clock, the sheet with what was typed, a foot with counts.
const (
	headPx = 40
	footPx = 28
	edgePx = 24
	linePx = 26
)

type palette struct{ head, headText, sheet, rule, ink, accent, foot, footText color.RGBA }

func rgb(v uint32) color.RGBA { return color.RGBA{byte(v >> 16), byte(v >> 8), byte(v), 255} }

var (
	paper = palette{rgb(0x2f4858), rgb(0xf4f1ea), rgb(0xfbf9f4), rgb(0xe4dfd3), rgb(0x22303a), rgb(0xb5482a), rgb(0xece7db), rgb(0x5b5b52)}
	slate = palette{rgb(0x3b3350), rgb(0xe9e4f5), rgb(0x241f33), rgb(0x332c47), rgb(0xd9d2ea), rgb(0xe0b04a), rgb(0x2d2740), rgb(0xa79fbd)}
)

type faces struct{ title, small, text font.Face }

func loadFaces() (faces, error) {
	var f faces
	for _, v := range []struct {
		face *font.Face
		data []byte
		px   float64
	}{{&f.title, gomedium.TTF, 17}, {&f.small, goregular.TTF, 13}, {&f.text, gomono.TTF, 18}} {
		parsed, err := opentype.Parse(v.data)
		if err != nil {
			return f, err
		}
		face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: v.px, DPI: 72, Hinting: font.HintingFull})
		if err != nil {
			return f, err
		}
		*v.face = newDrawn(face)
	}
	return f, nil
}

// picture is what a window shows; painting it is pure.
type picture struct {
	width, height int
	heading       string
	colors        palette
	typed         []rune // the tail of the document
	keys, clicks  int
	focused       bool
	beat          uint64
	now           time.Time
}

func (p picture) head(f faces) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, p.width, headPx))
	fill(img, img.Bounds(), p.colors.head)
	text(img, f.title, p.colors.headText, edgePx, 26, p.heading)
	clock := p.now.Format("15:04:05")
	x := p.width - edgePx - font.MeasureString(f.small, clock).Ceil()
	text(img, f.small, p.colors.headText, x, 25, clock)
	// Four dots go round with the beat, so that a film shows whether the application lives.
	for i := range 4 {
		c := p.colors.headText
		c.R, c.G, c.B = mix(c.R, p.colors.head.R), mix(c.G, p.colors.head.G), mix(c.B, p.colors.head.B)
		if uint64(i) == p.beat%4 {
			c = p.colors.accent
		}
		fill(img, image.Rect(x-70+i*13, 16, x-62+i*13, 24), c)
	}
	return img
}

// sheet is the paper as it was painted last. The person types all day, and a stroke changes a line or two.
type sheet struct {
	img   *image.RGBA
	lines []string // what each line shows, with its caret
}

// lineTop is where the band of a line begins; it ends where the next begins, and holds the line's text, its rule and the caret.
func lineTop(i int) int { return 12 + i*linePx }

// paint brings the sheet up to date and returns the whole rows that it painted.
func (s *sheet) paint(p picture, f faces) image.Rectangle {
	size := image.Rect(0, 0, p.width, max(p.height-headPx-footPx, 1))
	fresh := s.img == nil || s.img.Rect != size
	if fresh {
		s.img, s.lines = image.NewRGBA(size), nil
		fill(s.img, size, p.colors.sheet)
		for i := 0; lineTop(i) < size.Max.Y; i++ {
			s.rule(p, i)
		}
	}
	advance, _ := f.text.GlyphAdvance('m')
	columns := max((p.width-2*edgePx)/max(advance.Ceil(), 1), 1)
	lines := wrap(p.typed, columns)
	if over := len(lines) - max((size.Max.Y-18)/linePx, 1); over > 0 {
		lines = lines[over:]
	}
	var now []string
	for i, l := range lines {
		shows := string(l)
		if p.focused && i == len(lines)-1 {
			shows += caret
		}
		now = append(now, shows)
	}
	var painted image.Rectangle
	for i := range max(len(now), len(s.lines)) {
		is, was := "", ""
		if i < len(now) {
			is = now[i]
		}
		if i < len(s.lines) {
			was = s.lines[i]
		}
		if is != was {
			painted = painted.Union(s.line(p, f, i, is, advance.Ceil()))
		}
	}
	s.lines = now
	if fresh {
		return size
	}
	return painted
}

// caret ends the line that has it; it is typed by nobody.
const caret = "\x00"

// line paints the band of one line.
func (s *sheet) line(p picture, f faces, i int, shows string, advance int) image.Rectangle {
	band := image.Rect(0, lineTop(i), s.img.Rect.Max.X, lineTop(i+1)).Intersect(s.img.Rect)
	fill(s.img, band, p.colors.sheet)
	s.rule(p, i)
	base := lineTop(i) + 20
	words, here := strings.CutSuffix(shows, caret)
	text(s.img, f.text, p.colors.ink, edgePx, base, words)
	if here {
		x := edgePx + utf8.RuneCountInString(words)*advance + 1
		fill(s.img, image.Rect(x, base-15, x+2, base+4), p.colors.accent)
	}
	return band
}

func (s *sheet) rule(p picture, i int) {
	y := lineTop(i+1) - 1
	fill(s.img, image.Rect(edgePx, y, p.width-edgePx, y+1), p.colors.rule)
}

func (p picture) foot(f faces) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, p.width, footPx))
	fill(img, img.Bounds(), p.colors.foot)
	focus := "in the background"
	if p.focused {
		focus = "has the keyboard"
	}
	text(img, f.small, p.colors.footText, edgePx, 18, fmt.Sprintf("%d keys    %d clicks    %s", p.keys, p.clicks, focus))
	return img
}

// wrap breaks text into lines of at most columns characters; there is always one.
func wrap(s []rune, columns int) [][]rune {
	lines := [][]rune{nil}
	for _, r := range s {
		if r == '\n' || len(lines[len(lines)-1]) >= columns {
			lines = append(lines, nil)
		}
		if r != '\n' {
			lines[len(lines)-1] = append(lines[len(lines)-1], r)
		}
	}
	return lines
}

func mix(a, b byte) byte { return byte((int(a) + 2*int(b)) / 3) }

func fill(img *image.RGBA, r image.Rectangle, c color.RGBA) {
	draw.Draw(img, r, image.NewUniform(c), image.Point{}, draw.Src)
}

func text(img *image.RGBA, face font.Face, c color.RGBA, x, y int, s string) {
	d := font.Drawer{Dst: img, Src: image.NewUniform(c), Face: face, Dot: fixed.P(x, y)}
	d.DrawString(s)
}

// put sends an image in bands that fit a request (ZPixmap, 32 bits a pixel, as depth 24 has).
func put(c *xwire.Conn, win, gc uint32, at image.Point, img *image.RGBA) error {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	band := max((c.MaxRequest-64)/(4*w), 1)
	for y := 0; y < h; y += band {
		n := min(band, h-y)
		b := make([]byte, 4*w*n)
		from := img.Pix[y*img.Stride:][:len(b)] // whole rows: a part of a picture is as wide as the picture
		for i := 0; i < len(b); i += 4 {
			b[i], b[i+1], b[i+2] = from[i+2], from[i+1], from[i]
		}
		err := c.Send(xwire.Req(72, 2).U32(win, gc).U16(uint16(w), uint16(n)).I16(at.X, at.Y+y).U8(0, c.RootDepth, 0, 0).Bytes(b))
		if err != nil {
			return err
		}
	}
	return nil
}
