//go:build browser

package cdp

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/target"
	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
)

// parkedOn opens a parked tab on a page.
func parkedOn(t *testing.T, b *Browser, url string) engine.BrowserContext {
	t.Helper()
	g := NewWithT(t)
	list, err := b.Contexts(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	c, err := b.OpenContext(t.Context(), list[0].Key)
	g.Expect(err).NotTo(HaveOccurred())
	out, err := b.Navigate(t.Context(), c.Key, url)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out.Effect).To(Equal(engine.EffectConfirmed))
	return c
}

// do runs a script in the isolated world: the page changes between listing and acting.
func do(t *testing.T, b *Browser, c engine.ContextKey, script string) {
	t.Helper()
	s, err := b.link.page(t.Context(), targetOf(c))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	_, err = evaluate[any](t.Context(), s, "void ("+script+")")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

// TestNodeIdentity: what the page does to a control between listing and acting (G9, M13).
func TestNodeIdentity(t *testing.T) {
	d := newDesk(t)
	s := newSite(t, map[string]string{"/page.html": `<div id=box><button id=go>Go</button></div><label>Text <input id=text></label>`})
	b := launchOn(t, d, Config{})
	c := parkedOn(t, b, s.URL+"/page.html")
	const el = `document.getElementById("go")`
	for name, x := range map[string]struct{ script, field, want string }{
		"removed":    {el + `.remove()`, "Reason", "node"},
		"look_alike": {el + `.outerHTML = ` + el + `.outerHTML`, "Reason", "node"},
		"renamed":    {el + `.textContent = "Delete all"`, "Reason", "node"},
		"other_role": {el + `.setAttribute("role", "link")`, "Reason", "node"},
		"aria_gone":  {el + `.setAttribute("aria-hidden", "true")`, "Reason", "node"},
		"disabled":   {el + `.disabled = true`, "Limitation", "disabled"},
		"hidden":     {el + `.style.display = "none"`, "Limitation", "hidden"},
		"covered":    {`document.getElementById("box").insertAdjacentHTML("beforebegin", '<div style="position:fixed;inset:0;background:red"></div>')`, "Limitation", "covered"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := b.Navigate(t.Context(), c.Key, s.URL+"/page.html")
			g.Expect(err).NotTo(HaveOccurred())
			n := ref(t, b, c.Key, "button", "Go")
			do(t, b, c.Key, x.script)
			was := len(s.journal())
			_, err = b.Click(t.Context(), c.Key, n, engine.RouteTrustedInput)
			g.Expect(engine.AsRefusal(err)).To(HaveField("Detail."+x.field, x.want))
			g.Consistently(func() []string { return s.journal()[was:] }, "200ms").ShouldNot(ContainElement(ContainSubstring("click")))
		})
	}
	t.Run("moved", func(t *testing.T) {
		g := NewWithT(t)
		_, err := b.Navigate(t.Context(), c.Key, s.URL+"/page.html")
		g.Expect(err).NotTo(HaveOccurred())
		n := ref(t, b, c.Key, "button", "Go")
		do(t, b, c.Key, el+`.style.cssText = "position:absolute;left:300px;top:200px"`)
		was := len(s.journal())
		_, err = b.Click(t.Context(), c.Key, n, engine.RouteTrustedInput)
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(func() []string { return s.journal()[was:] }, "2s").Should(Equal([]string{"/page.html click go true"}))
	})
}

// TestNavigationRetires: every way to another document retires what was listed, the page cache included; another place in it does not.
func TestNavigationRetires(t *testing.T) {
	d := newDesk(t)
	s := newSite(t, pages())
	b := launchOn(t, d, Config{})
	c := parkedOn(t, b, s.URL+"/other.html")
	g := NewWithT(t)
	for _, x := range []struct{ script, path string }{
		{`location.href = "/form.html"`, "/form.html"}, {`history.back()`, "/other.html"}, {`history.forward()`, "/form.html"},
		{`location.reload()`, "/form.html"}, {`location.replace("/other.html")`, "/other.html"},
	} {
		n := ref(t, b, c.Key, "button", "Go")
		before, err := b.Locate(t.Context(), c.Key)
		g.Expect(err).NotTo(HaveOccurred())
		do(t, b, c.Key, x.script)
		g.Eventually(func() (engine.DocumentKey, error) {
			now, err := b.Locate(t.Context(), c.Key)
			return now.Document, err
		}, "3s").ShouldNot(Equal(before.Document), x.script)
		_, err = b.Click(t.Context(), c.Key, n, engine.RouteTrustedInput)
		g.Expect(engine.AsRefusal(err)).To(HaveField("Detail.Reason", "document"), x.script)
		g.Eventually(func() error { _, err := b.Snapshot(t.Context(), c.Key, 0); return err }, "3s").Should(Succeed())
	}
	n := ref(t, b, c.Key, "button", "Go")
	do(t, b, c.Key, `history.pushState(null, "", "/elsewhere")`)
	_, err := b.Click(t.Context(), c.Key, n, engine.RouteTrustedInput)
	g.Expect(err).NotTo(HaveOccurred())
}

// TestSnapshotNeverMixes races a slow snapshot against navigations: each result is of one page alone (G8).
func TestSnapshotNeverMixes(t *testing.T) {
	d := newDesk(t)
	page := func(word string) string {
		var sb strings.Builder
		for i := range 150 {
			fmt.Fprintf(&sb, "<button>%s %d</button>", word, i)
		}
		return sb.String()
	}
	s := newSite(t, map[string]string{"/a.html": page("left"), "/b.html": page("right")})
	b := launchOn(t, d, Config{})
	c := parkedOn(t, b, s.URL+"/a.html")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(i%5) * 60 * time.Millisecond):
			}
			b.Navigate(t.Context(), c.Key, s.URL+[]string{"/a.html", "/b.html"}[i%2])
		}
	})
	good, retired := 0, 0
	for good+retired < 60 || good == 0 || retired == 0 {
		snap, err := b.Snapshot(t.Context(), c.Key, 1000)
		if err != nil {
			if r := engine.AsRefusal(err); r == nil || r.Trigger != "ref_retired" && r.Trigger != "unresponsive" {
				t.Errorf("snapshot: %v %+v", err, r)
				break
			}
			retired++
			continue
		}
		good++
		words := map[string]bool{}
		for _, n := range snap.Nodes {
			words[strings.Fields(n.Name)[0]] = true
		}
		if len(words) > 1 {
			t.Errorf("a snapshot holds %v", words)
			break
		}
	}
	close(stop)
	wg.Wait()
	t.Logf("%d whole, %d retired", good, retired)
}

// TestTwoCallers: two callers type into two fields of one tab, and into two tabs; no text mixes and each click counts once.
func TestTwoCallers(t *testing.T) {
	d := newDesk(t)
	s := newSite(t, map[string]string{"/page.html": `<label>One <input id=one></label><label>Two <input id=two></label><button id=go>Go</button>`})
	b := launchOn(t, d, Config{})
	first := parkedOn(t, b, s.URL+"/page.html")
	second := parkedOn(t, b, s.URL+"/page.html")
	var wg sync.WaitGroup
	for _, c := range []engine.BrowserContext{first, second} {
		for name, text := range map[string]string{"One": "aaaaaaaa", "Two": "bbbbbbbb"} {
			n := ref(t, b, c.Key, "textbox", name)
			wg.Go(func() {
				for i := range 10 {
					mode := []engine.TypeMode{engine.TypeInsert, engine.TypeKeystrokes}[i%2]
					out, err := b.Type(t.Context(), c.Key, n, text, mode, true)
					if err != nil || out.Effect != engine.EffectConfirmed {
						t.Errorf("%s: %+v %v", name, out, err)
					}
				}
			})
		}
		n := ref(t, b, c.Key, "button", "Go")
		wg.Go(func() {
			for range 10 {
				if _, err := b.Click(t.Context(), c.Key, n, engine.RouteTrustedInput); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	clicks := func() (n int) {
		for _, l := range s.journal() {
			if l == "/page.html click go true" {
				n++
			}
		}
		return n
	}
	g := NewWithT(t)
	g.Eventually(clicks, "3s").Should(Equal(20))
	g.Consistently(clicks, "200ms").Should(Equal(20))
}

// TestWindowless: a target without a window spoils nothing (B15).
func TestWindowless(t *testing.T) {
	d := newDesk(t)
	b := launchOn(t, d, Config{})
	g := NewWithT(t)
	before, err := b.Contexts(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	yes := true
	_, err = call(t.Context(), b.link, target.CreateTarget, target.CreateTargetParams{URL: "about:blank", Hidden: &yes})
	g.Expect(err).NotTo(HaveOccurred())
	after, err := b.Contexts(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(after).To(Equal(before))
	found, err := b.Locate(t.Context(), before[0].Key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Visible).To(HaveValue(BeTrue()))
}

// TestReconnect: the connection is cut, the browser lives, a new connection works, and nothing of before does.
func TestReconnect(t *testing.T) {
	d := newDesk(t)
	s := newSite(t, pages())
	b := launchOn(t, d, Config{})
	g := NewWithT(t)
	c := parkedOn(t, b, s.URL+"/form.html")
	n := ref(t, b, c.Key, "button", "Go")
	_, err := b.Reconnect(t.Context())
	g.Expect(err).To(HaveOccurred(), "a living connection is not made anew")
	b.link.w.conn.Close()
	g.Eventually(b.Lost(), "2s").Should(BeClosed())
	again, err := b.Reconnect(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.Process()).To(Equal(b.Process()))
	list, err := again.Contexts(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list).To(HaveLen(2))
	nb := again.(*Browser)
	was := len(s.journal())
	_, err = nb.Click(t.Context(), c.Key, n, engine.RouteTrustedInput)
	g.Expect(engine.AsRefusal(err)).To(HaveField("Trigger", "ref_retired"))
	g.Expect(s.journal()[was:]).To(BeEmpty())
	out, err := nb.Click(t.Context(), c.Key, ref(t, nb, c.Key, "button", "Go"), engine.RouteTrustedInput)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out.FocusEmulated).To(BeTrue())
	g.Eventually(func() []string { return s.journal()[was:] }, "2s").Should(Equal([]string{"/form.html click go true"}))
	g.Expect(syscall.Kill(nb.Process().PID, syscall.SIGKILL)).To(Succeed())
	g.Eventually(nb.Lost(), "3s").Should(BeClosed())
	_, err = nb.Reconnect(t.Context())
	g.Expect(engine.AsRefusal(err)).To(HaveField("Detail.Reason", "process"))
}

// TestBusyPage: a page that never answers costs the budget of the caller.
func TestBusyPage(t *testing.T) {
	d := newDesk(t)
	s := newSite(t, map[string]string{"/busy.html": `<button>Go</button><script>addEventListener("load", () => setTimeout(() => { for (;;); }, 300))</script>`})
	b := launchOn(t, d, Config{})
	c := parkedOn(t, b, s.URL+"/busy.html")
	g := NewWithT(t)
	g.Eventually(func() string {
		_, err := b.Snapshot(t.Context(), c.Key, 0)
		if r := engine.AsRefusal(err); r != nil {
			return r.Trigger
		}
		return ""
	}, "20s").Should(Equal("unresponsive"))
	start := time.Now()
	_, err := b.Contexts(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(time.Since(start)).To(BeNumerically("<", 2*time.Second))
}
