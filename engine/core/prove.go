package core

import (
	"context"
	"slices"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
)

// tolerance is how far native and protocol rectangles may lie apart, in device pixels of the root, on each edge: rounding at scale 2 and the
// shadow of client-side decorations stay below it.
const tolerance = 8

// settleStep is the time between two looks at a window that has not settled.
const settleStep = 15 * time.Millisecond

func near(a, b engine.Rect) bool {
	return within(a.X, b.X) && within(a.Y, b.Y) && within(a.W, b.W) && within(a.H, b.H)
}

func within(a, b int) bool { return a-b <= tolerance && b-a <= tolerance }

// call is one operation on a tab, from its proof to its receipt.
type call struct {
	e       *Engine
	op      engine.Operation
	session *session
	proc    *process
	target  *target
	tab     *tab
	started time.Time
	proved  time.Time
}

// proof is what the re-proof found.
type proof struct {
	window  engine.NativeWindow
	context engine.BrowserContext
}

// resolve finds target and tab of a session in the store; nothing is asked of the browser.
func (e *Engine) resolve(op engine.Operation, s *session, targetID, tabID string) (*target, *tab, *engine.Refusal) {
	s.mu.Lock()
	t, proc := s.targets[targetID], s.proc
	tb := s.tabs[tabID]
	s.mu.Unlock()
	if t == nil {
		generation := ""
		if proc != nil {
			generation = proc.generation
		}
		return nil, nil, e.unknownTarget(op, generation)
	}
	if t.proc != proc || t.proc.lost() {
		return nil, nil, e.stale(op, s, t.proc)
	}
	t.mu.Lock()
	gone := t.gone
	t.mu.Unlock()
	if gone {
		return nil, nil, e.windowGone(op, t)
	}
	if tabID == "" {
		open := t.open()
		switch len(open) {
		case 1:
			return t, open[0], nil
		case 0:
			return nil, nil, e.refuse(op, "tab_gone", engine.Detail{Reason: "closed"})
		}
		return nil, nil, e.refuse(op, "tab_required", engine.Detail{CandidateCount: len(open)})
	}
	if tb == nil || tb.target != t {
		return nil, nil, e.unknownTarget(op, t.proc.generation)
	}
	if tb.isClosed() {
		return nil, nil, e.refuse(op, "tab_gone", engine.Detail{Reason: "closed"})
	}
	return t, tb, nil
}

func (e *Engine) windowGone(op engine.Operation, t *target) *engine.Refusal {
	return e.refuse(op, "generation_changed", engine.Detail{Reason: "window", Generation: t.proc.generation, NextAction: "bind"})
}

// proveProcess proves everything below the window: session, generation, connection, process, endpoint.
func (e *Engine) proveProcess(ctx context.Context, op engine.Operation, s *session, p *process) *engine.Refusal {
	if !s.alive() {
		return e.noSession(op)
	}
	if s.process() != p || p.lost() {
		return e.stale(op, s, p)
	}
	if err := e.cfg.Native.SameProcess(ctx, p.id); err != nil {
		if r := engine.AsRefusal(err); r != nil && r.Trigger == "generation_changed" {
			e.declareLost(p)
		}
		return e.adopt(ctx, op, s, p, err)
	}
	if err := e.cfg.Native.OwnsEndpoint(ctx, p.id, p.browser.Endpoint()); err != nil {
		return e.adopt(ctx, op, s, p, err)
	}
	return nil
}

// prove is the whole re-proof of one tab.
func (c *call) prove(ctx context.Context) (proof, *engine.Refusal) {
	e := c.e
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Budgets.Proof)
	defer cancel()
	if r := e.proveProcess(ctx, c.op, c.session, c.proc); r != nil {
		return proof{}, r
	}
	var deadline time.Time
	for {
		var p proof
		var err error
		if p.window, err = e.cfg.Native.Window(ctx, c.target.native, c.proc.id); err != nil {
			r := e.adopt(ctx, c.op, c.session, c.proc, err)
			if r.Trigger == "generation_changed" && r.Detail.Reason == "window" {
				c.target.mu.Lock()
				c.target.gone = true
				c.target.mu.Unlock()
			}
			return p, r
		}
		if p.context, err = c.proc.browser.Locate(ctx, c.tab.key); err != nil {
			r := e.adopt(ctx, c.op, c.session, c.proc, err)
			if r.Trigger == "tab_gone" && r.Detail.Reason == "closed" {
				c.tab.close()
			}
			return p, r
		}
		if p.context.Key != c.tab.key {
			return p, e.refuse(c.op, "protocol_violation", engine.Detail{})
		}
		if p.context.Window != c.target.key {
			return p, e.refuse(c.op, "wrong_target", engine.Detail{Reason: "tab_moved"})
		}
		// A minimised window's rectangle is what it was, or nothing; owner and identity were proved above.
		if p.window.Minimised || near(p.window.Bounds, p.context.Bounds) {
			if c.proc.lost() {
				return p, e.stale(c.op, c.session, c.proc)
			}
			c.proved = time.Now()
			return p, nil
		}
		if deadline.IsZero() {
			deadline = time.Now().Add(e.cfg.Budgets.Settle)
		}
		if time.Now().After(deadline) {
			return p, e.refuse(c.op, "wrong_target", engine.Detail{Reason: "not_exact"})
		}
		if err := pause(ctx, settleStep); err != nil {
			return p, e.adopt(ctx, c.op, c.session, c.proc, err)
		}
	}
}

// pause waits, no longer than ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// visibility says whether the tab is the one that its window shows, where that can be proved: by the adapter, or because the window has no
// other tab now.
func (c *call) visibility(ctx context.Context, p proof) (*bool, *engine.Refusal) {
	if p.context.Visible != nil {
		v := *p.context.Visible
		return &v, nil
	}
	all, err := c.proc.browser.Contexts(ctx)
	if err != nil {
		return nil, c.e.adopt(ctx, c.op, c.session, c.proc, err)
	}
	count := 0
	for _, bc := range all {
		if bc.Window == c.target.key {
			count++
		}
	}
	if count == 1 {
		yes := true
		return &yes, nil
	}
	return nil, nil
}

// permit checks that the action is declared in the state in which tab and window are. Where declared states do not differ, the state is not
// asked for; where it cannot be told, every state that it may be must be declared.
func (c *call) permit(ctx context.Context, p proof, visible *bool, action engine.Action, route engine.Route, delivery engine.Delivery) *engine.Refusal {
	declared := func(s engine.State) bool {
		return c.e.claims[engine.Capability{Action: action, Route: route, Delivery: delivery, State: s}].Declared
	}
	no := func(s engine.State) *engine.Refusal {
		return c.e.notDeclared(c.op, engine.Capability{Action: action, Route: route, Delivery: delivery, State: s})
	}
	if p.window.Minimised {
		if !declared(engine.StateMinimised) {
			return no(engine.StateMinimised)
		}
		return nil
	}
	if (visible == nil || !*visible) && !declared(engine.StateInactiveTab) {
		return no(engine.StateInactiveTab)
	}
	if visible != nil && !*visible {
		return nil
	}
	shown := []engine.State{engine.StateCovered, engine.StatePartlyCovered, engine.StateVisibleTab}
	count := 0
	for _, s := range shown {
		if declared(s) {
			count++
		}
	}
	if count == len(shown) {
		return nil
	}
	occluder, ok := c.e.cfg.Native.(engine.Occluder)
	if !ok {
		for _, s := range shown {
			if !declared(s) {
				return no(s)
			}
		}
		return nil
	}
	s, err := occluder.Cover(ctx, c.target.native)
	if err != nil {
		return c.e.adopt(ctx, c.op, c.session, c.proc, err)
	}
	if !declared(s) {
		return no(s)
	}
	return nil
}

// notDeclared refuses one capability. Where the declaration says that the route would touch the desk, the refusal says so, and names a route
// that is declared in the same state.
func (e *Engine) notDeclared(op engine.Operation, c engine.Capability) *engine.Refusal {
	limitation := e.claims[c].Limitation
	if tr, ok := e.table.Trigger("would_touch_desk"); ok && slices.Contains(tr.Closed["limitation"], limitation) {
		d := engine.Detail{RequestedRoute: c.Route, Limitation: limitation}
		for _, r := range engine.Routes {
			other := c
			other.Route = r
			if e.claims[other].Declared {
				d.AlternativeRoute = r
				break
			}
		}
		return e.refuse(op, tr.ID, d)
	}
	return e.refuse(op, "undeclared", engine.Detail{Action: c.Action, Route: c.Route, State: c.State})
}
