//go:build browser

package cdp

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/target"
	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
)

// TestOtherSite acts inside a frame of another process: localhost is another site than 127.0.0.1.
func TestOtherSite(t *testing.T) {
	d := newDesk(t)
	all := map[string]string{"/frame.html": `<button id=inner>Inner</button><label>Deep <input id=deep></label>`}
	s := newSite(t, all)
	all["/host.html"] = `<p>host</p><iframe src="` + strings.Replace(s.URL, "127.0.0.1", "localhost", 1) + `/frame.html" width=300 height=90></iframe>`
	b := launchOn(t, d, Config{})
	d.cover()
	g := NewWithT(t)
	list, err := b.Contexts(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	parked, err := b.OpenContext(t.Context(), list[0].Key)
	g.Expect(err).NotTo(HaveOccurred())
	for _, c := range []engine.ContextKey{list[0].Key, parked.Key} {
		_, err = b.Navigate(t.Context(), c, s.URL+"/host.html")
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(s.journal, "3s").Should(ContainElement("/frame.html load"))
	}
	for _, c := range []engine.ContextKey{list[0].Key, parked.Key} {
		snap, err := b.Snapshot(t.Context(), c, 0)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(snap.Nodes).To(ContainElement(And(HaveField("Name", "Inner"), HaveField("Frame", "other_site"))))
		d.untouched(t, func() {
			was := len(s.journal())
			out, err := b.Click(t.Context(), c, ref(t, b, c, "button", "Inner"), engine.RouteKeyboard)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.Trust).To(Equal(engine.TrustTrustedInput))
			g.Eventually(func() []string { return s.journal()[was:] }, "2s").Should(ContainElement("/frame.html click inner true"))
			for _, mode := range []engine.TypeMode{engine.TypeInsert, engine.TypeKeystrokes} {
				out, err = b.Type(t.Context(), c, ref(t, b, c, "textbox", "Deep"), "deep", mode, true)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(out.Effect).To(Equal(engine.EffectConfirmed), string(mode))
			}
		})
	}
	d.untouched(t, func() {
		was := len(s.journal())
		_, err := b.Click(t.Context(), parked.Key, ref(t, b, parked.Key, "button", "Inner"), engine.RouteTrustedInput)
		g.Expect(err).NotTo(HaveOccurred())
		clicks := func() (n int) {
			for _, l := range s.journal()[was:] {
				if strings.Contains(l, " click ") {
					n++
				}
			}
			return n
		}
		g.Eventually(clicks, "2s").Should(Equal(1))
		g.Expect(s.journal()[was:]).To(ContainElement("/frame.html click inner true"))
		g.Consistently(clicks, "200ms").Should(Equal(1))
	})
}

// TestScale: bounds are device pixels of the root whatever the scale; the X server is the witness.
func TestScale(t *testing.T) {
	for name, extra := range map[string][]string{"one": nil, "two": {"GDK_SCALE=2"}} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			b := launchOn(t, d, Config{}, extra...)
			g := NewWithT(t)
			g.Expect(b.scale).To(Equal(map[string]float64{"one": 1, "two": 2}[name]))
			g.Eventually(func() engine.Rect { return d.client() }, "3s").ShouldNot(Equal(engine.Rect{}))
			g.Eventually(func() (engine.Rect, error) {
				list, err := b.Contexts(t.Context())
				if err != nil || len(list) != 1 {
					return engine.Rect{}, err
				}
				return list[0].Bounds, nil
			}, "5s").Should(WithTransform(func(r engine.Rect) bool {
				x := d.client()
				near := func(a, b int) bool { return a-b <= 2 && b-a <= 2 }
				return near(r.X, x.X) && near(r.Y, x.Y) && near(r.W, x.W) && near(r.H, x.H)
			}, BeTrue()))
		})
	}
}

// TestPersonSwitchesTabs: a tab that was parked and emulated becomes the visible one, and trusted clicks end.
func TestPersonSwitchesTabs(t *testing.T) {
	d := newDesk(t)
	s := newSite(t, pages())
	b := launchOn(t, d, Config{})
	g := NewWithT(t)
	ctx := t.Context()
	list, err := b.Contexts(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	parked, err := b.OpenContext(ctx, list[0].Key)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = b.Navigate(ctx, parked.Key, s.URL+"/form.html")
	g.Expect(err).NotTo(HaveOccurred())
	n := ref(t, b, parked.Key, "button", "Go")
	_, err = b.Click(ctx, parked.Key, n, engine.RouteTrustedInput)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = call(ctx, b.link, target.ActivateTarget, target.ActivateTargetParams{TargetID: targetOf(parked.Key)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() bool {
		s, err := b.link.page(ctx, targetOf(list[0].Key))
		return err == nil && s.ask().shows(ctx)
	}, "3s").Should(BeFalse())
	d.cover()
	d.untouched(t, func() {
		_, err := b.Click(ctx, parked.Key, n, engine.RouteTrustedInput)
		g.Expect(engine.AsRefusal(err)).To(HaveField("Trigger", "would_touch_desk"))
	})
	found, err := b.Locate(ctx, parked.Key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Visible).To(HaveValue(BeTrue()))
	found, err = b.Locate(ctx, list[0].Key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Visible).To(HaveValue(BeFalse()))
}

// TestTwoWindows: a tab opens in the window that was named, or not at all.
func TestTwoWindows(t *testing.T) {
	d := newDesk(t)
	b := launchOn(t, d, Config{})
	g := NewWithT(t)
	ctx := t.Context()
	list, err := b.Contexts(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	yes := true
	_, err = call(ctx, b.link, target.CreateTarget, target.CreateTargetParams{URL: "about:blank", NewWindow: &yes})
	g.Expect(err).NotTo(HaveOccurred())
	var two []engine.BrowserContext
	g.Eventually(func() (int, error) {
		two, err = b.Contexts(ctx)
		return len(two), err
	}, "5s").Should(Equal(2))
	g.Expect(two[0].Window).NotTo(Equal(two[1].Window))
	opened := 0
	for _, c := range two {
		made, err := b.OpenContext(ctx, c.Key)
		if err != nil {
			g.Expect(engine.AsRefusal(err)).To(HaveField("Trigger", "wrong_target"))
			continue
		}
		opened++
		g.Expect(made.Window).To(Equal(c.Window))
	}
	g.Expect(opened).To(Equal(1))
	after, err := b.Contexts(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(after).To(HaveLen(3))
	_ = list
}

// TestCrash: a crashed renderer is told apart from a closed tab, and the other tabs go on.
func TestCrash(t *testing.T) {
	d := newDesk(t)
	b := launchOn(t, d, Config{})
	g := NewWithT(t)
	ctx := t.Context()
	list, err := b.Contexts(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	parked, err := b.OpenContext(ctx, list[0].Key)
	g.Expect(err).NotTo(HaveOccurred())
	s, err := b.link.page(ctx, targetOf(parked.Key))
	g.Expect(err).NotTo(HaveOccurred())
	s.send("Page.crash", nil).forget()
	g.Eventually(s.gone, "5s").Should(BeClosed())
	_, err = b.Snapshot(ctx, parked.Key, 0)
	g.Expect(engine.AsRefusal(err)).To(HaveField("Detail.Reason", "renderer_crashed"))
	_, err = b.Locate(ctx, parked.Key)
	g.Expect(engine.AsRefusal(err)).To(HaveField("Detail.Reason", "renderer_crashed"))
	_, err = b.Snapshot(ctx, list[0].Key, 0)
	g.Expect(err).NotTo(HaveOccurred())
	list, err = b.Contexts(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list).To(HaveLen(2))
}

// stream is a wire seam: cut closes, garble replaces what comes next.
type stream struct {
	net.Conn
	garble atomic.Pointer[[]byte]
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if g := s.garble.Load(); g != nil && n > 0 {
		return copy(p, *g), err
	}
	return n, err
}

func TestWireSeam(t *testing.T) {
	d := newDesk(t)
	for name, c := range map[string]struct {
		bytes   string
		trigger string
	}{
		"cut":       {"", "generation_changed"},
		"malformed": {"\x81\x05{\"id\"", "protocol_violation"},
		"oversized": {"\x81\x7f\x00\x00\x00\x01\x00\x00\x00\x00", "protocol_violation"},
		"not_text":  {"\x82\x02{}", "protocol_violation"},
		"no_id":     {"\x81\x02{}", "protocol_violation"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var seam *stream
			b := launchOn(t, d, Config{Wire: func(c net.Conn) net.Conn { seam = &stream{Conn: c}; return seam }})
			list, err := b.Contexts(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			if c.bytes == "" {
				seam.Conn.Close()
			} else {
				bad := []byte(c.bytes)
				seam.garble.Store(&bad)
			}
			start := time.Now()
			_, err = b.Snapshot(t.Context(), list[0].Key, 0)
			g.Expect(engine.AsRefusal(err)).To(HaveField("Trigger", c.trigger))
			g.Eventually(b.Lost(), "2s").Should(BeClosed())
			g.Expect(time.Since(start)).To(BeNumerically("<", 2*time.Second))
		})
	}
}

// TestCloseLeavesNothing also counts the crash handler and what lost its parent.
func TestCloseLeavesNothing(t *testing.T) {
	d := newDesk(t)
	b := launchOn(t, d, Config{})
	g := NewWithT(t)
	g.Expect(b.child.family(b.profile)).NotTo(BeEmpty())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	g.Expect(b.Close(ctx)).To(Succeed())
	g.Expect(b.Close(ctx)).To(Succeed())
	g.Expect(b.child.family(b.profile)).To(BeEmpty())
	g.Expect(b.Lost()).To(BeClosed())
}

// TestSecondOpener: a profile in use is refused and its owner goes on.
func TestSecondOpener(t *testing.T) {
	d := newDesk(t)
	b := launchOn(t, d, Config{})
	g := NewWithT(t)
	_, err := New(Config{Log: logTo{t}}).Launch(t.Context(), engine.LaunchSpec{ProfileDir: b.profile, Env: env(d, b.profile), Budget: 10 * time.Second})
	g.Expect(engine.AsRefusal(err)).To(HaveField("Detail.Reason", "profile_in_use"))
	_, err = b.Contexts(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	// Killed, it leaves its lock and its endpoint file behind; the next launch is not misled.
	g.Expect(syscall.Kill(b.Process().PID, syscall.SIGKILL)).To(Succeed())
	g.Eventually(b.Lost(), "3s").Should(BeClosed())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	g.Expect(b.Close(ctx)).To(Succeed())
	again, err := New(Config{Log: logTo{t}}).Launch(t.Context(), engine.LaunchSpec{ProfileDir: b.profile, Env: env(d, b.profile), Budget: 20 * time.Second})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.Endpoint()).NotTo(Equal(b.Endpoint()))
	g.Expect(again.Close(ctx)).To(Succeed())
}

// TestNoDisplay: a browser that ends at once is explained within the budget.
func TestNoDisplay(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(os.Chmod(dir, 0o700)).To(Succeed())
	_, err := New(Config{Log: io.Discard}).Launch(t.Context(), engine.LaunchSpec{ProfileDir: dir, Env: []string{"HOME=" + dir, "PATH=/usr/bin:/bin"}, Budget: 10 * time.Second})
	g.Expect(engine.AsRefusal(err)).To(HaveField("Detail.Reason", "exited"))
}
