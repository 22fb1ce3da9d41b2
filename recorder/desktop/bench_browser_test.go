//go:build browser

package desktop

import (
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/recorder/x11"
)

// BenchmarkDetection measures the time from the write of a disturbance to its event in the log, read from the
// events' own time stamps: p50 and p99 in microseconds.
func BenchmarkDetection(b *testing.B) {
	s := startScene(b)
	ctx := b.Context()
	g := NewWithT(b)
	popup, err := s.conn.CreateWindow(ctx, x11.WindowOptions{X: 600, Y: 500, Width: 50, Height: 50, OverrideRedirect: true})
	g.Expect(err).NotTo(HaveOccurred())
	for _, bc := range []struct {
		name     string
		kind     Kind
		do, undo *x11.Request
	}{
		{"focus", FocusOut, x11.SetInputFocus(s.target), x11.SetInputFocus(s.person)},
		{"warp", ReqWarp, s.conn.WarpPointer(390, 330), s.conn.WarpPointer(350, 300)},
		{"popup", WindowMapped, x11.MapWindow(popup), x11.UnmapWindow(popup)},
		{"selection", PrimaryChanged, x11.SetSelectionOwner(s.person, x11.AtomPrimary), x11.SetSelectionOwner(0, x11.AtomPrimary)},
	} {
		b.Run(bc.name, func(b *testing.B) {
			g := NewWithT(b)
			var delays []time.Duration
			for b.Loop() {
				from, err := s.log.Barrier(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				began := x11.MonoNS()
				g.Expect(s.conn.Send(ctx, bc.do, bc.undo)).To(Succeed())
				g.Expect(s.conn.Sync(ctx)).To(Succeed())
				to, err := s.log.Barrier(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				events := s.log.Between(from, to)
				i := slices.IndexFunc(events, func(ev Event) bool { return ev.Kind == bc.kind })
				g.Expect(i).To(BeNumerically(">=", 0), "not seen")
				delays = append(delays, time.Duration(events[i].MonoNS-began))
				s.log.Release(to)
			}
			slices.Sort(delays)
			b.ReportMetric(float64(delays[len(delays)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(delays[len(delays)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkBarrier measures one barrier over every channel.
func BenchmarkBarrier(b *testing.B) {
	s := startScene(b)
	g := NewWithT(b)
	for b.Loop() {
		_, err := s.log.Barrier(b.Context())
		g.Expect(err).NotTo(HaveOccurred())
	}
}

// BenchmarkIdle measures the processor time of a guard on a desk where a person moves the pointer 100 times a second, in
// percent of one core. One operation is one second.
func BenchmarkIdle(b *testing.B) {
	s := startScene(b)
	g := NewWithT(b)
	v := s.violator(b)
	s.restore(b)
	var spent, wall time.Duration
	for b.Loop() {
		before, began := processTime(b), time.Now()
		g.Expect(v.do("paced 0s")).To(Succeed())
		spent += processTime(b) - before
		wall += time.Since(began)
	}
	b.ReportMetric(100*spent.Seconds()/wall.Seconds(), "%core")
}

// BenchmarkAnimated measures the processor time of all channels, those of the buses too, while Chromium shows a page that draws at every
// frame, in percent of one core. One operation is two seconds.
func BenchmarkAnimated(b *testing.B) {
	s := startScene(b)
	g := NewWithT(b)
	s.startBus(b)
	g.Expect(s.log.Stop(b.Context())).To(Succeed())
	log, err := Start(b.Context(), Config{Display: s.display, XAuthority: s.authority, Bus: s.bus, BusUID: os.Getuid(), CallBudget: 20 * time.Second,
		SettleBudget: 20 * time.Second, Exempt: []int{s.wm}})
	g.Expect(err).NotTo(HaveOccurred())
	s.log = log
	b.Cleanup(func() { _ = log.Stop(b.Context()) }) // the process ends with its connections
	for w, as := range map[uint32]WindowRole{s.bystander: Bystander, s.person: Person} {
		g.Expect(log.Watch(b.Context(), w, as)).To(Succeed())
	}
	s.startPlainBrowser(b, "chromium")
	var spent, wall time.Duration
	events := Mark(0)
	for b.Loop() {
		from, err := log.Barrier(b.Context())
		g.Expect(err).NotTo(HaveOccurred())
		before, began := processTime(b), time.Now()
		time.Sleep(2 * time.Second)
		spent += processTime(b) - before
		wall += time.Since(began)
		to, err := log.Barrier(b.Context())
		g.Expect(err).NotTo(HaveOccurred())
		events += to - from
		log.Release(to)
	}
	b.ReportMetric(100*spent.Seconds()/wall.Seconds(), "%core")
	b.ReportMetric(float64(events)/wall.Seconds(), "events/s")
}

func processTime(b *testing.B) time.Duration {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
