//go:build browser

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"
	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/engine/cdp"
	"github.com/engine-acceptance/acceptance/engine/core"
	"github.com/engine-acceptance/acceptance/engine/native"
	"github.com/engine-acceptance/acceptance/suites/desk"
)

// rig is our engine in this process, on a desk of its own, with a real browser that has one visible and one parked tab.
type rig struct {
	engine  *core.Engine
	native  engine.NativePlatform
	desk    *desk.Desk
	browser engine.Browser // the adapter's own, for the bare calls
	window  uint32

	session, target, tab string
	// shown and parked are the protocol's own names of the two tabs.
	shown, parked target.ID
	// bare is chromedp on the parked tab, over a connection of its own; beside is chromedp on the visible one.
	bare, beside context.Context

	site string
}

// witness is an adapter that shows the browser that it launched.
type witness struct {
	engine.Adapter
	browser engine.Browser
	profile string
}

// Launch implements [engine.Adapter].
func (w *witness) Launch(ctx context.Context, spec engine.LaunchSpec) (engine.Browser, error) {
	b, err := w.Adapter.Launch(ctx, spec)
	w.browser, w.profile = b, spec.ProfileDir
	return b, err
}

// thousand is a page of 500 buttons and 500 labelled inputs.
func thousand() string {
	var b strings.Builder
	b.WriteString("<button id=go>Go</button>")
	for i := range 500 {
		fmt.Fprintf(&b, "<button id=b%d>Button %d</button> <label>Field %d <input id=f%d></label>\n", i, i, i, i)
	}
	return b.String()
}

func newRig(b *testing.B) *rig {
	b.Helper()
	g := NewWithT(b)
	pages := map[string]string{"/one.html": "<button id=go>Go</button>", "/big.html": thousand()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<!doctype html><title>bench</title>%s", pages[r.URL.Path])
	}))
	b.Cleanup(server.Close)
	r := &rig{site: server.URL}
	open, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	var err error
	r.desk, err = desk.Open(open, desk.Config{})
	g.Expect(err).NotTo(HaveOccurred())
	b.Cleanup(func() { g.Expect(r.desk.Close(context.Background())).To(Succeed()) })
	b.Setenv("XAUTHORITY", r.desk.Xauthority()) // xgb looks there, and nowhere else
	r.native, err = native.Open(open, r.desk.Display())
	g.Expect(err).NotTo(HaveOccurred())
	b.Cleanup(func() { r.native.Close() })
	seen := &witness{Adapter: cdp.New(cdp.Config{})}
	// The budgets of a release plan would end a benchmark on a busy machine; none of them is what is measured.
	patient := core.Budgets{Launch: time.Minute, Bind: time.Minute, Action: time.Minute, Settle: 5 * time.Second}
	r.engine, err = core.New(core.Config{Adapter: seen, Budgets: patient, Native: r.native, ProfileRoot: filepath.Join(b.TempDir(), "profiles"), Env: r.desk.Env(desk.Browser)})
	g.Expect(err).NotTo(HaveOccurred())
	b.Cleanup(func() {
		end, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		g.Expect(r.engine.Close(end)).To(Succeed())
	})
	r.session = r.call(b, engine.OpSessionStart, engine.SessionRequest{}).Session.ID
	p := r.call(b, engine.OpPrepare, engine.PrepareRequest{Session: r.session, AllowLaunch: true, Profile: engine.Profile{Kind: engine.PostureIsolatedNew}}).Prepared
	r.window, r.browser = p.Windows[0], seen.browser
	t := r.call(b, engine.OpState, engine.StateRequest{Session: r.session, Mode: engine.ModeBind, PID: p.PID, WindowID: r.window}).Target
	r.target = t.ID
	first, err := r.browser.Contexts(b.Context())
	g.Expect(err).NotTo(HaveOccurred())
	r.shown = target.ID(first[0].Key)
	r.tab = r.call(b, engine.OpContext, engine.ContextRequest{Session: r.session, TargetID: r.target, TabID: t.Tabs[0].ID, Kind: "open"}).Tab.ID
	all, err := r.browser.Contexts(b.Context())
	g.Expect(err).NotTo(HaveOccurred())
	i := slices.IndexFunc(all, func(c engine.BrowserContext) bool { return c.Key != first[0].Key })
	g.Expect(i).To(BeNumerically(">=", 0))
	r.parked = target.ID(all[i].Key)

	file, err := os.ReadFile(filepath.Join(seen.profile, "DevToolsActivePort"))
	g.Expect(err).NotTo(HaveOccurred())
	_, path, _ := bytes.Cut(bytes.TrimSpace(file), []byte("\n"))
	allocator, stop := remote.NewAllocator(context.Background(), "ws://"+r.browser.Endpoint().String()+string(path))
	b.Cleanup(stop)
	// Cancelling these would close the tabs; the browser's end does.
	r.bare, _ = chromedp.NewContext(allocator, chromedp.WithTargetID(r.parked))
	_, err = chromedp.Run(r.bare, chromedp.Evaluate[int]("1"))
	g.Expect(err).NotTo(HaveOccurred())
	r.beside, _ = chromedp.NewContext(r.bare, chromedp.WithTargetID(r.shown))
	_, err = chromedp.Run(r.beside, chromedp.Evaluate[int]("1"))
	g.Expect(err).NotTo(HaveOccurred())
	return r
}

// call calls the engine in this process; a refusal ends the benchmark.
func (r *rig) call(b testing.TB, op engine.Operation, args any) engine.Result {
	b.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		b.Fatal(err)
	}
	return r.raw(b, r.engine, op, raw)
}

// raw calls an engine, wherever it is.
func (r *rig) raw(b testing.TB, e engine.Engine, op engine.Operation, args json.RawMessage) engine.Result {
	b.Helper()
	res, err := e.Call(b.Context(), op, args)
	if err != nil || res.Status != engine.StatusOK {
		b.Fatalf("%s: %v %+v", op, err, res.Refusal)
	}
	return res
}

// load shows a page in the parked tab and returns the ref of its button Go.
func (r *rig) load(b testing.TB, path string) (ref string) {
	b.Helper()
	r.call(b, engine.OpNavigate, engine.NavigateRequest{Session: r.session, TargetID: r.target, TabID: r.tab, URL: r.site + path})
	snap := r.call(b, engine.OpState, engine.StateRequest{Session: r.session, Mode: engine.ModeSnapshot, TargetID: r.target, TabID: r.tab}).Snapshot
	for _, n := range snap.Refs {
		if n.Role == "button" && n.Name == "Go" {
			return n.Ref
		}
	}
	b.Fatalf("no button Go among %d controls of %s", len(snap.Refs), path)
	return ""
}

// click is a trusted click on a ref in the parked tab.
func (r *rig) click(ref string) engine.ClickRequest {
	return engine.ClickRequest{Session: r.session, TargetID: r.target, TabID: r.tab, Ref: ref, Route: engine.RouteTrustedInput}
}
