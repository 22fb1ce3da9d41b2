package mutant

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
)

// changes are defects of noticing what a page did by itself between the snapshot and the action.
func changes() []Mutant {
	return []Mutant{
		{Name: "clicks-the-look-alike", Seam: SeamAdapter, Text: "clicks the control that has role and name of one that is gone", Rows: []string{"changed-nodes-by-key"},
			Kills: kills("G9", "stale_accepted", "G9", "effect_elsewhere"),
			parts: clickingInstead(func(ctx context.Context, b abilities, c engine.ContextKey, n engine.NodeRef, route engine.Route, r *engine.Refusal) (engine.Outcome, error) {
				if r.Trigger == "ref_retired" {
					if same := findAgain(ctx, b, c, n, func(p engine.PageNode) bool { return p.Role == n.Role && p.Name == n.Name }); same.Node != "" {
						return b.Click(ctx, c, same, route)
					}
				}
				return engine.Outcome{}, r
			})},
		{Name: "clicks-through-the-cover", Seam: SeamAdapter, Text: "clicks by script what is covered", Rows: []string{"changed-nodes-by-pointer"},
			Kills: kills("G9", "refusal_missing", "G9", "effect_elsewhere"),
			parts: clickingInstead(func(ctx context.Context, b abilities, c engine.ContextKey, n engine.NodeRef, _ engine.Route, r *engine.Refusal) (engine.Outcome, error) {
				if r.Detail.Limitation == "covered" {
					return b.Click(ctx, c, n, engine.RouteDOMEvent)
				}
				return engine.Outcome{}, r
			})},
		{Name: "goes-by-the-node-alone", Seam: SeamAdapter, Text: "clicks a control that is called something else than when it was listed", Rows: []string{"outside-changes-noticed"},
			Kills: kills("M13", "stale_accepted", "M13", "effect_elsewhere"),
			parts: clickingInstead(func(ctx context.Context, b abilities, c engine.ContextKey, n engine.NodeRef, route engine.Route, r *engine.Refusal) (engine.Outcome, error) {
				if r.Trigger == "ref_retired" {
					if same := findAgain(ctx, b, c, n, func(p engine.PageNode) bool { return p.Node == n.Node }); same.Node != "" {
						return b.Click(ctx, c, same, route)
					}
				}
				return engine.Outcome{}, r
			})},
		{Name: "replaces-whatever-is-there", Seam: SeamReceipt, Text: "forgets which value it was to replace", Rows: []string{"outside-changes-noticed"},
			Kills: kills("M13", "refusal_missing", "M13", "effect_elsewhere"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				if op == engine.OpType {
					args = withoutField(args, "expected_value")
				}
				return n.Call(ctx, op, args)
			})},
		{Name: "tells-the-listed-value", Seam: SeamReceipt, Text: "reports as replaced what the snapshot had listed", Rows: []string{"outside-changes-noticed"},
			Kills: kills("M13", "receipt_unexpected", "M17", "receipt_untrue"),
			parts: edited(func(op engine.Operation, r *engine.Receipt) {
				if listed := "30"; op == engine.OpType && r.ValueBefore != nil && *r.ValueBefore == "31" {
					r.ValueBefore = &listed
				}
			})},
		{Name: "waits-behind-a-dialog", Seam: SeamReceipt, Text: "answers every call late once a dialog was met", Rows: []string{"dialog-holds-up-nothing"},
			Kills: kills("M19", "refusal_late", "M19", "budget_missed"),
			parts: func(p *Parts) { p.Wrap = func(n engine.Engine) engine.Engine { return &heldUp{n: n} } }},
	}
}

// clickingInstead asks what to do when a click is refused.
func clickingInstead(then func(context.Context, abilities, engine.ContextKey, engine.NodeRef, engine.Route, *engine.Refusal) (engine.Outcome, error)) func(*Parts) {
	return func(p *Parts) {
		p.Adapter = adapterWith{p.Adapter, func(b engine.Browser) engine.Browser { return instead{twice{b}, then} }}
	}
}

// instead is the healthy browser but for clicks; the clicks of what it wraps are not used.
type instead struct {
	twice
	then func(context.Context, abilities, engine.ContextKey, engine.NodeRef, engine.Route, *engine.Refusal) (engine.Outcome, error)
}

func (i instead) Click(ctx context.Context, c engine.ContextKey, n engine.NodeRef, route engine.Route) (engine.Outcome, error) {
	out, err := able(i.Browser).Click(ctx, c, n, route)
	if r := engine.AsRefusal(err); r != nil {
		return i.then(ctx, able(i.Browser), c, n, route, r)
	}
	return out, err
}

// findAgain lists the page anew and returns the first node that fits, with what it is called now.
func findAgain(ctx context.Context, b abilities, c engine.ContextKey, n engine.NodeRef, fits func(engine.PageNode) bool) engine.NodeRef {
	snap, err := b.Snapshot(ctx, c, 1000)
	if err != nil {
		return engine.NodeRef{}
	}
	for _, p := range snap.Nodes {
		if fits(p) {
			return engine.NodeRef{Document: snap.Document, Node: p.Node, Role: p.Role, Name: p.Name}
		}
	}
	return engine.NodeRef{}
}

// heldUp is slow from the first refusal for a dialog on.
type heldUp struct {
	n   next
	met atomic.Bool
}

// Call implements [engine.Engine].
func (h *heldUp) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	r, err := h.n.Call(ctx, op, args)
	if err == nil && r.Refusal != nil && r.Refusal.Trigger == "dialog" {
		h.met.Store(true)
	}
	if h.met.Load() {
		time.Sleep(1300 * time.Millisecond)
	}
	return r, err
}
