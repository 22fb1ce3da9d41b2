package mutant

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/engine-acceptance/acceptance/engine"
)

// callers are defects that only show when calls meet, or when one is repeated.
func callers() []Mutant {
	return []Mutant{
		{Name: "types-where-the-other-types", Seam: SeamStore, Text: "sends a text to the control of another caller who types at the same moment", Rows: []string{"callers-do-not-interleave"},
			Kills: kills("M6", "effect_wrong"),
			parts: func(p *Parts) { p.Wrap = func(n engine.Engine) engine.Engine { return &sharedFocus{n: n} } }},
		{Name: "tires-of-refusing", Seam: SeamReceipt, Text: "answers a refusal that it gave a dozen times with another code", Rows: []string{"consistent-refusals"},
			Kills: kills("R12", "refusal_wrong"),
			parts: func(p *Parts) {
				p.Wrap = func(n engine.Engine) engine.Engine { return &tires{n: n, given: map[string]int{}} }
			}},
	}
}

// sharedFocus types every third text that meets another into the other's control. Each control gets most of its own text so, whichever caller comes
// first.
type sharedFocus struct {
	n next

	mu    sync.Mutex
	under string // the control of a call that is under way
	busy  int
	met   int
}

// Call implements [engine.Engine].
func (f *sharedFocus) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	if op != engine.OpType {
		return f.n.Call(ctx, op, args)
	}
	f.mu.Lock()
	own := text(args, "ref")
	if f.busy > 0 && own != f.under {
		if f.met++; f.met%3 == 0 {
			args = with(args, "ref", f.under)
		}
	}
	f.under = own
	f.busy++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.busy--
	}()
	return f.n.Call(ctx, op, args)
}

// tires counts the refusals of each trigger and operation.
type tires struct {
	n next

	mu    sync.Mutex
	given map[string]int
}

// Call implements [engine.Engine].
func (t *tires) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	r, err := t.n.Call(ctx, op, args)
	if err != nil || r.Refusal == nil {
		return r, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	kind := string(op) + " " + r.Refusal.Trigger
	if t.given[kind]++; t.given[kind] <= 12 {
		return r, err
	}
	return refused(engine.CodeTabNotFound, op, "tab_gone", engine.Detail{Reason: "closed"}), nil
}
