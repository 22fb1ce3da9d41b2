package evidence

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
)

// mutating lists the operations whose success needs a receipt.
var mutating = map[engine.Operation]bool{engine.OpPrepare: true, engine.OpNavigate: true, engine.OpClick: true, engine.OpType: true,
	engine.OpPointer: true, engine.OpSelect: true, engine.OpDialog: true, engine.OpUpload: true, engine.OpDownload: true, engine.OpContext: true}

// confirmable lists the operations whose effect an engine can read back, so that "unverifiable" would be a way to claim nothing (M17).
var confirmable = map[engine.Operation]bool{engine.OpNavigate: true, engine.OpType: true}

func (j *judgement) expectedRefusal(step string) *matrix.RefusalExpect {
	for i := range j.row.Expect.Refusal {
		if j.row.Expect.Refusal[i].Of == step {
			return &j.row.Expect.Refusal[i]
		}
	}
	return nil
}

// allowedRefusal says that a repeated step may be refused with what this call of it was refused with.
func (j *judgement) allowedRefusal(o Observation) bool {
	return o.Call.Refusal != nil && slices.ContainsFunc(j.row.Expect.Rounds, func(r matrix.RoundsExpect) bool {
		return r.Of == o.Step && slices.Contains(r.Refused, o.Call.Refusal.Trigger)
	})
}

// deliveredBeside reports that a call of the same group, whose window of time was closed at the same moment, was delivered.
func (j *judgement) deliveredBeside(c *Call) bool {
	return slices.ContainsFunc(j.of(KindCall), func(o Observation) bool {
		return o.Call.Grouped && o.Call.ClosedNS == c.ClosedNS && o.Call.Status == engine.StatusOK
	})
}

// rounds holds the floor of a repeated step.
func (j *judgement) rounds(want matrix.RoundsExpect) {
	calls := j.stepCalls[want.Of]
	delivered := 0
	for _, o := range calls {
		if o.Call.Carrier == "" && o.Call.Status == engine.StatusOK {
			delivered++
		}
	}
	if delivered < want.Delivered && !j.interrupted() {
		j.add(j.row.Requirement, ReasonRefused, calls[len(calls)-1], "%d of %d calls of %s were delivered, want at least %d", delivered, len(calls), want.Of, want.Delivered)
	}
}

// refusalRequirement is the requirement that a wrong answer to an undeclared action breaks.
func (j *judgement) refusalRequirement() matrix.RequirementID {
	if j.row.Twin {
		return "R3"
	}
	return j.row.Requirement
}

func (j *judgement) calls() {
	all := j.of(KindCall)
	if len(all) == 0 {
		j.add("J1", ReasonTooFewSeen, j.end(), "no call of the engine was observed")
	}
	for _, o := range all {
		c := o.Call
		switch c.Carrier {
		case "":
		case "timeout":
			j.late(j.row.Requirement, ReasonBudgetMissed, o, time.Duration(c.ReplyNS-c.StartNS)+1, j.row.Budget)
			continue
		case "not_offered":
			j.add(j.row.Requirement, ReasonNotOffered, o, "the engine has no tool %s", c.Operation)
			continue
		case "gone":
			j.add(j.row.Requirement, ReasonEngineGone, o, "the engine's process was gone in %s", c.Operation)
			continue
		default:
			j.add("R1", ReasonResultMalformed, o, "%s returned something that is no result: %s", c.Operation, c.Carrier)
			continue
		}
		if c.Operation != engine.OpPrepare {
			j.late(j.row.Requirement, ReasonBudgetMissed, o, time.Duration(c.ReplyNS-c.StartNS), j.row.Budget)
		}
		if c.Block != "" && (c.Status == engine.StatusOK || c.Status == engine.StatusRefused) {
			j.blockCall(o)
			continue
		}
		switch c.Status {
		case engine.StatusOK:
			j.delivered(o)
		case engine.StatusRefused:
			j.refused(o)
		default:
			j.add("R1", ReasonResultMalformed, o, "%s returned status %q", c.Operation, c.Status)
		}
	}
}

// delivered judges a call that was not refused.
func (j *judgement) delivered(o Observation) {
	c := o.Call
	if want := j.expectedRefusal(o.Step); want != nil {
		reason := ReasonRefusalMissing
		switch want.Trigger {
		case "generation_changed", "ref_retired", "tab_gone", "reconnect_unsupported":
			reason = ReasonStaleAccepted
		}
		j.add(j.refusalRequirement(), reason, o, "%s was delivered; %s (%s) was due", c.Operation, want.Code, want.Trigger)
	}
	if len(c.Violations) > 0 {
		j.add("M17", ReasonReceiptMalformed, o, "%s: %s", c.Operation, c.Violations[0])
	}
	j.posture(o)
	if c.Receipt == nil {
		if mutating[c.Operation] {
			j.add("M17", ReasonReceiptMissing, o, "%s returned no receipt", c.Operation)
		}
		return
	}
	j.receipt(o)
}

// posture holds S14: a binding and the receipt of a launch name a posture that the row has asked for, and so nothing of the engine's own
// as the person's. What is launched for a row is isolated_new, unless a step says otherwise.
func (j *judgement) posture(o Observation) {
	asked := []engine.Posture{engine.PostureIsolatedNew}
	for _, s := range j.row.Steps {
		if p := s.Text("profile"); s.Verb == "prepare" && p != "" {
			asked = append(asked, engine.Posture(p))
		}
	}
	if b := o.Call.Bind; b != nil && !slices.Contains(asked, b.Posture) {
		j.add("S14", ReasonPostureUntrue, o, "the binding is presented as %q; the browser was launched as %v", b.Posture, asked)
	}
	if r := o.Call.Receipt; r != nil && o.Call.Operation == engine.OpPrepare && !slices.Contains(asked, r.Posture) {
		j.add("S14", ReasonPostureUntrue, o, "the launch is presented as %q; asked for was %v", r.Posture, asked)
	}
}

// windowless says whether a call claims to have launched a browser of which no window appeared.
func (j *judgement) windowless(o Observation) bool {
	if o.Call.Operation != engine.OpPrepare || o.Call.Status != engine.StatusOK || o.Call.Receipt == nil || !o.Call.Receipt.SideEffects.LaunchedBrowser {
		return false
	}
	return slices.ContainsFunc(j.of(KindSystem), func(s Observation) bool {
		return s.Step == o.Step && s.System.Fact == FactWindowOpened && !s.System.Holds
	})
}

// refused judges a refusal: its form, its time, and that it changed nothing. Whether it was due is judged here too.
func (j *judgement) refused(o Observation) {
	c := o.Call
	if c.Refusal == nil || len(c.Violations) > 0 || c.Receipt != nil {
		text := "refusal without code"
		if len(c.Violations) > 0 {
			text = c.Violations[0]
		}
		j.add("R1", ReasonRefusalMalformed, o, "%s: %s", c.Operation, text)
	}
	want := j.expectedRefusal(o.Step)
	budget, slow := refusalBudget, matrix.RequirementID("R7")
	if want != nil && want.Within > 0 {
		budget, slow = want.Within, j.row.Requirement // what the row asks for is the row's
	}
	if c.Operation != engine.OpPrepare || want != nil && want.Within > 0 {
		j.late(slow, ReasonRefusalLate, o, time.Duration(c.ReplyNS-c.StartNS), budget)
	}
	for _, e := range j.of(KindJournal) {
		if c.Grouped && (j.expected(e.Journal) || j.deliveredBeside(c)) {
			continue // another call of the group may have brought it about; what nobody asked for is an effect elsewhere
		}
		if e.MonoNS >= c.StartNS && e.MonoNS <= c.ClosedNS && e.Journal.Signed && interaction[e.Journal.Type] {
			j.add("R2", ReasonRefusalMutated, e, "%s was refused, and %s of %s saw %s in its window of time", c.Operation, e.Journal.Control, e.Journal.Page, e.Journal.Type)
		}
	}
	if want == nil {
		if c.Refusal == nil || j.allowedRefusal(o) {
			return
		}
		if c.Arrange && !j.provesItself(c.Operation) {
			j.add(j.row.Requirement, ReasonPreconditionUnmet, o, "arranging the desk: %s was refused with %s (%s)", c.Operation, c.Refusal.Code, c.Refusal.Trigger)
			return
		}
		j.add(j.row.Requirement, ReasonRefused, o, "%s was refused with %s (%s), where it had to be delivered", c.Operation, c.Refusal.Code, c.Refusal.Trigger)
		return
	}
	if c.Refusal == nil {
		return
	}
	if c.Refusal.Code != want.Code {
		j.add(j.refusalRequirement(), ReasonRefusalWrong, o, "%s was refused with %s, want %s", c.Operation, c.Refusal.Code, want.Code)
		return
	}
	got := detailFields(c.Refusal.Detail)
	for _, field := range sortedKeys(want.Detail) {
		if got[field] != want.Detail[field] {
			j.add(j.refusalRequirement(), ReasonRefusalWrong, o, "%s: refusal detail %s is %q, want %q", c.Operation, field, got[field], want.Detail[field])
			return
		}
	}
}

// provesItself reports that the row is about an operation which arranges its desk as well: what a row about binding needs and what it proves is the
// same bind, so a polite refusal of it while the desk is arranged is the refusal of what had to be delivered. For every other row it is a
// precondition that was not met.
func (j *judgement) provesItself(op engine.Operation) bool {
	verb := map[engine.Operation]string{engine.OpPrepare: "prepare", engine.OpNavigate: "navigate", engine.OpContext: "open_tab"}[op]
	switch {
	case op == engine.OpState:
		return len(j.row.Expect.Bind) > 0
	case verb == "":
		return false
	}
	return slices.ContainsFunc(j.row.Steps, func(s matrix.Step) bool { return s.Verb == verb && j.expectedRefusal(s.Name) == nil })
}

// refusedWhileArranging reports that the engine refused, while the desk was arranged, what the row is about: its state could then not be measured, and that
// is the engine's doing.
func (j *judgement) refusedWhileArranging() bool {
	return slices.ContainsFunc(j.of(KindCall), func(o Observation) bool {
		return o.Call.Arrange && o.Call.Status == engine.StatusRefused && j.provesItself(o.Call.Operation)
	})
}

// receipt compares every field of a receipt with what was seen (M17), and with what the row asks of it.
func (j *judgement) receipt(o Observation) {
	c, r := o.Call, o.Call.Receipt
	if r.Operation != c.Operation {
		j.add("M17", ReasonReceiptUntrue, o, "the receipt is of %s, the call was %s", r.Operation, c.Operation)
	}
	_, trusted, untrusted := j.effectsOf(o)
	switch j.effectStanding(o) {
	case EffectStands, EffectNotLookedAt:
	case EffectUnseen:
		j.add("M17", ReasonReceiptUntrue, o, "%s says confirmed; no page of %s reported any effect", c.Operation, c.Page)
	case EffectUnclaimed:
		j.add("M17", ReasonEffectUnconfirmed, o, "%s says %s; the page reported the effect, and it can be read back", c.Operation, r.Effect)
	default:
		j.add("M17", ReasonReceiptMalformed, o, "%s: effect %q", c.Operation, r.Effect)
	}
	switch {
	case c.Operation != engine.OpClick && c.Operation != engine.OpType:
	case r.Trust == engine.TrustTrustedInput && untrusted:
		j.add("M17", ReasonReceiptUntrue, o, "%s says trusted_input; the page saw untrusted events", c.Operation)
	case r.Trust == engine.TrustDOMEvent && trusted:
		j.add("M17", ReasonReceiptUntrue, o, "%s says dom_event; the page saw trusted events", c.Operation)
	}
	if c.Operation == engine.OpType {
		if r.RequestedCount != c.Chars {
			j.add("M17", ReasonReceiptUntrue, o, "requested_count is %d, %d code points were asked for", r.RequestedCount, c.Chars)
		}
		if r.Effect == engine.EffectConfirmed && r.DeliveredCount != c.Chars {
			j.add("M17", ReasonReceiptUntrue, o, "confirmed with delivered_count %d of %d", r.DeliveredCount, c.Chars)
		}
	}
	if was, known := j.valueBefore(o); known && r.ValueBefore != nil && *r.ValueBefore != was {
		j.add("M17", ReasonReceiptUntrue, o, "the receipt says that %q was replaced; the page reported %q before the call", *r.ValueBefore, was)
	}
	j.flags(o)
	for _, want := range j.row.Expect.Receipt {
		if want.Of != o.Step {
			continue
		}
		if len(want.Effect) > 0 && !slices.Contains(want.Effect, r.Effect) {
			j.add(j.row.Requirement, ReasonReceiptUnexpected, o, "effect is %s, want one of %v", r.Effect, want.Effect)
		}
		if want.Trust != "" && r.Trust != want.Trust {
			j.add(j.row.Requirement, ReasonReceiptUnexpected, o, "trust is %s, want %s", r.Trust, want.Trust)
		}
		if want.Route != "" && r.Route != want.Route {
			j.add(j.row.Requirement, ReasonReceiptUnexpected, o, "route is %s, want %s", r.Route, want.Route)
		}
		if want.ValueBefore != nil && (r.ValueBefore == nil || *r.ValueBefore != *want.ValueBefore) {
			j.add(j.row.Requirement, ReasonReceiptUnexpected, o, "value_before is %s, want %q", quoted(r.ValueBefore), *want.ValueBefore)
		}
		if want.Within > 0 {
			j.late(j.row.Requirement, ReasonBudgetMissed, o, time.Duration(c.ReplyNS-c.StartNS), want.Within)
		}
		flags := sideEffectFlags(r.SideEffects)
		for _, name := range sortedKeys(want.SideEffects) {
			if flags[name] != want.SideEffects[name] {
				j.add(j.row.Requirement, ReasonReceiptUnexpected, o, "side effect %s is %t, want %t", name, flags[name], want.SideEffects[name])
			}
		}
	}
}

// effectsOf says whether the page that a call was aimed at reported an effect in the call's window of time, and whether any of its
// input events was trusted or untrusted.
func (j *judgement) effectsOf(o Observation) (saw, trusted, untrusted bool) {
	c := o.Call
	for _, e := range j.of(KindJournal) {
		ev := e.Journal
		if e.MonoNS < c.StartNS || e.MonoNS > c.ClosedNS || !ev.Signed || ev.Page != c.Page {
			continue
		}
		switch {
		case c.Operation == engine.OpNavigate:
			saw = saw || ev.Type == "load"
		case ev.Type == "click" || ev.Type == "input" || ev.Type == "change":
			saw = true
			if ev.Trusted {
				trusted = true
			} else {
				untrusted = true
			}
		}
	}
	return saw, trusted, untrusted
}

// valueBefore is what the control that a call typed into held before it, as its page reported it.
func (j *judgement) valueBefore(o Observation) (string, bool) {
	if o.Call.Operation != engine.OpType || o.Call.Grouped {
		return "", false
	}
	var typed *Journal
	for _, e := range j.of(KindJournal) {
		if typed == nil && e.MonoNS >= o.Call.StartNS && e.MonoNS <= o.Call.ClosedNS && e.Journal.Signed && e.Journal.Page == o.Call.Page && e.Journal.Type == "input" {
			typed = e.Journal
		}
	}
	if typed == nil || typed.ValueDigest != "" {
		return "", false
	}
	was, known := "", false
	for _, e := range j.of(KindJournal) {
		ev := e.Journal
		if e.MonoNS < o.Call.StartNS && ev.Signed && ev.Page == typed.Page && ev.Document == typed.Document && ev.Control == typed.Control && ev.ValueDigest == "" &&
			(ev.Type == "input" || ev.Type == "change" || ev.Type == "state") {
			was, known = ev.Value, true
		}
	}
	return was, known
}

func quoted(s *string) string {
	if s == nil {
		return "null"
	}
	return strconv.Quote(*s)
}

// cutDuring reports that the connection was cut while the call was under way: then nothing can be read back.
func (j *judgement) cutDuring(o Observation) bool {
	return slices.ContainsFunc(j.of(KindSystem), func(f Observation) bool {
		return f.System.Fact == FactCut && f.System.Holds && f.MonoNS >= o.Call.StartNS && f.MonoNS <= o.Call.ClosedNS
	})
}

// secretTyped reports that the call changed a secret control, whose value an engine must not read back.
func (j *judgement) secretTyped(o Observation) bool {
	for _, e := range j.of(KindJournal) {
		if e.MonoNS >= o.Call.StartNS && e.MonoNS <= o.Call.ClosedNS && e.Journal.Page == o.Call.Page && e.Journal.ValueDigest != "" {
			return true
		}
	}
	return false
}

// arrivedAsAsked reports that what a call asked for can be read back as it was asked: for typing, that the page reported a value that holds
// the text. A page that rewrites its input holds something else, and an engine that then claims nothing is honest.
func (j *judgement) arrivedAsAsked(o Observation) bool {
	if o.Call.Operation != engine.OpType {
		return true
	}
	// What stands in the control at the end of the call's window of time is what can be read back.
	last := ""
	for _, e := range j.of(KindJournal) {
		if e.MonoNS >= o.Call.StartNS && e.MonoNS <= o.Call.ClosedNS && e.Journal.Page == o.Call.Page &&
			(e.Journal.Type == "input" || e.Journal.Type == "change" || e.Journal.Type == "state") {
			last = e.Journal.Value
		}
	}
	return strings.Contains(last, j.steps[o.Step].Text("text"))
}

// flags compares the side-effect flags with the oracles. In the background phase nothing that touches the desk may be claimed: what is
// true is a violation that the desk oracle reports, and what is not is a lie. In the prepare phase each flag equals what was seen (S4).
func (j *judgement) flags(o Observation) {
	c := o.Call
	flags := sideEffectFlags(c.Receipt.SideEffects)
	allowed := map[string]bool{}
	switch c.Operation {
	case engine.OpPrepare:
		j.prepareFlags(o, flags)
		for _, name := range prepareFlagNames {
			allowed[name] = true
		}
		allowed["enabled_remote_debugging"], allowed["closed_window"] = true, flags["restarted_browser"]
	case engine.OpSessionEnd:
		// The browser's processes were seen to go with the session, and its windows with them.
		allowed["closed_window"] = j.holds(o.Step, FactProcessesGone)
	case engine.OpContext:
		if flags["opened_context"] == flags["closed_context"] {
			j.add("M17", ReasonReceiptUntrue, o, "browser_context claims opened %t and closed %t; exactly one is true", flags["opened_context"], flags["closed_context"])
		}
		allowed["opened_context"], allowed["closed_context"] = true, true
	}
	for _, name := range sortedKeys(flags) {
		if flags[name] && !allowed[name] {
			j.add("M17", ReasonReceiptUntrue, o, "%s claims side effect %s, which no oracle saw", c.Operation, name)
		}
	}
}

// holds reports whether a fact was measured in a step and found to hold.
func (j *judgement) holds(step, fact string) bool {
	return slices.ContainsFunc(j.of(KindSystem), func(o Observation) bool { return o.Step == step && o.System.Fact == fact && o.System.Holds })
}

// prepareFlagNames are the flags of a launch that oracles see.
var prepareFlagNames = []string{"launched_browser", "restarted_browser", "created_profile", "opened_window", "foregrounded_window", "raised_window", "moved_pointer", "took_clipboard"}

// prepareFlags holds S4: what launch did to the desk is declared exactly.
func (j *judgement) prepareFlags(o Observation, flags map[string]bool) {
	c := o.Call
	seen := map[string]bool{}
	for _, d := range j.of(KindDesk) {
		if d.Desk.EventNS < c.StartNS || d.Desk.EventNS > c.ClosedNS {
			continue
		}
		switch d.Desk.Reason {
		case ReasonFocusLeft:
			seen["foregrounded_window"] = true
		case ReasonWindowAbovePerson, ReasonStackingChanged:
			seen["raised_window"] = true
		case ReasonPointerMoved, ReasonPointerWarped:
			seen["moved_pointer"] = true
		case ReasonClipboardTaken, ReasonPrimaryTaken:
			seen["took_clipboard"] = true
		}
	}
	measured := map[string]bool{"restarted_browser": true, "foregrounded_window": true, "raised_window": true, "moved_pointer": true, "took_clipboard": true}
	for _, s := range j.of(KindSystem) {
		if s.Step != o.Step {
			continue
		}
		if s.System.Fact == FactWindowAbove && s.System.Holds {
			// A window that opens above others than the person's is a raise all the same, and no violation that the event log would tell of.
			seen["raised_window"] = true
		}
		name := map[string]string{FactLaunched: "launched_browser", FactRestarted: "restarted_browser", FactWindowOpened: "opened_window", FactProfileOwn: "created_profile"}[s.System.Fact]
		if name != "" {
			measured[name], seen[name] = true, s.System.Holds
		}
	}
	if j.windowless(o) {
		j.add("B19", ReasonRefusalMissing, o, "%s was delivered, and no window of the browser is there", o.Call.Operation)
	}
	for _, name := range prepareFlagNames {
		switch {
		case !measured[name]:
			j.add("S4", ReasonTooFewSeen, o, "side effect %s was not measured", name)
		case seen[name] && !flags[name]:
			j.add("S4", ReasonUndeclaredEffect, o, "the launch did %s and its receipt says it did not", name)
		case !seen[name] && flags[name]:
			j.add("S4", ReasonOverdeclared, o, "the receipt declares %s and no oracle saw it", name)
		}
	}
}
