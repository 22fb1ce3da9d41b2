//go:build browser

package recorder

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/redaction"
)

// filmed is how long each of the three measurements of BenchmarkFilm lasts.
const filmed = 4 * time.Second

// BenchmarkFilm reports the recorder's cost, encoder included, in percent of one core at 15 frames a second on a desk of 1280x800 where a
// covered Chromium animates: of the desk with masks and code, of the same with the covered window in the second pane, and beside them
// ffmpeg's own screen grabber on the same desk with the same encoder settings. Run it once: -benchtime 1x.
func BenchmarkFilm(b *testing.B) {
	g := gomega.NewWithT(b)
	d := newDesk(b)
	person := d.window("person", redaction.Rect{X: 420, Y: 120, W: 760, H: 560}, 0x3c6e71)
	win := d.chromium(redaction.Rect{X: 60, Y: 60, W: 1000, H: 700})
	d.raise(person)
	defer d.beat(person, redaction.Rect{X: 40, Y: 40, W: 120, H: 120}, 250*time.Millisecond)()
	percent := func(u *syscall.Rusage) float64 {
		return 100 * float64(u.Utime.Nano()+u.Stime.Nano()) / float64(filmed)
	}
	self := func() float64 {
		var u syscall.Rusage
		g.Expect(syscall.Getrusage(syscall.RUSAGE_SELF, &u)).To(gomega.Succeed())
		return percent(&u)
	}
	film := func(window uint32) (core, first float64) {
		cfg := d.config(b.TempDir())
		cfg.Masks = &provider{start: true}
		before := self()
		f, err := StartFilm(b.Context(), cfg)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		f.Target(window, true)
		f.waitFrames(b, filmed)
		rep, err := f.Stop(b.Context())
		g.Expect(err).NotTo(gomega.HaveOccurred())
		b.Logf("capture %.2f ms, compose %.2f ms, write %.2f ms, late at most %.1f ms, repeated %d of %d, %d bytes", rep.MeanCaptMS, rep.MeanMakeMS, rep.MeanWriteMS,
			rep.MaxLateMS, rep.Repeated, rep.Frames, rep.Bytes)
		return self() - before + percent(f.enc.state.SysUsage().(*syscall.Rusage)), rep.FirstFrameMS
	}
	for b.Loop() {
		desk, first := film(0)
		both, _ := film(uint32(win))
		grab := d.command("ffmpeg", "-v", "error", "-f", "x11grab", "-framerate", "15", "-video_size", "1280x800", "-i", d.display, "-t", "4",
			"-c:v", "libx264", "-preset", "ultrafast", "-qp", quantizer, "-pix_fmt", "yuv420p", filepath.Join(b.TempDir(), "grab.mp4"))
		grab.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := grab.CombinedOutput()
		g.Expect(err).NotTo(gomega.HaveOccurred(), "%s", out)
		peer := percent(grab.ProcessState.SysUsage().(*syscall.Rusage))
		b.ReportMetric(desk, "desk-%core")
		b.ReportMetric(both, "panes-%core")
		b.ReportMetric(peer, "x11grab-%core")
		b.ReportMetric(desk/peer, "desk-ratio")
		b.ReportMetric(both/peer, "panes-ratio")
		b.ReportMetric(first, "first-frame-ms")
	}
}
