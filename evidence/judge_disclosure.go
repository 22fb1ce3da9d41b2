package evidence

import (
	"slices"

	"github.com/engine-acceptance/acceptance/matrix"
)

// ofPage reports whether a violation of the desk is a page's own doing: in a step in which the row has a page act, with no call in flight,
// told by the journal as that page's, of a kind that this act can bring, and by nobody whose act cannot be a page's (actors.yaml).
// Everything else is charged, whatever a receipt says of it (D10).
func (j *judgement) ofPage(o Observation) bool {
	step, d := j.steps[o.Step], o.Desk
	if step.Verb != "page_acts" || d.InFlight || !slices.Contains(policy.Pages[step.Text("act")].Brings, d.Reason) || !j.acted(step) {
		return false
	}
	return policy.Actors[d.Actor].ForPage
}

// acted reports whether the journal has the act of a step, from the page's own closure.
func (j *judgement) acted(s matrix.Step) bool {
	return slices.ContainsFunc(j.of(KindJournal), func(o Observation) bool {
		ev := o.Journal
		return o.Step == s.Name && ev.Type == "act" && ev.Value == s.Text("act") && ev.Signed && ev.Origin == "browser" && ev.Page == j.row.PageName(s.Text("tab"))
	})
}

// disclosures holds the rest of D10: what a page did while no call was in flight stands in the next receipt, and nothing stands there that no
// page did. The first receipt of a session also tells of what came before the row's steps, and one after something that the harness or the person
// did to windows tells of that: those are not judged for more than what must be in them.
func (j *judgement) disclosures() {
	due := map[string]string{} // word -> the step whose page did it
	since := map[string]bool{} // sessions that had a receipt since the last such thing
	for i := range j.obs {
		o := j.obs[i]
		switch {
		case o.Kind == KindJournal && o.Journal.Type == "act":
			if step := j.steps[o.Step]; step.Verb == "page_acts" && j.acted(step) {
				due[policy.Pages[step.Text("act")].ToldAs] = step.Name
			}
		case o.Kind == KindStep:
			verb, known := matrix.LookupVerb(j.steps[o.Step].Verb)
			if known && (verb.Name == "prepare" || verb.Operation == "" && !idle[verb.Name]) {
				clear(since)
			}
		case o.Kind == KindCall && o.Phase == PhaseBackground && !o.Call.Arrange && o.Call.Receipt != nil:
			told, session := o.Call.Receipt.BrowserInitiated, j.steps[o.Step].Text("session")
			for _, word := range sortedKeys(due) {
				if !slices.Contains(told, word) {
					j.add("D10", ReasonReceiptUntrue, o, "the page of step %s did %s, and the next receipt, of %s, does not tell of it", due[word], word, o.Call.Operation)
				}
			}
			for _, word := range told {
				if due[word] == "" && since[session] {
					j.add("D10", ReasonReceiptUntrue, o, "the receipt of %s says that page or browser did %s, and no page said so", o.Call.Operation, word)
				}
			}
			clear(due)
			since[session] = true
		}
	}
	for _, word := range sortedKeys(due) {
		if !j.interrupted() {
			j.add("J1", ReasonTooFewSeen, j.end(), "no receipt came after the page of step %s did %s", due[word], word)
		}
	}
}

// idle are the verbs of the harness that do nothing to a window.
var idle = map[string]bool{"wait": true, "page_acts": true, "report_forged": true, "call": true}
