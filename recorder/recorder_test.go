package recorder

import (
	"bytes"
	"errors"
	"image"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/engine-acceptance/acceptance/redaction"
	"github.com/onsi/gomega"
)

func TestLayout_parts_do_not_overlap_and_lie_inside(t *testing.T) {
	for _, size := range [][2]int{{1280, 800}, {801, 601}, {320, 200}, {1920, 1080}} {
		g := gomega.NewWithT(t)
		l := NewLayout(size[0], size[1])
		g.Expect(l.WidthPx%2 + l.HeightPx%2).To(gomega.BeZero())
		parts := []redaction.Rect{l.Desk, l.Pane, l.Code, l.Caption}
		for i, a := range parts {
			g.Expect(a.Clip(l.WidthPx, l.HeightPx)).To(gomega.Equal(a))
			for _, b := range parts[i+1:] {
				apart := a.X+a.W <= b.X || b.X+b.W <= a.X || a.Y+a.H <= b.Y || b.Y+b.H <= a.Y
				g.Expect(apart).To(gomega.BeTrue(), "%v %v", a, b)
			}
		}
	}
}

func TestPaneRect_covers_every_pixel_that_shrinking_mixes_in(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		w, h := 2+rnd.IntN(90), 2+rnd.IntN(60)
		k := 1 + rnd.IntN(4)
		if w/k == 0 || h/k == 0 {
			continue
		}
		win := redaction.Rect{X: rnd.IntN(50) - 25, Y: rnd.IntN(50) - 25, W: w, H: h}
		secret := redaction.Rect{X: win.X + rnd.IntN(w+10) - 5, Y: win.Y + rnd.IntN(h+10) - 5, W: 1 + rnd.IntN(20), H: 1 + rnd.IntN(20)}
		src := make([]byte, w*h*4)
		redaction.Mask(src, w, h, w*4, []redaction.Rect{shift(secret, -win.X, -win.Y)}, redaction.Colour{255, 255, 255, 255})
		ow, oh := w/k, h/k
		dst := make([]byte, ow*oh*4)
		shrink(dst, ow*4, src, w, h, k)
		redaction.Mask(dst, ow, oh, ow*4, []redaction.Rect{paneRect(secret, win, k)}, redaction.Black)
		for i := 0; i < len(dst); i += 4 {
			if dst[i]|dst[i+1]|dst[i+2] != 0 {
				t.Fatalf("pixel %d of the secret %v shows, window %v, scale %d", i/4, secret, win, k)
			}
		}
	}
}

func TestPaneScale_fits(t *testing.T) {
	for _, s := range [][2]int{{1, 1}, {640, 420}, {641, 10}, {1280, 800}, {4000, 3000}} {
		g := gomega.NewWithT(t)
		k := paneScale(s[0], s[1])
		g.Expect(s[0] / k).To(gomega.BeNumerically("<=", paneWidth))
		g.Expect(s[1] / k).To(gomega.BeNumerically("<=", paneHeight))
	}
}

func TestCode_is_read_back(t *testing.T) {
	g := gomega.NewWithT(t)
	f := &Film{cfg: FilmConfig{RunID: "run-1", RowID: strings.Repeat("r", 130), Commit: "0123456789abcdef", FPS: 15}, layout: NewLayout(1280, 800)}
	g.Expect(f.prepare()).To(gomega.Succeed())
	side := make([]sideFrame, 31)
	for i := range side {
		side[i] = sideFrame{N: i, CapNS: int64(i) * 66e6}
	}
	head := sideHeader{Run: "run-1", Row: f.cfg.RowID, Commit: "0123456789ab", FPS: 15, Layout: f.layout}
	for n := range side {
		f.stamp(n, side[n].CapNS, false)
		gray := make([]byte, f.layout.WidthPx*f.layout.HeightPx)
		for i := range gray {
			gray[i] = 16 + byte(int(f.canvas.pix[i*4+1])*219/255)
		}
		c := readCode(gray, head, side, n)
		g.Expect(c.OK).To(gomega.BeTrue(), "frame %d: %+v", n, c)
		other := head
		other.Run = "run-2"
		g.Expect(readCode(gray, other, side, n).OK).To(gomega.BeFalse())
	}
}

func TestFilmConfig_check(t *testing.T) {
	good := FilmConfig{Path: "a.mp4", SidePath: "a.jsonl", RunID: "r", RowID: "x[a=b]", Commit: "c", FPS: 15}
	g := gomega.NewWithT(t)
	g.Expect(good.check()).To(gomega.Succeed())
	for name, change := range map[string]func(*FilmConfig){
		"no path":       func(c *FilmConfig) { c.Path = "" },
		"one path":      func(c *FilmConfig) { c.SidePath = c.Path },
		"no run":        func(c *FilmConfig) { c.RunID = "" },
		"separator":     func(c *FilmConfig) { c.RowID = "a|b" },
		"not ASCII":     func(c *FilmConfig) { c.RowID = "ä" },
		"too long":      func(c *FilmConfig) { c.RowID = strings.Repeat("x", 161) },
		"too fast":      func(c *FilmConfig) { c.FPS = 61 },
		"negative rate": func(c *FilmConfig) { c.FPS = -1 },
	} {
		c := good
		change(&c)
		g.Expect(c.check()).To(gomega.HaveOccurred(), name)
	}
}

func TestReadSide(t *testing.T) {
	dir := t.TempDir()
	f := &Film{cfg: FilmConfig{RunID: "r", RowID: "x", Commit: "c", FPS: 2}, layout: NewLayout(640, 480)}
	path := filepath.Join(dir, "f.jsonl")
	g := gomega.NewWithT(t)
	s, err := newSideFile(path, f.header())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	for n := range 5 {
		g.Expect(s.frame(sideFrame{N: n, CapNS: int64(n), Pane: PaneOwn})).To(gomega.Succeed())
	}
	g.Expect(s.close()).To(gomega.Succeed())
	head, frames, err := readSide(path)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(head).To(gomega.Equal(f.header()))
	g.Expect(frames).To(gomega.HaveLen(5))
	_, err = newSideFile(path, f.header())
	g.Expect(err).To(gomega.MatchError(os.ErrExist), "nothing is overwritten")

	text, err := os.ReadFile(path)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	for name, bad := range map[string]string{
		"empty":         "",
		"other format":  strings.Replace(string(text), SideFormat, "x/1", 1),
		"other layout":  strings.Replace(string(text), `"width_px":`, `"width_px":1`, 1),
		"unknown field": strings.Replace(string(text), `"n":0`, `"n":0,"more":1`, 1),
		"missing frame": strings.Replace(string(text), `"n":3`, `"n":4`, 1),
		"half a line":   string(text[:len(text)-9]),
	} {
		p := filepath.Join(dir, "bad")
		g.Expect(os.WriteFile(p, []byte(bad), 0o644)).To(gomega.Succeed())
		_, _, err := readSide(p)
		g.Expect(err).To(gomega.HaveOccurred(), name)
	}
}

func TestWriteWhole_leaves_nothing_behind(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := t.TempDir()
	bad := errors.New("bad")
	g.Expect(writeWhole(filepath.Join(dir, "a"), func(w io.Writer) error { io.WriteString(w, "half"); return bad })).To(gomega.MatchError(bad))
	left, err := os.ReadDir(dir)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(left).To(gomega.BeEmpty())
	fill := func(w io.Writer) error { _, err := io.WriteString(w, "all"); return err }
	g.Expect(writeWhole(filepath.Join(dir, "a"), fill)).To(gomega.Succeed())
	g.Expect(writeWhole(filepath.Join(dir, "a"), fill)).To(gomega.MatchError(os.ErrExist))
}

func TestFrameInfo_takes_times_and_complaints(t *testing.T) {
	g := gomega.NewWithT(t)
	text := "[Parsed_showinfo_0 @ 0x1] config in time_base: 1/15360\n" +
		"[Parsed_showinfo_0 @ 0x1] n:   0 pts:      0 pts_time:0       pos: 1 fmt:yuv420p s:1936x828 i:P\n" +
		"[Parsed_showinfo_0 @ 0x1] n:   1 pts:   1024 pts_time:0.0666667 pos: 2 fmt:yuv420p s:1936x828 i:P\n" +
		"[h264 @ 0x2] error while decoding MB 1 2\n" + strings.Repeat("x", 5000) + "\nlast error"
	for _, size := range []int{1, 7, 1 << 20} {
		f := &frameInfo{}
		for b := []byte(text); len(b) > 0; b = b[min(size, len(b)):] {
			f.Write(b[:min(size, len(b))])
		}
		f.end()
		g.Expect(f.pts).To(gomega.Equal([]float64{0, 0.0666667}))
		g.Expect(f.w).To(gomega.Equal(1936))
		g.Expect(f.other.String()).To(gomega.Equal("[h264 @ 0x2] error while decoding MB 1 2\nlast error"))
	}
}

func TestDiskFull(t *testing.T) {
	g := gomega.NewWithT(t)
	g.Expect(writeKind(&os.PathError{Op: "write", Err: syscall.ENOSPC})).To(gomega.Equal(ErrDiskFull))
	g.Expect(writeKind(os.ErrPermission)).To(gomega.Equal(ErrWrite))
	g.Expect(diskFull(nil, "av_interleaved_write_frame(): No space left on device")).To(gomega.BeTrue())
	g.Expect(diskFull(nil, "")).To(gomega.BeFalse())
}

func TestMaskRGBA(t *testing.T) {
	g := gomega.NewWithT(t)
	img := image.NewRGBA(image.Rect(0, 0, 8, 8))
	copy(img.Pix, bytes.Repeat([]byte{7}, len(img.Pix)))
	maskRGBA(img, []redaction.Rect{{X: 1, Y: 1, W: 2, H: 2}})
	g.Expect(img.RGBAAt(1, 1).R).To(gomega.BeZero())
	g.Expect(img.RGBAAt(3, 3).R).To(gomega.BeEquivalentTo(7))
}

func TestTail_is_bounded(t *testing.T) {
	g := gomega.NewWithT(t)
	var b tail
	for range 100 {
		b.Write(bytes.Repeat([]byte("x"), 1000))
	}
	b.Write([]byte("end\xff"))
	g.Expect(len(b.String())).To(gomega.BeNumerically("<=", stderrTail))
	g.Expect(b.String()).To(gomega.HaveSuffix("end?"))
}

// whole converts all of a picture, whatever was drawn on it when.
func whole(p *picture) []byte {
	all := &picture{pix: p.pix, w: p.w, h: p.h, drawn: make([]uint64, len(p.drawn)), words: p.words}
	all.mark(redaction.Rect{W: p.w, H: p.h})
	return newPlanes(p.w, p.h).turn(all)
}

// A pixel's planes must not depend on what was there before: a block that is skipped wrongly would show old content under a new mask.
// Everything that draws is in the test, in any order, also beyond the edges; widths are such that blocks end in a word, beside it and beyond it.
func TestPlanes_turn_is_the_same_with_and_without_history(t *testing.T) {
	face, err := newTypeface(13)
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
	for _, size := range [][2]int{{38, 10}, {1024, 20}, {1040, 22}, {1936, 30}, {2100, 12}} {
		g := gomega.NewWithT(t)
		w, h := size[0], size[1]
		rnd := rand.New(rand.NewPCG(3, 4))
		p := newPlanes(w, h)
		pic := newPicture(w, h)
		pic.fill(redaction.Rect{W: w, H: h}, ground)
		some := func() redaction.Rect {
			return redaction.Rect{X: rnd.IntN(w+4) - 2, Y: rnd.IntN(h+4) - 2, W: 1 + rnd.IntN(w/2), H: 1 + rnd.IntN(h/2)}
		}
		for range 200 {
			c := redaction.Colour{byte(rnd.IntN(256)), byte(rnd.IntN(256)), byte(rnd.IntN(256)), 0}
			r := some()
			switch rnd.IntN(5) {
			case 0:
				pic.fill(r, c)
			case 1:
				pic.text(face, r.X, r.Y, r.W, "Ada \u2602 42", c)
			case 2:
				pic.hatch(r.Clip(w, h))
			case 3:
				pic.code(redaction.Rect{W: w, H: h}, "") // too large for most of these pictures, and then nothing is drawn
			default:
				r = r.Clip(w, h)
				sw := r.W + rnd.IntN(3)
				src := make([]byte, max(1, sw*r.H*4))
				for y := range r.H { // what is there already, but for a few pixels
					copy(src[y*sw*4:], pic.pix[((r.Y+y)*w+r.X)*4:((r.Y+y)*w+r.X+r.W)*4])
				}
				for range rnd.IntN(3) {
					src[rnd.IntN(len(src))] ^= 0x55
				}
				pic.blit(r, src, sw)
			}
			if rnd.IntN(3) > 0 { // several drawings between two turns as well
				g.Expect(bytes.Equal(p.turn(pic), whole(pic))).To(gomega.BeTrue(), "%d x %d", w, h)
			}
		}
		pic.fill(redaction.Rect{W: w, H: h}, redaction.Black)
		out := p.turn(pic)
		g.Expect(out[:w*h]).To(gomega.HaveEach(byte(16)))
		g.Expect(out[w*h:]).To(gomega.HaveEach(byte(128)))
		pic.fill(redaction.Rect{W: w, H: h}, redaction.Colour{255, 255, 255, 0})
		g.Expect(p.turn(pic)[:w*h]).To(gomega.HaveEach(byte(235)))
		pic.fill(redaction.Rect{W: w, H: h}, redaction.Colour{0, 0, 255, 0})
		red := p.turn(pic)
		g.Expect([]byte{red[0], red[w*h], red[w*h*5/4]}).To(gomega.Equal([]byte{82, 90, 240}))
	}
}

// A still desk costs a comparison and no more: nothing is converted twice.
func TestPicture_blit_of_the_same_marks_nothing(t *testing.T) {
	g := gomega.NewWithT(t)
	pic := newPicture(100, 20)
	src := bytes.Repeat([]byte{1, 2, 3, 4}, 90*18)
	r := redaction.Rect{X: 3, Y: 1, W: 90, H: 18}
	pic.blit(r, src, 90)
	g.Expect(pic.pix[(1*100+3)*4 : (1*100+93)*4]).To(gomega.Equal(src[:90*4]))
	newPlanes(100, 20).turn(pic)
	pic.blit(r, src, 90)
	g.Expect(pic.drawn).To(gomega.HaveEach(uint64(0)))
	src[(5*90+40)*4] ^= 1
	pic.blit(r, src, 90)
	want := newPicture(100, 20)
	want.mark(redaction.Rect{X: 43, Y: 6, W: 1, H: 1})
	g.Expect(pic.drawn).To(gomega.Equal(want.drawn))
}

// shrink mixes pixels as the mean of means, whatever the width.
func TestShrink_is_the_mean_of_means(t *testing.T) {
	g := gomega.NewWithT(t)
	rnd := rand.New(rand.NewPCG(7, 8))
	for _, k := range []int{1, 2, 3, 4} {
		w, h := 4*k+rnd.IntN(k), 3*k+rnd.IntN(k)
		src := make([]byte, w*h*4)
		for i := range src {
			src[i] = byte(rnd.IntN(256))
		}
		ow, oh := w/k, h/k
		dst := make([]byte, ow*oh*4)
		shrink(dst, ow*4, src, w, h, k)
		for y := range oh {
			for x := range ow {
				for i := range 4 {
					at := func(dx, dy int) int { return int(src[((y*k+dy)*w+x*k+dx)*4+i]) }
					want := at(0, 0)
					if k > 1 {
						want = ((at(0, 0)+at(0, 1))/2 + (at(1, 0)+at(1, 1))/2) / 2
					}
					g.Expect(int(dst[(y*ow+x)*4+i])).To(gomega.Equal(want), "scale %d at %d,%d", k, x, y)
				}
			}
		}
	}
}

// BenchmarkPlanes is a frame from a masked capture to the encoder's input: a desk that stands still, and one that is all new.
func BenchmarkPlanes(b *testing.B) {
	l := NewLayout(1280, 800)
	pic := newPicture(l.WidthPx, l.HeightPx)
	p := newPlanes(l.WidthPx, l.HeightPx)
	desk := make([]byte, l.Desk.W*l.Desk.H*4)
	b.Run("still", func(b *testing.B) {
		for b.Loop() {
			pic.blit(l.Desk, desk, l.Desk.W)
			p.turn(pic)
		}
	})
	b.Run("all new", func(b *testing.B) {
		for i := byte(0); b.Loop(); i++ {
			for j := 0; j < len(desk); j += 16 {
				desk[j] = i
			}
			pic.blit(l.Desk, desk, l.Desk.W)
			p.turn(pic)
		}
	})
}

// deskMasks is compared with painting window over window, pixel by pixel.
func TestDeskMasks_against_painting(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	const w, h = 40, 30
	some := func() redaction.Rect {
		return redaction.Rect{X: rnd.IntN(w) - 5, Y: rnd.IntN(h) - 5, W: 1 + rnd.IntN(20), H: 1 + rnd.IntN(20)}
	}
	for range 300 {
		var layers []layer
		at := rnd.IntN(4)
		for i := range 4 {
			l := layer{rect: some(), kind: own}
			if rnd.IntN(3) == 0 {
				l.kind = stranger
			}
			if i == at {
				l.kind = target
				l.inner = redaction.Rect{X: l.rect.X + 1, Y: l.rect.Y + 2, W: l.rect.W - 2, H: l.rect.H - 3}
			}
			layers = append(layers, l)
		}
		rects := []redaction.Rect{some(), some()}
		want := make([]byte, w*h*4)
		for _, l := range layers {
			c := redaction.Colour{9, 9, 9, 9}
			if l.kind != own {
				c = redaction.Colour{1, 1, 1, 1} // black, also the frame
			}
			redaction.Mask(want, w, h, w*4, []redaction.Rect{l.rect}, c)
			if l.kind == target {
				redaction.Mask(want, w, h, w*4, []redaction.Rect{l.inner}, redaction.Colour{9, 9, 9, 9})
				redaction.Mask(want, w, h, w*4, rects, redaction.Colour{1, 1, 1, 1})
			}
		}
		masks, _ := deskMasks(layers, rects, w, h)
		got := make([]byte, w*h*4)
		redaction.Mask(got, w, h, w*4, masks, redaction.Colour{1, 1, 1, 1})
		for i := 0; i < len(want); i += 4 {
			if (want[i] == 1) != (got[i] == 1) {
				t.Fatalf("pixel %d,%d: masked %v, want %v\n%+v\n%v", i/4%w, i/4/w, got[i] == 1, want[i] == 1, layers, rects)
			}
		}
	}
}

func TestDeskMasks_fail_closed(t *testing.T) {
	g := gomega.NewWithT(t)
	r := []redaction.Rect{{X: 1, Y: 1, W: 5, H: 5}}
	m, _ := deskMasks(nil, r, 10, 10)
	g.Expect(m).To(gomega.Equal(r))
	m, _ = deskMasks([]layer{{rect: redaction.Rect{W: 10, H: 10}, kind: own}}, r, 10, 10)
	g.Expect(m).To(gomega.Equal(r), "a target that is not among the windows keeps its masks on top of all")
	var many []redaction.Rect
	for i := range maxMasks + 1 {
		many = append(many, redaction.Rect{X: i, W: 1, H: 1})
	}
	m, _ = deskMasks([]layer{{rect: redaction.Rect{W: 10, H: 10}, kind: target}}, many, 10, 10)
	g.Expect(m).To(gomega.Equal([]redaction.Rect{{W: 10, H: 10}}))
}
