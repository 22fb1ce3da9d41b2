package evidence

import (
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
)

// tried is one vector before it is written: observations of a row, and what the judge must say of them.
type tried struct {
	name     string
	row      matrix.Contract
	obs      []Observation
	outcome  Outcome
	findings string
}

// replaceRow is a row about a value that is replaced, within a second.
func replaceRow() matrix.Contract {
	c := typeRow()
	c.ID, c.Stem, c.Requirement = "outside-changes", "outside-changes", "M13"
	c.Steps[1].Args["replace"] = true
	c.Expect.Receipt[0].ValueBefore, c.Expect.Receipt[0].Within = ptr("Eva"), time.Second
	return c
}

// replaced is what such a row sees when the receipt says that a value was replaced; "" says nothing.
func replaced(said string, edit ...func(*Call)) []Observation {
	before := event("w/tab 1", "full-name", "state", "Eva", false)
	before.MonoNS = 60
	call := typeCall()
	if said != "" {
		call.Call.Receipt.ValueBefore = &said
	}
	for _, e := range edit {
		e(call.Call)
	}
	return frame(replaceRow(), bindCall(), before, event("w/tab 1", "full-name", "input", "Ada", true), call)
}

// lossRow is a row that loses a process in the given way.
func lossRow(verb, process string) matrix.Contract {
	c := typeRow()
	c.ID, c.Stem, c.Requirement = "lost-browser", "lost-browser", "G12"
	c.Steps = append(c.Steps, matrix.Step{Name: "lose", Verb: verb, Args: map[string]any{"process": process}})
	return c
}

func lost(c matrix.Contract, own ...Observation) []Observation {
	return frame(c, append([]Observation{bindCall(), event("w/tab 1", "full-name", "input", "Ada", true), typeCall()}, own...)...)
}

// changedCases are about what changed between two calls: values, processes, connections, and the desk behind a refusal.
func changedCases() []tried {
	re := refusalRow()
	refusal := refusedCall(engine.CodeInputTrustUnavailable, "would_touch_desk", engine.Detail{Limitation: "would_raise"})
	quick := refusalRow()
	quick.Requirement, quick.Twin = "M19", false
	quick.Expect.Refusal[0].Within = time.Second
	slow := refusedCall(engine.CodeInputTrustUnavailable, "would_touch_desk", engine.Detail{Limitation: "would_raise"})
	slow.Call.ReplyNS = slow.Call.StartNS + 1_500_000_000
	slow.Call.ClosedNS = slow.Call.ReplyNS
	unknown := typeCall()
	unknown.Call.Receipt.Effect = engine.EffectUnknown
	cut := fact("act", FactCut, true)
	cut.MonoNS = 120
	middle := typeRow()
	middle.Expect.Receipt[0].Effect = []engine.Effect{engine.EffectUnknown}
	bound := typeRow()
	bound.Expect.Bind = []matrix.BindExpect{{Of: "bind-1", Quality: engine.QualityExact, Within: time.Second}}
	late := bindCall()
	late.Call.ReplyNS = late.Call.StartNS + 1_500_000_000
	killed, thawed := lossRow("kill", "browser"), lossRow("thaw", "browser")
	garbled := typeRow()
	garbled.ID, garbled.Stem, garbled.Requirement = "garbled", "garbled", "G15"
	garbled.Steps = append(garbled.Steps, matrix.Step{Name: "garble", Verb: "garble", Args: map[string]any{"with": "endless"}})
	endless, malformed := fact("garble", FactGarbled, true), fact("garble", FactGarbled, true)
	endless.System.Detail, malformed.System.Detail = "endless", "malformed"
	ended := fact("end", FactEngineLives, false)
	led := lossRow("thaw", "browser")
	led.Requirement = "G11"
	led.Steps[len(led.Steps)-1].Args["when"] = "dialled"
	goesOn := fact("lose", FactThawed, true)
	return []tried{
		{"one_connection_asked_for", led, lost(led, goesOn, fact("lose", FactOneConnection, true)), Pass, ""},
		{"two_connections_asked_for", led, lost(led, goesOn, fact("lose", FactOneConnection, false)), Fail, "G11 effect_repeated"},
		{"connections_not_counted", led, lost(led, goesOn), HarnessError, "J1 too_few_seen"},
		{"engine_ended_after_its_last_reply", typeRow(), lost(typeRow(), ended), Fail, "M5 engine_gone"},
		{"messages_garbled", garbled, lost(garbled, endless), Pass, ""},
		{"messages_garbled_otherwise", garbled, lost(garbled, malformed), HarnessError, "J1 too_few_seen"},
		{"replaced_as_the_page_says", replaceRow(), replaced("Eva"), Pass, ""},
		{"replaced_and_not_told", replaceRow(), replaced(""), Fail, "M13 receipt_unexpected"},
		{"replaced_another_than_the_page_says", replaceRow(), replaced("Eve"), Fail, "M13 receipt_unexpected, M17 receipt_untrue"},
		{"receipt_later_than_the_row_allows", replaceRow(), replaced("Eva", func(c *Call) { c.ReplyNS = c.StartNS + 1_500_000_000 }), Fail, "M13 budget_missed"},
		{"bind_later_than_the_row_allows", bound, frame(bound, late, event("w/tab 1", "full-name", "input", "Ada", true), typeCall()), Fail, "M5 budget_missed"},
		{"refusal_later_than_the_row_allows", quick, frame(quick, bindCall(), slow, fact("act", FactUnchanged, true)), Fail, "M19 refusal_late"},
		{"unknown_after_a_cut", middle, frame(middle, bindCall(), event("w/tab 1", "full-name", "input", "Ada", true), cut, unknown), Pass, ""},
		{"unknown_without_a_cut", middle, frame(middle, bindCall(), event("w/tab 1", "full-name", "input", "Ada", true), unknown), Fail, "M17 effect_unconfirmed"},
		{"pointer_stands_in_for_a_refused_action", re, frame(re, bindCall(), refusal, violation(ReasonPointerMoved, "D3", ActorEngine), fact("act", FactUnchanged, true)), Fail, "D3 pointer_moved, R5 pointer_moved"},
		{"browser_killed", killed, lost(killed, fact("lose", FactBrowserKilled, true)), Pass, ""},
		{"browser_not_killed", killed, lost(killed, fact("lose", FactBrowserKilled, false)), HarnessError, "J5 harness_fault"},
		{"browser_thawed_by_hearsay", thawed, lost(thawed), HarnessError, "J1 too_few_seen"},
	}
}
