package evidence

import (
	"slices"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
)

// disclosureCases are about what a page does to the desk by itself (D10).
func disclosureCases() []vector {
	row := typeRow()
	row.ID, row.Stem, row.Requirement = "disclosure", "disclosure", "D10"
	row.Steps = []matrix.Step{{Name: "bind-1", Verb: "bind", Args: map[string]any{"window": 1, "as": "w"}}, {Name: "first", Verb: "type", Args: map[string]any{"text": "Ada"}, Background: true},
		{Name: "page", Verb: "page_acts", Args: map[string]any{"tab": "w/tab 1", "act": "move"}, Background: true},
		{Name: "act", Verb: "type", Args: map[string]any{"text": "Ada"}, Background: true}}
	row.Expect.Receipt = nil
	first := func() Observation {
		o := typeCall()
		o.Step, o.MonoNS, o.Call.StartNS, o.Call.ReplyNS, o.Call.ClosedNS = "first", 80, 60, 70, 80
		o.Call.Receipt.Effect, o.Call.Receipt.DeliveredCount = engine.EffectUnverifiable, 3
		return o
	}
	cause := func(origin string, signed bool) Observation {
		return Observation{Kind: KindJournal, Phase: PhaseBackground, Step: "page", MonoNS: 90, Journal: &Journal{Page: "w/tab 1", File: "other.html", Document: 1, Order: 2,
			Type: "act", Value: "move", Signed: signed, Origin: origin}}
	}
	moved := func(reason Reason, req matrix.RequirementID, actor Actor, inFlight bool) Observation {
		return Observation{Kind: KindDesk, Phase: PhaseBackground, Step: "page", MonoNS: 91, Desk: &Desk{EventNS: 91, Requirement: req, Reason: reason, Actor: actor, Channel: "core", Window: "target", InFlight: inFlight}}
	}
	next := func(words ...string) Observation {
		o := typeCall()
		o.Call.Receipt.BrowserInitiated = append([]string{}, words...)
		return o
	}
	typed := event("w/tab 1", "full-name", "input", "Ada", true)
	seen := func(own ...Observation) []Observation {
		return frame(row, append([]Observation{bindCall(), first()}, append(own, typed)...)...)
	}
	covers := moved(ReasonCoverChanged, "D2", ActorUnknown, false)
	out := []vector{
		{"page_act_told", row, seen(cause("browser", true), covers, next("moved_window")), Pass, nil},
		{"page_act_hidden", row, seen(cause("browser", true), covers, next()), Fail, []string{"D10 receipt_untrue"}},
		{"page_act_told_as_another", row, seen(cause("browser", true), covers, next("closed_window")), Fail, []string{"D10 receipt_untrue"}},
		{"page_act_without_cause", row, seen(covers, next("moved_window")), Fail, []string{"D10 receipt_untrue", "D2 cover_changed"}},
		{"page_act_forged_by_the_engine", row, seen(cause("engine", false), covers, next("moved_window")), Fail, []string{"D10 receipt_untrue", "D2 cover_changed", "M18 journal_forged"}},
		{"page_act_while_a_call_is_in_flight", row, seen(cause("browser", true), moved(ReasonCoverChanged, "D2", ActorBrowser, true), next("moved_window")), Fail, []string{"D2 cover_changed"}},
		{"page_act_done_by_the_engine", row, seen(cause("browser", true), moved(ReasonCoverChanged, "D2", ActorEngine, false), next("moved_window")), Fail, []string{"D2 cover_changed"}},
		{"page_act_brings_no_focus", row, seen(cause("browser", true), moved(ReasonFocusLeft, "D1", ActorBrowser, false), next("moved_window")), Fail, []string{"D1 focus_left"}},
		{"page_act_before_no_receipt", row, func() []Observation {
			o := next()
			o.Call.Receipt, o.Call.Operation = nil, engine.OpState
			return seen(cause("browser", true), covers, o)
		}(), HarnessError, []string{"J1 too_few_seen"}},
		{"page_blamed_with_no_act", typeRow(), frame(typeRow(), bindCall(), first(), typed, next("raised_window")), Fail, []string{"D10 receipt_untrue"}},
		{"first_receipt_tells_of_the_arrangement", typeRow(), frame(typeRow(), bindCall(), typed, next("opened_window", "raised_window")), Pass, nil},
	}
	for i := range out {
		if out[i].Findings == nil {
			out[i].Findings = []string{}
		}
		slices.Sort(out[i].Findings)
	}
	return out
}
