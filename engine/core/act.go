package core

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/engine-acceptance/acceptance/engine"
)

// order is one action as the verbs hand it to the common path.
type order struct {
	op          engine.Operation
	session     string
	target, tab string
	ref         string
	needsRef    bool
	action      engine.Action
	route       engine.Route
	delivery    engine.Delivery
	requested   int
	window      bool // changes the window's contexts: serialised per process too
	dispatch    func(ctx context.Context, c *call, p proof, n engine.NodeRef) (engine.Outcome, error)
	after       func(ctx context.Context, c *call, out *engine.Outcome, rc *engine.Receipt, res *engine.Result)
	supported   func(b engine.Browser) bool
}

// graceReturn is how long an ability is given to return after its budget, so that its own account of the matter is heard.
const graceReturn = 250 * time.Millisecond

// quietDesk is how long the desk is watched after an operation that opens or closes contexts: a window manager acts after the reply.
const quietDesk = 50 * time.Millisecond

// run carries one action from the store to its receipt.
func (e *Engine) run(ctx context.Context, o order) engine.Result {
	started := time.Now()
	if o.delivery == "" {
		o.delivery = engine.DeliveryBackground
	}
	if !slices.Contains(engine.Deliveries, o.delivery) {
		return engine.Refused(e.argument(o.op, "invalid_argument", "delivery"))
	}
	if o.needsRef && o.ref == "" {
		return engine.Refused(e.argument(o.op, "invalid_argument", "ref"))
	}
	s := e.session(o.session)
	if s == nil {
		return engine.Refused(e.noSession(o.op))
	}
	ctx, release, ok := s.enter(ctx, e.cfg.Budgets.Action)
	if !ok {
		return engine.Refused(e.noSession(o.op))
	}
	defer release()
	t, tb, r := e.resolve(o.op, s, o.target, o.tab)
	if r != nil {
		return engine.Refused(r)
	}
	c := &call{e: e, op: o.op, session: s, proc: t.proc, target: t, tab: tb, started: started}
	if r := c.checkRef(o.ref); r != nil {
		return engine.Refused(r)
	}
	unlock, err := c.serialise(ctx, o.window)
	if err != nil {
		return engine.Refused(e.adopt(ctx, o.op, s, t.proc, err))
	}
	handed := false
	defer func() {
		if !handed {
			unlock()
		}
	}()
	// What was true before the wait for the turn is proved only now.
	c.started = time.Now()
	p, r := c.prove(ctx)
	if r != nil {
		return engine.Refused(r)
	}
	node, r := c.node(o.ref, p)
	if r != nil {
		return engine.Refused(r)
	}
	visible, r := c.visibility(ctx, p)
	if r != nil {
		return engine.Refused(r)
	}
	if r := c.permit(ctx, p, visible, o.action, o.route, o.delivery); r != nil {
		return engine.Refused(r)
	}
	if o.dispatch == nil || o.supported != nil && !o.supported(c.proc.browser) {
		return engine.Refused(e.refuse(o.op, "undeclared", engine.Detail{Action: o.action, Route: o.route}))
	}
	desk, err := e.watchDesk(ctx, c.proc)
	if err != nil {
		return engine.Refused(e.adopt(ctx, o.op, s, c.proc, err))
	}
	if !s.alive() || c.proc.lost() {
		desk.abandon()
		if !s.alive() {
			return engine.Refused(e.noSession(o.op))
		}
		return engine.Refused(e.stale(o.op, s, c.proc))
	}
	dispatched := time.Now()
	handed = true
	out, err := dispatch(ctx, unlock, func(ctx context.Context) (engine.Outcome, error) { return o.dispatch(ctx, c, p, node) })
	done := time.Now()
	if r := engine.AsRefusal(err); r != nil {
		desk.abandon()
		return engine.Refused(e.adopt(ctx, o.op, s, c.proc, err))
	}
	rc := engine.Receipt{Operation: o.op, Action: o.action, Effect: out.Effect, Route: out.Route, Trust: out.Trust, Delivery: o.delivery,
		RequestedCount: o.requested, DeliveredCount: out.Delivered, ContextVisible: visible, FocusEmulated: out.FocusEmulated,
		Posture: c.proc.posture, Generation: c.proc.generation, BrowserInitiated: []string{}}
	if err != nil {
		rc.Effect, rc.Route, rc.Trust, rc.DeliveredCount = engine.EffectUnknown, o.route, trustOf(o.route), 0
		rc.Refusal = e.cut(ctx, o.op, s, c.proc)
	} else {
		e.judgeOutcome(ctx, s, c.proc, o, &out, &rc)
	}
	res := engine.Result{Status: engine.StatusOK}
	if o.after != nil && err == nil {
		o.after(ctx, c, &out, &rc, &res)
	}
	if o.window {
		_ = pause(ctx, quietDesk) // only shortens the watch
	}
	desk.finish(ctx, &rc)
	rc.Durations = engine.Durations{ProofMS: ms(c.proved.Sub(c.started)), DispatchMS: ms(done.Sub(dispatched)), TotalMS: ms(time.Since(started))}
	res.Receipt = &rc
	return res
}

// dispatch runs f, which owns the turn until it returns, and waits for it no longer than ctx and a short grace. What does not return is
// reported as an error and left to finish by itself; nothing else is dispatched to that window until it has.
func dispatch(ctx context.Context, unlock func(), f func(context.Context) (engine.Outcome, error)) (engine.Outcome, error) {
	type result struct {
		out engine.Outcome
		err error
	}
	ch := make(chan result, 1)
	go func() {
		defer unlock()
		out, err := f(ctx)
		ch <- result{out, err}
	}()
	select {
	case r := <-ch:
		return r.out, r.err
	case <-ctx.Done():
	}
	t := time.NewTimer(graceReturn)
	defer t.Stop()
	select {
	case r := <-ch:
		// The budget was over before the answer: only a refusal, which says that nothing was dispatched, or a complete answer counts.
		return r.out, r.err
	case <-t.C:
		return engine.Outcome{}, ctx.Err()
	}
}

// cut says what is known about an action whose answer did not come.
func (e *Engine) cut(ctx context.Context, op engine.Operation, s *session, p *process) *engine.Refusal {
	switch {
	case !s.alive():
		return e.noSession(op)
	case p.lost():
		return e.stale(op, s, p)
	case ctx.Err() != nil:
		return e.refuse(op, "unresponsive", engine.Detail{})
	default:
		return e.refuse(op, "protocol_violation", engine.Detail{})
	}
}

func trustOf(r engine.Route) engine.Trust {
	switch r {
	case engine.RouteTrustedInput, engine.RouteKeyboard:
		return engine.TrustTrustedInput
	case engine.RouteDOMEvent:
		return engine.TrustDOMEvent
	}
	return engine.TrustNone
}

// judgeOutcome holds an adapter's account to the closed lists and to what was asked; what does not fit becomes unknown.
func (e *Engine) judgeOutcome(ctx context.Context, s *session, p *process, o order, out *engine.Outcome, rc *engine.Receipt) {
	effects := []engine.Effect{engine.EffectConfirmed, engine.EffectPartial, engine.EffectUnverifiable, engine.EffectSuspectedNoop, engine.EffectUnknown}
	if !slices.Contains(effects, out.Effect) || !slices.Contains(engine.Routes, out.Route) ||
		!slices.Contains([]engine.Trust{engine.TrustTrustedInput, engine.TrustDOMEvent, engine.TrustNone}, out.Trust) ||
		out.Delivered < 0 || out.Delivered > o.requested {
		rc.Effect, rc.Route, rc.Trust, rc.DeliveredCount = engine.EffectUnknown, o.route, trustOf(o.route), 0
		rc.Refusal = e.refuse(o.op, "protocol_violation", engine.Detail{})
		return
	}
	if before := out.Before; before != nil && len(*before) <= maxText {
		rc.ValueBefore = before
	}
	if out.Refusal != nil {
		rc.Refusal = e.adopt(ctx, o.op, s, p, out.Refusal)
	}
	if o.op == engine.OpType && out.Effect == engine.EffectPartial && rc.Refusal == nil {
		rc.Refusal = e.refuse(o.op, "prefix_only", engine.Detail{RequestedChars: o.requested, DeliveredChars: out.Delivered})
	}
	if rc.Refusal != nil && rc.Effect != engine.EffectPartial && rc.Effect != engine.EffectUnknown {
		rc.Effect = engine.EffectUnknown
	}
}

// serialise takes the turn of the window, and of the process for what changes the set of contexts.
func (c *call) serialise(ctx context.Context, window bool) (func(), error) {
	if window {
		if err := c.proc.windows.lock(ctx); err != nil {
			return nil, err
		}
	}
	if err := c.target.mutate.lock(ctx); err != nil {
		if window {
			c.proc.windows.unlock()
		}
		return nil, err
	}
	return func() {
		c.target.mutate.unlock()
		if window {
			c.proc.windows.unlock()
		}
	}, nil
}

// checkRef tells a retired or foreign ref before anything is asked of the browser.
func (c *call) checkRef(ref string) *engine.Refusal {
	if ref == "" {
		return nil
	}
	_, _, r := c.lookup(ref)
	return r
}

func (c *call) lookup(ref string) (*snapshot, int, *engine.Refusal) {
	retired := func() *engine.Refusal {
		reason := "snapshot"
		if id, _, _ := strings.Cut(ref, ":"); c.tab.left(id) {
			reason = "document"
		}
		return c.e.refuse(c.op, "ref_retired", engine.Detail{Reason: reason})
	}
	id, index, ok := strings.Cut(ref, ":")
	n, err := strconv.Atoi(index)
	s := c.tab.latest()
	if !ok || err != nil || s == nil || s.id != id || n < 0 || n >= len(s.nodes) || index != strconv.Itoa(n) {
		return nil, 0, retired()
	}
	return s, n, nil
}

// node gives the node behind a ref, once its document is proved to be the one that was seen.
func (c *call) node(ref string, p proof) (engine.NodeRef, *engine.Refusal) {
	if ref == "" {
		return engine.NodeRef{}, nil
	}
	s, n, r := c.lookup(ref)
	if r != nil {
		return engine.NodeRef{}, r
	}
	if p.context.Document != s.document {
		c.tab.leave()
		return engine.NodeRef{}, c.e.refuse(c.op, "ref_retired", engine.Detail{Reason: "document"})
	}
	node := s.nodes[n]
	return engine.NodeRef{Document: s.document, Node: node.Node, Role: node.Role, Name: node.Name}, nil
}

func (e *Engine) navigate(ctx context.Context, op engine.Operation, req engine.NavigateRequest) engine.Result {
	if limitation := checkURL(req.URL); limitation != "" {
		return engine.Refused(e.argument(op, limitation, "url"))
	}
	return e.run(ctx, order{op: op, session: req.Session, target: req.TargetID, tab: req.TabID, action: engine.ActionNavigate, route: engine.RouteEngine, requested: 1,
		supported: able[engine.Navigator],
		dispatch: func(ctx context.Context, c *call, _ proof, _ engine.NodeRef) (engine.Outcome, error) {
			out, err := c.proc.browser.(engine.Navigator).Navigate(ctx, c.tab.key, req.URL)
			if engine.AsRefusal(err) == nil {
				// Whatever came of it, refs of the old document are not to be used again. A refusal changes nothing.
				c.tab.leave()
			}
			return out, err
		}})
}

func able[T any](b engine.Browser) bool {
	_, ok := b.(T)
	return ok
}

func (e *Engine) click(ctx context.Context, op engine.Operation, req engine.ClickRequest) engine.Result {
	route := req.Route
	if route == "" {
		route = engine.RouteTrustedInput
	}
	if !slices.Contains([]engine.Route{engine.RouteTrustedInput, engine.RouteKeyboard, engine.RouteDOMEvent}, route) {
		return engine.Refused(e.argument(op, "invalid_argument", "input_route"))
	}
	return e.run(ctx, order{op: op, session: req.Session, target: req.TargetID, tab: req.TabID, ref: req.Ref, needsRef: true, action: engine.ActionClick, route: route,
		delivery: req.Delivery, requested: 1, supported: able[engine.Clicker],
		dispatch: func(ctx context.Context, c *call, _ proof, n engine.NodeRef) (engine.Outcome, error) {
			return c.proc.browser.(engine.Clicker).Click(ctx, c.tab.key, n, route)
		}})
}

// typeText types. Insertion is the capability (type, trusted_input); keystrokes are the capability (type, keyboard).
func (e *Engine) typeText(ctx context.Context, op engine.Operation, req engine.TypeRequest) engine.Result {
	mode, route := req.Mode, engine.RouteTrustedInput
	switch mode {
	case "":
		mode = engine.TypeInsert
	case engine.TypeInsert:
	case engine.TypeKeystrokes:
		route = engine.RouteKeyboard
	default:
		return engine.Refused(e.argument(op, "invalid_argument", "mode"))
	}
	if len(req.Text) > maxTyped {
		return engine.Refused(e.argument(op, "too_large", "text"))
	}
	if req.Text == "" && !req.Replace {
		return engine.Refused(e.argument(op, "invalid_argument", "text"))
	}
	switch {
	case req.Expected == nil:
	case !req.Replace:
		return engine.Refused(e.argument(op, "invalid_argument", "expected_value"))
	case len(*req.Expected) > maxTyped:
		return engine.Refused(e.argument(op, "too_large", "expected_value"))
	}
	return e.run(ctx, order{op: op, session: req.Session, target: req.TargetID, tab: req.TabID, ref: req.Ref, needsRef: true, action: engine.ActionType, route: route,
		delivery: req.Delivery, requested: utf8.RuneCountInString(req.Text), supported: able[engine.Typer],
		dispatch: func(ctx context.Context, c *call, _ proof, n engine.NodeRef) (engine.Outcome, error) {
			n.Value = req.Expected
			return c.proc.browser.(engine.Typer).Type(ctx, c.tab.key, n, req.Text, mode, req.Replace)
		}})
}

// context opens and closes tabs. A new window would lie above the person's; it is a capability that must be declared like any other.
func (e *Engine) context(ctx context.Context, op engine.Operation, req engine.ContextRequest) engine.Result {
	o := order{op: op, session: req.Session, target: req.TargetID, tab: req.TabID, route: engine.RouteEngine, delivery: req.Delivery, requested: 1, window: true,
		supported: able[engine.ContextKeeper]}
	switch req.Kind {
	case "open":
		var fresh engine.BrowserContext
		o.action = engine.ActionContextOpen
		if o.tab == "" {
			o.tab = e.anyTab(req.Session, req.TargetID)
		}
		o.dispatch = func(ctx context.Context, c *call, p proof, _ engine.NodeRef) (engine.Outcome, error) {
			var err error
			fresh, err = c.proc.browser.(engine.ContextKeeper).OpenContext(ctx, c.tab.key)
			if err != nil {
				return engine.Outcome{}, err
			}
			out := engine.Outcome{Effect: engine.EffectConfirmed, Route: engine.RouteEngine, Trust: engine.TrustNone, Requested: 1, Delivered: 1}
			if fresh.Key == "" || fresh.Window != c.target.key {
				out.Effect, out.Delivered = engine.EffectUnknown, 0
				out.Refusal = &engine.Refusal{Trigger: "wrong_target", Detail: engine.Detail{Reason: "tab_moved"}}
			}
			return out, nil
		}
		o.after = func(_ context.Context, c *call, out *engine.Outcome, rc *engine.Receipt, res *engine.Result) {
			rc.SideEffects.OpenedContext = fresh.Key != ""
			if out.Effect != engine.EffectConfirmed {
				return
			}
			tb, _ := c.target.tab(fresh.Key)
			if !c.session.remember(tb) {
				return
			}
			res.Tab = &engine.Tab{ID: tb.id, Title: bounded(fresh.Title), Active: fresh.Visible}
		}
	case "close":
		o.action = engine.ActionContextClose
		o.dispatch = func(ctx context.Context, c *call, _ proof, _ engine.NodeRef) (engine.Outcome, error) {
			return c.proc.browser.(engine.ContextKeeper).CloseContext(ctx, c.tab.key)
		}
		o.after = func(_ context.Context, c *call, out *engine.Outcome, rc *engine.Receipt, _ *engine.Result) {
			if out.Effect == engine.EffectConfirmed {
				c.tab.close()
				rc.SideEffects.ClosedContext = true
			}
		}
	case "window":
		o.action, o.supported = engine.ActionWindowOpen, nil
	default:
		return engine.Refused(e.argument(op, "invalid_argument", "kind"))
	}
	return e.run(ctx, o)
}

// anyTab names a tab of a target, for an operation on the window that needs one tab to find it by.
func (e *Engine) anyTab(sessionID, targetID string) string {
	s := e.session(sessionID)
	if s == nil {
		return ""
	}
	s.mu.Lock()
	t := s.targets[targetID]
	s.mu.Unlock()
	if t == nil {
		return ""
	}
	if open := t.open(); len(open) > 0 {
		return open[0].id
	}
	return ""
}

// remember makes a tab addressable, unless the session has ended meanwhile.
func (s *session) remember(tb *tab) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.tabs[tb.id] = tb
	return true
}

// gestures maps the kinds of browser_pointer to actions.
var gestures = map[string]engine.Action{"hover": engine.ActionHover, "double": engine.ActionDoubleClick, "double_click": engine.ActionDoubleClick,
	"right": engine.ActionRightClick, "right_click": engine.ActionRightClick, "scroll": engine.ActionScroll, "drag": engine.ActionDrag}

// act answers the tools that share one shape. Each is one capability, proved and looked up like any other, and performed by an
// [engine.Actor].
func (e *Engine) act(ctx context.Context, op engine.Operation, req engine.ActRequest) engine.Result {
	o := order{op: op, session: req.Session, target: req.TargetID, tab: req.TabID, ref: req.Ref, route: req.Route, delivery: req.Delivery, requested: 1,
		supported: able[engine.Actor]}
	standard := engine.RouteTrustedInput
	switch op {
	case engine.OpPointer:
		action, ok := gestures[req.Kind]
		if !ok {
			return engine.Refused(e.argument(op, "invalid_argument", "kind"))
		}
		o.action, o.needsRef = action, true
	case engine.OpSelect:
		o.action, o.needsRef = engine.ActionSelect, true
	case engine.OpDialog:
		o.action, standard = engine.ActionDialog, engine.RouteEngine
	case engine.OpUpload:
		o.action, o.needsRef, standard = engine.ActionUpload, true, engine.RouteEngine
	case engine.OpDownload:
		o.action, o.needsRef = engine.ActionDownload, true
	case engine.OpScreenshot:
		o.action, standard = engine.ActionScreenshot, engine.RouteEngine
	}
	if o.route == "" {
		o.route = standard
	}
	if !slices.Contains(engine.Routes, o.route) {
		return engine.Refused(e.argument(op, "invalid_argument", "input_route"))
	}
	if len(req.Text) > maxTyped {
		return engine.Refused(e.argument(op, "too_large", "text"))
	}
	// A ref is asked for only where the action is offered at all, so that an undeclared action is called undeclared.
	o.needsRef = o.needsRef && e.offers(o.action)
	o.dispatch = func(ctx context.Context, c *call, p proof, n engine.NodeRef) (engine.Outcome, error) {
		gesture := engine.Gesture{Action: o.action, Route: o.route, Kind: req.Kind, Text: req.Text, Files: req.Files, Root: req.Root}
		if req.Ref != "" {
			gesture.Node = &n
		}
		if req.ToRef != "" {
			to, r := c.node(req.ToRef, p)
			if r != nil {
				return engine.Outcome{}, r
			}
			gesture.To = &to
		}
		return c.proc.browser.(engine.Actor).Act(ctx, c.tab.key, gesture)
	}
	return e.run(ctx, o)
}

// offers says whether an action is declared anywhere.
func (e *Engine) offers(a engine.Action) bool {
	for cap, claim := range e.claims {
		if cap.Action == a && claim.Declared {
			return true
		}
	}
	return false
}

// bounded makes text from a page fit for a result: valid UTF-8 of at most [maxText] bytes, cut between code points.
func bounded(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if len(s) <= maxText {
		return s
	}
	cut := maxText
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}

func refOf(snapshot string, index int) string { return fmt.Sprintf("%s:%d", snapshot, index) }
