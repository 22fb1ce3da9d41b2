//go:build browser

package recorder

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/engine-acceptance/acceptance/redaction"
	"github.com/jezek/xgb/xproto"
	"github.com/onsi/gomega"
)

// provider knows what the test has told it, and since when.
type provider struct {
	mu    sync.Mutex
	said  []said
	start bool // known before anything was said
}

type said struct {
	ns    int64
	known bool
	rects []redaction.Rect
}

func (p *provider) Masks(from, to int64) (rects []redaction.Rect, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known = p.start || len(p.said) > 0 && p.said[0].ns <= from
	for i, s := range p.said {
		if s.ns <= to && (i+1 == len(p.said) || p.said[i+1].ns >= from) {
			known = known && s.known
			rects = append(rects, s.rects...)
		}
	}
	return rects, known
}

func (p *provider) set(known bool, rects ...redaction.Rect) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, said{monotonic(), known, rects})
}

func (d *desk) config(dir string) FilmConfig {
	return FilmConfig{Display: d.display, XAuthority: d.auth, Path: filepath.Join(dir, "film.mp4"), SidePath: filepath.Join(dir, "frames.jsonl"),
		RunID: "run-20260102-1f3a", RowID: "type-unicode-covered[action=type,delivery=background,state=covered]", Commit: "0123456789abcdef0123456789abcdef01234567"}
}

// waitFrames waits until so much time has passed and half of the frames due in it were taken, however busy the machine is.
func (f *Film) waitFrames(t testing.TB, more time.Duration) {
	t.Helper()
	from, taken := monotonic(), f.Captures()
	want := int(more * DefaultFPS / time.Second / 2)
	gomega.NewWithT(t).Eventually(func() bool {
		return f.Err() != nil || monotonic()-from >= int64(more) && f.Captures()-taken >= want
	}, "60s", "20ms").Should(gomega.BeTrue())
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
}

func keep(t *testing.T, dir string, names ...string) {
	for _, n := range names {
		b, err := os.ReadFile(filepath.Join(dir, n))
		if err == nil {
			err = os.WriteFile(filepath.Join(t.ArtifactDir(), n), b, 0o644)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

func TestFilm_of_a_covered_browser(t *testing.T) {
	g := gomega.NewWithT(t)
	d := newDesk(t)
	dir := t.TempDir()
	masks := &provider{start: true}
	var mu sync.Mutex
	var chrome []redaction.Rect
	cfg := d.config(dir)
	cfg.Masks = masks
	cfg.Chrome = func() []redaction.Rect { mu.Lock(); defer mu.Unlock(); return chrome }
	f, err := StartFilm(t.Context(), cfg)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	person := d.window("person", redaction.Rect{X: 420, Y: 120, W: 760, H: 560}, 0x3c6e71)
	beat := redaction.Rect{X: 40, Y: 40, W: 120, H: 120}
	stop := d.beat(person, beat, 250*time.Millisecond)
	defer stop()
	masks.set(false)
	f.Own(uint32(person))
	win := d.chromium(redaction.Rect{X: 60, Y: 60, W: 1000, H: 700})
	f.Target(uint32(win), true)
	d.raise(person)
	// Chromium's page is the lower part of its window: what is above is browser chrome.
	at := d.rect(win)
	const bars = 130
	mu.Lock()
	chrome = []redaction.Rect{{X: at.X, Y: at.Y, W: at.W, H: bars}}
	mu.Unlock()
	f.waitFrames(t, 1500*time.Millisecond)
	before := monotonic()
	secret := redaction.Rect{X: at.X + secretOnPage.X, Y: at.Y + bars - 60 + secretOnPage.Y, W: secretOnPage.W, H: secretOnPage.H + 60}
	masks.set(true, secret)
	f.waitFrames(t, 1500*time.Millisecond)
	g.Expect(f.Still(t.Context(), filepath.Join(dir, "still.png"))).To(gomega.Succeed())
	f.Target(uint32(win), false)
	f.waitFrames(t, time.Second)
	rep, err := f.Stop(t.Context())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	t.Logf("%+v", rep)
	g.Expect(rep.Exit.Code).To(gomega.Equal(0))
	keep(t, dir, "film.mp4", "frames.jsonl", "still.png")

	l := f.Layout()
	_, side, err := readSide(cfg.SidePath)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	known, own := 0, 0
	for i, s := range side {
		if s.Pane == PaneOwn && own == 0 {
			own = i
		}
		if s.CapNS > before+int64(2*Hold) && known == 0 {
			known = i
		}
	}
	onDesk := l.OnDesk(redaction.Rect{X: d.rect(person).X + beat.X + 10, Y: d.rect(person).Y + beat.Y + 10, W: 90, H: 90})
	visibleSecret := secret // the part that the person's window does not cover
	visibleSecret.W = d.rect(person).X - 2 - secret.X
	begin := time.Now()
	c, err := CheckFilm(t.Context(), rep.Path, rep.SidePath, Expect{
		Masked: []Span{
			{Name: "secret on the desk", Rect: l.OnDesk(visibleSecret), From: known},
			{Name: "secret in the pane", Rect: l.OnPane(secret, at, 2), From: known},
			{Name: "chrome in the pane", Rect: l.OnPane(redaction.Rect{X: at.X, Y: at.Y, W: at.W, H: bars}, at, 2), From: known},
			{Name: "window while nothing was known", Rect: l.OnPane(at, at, 2), From: own, To: own + 8},
		},
		Watched: []Span{
			{Name: "person", Rect: onDesk, From: own},
			{Name: "page", Rect: l.OnPane(redaction.Rect{X: at.X, Y: at.Y + bars, W: 60, H: 20}, at, 2), From: known},
		},
	})
	t.Logf("motion %+v person %v at %v known %d own %d", c.Motion, d.rect(person), at, known, own)
	t.Logf("checked in %v: frames %d codes %d black %d frozen %d breaches %v", time.Since(begin), c.Frames, len(c.Codes), c.BlackFrames, c.FrozenFrames, c.Breaches)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(c.DecodeErrors).To(gomega.BeEmpty())
	g.Expect(c.Frames).To(gomega.Equal(rep.Frames))
	g.Expect(c.SideFrames).To(gomega.Equal(rep.Frames))
	g.Expect(c.SHA256).To(gomega.Equal(rep.SHA256))
	g.Expect(c.PTSMonotonic).To(gomega.BeTrue())
	g.Expect(c.PTSEven).To(gomega.BeTrue())
	g.Expect(c.CapMonotonic).To(gomega.BeTrue())
	g.Expect(c.CodesOK).To(gomega.BeTrue(), "%+v", c.Codes)
	g.Expect(c.BlackFrames).To(gomega.BeZero())
	g.Expect(c.Breaches).To(gomega.BeEmpty())
	g.Expect(c.MaskChecks).To(gomega.BeNumerically(">", 20))
	g.Expect(c.Motion[0].Changes).To(gomega.BeNumerically(">=", 2))
	g.Expect(c.Motion[1].Changes).To(gomega.BeNumerically(">=", 2), "the covered page moves in its pane")
	g.Expect(c.PaneFrames).To(gomega.HaveKey(PaneInactive))
	g.Expect(c.PaneFrames).To(gomega.HaveKey(PaneNone))

	// The same look must be able to find something: the page's own text is no solid area.
	c, err = CheckFilm(t.Context(), rep.Path, rep.SidePath, Expect{Masked: []Span{{Name: "text", Rect: l.OnPane(redaction.Rect{X: at.X, Y: at.Y + 400, W: 300, H: 100}, at, 2), From: known}}})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(c.Breaches).NotTo(gomega.BeEmpty())

	// What the side file says is black is looked at in every frame without being asked for, and a film that does not keep that is found out.
	black := 0
	for _, s := range side[known:] {
		black += len(s.Black)
	}
	g.Expect(black).To(gomega.BeNumerically(">=", 2*len(side[known:])), "chrome and secret of each frame")
	text, err := os.ReadFile(rep.SidePath)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	last := side[len(side)-1]
	last.Black = append(last.Black, l.OnDesk(redaction.Rect{X: 430, Y: 130, W: 300, H: 200})) // the person's window
	line, err := json.Marshal(last)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	lines[len(lines)-1] = string(line)
	unkept := filepath.Join(dir, "unkept.jsonl")
	g.Expect(os.WriteFile(unkept, []byte(strings.Join(lines, "\n")+"\n"), 0o600)).To(gomega.Succeed())
	c, err = CheckFilm(t.Context(), rep.Path, unkept, Expect{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(c.Breaches).To(gomega.HaveLen(1), "%v", c.Breaches)

	b, err := os.ReadFile(filepath.Join(dir, "still.png"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	img, err := png.Decode(bytes.NewReader(b))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(img.Bounds().Dx()).To(gomega.Equal(l.WidthPx))
	mid := l.OnPane(secret, at, 2)
	r, gr, bl, _ := img.At(mid.X+mid.W/2, mid.Y+mid.H/2).RGBA()
	g.Expect(r + gr + bl).To(gomega.BeZero())
	left, err := filepath.Glob(filepath.Join(dir, ".partial-*"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(left).To(gomega.BeEmpty())
}

// fakeEncoder writes a script that takes ffmpeg's place.
func fakeEncoder(t *testing.T, body string) string {
	p := filepath.Join(t.TempDir(), "encoder")
	if err := os.WriteFile(p, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

func (d *desk) filmFor(t *testing.T, cfg FilmConfig, long time.Duration, during func(*Film)) (FilmReport, error) {
	g := gomega.NewWithT(t)
	f, err := StartFilm(t.Context(), cfg)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	if during != nil {
		during(f)
	}
	from := time.Now()
	g.Eventually(func() bool {
		select {
		case <-f.Done():
			return true
		default:
			return time.Since(from) > long
		}
	}, "30s", "20ms").Should(gomega.BeTrue())
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	return f.Stop(ctx)
}

// smallDisk mounts 256 KiB on dir for the test, as root or by sudo; where neither may, the test is skipped.
func smallDisk(t *testing.T, dir string) {
	t.Helper()
	as := func(args ...string) ([]byte, error) {
		if os.Getuid() != 0 {
			args = append([]string{"sudo", "-n"}, args...)
		}
		return exec.Command(args[0], args[1:]...).CombinedOutput()
	}
	if out, err := as("mount", "-t", "tmpfs", "-o", "size=256k,mode=0777", "tmpfs", dir); err != nil {
		if os.Getuid() != 0 {
			t.Skipf("a small disk cannot be mounted without root or sudo: %v: %s", err, out)
		}
		t.Fatalf("mount a small disk: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := as("umount", "-l", dir); err != nil {
			t.Errorf("unmount the small disk: %v: %s", err, out)
		}
	})
}

func TestFilm_failures_are_never_silent(t *testing.T) {
	d := newDesk(t)
	person := d.window("person", redaction.Rect{X: 100, Y: 100, W: 600, H: 400}, 0x3c6e71)
	defer d.beat(person, redaction.Rect{W: 300, H: 300}, 100*time.Millisecond)()

	t.Run("killed encoder", func(t *testing.T) {
		g := gomega.NewWithT(t)
		cfg := d.config(t.TempDir())
		rep, err := d.filmFor(t, cfg, 10*time.Second, func(f *Film) {
			f.waitFrames(t, time.Second)
			f.enc.proc.Kill()
		})
		g.Expect(err).To(gomega.MatchError(ErrEncoderDied))
		g.Expect(rep.Exit.Signal).To(gomega.Equal("killed"))
		g.Expect(rep.Failed).NotTo(gomega.BeEmpty())
		c, err := CheckFilm(t.Context(), cfg.Path, cfg.SidePath, Expect{})
		g.Expect(err).NotTo(gomega.HaveOccurred())
		t.Logf("killed: decoded %d of %d", c.Frames, c.SideFrames)
		g.Expect(c.Frames).To(gomega.BeNumerically(">=", 3), "fragments survive")
		g.Expect(c.Frames).To(gomega.BeNumerically("<", 60))
	})
	t.Run("encoder that exits early", func(t *testing.T) {
		g := gomega.NewWithT(t)
		cfg := d.config(t.TempDir())
		cfg.Encoder = fakeEncoder(t, "timeout 2 cat >/dev/null\necho sorry >&2\nexit 1\n")
		rep, err := d.filmFor(t, cfg, 10*time.Second, nil)
		g.Expect(err).To(gomega.MatchError(ErrEncoderDied))
		g.Expect(rep.Exit.Code).To(gomega.Equal(1))
		g.Expect(rep.Exit.Stderr).To(gomega.ContainSubstring("sorry"))
		_, err = CheckFilm(t.Context(), cfg.Path, cfg.SidePath, Expect{})
		g.Expect(err).To(gomega.MatchError(os.ErrNotExist))
	})
	t.Run("encoder that writes black", func(t *testing.T) {
		g := gomega.NewWithT(t)
		cfg := d.config(t.TempDir())
		l := NewLayout(1280, 800)
		black := filepath.Join(t.TempDir(), "black.mp4")
		out, err := exec.Command("ffmpeg", "-v", "error", "-f", "lavfi", "-i", fmt.Sprintf("color=black:s=%dx%d:r=15:d=2", l.WidthPx, l.HeightPx), "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", black).CombinedOutput()
		g.Expect(err).NotTo(gomega.HaveOccurred(), "%s", out)
		cfg.Encoder = fakeEncoder(t, fmt.Sprintf("cp %s %s\ncat >/dev/null\n", black, cfg.Path))
		_, err = d.filmFor(t, cfg, 2*time.Second, nil)
		g.Expect(err).NotTo(gomega.HaveOccurred(), "the encoder claims that all is well")
		c, err := CheckFilm(t.Context(), cfg.Path, cfg.SidePath, Expect{})
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(c.Frames).To(gomega.BeNumerically(">", 10))
		g.Expect(c.BlackFrames).To(gomega.Equal(c.Frames))
		g.Expect(c.FrozenFrames).To(gomega.Equal(c.Frames))
		g.Expect(c.CodesOK).To(gomega.BeFalse())
	})
	t.Run("encoder that drops frames", func(t *testing.T) {
		g := gomega.NewWithT(t)
		cfg := d.config(t.TempDir())
		cfg.Encoder = fakeEncoder(t, `ffmpeg $(echo "$@" | sed "s#-flush_packets#-frames:v 9 -flush_packets#")`+"\ncat >/dev/null\nexit 0\n")
		_, err := d.filmFor(t, cfg, 2*time.Second, nil)
		g.Expect(err).NotTo(gomega.HaveOccurred(), "the encoder claims that all is well")
		c, err := CheckFilm(t.Context(), cfg.Path, cfg.SidePath, Expect{})
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(c.Frames).To(gomega.Equal(9))
		g.Expect(c.SideFrames).To(gomega.BeNumerically(">", 20))
	})
	t.Run("encoder that hangs at the end", func(t *testing.T) {
		g := gomega.NewWithT(t)
		cfg := d.config(t.TempDir())
		cfg.Encoder = fakeEncoder(t, "trap '' TERM\ncat >/dev/null\nwhile :; do sleep 1; done\n")
		rep, err := d.filmFor(t, cfg, 500*time.Millisecond, nil)
		g.Expect(err).To(gomega.MatchError(ErrEncoderHung))
		g.Expect(rep.Exit.Forced).To(gomega.Equal("SIGKILL"))
	})
	t.Run("no encoder", func(t *testing.T) {
		g := gomega.NewWithT(t)
		cfg := d.config(t.TempDir())
		cfg.Encoder = "no-such-encoder"
		_, err := StartFilm(t.Context(), cfg)
		g.Expect(err).To(gomega.MatchError(ErrNoEncoder))
	})
	t.Run("full disk", func(t *testing.T) {
		g := gomega.NewWithT(t)
		dir := t.TempDir()
		smallDisk(t, dir)
		cfg := d.config(dir)
		rep, err := d.filmFor(t, cfg, 20*time.Second, func(f *Film) {
			// Noise, which no encoder makes small.
			quit := make(chan struct{})
			t.Cleanup(func() { close(quit) })
			go func() {
				for i := uint32(1); ; i++ {
					select {
					case <-quit:
						return
					case <-f.Done():
						return
					default:
						i = i*1664525 + 1013904223
						d.paint(person, redaction.Rect{X: int(i>>8) % 600, Y: int(i>>16) % 400, W: 20, H: 20}, i>>4)
					}
				}
			}()
		})
		g.Expect(err).To(gomega.MatchError(ErrDiskFull), "%+v", rep.Exit)
		g.Expect(rep.Failed).NotTo(gomega.BeEmpty())
		err = writePNG(filepath.Join(dir, "x.png"), newPicture(2000, 2000).rgba())
		if err == nil {
			_, err = os.Stat(filepath.Join(dir, "x.png"))
			g.Expect(err).NotTo(gomega.HaveOccurred())
		} else {
			g.Expect(err).To(gomega.MatchError(ErrDiskFull))
			_, err = os.Stat(filepath.Join(dir, "x.png"))
			g.Expect(err).To(gomega.MatchError(os.ErrNotExist))
		}
	})
	t.Run("display lost", func(t *testing.T) {
		g := gomega.NewWithT(t)
		d := newDesk(t)
		cfg := d.config(t.TempDir())
		rep, err := d.filmFor(t, cfg, 10*time.Second, func(f *Film) {
			f.waitFrames(t, 600*time.Millisecond)
			d.server.Kill()
		})
		g.Expect(err).To(gomega.MatchError(ErrDisplay))
		c, err := CheckFilm(t.Context(), cfg.Path, cfg.SidePath, Expect{})
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(c.Frames).To(gomega.Equal(rep.Frames), "what was captured before is kept")
	})
}

// A compositor draws the desk itself: the film must still show it, and its helper windows are no strangers that hide it.
func TestFilm_under_a_compositor(t *testing.T) {
	g := gomega.NewWithT(t)
	d := newDesk(t)
	picom := d.command("picom", "--backend", "xrender", "--config", "/dev/null")
	child(t, picom)
	d.eventually(func() bool {
		r, err := xproto.GetSelectionOwner(d.c, d.atom("_NET_WM_CM_S0")).Reply()
		return err == nil && r.Owner != 0
	})
	covered := d.window("covered", redaction.Rect{X: 60, Y: 60, W: 500, H: 400}, 0x905030)
	person := d.window("person", redaction.Rect{X: 300, Y: 100, W: 600, H: 500}, 0x3c6e71)
	d.raise(person)
	defer d.beat(person, redaction.Rect{X: 40, Y: 40, W: 120, H: 120}, 200*time.Millisecond)()
	defer d.beat(covered, redaction.Rect{X: 350, Y: 100, W: 100, H: 100}, 200*time.Millisecond)()
	cfg := d.config(t.TempDir())
	cfg.Masks = &provider{start: true}
	var at redaction.Rect
	rep, err := d.filmFor(t, cfg, 0, func(f *Film) {
		f.Own(uint32(person))
		f.Target(uint32(covered), true)
		f.waitFrames(t, 2*time.Second)
		at = d.rect(covered)
	})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, side, err := readSide(cfg.SidePath)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	last := side[len(side)-1]
	g.Expect(last.Strangers).To(gomega.BeZero())
	g.Expect(last.Pane).To(gomega.Equal(PaneOwn))
	l := rep.Layout
	p := d.rect(person)
	c, err := CheckFilm(t.Context(), cfg.Path, cfg.SidePath, Expect{Watched: []Span{
		{Name: "person", Rect: l.OnDesk(redaction.Rect{X: p.X + 50, Y: p.Y + 50, W: 80, H: 80})},
		{Name: "covered", Rect: l.OnPane(redaction.Rect{X: at.X + 360, Y: at.Y + 110, W: 80, H: 80}, at, last.Scale)},
	}})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(c.Motion[0].Changes).To(gomega.BeNumerically(">=", 2), "%v", c.Motion[0])
	g.Expect(c.Motion[1].Changes).To(gomega.BeNumerically(">=", 2), "%v", c.Motion[1])
}
