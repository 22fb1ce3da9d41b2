package cdp

import (
	"context"
	"errors"
	"math"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"github.com/engine-acceptance/acceptance/engine"
)

var _ engine.Clicker = (*Browser)(nil)

// probe is what js/probe.js returns.
type probe struct {
	Connected bool    `json:"connected"`
	Rendered  bool    `json:"rendered"`
	Disabled  bool    `json:"disabled"`
	X         float64 `json:"x"`
	Y         float64 `json:"y"`
	Hit       string  `json:"hit"`
	Key       string  `json:"key"`
	File      bool    `json:"file"`
	Picker    bool    `json:"picker"`
	Opens     bool    `json:"opens"`
	Checkable bool    `json:"checkable"`
	Checked   bool    `json:"checked"`
}

// clicked is what js/clicks.js returns.
type clicked struct {
	Clicks  int  `json:"clicks"`
	Checked bool `json:"checked"`
}

// Click activates a node once. The effect is unverifiable, but for checkboxes and radio buttons, whose state is read back, and but for
// input after which the document saw no trusted click: suspected_noop.
//
//   - trusted_input: mouse events through the browser's input path, only in a tab proved parked; elsewhere would_touch_desk.
//   - keyboard: focus and Enter or Space: a trusted click without pointer events, for controls that a key activates.
//   - dom_event: element.click() from an isolated world: not trusted.
//
// A click that opens a dialog returns without its release being answered: unverifiable.
func (b *Browser) Click(ctx context.Context, c engine.ContextKey, n engine.NodeRef, route engine.Route) (engine.Outcome, error) {
	out := engine.Outcome{Route: route, Trust: engine.TrustTrustedInput, Requested: 1}
	fail := func(err error) (engine.Outcome, error) {
		return engine.Outcome{}, refuse(engine.OpClick, engine.ActionClick, route, err)
	}
	switch route {
	case engine.RouteTrustedInput, engine.RouteKeyboard:
	case engine.RouteDOMEvent:
		out.Trust = engine.TrustDOMEvent
	default:
		return fail(unavailable(engine.OpClick, "undeclared", "undeclared", engine.ActionClick, route))
	}
	s, leave, err := b.enter(ctx, c)
	if err != nil {
		return fail(err)
	}
	defer leave()
	ctx, stop := s.whileDocument(ctx)
	defer stop()
	standing := b.stand(ctx, c, s)
	t, p, err := b.look(ctx, s, n, route != engine.RouteDOMEvent)
	st := <-standing
	if err = errors.Join(st.err, err); err != nil {
		return fail(err)
	}
	defer t.s.release()
	fail = func(err error) (engine.Outcome, error) {
		t.s.on(t.object, clicksScript).forget() // ends the count
		return engine.Outcome{}, refuse(engine.OpClick, engine.ActionClick, route, err)
	}
	trusted := route == engine.RouteTrustedInput
	if trusted && st.parked && p.Hit == "offscreen" && p.Rendered && !p.Disabled {
		if p, err = resultOf[probe](ctx, t.s.on(t.object, probeScript, true, true)); err != nil {
			return fail(err)
		}
	}
	if p.Rendered && t.ignored {
		return fail(errNode)
	}
	if err := admit(p, st, route); err != nil {
		return fail(err)
	}
	if route != engine.RouteDOMEvent {
		was := s.emulates()
		if st.parked {
			if err := s.emulate(ctx); err != nil {
				return fail(err)
			}
		}
		if err := s.settle(ctx); err != nil {
			return fail(err)
		}
		if was != s.emulates() {
			// The page was told that it is visible: what it does about that may move the control.
			if p, err = resultOf[probe](ctx, t.s.on(t.object, probeScript, trusted, true)); err != nil {
				return fail(err)
			}
			if err := admit(p, st, route); err != nil {
				return fail(err)
			}
		}
	}
	out.FocusEmulated = s.emulates()
	var last *pending
	switch route {
	case engine.RouteTrustedInput:
		x, y, err := b.point(ctx, t, p)
		if err != nil {
			return fail(err)
		}
		last = s.press(x, y)
	case engine.RouteKeyboard:
		focused, err := resultOf[bool](ctx, t.s.on(t.object, focusScript))
		if err != nil {
			return fail(err)
		}
		if !focused {
			return fail(unavailable(engine.OpClick, "undeclared", "undeclared", engine.ActionClick, route))
		}
		last = t.s.key(p.Key)
	case engine.RouteDOMEvent:
		last = t.s.on(t.object, pressScript)
	}
	if last.id == 0 {
		return fail(last.err)
	}
	err = last.wait(ctx, nil)
	out.Effect, out.Delivered = engine.EffectUnverifiable, 1
	switch {
	case errors.Is(err, errDialog), errors.Is(err, errNavigated), navigatedAway(err):
		return out, nil
	case err != nil:
		out.Delivered = 0
		return afterDispatch(out, engine.OpClick, engine.ActionClick, err), nil
	case route == engine.RouteDOMEvent:
		// The contract calls a script's click unverifiable whatever can be read.
		return out, nil
	}
	seen, err := resultOf[clicked](ctx, t.s.on(t.object, clicksScript))
	switch {
	case err != nil: // the click took the document or the node along, or opened a dialog
	case seen.Clicks == 0:
		out.Effect, out.Delivered = engine.EffectSuspectedNoop, 0
	case p.Checkable && seen.Checked != p.Checked:
		out.Effect = engine.EffectConfirmed
	case p.Checkable && !p.Checked:
		out.Effect = engine.EffectSuspectedNoop
	}
	return out, nil
}

// admit refuses what cannot or must not be clicked.
func admit(p probe, st stand, route engine.Route) error {
	touch := func(limitation string, other engine.Route) error {
		return refusal(engine.OpClick, engine.CodeInputTrustUnavailable, "would_touch_desk", engine.Detail{RequestedRoute: route, Limitation: limitation, AlternativeRoute: other})
	}
	switch {
	case !p.Connected:
		return errNode
	case p.Disabled:
		return cannot(engine.OpClick, "disabled", engine.ActionClick, route)
	case !p.Rendered:
		return cannot(engine.OpClick, "hidden", engine.ActionClick, route)
	case p.File || p.Picker || p.Opens:
		// A native chooser, picker, window or tab comes up in front.
		return touch("would_raise", "")
	case route == engine.RouteTrustedInput && !st.parked && p.Key != "":
		return touch("would_raise", engine.RouteKeyboard)
	case route == engine.RouteTrustedInput && !st.parked:
		return touch("would_raise", engine.RouteDOMEvent)
	case route == engine.RouteKeyboard && p.Key == "":
		return unavailable(engine.OpClick, "undeclared", "undeclared", engine.ActionClick, route)
	case route == engine.RouteTrustedInput && p.Hit == "covered":
		return cannot(engine.OpClick, "covered", engine.ActionClick, route)
	case route == engine.RouteTrustedInput && p.Hit != "self":
		return cannot(engine.OpClick, "offscreen", engine.ActionClick, route)
	}
	return nil
}

// look finds the node and looks at it, scrolling nothing. With watch it begins to count clicks.
func (b *Browser) look(ctx context.Context, s *session, n engine.NodeRef, watch bool) (found, probe, error) {
	t, err := b.find(ctx, s, n)
	if err != nil {
		return t, probe{}, err
	}
	p, err := resultOf[probe](ctx, t.s.on(t.object, probeScript, false, watch))
	return t, p, err
}

// found is a node proved to be the one that was listed.
type found struct {
	s      *session // of the node's frame; the page's own unless the frame is of another process
	page   *session
	node   node
	object runtime.RemoteObjectID
	// ignored says that the accessibility tree leaves the node out now, so that role and name could not be compared: it is hidden, or it
	// is no longer what was listed.
	ignored bool
}

// find proves that a ref still names the node that was listed: same document, same node, same role and name.
func (b *Browser) find(ctx context.Context, own *session, ref engine.NodeRef) (found, error) {
	n, ok := parseNode(ref.Node)
	if !ok {
		return found{}, errNode
	}
	if string(ref.Document) != own.document() {
		return found{}, errNavigated
	}
	s := own
	if n.target != s.target {
		s = nil
		for _, c := range b.link.children(own) {
			if c.target == n.target {
				s = c
			}
		}
		if s == nil {
			return found{}, retired("", "frame")
		}
		if err := s.await(ctx); err != nil {
			return found{}, err
		}
	}
	s.keepTree()
	no := false
	ax := s.send("Accessibility.getPartialAXTree", accessibility.GetPartialAXTreeParams{BackendNodeID: n.backend, FetchRelatives: &no})
	object, err := s.resolve(ctx, n)
	if err != nil {
		ax.forget()
		return found{}, s.missing(err)
	}
	var tree axTree
	if err := ax.wait(ctx, &tree); err != nil {
		return found{}, s.missing(err)
	}
	if len(tree.Nodes) == 0 {
		return found{}, errNode
	}
	now := &tree.Nodes[0]
	if !now.Ignored && (now.role() != ref.Role || bounded(now.Name.text(), maxText) != ref.Name) {
		return found{}, errNode
	}
	if string(ref.Document) != own.document() {
		return found{}, errNavigated
	}
	return found{s: s, page: own, node: n, object: object, ignored: now.Ignored}, nil
}

// missing tells a node that is gone from other faults.
func (s *session) missing(err error) error {
	if nodeMissing(err) || contextMissing(err) {
		return errNode
	}
	return err
}

// point returns where to press in the viewport of the page. For a node inside a frame it proves that the page's own hit test reaches that
// frame there, for the frame cannot see what covers it.
func (b *Browser) point(ctx context.Context, t found, p probe) (x, y float64, err error) {
	offscreen := cannot(engine.OpClick, "offscreen", engine.ActionClick, engine.RouteTrustedInput)
	t.s.mu.Lock()
	root := t.s.main
	t.s.mu.Unlock()
	x, y = p.X, p.Y
	if t.node.frame != root {
		quads, err := call(ctx, t.s, dom.GetContentQuads, dom.GetContentQuadsParams{BackendNodeID: t.node.backend})
		if err != nil || len(quads.Quads) == 0 || len(quads.Quads[0]) != 8 {
			return 0, 0, offscreen
		}
		q := quads.Quads[0]
		x, y = (q[0]+q[2]+q[4]+q[6])/4, (q[1]+q[3]+q[5]+q[7])/4
	}
	if t.s == t.page && t.node.frame == root {
		return x, y, nil
	}
	metrics, err := call(ctx, t.page, page.GetLayoutMetrics, cdp.Empty{})
	if err != nil {
		return 0, 0, err
	}
	var owner cdp.BackendNodeID
	if t.s != t.page {
		// A frame of another process lies where its owner element has its content box. Only a frame right below the page's own process is
		// located, and only one that is not rotated or scaled.
		of, err := call(ctx, t.page, dom.GetFrameOwner, dom.GetFrameOwnerParams{FrameID: root})
		if err != nil {
			return 0, 0, offscreen
		}
		owner = of.BackendNodeID
		box, err := call(ctx, t.page, dom.GetBoxModel, dom.GetBoxModelParams{BackendNodeID: owner})
		if err != nil || box.Model == nil || len(box.Model.Content) != 8 {
			return 0, 0, offscreen
		}
		c := box.Model.Content
		if c[1] != c[3] || c[0] != c[6] || x > c[2]-c[0] || y > c[7]-c[1] {
			return 0, 0, offscreen
		}
		x, y = x+c[0], y+c[1]
	}
	v := metrics.CSSVisualViewport
	if v == nil || x < 0 || y < 0 || x >= v.ClientWidth || y >= v.ClientHeight {
		return 0, 0, offscreen
	}
	hit, err := call(ctx, t.page, dom.GetNodeForLocation, dom.GetNodeForLocationParams{X: int64(math.Floor(x + v.PageX)), Y: int64(math.Floor(y + v.PageY))})
	if err != nil || (owner == 0 && hit.FrameID != t.node.frame) || (owner != 0 && hit.BackendNodeID != owner) {
		return 0, 0, cannot(engine.OpClick, "covered", engine.ActionClick, engine.RouteTrustedInput)
	}
	return x, y, nil
}

// emulates says whether the page is told that it has the focus.
func (s *session) emulates() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.emulated
}

// press sends move, press and release without waiting between them, and returns the release; a command with id 0 says that nothing was
// sent.
func (s *session) press(x, y float64) *pending {
	first := s.send("Input.dispatchMouseEvent", input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: x, Y: y})
	if first.id == 0 {
		return first
	}
	first.forget()
	s.send("Input.dispatchMouseEvent", input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMousePressed, X: x, Y: y, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1}).forget()
	return s.send("Input.dispatchMouseEvent", input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseReleased, X: x, Y: y, Button: input.MouseButtonLeft, ClickCount: 1})
}

// key presses and releases Enter or Space and returns the release; a command with id 0 says that nothing was sent.
func (s *session) key(k string) *pending {
	p := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: k, Code: "Space", Text: " ", UnmodifiedText: " ", WindowsVirtualKeyCode: 32, NativeVirtualKeyCode: 32}
	if k == "Enter" {
		p.Code, p.Text, p.UnmodifiedText, p.WindowsVirtualKeyCode, p.NativeVirtualKeyCode = "Enter", "\r", "\r", 13, 13
	}
	first := s.send("Input.dispatchKeyEvent", p)
	if first.id == 0 {
		return first
	}
	first.forget()
	p.Type, p.Text, p.UnmodifiedText = input.DispatchKeyEventTypeKeyUp, "", ""
	return s.send("Input.dispatchKeyEvent", p)
}

// navigatedAway says that the answer was lost because the click did what it was for: the document or its process went away.
func navigatedAway(err error) bool {
	return contextMissing(err) || errorHas(err, "Inspected target navigated or closed") || errorHas(err, "navigated")
}
