package mutant

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
)

// capabilities are defects of what a capability binds, and of what is said when one is refused.
func capabilities() []Mutant {
	return []Mutant{
		{Name: "retries-after-a-cut", Seam: SeamReceipt, Text: "binds anew after a cut and clicks a second time", Rows: []string{"middle-of-a-click"},
			Kills: kills("G2", "effect_repeated", "G2", "effect_wrong", "G2", "receipt_unexpected"),
			parts: func(p *Parts) {
				p.Wrap = func(n engine.Engine) engine.Engine { return &retries{n: n, refs: map[string]engine.Ref{}} }
			}},
		{Name: "mixes-documents", Seam: SeamAdapter, Text: "joins half a list of one document with half a list of the next", Rows: []string{"race-of-snapshots"},
			Kills: kills("G8", "snapshot_wrong"),
			parts: func(p *Parts) {
				p.Adapter = adapterWith{p.Adapter, func(b engine.Browser) engine.Browser { return mixes{twice{b}, &lastList{}} }}
			}},
		{Name: "takes-any-session", Seam: SeamStore, Text: "serves a target to whoever names it", Rows: []string{"components-one-swapped"},
			Kills: kills("G16", "stale_accepted", "G16", "effect_elsewhere"),
			parts: func(p *Parts) {
				p.Wrap = func(n engine.Engine) engine.Engine { return &anySession{n: n, owner: map[string]string{}} }
			}},
		{Name: "stands-in-with-the-pointer", Seam: SeamDesk, Text: "moves the person's pointer where it refuses an action", Rows: []string{"foreground-never-stands-in"},
			Kills: kills("D3", "pointer_moved", "D3", "pointer_warped", "R5", "pointer_moved", "R5", "pointer_warped"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				r, err := n.Call(ctx, op, args)
				if err == nil && r.Refusal != nil && op == engine.OpPointer {
					act(warp)
				}
				return r, err
			})},
		{Name: "hints-in-vain", Seam: SeamReceipt, Text: "names a next step that does not help", Rows: []string{"hints-that-help"},
			Kills: kills("R9", "refusal_wrong"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				r, err := n.Call(ctx, op, args)
				if err == nil && r.Refusal != nil && r.Refusal.Detail.NextAction == "bind" {
					r.Refusal.Detail.NextAction = "session_start"
				}
				return r, err
			})},
		{Name: "calls-a-script-trusted", Seam: SeamAdapter, Text: "clicks by script and reports trusted input", Rows: []string{"trust-is-earned"},
			Kills: kills("R11", "trust_wrong", "M17", "receipt_untrue"),
			parts: func(p *Parts) {
				p.Adapter = adapterWith{p.Adapter, func(b engine.Browser) engine.Browser { return scripted{twice{b}} }}
			}},
	}
}

// retries remembers what was bound and listed last, and makes a click that was cut again on what it binds anew.
type retries struct {
	n next

	mu   sync.Mutex
	bind json.RawMessage
	refs map[string]engine.Ref
}

// Call implements [engine.Engine].
func (t *retries) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	r, err := t.n.Call(ctx, op, args)
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Target != nil {
		t.bind = args
	}
	if r.Snapshot != nil {
		for _, ref := range r.Snapshot.Refs {
			t.refs[ref.Ref] = ref
		}
	}
	if err != nil || op != engine.OpClick || r.Receipt == nil || r.Receipt.Effect != engine.EffectUnknown {
		return r, err
	}
	was := t.refs[text(args, "ref")]
	time.Sleep(1500 * time.Millisecond) // the page is in the middle of something
	bound, err := t.n.Call(ctx, engine.OpState, t.bind)
	if err != nil || bound.Target == nil || len(bound.Target.Tabs) == 0 {
		return r, err
	}
	args = with(with(args, "target_id", bound.Target.ID), "tab_id", bound.Target.Tabs[0].ID)
	listed, err := t.n.Call(ctx, engine.OpState, with(withoutField(args, "ref", "input_route"), "mode", engine.ModeSnapshot))
	if err != nil || listed.Snapshot == nil {
		return r, err
	}
	for _, ref := range listed.Snapshot.Refs {
		if ref.Role == was.Role && ref.Name == was.Name {
			return t.n.Call(ctx, op, with(args, "ref", ref.Ref))
		}
	}
	return r, nil
}

// mixes joins half of what it listed last with half of what it lists now.
type mixes struct {
	twice
	last *lastList
}

type lastList struct {
	mu   sync.Mutex
	page engine.PageSnapshot
}

func (m mixes) Snapshot(ctx context.Context, c engine.ContextKey, most int) (engine.PageSnapshot, error) {
	now, err := m.twice.Snapshot(ctx, c, most)
	if err != nil {
		return now, err
	}
	m.last.mu.Lock()
	defer m.last.mu.Unlock()
	before := m.last.page
	m.last.page = now
	if before.Document == "" || before.Document == now.Document || len(before.Nodes) < 2 || len(now.Nodes) < 2 {
		return now, nil
	}
	now.Nodes = append(append([]engine.PageNode{}, before.Nodes[:len(before.Nodes)/2]...), now.Nodes[len(now.Nodes)/2:]...)
	return now, nil
}

// anySession puts the session that a target was bound in, in the place of the one that calls.
type anySession struct {
	n next

	mu    sync.Mutex
	owner map[string]string
}

// Call implements [engine.Engine].
func (a *anySession) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	a.mu.Lock()
	if owner := a.owner[text(args, "target_id")]; owner != "" && op == engine.OpClick {
		args = with(args, "session", owner)
	}
	a.mu.Unlock()
	r, err := a.n.Call(ctx, op, args)
	if r.Target != nil {
		a.mu.Lock()
		a.owner[r.Target.ID] = text(args, "session")
		a.mu.Unlock()
	}
	return r, err
}

// scripted clicks by script and says what it was asked for.
type scripted struct{ twice }

func (s scripted) Click(ctx context.Context, c engine.ContextKey, n engine.NodeRef, route engine.Route) (engine.Outcome, error) {
	if route != engine.RouteTrustedInput {
		return able(s.Browser).Click(ctx, c, n, route)
	}
	out, err := able(s.Browser).Click(ctx, c, n, engine.RouteDOMEvent)
	if err == nil {
		out.Route, out.Trust = route, engine.TrustTrustedInput
	}
	return out, err
}
