package attempt

import (
	"context"
	"encoding/json"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/stage"
)

// Aim says what a call is about, for the judge: the tab it goes to, and how many code points it should type.
type Aim struct {
	Tab   *Tab
	Chars int
}

// hangMargin is what a call gets beyond the row's budget before it is given up: enough to tell late from never.
const hangMargin = 2 * time.Second

// Call makes one call of the engine, closes its window of time on every oracle, and observes both. The result is nil when none came. A
// refusal is a result.
func (a *Attempt) Call(ctx context.Context, op engine.Operation, args map[string]any, aim Aim) (*engine.Result, error) {
	if m := memberOf(ctx); m != nil {
		return a.callInGroup(ctx, m, op, args, aim)
	}
	if l := laneOf(ctx); l != nil {
		return a.laneCall(ctx, *l, op, args, aim)
	}
	if err := a.collect(ctx); err != nil { // what came before belongs to the time before
		return nil, err
	}
	refusable := a.expectsRefusal(a.step)
	var before *system
	if refusable {
		s, err := a.look(ctx)
		if err != nil {
			return nil, a.fault("harness", "look at the system before a refusal: %v", err)
		}
		before = s
	}
	body, err := json.Marshal(args)
	if err != nil {
		return nil, a.fault("harness", "encode arguments of %s: %v", op, err)
	}
	call := newCall(op, body, aim)
	call.Arrange = !a.steps
	a.inFlight = true
	raw, result := a.dispatch(ctx, op, body, call)
	a.text.trajectory(a.step, op, body, raw, call.Carrier, call)
	closing, open := a.closeWindow, false
	switch {
	case !a.steps && op != engine.OpPrepare:
		// While the desk is being arranged nothing is judged call by call: what a call did to the desk is collected with the next ones.
		closing = a.closeQuickly
	case op == engine.OpState && !refusable && a.readsOn():
		closing, open = a.closeQuickly, true
	}
	closeErr := closing(ctx)
	call.ClosedNS = stage.Mono()
	a.inFlight = open // until the next call's window is closed
	a.observe(evidence.Observation{Kind: evidence.KindCall, Call: call})
	if closeErr != nil {
		return result, closeErr
	}
	if refusable && result != nil && result.Status == engine.StatusRefused {
		if err := a.unchanged(ctx, before, call.ReplyNS); err != nil {
			return result, err
		}
	}
	return result, nil
}

// readsOn reports whether the step that follows this one is a call that reads or acts, at once and not to be refused. The window of time of a call that reads
// is then closed with that call's: nobody has to say which of the two the desk's unrest came from, for both are charged with it.
func (a *Attempt) readsOn() bool {
	if a.next == nil || a.expectsRefusal(a.next.Name) {
		return false
	}
	switch a.next.Verb {
	case "bind", "snapshot", "click", "type", "navigate":
		return true
	}
	return false
}

// newCall is the observation of a call that is about to be made.
func newCall(op engine.Operation, body []byte, aim Aim) *evidence.Call {
	call := &evidence.Call{Operation: op, ArgsDigest: digest(body), Chars: aim.Chars}
	if aim.Tab != nil {
		call.Page = aim.Tab.Page
	}
	return call
}

// dispatch makes a call and writes into its observation what came back, and when.
func (a *Attempt) dispatch(ctx context.Context, op engine.Operation, body []byte, call *evidence.Call) (json.RawMessage, *engine.Result) {
	budget := a.Contract.Budget
	if op == engine.OpPrepare {
		budget = launchBudget
	}
	call.StartNS = stage.Mono()
	ctx, cancel := context.WithTimeout(ctx, budget+hangMargin)
	raw, carrier := a.Stage.Host.Call(ctx, op, json.RawMessage(body))
	cancel()
	call.ReplyNS, call.Carrier = stage.Mono(), carrier
	if carrier != "" {
		return raw, nil
	}
	r, problems := engine.ParseResult(raw)
	call.Status, call.Refusal, call.Receipt, call.Violations = r.Status, r.Refusal, r.Receipt, problems
	if r.Refusal != nil {
		if err := a.Stage.Refusals.Check(r.Refusal); err != nil {
			call.Violations = append(call.Violations, err.Error())
		}
	}
	call.Bind, call.Snapshot = bindResult(r.Target), snapshotResult(r.Snapshot)
	return raw, &r
}

// launchBudget bounds a launch (design section 13).
const launchBudget = 20 * time.Second

// Must makes a call that later steps rest on: a refusal or a missing result stops the row.
func (a *Attempt) Must(ctx context.Context, op engine.Operation, args map[string]any, aim Aim) (*engine.Result, error) {
	r, err := a.Call(ctx, op, args, aim)
	switch {
	case err != nil:
		return r, err
	case r == nil || r.Status != engine.StatusOK:
		return r, ErrStopped
	}
	return r, nil
}

func (a *Attempt) expectsRefusal(step string) bool {
	for _, r := range a.Contract.Expect.Refusal {
		if r.Of == step && a.steps {
			return true
		}
	}
	return false
}

// bindResult keeps of a target what a judge needs.
func bindResult(t *engine.Target) *evidence.BindResult {
	if t == nil {
		return nil
	}
	b := &evidence.BindResult{Quality: t.Quality, MutationAllowed: t.MutationAllowed, Generation: t.Generation, Posture: t.Posture}
	for _, tab := range t.Tabs {
		switch {
		case tab.Active == nil:
			b.Active = append(b.Active, "null")
		case *tab.Active:
			b.Active = append(b.Active, "true")
		default:
			b.Active = append(b.Active, "false")
		}
	}
	return b
}

// maxNodes bounds the nodes of a snapshot that are kept as an observation.
const maxNodes = 2000

func snapshotResult(s *engine.Snapshot) *evidence.SnapshotResult {
	if s == nil {
		return nil
	}
	out := &evidence.SnapshotResult{Provenance: s.Provenance, Complete: s.Complete, Total: s.TotalNodes}
	for _, r := range s.Refs[:min(len(s.Refs), maxNodes)] {
		out.Nodes = append(out.Nodes, matrix.RoleName{Role: r.Role, Name: r.Name, Frame: r.Frame})
	}
	return out
}
