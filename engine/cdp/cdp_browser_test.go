//go:build browser

package cdp

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
)

const formPage = `<h1>form</h1>
<button id=go>Go</button> <button id=off disabled>Off</button> <button style="display:none">Gone</button>
<label>Full name <input id=name></label> <label>Fixed <input id=fixed readonly value=x></label>
<label>Few <input id=few maxlength=3></label> <label>Count <input id=count type=number></label>
<label>Secret <input id=secret type=password></label> <label>Notes <textarea id=notes></textarea></label>
<div id=rich contenteditable=true aria-label=Rich role=textbox style="min-height:20px;border:1px solid"></div>
<label><input id=agree type=checkbox> Agree</label>
<a id=link href="/other.html">Other</a> <a id=blank href="/other.html" target=_blank>New</a>
<div style="position:relative;height:30px"><button id=under style="position:absolute;top:0;left:0">Under</button><div style="position:absolute;top:0;left:0;width:300px;height:30px;background:#ccc"></div></div>
<button id=alert onclick="alert(1)">Alert</button>
<iframe src="/frame.html" width=200 height=60></iframe>
<div style="height:3000px"></div><button id=far>Far</button>`

func pages() map[string]string {
	return map[string]string{"/form.html": formPage, "/other.html": `<h1>other</h1><button id=go>Go</button>`, "/frame.html": `<button id=inner>Inner</button>`}
}

// ref finds a node by role and name.
func ref(t testing.TB, b *Browser, c engine.ContextKey, role, name string) engine.NodeRef {
	t.Helper()
	snap, err := b.Snapshot(t.Context(), c, 0)
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	for _, n := range snap.Nodes {
		if n.Role == role && n.Name == name {
			return engine.NodeRef{Document: snap.Document, Node: n.Node, Role: n.Role, Name: n.Name}
		}
	}
	t.Fatalf("no %s %q in %+v", role, name, snap.Nodes)
	return engine.NodeRef{}
}

func TestDesk(t *testing.T) {
	d := newDesk(t)
	s := newSite(t, pages())
	b := launchOn(t, d, Config{})
	d.cover()
	g := NewWithT(t)
	ctx := t.Context()

	list, err := b.Contexts(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list).To(HaveLen(1))
	first := list[0]
	g.Expect(first.Visible).To(HaveValue(BeTrue()))
	g.Expect(first.Bounds.W).To(BeNumerically(">", 200))

	var parked engine.BrowserContext
	t.Run("open_context", func(t *testing.T) {
		d.untouched(t, func() {
			parked, err = b.OpenContext(ctx, first.Key)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
		})
		g := NewWithT(t)
		g.Expect(parked.Visible).To(HaveValue(BeFalse()))
		g.Expect(parked.Window).To(Equal(first.Window))
		found, err := b.Locate(ctx, first.Key)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Visible).To(HaveValue(BeTrue()))
		// Each tab of a listing rests on the answers of all others: one question a tab has to serve them all.
		list, err := b.Contexts(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list).To(HaveLen(2))
		for _, c := range list {
			g.Expect(c.Visible).To(HaveValue(Equal(c.Key == first.Key)))
		}
	})
	for _, c := range []struct {
		name string
		key  engine.ContextKey
	}{{"visible", first.Key}, {"parked", parked.Key}} {
		inParked := c.name == "parked"
		t.Run("navigate_"+c.name, func(t *testing.T) {
			d.untouched(t, func() {
				out, err := b.Navigate(ctx, c.key, s.URL+"/form.html")
				g := NewWithT(t)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(out.Effect).To(Equal(engine.EffectConfirmed))
			})
		})
		t.Run("snapshot_"+c.name, func(t *testing.T) {
			d.untouched(t, func() {
				g := NewWithT(t)
				snap, err := b.Snapshot(ctx, c.key, 0)
				g.Expect(err).NotTo(HaveOccurred())
				var seen []string
				for _, n := range snap.Nodes {
					seen = append(seen, strings.Join([]string{n.Role, n.Name, n.Frame, n.Visibility}, "|"))
				}
				g.Expect(seen).To(ContainElements("button|Go|main|in_view", "button|Far|main|scrolled_away", "button|Inner|same_site|unknown",
					"textbox|Full name|main|in_view", "checkbox|Agree|main|in_view", "spinbutton|Count|main|in_view"))
				g.Expect(snap.Omitted).To(Equal(map[string]int{"hidden": 1}))
			})
		})
		t.Run("click_trusted_"+c.name, func(t *testing.T) {
			n := ref(t, b, c.key, "button", "Go")
			was := len(s.journal())
			d.untouched(t, func() {
				g := NewWithT(t)
				out, err := b.Click(ctx, c.key, n, engine.RouteTrustedInput)
				if !inParked {
					g.Expect(engine.AsRefusal(err)).To(HaveField("Trigger", "would_touch_desk"))
					g.Expect(engine.AsRefusal(err).Detail.AlternativeRoute).To(Equal(engine.RouteKeyboard))
					return
				}
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(out).To(Equal(engine.Outcome{Effect: engine.EffectUnverifiable, Route: engine.RouteTrustedInput, Trust: engine.TrustTrustedInput, Requested: 1, Delivered: 1, FocusEmulated: true}))
				g.Eventually(s.journal, "2s").Should(ContainElement("/form.html click go true"))
			})
			if !inParked {
				NewWithT(t).Expect(s.journal()[was:]).To(BeEmpty())
			}
		})
		t.Run("click_keyboard_"+c.name, func(t *testing.T) {
			n := ref(t, b, c.key, "button", "Go")
			was := len(s.journal())
			d.untouched(t, func() {
				g := NewWithT(t)
				out, err := b.Click(ctx, c.key, n, engine.RouteKeyboard)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(out.FocusEmulated).To(Equal(inParked))
				g.Eventually(func() []string { return s.journal()[was:] }, "2s").Should(ContainElement("/form.html click go true"))
			})
		})
		t.Run("click_dom_event_"+c.name, func(t *testing.T) {
			n := ref(t, b, c.key, "button", "Go")
			was := len(s.journal())
			d.untouched(t, func() {
				g := NewWithT(t)
				out, err := b.Click(ctx, c.key, n, engine.RouteDOMEvent)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(out.Trust).To(Equal(engine.TrustDOMEvent))
				g.Eventually(func() []string { return s.journal()[was:] }, "2s").Should(Equal([]string{"/form.html click go false"}))
			})
		})
		t.Run("checkbox_"+c.name, func(t *testing.T) {
			n := ref(t, b, c.key, "checkbox", "Agree")
			d.untouched(t, func() {
				g := NewWithT(t)
				route := engine.RouteKeyboard
				if inParked {
					route = engine.RouteTrustedInput
				}
				out, err := b.Click(ctx, c.key, n, route)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(out.Effect).To(Equal(engine.EffectConfirmed))
			})
		})
		const odd = "Ada ☂ 👩‍👩‍👧 é שלום 𝔸"
		for _, in := range []struct {
			role, name, text string
			mode             engine.TypeMode
			replace          bool
			effect           engine.Effect
			delivered        int
		}{
			{"textbox", "Full name", odd, engine.TypeInsert, false, engine.EffectConfirmed, len([]rune(odd))},
			{"textbox", "Full name", "second", engine.TypeInsert, true, engine.EffectConfirmed, 6},
			{"textbox", "Full name", "", engine.TypeInsert, true, engine.EffectConfirmed, 0},
			{"textbox", "Full name", odd, engine.TypeKeystrokes, true, engine.EffectConfirmed, len([]rune(odd))},
			{"textbox", "Full name", "Key", engine.TypeKeystrokes, true, engine.EffectConfirmed, 3},
			{"textbox", "Few", "abcde", engine.TypeInsert, false, engine.EffectPartial, 3},
			{"spinbutton", "Count", "12", engine.TypeInsert, false, engine.EffectConfirmed, 2},
			{"spinbutton", "Count", "34", engine.TypeInsert, false, engine.EffectConfirmed, 2},
			{"textbox", "Secret", "hunter2", engine.TypeInsert, false, engine.EffectConfirmed, 7},
			{"textbox", "Notes", "one\ntwo", engine.TypeInsert, false, engine.EffectConfirmed, 7},
			{"textbox", "Notes", strings.Repeat("äöü 840 ", 105), engine.TypeInsert, true, engine.EffectConfirmed, 840},
			{"textbox", "Rich", "rich text", engine.TypeInsert, false, engine.EffectConfirmed, 9},
			{"textbox", "Rich", "again", engine.TypeInsert, true, engine.EffectConfirmed, 5},
		} {
			t.Run(fmt.Sprintf("type_%s_%s_%s_%.8s", c.name, in.name, in.mode, in.text), func(t *testing.T) {
				n := ref(t, b, c.key, in.role, in.name)
				d.untouched(t, func() {
					g := NewWithT(t)
					out, err := b.Type(ctx, c.key, n, in.text, in.mode, in.replace)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(out.Effect).To(Equal(in.effect))
					g.Expect(out.Delivered).To(Equal(in.delivered))
					g.Expect(out.FocusEmulated).To(Equal(inParked))
				})
			})
		}
		t.Run("refusals_"+c.name, func(t *testing.T) {
			g := NewWithT(t)
			fixed := ref(t, b, c.key, "textbox", "Fixed")
			off := ref(t, b, c.key, "button", "Off")
			blank := ref(t, b, c.key, "link", "New")
			was := len(s.journal())
			d.untouched(t, func() {
				_, err := b.Type(ctx, c.key, fixed, "y", "", false)
				g.Expect(engine.AsRefusal(err).Detail.Limitation).To(Equal("read_only"))
				_, err = b.Type(ctx, c.key, off, "y", "", false)
				g.Expect(engine.AsRefusal(err).Detail.Limitation).To(Equal("not_editable"))
				_, err = b.Click(ctx, c.key, off, engine.RouteKeyboard)
				g.Expect(engine.AsRefusal(err).Detail.Limitation).To(Equal("disabled"))
				_, err = b.Click(ctx, c.key, blank, engine.RouteKeyboard)
				g.Expect(engine.AsRefusal(err).Trigger).To(Equal("would_touch_desk"))
				_, err = b.Navigate(ctx, c.key, "javascript:alert(1)")
				g.Expect(engine.AsRefusal(err).Detail.Limitation).To(Equal("scheme_not_allowed"))
				if inParked {
					_, err = b.Click(ctx, c.key, ref(t, b, c.key, "button", "Under"), engine.RouteTrustedInput)
					g.Expect(engine.AsRefusal(err).Detail.Limitation).To(Equal("covered"))
				}
			})
			g.Expect(s.journal()[was:]).To(BeEmpty())
		})
	}
	t.Run("scrolled_away_and_frame", func(t *testing.T) {
		g := NewWithT(t)
		d.untouched(t, func() {
			_, err := b.Click(ctx, parked.Key, ref(t, b, parked.Key, "button", "Inner"), engine.RouteTrustedInput)
			g.Expect(err).NotTo(HaveOccurred())
			g.Eventually(s.journal, "2s").Should(ContainElement("/frame.html click inner true"))
			_, err = b.Click(ctx, parked.Key, ref(t, b, parked.Key, "button", "Far"), engine.RouteTrustedInput)
			g.Expect(err).NotTo(HaveOccurred())
			g.Eventually(s.journal, "2s").Should(ContainElement("/form.html click far true"))
		})
	})
	t.Run("dialog_in_parked_tab", func(t *testing.T) {
		g := NewWithT(t)
		n := ref(t, b, parked.Key, "button", "Alert")
		other := ref(t, b, parked.Key, "button", "Go")
		d.untouched(t, func() {
			out, err := b.Click(ctx, parked.Key, n, engine.RouteTrustedInput)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.Effect).To(Equal(engine.EffectUnverifiable))
			for name, f := range map[string]func() error{
				"snapshot": func() error { _, err := b.Snapshot(ctx, parked.Key, 0); return err },
				"click":    func() error { _, err := b.Click(ctx, parked.Key, other, engine.RouteTrustedInput); return err },
				"dom":      func() error { _, err := b.Click(ctx, parked.Key, other, engine.RouteDOMEvent); return err },
				"type":     func() error { _, err := b.Type(ctx, parked.Key, other, "x", "", false); return err },
				"navigate": func() error { _, err := b.Navigate(ctx, parked.Key, s.URL+"/other.html"); return err },
			} {
				start := time.Now()
				err := f()
				g.Expect(time.Since(start)).To(BeNumerically("<", time.Second), name)
				g.Expect(engine.AsRefusal(err)).To(HaveField("Detail.Limitation", "dialog_open"), name)
			}
			start := time.Now()
			found, err := b.Locate(ctx, parked.Key)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Visible).To(HaveValue(BeFalse()))
			_, err = b.Contexts(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(time.Since(start)).To(BeNumerically("<", time.Second))
		})
		_, err := b.link.page(ctx, "")
		g.Expect(err).To(HaveOccurred())
		sess, err := b.link.page(ctx, targetOf(parked.Key))
		g.Expect(err).NotTo(HaveOccurred())
		p := sess.send("Page.handleJavaScriptDialog", map[string]bool{"accept": true})
		p.through = true
		g.Expect(p.wait(ctx, nil)).To(Succeed())
		g.Eventually(sess.dialogOpen, "2s").Should(BeFalse())
	})
	t.Run("link_retires_refs", func(t *testing.T) {
		g := NewWithT(t)
		old := ref(t, b, parked.Key, "button", "Go")
		d.untouched(t, func() {
			_, err := b.Click(ctx, parked.Key, ref(t, b, parked.Key, "link", "Other"), engine.RouteTrustedInput)
			g.Expect(err).NotTo(HaveOccurred())
			g.Eventually(s.journal, "2s").Should(ContainElement("/other.html load"))
			_, err = b.Click(ctx, parked.Key, old, engine.RouteTrustedInput)
			g.Expect(engine.AsRefusal(err)).To(HaveField("Detail.Reason", "document"))
		})
	})
	t.Run("error_page", func(t *testing.T) {
		out, err := b.Navigate(ctx, parked.Key, "http://127.0.0.1:1/")
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out.Effect).To(Equal(engine.EffectSuspectedNoop))
	})
	t.Run("close_context", func(t *testing.T) {
		g := NewWithT(t)
		d.untouched(t, func() {
			out, err := b.CloseContext(ctx, parked.Key)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.Effect).To(Equal(engine.EffectConfirmed))
			_, err = b.Locate(ctx, parked.Key)
			g.Expect(engine.AsRefusal(err)).To(HaveField("Trigger", "tab_gone"))
		})
	})
	// The guard itself: a press in the visible tab is what everything above avoids, and it is seen.
	t.Run("guard_sees_a_press", func(t *testing.T) {
		g := NewWithT(t)
		sess, err := b.link.page(ctx, targetOf(first.Key))
		g.Expect(err).NotTo(HaveOccurred())
		end := d.quiet()
		g.Expect(sess.press(10, 10).wait(ctx, nil)).To(Succeed())
		g.Eventually(d.seen, "3s").Should(ContainElements("active window", "stacking", "focus left the person"))
		end()
	})
}

func TestKilledAndStopped(t *testing.T) {
	d := newDesk(t)
	b := launchOn(t, d, Config{})
	g := NewWithT(t)
	list, err := b.Contexts(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(syscall.Kill(b.Process().PID, syscall.SIGSTOP)).To(Succeed())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	start := time.Now()
	_, err = b.Locate(ctx, list[0].Key)
	g.Expect(engine.AsRefusal(err)).To(HaveField("Trigger", "unresponsive"))
	g.Expect(time.Since(start)).To(BeNumerically("<", 1500*time.Millisecond))
	g.Expect(syscall.Kill(b.Process().PID, syscall.SIGKILL)).To(Succeed())
	g.Eventually(b.Lost(), "3s").Should(BeClosed())
	_, err = b.Contexts(t.Context())
	g.Expect(engine.AsRefusal(err)).To(HaveField("Trigger", "generation_changed"))
}
