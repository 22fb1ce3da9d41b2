package evidence

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
)

var update = flag.Bool("update", false, "write the judge vectors anew")

func ptr[T any](v T) *T { return &v }

// typeRow is a row about typing into a covered tab.
func typeRow() matrix.Contract {
	return matrix.Contract{ID: "type-unicode[state=covered]", Stem: "type-unicode", Requirement: "M5", Duty: matrix.DutyEngine, Product: engine.ProductChromium,
		Environment: "x11", Needs: &engine.Capability{Action: engine.ActionType, Route: engine.RouteTrustedInput, Delivery: engine.DeliveryBackground, State: engine.StateCovered},
		Launch: matrix.LaunchShared, Steps: []matrix.Step{{Name: "bind-1", Verb: "bind"}, {Name: "act", Verb: "type", Args: map[string]any{"text": "Ada"}, Background: true}},
		Expect: matrix.Expect{Effect: []matrix.EffectExpect{{Page: "w/tab 1", Control: "full-name", Value: ptr("Ada")}}, Elsewhere: "silent",
			Receipt: []matrix.ReceiptExpect{{Of: "act", Effect: []engine.Effect{engine.EffectConfirmed}, Trust: engine.TrustTrustedInput}}},
		Budget: 5 * time.Second}
}

// refusalRow is a row whose action is not declared.
func refusalRow() matrix.Contract {
	c := typeRow()
	c.ID, c.Stem, c.Requirement, c.Twin = "click-covered", "click-covered", "M3", true
	c.Expect = matrix.Expect{Elsewhere: "silent", Refusal: []matrix.RefusalExpect{{Of: "act", Code: engine.CodeInputTrustUnavailable,
		Trigger: "would_touch_desk", Detail: map[string]string{"limitation": "would_raise"}}}}
	return c
}

// launchRow is a row about launching twice on a profile of its own.
func launchRow() matrix.Contract {
	c := typeRow()
	c.ID, c.Stem, c.Requirement, c.Needs, c.Launch = "isolated-new", "isolated-new", "S1", nil, matrix.LaunchNone
	c.Steps = []matrix.Step{{Name: "launch", Verb: "prepare"}}
	c.Expect = matrix.Expect{Profile: &matrix.ProfileExpect{Of: "launch", Posture: engine.PostureIsolatedNew}}
	return c
}

// racedRow is a row whose snapshot is taken three times while its page changes; two of them must come, the third may find the page changed.
func racedRow() matrix.Contract {
	c := typeRow()
	c.ID, c.Stem, c.Requirement, c.Needs = "snapshot-races", "snapshot-races", "G8", nil
	c.Steps = []matrix.Step{{Name: "act", Verb: "snapshot", Args: map[string]any{"times": 3}, Background: true}}
	c.Expect = matrix.Expect{Elsewhere: "silent",
		Effect:   []matrix.EffectExpect{{Page: "w/tab 1", Loaded: "flip.html", AtLeast: 2}},
		Rounds:   []matrix.RoundsExpect{{Of: "act", Delivered: 2, Refused: []string{"ref_retired"}}},
		Snapshot: []matrix.SnapshotExpect{{Of: "act", Either: [][]matrix.RoleName{{{Role: "button", Name: "A1"}, {Role: "button", Name: "A2"}}, {{Role: "button", Name: "B1"}, {Role: "button", Name: "B2"}}}}}}
	return c
}

// raced is one call of that row: the names that the snapshot lists, or none for a refusal.
func raced(names ...string) Observation {
	c := &Call{Operation: engine.OpState, Page: "w/tab 1", Grouped: true, StartNS: 100, ReplyNS: 150, ClosedNS: 200, Status: engine.StatusOK}
	if len(names) == 0 {
		c.Status, c.Refusal = engine.StatusRefused, &engine.Refusal{Code: engine.CodeRefStale, Operation: engine.OpState, Trigger: "ref_retired", Detail: engine.Detail{Reason: "document"}}
	} else {
		c.Snapshot = &SnapshotResult{Provenance: engine.ProvenanceAccessibility, Complete: true}
		for _, n := range names {
			c.Snapshot.Nodes = append(c.Snapshot.Nodes, matrix.RoleName{Role: "button", Name: n})
		}
	}
	return Observation{Kind: KindCall, Step: "act", Phase: PhaseBackground, MonoNS: 200, Call: c}
}

// blockRow is a row of two lanes that type into a tab each, twice.
func blockRow() matrix.Contract {
	c := typeRow()
	c.ID, c.Stem, c.Requirement, c.Needs = "crossing", "crossing", "B16", nil
	lane := func(name, text string) []matrix.Step {
		return []matrix.Step{{Name: name, Verb: "type", Args: map[string]any{"text": text + " {{round}}"}}}
	}
	c.Steps = []matrix.Step{{Name: "block", Verb: "race", Args: map[string]any{"times": 2}, Lanes: [][]matrix.Step{lane("one", "first"), lane("two", "second")}, Background: true}}
	c.Expect = matrix.Expect{Elsewhere: "silent", Blocks: []matrix.BlockExpect{{Of: "block", Delivered: 75, Refusals: []matrix.RefusalExpect{{Code: engine.CodeRefStale, Trigger: "ref_retired"}},
		Lands: []matrix.LandExpect{{Page: "w/tab 1", Control: "note"}, {Page: "w/tab 2", Control: "note"}}}}}
	return c
}

// blockCall is the call of one lane in one round; refused when chars is 0.
func blockCall(round, lane, chars int) Observation {
	c := &Call{Operation: engine.OpType, Page: fmt.Sprintf("w/tab %d", lane), Block: "block", Round: round, Lane: lane, Chars: chars, StartNS: 100, ReplyNS: 150, ClosedNS: 150, Status: engine.StatusOK}
	if chars == 0 {
		c.Status, c.Refusal = engine.StatusRefused, &engine.Refusal{Code: engine.CodeRefStale, Operation: engine.OpType, Trigger: "ref_retired", Detail: engine.Detail{Reason: "snapshot"}}
	} else {
		c.Receipt = receipt(engine.OpType)
		c.Receipt.RequestedCount, c.Receipt.DeliveredCount = chars, chars
	}
	return Observation{Kind: KindCall, Step: []string{"one", "two"}[lane-1], Phase: PhaseBackground, MonoNS: 100, Call: c}
}

// blockCalls are the calls of the whole row.
func blockCalls() []Observation {
	return []Observation{blockCall(1, 1, 7), blockCall(1, 2, 8), blockCall(2, 1, 7), blockCall(2, 2, 8)}
}

// landing is a text that a tab reports.
func landing(tab int, text string) Observation {
	o := event(fmt.Sprintf("w/tab %d", tab), "note", "input", text, true)
	o.MonoNS = 500
	return o
}

func loadOf(file string) Observation {
	o := event("w/tab 1", "", "load", "", true)
	o.Journal.File = file
	return o
}

func receipt(op engine.Operation) *engine.Receipt {
	return &engine.Receipt{Operation: op, Effect: engine.EffectConfirmed, Route: engine.RouteTrustedInput, Trust: engine.TrustTrustedInput,
		Delivery: engine.DeliveryBackground, RequestedCount: 3, DeliveredCount: 3, Posture: engine.PostureIsolatedNew, Generation: "g1"}
}

// frame puts what every sound row has around its own observations and numbers all of them.
func frame(c matrix.Contract, own ...Observation) []Observation {
	var kinds []string
	for _, r := range requiredControls {
		kinds = append(kinds, string(r))
	}
	obs := []Observation{{Kind: KindBegin, Begin: &Begin{Row: c.ID, Attempt: 1}}, {Kind: KindControls, Controls: &Controls{When: "desk", Committed: requiredOnce}},
		{Kind: KindControls, Controls: &Controls{When: "before", Committed: kinds}},
		{Kind: KindDeclaration, Declaration: &Declaration{Total: true}}}
	if c.Needs != nil {
		obs = append(obs, Observation{Kind: KindPrecondition, Precondition: &Precondition{Name: "state", Want: "covered", Got: "covered 1.00", Met: true}})
	}
	obs = append(obs, own...)
	for _, s := range c.Steps {
		obs = append(obs, Observation{Kind: KindStep, Step: s.Name, StepInfo: &StepInfo{Verb: s.Verb, Outcome: "done"}})
	}
	obs = append(obs, Observation{Kind: KindControls, Controls: &Controls{When: "after", Committed: kinds}})
	for _, ch := range requiredChannels {
		obs = append(obs, Observation{Kind: KindGuard, Guard: &Guard{Channel: ch, Alive: true, Events: 10}})
	}
	obs = append(obs, Observation{Kind: KindPerson, Person: &Person{Injected: 20, Received: 20}},
		Observation{Kind: KindHeartbeat, Heartbeat: &Heartbeat{MaxGapNS: 1e6}},
		Observation{Kind: KindScan, Scan: &Scan{What: "engine_raw", Files: 2, Bytes: 100, ControlFound: true}},
		Observation{Kind: KindSystem, System: &System{Fact: FactPersonProfiles, Holds: true}}, Observation{Kind: KindSystem, System: &System{Fact: FactLoopbackOnly, Holds: true}}, Observation{Kind: KindSystem, System: &System{Fact: FactEngineLives, Holds: true}},
		Observation{Kind: KindScan, Scan: &Scan{What: "engine_files", Files: 1, Bytes: 10, ControlFound: true}},
		Observation{Kind: KindScan, Scan: &Scan{What: "bundle", Files: 9, Bytes: 1000, ControlFound: true}},
		Observation{Kind: KindFilm, Film: &Film{Present: true, Decodes: true, Frames: 30, SideFrames: 30, Monotonic: true, CodesTried: 3, CodesRead: 3, MasksSolid: true, CoversRow: true}},
		Observation{Kind: KindEnd, End: &End{}})
	for i := range obs {
		obs[i].Seq = i + 1
		if obs[i].Phase == "" {
			obs[i].Phase = PhasePrepare
		}
	}
	obs[len(obs)-1].End.Observations = len(obs)
	return obs
}

func bindCall() Observation {
	return Observation{Kind: KindCall, Step: "bind-1", Phase: PhaseBackground, MonoNS: 50, Call: &Call{Operation: engine.OpState, StartNS: 10, ReplyNS: 40, ClosedNS: 50,
		Status: engine.StatusOK, Bind: &BindResult{Quality: engine.QualityExact, MutationAllowed: true, Generation: "g1", Posture: engine.PostureIsolatedNew, Active: []string{"true"}}}}
}

func typeCall() Observation {
	return Observation{Kind: KindCall, Step: "act", Phase: PhaseBackground, MonoNS: 200, Call: &Call{Operation: engine.OpType, Page: "w/tab 1", Chars: 3,
		StartNS: 100, ReplyNS: 150, ClosedNS: 200, Status: engine.StatusOK, Receipt: receipt(engine.OpType)}}
}

func event(page, control, kind, value string, trusted bool) Observation {
	return Observation{Kind: KindJournal, Phase: PhaseBackground, MonoNS: 140, Journal: &Journal{Page: page, File: "form.html", Document: 1, Order: 1, Type: kind,
		Control: control, Value: value, Trusted: trusted, Signed: true, Origin: "browser"}}
}

func violation(reason Reason, req matrix.RequirementID, actor Actor) Observation {
	return Observation{Kind: KindDesk, Phase: PhaseBackground, Step: "act", MonoNS: 145, Desk: &Desk{EventNS: 145, Requirement: req, Reason: reason, Actor: actor, Channel: "core", Window: "person", InFlight: true}}
}

func refusedCall(code engine.Code, trigger string, detail engine.Detail) Observation {
	return Observation{Kind: KindCall, Step: "act", Phase: PhaseBackground, MonoNS: 200, Call: &Call{Operation: engine.OpClick, Page: "w/tab 1", StartNS: 100, ReplyNS: 150, ClosedNS: 200,
		Status: engine.StatusRefused, Refusal: &engine.Refusal{Code: code, Operation: engine.OpClick, Trigger: trigger, Detail: detail}}}
}

func fact(step, name string, holds bool) Observation {
	return Observation{Kind: KindSystem, Step: step, System: &System{Fact: name, Holds: holds}}
}

// good are the sound observations of the three rows.
func goodType() []Observation {
	c := typeRow()
	return frame(c, bindCall(), event("w/tab 1", "full-name", "input", "Ada", true), typeCall())
}

func goodRefusal() []Observation {
	return frame(refusalRow(), bindCall(), refusedCall(engine.CodeInputTrustUnavailable, "would_touch_desk", engine.Detail{Limitation: "would_raise"}),
		fact("act", FactUnchanged, true))
}

func launchCall() Observation {
	r := receipt(engine.OpPrepare)
	r.SideEffects = engine.SideEffects{LaunchedBrowser: true, CreatedProfile: true, OpenedWindow: true, ForegroundedWindow: true, RaisedWindow: true, EnabledRemoteDebugging: true}
	return Observation{Kind: KindCall, Step: "launch", MonoNS: 200, Call: &Call{Operation: engine.OpPrepare, StartNS: 100, ReplyNS: 150, ClosedNS: 200, Status: engine.StatusOK, Receipt: r}}
}

func launchDesk(r Reason) Observation {
	o := violation(r, "D1", ActorBrowser)
	o.Phase, o.Step = PhasePrepare, "launch"
	return o
}

func launchFacts(but string) []Observation {
	var out []Observation
	for _, f := range []string{FactLaunched, FactWindowOpened, FactProfileOwn, FactProfileMode, FactProfileUsed, FactProfileGone, FactProcessesGone, FactSandboxOn, FactLoopbackOnly} {
		out = append(out, fact("launch", f, f != but))
	}
	return out
}

// hidden is a row about what the browser issues.
func hidden() matrix.Contract {
	c := typeRow()
	c.ID, c.Stem, c.Requirement, c.Expect.Identifiers = "identifiers-hidden", "identifiers-hidden", "B23", "hidden"
	return c
}

// failRow is a row about a launch that cannot succeed.
func failRow() matrix.Contract {
	c := typeRow()
	c.ID, c.Stem, c.Requirement, c.Needs, c.Launch = "failure-stale", "failure-stale", "S9", nil, matrix.LaunchNone
	c.Desk.Machine = "endpoint_stale"
	c.Steps = []matrix.Step{{Name: "act", Verb: "prepare", Args: map[string]any{"profile": "isolated_new"}}}
	c.Expect = matrix.Expect{Refusal: []matrix.RefusalExpect{{Of: "act", Code: engine.CodeRouteUnavailable, Trigger: "launch_failed",
		Detail: map[string]string{"reason": "exited"}, Within: 5 * time.Second}}}
	return c
}

func failFacts(reason string, reply int64, untouched bool) []Observation {
	r := refusedCall(engine.CodeRouteUnavailable, "launch_failed", engine.Detail{Limitation: "launch_failed", Reason: reason})
	r.Call.Operation, r.Call.Refusal.Operation, r.Call.ReplyNS, r.Call.ClosedNS = engine.OpPrepare, engine.OpPrepare, reply, reply+50
	return []Observation{r, fact("act", FactUnchanged, true), fact("end", FactDecoyUntouched, untouched)}
}

// attachRow is a row about the person's own browser, which must not be attached to.
func attachRow() matrix.Contract {
	c := typeRow()
	c.ID, c.Stem, c.Requirement, c.Needs, c.Launch = "attach-own-chromium", "attach-own-chromium", "S5", nil, matrix.LaunchNone
	c.Steps = []matrix.Step{{Name: "act", Verb: "attach", Args: map[string]any{"product": "chromium", "window": "real"}}}
	c.Expect = matrix.Expect{Probes: "none", Refusal: []matrix.RefusalExpect{{Of: "act", Code: engine.CodeConsentRequired, Trigger: "no_approval"}}}
	return c
}

func attachFacts(but string) []Observation {
	asked := refusedCall(engine.CodeConsentRequired, "no_approval", engine.Detail{})
	asked.Call.Operation, asked.Call.Refusal.Operation = engine.OpPrepare, engine.OpPrepare
	out := []Observation{asked}
	for _, f := range []string{FactNoRequests, FactNoConnections, FactEndpointUntouched, FactUnchanged, FactBystanderAlive} {
		out = append(out, fact("act", f, f != but))
	}
	return out
}

// killRow is a row about what a killed engine leaves.
func killRow() matrix.Contract {
	c := typeRow()
	c.ID, c.Stem, c.Requirement, c.Needs, c.Launch = "killed-engine", "killed-engine", "S11", nil, matrix.LaunchNone
	c.Steps = []matrix.Step{{Name: "bind-1", Verb: "bind"}, {Name: "kill-2", Verb: "kill", Args: map[string]any{"process": "engine"}}}
	c.Expect = matrix.Expect{Bind: []matrix.BindExpect{{Of: "bind-1", Quality: engine.QualityExact}}, Elsewhere: "silent"}
	return c
}

func killFacts(but string) []Observation {
	out := []Observation{bindCall()}
	for _, f := range []string{FactEngineKilled, FactKilledProcesses, FactKilledProfiles} {
		out = append(out, fact("kill-2", f, f != but))
	}
	return out
}

func goodLaunch() []Observation {
	own := append([]Observation{launchDesk(ReasonFocusLeft), launchDesk(ReasonWindowAbovePerson), launchCall()}, launchFacts("")...)
	return frame(launchRow(), own...)
}

// refusedEarly is a row whose engine refuses while the desk is arranged: no step is done, no state measured, and the person has not begun.
func refusedEarly(c matrix.Contract, op engine.Operation) []Observation {
	obs := frame(c, Observation{Kind: KindCall, Step: "arrange", MonoNS: 50, Call: &Call{Operation: op, Arrange: true, StartNS: 10, ReplyNS: 40, ClosedNS: 50, Status: engine.StatusRefused,
		Refusal: &engine.Refusal{Code: engine.CodeBindingAmbiguous, Operation: op, Trigger: "several_fit", Detail: engine.Detail{CandidateCount: 2}}}})
	return change(change(obs, with(KindPerson, func(o *Observation) { *o.Person = Person{} })), without(func(o Observation) bool { return o.Kind == KindStep || o.Kind == KindPrecondition }))
}

// vector is one published case: enough to write a second judge from (contract J14).
type vector struct {
	Name         string          `json:"name"`
	Contract     matrix.Contract `json:"contract"`
	Observations []Observation   `json:"observations"`
	Outcome      Outcome         `json:"outcome"`
	// Findings are requirement and reason pairs, sorted.
	Findings []string `json:"findings"`
}

// change edits the sound observations of a row.
func change(obs []Observation, f func([]Observation) []Observation) []Observation { return f(obs) }

func with(k Kind, edit func(*Observation)) func([]Observation) []Observation {
	return func(obs []Observation) []Observation {
		for i := range obs {
			if obs[i].Kind == k {
				edit(&obs[i])
				break
			}
		}
		return obs
	}
}

func without(match func(Observation) bool) func([]Observation) []Observation {
	return func(obs []Observation) []Observation {
		obs = slices.DeleteFunc(obs, match)
		for i := range obs {
			obs[i].Seq = i + 1
		}
		if last := obs[len(obs)-1]; last.Kind == KindEnd {
			last.End.Observations = len(obs)
		}
		return obs
	}
}

func isKind(k Kind) func(Observation) bool { return func(o Observation) bool { return o.Kind == k } }

func cases() []vector {
	type tc struct {
		name     string
		row      matrix.Contract
		obs      []Observation
		outcome  Outcome
		findings string
	}
	ty, re, la, ra, bl := typeRow(), refusalRow(), launchRow(), racedRow(), blockRow()
	landings := []Observation{landing(1, "first 1"), landing(2, "second 1"), landing(1, "first 2"), landing(2, "second 2")}
	none := blockRow()
	none.Expect.Blocks[0].None, none.Expect.Blocks[0].Delivered, none.Expect.Blocks[0].Lands = true, 0, nil
	unchanged := Observation{Kind: KindSystem, Phase: PhaseBackground, Step: "block", System: &System{Fact: FactUnchanged, Holds: true}}
	allRefused := []Observation{blockCall(1, 1, 0), blockCall(1, 2, 0), blockCall(2, 1, 0), blockCall(2, 2, 0)}
	bi := ty
	bi.ID, bi.Stem, bi.Requirement = "exact-one-window", "exact-one-window", "B1"
	bi.Steps, bi.Expect = ty.Steps[:1], matrix.Expect{Bind: []matrix.BindExpect{{Of: "bind-1", Quality: engine.QualityExact}}}
	a, b := []string{"A1", "A2"}, []string{"B1", "B2"}
	own := func(extra ...Observation) []Observation {
		return frame(ty, append([]Observation{bindCall(), event("w/tab 1", "full-name", "input", "Ada", true), typeCall()}, extra...)...)
	}
	list := []tc{
		{"nothing_ran", ty, nil, NotRun, ""},
		{"sound_type", ty, goodType(), Pass, ""},
		{"sound_refusal", re, goodRefusal(), Pass, ""},
		{"sound_launch", la, goodLaunch(), Pass, ""},
		{"cut_before_the_end", ty, goodType()[:len(goodType())-1], HarnessError, "J1 row_cut"},
		{"number_missing", ty, change(goodType(), with(KindDeclaration, func(o *Observation) { o.Seq = 99 })), HarnessError, "J1 observations_malformed"},
		{"another_row", re, goodType(), HarnessError, "J1 observations_malformed"},
		{"unknown_kind", ty, change(goodType(), with(KindDeclaration, func(o *Observation) { o.Kind = "hearsay" })), HarnessError, "J1 observations_malformed"},
		{"payload_of_another_kind", ty, change(goodType(), with(KindDeclaration, func(o *Observation) { o.Fault = &Fault{} })), HarnessError, "J1 observations_malformed"},
		{"begun_twice", ty, own(Observation{Kind: KindBegin, Begin: &Begin{Row: ty.ID}}), HarnessError, "J1 observations_malformed"},
		{"guard_lost", ty, change(goodType(), with(KindGuard, func(o *Observation) { o.Guard.Alive = false })), InvalidGuard, "J2 guard_lost"},
		{"guard_dropped_events", ty, change(goodType(), with(KindGuard, func(o *Observation) { o.Guard.Dropped = 1 })), InvalidGuard, "J2 guard_lost"},
		{"guard_unknown", ty, change(goodType(), without(func(o Observation) bool { return o.Kind == KindGuard && o.Guard.Channel == "record" })), InvalidGuard, "J2 guard_lost"},
		{"control_missed", ty, change(goodType(), with(KindControls, func(o *Observation) { o.Controls.Missed = []string{"pointer_warped"} })), InvalidGuard, "J2 control_missed"},
		{"control_not_committed", ty, change(goodType(), with(KindControls, func(o *Observation) { o.Controls.Committed = o.Controls.Committed[1:] })), InvalidGuard, "J2 control_missed"},
		{"no_controls_after", ty, change(goodType(), without(func(o Observation) bool { return o.Kind == KindControls && o.Controls.When == "after" })), InvalidGuard, "J2 control_missed"},
		{"guard_lost_beside_a_violation", ty, change(own(violation(ReasonFocusLeft, "D1", ActorBrowser)), with(KindGuard, func(o *Observation) { o.Guard.Alive = false })), InvalidGuard, "D1 focus_left, J2 guard_lost"},
		{"precondition_unmet", ty, change(goodType(), with(KindPrecondition, func(o *Observation) { o.Precondition.Met = false })), NotExercised, "M5 precondition_unmet"},
		{"precondition_not_measured", ty, change(goodType(), without(isKind(KindPrecondition))), NotExercised, "M5 precondition_unmet"},
		{"refused_while_arranging", ty, refusedEarly(ty, engine.OpState), NotExercised, "M5 precondition_unmet"},
		{"refused_while_arranging_what_the_row_proves", bi, refusedEarly(bi, engine.OpState), Fail, "B1 refused"},
		{"refused_to_launch_for_a_row_about_binding", bi, refusedEarly(bi, engine.OpPrepare), NotExercised, "B1 precondition_unmet"},
		{"precondition_unmet_and_refused", ty, change(frame(ty, bindCall(), refusedCall(engine.CodeActionUnavailable, "undeclared", engine.Detail{})), with(KindPrecondition, func(o *Observation) { o.Precondition.Met = false })), NotExercised, "M5 precondition_unmet, M5 refused"},
		{"harness_fault", ty, own(Observation{Kind: KindFault, Fault: &Fault{Whose: "harness", What: "fixture server gone"}}), HarnessError, "J5 harness_fault"},
		{"environment_fault", ty, own(Observation{Kind: KindFault, Fault: &Fault{Whose: "environment", What: "display lost"}}), EnvironmentUnmet, "J5 environment_fault"},
		{"harness_fault_beside_a_violation", ty, own(violation(ReasonFocusLeft, "D1", ActorBrowser), Observation{Kind: KindFault, Fault: &Fault{Whose: "harness", What: "x"}}), HarnessError, "D1 focus_left, J5 harness_fault"},
		{"step_never_observed", ty, change(goodType(), without(func(o Observation) bool { return o.Kind == KindStep && o.Step == "act" })), HarnessError, "J1 too_few_seen"},
		{"declaration_not_read", ty, change(goodType(), without(isKind(KindDeclaration))), HarnessError, "J9 too_few_seen"},
		{"declaration_with_holes", ty, change(goodType(), with(KindDeclaration, func(o *Observation) { o.Declaration.Total = false })), Fail, "J10 declaration_incomplete"},
		{"declaration_differs", ty, change(goodType(), with(KindDeclaration, func(o *Observation) { o.Declaration.Differences = []string{"click/trusted_input/background/covered"} })), Fail, "J9 declaration_mismatch"},
		{"no_call", ty, frame(ty, event("w/tab 1", "full-name", "input", "Ada", true)), HarnessError, "J1 too_few_seen"},
		{"polite_refusal", ty, frame(ty, bindCall(), refusedCall(engine.CodeActionUnavailable, "undeclared", engine.Detail{})), Fail, "M5 refused"},
		{"effect_missing", ty, frame(ty, bindCall(), func() Observation {
			o := typeCall()
			o.Call.Receipt.Effect = engine.EffectUnverifiable
			return o
		}()), Fail, "M5 effect_missing, M5 receipt_unexpected"},
		{"claimed_without_effect", ty, frame(ty, bindCall(), typeCall()), Fail, "M17 receipt_untrue, M5 effect_missing"},
		{"effect_wrong", ty, frame(ty, bindCall(), event("w/tab 1", "full-name", "input", "Ad", true), typeCall()), Fail, "M5 effect_wrong"},
		{"late_first_state_is_no_effect", ty, frame(ty, bindCall(), event("w/tab 1", "full-name", "state", "", false), func() Observation {
			o := typeCall()
			o.Call.Receipt.Effect = engine.EffectUnverifiable
			return o
		}()), Fail, "M5 effect_missing, M5 receipt_unexpected"},
		{"effect_elsewhere", ty, own(event("w/tab 2", "full-name", "input", "Ada", true)), Fail, "M5 effect_elsewhere"},
		{"effect_in_another_control", ty, own(event("w/tab 1", "email", "keydown", "", true)), Fail, "M5 effect_elsewhere"},
		{"unconfirmed_where_it_can_be_read", ty, frame(ty, bindCall(), event("w/tab 1", "full-name", "input", "Ada", true), func() Observation {
			o := typeCall()
			o.Call.Receipt.Effect = engine.EffectUnverifiable
			return o
		}()), Fail, "M17 effect_unconfirmed, M5 receipt_unexpected"},
		{"unconfirmed_where_the_page_rewrites", func() matrix.Contract {
			c := ty
			c.Expect.Effect = []matrix.EffectExpect{{Page: "w/tab 1", Control: "full-name", Value: ptr("ADA")}}
			c.Expect.Receipt = nil
			return c
		}(), frame(ty, bindCall(), event("w/tab 1", "full-name", "input", "ADA", true), func() Observation {
			o := typeCall()
			o.Call.Receipt.Effect = engine.EffectUnverifiable
			return o
		}()), Pass, ""},
		{"synthetic_sold_as_trusted", ty, frame(ty, bindCall(), event("w/tab 1", "full-name", "input", "Ada", false), typeCall()), Fail, "M17 receipt_untrue"},
		{"delivered_fewer_than_confirmed", ty, frame(ty, bindCall(), event("w/tab 1", "full-name", "input", "Ada", true), func() Observation {
			o := typeCall()
			o.Call.Receipt.DeliveredCount = 2
			return o
		}()), Fail, "M17 receipt_untrue"},
		{"side_effect_that_nobody_saw", ty, frame(ty, bindCall(), event("w/tab 1", "full-name", "input", "Ada", true), func() Observation {
			o := typeCall()
			o.Call.Receipt.SideEffects.ForegroundedWindow = true
			return o
		}()), Fail, "M17 receipt_untrue"},
		{"receipt_missing", ty, frame(ty, bindCall(), event("w/tab 1", "full-name", "input", "Ada", true), func() Observation {
			o := typeCall()
			o.Call.Receipt = nil
			return o
		}()), Fail, "M17 receipt_missing"},
		{"receipt_breaks_its_schema", ty, frame(ty, bindCall(), event("w/tab 1", "full-name", "input", "Ada", true), func() Observation {
			o := typeCall()
			o.Call.Violations = []string{"receipt.trust is missing"}
			return o
		}()), Fail, "M17 receipt_malformed"},
		{"engine_gone", ty, frame(ty, bindCall(), Observation{Kind: KindCall, Step: "act", Phase: PhaseBackground, Call: &Call{Operation: engine.OpType, Carrier: "gone"}}), Fail, "M5 engine_gone"},
		{"engine_timeout", ty, frame(ty, bindCall(), Observation{Kind: KindCall, Step: "act", Phase: PhaseBackground, Call: &Call{Operation: engine.OpType, Carrier: "timeout", StartNS: 0, ReplyNS: 5e9}}), Fail, "M5 budget_missed, M5 effect_missing"},
		{"late_while_the_harness_was_starved", ty, change(frame(ty, bindCall(), Observation{Kind: KindCall, Step: "act", Phase: PhaseBackground, Call: &Call{Operation: engine.OpType, Carrier: "timeout", StartNS: 0, ReplyNS: 5e9}}), with(KindHeartbeat, func(o *Observation) { o.Heartbeat.MaxGapNS = 2e9 })), EnvironmentUnmet, "J5 clock_starved, M5 effect_missing"},
		{"tool_not_offered", ty, frame(ty, bindCall(), Observation{Kind: KindCall, Step: "act", Phase: PhaseBackground, Call: &Call{Operation: engine.OpType, Carrier: "not_offered"}}), NotOffered, "M5 not_offered"},
		{"answer_is_no_result", ty, frame(ty, bindCall(), Observation{Kind: KindCall, Step: "act", Phase: PhaseBackground, Call: &Call{Operation: engine.OpType, Carrier: "malformed"}}), Fail, "M5 effect_missing, R1 result_malformed"},
		{"focus_left_for_an_instant", ty, own(violation(ReasonFocusLeft, "D1", ActorBrowser)), Fail, "D1 focus_left"},
		{"focus_moved_by_the_person_itself", ty, own(violation(ReasonFocusLeft, "D1", ActorPerson)), Pass, ""},
		{"effect_through_the_window_manager", ty, own(violation(ReasonStackingChanged, "D2", ActorWindowManager)), Fail, "D2 stacking_changed"},
		{"desk_touched_by_a_stranger", ty, own(violation(ReasonPointerWarped, "D3", ActorStranger)), EnvironmentUnmet, "J5 environment_fault"},
		{"person_locked_out", ty, change(goodType(), with(KindPerson, func(o *Observation) { o.Person.Lost = 3 })), Fail, "D7 person_input_lost"},
		{"person_never_typed", ty, change(goodType(), with(KindPerson, func(o *Observation) { o.Person.Injected = 0 })), HarnessError, "D7 too_few_seen"},
		{"forged_by_the_engine", ty, own(Observation{Kind: KindJournal, Phase: PhaseBackground, Journal: &Journal{Page: "w/tab 1", Type: "click", Origin: "engine", Reason: "no signature"}}), Fail, "M18 journal_forged"},
		{"scripted_into_the_page", ty, own(Observation{Kind: KindJournal, Phase: PhaseBackground, Journal: &Journal{Page: "w/tab 1", Type: "click", Origin: "browser", Reason: "bad signature"}}), Fail, "M18 journal_forged"},
		{"canary_in_the_engines_output", ty, own(Observation{Kind: KindScan, Scan: &Scan{What: "engine_raw", Files: 1, ControlFound: true, Findings: []ScanFinding{{Canary: "c1", Channel: "title", Encoding: "plain", Where: "stderr"}}}}), Fail, "P10 engine_leaked"},
		{"identifiers_heard_on_the_wire", hidden(), frame(hidden(), bindCall(), event("w/tab 1", "full-name", "input", "Ada", true), typeCall(), fact("end", FactIdentifiersHeard, true)), Pass, ""},
		{"identifiers_never_heard", hidden(), frame(hidden(), bindCall(), event("w/tab 1", "full-name", "input", "Ada", true), typeCall(), fact("end", FactIdentifiersHeard, false)), HarnessError, "J1 too_few_seen"},
		{"identifiers_not_listened_to", hidden(), frame(hidden(), bindCall(), event("w/tab 1", "full-name", "input", "Ada", true), typeCall()), HarnessError, "J1 too_few_seen"},
		{"identifier_in_the_engines_output", ty, own(Observation{Kind: KindScan, Scan: &Scan{What: "engine_raw", Files: 1, ControlFound: true, Findings: []ScanFinding{{Canary: "i1", Channel: "identifier", Encoding: "plain", Where: "results"}}}}), Fail, "B23 identifier_leaked"},
		{"canary_in_the_bundle", ty, own(Observation{Kind: KindScan, Scan: &Scan{What: "bundle", Files: 1, ControlFound: true, Findings: []ScanFinding{{Canary: "c1", Channel: "title", Encoding: "base64", Where: "row.json"}}}}), HarnessError, "P1 bundle_leaked"},
		{"scan_without_its_control", ty, change(goodType(), with(KindScan, func(o *Observation) { o.Scan.ControlFound = false })), HarnessError, "P7 scan_blind"},
		{"scan_of_nothing", ty, change(goodType(), with(KindScan, func(o *Observation) { o.Scan.Files = 0 })), HarnessError, "P7 scan_blind"},
		{"film_missing", ty, change(goodType(), with(KindFilm, func(o *Observation) { o.Film.Present = false })), HarnessError, "V1 film_missing"},
		{"film_undecodable", ty, change(goodType(), with(KindFilm, func(o *Observation) { o.Film.Decodes = false })), HarnessError, "V1 film_undecodable"},
		{"film_black", ty, change(goodType(), with(KindFilm, func(o *Observation) { o.Film.BlackRatio = 1 })), HarnessError, "V4 film_black"},
		{"film_frozen", ty, change(goodType(), with(KindFilm, func(o *Observation) { o.Film.LongestStillNS = 5e9 })), HarnessError, "V4 film_frozen"},
		{"film_with_a_hole_in_time", ty, change(goodType(), with(KindFilm, func(o *Observation) { o.Film.MaxGapNS = 3e9 })), HarnessError, "V3 film_short"},
		{"film_of_another_run", ty, change(goodType(), with(KindFilm, func(o *Observation) { o.Film.CodesWrong = 1 })), HarnessError, "V2 film_unstamped"},
		{"film_with_a_hole_in_its_mask", ty, change(goodType(), with(KindFilm, func(o *Observation) { o.Film.MasksSolid = false })), HarnessError, "P2 mask_broken"},
		{"film_row_with_a_bad_film", func() matrix.Contract { c := ty; c.Requirement, c.Duty = "V1", matrix.DutyHarness; return c }(), change(goodType(), with(KindFilm, func(o *Observation) { o.Film.Decodes = false })), Fail, "V1 film_undecodable"},
		{"sandbox_off", ty, own(fact("act", FactSandboxOn, false)), EnvironmentUnmet, "J11 sandbox_off"},
		{"delivered_where_refusal_is_declared", re, frame(re, bindCall(), event("w/tab 1", "full-name", "input", "Ada", true), typeCall()), Fail, "R3 refusal_missing, M3 effect_elsewhere"},
		{"refused_with_another_code", re, frame(re, bindCall(), refusedCall(engine.CodeActionUnavailable, "undeclared", engine.Detail{}), fact("act", FactUnchanged, true)), Fail, "R3 refusal_wrong"},
		{"refused_with_another_detail", re, frame(re, bindCall(), refusedCall(engine.CodeInputTrustUnavailable, "would_touch_desk", engine.Detail{Limitation: "would_grab"}), fact("act", FactUnchanged, true)), Fail, "R3 refusal_wrong"},
		{"refused_and_yet_done", re, frame(re, bindCall(), event("w/tab 1", "save", "click", "", true), refusedCall(engine.CodeInputTrustUnavailable, "would_touch_desk", engine.Detail{Limitation: "would_raise"}), fact("act", FactUnchanged, true)), Fail, "R2 refusal_mutated, M3 effect_elsewhere"},
		{"refusal_left_something", re, frame(re, bindCall(), refusedCall(engine.CodeInputTrustUnavailable, "would_touch_desk", engine.Detail{Limitation: "would_raise"}), fact("act", FactUnchanged, false)), Fail, "R2 refusal_mutated"},
		{"refusal_not_looked_after", re, frame(re, bindCall(), refusedCall(engine.CodeInputTrustUnavailable, "would_touch_desk", engine.Detail{Limitation: "would_raise"})), HarnessError, "J1 too_few_seen"},
		{"refusal_late", re, frame(re, bindCall(), func() Observation {
			o := refusedCall(engine.CodeInputTrustUnavailable, "would_touch_desk", engine.Detail{Limitation: "would_raise"})
			o.Call.ReplyNS = o.Call.StartNS + 3e9
			return o
		}(), fact("act", FactUnchanged, true)), Fail, "R7 refusal_late"},
		{"launch_raises_and_says_not", la, frame(la, append([]Observation{launchDesk(ReasonFocusLeft), launchDesk(ReasonWindowAbovePerson), func() Observation {
			o := launchCall()
			o.Call.Receipt.SideEffects.RaisedWindow = false
			return o
		}()}, launchFacts("")...)...), Fail, "S4 side_effect_undeclared"},
		{"launch_declares_too_much", la, frame(la, append([]Observation{launchDesk(ReasonFocusLeft), launchDesk(ReasonWindowAbovePerson), func() Observation {
			o := launchCall()
			o.Call.Receipt.SideEffects.TookClipboard = true
			return o
		}()}, launchFacts("")...)...), Fail, "S4 side_effect_overdeclared"},
		{"profile_left", la, frame(la, append([]Observation{launchDesk(ReasonFocusLeft), launchDesk(ReasonWindowAbovePerson), launchCall()}, launchFacts(FactProfileGone)...)...), Fail, "S1 profile_left"},
		{"browser_left", la, frame(la, append([]Observation{launchDesk(ReasonFocusLeft), launchDesk(ReasonWindowAbovePerson), launchCall()}, launchFacts(FactProcessesGone)...)...), Fail, "S1 process_left"},
		{"profile_open_to_others", la, frame(la, append([]Observation{launchDesk(ReasonFocusLeft), launchDesk(ReasonWindowAbovePerson), launchCall()}, launchFacts(FactProfileMode)...)...), Fail, "S1 profile_mode"},
		{"launch_without_a_window", la, frame(la, append([]Observation{func() Observation {
			o := launchCall()
			o.Call.Receipt.SideEffects.OpenedWindow, o.Call.Receipt.SideEffects.ForegroundedWindow, o.Call.Receipt.SideEffects.RaisedWindow = false, false, false
			return o
		}()}, launchFacts(FactWindowOpened)...)...), Fail, "B19 refusal_missing"},
		{"own_browser_presented_as_the_persons", ty, change(goodType(), with(KindCall, func(o *Observation) { o.Call.Bind.Posture = engine.PostureExisting })), Fail, "S14 posture_untrue"},
		{"launch_presented_as_the_persons", la, change(goodLaunch(), with(KindCall, func(o *Observation) { o.Call.Receipt.Posture = engine.PostureExisting })), Fail, "S14 posture_untrue"},
		{"launch_failure_explained", failRow(), frame(failRow(), failFacts("exited", 150, true)...), Pass, ""},
		{"launch_failure_explained_wrongly", failRow(), frame(failRow(), failFacts("no_binary", 150, true)...), Fail, "S9 refusal_wrong"},
		{"launch_failure_explained_too_late", failRow(), frame(failRow(), failFacts("exited", 6e9, true)...), Fail, "S9 refusal_late"},
		{"launch_spoke_to_another_program", failRow(), frame(failRow(), failFacts("exited", 150, false)...), Fail, "S9 decoy_reached"},
		{"launch_decoy_not_looked_at", failRow(), change(frame(failRow(), failFacts("exited", 150, true)...), without(func(o Observation) bool {
			return o.Kind == KindSystem && o.System.Fact == FactDecoyUntouched
		})), HarnessError, "J1 too_few_seen"},
		{"person_profile_touched", ty, own(fact("act", FactPersonProfiles, false)), Fail, "S3 person_profile_touched"},
		{"person_profiles_not_watched", ty, change(goodType(), without(func(o Observation) bool { return o.Kind == KindSystem && o.System.Fact == FactPersonProfiles })), HarnessError, "J1 too_few_seen"},
		{"profile_watch_is_blind", ty, change(goodType(), func(obs []Observation) []Observation {
			for _, o := range obs {
				if o.Kind == KindGuard && o.Guard.Channel == "profiles" {
					o.Guard.Alive = false
				}
			}
			return obs
		}), InvalidGuard, "J2 guard_lost"},
		{"listener_in_the_middle_of_a_row", ty, own(fact("act", FactLoopbackOnly, false)), Fail, "S13 listener_exposed"},
		{"listeners_not_watched", ty, change(goodType(), without(func(o Observation) bool { return o.Kind == KindSystem && o.System.Fact == FactLoopbackOnly })), HarnessError, "J1 too_few_seen"},
		{"canary_in_the_engines_files", ty, own(Observation{Kind: KindScan, Scan: &Scan{What: "engine_files", Files: 1, ControlFound: true,
			Findings: []ScanFinding{{Canary: "c1", Channel: "typed", Encoding: "plain", Where: "file at 0"}}}}), Fail, "P8 engine_leaked"},
		{"engines_files_not_scanned", ty, change(goodType(), without(func(o Observation) bool { return o.Kind == KindScan && o.Scan.What == "engine_files" })), HarnessError, "P7 scan_blind"},
		{"attach_refused_without_a_probe", attachRow(), frame(attachRow(), attachFacts("")...), Pass, ""},
		{"attach_asked_the_x_server", attachRow(), frame(attachRow(), attachFacts(FactNoRequests)...), Fail, "S5 probed"},
		{"attach_connected_somewhere", attachRow(), frame(attachRow(), attachFacts(FactNoConnections)...), Fail, "S5 probed"},
		{"attach_touched_the_endpoint", attachRow(), frame(attachRow(), attachFacts(FactEndpointUntouched)...), Fail, "S5 probed"},
		{"attach_endpoint_not_looked_at", attachRow(), change(frame(attachRow(), attachFacts("")...), without(func(o Observation) bool {
			return o.Kind == KindSystem && o.System.Fact == FactEndpointUntouched
		})), HarnessError, "J1 too_few_seen"},
		{"killed_engine_leaves_nothing", killRow(), frame(killRow(), killFacts("")...), Pass, ""},
		{"killed_engine_leaves_a_browser", killRow(), frame(killRow(), killFacts(FactKilledProcesses)...), Fail, "S11 process_left"},
		{"killed_engine_leaves_a_profile", killRow(), frame(killRow(), killFacts(FactKilledProfiles)...), Fail, "S11 profile_left"},
		{"killed_engine_had_no_browser", killRow(), frame(killRow(), killFacts(FactEngineKilled)...), HarnessError, "J5 harness_fault"},
		{"killed_engine_not_looked_after", killRow(), frame(killRow(), bindCall()), HarnessError, "J1 too_few_seen"},
		{"sound_block", bl, frame(bl, append(blockCalls(), landings...)...), Pass, ""},
		{"block_one_run_refused", bl, frame(bl, append(append(blockCalls()[:3:3], blockCall(2, 2, 0)), landings[:3]...)...), Pass, ""},
		{"block_below_its_share", bl, frame(bl, append([]Observation{blockCall(1, 1, 7), blockCall(1, 2, 8), blockCall(2, 1, 0), blockCall(2, 2, 0)}, landings[:2]...)...), Fail, "B16 refused"},
		{"block_refused_with_another_trigger", bl, frame(bl, append(append(blockCalls()[:3:3], func() Observation {
			o := blockCall(2, 2, 0)
			o.Call.Refusal.Trigger = "tab_gone"
			return o
		}()), landings[:3]...)...), Fail, "B16 refusal_wrong"},
		{"block_not_carried_through", bl, frame(bl, append(blockCalls()[:3:3], landings[:3]...)...), HarnessError, "J1 too_few_seen"},
		{"block_text_in_the_other_tab", bl, frame(bl, append(blockCalls(), landings[0], landings[1], landings[2], landing(1, "second 2"))...), Fail, "B16 effect_elsewhere, M17 receipt_untrue"},
		{"block_text_twice", bl, frame(bl, append(blockCalls(), append(landings[:4:4], landing(2, "second 2"))...)...), Fail, "B16 effect_repeated"},
		{"block_text_of_nobody", bl, frame(bl, append(blockCalls(), append(landings[:4:4], landing(2, "third 2"))...)...), Fail, "B16 effect_wrong"},
		{"block_texts_lost", bl, frame(bl, append(blockCalls(), landings[:2]...)...), Fail, "B16 effect_missing, M17 receipt_untrue"},
		{"block_refused_and_yet_done", bl, frame(bl, append(append(blockCalls()[:3:3], blockCall(2, 2, 0)), landings...)...), Fail, "R2 refusal_mutated"},
		{"sound_block_of_refusals", none, frame(none, append(allRefused, unchanged)...), Pass, ""},
		{"block_of_refusals_not_looked_after", none, frame(none, allRefused...), HarnessError, "J1 too_few_seen"},
		{"block_delivered_where_none_may", none, frame(none, append(append(allRefused[:3:3], blockCall(2, 2, 8)), unchanged)...), Fail, "B16 stale_accepted"},
		{"impostor_asked", bl, frame(bl, append(append(blockCalls(), landings...), Observation{Kind: KindSystem, Phase: PhaseCleanup, System: &System{Fact: FactNotAsked, Count: 1}})...), Fail, "B13 probed"},
		{"sound_rounds", ra, frame(ra, loadOf("flip.html"), loadOf("flip.html"), loadOf("flip.html"), raced(a...), raced(), raced(b...)), Pass, ""},
		{"rounds_below_their_floor", ra, frame(ra, loadOf("flip.html"), loadOf("flip.html"), raced(a...), raced(), raced()), Fail, "G8 refused"},
		{"round_never_made", ra, frame(ra, loadOf("flip.html"), loadOf("flip.html"), raced(a...), raced(b...)), HarnessError, "J1 too_few_seen"},
		{"round_of_two_documents", ra, frame(ra, loadOf("flip.html"), loadOf("flip.html"), raced(a...), raced(b...), raced("A1", "B2")), Fail, "G8 snapshot_wrong"},
		{"round_with_half_a_document", ra, frame(ra, loadOf("flip.html"), loadOf("flip.html"), raced(a...), raced(b...), raced("A1")), Fail, "G8 snapshot_wrong"},
		{"round_refused_with_another_trigger", ra, frame(ra, loadOf("flip.html"), loadOf("flip.html"), raced(a...), raced(b...), func() Observation {
			o := raced()
			o.Call.Refusal.Trigger = "tab_gone"
			return o
		}()), Fail, "G8 refused"},
		{"floor_of_an_effect_not_reached", ra, frame(ra, loadOf("flip.html"), raced(a...), raced(b...), raced(a...)), Fail, "G8 effect_missing"},
		{"round_refused_while_something_else_moved", ra, frame(ra, loadOf("flip.html"), loadOf("flip.html"), event("w/tab 1", "save", "click", "", true), raced(a...), raced(), raced(b...)), Fail, "G8 effect_elsewhere"},
		{"rounds_all_refused_while_something_moved", ra, frame(ra, loadOf("flip.html"), loadOf("flip.html"), event("w/tab 1", "save", "click", "", true), raced(), raced(), raced()), Fail, "R2 refusal_mutated, G8 effect_elsewhere, G8 refused, G8 snapshot_wrong"},
		{"listener_on_all_addresses", la, frame(la, append([]Observation{launchDesk(ReasonFocusLeft), launchDesk(ReasonWindowAbovePerson), launchCall()}, launchFacts(FactLoopbackOnly)...)...), Fail, "S13 listener_exposed"},
	}
	for _, c := range changedCases() {
		list = append(list, tc(c))
	}
	out := append(disclosureCases(), personCases()...)
	for _, c := range list {
		findings := []string{}
		if c.findings != "" {
			findings = strings.Split(c.findings, ", ")
		}
		slices.Sort(findings)
		out = append(out, vector{c.name, c.row, c.obs, c.outcome, findings})
	}
	return out
}

func pairs(v Verdict) []string {
	out := []string{}
	for _, f := range v.Findings {
		p := string(f.Requirement) + " " + string(f.Reason)
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

func TestJudge(t *testing.T) {
	for _, c := range cases() {
		t.Run(c.Name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			v := Judge(c.Contract, c.Observations)
			g.Expect(v.Outcome.String()).To(gomega.Equal(c.Outcome.String()), "%+v", v.Findings)
			g.Expect(pairs(v)).To(gomega.Equal(c.Findings))
			g.Expect(Judge(c.Contract, c.Observations)).To(gomega.Equal(v), "the judge keeps nothing between calls")
		})
	}
}

// TestJudgeVectors keeps the published vectors in step with the judge: go test ./evidence -run Vectors -update writes them.
func TestJudgeVectors(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := filepath.Join("testdata", "vectors")
	if *update {
		g.Expect(os.RemoveAll(dir)).To(gomega.Succeed())
		g.Expect(os.MkdirAll(dir, 0o755)).To(gomega.Succeed())
		for _, c := range cases() {
			b, err := json.MarshalIndent(c, "", " ")
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(os.WriteFile(filepath.Join(dir, c.Name+".json"), append(b, '\n'), 0o644)).To(gomega.Succeed())
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(files).To(gomega.HaveLen(len(cases())), "every case is published, and nothing else")
	for _, f := range files {
		var v vector
		b, err := os.ReadFile(f)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(json.Unmarshal(b, &v)).To(gomega.Succeed(), f)
		got := Judge(v.Contract, v.Observations)
		g.Expect(got.Outcome).To(gomega.Equal(v.Outcome), f)
		g.Expect(pairs(got)).To(gomega.Equal(v.Findings), f)
	}
}

// TestReasonsHaveAClass holds that no reason can be added without saying who answers for it.
func TestReasonsHaveAClass(t *testing.T) {
	g := gomega.NewWithT(t)
	src, err := os.ReadFile("verdict.go")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	n := 0
	for line := range strings.Lines(string(src)) {
		if _, value, ok := strings.Cut(line, " Reason = \""); ok {
			n++
			value, _, _ = strings.Cut(value, "\"")
			g.Expect(reasonClass).To(gomega.HaveKey(Reason(value)))
		}
	}
	g.Expect(n).To(gomega.Equal(len(reasonClass)))
}

func TestDecide(t *testing.T) {
	core := typeRow()
	hold := launchRow()
	harness := typeRow()
	harness.ID, harness.Requirement, harness.Duty = "film", "V1", matrix.DutyHarness
	plan := matrix.Plan{Environment: "x11", Rows: []matrix.Contract{core, hold, harness}, CoreDeliver: []matrix.RequirementID{"M5"}, CoreHold: []matrix.RequirementID{"S1"}, Ceiling: "supported"}
	ok := Standing{Verified: true, Clean: true}
	verdicts := func(a, b, c Outcome) []Verdict {
		finding := func(o Outcome, req matrix.RequirementID, r Reason) []Finding {
			if o != Fail {
				return nil
			}
			return []Finding{{Requirement: req, Reason: r}}
		}
		return []Verdict{{Row: core.ID, Outcome: a, Findings: finding(a, "M5", ReasonRefused)}, {Row: hold.ID, Outcome: b, Findings: finding(b, "S1", ReasonProfileLeft)},
			{Row: harness.ID, Outcome: c, Findings: finding(c, "V1", ReasonFilmBlack)}}
	}
	for name, c := range map[string]struct {
		plan     func(*matrix.Plan)
		verdicts []Verdict
		standing Standing
		want     Decision
	}{
		"all_passed":                            {nil, verdicts(Pass, Pass, Pass), ok, Supported},
		"nothing_ran":                           {nil, nil, ok, Undetermined},
		"only_skips":                            {nil, verdicts(NotExercised, NotExercised, NotExercised), ok, Undetermined},
		"one_row_missing":                       {nil, verdicts(Pass, Pass, Pass)[:2], ok, Undetermined},
		"one_row_twice":                         {nil, append(verdicts(Pass, Pass, Pass), Verdict{Row: core.ID, Outcome: Pass}), ok, Undetermined},
		"a_row_that_was_not_planned":            {nil, append(verdicts(Pass, Pass, Pass), Verdict{Row: "extra", Outcome: Pass}), ok, Undetermined},
		"one_error_among_passes":                {nil, verdicts(Pass, HarnessError, Pass), ok, Undetermined},
		"invalid_guard":                         {nil, verdicts(Pass, InvalidGuard, Pass), ok, Undetermined},
		"an_engine_failure":                     {nil, verdicts(Pass, Fail, Pass), ok, NotSupported},
		"an_engine_failure_beside_an_error":     {nil, verdicts(HarnessError, Fail, Pass), ok, NotSupported},
		"a_polite_refusal_of_core":              {nil, verdicts(Fail, Pass, Pass), ok, NotSupported},
		"core_not_offered":                      {nil, verdicts(NotOffered, Pass, Pass), ok, NotSupported},
		"flaky":                                 {nil, verdicts(Flaky, Pass, Pass), ok, NotSupported},
		"a_harness_row_failed":                  {nil, verdicts(Pass, Pass, Fail), ok, Undetermined},
		"core_without_rows":                     {func(p *matrix.Plan) { p.CoreMissing = []matrix.RequirementID{"B6"} }, verdicts(Pass, Pass, Pass), ok, Undetermined},
		"core_without_rows_and_a_failure":       {func(p *matrix.Plan) { p.CoreMissing = []matrix.RequirementID{"B6"} }, verdicts(Pass, Fail, Pass), ok, NotSupported},
		"a_subset":                              {func(p *matrix.Plan) { p.Subset = true }, verdicts(Pass, Fail, Pass), ok, Undetermined},
		"a_dirty_tree":                          {nil, verdicts(Pass, Pass, Pass), Standing{Verified: true}, Undetermined},
		"a_bundle_that_does_not_verify":         {nil, verdicts(Pass, Pass, Pass), Standing{Clean: true}, Undetermined},
		"an_experimental_environment":           {func(p *matrix.Plan) { p.Ceiling = "experimental" }, verdicts(Pass, Pass, Pass), ok, Experimental},
		"a_ceiling_that_nobody_knows":           {func(p *matrix.Plan) { p.Ceiling = "" }, verdicts(Pass, Pass, Pass), ok, Experimental},
		"a_printed_limit":                       {nil, verdicts(Pass, Pass, Pass), Standing{Verified: true, Clean: true, Limits: []string{"one uid"}}, SupportedWithLimits},
		"not_applicable_without_a_reason":       {nil, verdicts(Pass, NotApplicable, Pass), ok, Undetermined},
		"not_applicable_with_a_reviewed_reason": {func(p *matrix.Plan) { p.NotApplicable = map[matrix.RequirementID]string{"S1": "reviewed"} }, verdicts(Pass, NotApplicable, Pass), ok, SupportedWithLimits},
		"deliver_is_never_not_applicable":       {func(p *matrix.Plan) { p.NotApplicable = map[matrix.RequirementID]string{"M5": "reviewed"} }, verdicts(NotApplicable, Pass, Pass), ok, Undetermined},
		"a_claimed_feature_without_rows":        {func(p *matrix.Plan) { p.FeatureMissing = []string{"reconnect"} }, verdicts(Pass, Pass, Pass), ok, Undetermined},
		"none_of_a_core_group_was_run":          {func(p *matrix.Plan) { p.CoreAny = [][]matrix.RequirementID{{"M3", "M4"}} }, verdicts(Pass, Pass, Pass), ok, Undetermined},
		"one_of_a_core_group_was_run":           {func(p *matrix.Plan) { p.CoreAny = [][]matrix.RequirementID{{"M3", "M5"}} }, verdicts(Pass, Pass, Pass), ok, Supported},
		"a_limit_of_the_environment":            {func(p *matrix.Plan) { p.Limits = []string{"single uid"} }, verdicts(Pass, Pass, Pass), ok, SupportedWithLimits},
		// What comes first in the precedence decides, whatever else is true.
		"a_dirty_tree_beside_an_engine_failure":           {nil, verdicts(Fail, Pass, Pass), Standing{Verified: true}, Undetermined},
		"an_unverified_bundle_beside_an_engine_failure":   {nil, verdicts(Fail, Pass, Pass), Standing{Clean: true}, Undetermined},
		"an_engine_failure_beside_a_harness_failure":      {nil, verdicts(Pass, Fail, Fail), ok, NotSupported},
		"an_engine_failure_where_experimental_is_most":    {func(p *matrix.Plan) { p.Ceiling = "experimental" }, verdicts(Pass, Fail, Pass), ok, NotSupported},
		"an_open_row_where_experimental_is_most":          {func(p *matrix.Plan) { p.Ceiling = "experimental" }, verdicts(Pass, NotExercised, Pass), ok, Undetermined},
		"a_limit_where_experimental_is_most":              {func(p *matrix.Plan) { p.Ceiling, p.Limits = "experimental", []string{"single uid"} }, verdicts(Pass, Pass, Pass), ok, Experimental},
		"an_engine_failure_and_a_limit":                   {func(p *matrix.Plan) { p.Limits = []string{"single uid"} }, verdicts(Fail, Pass, Pass), ok, NotSupported},
		"a_claimed_feature_without_rows_beside_a_failure": {func(p *matrix.Plan) { p.FeatureMissing = []string{"reconnect"} }, verdicts(Fail, Pass, Pass), ok, NotSupported},
		"flaky_beside_an_error":                           {nil, verdicts(Flaky, HarnessError, Pass), ok, NotSupported},
		"a_harness_row_that_is_flaky":                     {nil, verdicts(Pass, Pass, Flaky), ok, Undetermined},
		"an_environment_that_was_unmet":                   {nil, verdicts(Pass, EnvironmentUnmet, Pass), ok, Undetermined},
		"a_row_without_a_verdict_word":                    {nil, verdicts(Pass, NotRun, Pass), ok, Undetermined},
		"a_held_row_not_offered":                          {nil, verdicts(Pass, NotOffered, Pass), ok, Undetermined},
		"an_empty_plan":                                   {func(p *matrix.Plan) { p.Rows, p.CoreDeliver, p.CoreHold = nil, nil, nil }, nil, ok, Undetermined},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			p := plan
			if c.plan != nil {
				c.plan(&p)
			}
			r := Decide(p, c.verdicts, c.standing)
			g.Expect(r.Decision.String()).To(gomega.Equal(c.want.String()), "%v", r.Reasons)
			g.Expect(r.Reasons).NotTo(gomega.BeEmpty())
			written, err := json.MarshalIndent(decisionVector{vectorPlanOf(p), c.verdicts, c.standing, r}, "", "  ")
			g.Expect(err).NotTo(gomega.HaveOccurred())
			file := filepath.Join("testdata", "decisions", name+".json")
			if *update {
				g.Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(gomega.Succeed())
				g.Expect(os.WriteFile(file, append(written, '\n'), 0o644)).To(gomega.Succeed())
			}
			kept, err := os.ReadFile(file)
			g.Expect(err).NotTo(gomega.HaveOccurred(), "run go test ./evidence -update")
			g.Expect(string(written) + "\n").To(gomega.Equal(string(kept)))
		})
	}
}

// decisionVector is one published case of [Decide]: what went in, and the ruling.
type decisionVector struct {
	Plan     vectorPlan `json:"plan"`
	Verdicts []Verdict  `json:"verdicts"`
	Standing Standing   `json:"standing"`
	Ruling   Ruling     `json:"ruling"`
}

// vectorPlan is what a decision reads of a plan.
type vectorPlan struct {
	Environment    matrix.EnvironmentID            `json:"environment"`
	Ceiling        string                          `json:"ceiling"`
	Rows           []vectorRow                     `json:"rows"`
	Subset         bool                            `json:"subset"`
	Left           []matrix.RowID                  `json:"left_out,omitempty"`
	CoreDeliver    []matrix.RequirementID          `json:"core_deliver"`
	CoreAny        [][]matrix.RequirementID        `json:"core_any,omitempty"`
	CoreHold       []matrix.RequirementID          `json:"core_hold"`
	CoreMissing    []matrix.RequirementID          `json:"core_missing,omitempty"`
	FeatureMissing []string                        `json:"feature_missing,omitempty"`
	NotApplicable  map[matrix.RequirementID]string `json:"not_applicable,omitempty"`
	Limits         []string                        `json:"limits,omitempty"`
}

type vectorRow struct {
	ID          matrix.RowID         `json:"id"`
	Requirement matrix.RequirementID `json:"requirement"`
	Duty        matrix.Duty          `json:"duty"`
}

func vectorPlanOf(p matrix.Plan) vectorPlan {
	v := vectorPlan{Environment: p.Environment, Ceiling: p.Ceiling, Rows: []vectorRow{}, Subset: p.Subset, Left: p.Left, CoreDeliver: p.CoreDeliver, CoreAny: p.CoreAny,
		CoreHold: p.CoreHold, CoreMissing: p.CoreMissing, FeatureMissing: p.FeatureMissing, NotApplicable: p.NotApplicable, Limits: p.Limits}
	for _, c := range p.Rows {
		v.Rows = append(v.Rows, vectorRow{c.ID, c.Requirement, c.Duty})
	}
	return v
}

// What a plan was before it became a vector is all that a decision reads: the vectors alone give the same rulings.
func TestDecide_reads_nothing_that_its_vectors_lack(t *testing.T) {
	g := gomega.NewWithT(t)
	files, err := filepath.Glob("testdata/decisions/*.json")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(len(files)).To(gomega.BeNumerically(">=", 40))
	for _, file := range files {
		b, err := os.ReadFile(file)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		var v decisionVector
		g.Expect(json.Unmarshal(b, &v)).To(gomega.Succeed(), file)
		p := matrix.Plan{Environment: v.Plan.Environment, Ceiling: v.Plan.Ceiling, Subset: v.Plan.Subset, Left: v.Plan.Left, CoreDeliver: v.Plan.CoreDeliver, CoreAny: v.Plan.CoreAny,
			CoreHold: v.Plan.CoreHold, CoreMissing: v.Plan.CoreMissing, FeatureMissing: v.Plan.FeatureMissing, NotApplicable: v.Plan.NotApplicable, Limits: v.Plan.Limits}
		for _, r := range v.Plan.Rows {
			p.Rows = append(p.Rows, matrix.Contract{ID: r.ID, Requirement: r.Requirement, Duty: r.Duty})
		}
		g.Expect(Decide(p, v.Verdicts, v.Standing)).To(gomega.Equal(v.Ruling), file)
	}
}
