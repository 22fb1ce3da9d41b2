//go:build browser

package desk_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/suites/desk"
	"github.com/engine-acceptance/acceptance/suites/person"
	"github.com/engine-acceptance/acceptance/suites/sentinel"
	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// late is generous: here we prove order and number, and the machine may be busy with other tests.
const late = 10 * time.Second

// seated is a desk with a browser-like window of another application below the sentinel.
type seated struct {
	*desk.Desk
	sentinel  *sentinel.Sentinel
	bystander *sentinel.Sentinel
	person    *person.Person
	x         *xwire.Conn
	trip      *xwire.Trip
	screen    xwire.Rect
}

func seat(g Gomega, t *testing.T, cfg desk.Config) seated {
	d, err := desk.Open(t.Context(), cfg)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s := seated{Desk: d, screen: xwire.Rect{Width: d.Facts().WidthPx, Height: d.Facts().HeightPx}}
	s.bystander, err = sentinel.Start(t.Context(), d.StartRole, sentinel.Options{Role: "bystander", Dark: true, Rect: xwire.Rect{X: 240, Y: 140, Width: 900, Height: 560}})
	g.Expect(err).NotTo(HaveOccurred())
	s.sentinel, err = sentinel.Start(t.Context(), d.StartRole, sentinel.Options{Above: cfg.Variant == desk.Above})
	g.Expect(err).NotTo(HaveOccurred())
	s.person, err = person.Start(t.Context(), d.StartRole, 7)
	g.Expect(err).NotTo(HaveOccurred())
	s.x, err = d.Dial(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { s.x.Close() })
	s.trip, err = xwire.NewTrip(t.Context(), d.Display(), d.Xauthority())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { s.trip.Close() })
	_, err = s.sentinel.Raise(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	return s
}

// covered is the share of a window's frame that is below other windows, by QueryTree, pixel by pixel.
func (s seated) covered(g Gomega, t *testing.T, of *sentinel.Sentinel) float64 {
	p, err := of.Where(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	above, err := s.x.Covering(t.Context(), p.Window)
	g.Expect(err).NotTo(HaveOccurred())
	hidden, all := 0, 0
	for y := max(p.FrameRect.Y, 0); y < min(p.FrameRect.Y+p.FrameRect.Height, s.screen.Height); y++ {
		for x := max(p.FrameRect.X, 0); x < min(p.FrameRect.X+p.FrameRect.Width, s.screen.Width); x++ {
			all++
			for _, r := range above {
				if r.Contains(xwire.Rect{X: x, Y: y, Width: 1, Height: 1}) {
					hidden++
					break
				}
			}
		}
	}
	return float64(hidden) / float64(all)
}

func TestSentinel_covers_what_it_is_told_to(t *testing.T) {
	for _, v := range []desk.Variant{desk.Stock, desk.Above} {
		t.Run(string(v), func(t *testing.T) {
			g := NewWithT(t)
			s := seat(g, t, desk.Config{Variant: v})
			target, err := s.bystander.Where(t.Context())
			g.Expect(err).NotTo(HaveOccurred())

			p, err := s.sentinel.Place(t.Context(), sentinel.Fully(target.FrameRect, s.screen))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.Focused).To(BeTrue())
			g.Expect(s.covered(g, t, s.bystander)).To(Equal(1.0))

			_, err = s.sentinel.Place(t.Context(), sentinel.Partly(target.FrameRect, s.screen, 0.5))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.covered(g, t, s.bystander)).To(BeNumerically("~", 0.5, 0.02))

			beside, err := sentinel.Beside(target.FrameRect, s.screen)
			g.Expect(err).NotTo(HaveOccurred())
			_, err = s.sentinel.Place(t.Context(), beside)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.covered(g, t, s.bystander)).To(BeZero())

			// The whole screen: only the inside counts, the frame lies beyond the edge.
			_, err = s.sentinel.Place(t.Context(), s.screen)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.covered(g, t, s.bystander)).To(Equal(1.0))

			_, err = s.sentinel.Minimise(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.covered(g, t, s.bystander)).To(BeZero())
			p, err = s.sentinel.Raise(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.Focused).To(BeTrue())
			g.Expect(s.covered(g, t, s.bystander)).To(Equal(1.0))
		})
	}
}

func TestPerson_is_heard_once_and_in_order(t *testing.T) {
	g := NewWithT(t)
	s := seat(g, t, desk.Config{})
	g.Expect(s.person.Type(t.Context(), 200)).To(Succeed())
	g.Expect(s.person.Click(t.Context(), 300, 300)).To(Succeed())
	g.Expect(s.person.Work(t.Context(), person.Work{Every: 10 * time.Millisecond, ClickEvery: 5, X: 300, Y: 320})).To(Succeed())
	g.Eventually(s.person.Mark).WithTimeout(10 * time.Second).Should(BeNumerically(">", 300))
	g.Expect(s.person.Pause(t.Context())).To(Succeed())
	strokes := s.person.Mark()
	g.Expect(s.sentinel.Echo(t.Context())).To(Succeed())
	report := person.Check(s.person.Strokes(), s.sentinel.Since(0), late)
	g.Expect(report.OK()).To(BeTrue(), report.String())
	g.Expect(report.Received).To(Equal(int(2 * strokes)))
	g.Expect(s.person.Injector()).To(Equal(person.Injector))
	t.Log(s.person.Injector(), report)

	// What did not reach the person's window is lost, and the bystander has it.
	p, err := s.bystander.Where(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	mark, logged, stray := s.person.Mark(), s.sentinel.Mark(), s.bystander.Mark()
	g.Expect(s.person.Type(t.Context(), 5)).To(Succeed())
	g.Expect(s.x.Send(xwire.Req(42, 1).U32(p.Window, 0))).To(Succeed()) // SetInputFocus: the theft
	g.Expect(s.trip.Do(t.Context())).To(Succeed())
	g.Expect(s.person.Type(t.Context(), 7)).To(Succeed())
	_, err = s.sentinel.Raise(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.person.Type(t.Context(), 5)).To(Succeed())
	g.Expect(s.sentinel.Echo(t.Context())).To(Succeed())
	g.Expect(s.bystander.Echo(t.Context())).To(Succeed())
	report = person.Check(s.person.Since(mark), s.sentinel.Since(logged), late)
	g.Expect(report.OK()).To(BeFalse())
	g.Expect(report.Lost).To(Equal([]uint64{mark + 6, mark + 7, mark + 8, mark + 9, mark + 10, mark + 11, mark + 12}))
	g.Expect(person.Check(nil, s.bystander.Since(stray), late).Foreign).To(HaveLen(14))
	kinds := map[sentinel.Kind]int{}
	for _, e := range s.sentinel.Since(logged) {
		kinds[e.Kind]++
	}
	g.Expect(kinds).To(HaveKey(sentinel.FocusOut))
	g.Expect(kinds).To(HaveKey(sentinel.FocusIn))

	// It beats while nothing happens.
	beat := s.sentinel.LastBeat()
	g.Eventually(s.sentinel.LastBeat).WithTimeout(2 * time.Second).Should(BeNumerically(">", beat))
	g.Expect(s.sentinel.Err()).NotTo(HaveOccurred())
	if to := os.Getenv("DESK_SCREENSHOT"); to != "" { // for a look at the desk
		c := exec.Command("import", "-window", "root", to)
		c.Env = append(os.Environ(), "DISPLAY="+s.Display(), "XAUTHORITY="+s.Xauthority())
		g.Expect(c.Run()).To(Succeed())
	}
}

func TestSentinel_tells_a_forged_key(t *testing.T) {
	g := NewWithT(t)
	s := seat(g, t, desk.Config{})
	ev := make([]byte, 32)
	ev[0], ev[1], ev[30] = 2, 38, 1 // KeyPress of "a" on a US keyboard, same screen
	g.Expect(s.x.Send(xwire.SendEvent(s.sentinel.Window(), 1, ev))).To(Succeed())
	_, err := s.x.Focus(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.sentinel.Echo(t.Context())).To(Succeed())
	g.Expect(s.sentinel.Since(0)).To(ContainElement(And(HaveField("Kind", sentinel.KeyPress), HaveField("Sent", true), HaveField("Char", "a"))))
	g.Expect(person.Check(nil, s.sentinel.Since(0), late).Forged).To(HaveLen(1))
}
