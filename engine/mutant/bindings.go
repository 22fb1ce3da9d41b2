package mutant

import (
	"context"
	"encoding/json"

	"github.com/engine-acceptance/acceptance/engine"
)

// bindings are defects of binding windows.
func bindings() []Mutant {
	return []Mutant{
		{Name: "binds-the-first-window", Seam: SeamStore, Text: "gives the first bound window for every window", Rows: []string{"several-windows"},
			Kills: kills("B3", "effect_missing", "B3", "effect_wrong", "M17", "receipt_untrue"),
			parts: func(p *Parts) { p.Wrap = func(n engine.Engine) engine.Engine { return &firstWindow{n: n} } }},
		{Name: "guesses-between-twins", Seam: SeamReceipt, Text: "takes the older of two windows that both fit, and calls it exact", Rows: []string{"twins-of-the-person"},
			Kills: kills("B5", "refusal_missing"),
			parts: func(p *Parts) { p.Wrap = func(n engine.Engine) engine.Engine { return &guesses{n: n} } }},
	}
}

// firstWindow answers every bind with the first target that the row was given, and every snapshot of it with the first snapshot.
type firstWindow struct {
	n        next
	binds    int
	target   *engine.Target
	snapshot *engine.Snapshot
}

// Call implements [engine.Engine].
func (f *firstWindow) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	mode := text(args, "mode")
	switch {
	case op != engine.OpState:
	case mode == string(engine.ModeBind):
		// The arrangement binds once, the row twice.
		if f.binds++; f.binds == 3 {
			return engine.Result{Status: engine.StatusOK, Target: f.target}, nil
		}
	case f.snapshot != nil:
		return engine.Result{Status: engine.StatusOK, Snapshot: f.snapshot}, nil
	}
	r, err := f.n.Call(ctx, op, args)
	if r.Target != nil {
		f.target = r.Target
	}
	if r.Snapshot != nil {
		f.snapshot = r.Snapshot
	}
	return r, err
}

// guesses answers an ambiguity with the target that it bound last.
type guesses struct {
	n    next
	last *engine.Target
}

// Call implements [engine.Engine].
func (g *guesses) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	r, err := g.n.Call(ctx, op, args)
	switch {
	case err != nil:
	case r.Target != nil:
		g.last = r.Target
	case r.Refusal != nil && r.Refusal.Code == engine.CodeBindingAmbiguous && g.last != nil:
		return engine.Result{Status: engine.StatusOK, Target: g.last}, nil
	}
	return r, err
}
