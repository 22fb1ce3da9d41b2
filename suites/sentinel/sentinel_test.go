package sentinel

import (
	"bytes"
	"image"
	"image/color"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"

	"github.com/engine-acceptance/acceptance/suites/xwire"
)

func TestKeymap(t *testing.T) {
	g := NewWithT(t)
	b := make([]byte, 32)
	b[0], b[1] = 1, 2
	for _, s := range []uint32{'a', 0, '1', '!', 0xff0d, 0} {
		b = le.AppendUint32(b, s)
	}
	m := parseKeymap(38, b)
	for _, c := range []struct {
		code  byte
		state uint16
		want  string
	}{{38, 0, "a"}, {38, 1, "A"}, {38, 2, "A"}, {38, 3, "a"}, {39, 0, "1"}, {39, 1, "!"}, {39, 2, "1"}, {40, 0, "\n"}, {41, 0, ""}, {7, 0, ""}} {
		g.Expect(character(m.sym(c.code, c.state))).To(Equal(c.want), "%+v", c)
	}
	g.Expect(parseKeymap(8, nil).sym(8, 0)).To(BeZero())
}

func TestDecode_survives_any_bytes(t *testing.T) {
	g := NewWithT(t)
	r := &role{}
	for kind := range 128 {
		for _, n := range []int{0, 1, 31, 32} {
			e := r.decode(xwire.Event{Kind: byte(kind), Raw: make([]byte, n), Sent: true, Mono: 5})
			g.Expect(e.Kind).NotTo(BeEmpty())
			g.Expect(e.Sent).To(BeTrue())
		}
	}
}

func TestRectangles(t *testing.T) {
	g := NewWithT(t)
	screen := xwire.Rect{Width: 1280, Height: 800}
	target := xwire.Rect{X: 240, Y: -20, Width: 900, Height: 600}
	g.Expect(Fully(target, screen)).To(Equal(xwire.Rect{X: 240, Width: 900, Height: 580}))
	g.Expect(Partly(target, screen, 0.25).Width).To(Equal(225))
	beside, err := Beside(target, screen)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(beside.Overlap(target)).To(BeZero())
	g.Expect(screen.Contains(beside)).To(BeTrue())
	_, err = Beside(screen, screen)
	g.Expect(err).To(HaveOccurred())
}

func TestPicture_shows_what_was_typed(t *testing.T) {
	g := NewWithT(t)
	f, err := loadFaces()
	g.Expect(err).NotTo(HaveOccurred())
	p := picture{width: 400, height: 300, heading: "H", colors: paper, now: time.Unix(0, 0)}
	var page sheet
	ink := func() (n int) {
		page.paint(p, f)
		img := page.img
		for i := 0; i < len(img.Pix); i += 4 {
			if (color.RGBA{img.Pix[i], img.Pix[i+1], img.Pix[i+2], img.Pix[i+3]}) == paper.ink {
				n++
			}
		}
		return n
	}
	g.Expect(ink()).To(BeZero())
	p.typed = []rune("hello")
	some := ink()
	g.Expect(some).To(BeNumerically(">", 20))
	p.typed = []rune("hello hello")
	g.Expect(ink()).To(BeNumerically(">", some))
	before := p.head(f)
	p.beat++
	g.Expect(p.head(f).Pix).NotTo(Equal(before.Pix), "the beat is seen")
	p.width, p.height = 60, headPx+footPx+20 // smallest
	page.paint(p, f)
	g.Expect(wrap([]rune("abc\nde"), 2)).To(Equal([][]rune{[]rune("ab"), []rune("c"), []rune("de")}))
}

// A glyph that was drawn before looks as one that is drawn now, wherever it lies.
func TestDrawn_is_what_the_face_draws(t *testing.T) {
	g := NewWithT(t)
	f, err := loadFaces()
	g.Expect(err).NotTo(HaveOccurred())
	kept := f.text.(*drawn)
	line := func(face font.Face) []byte {
		img := image.NewRGBA(image.Rect(0, 0, 300, 40))
		d := font.Drawer{Dst: img, Src: image.NewUniform(paper.ink), Face: face, Dot: fixed.Point26_6{X: 5*64 + 17, Y: 26 * 64}}
		d.DrawString("abba é€ abba\u0e01")
		return img.Pix
	}
	want := line(kept.Face)
	g.Expect(bytes.Equal(line(kept), want)).To(BeTrue(), "drawn the first time")
	g.Expect(kept.glyphs).NotTo(BeEmpty())
	g.Expect(bytes.Equal(line(kept), want)).To(BeTrue(), "drawn again")
	g.Expect(bytes.Equal(line(f.title), want)).To(BeFalse(), "another face is another picture")
}

// A sheet that is painted stroke by stroke looks as one that is painted at once, and only the lines that changed are painted.
func TestSheet_strokes_add_up(t *testing.T) {
	g := NewWithT(t)
	f, err := loadFaces()
	g.Expect(err).NotTo(HaveOccurred())
	p := picture{width: 400, height: 300, colors: paper, focused: true}
	var kept sheet
	same := func() {
		t.Helper()
		var once sheet
		once.paint(p, f)
		g.Expect(bytes.Equal(kept.img.Pix, once.img.Pix)).To(BeTrue())
	}
	g.Expect(kept.paint(p, f)).To(Equal(kept.img.Rect), "the first time all of it")
	same()
	g.Expect(kept.paint(p, f).Empty()).To(BeTrue(), "nothing changed")
	for _, r := range strings.Repeat("The quick\nbrown fox jumps over the lazy dog and on to the next line. ", 12) {
		p.typed = append(p.typed, r)
		part := kept.paint(p, f)
		g.Expect(part.Empty()).To(BeFalse())
		if len(kept.lines) < 3 {
			g.Expect(part.Dy()).To(BeNumerically("<=", 2*linePx), "a line, and the next when the caret goes there")
		}
		same()
	}
	p.typed = p.typed[:4]
	kept.paint(p, f)
	same()
	p.focused = false
	g.Expect(kept.paint(p, f)).To(Equal(image.Rect(0, lineTop(0), 400, lineTop(1))))
	same()
	p.width = 300
	g.Expect(kept.paint(p, f)).To(Equal(kept.img.Rect), "another size is another sheet")
	same()
}
