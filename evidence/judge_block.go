package evidence

import (
	"slices"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
)

// run is one way through one lane of a block, in one round.
type run struct{ round, lane int }

// blockOf is what the row expects of a block; nil when it is none.
func (j *judgement) blockOf(block string) *matrix.BlockExpect {
	for i := range j.row.Expect.Blocks {
		if j.row.Expect.Blocks[i].Of == block {
			return &j.row.Expect.Blocks[i]
		}
	}
	return nil
}

// blockCall judges what can be said of one call inside a block by itself: that it is a result in time, that its refusal is one that the
// block may meet, that its receipt is well formed. What came of it is judged over the whole block, for the calls of a block have no window of
// time of their own.
func (j *judgement) blockCall(o Observation) {
	c := o.Call
	want := j.blockOf(c.Block)
	if want == nil {
		j.add("J1", ReasonObservationsBad, o, "%s was called in the block %q, of which the row expects nothing", c.Operation, c.Block)
		return
	}
	if len(c.Violations) > 0 {
		req, reason := matrix.RequirementID("M17"), ReasonReceiptMalformed
		if c.Status == engine.StatusRefused {
			req, reason = "R1", ReasonRefusalMalformed
		}
		j.add(req, reason, o, "%s: %s", c.Operation, c.Violations[0])
	}
	if c.Status == engine.StatusOK {
		if c.Receipt == nil && mutating[c.Operation] {
			j.add("M17", ReasonReceiptMissing, o, "%s returned no receipt", c.Operation)
		}
		if c.Receipt != nil {
			j.flags(o)
		}
		return
	}
	if c.Refusal == nil {
		j.add("R1", ReasonRefusalMalformed, o, "%s: refusal without code", c.Operation)
		return
	}
	within := refusalBudget
	i := slices.IndexFunc(want.Refusals, func(r matrix.RefusalExpect) bool { return r.Trigger == c.Refusal.Trigger && r.Code == c.Refusal.Code })
	switch {
	case len(want.Refusals) == 0:
		j.add(j.row.Requirement, ReasonRefused, o, "%s was refused with %s (%s), where it had to be delivered", c.Operation, c.Refusal.Code, c.Refusal.Trigger)
	case i < 0:
		j.add(j.row.Requirement, ReasonRefusalWrong, o, "%s was refused with %s (%s), want %s", c.Operation, c.Refusal.Code, c.Refusal.Trigger, want.Refusals[0].Code)
	default:
		got := detailFields(c.Refusal.Detail)
		for _, field := range sortedKeys(want.Refusals[i].Detail) {
			if got[field] != want.Refusals[i].Detail[field] {
				j.add(j.row.Requirement, ReasonRefusalWrong, o, "%s: refusal detail %s is %q, want %q", c.Operation, field, got[field], want.Refusals[i].Detail[field])
			}
		}
		if want.Refusals[i].Within > 0 {
			within = want.Refusals[i].Within
		}
	}
	j.late("R7", ReasonRefusalLate, o, time.Duration(c.ReplyNS-c.StartNS), within)
}

// sent is a text that a call of a block was to bring to a page.
type sent struct {
	call Observation
	page string
	text string
	seen int
}

// block judges a block as a whole: that all of it was done, that every text that a page reports was sent to that page, and how many runs
// were delivered.
func (j *judgement) block(want matrix.BlockExpect) {
	block, known := j.steps[want.Of]
	if !known || j.has(ReasonPreconditionUnmet) {
		return
	}
	runs := map[run][]Observation{}
	for _, o := range j.of(KindCall) {
		if o.Call.Block == want.Of {
			at := run{o.Call.Round, o.Call.Lane}
			runs[at] = append(runs[at], o)
		}
	}
	planned := block.Runs()
	if len(runs) < planned && !j.interrupted() {
		j.add("J1", ReasonTooFewSeen, j.end(), "%d of %d runs of %s were observed", len(runs), planned, want.Of)
		return
	}
	if cuts := slices.ContainsFunc(block.Inner(), func(s matrix.Step) bool { return s.Verb == "cut" }); cuts {
		n := 0
		for _, o := range j.of(KindSystem) {
			if o.Step == want.Of && o.System.Fact == FactCut && o.System.Holds {
				n++
			}
		}
		if n*100 < want.Delivered*block.Int("times") || n == 0 {
			j.add("J1", ReasonTooFewSeen, j.end(), "the connection was cut in %d of %d rounds of %s", n, block.Int("times"), want.Of)
		}
	}
	texts := j.texts(block, runs)
	j.landed(want, texts)
	delivered, lost, first := 0, 0, Observation{}
	for round := 1; round <= block.Int("times"); round++ {
		for lane := range len(block.Lanes) + 1 {
			calls, steps := runs[run{round, lane}], block.Lane(lane)
			if len(steps) == 0 {
				continue
			}
			complete := len(calls) == matrix.Calls(steps)
			for _, o := range calls {
				complete = complete && o.Call.Status == engine.StatusOK
			}
			for _, t := range texts {
				if t.call.Call.Round == round && t.call.Call.Lane == lane && t.seen == 0 && !want.None {
					if complete {
						lost++
					}
					complete = false
				}
			}
			if complete {
				if delivered++; delivered == 1 {
					first = calls[len(calls)-1]
				}
			}
		}
	}
	reason := ReasonRefused
	if lost > 0 {
		reason = ReasonEffectMissing
	}
	switch {
	case want.None && delivered > 0:
		reason = ReasonRefusalMissing
		if slices.Contains([]string{"generation_changed", "ref_retired", "tab_gone", "reconnect_unsupported"}, want.Refusals[0].Trigger) {
			reason = ReasonStaleAccepted
		}
		j.add(j.row.Requirement, reason, first, "%d of %d runs of %s were delivered, where %s (%s) was due", delivered, planned, want.Of, want.Refusals[0].Code, want.Refusals[0].Trigger)
	case !want.None && delivered*100 < want.Delivered*planned:
		j.add(j.row.Requirement, reason, j.end(), "%d of %d runs of %s were delivered, want %d %%", delivered, planned, want.Of, want.Delivered)
	}
}

// texts lists what the type calls of a block were to bring where, in order.
func (j *judgement) texts(block matrix.Step, runs map[run][]Observation) []*sent {
	steps := map[string]matrix.Step{}
	for _, s := range block.Inner() {
		steps[s.Name] = s
	}
	var out []*sent
	for round := 1; round <= block.Int("times"); round++ {
		for lane := range len(block.Lanes) + 1 {
			for _, o := range runs[run{round, lane}] {
				if s := steps[o.Step]; s.Verb == "type" && o.Call.Page != "" {
					out = append(out, &sent{call: o, page: o.Call.Page, text: s.InRound(round).Text("text")})
				}
			}
		}
	}
	return out
}

// landed compares what the pages reported since the block began with what was sent to them. A text on another page than its own, one that
// nobody sent, one that came twice, and one that came although its call was refused are four different faults.
func (j *judgement) landed(want matrix.BlockExpect, texts []*sent) {
	if len(texts) == 0 || len(want.Lands) == 0 {
		return // nothing of them may arrive; what does is somewhere else than where the row expects effects
	}
	began := texts[0].call.Call.StartNS
	for _, o := range j.seen() {
		ev := o.Journal
		if o.MonoNS < began || ev.Type != "input" || ev.Value == "" || !j.lands(want, ev) {
			continue
		}
		var own, other *sent
		for _, t := range texts {
			switch {
			case t.text != ev.Value:
			case t.page == ev.Page && (own == nil || own.seen > 0):
				own = t
			case t.page != ev.Page && other == nil:
				other = t
			}
		}
		switch {
		case own != nil && own.call.Call.Status == engine.StatusRefused:
			j.add("R2", ReasonRefusalMutated, o, "%s in round %d was refused, and its text arrived in %s", own.call.Step, own.call.Call.Round, ev.Page)
		case own != nil:
			if own.seen++; own.seen > 1 {
				j.add(j.row.Requirement, ReasonEffectRepeated, o, "the text of %s in round %d arrived %d times", own.call.Step, own.call.Call.Round, own.seen)
			}
		case other != nil:
			j.add(j.row.Requirement, ReasonEffectElsewhere, o, "the text of %s in round %d, sent to %s, arrived in %s", other.call.Step, other.call.Call.Round, other.page, ev.Page)
		default:
			j.add(j.row.Requirement, ReasonEffectWrong, o, "%s holds %q, which nobody sent there", ev.Page, strings.ToValidUTF8(ev.Value, "?"))
		}
	}
	for _, t := range texts {
		c := t.call.Call
		if c.Receipt == nil {
			continue
		}
		if c.Receipt.RequestedCount != c.Chars {
			j.add("M17", ReasonReceiptUntrue, t.call, "requested_count is %d, %d code points were asked for", c.Receipt.RequestedCount, c.Chars)
		}
		if c.Receipt.Effect == engine.EffectConfirmed && (t.seen == 0 || c.Receipt.DeliveredCount != c.Chars) {
			j.add("M17", ReasonReceiptUntrue, t.call, "%s in round %d says confirmed with %d of %d code points; %s reported the text %d times", t.call.Step, c.Round, c.Receipt.DeliveredCount, c.Chars, t.page, t.seen)
		}
	}
}

// lands reports whether a page event is of a control that a block's texts go to.
func (j *judgement) lands(want matrix.BlockExpect, ev *Journal) bool {
	return slices.ContainsFunc(want.Lands, func(l matrix.LandExpect) bool { return j.row.PageName(l.Page) == ev.Page && l.Control == ev.Control })
}
