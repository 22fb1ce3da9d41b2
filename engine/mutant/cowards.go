package mutant

import (
	"context"
	"encoding/json"

	"github.com/engine-acceptance/acceptance/engine"
)

// cowards are polite and useless: each must come out not_supported (profiles.yaml), and for the core requirement that its own way of refusing leaves
// undelivered. The first is the null engine.
func cowards() []Mutant {
	coward := func(name, doing, requirement, reason string, parts func(*Parts)) Mutant {
		return Mutant{Name: name, Seam: SeamReceipt, Text: doing, Rows: []string{"*"}, Kills: kills(requirement, reason), Coward: true, parts: parts}
	}
	acted := map[engine.Operation]bool{engine.OpNavigate: true, engine.OpClick: true, engine.OpType: true}
	return []Mutant{
		coward("refuses-everything", "declares everything and refuses every call, politely", "S1", "refused", around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
			switch op {
			case engine.OpDeclaration, engine.OpSessionStart, engine.OpSessionEnd:
				return n.Call(ctx, op, args)
			}
			return undeclared(op), nil
		})),
		coward("ambiguous-always", "finds every window ambiguous", "B1", "refused", around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
			if op == engine.OpState && fields(args)["mode"] == string(engine.ModeBind) {
				return refused(engine.CodeBindingAmbiguous, op, "several_fit", engine.Detail{CandidateCount: 2}), nil
			}
			return n.Call(ctx, op, args)
		})),
		coward("stale-after-first-action", "calls everything stale after its first action", "B17", "refused", func(p *Parts) {
			p.Wrap = func(n engine.Engine) engine.Engine { return &staleAfter{n: n, acted: acted, done: map[string]bool{}} }
		}),
		coward("refuses-when-covered", "refuses to act in a covered window, and every window is", "M5", "refused", around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
			if op == engine.OpClick || op == engine.OpType {
				return refused(engine.CodeActionUnavailable, op, "control_cannot", engine.Detail{Limitation: "covered"}), nil
			}
			return n.Call(ctx, op, args)
		})),
		coward("active-always-null", "never says which tab is active", "B17", "bind_wrong", around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
			r, err := n.Call(ctx, op, args)
			if r.Target != nil {
				for i := range r.Target.Tabs {
					r.Target.Tabs[i].Active = nil
				}
			}
			return r, err
		})),
		coward("effect-always-unverifiable", "acts, and reports every effect as unverifiable", "M17", "effect_unconfirmed", edited(func(op engine.Operation, r *engine.Receipt) {
			if acted[op] {
				r.Effect = engine.EffectUnverifiable
			}
		})),
		coward("effect-always-unknown", "acts, and reports every effect as unknown", "M17", "effect_unconfirmed", edited(func(op engine.Operation, r *engine.Receipt) {
			if acted[op] {
				r.Effect = engine.EffectUnknown
			}
		})),
	}
}

// staleAfter refuses a session after its first action.
type staleAfter struct {
	n     next
	acted map[engine.Operation]bool
	done  map[string]bool
}

// Call implements [engine.Engine].
func (s *staleAfter) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	session := text(args, "session")
	if s.done[session] && (s.acted[op] || op == engine.OpState || op == engine.OpContext) {
		return refused(engine.CodeBindingStale, op, "generation_changed", engine.Detail{Reason: "connection", Generation: "g-later"}), nil
	}
	r, err := s.n.Call(ctx, op, args)
	if err == nil && r.Status == engine.StatusOK && s.acted[op] {
		s.done[session] = true
	}
	return r, err
}
