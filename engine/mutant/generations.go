package mutant

import (
	"context"
	"encoding/json"

	"github.com/engine-acceptance/acceptance/engine"
)

// generations are defects of what must become stale.
func generations() []Mutant {
	return []Mutant{
		{Name: "pretends-after-a-cut", Seam: SeamReceipt, Text: "answers with a sound receipt after the connection is gone", Rows: []string{"cut-then-rebind"},
			Kills: kills("G1", "stale_accepted", "M17", "receipt_untrue"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				r, err := n.Call(ctx, op, args)
				if err == nil && r.Refusal != nil && r.Refusal.Code == engine.CodeBindingStale && (op == engine.OpClick || op == engine.OpType || op == engine.OpNavigate) {
					return engine.Result{Status: engine.StatusOK, Receipt: sound(op, engine.ActionType, "g-old", len([]rune(text(args, "text"))))}, nil
				}
				return r, err
			})},
		{Name: "revives-old-refs", Seam: SeamStore, Text: "finds the control of an old ref again by role and name and acts on it", Rows: []string{"snapshot-newer-retires", "navigation-retires-refs*"},
			Kills: kills("G6", "stale_accepted", "G6", "effect_elsewhere", "G7", "stale_accepted", "G7", "effect_elsewhere"),
			parts: func(p *Parts) {
				p.Wrap = func(n engine.Engine) engine.Engine { return &revives{n: n, known: map[string]engine.Ref{}} }
			}},
		{Name: "keeps-ended-sessions", Seam: SeamStore, Text: "reports the end of a session and goes on serving it", Rows: []string{"session-end-revokes"},
			Kills: kills("G5", "stale_accepted", "S1", "process_left", "S1", "profile_left"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				if op == engine.OpSessionEnd {
					return engine.Result{Status: engine.StatusOK}, nil
				}
				return n.Call(ctx, op, args)
			})},
	}
}

// revives replaces a retired ref by the newest one with the same role and name.
type revives struct {
	n      next
	known  map[string]engine.Ref
	newest []engine.Ref
}

// Call implements [engine.Engine].
func (v *revives) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	r, err := v.n.Call(ctx, op, args)
	if err == nil && r.Snapshot != nil {
		v.newest = r.Snapshot.Refs
		for _, ref := range v.newest {
			v.known[ref.Ref] = ref
		}
	}
	if err != nil || r.Refusal == nil || r.Refusal.Code != engine.CodeRefStale {
		return r, err
	}
	if r.Refusal.Detail.Reason == "document" {
		if _, err := v.Call(ctx, engine.OpState, with(withoutField(args, "ref", "text", "input_route", "replace"), "mode", "snapshot")); err != nil {
			return r, err
		}
	}
	old := v.known[text(args, "ref")]
	for _, ref := range v.newest {
		if ref.Role == old.Role && ref.Name == old.Name {
			return v.n.Call(ctx, op, with(args, "ref", ref.Ref))
		}
	}
	return r, err
}

func withoutField(args json.RawMessage, names ...string) json.RawMessage {
	m := fields(args)
	for _, name := range names {
		delete(m, name)
	}
	b, err := json.Marshal(m)
	if err != nil {
		return args
	}
	return b
}
