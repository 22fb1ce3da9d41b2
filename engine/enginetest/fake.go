package enginetest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/engine-acceptance/acceptance/engine"
)

// Defect is one way in which the fake's world departs from what an engine proved before.
type Defect string

// The defects. Each changes one fact and leaves the others as they are.
const (
	// DefectProcess: the pid belongs to another process now (B14).
	DefectProcess Defect = "process"
	// DefectEndpoint: the listener belongs to another process (B13).
	DefectEndpoint Defect = "endpoint"
	// DefectWindowOwner: the native window belongs to another process.
	DefectWindowOwner Defect = "window_owner"
	// DefectWindowGone: the native window is gone.
	DefectWindowGone Defect = "window_gone"
	// DefectTabMoved: the protocol says that the tab is in another window.
	DefectTabMoved Defect = "tab_moved"
	// DefectBounds: protocol and native rectangle never agree.
	DefectBounds Defect = "bounds"
	// DefectTabGone: the context is gone.
	DefectTabGone Defect = "tab_gone"
	// DefectDocument: the document is another one.
	DefectDocument Defect = "document"
	// DefectConnection: the connection is lost.
	DefectConnection Defect = "connection"
	// DefectHang: abilities never return and heed no context.
	DefectHang Defect = "hang"
	// DefectCut: the connection is lost after an ability dispatched and before it answers (G2).
	DefectCut Defect = "cut"
	// DefectNoDisplay: the window system cannot be asked.
	DefectNoDisplay Defect = "no_display"
	// DefectHeadless: the browser has no native window (B19).
	DefectHeadless Defect = "headless"
	// DefectHostileWords: the adapter's refusals and outcomes are outside every list.
	DefectHostileWords Defect = "hostile_words"
	// DefectPrefix: typing delivers one code point and stops.
	DefectPrefix Defect = "prefix"
	// DefectReconnect: a lost connection cannot be made anew.
	DefectReconnect Defect = "reconnect"
	// DefectLaunch: the browser does not start.
	DefectLaunch Defect = "launch"
)

// Input is one thing that reached a page.
type Input struct {
	Verb    string
	Window  uint32
	Context engine.ContextKey
	Node    engine.NodeKey
	Text    string
}

// Fake is a desk with at most one living browser for each launch. The zero value is not usable; see [NewFake].
type Fake struct {
	mu       sync.Mutex
	decl     engine.Declaration
	defects  map[Defect]bool
	browsers []*fakeBrowser
	pid      int
	serial   int
	journal  []Input
	wire     int
	delay    func(verb string)
}

// NewFake makes a fake that declares everything that it can do, except the actions named.
func NewFake(undeclared ...engine.Action) *Fake {
	return &Fake{decl: Declare(undeclared...), defects: map[Defect]bool{}, pid: 4_000_000} // above any pid that a kernel gives by default
}

// Declare is the fake's declaration: snapshot, navigate, click, type, context_open and context_close in the background, in every state.
func Declare(undeclared ...engine.Action) engine.Declaration {
	d := engine.Declaration{Format: engine.DeclarationFormat, Engine: "fake", EngineVersion: "1", EngineFamily: engine.FamilyChromium, Product: engine.ProductChromium,
		RequiredProtocol: engine.ProtocolCDP, Postures: []engine.Posture{engine.PostureIsolatedNew},
		Components: []string{"session", "process", "endpoint", "window", "context", "generation"}}
	routes := map[engine.Action][]engine.Route{
		engine.ActionSnapshot: {engine.RouteEngine}, engine.ActionNavigate: {engine.RouteEngine}, engine.ActionContextOpen: {engine.RouteEngine},
		engine.ActionContextClose: {engine.RouteEngine}, engine.ActionClick: {engine.RouteTrustedInput, engine.RouteDOMEvent},
		engine.ActionType: {engine.RouteTrustedInput, engine.RouteKeyboard},
	}
	for _, c := range engine.AllCapabilities() {
		claim := engine.Claim{Capability: c, Limitation: "undeclared"}
		if c.Delivery == engine.DeliveryBackground && slices.Contains(routes[c.Action], c.Route) && !slices.Contains(undeclared, c.Action) {
			claim.Declared, claim.Limitation = true, ""
		}
		d.Claims = append(d.Claims, claim)
	}
	return d
}

// Adapter is the protocol half of the fake.
func (f *Fake) Adapter() engine.Adapter { return (*fakeAdapter)(f) }

// Native is the window system's half.
func (f *Fake) Native() engine.NativePlatform { return (*fakeNative)(f) }

// Set switches a defect on or off.
func (f *Fake) Set(d Defect, on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.defects[d] = on
	if on && d == DefectConnection {
		for _, b := range f.browsers {
			b.cut()
		}
	}
}

// AllowReconnect makes the fake declare that a lost connection can be made anew. It must be called before an engine is made.
func (f *Fake) AllowReconnect() *Fake {
	f.decl.Reconnect = true
	return f
}

// Delay installs a function that is called, without locks, before each ability acts, and with "contexts" before the tabs are listed.
func (f *Fake) Delay(fn func(verb string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delay = fn
}

// hold calls what [Fake.Delay] installed, and reports whether abilities hang, as it was before the call.
func (f *Fake) hold(verb string) (hang bool) {
	f.mu.Lock()
	delay, hang := f.delay, f.defects[DefectHang]
	f.mu.Unlock()
	if delay != nil {
		delay(verb)
	}
	return hang
}

// Journal is what reached pages so far.
func (f *Fake) Journal() []Input {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.journal)
}

// Asked counts the questions put to browsers and to the window system so far, the process table left out.
func (f *Fake) Asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wire
}

// Living counts browsers that run.
func (f *Fake) Living() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, b := range f.browsers {
		if !b.closed {
			n++
		}
	}
	return n
}

// OpenWindow opens a window that the engine did not open, in the newest browser, with one tab, and returns its native id.
func (f *Fake) OpenWindow(bounds engine.Rect, title string) uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.browsers[len(f.browsers)-1].open(bounds, title).native
}

// OpenTab opens a tab by the page's own doing.
func (f *Fake) OpenTab(native uint32, title string) engine.ContextKey {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.window(native)
	return w.browser.tab(w, title).key
}

// CloseWindow closes a window from outside.
func (f *Fake) CloseWindow(native uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.window(native)
	w.browser.windows = slices.DeleteFunc(w.browser.windows, func(x *fakeWindow) bool { return x == w })
	w.browser.tabs = slices.DeleteFunc(w.browser.tabs, func(t *fakeTab) bool { return t.window == w })
}

// MoveTab drags the first tab of one window to another.
func (f *Fake) MoveTab(from, to uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	src, dst := f.window(from), f.window(to)
	for _, t := range src.browser.tabs {
		if t.window == src {
			t.window = dst
			return
		}
	}
}

// MoveWindow moves the native window at once; the protocol follows when told by a second call with protocol true.
func (f *Fake) MoveWindow(native uint32, bounds engine.Rect, protocol bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.window(native)
	if protocol {
		w.claimed = bounds
	} else {
		w.bounds = bounds
	}
}

// SetMinimised minimises or restores a window.
func (f *Fake) SetMinimised(native uint32, on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.window(native).minimised = on
}

func (f *Fake) window(native uint32) *fakeWindow {
	for _, b := range f.browsers {
		for _, w := range b.windows {
			if w.native == native {
				return w
			}
		}
	}
	panic(fmt.Sprintf("enginetest: no window %d", native))
}

func (f *Fake) next() int {
	f.serial++
	return f.serial
}

// ask counts one question and says whether a defect is on.
func (f *Fake) ask() { f.wire++ }

type fakeBrowser struct {
	f       *Fake
	id      engine.Process
	lost    chan struct{}
	isLost  bool
	closed  bool
	windows []*fakeWindow
	tabs    []*fakeTab
}

type fakeWindow struct {
	browser   *fakeBrowser
	native    uint32
	key       engine.WindowKey
	bounds    engine.Rect
	claimed   engine.Rect
	minimised bool
}

type fakeTab struct {
	key      engine.ContextKey
	window   *fakeWindow
	title    string
	url      string
	document int
	value    string
	clicks   int
}

func (b *fakeBrowser) cut() {
	if !b.isLost {
		b.isLost = true
		close(b.lost)
	}
}

func (b *fakeBrowser) open(bounds engine.Rect, title string) *fakeWindow {
	n := b.f.next()
	w := &fakeWindow{browser: b, native: uint32(0x200000 + n), key: engine.WindowKey("w" + strconv.Itoa(n)), bounds: bounds, claimed: bounds}
	b.windows = append(b.windows, w)
	b.tab(w, title)
	return w
}

func (b *fakeBrowser) tab(w *fakeWindow, title string) *fakeTab {
	t := &fakeTab{key: engine.ContextKey("c" + strconv.Itoa(b.f.next())), window: w, title: title, document: b.f.next()}
	b.tabs = append(b.tabs, t)
	return t
}

func (t *fakeTab) context(f *Fake) engine.BrowserContext {
	c := engine.BrowserContext{Key: t.key, Window: t.window.key, Bounds: t.window.claimed, Minimised: t.window.minimised, Title: t.title,
		Document: engine.DocumentKey("d" + strconv.Itoa(t.document))}
	if f.defects[DefectTabMoved] {
		c.Window = "elsewhere"
	}
	if f.defects[DefectBounds] {
		c.Bounds.X += 300
	}
	if f.defects[DefectDocument] {
		c.Document = "another"
	}
	return c
}

type fakeAdapter Fake

var _ engine.Adapter = (*fakeAdapter)(nil)

func (a *fakeAdapter) Declare() engine.Declaration { return a.decl }

func (a *fakeAdapter) Launch(ctx context.Context, spec engine.LaunchSpec) (engine.Browser, error) {
	f := (*Fake)(a)
	f.hold("launch")
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f.defects[DefectLaunch] {
		return nil, &engine.Refusal{Trigger: "launch_failed", Detail: engine.Detail{Limitation: "launch_failed", Reason: "no_binary"}}
	}
	f.pid++
	b := &fakeBrowser{f: f, id: engine.Process{PID: f.pid, Start: uint64(f.next()), Exe: "/fake/browser"}, lost: make(chan struct{})}
	f.browsers = append(f.browsers, b)
	b.open(engine.Rect{X: 40, Y: 60, W: 900, H: 700}, "start")
	return b, nil
}

var (
	_ engine.Browser       = (*fakeBrowser)(nil)
	_ engine.Navigator     = (*fakeBrowser)(nil)
	_ engine.Snapshotter   = (*fakeBrowser)(nil)
	_ engine.Clicker       = (*fakeBrowser)(nil)
	_ engine.Typer         = (*fakeBrowser)(nil)
	_ engine.ContextKeeper = (*fakeBrowser)(nil)
	_ engine.Reconnector   = (*fakeBrowser)(nil)
)

var errLost = errors.New("fake connection lost")

func (b *fakeBrowser) Process() engine.Process  { return b.id }
func (b *fakeBrowser) Endpoint() netip.AddrPort { return netip.MustParseAddrPort("127.0.0.1:9") }
func (b *fakeBrowser) Lost() <-chan struct{}    { return b.lost }

// Reconnect gives a new connection to the same browser: windows and tabs are what they were.
func (b *fakeBrowser) Reconnect(ctx context.Context) (engine.Browser, error) {
	b.f.hold("reconnect")
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	b.f.ask()
	if b.f.defects[DefectReconnect] || b.closed {
		return nil, errLost
	}
	fresh := &fakeBrowser{f: b.f, id: b.id, lost: make(chan struct{}), windows: b.windows, tabs: b.tabs}
	for _, w := range fresh.windows {
		w.browser = fresh
	}
	b.closed, b.windows, b.tabs = true, nil, nil
	b.f.browsers = append(b.f.browsers, fresh)
	return fresh, ctx.Err()
}

func (b *fakeBrowser) Contexts(ctx context.Context) ([]engine.BrowserContext, error) {
	b.f.hold("contexts")
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	b.f.ask()
	if b.isLost {
		return nil, errLost
	}
	var out []engine.BrowserContext
	for _, t := range b.tabs {
		out = append(out, t.context(b.f))
	}
	return out, ctx.Err()
}

func (b *fakeBrowser) find(c engine.ContextKey) (*fakeTab, error) {
	if b.isLost {
		return nil, errLost
	}
	i := slices.IndexFunc(b.tabs, func(t *fakeTab) bool { return t.key == c })
	if i < 0 || b.f.defects[DefectTabGone] {
		return nil, &engine.Refusal{Trigger: "tab_gone", Detail: engine.Detail{Reason: "closed"}}
	}
	return b.tabs[i], nil
}

func (b *fakeBrowser) Locate(ctx context.Context, c engine.ContextKey) (engine.BrowserContext, error) {
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	b.f.ask()
	if b.f.defects[DefectHostileWords] {
		return engine.BrowserContext{}, &engine.Refusal{Code: "pwned", Trigger: "http://evil/", Detail: engine.Detail{Reason: "/etc/passwd", Limitation: "pid 4711"}}
	}
	t, err := b.find(c)
	if err != nil {
		return engine.BrowserContext{}, err
	}
	return t.context(b.f), ctx.Err()
}

func (b *fakeBrowser) Close(context.Context) error {
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	b.closed = true
	b.windows, b.tabs = nil, nil
	b.cut()
	return nil
}

// act runs one ability: delay, hang, find the tab, journal, change, perhaps lose the connection before the answer.
func (b *fakeBrowser) act(ctx context.Context, verb string, c engine.ContextKey, n engine.NodeRef, text string, change func(*fakeTab) engine.Outcome) (engine.Outcome, error) {
	if b.f.hold(verb) {
		<-b.lost
		return engine.Outcome{}, errLost
	}
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	b.f.ask()
	if err := ctx.Err(); err != nil {
		return engine.Outcome{}, err
	}
	t, err := b.find(c)
	if err != nil {
		return engine.Outcome{}, err
	}
	if n.Document != "" && n.Document != t.context(b.f).Document {
		return engine.Outcome{}, &engine.Refusal{Trigger: "ref_retired", Detail: engine.Detail{Reason: "document"}}
	}
	if n.Value != nil && *n.Value != t.value {
		return engine.Outcome{}, &engine.Refusal{Trigger: "value_changed", Detail: engine.Detail{Action: engine.ActionType, Route: engine.RouteTrustedInput, Limitation: "value_changed"}}
	}
	b.f.journal = append(b.f.journal, Input{Verb: verb, Window: t.window.native, Context: c, Node: n.Node, Text: text})
	out := change(t)
	if b.f.defects[DefectCut] {
		b.cut()
		return engine.Outcome{}, errLost
	}
	if b.f.defects[DefectHostileWords] {
		out.Effect = "splendid"
	}
	return out, nil
}

func (b *fakeBrowser) Navigate(ctx context.Context, c engine.ContextKey, url string) (engine.Outcome, error) {
	return b.act(ctx, "navigate", c, engine.NodeRef{}, url, func(t *fakeTab) engine.Outcome {
		t.document, t.url, t.value, t.clicks = b.f.next(), url, "", 0
		return engine.Outcome{Effect: engine.EffectConfirmed, Route: engine.RouteEngine, Trust: engine.TrustNone, Requested: 1, Delivered: 1}
	})
}

func (b *fakeBrowser) Snapshot(ctx context.Context, c engine.ContextKey, limit int) (engine.PageSnapshot, error) {
	if b.f.hold("snapshot") {
		<-b.lost
		return engine.PageSnapshot{}, errLost
	}
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	b.f.ask()
	t, err := b.find(c)
	if err != nil {
		return engine.PageSnapshot{}, err
	}
	nodes := []engine.PageNode{
		{Node: "name", Role: "textbox", Name: "Full name", Value: t.value, Actions: []engine.Action{engine.ActionType, engine.ActionClick}, Frame: "main", Visibility: "in_view"},
		{Node: "go", Role: "button", Name: fmt.Sprintf("Go %d", t.clicks), Actions: []engine.Action{engine.ActionClick}, Frame: "main", Visibility: "in_view"},
	}
	s := engine.PageSnapshot{Document: t.context(b.f).Document, Provenance: engine.ProvenanceAccessibility, Total: len(nodes), Omitted: map[string]int{}, Nodes: nodes}
	if len(nodes) > limit {
		s.Omitted["budget"], s.Nodes = len(nodes)-limit, nodes[:limit]
	}
	return s, nil
}

func (b *fakeBrowser) Click(ctx context.Context, c engine.ContextKey, n engine.NodeRef, route engine.Route) (engine.Outcome, error) {
	return b.act(ctx, "click", c, n, string(route), func(t *fakeTab) engine.Outcome {
		t.clicks++
		out := engine.Outcome{Effect: engine.EffectUnverifiable, Route: route, Trust: engine.TrustTrustedInput, Requested: 1, Delivered: 1}
		if route == engine.RouteDOMEvent {
			out.Trust = engine.TrustDOMEvent
		}
		return out
	})
}

func (b *fakeBrowser) Type(ctx context.Context, c engine.ContextKey, n engine.NodeRef, text string, mode engine.TypeMode, replace bool) (engine.Outcome, error) {
	return b.act(ctx, "type", c, n, text, func(t *fakeTab) engine.Outcome {
		var before *string
		if replace {
			was := t.value
			before, t.value = &was, ""
		}
		count := utf8.RuneCountInString(text)
		out := engine.Outcome{Effect: engine.EffectConfirmed, Route: engine.RouteTrustedInput, Trust: engine.TrustTrustedInput, Requested: count, Delivered: count, Before: before}
		if mode == engine.TypeKeystrokes {
			out.Route = engine.RouteKeyboard
		}
		if b.f.defects[DefectPrefix] && count > 1 {
			text = string([]rune(text)[:1])
			out.Effect, out.Delivered = engine.EffectPartial, 1
		}
		t.value += text
		return out
	})
}

func (b *fakeBrowser) OpenContext(ctx context.Context, beside engine.ContextKey) (engine.BrowserContext, error) {
	var fresh engine.BrowserContext
	_, err := b.act(ctx, "open", beside, engine.NodeRef{}, "", func(t *fakeTab) engine.Outcome {
		fresh = b.tab(t.window, "about:blank").context(b.f)
		no := false
		fresh.Visible = &no
		return engine.Outcome{}
	})
	return fresh, err
}

func (b *fakeBrowser) CloseContext(ctx context.Context, c engine.ContextKey) (engine.Outcome, error) {
	return b.act(ctx, "close", c, engine.NodeRef{}, "", func(t *fakeTab) engine.Outcome {
		b.tabs = slices.DeleteFunc(b.tabs, func(x *fakeTab) bool { return x == t })
		return engine.Outcome{Effect: engine.EffectConfirmed, Route: engine.RouteEngine, Trust: engine.TrustNone, Requested: 1, Delivered: 1}
	})
}

type fakeNative Fake

var (
	_ engine.NativePlatform = (*fakeNative)(nil)
	_ engine.Occluder       = (*fakeNative)(nil)
)

func environmentRefusal() error {
	return &engine.Refusal{Trigger: "environment", Detail: engine.Detail{Limitation: "no_display"}}
}

func (n *fakeNative) lock() (*Fake, func()) {
	f := (*Fake)(n)
	f.mu.Lock()
	return f, f.mu.Unlock
}

func (n *fakeNative) Identify(_ context.Context, pid int) (engine.Process, error) {
	f, unlock := n.lock()
	defer unlock()
	for _, b := range f.browsers {
		if b.id.PID == pid && !b.closed {
			return b.id, nil
		}
	}
	return engine.Process{}, &engine.Refusal{Trigger: "not_a_browser", Detail: engine.Detail{Limitation: "no_such_process"}}
}

func (n *fakeNative) SameProcess(_ context.Context, p engine.Process) error {
	f, unlock := n.lock()
	defer unlock()
	for _, b := range f.browsers {
		if b.id == p && !b.closed && !f.defects[DefectProcess] {
			return nil
		}
	}
	return &engine.Refusal{Trigger: "generation_changed", Detail: engine.Detail{Reason: "process"}}
}

func (n *fakeNative) OwnsEndpoint(context.Context, engine.Process, netip.AddrPort) error {
	f, unlock := n.lock()
	defer unlock()
	if f.defects[DefectEndpoint] {
		return &engine.Refusal{Trigger: "endpoint_owner", Detail: engine.Detail{Reason: "owner"}}
	}
	return nil
}

func (w *fakeWindow) see() engine.NativeWindow {
	return engine.NativeWindow{ID: w.native, OwnerPID: w.browser.id.PID, Bounds: w.bounds, Mapped: !w.minimised, Minimised: w.minimised}
}

func (n *fakeNative) Window(ctx context.Context, id uint32, p engine.Process) (engine.NativeWindow, error) {
	f, unlock := n.lock()
	defer unlock()
	f.ask()
	if f.defects[DefectNoDisplay] {
		return engine.NativeWindow{}, environmentRefusal()
	}
	for _, b := range f.browsers {
		for _, w := range b.windows {
			if w.native != id || f.defects[DefectWindowGone] {
				continue
			}
			if b.id.PID != p.PID || f.defects[DefectWindowOwner] {
				return engine.NativeWindow{}, &engine.Refusal{Trigger: "wrong_target", Detail: engine.Detail{Reason: "window_owner"}}
			}
			return w.see(), ctx.Err()
		}
	}
	return engine.NativeWindow{}, &engine.Refusal{Trigger: "generation_changed", Detail: engine.Detail{Reason: "window"}}
}

func (n *fakeNative) Windows(ctx context.Context, p engine.Process) ([]engine.NativeWindow, error) {
	f, unlock := n.lock()
	defer unlock()
	f.ask()
	if f.defects[DefectNoDisplay] {
		return nil, environmentRefusal()
	}
	var out []engine.NativeWindow
	for _, b := range f.browsers {
		for _, w := range b.windows {
			if b.id == p && !f.defects[DefectHeadless] {
				out = append(out, w.see())
			}
		}
	}
	return out, ctx.Err()
}

func (n *fakeNative) Cover(context.Context, uint32) (engine.State, error) {
	return engine.StateCovered, nil
}
func (n *fakeNative) Close() error { return nil }

func (n *fakeNative) Observe(context.Context) (engine.DeskObserver, error) {
	f, unlock := n.lock()
	defer unlock()
	if f.defects[DefectNoDisplay] {
		return nil, environmentRefusal()
	}
	return &fakeObserver{f: f, serial: f.serial}, nil
}

type fakeObserver struct {
	f      *Fake
	serial int
}

func (o *fakeObserver) Stop(_ context.Context, p engine.Process) (engine.DeskEffects, error) {
	o.f.mu.Lock()
	defer o.f.mu.Unlock()
	var fx engine.DeskEffects
	for _, b := range o.f.browsers {
		for _, w := range b.windows {
			if b.id == p && int(w.native)-0x200000 > o.serial {
				fx.Opened = append(fx.Opened, w.native)
			}
		}
	}
	return fx, nil
}
