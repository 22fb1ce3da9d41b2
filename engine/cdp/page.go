package cdp

import (
	"context"
	"errors"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/engine-acceptance/acceptance/engine"
)

var (
	_ engine.Navigator     = (*Browser)(nil)
	_ engine.ContextKeeper = (*Browser)(nil)
)

// visibilityBudget bounds the question which tab a window shows. A page that is too busy to answer is no proof either way.
const visibilityBudget = 600 * time.Millisecond

// closeBudget is how long a closed tab may take to go.
const closeBudget = 3 * time.Second

// Contexts lists the pages that have a native window. Pages of the browser's own tools (devtools, extensions) are left out.
func (b *Browser) Contexts(ctx context.Context) ([]engine.BrowserContext, error) {
	list, err := b.contexts(ctx)
	if err != nil {
		return nil, refuse(engine.OpState, "", "", err)
	}
	return list, nil
}

func (b *Browser) contexts(ctx context.Context) ([]engine.BrowserContext, error) {
	infos, err := call(ctx, b.link, target.GetTargets, target.GetTargetsParams{Filter: target.Filter{{Type: "page"}}})
	if err != nil {
		return nil, err
	}
	var list []engine.BrowserContext
	for _, t := range infos.TargetInfos {
		if t == nil || t.Type != "page" || t.Subtype != "" || strings.HasPrefix(t.URL, "devtools://") || strings.HasPrefix(t.URL, "chrome-extension://") {
			continue
		}
		w, err := call(ctx, b.link, browser.GetWindowForTarget, browser.GetWindowForTargetParams{TargetID: t.TargetID})
		if windowMissing(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c := b.describe(t.TargetID, w)
		c.Title = bounded(t.Title, maxText)
		list = append(list, c)
	}
	for i := range list {
		var s *session
		err := b.awaitPage(ctx, targetOf(list[i].Key), attachBudget)
		if err == nil {
			s, err = b.link.page(ctx, targetOf(list[i].Key))
		}
		switch {
		case err == nil:
			list[i].Document = engine.DocumentKey(s.document())
		case errors.Is(err, errGone):
			return nil, err
		}
		// A page that cannot be asked (crashed, dialog before we came) is listed all the same: its window is known, its document is not.
	}
	asks := map[engine.ContextKey]*ask{}
	for _, p := range b.link.pages() {
		asks[engine.ContextKey(p.target)] = p.ask()
	}
	for i := range list {
		list[i].Visible = b.visible(ctx, list[i], list, asks)
	}
	return list, nil
}

// Locate re-reads one context.
func (b *Browser) Locate(ctx context.Context, c engine.ContextKey) (engine.BrowserContext, error) {
	found, err := b.locate(ctx, c)
	if err != nil {
		return engine.BrowserContext{}, refuse(engine.OpState, "", "", err)
	}
	return found, nil
}

func (b *Browser) locate(ctx context.Context, c engine.ContextKey) (engine.BrowserContext, error) {
	s, err := b.link.page(ctx, targetOf(c))
	if err != nil && !errors.Is(err, errDialog) {
		return engine.BrowserContext{}, err
	}
	// The windows of all pages at once: which tab a window shows is a fact about its other tabs, too.
	pages := b.link.pages()
	asked := make([]*pending, len(pages))
	asks := make(map[engine.ContextKey]*ask, len(pages))
	for i, p := range pages {
		asks[engine.ContextKey(p.target)] = p.ask()
		asked[i] = p.send("Browser.getWindowForTarget", browser.GetWindowForTargetParams{})
		asked[i].through = true
	}
	var list []engine.BrowserContext
	var own *engine.BrowserContext
	for i, p := range pages {
		var w browser.GetWindowForTargetResult
		err := asked[i].wait(ctx, &w)
		if p == s && err != nil {
			return engine.BrowserContext{}, err
		}
		if err == nil {
			list = append(list, b.describe(p.target, w))
		}
	}
	for i := range list {
		if list[i].Key == c {
			own = &list[i]
		}
	}
	if own == nil {
		return engine.BrowserContext{}, errGone
	}
	own.Document = engine.DocumentKey(s.document())
	own.Visible = b.visible(ctx, *own, list, asks)
	return *own, nil
}

// describe turns the answer about a window into a context. Chromium reports the client rectangle, in units of the screen's scale.
func (b *Browser) describe(id target.ID, w browser.GetWindowForTargetResult) engine.BrowserContext {
	c := engine.BrowserContext{Key: engine.ContextKey(id), Window: engine.WindowKey(strconv.FormatInt(int64(w.WindowID), 10))}
	if w.Bounds == nil {
		return c
	}
	scaled := func(v int64) int { return int(math.Round(float64(v) * b.scale)) }
	if w.Bounds.Left != nil {
		c.Bounds.X = scaled(*w.Bounds.Left)
	}
	if w.Bounds.Top != nil {
		c.Bounds.Y = scaled(*w.Bounds.Top)
	}
	c.Bounds.W, c.Bounds.H = scaled(w.Bounds.Width), scaled(w.Bounds.Height)
	c.Minimised = w.Bounds.WindowState == browser.WindowStateMinimized
	return c
}

// visible proves whether the window of c shows c, or returns nil. all holds the contexts of its window and maybe others.
//
// A tab without focus emulation says so itself, in a world where the page cannot lie; occlusion does not make it hidden, for the browser
// runs with --disable-backgrounding-occluded-windows. "hidden" alone proves nothing (a minimised window hides its visible tab as well), so
// false needs another tab of the window that is visible, and that one must not be emulated.
func (b *Browser) visible(ctx context.Context, c engine.BrowserContext, all []engine.BrowserContext, asks map[engine.ContextKey]*ask) *bool {
	yes, no := true, false
	ctx, cancel := context.WithTimeout(ctx, visibilityBudget)
	defer cancel()
	others := 0
	shown := false
	for _, o := range all {
		if o.Window == c.Window && o.Key != c.Key {
			others++
			// A page that is too busy eats the budget; what the others answered meanwhile still counts.
			shown = shown || asks[o.Key].shows(ctx)
		}
	}
	switch {
	case others == 0 || asks[c.Key].shows(ctx):
		return &yes
	case shown:
		return &no
	}
	return nil
}

// ask is the question to a tab whether its window shows it, on its way already when the tab has a world to ask in. There is one answer,
// which is kept: in a window of several tabs each of them rests on the answers of the others.
type ask struct {
	s        *session
	sent     *pending
	answered bool
	shown    bool
}

// ask asks a tab. A tab under emulation or behind a dialog is not asked: it could not tell.
func (s *session) ask() *ask {
	s.mu.Lock()
	w, ok := s.worlds[s.main]
	emulated := s.emulated
	s.mu.Unlock()
	switch {
	case emulated || s.dialogOpen():
		return &ask{}
	case !ok:
		return &ask{s: s}
	}
	yes := true
	return &ask{s: s, sent: s.send("Runtime.evaluate", runtime.EvaluateParams{Expression: visibilityState, ContextID: w, ReturnByValue: &yes, Silent: &yes})}
}

const visibilityState = "document.visibilityState"

// shows says that the tab is proved to be shown by its window. The zero ask and a page that was not asked prove nothing.
func (a *ask) shows(ctx context.Context) bool {
	if a == nil || a.s == nil {
		return false
	}
	if !a.answered {
		a.answered, a.shown = true, a.wait(ctx)
	}
	return a.shown
}

// wait waits for the answer; a page that gives none in time is not shown to be shown.
func (a *ask) wait(ctx context.Context) bool {
	var state string
	if a.sent != nil {
		var res runtime.EvaluateResult
		err := a.sent.wait(ctx, &res)
		if err == nil && value(res.Result, res.ExceptionDetails, &state) == nil {
			return state == "visible"
		}
		if !contextMissing(err) {
			return false
		}
		a.s.mu.Lock()
		main := a.s.main
		a.s.mu.Unlock()
		a.s.forgetWorld(main)
	}
	state, err := evaluate[string](ctx, a.s, visibilityState)
	return err == nil && state == "visible"
}

// emulate tells the page of a parked tab that it has the focus, so that it takes input and draws. It stays so: each change is an event
// in the page. The caller proved the tab parked.
func (s *session) emulate(ctx context.Context) error {
	s.mu.Lock()
	done := s.emulated
	s.emulated = true
	s.mu.Unlock()
	if done {
		return nil
	}
	err := s.Call(ctx, "Emulation.setFocusEmulationEnabled", emulation.SetFocusEmulationEnabledParams{Enabled: true}, nil)
	s.mu.Lock()
	s.emulated = err == nil
	s.settled = ""
	s.mu.Unlock()
	return err
}

// unemulate ends the emulation of a tab that may be the visible one now: the person may have switched to it.
func (s *session) unemulate(ctx context.Context) error {
	s.mu.Lock()
	was := s.emulated
	s.mu.Unlock()
	if !was {
		return nil
	}
	if err := s.Call(ctx, "Emulation.setFocusEmulationEnabled", emulation.SetFocusEmulationEnabledParams{}, nil); err != nil {
		return err
	}
	s.mu.Lock()
	s.emulated = false
	s.settled = ""
	s.mu.Unlock()
	return nil
}

// enter finds the session of an action and admits the action. The caller calls leave.
func (b *Browser) enter(ctx context.Context, c engine.ContextKey) (s *session, leave func(), err error) {
	if s, err = b.link.page(ctx, targetOf(c)); err != nil {
		return nil, nil, err
	}
	leave, err = s.lock(ctx)
	return s, leave, err
}

// stand is where a context stands at the moment of an action.
type stand struct {
	context engine.BrowserContext
	// parked is true when the tab is proved not to be the visible one.
	parked bool
	err    error
}

// stand settles where a context stands, while the caller looks at the control. The caller receives before it leaves.
func (b *Browser) stand(ctx context.Context, c engine.ContextKey, s *session) <-chan stand {
	out := make(chan stand, 1)
	go func() {
		found, err := b.locate(ctx, c)
		if err == nil && found.Visible == nil {
			// Emulation may be what hides the truth: of this tab, or of the one that its window shows now, which was parked once and became the
			// visible one when another was closed. Whoever acts in a parked tab again emulates it again.
			for _, p := range b.link.pages() {
				if p != s && p.dialogOpen() {
					continue // its dialog holds up nobody else; it stays as it is
				}
				if err = errors.Join(err, p.unemulate(ctx)); err != nil {
					break
				}
			}
			if err == nil {
				found, err = b.locate(ctx, c)
			}
		}
		if err == nil && s.dialogOpen() {
			err = errDialog
		}
		out <- stand{context: found, parked: found.Visible != nil && !*found.Visible, err: err}
	}()
	return out
}

// Navigate loads a URL of scheme http, https or about. The effect is confirmed when the new document was committed and fired load. An
// error page, a download or an answer without content is suspected_noop: the document that was asked for is not there.
func (b *Browser) Navigate(ctx context.Context, c engine.ContextKey, address string) (engine.Outcome, error) {
	out := engine.Outcome{Route: engine.RouteEngine, Trust: engine.TrustNone, Requested: 1}
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "about") {
		r := unavailable(engine.OpNavigate, "argument", "scheme_not_allowed", engine.ActionNavigate, engine.RouteEngine)
		r.Detail.Field = "url"
		return engine.Outcome{}, r
	}
	fail := func(err error) (engine.Outcome, error) {
		return engine.Outcome{}, refuse(engine.OpNavigate, engine.ActionNavigate, engine.RouteEngine, err)
	}
	s, err := b.link.page(ctx, targetOf(c))
	if err != nil {
		return fail(err)
	}
	leave, err := s.lock(ctx)
	if err != nil {
		return fail(err)
	}
	defer leave()
	s.mu.Lock()
	out.FocusEmulated = s.emulated
	s.mu.Unlock()
	p := s.send("Page.navigate", page.NavigateParams{URL: address})
	if deadline, ok := ctx.Deadline(); ok {
		p.until = deadline
	}
	var res page.NavigateResult
	if err := p.wait(ctx, &res); err != nil {
		if p.id == 0 {
			return fail(err)
		}
		return afterDispatch(out, engine.OpNavigate, engine.ActionNavigate, err), nil
	}
	switch {
	case res.ErrorText != "" || res.IsDownload:
		out.Effect = engine.EffectSuspectedNoop
		return out, nil
	case res.LoaderID == "":
		// Another place in the same document: done when the browser answers.
		out.Effect, out.Delivered = engine.EffectConfirmed, 1
		return out, nil
	}
	if err := s.loaded(ctx, res.LoaderID); err != nil {
		return afterDispatch(out, engine.OpNavigate, engine.ActionNavigate, err), nil
	}
	out.Effect, out.Delivered = engine.EffectConfirmed, 1
	return out, nil
}

// loaded waits until the document was committed and loaded, or was committed and then replaced by one that loaded.
func (s *session) loaded(ctx context.Context, want cdp.LoaderID) error {
	for {
		s.mu.Lock()
		committed := false
		done := false
		for _, id := range s.commits {
			committed = committed || id == want
			if committed {
				for _, l := range s.loads {
					done = done || l == id
				}
			}
		}
		changed, dialog := s.changed, s.dialog
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-dialog:
			return errDialog
		case <-s.gone:
			return s.goneErr
		case <-s.l.lost:
			return s.l.lostErr
		case <-ctx.Done():
			return contextError(ctx)
		}
	}
}

// OpenContext opens a tab in the background of the window of beside. Chromium chooses the window that was active last; a tab that landed
// in another window is closed again and refused.
func (b *Browser) OpenContext(ctx context.Context, beside engine.ContextKey) (engine.BrowserContext, error) {
	fail := func(err error) (engine.BrowserContext, error) {
		return engine.BrowserContext{}, refuse(engine.OpContext, engine.ActionContextOpen, engine.RouteEngine, err)
	}
	home, err := b.locate(ctx, beside)
	if err != nil {
		return fail(err)
	}
	yes := true
	made, err := call(ctx, b.link, target.CreateTarget, target.CreateTargetParams{URL: "about:blank", Background: &yes})
	if err != nil {
		return fail(err)
	}
	id := made.TargetID
	if err := b.awaitPage(ctx, id, callBudget); err != nil {
		return fail(err)
	}
	found, err := b.locate(ctx, engine.ContextKey(id))
	if err != nil {
		return fail(err)
	}
	if found.Window != home.Window {
		if err := b.closeTarget(ctx, id); err != nil {
			return fail(err)
		}
		return fail(refusal(engine.OpContext, engine.CodeWrongTarget, "wrong_target", engine.Detail{Reason: "not_exact"}))
	}
	return found, nil
}

// awaitPage waits until a new target is attached and ready.
func (b *Browser) awaitPage(ctx context.Context, id target.ID, budget time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	for {
		b.link.mu.Lock()
		s, changed := b.link.targets[id], b.link.changed
		b.link.mu.Unlock()
		if s != nil {
			return s.awaitFor(ctx, budget)
		}
		select {
		case <-changed:
		case <-b.link.lost:
			return b.link.lostErr
		case <-ctx.Done():
			return contextError(ctx)
		}
	}
}

// CloseContext closes a tab. The effect is confirmed when the target is gone; the last tab of the last window takes the browser with it.
func (b *Browser) CloseContext(ctx context.Context, c engine.ContextKey) (engine.Outcome, error) {
	out := engine.Outcome{Route: engine.RouteEngine, Trust: engine.TrustNone, Requested: 1}
	if _, err := b.link.page(ctx, targetOf(c)); errors.Is(err, errGone) || errors.Is(err, errLost) || errors.Is(err, errViolation) {
		return engine.Outcome{}, refuse(engine.OpContext, engine.ActionContextClose, engine.RouteEngine, err)
	}
	if err := b.closeTarget(ctx, targetOf(c)); err != nil {
		return afterDispatch(out, engine.OpContext, engine.ActionContextClose, err), nil
	}
	out.Effect, out.Delivered = engine.EffectConfirmed, 1
	return out, nil
}

func (b *Browser) closeTarget(ctx context.Context, id target.ID) error {
	b.link.mu.Lock()
	s := b.link.targets[id]
	b.link.mu.Unlock()
	if _, err := call(ctx, b.link, target.CloseTarget, target.CloseTargetParams{TargetID: id}); err != nil {
		return err
	}
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, closeBudget)
	defer cancel()
	for {
		b.link.mu.Lock()
		_, there := b.link.targets[id]
		changed := b.link.changed
		b.link.mu.Unlock()
		if !there {
			return nil
		}
		select {
		case <-changed:
		case <-b.link.lost:
			return b.link.lostErr
		case <-ctx.Done():
			return contextError(ctx)
		}
	}
}

func targetOf(c engine.ContextKey) target.ID { return target.ID(c) }
