// Package mutant holds engines that are wrong on purpose, each in one way, so that every check of the harness can be seen failing. They
// stand on seams that the healthy engine has anyway: the public side ([engine.Engine]), the adapter, the native proof, and the desk that the
// engine's process can reach like any other. Nothing here is reachable from `acceptance run`.
//
// A mutant declares what it must be killed for: the exact set of (requirement, reason) pairs that its rows report. A mutant that survives, or
// dies of something else, is an error of the harness.
package mutant

import (
	"context"
	"encoding/json"
	"net"

	"github.com/engine-acceptance/acceptance/engine"
)

// Seam is where a mutant stands.
type Seam string

// The closed list of seams (design section 4).
const (
	SeamReceipt Seam = "receipt"
	SeamStore   Seam = "clock_and_store"
	SeamNative  Seam = "native_proof"
	SeamAdapter Seam = "wire"
	SeamDesk    Seam = "desk_act"
)

// Kill is one pair that a mutant must be killed for.
type Kill struct {
	Requirement string `json:"requirement"`
	Reason      string `json:"reason"`
}

// Mutant is one defect.
type Mutant struct {
	Name string
	Seam Seam
	// Text says what it does wrong.
	Text string
	// Rows are globs over row stems: its own rows and their family.
	Rows []string
	// Kills is the exact set that the rows report. A coward is found by many: for it they are what must be among it, so that it is not_supported
	// for its own reason.
	Kills  []Kill
	Coward bool
	// parts changes what the engine is put together from.
	parts func(*Parts)
}

// Parts are what an engine is put together from. Wrap stands between carrier and core, and may be nil.
type Parts struct {
	Adapter engine.Adapter
	Native  engine.NativePlatform
	Wrap    func(engine.Engine) engine.Engine
	// Wire wraps the stream to the browser; nil leaves it as it is. Who sets it leaves Adapter alone.
	Wire func(net.Conn) net.Conn
	// Unguarded leaves out the engine's own guardian, which cleans up after an engine that was killed.
	Unguarded bool
}

// Apply puts the defect into the parts of a healthy engine.
func (m Mutant) Apply(p Parts) Parts {
	m.parts(&p)
	return p
}

// Find returns the mutant of a name.
func Find(name string) (Mutant, bool) {
	for _, m := range All() {
		if m.Name == name {
			return m, true
		}
	}
	return Mutant{}, false
}

// All lists every mutant, cowards last.
func All() []Mutant {
	var out []Mutant
	for _, group := range [][]Mutant{actions(), bindings(), generations(), callers(), losses(), wires(), changes(), capabilities(), proofs(), receipts(), refusals(), setups(), desks(), leaks(), cowards()} {
		out = append(out, group...)
	}
	return out
}

// next is the engine behind a wrapper.
type next = engine.Engine

// around makes a wrapper out of one function.
func around(f func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error)) func(*Parts) {
	return func(p *Parts) {
		p.Wrap = func(n engine.Engine) engine.Engine { return wrapped{n, f} }
	}
}

type wrapped struct {
	n next
	f func(context.Context, next, engine.Operation, json.RawMessage) (engine.Result, error)
}

// Call implements [engine.Engine].
func (w wrapped) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	return w.f(ctx, w.n, op, args)
}

// fields reads the arguments of a call loosely.
func fields(args json.RawMessage) map[string]any {
	m := map[string]any{}
	if json.Unmarshal(args, &m) != nil {
		return map[string]any{}
	}
	return m
}

// with returns the arguments with one field changed.
func with(args json.RawMessage, name string, value any) json.RawMessage {
	m := fields(args)
	m[name] = value
	b, err := json.Marshal(m)
	if err != nil {
		return args
	}
	return b
}

func text(args json.RawMessage, name string) string {
	s, _ := fields(args)[name].(string)
	return s
}

// refused is a well-formed refusal.
func refused(code engine.Code, op engine.Operation, trigger string, d engine.Detail) engine.Result {
	return engine.Refused(&engine.Refusal{Code: code, Operation: op, Trigger: trigger, Detail: d})
}

func undeclared(op engine.Operation) engine.Result {
	return refused(engine.CodeActionUnavailable, op, "undeclared", engine.Detail{Limitation: "undeclared"})
}

// sound is a receipt that looks like success.
func sound(op engine.Operation, action engine.Action, generation string, chars int) *engine.Receipt {
	return &engine.Receipt{Operation: op, Action: action, Effect: engine.EffectConfirmed, Route: engine.RouteTrustedInput, Trust: engine.TrustTrustedInput,
		Delivery: engine.DeliveryBackground, RequestedCount: chars, DeliveredCount: chars, Generation: generation, BrowserInitiated: []string{}}
}

func kills(pairs ...string) []Kill {
	var out []Kill
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, Kill{pairs[i], pairs[i+1]})
	}
	return out
}
