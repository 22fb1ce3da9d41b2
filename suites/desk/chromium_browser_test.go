//go:build browser

package desk_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/suites/controls"
	"github.com/engine-acceptance/acceptance/suites/desk"
	"github.com/engine-acceptance/acceptance/suites/person"
	"github.com/engine-acceptance/acceptance/suites/process"
	"github.com/engine-acceptance/acceptance/suites/sentinel"
	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// A real browser lives on the desk with its sandbox on, is covered by the person's window while the person
// works, and goes with the desk.
func TestBrowser_lives_covered_and_goes_with_the_desk(t *testing.T) {
	g := NewWithT(t)
	path, err := exec.LookPath("chromium")
	g.Expect(err).NotTo(HaveOccurred())
	s := seat(g, t, desk.Config{})
	c, err := controls.Start(t.Context(), s.StartRole, controls.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	known, err := s.x.Words(t.Context(), s.x.Root, "_NET_CLIENT_LIST")
	g.Expect(err).NotTo(HaveOccurred())
	b, err := s.Start(t.Context(), desk.Browser, process.Spec{Path: path, Args: []string{"--no-first-run", "--no-default-browser-check", "--disable-gpu", "about:blank"}})
	g.Expect(err).NotTo(HaveOccurred())
	var win uint32
	g.Eventually(func(g Gomega) {
		g.Expect(b.Err()).NotTo(HaveOccurred())
		now, err := s.x.Words(t.Context(), s.x.Root, "_NET_CLIENT_LIST")
		g.Expect(err).NotTo(HaveOccurred())
		i := slices.IndexFunc(now, func(w uint32) bool { return !slices.Contains(known, w) })
		g.Expect(i).To(BeNumerically(">=", 0))
		win = now[i]
	}).WithTimeout(60 * time.Second).WithPolling(50 * time.Millisecond).Should(Succeed())
	top, err := s.x.Top(t.Context(), win)
	g.Expect(err).NotTo(HaveOccurred())
	frame, err := s.x.Geometry(t.Context(), top)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = s.sentinel.Raise(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	p, err := s.sentinel.Place(t.Context(), sentinel.Fully(frame, s.screen))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Focused).To(BeTrue())
	above, err := s.x.Covering(t.Context(), win)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(above).To(ContainElement(WithTransform(func(r xwire.Rect) bool { return r.Contains(sentinel.Fully(frame, s.screen)) }, BeTrue())))

	tree, err := process.Claim{Roots: []process.Identity{b.Identity()}}.Find()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(tree)).To(BeNumerically(">", 2))
	for _, e := range tree {
		g.Expect(e.UID).To(Equal(s.Facts().UID))
		argv, _ := os.ReadFile("/proc/" + strconv.Itoa(e.PID) + "/cmdline")
		g.Expect(string(argv)).NotTo(ContainSubstring("no-sandbox"))
	}

	mark, logged := s.person.Mark(), s.sentinel.Mark()
	g.Expect(s.person.Type(t.Context(), 40)).To(Succeed())
	g.Expect(s.sentinel.Echo(t.Context())).To(Succeed())
	report := person.Check(s.person.Since(mark), s.sentinel.Since(logged), late)
	g.Expect(report.OK()).To(BeTrue(), report.String())
	r, err := c.Commit(t.Context(), s.sentinel.Window())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Differences).To(BeEmpty())
	t.Log("controls beside a browser took", r.Took)

	if to := os.Getenv("DESK_SCREENSHOT"); to != "" { // for a look at the desk
		_, err = s.sentinel.Place(t.Context(), sentinel.Partly(frame, s.screen, 0.6))
		g.Expect(err).NotTo(HaveOccurred())
		look := exec.Command("import", "-window", "root", to)
		look.Env = append(os.Environ(), "DISPLAY="+s.Display(), "XAUTHORITY="+s.Xauthority())
		g.Expect(look.Run()).To(Succeed())
	}
	homes := []string{s.Home()}
	g.Expect(s.Close(context.Background())).To(Succeed())
	g.Expect(process.Claim{Homes: homes, UIDs: []int{s.Facts().UID}}.Find()).To(BeEmpty())
	g.Expect(s.Home()).NotTo(BeADirectory())
}
