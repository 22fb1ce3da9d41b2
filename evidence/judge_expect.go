package evidence

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
)

// interaction lists the page events that nobody but the target of an action may see.
var interaction = map[string]bool{"click": true, "dblclick": true, "auxclick": true, "contextmenu": true, "mousedown": true, "mouseup": true,
	"pointerdown": true, "pointerup": true, "touchstart": true, "touchend": true, "keydown": true, "keyup": true, "keypress": true,
	"beforeinput": true, "input": true, "change": true, "submit": true, "reset": true, "dragstart": true, "dragover": true, "drop": true,
	"dragend": true, "wheel": true, "compositionstart": true, "compositionend": true, "paste": true, "copy": true, "cut": true, "load": true}

// expectations judges what the row asks for.
func (j *judgement) expectations() {
	e := j.row.Expect
	for _, want := range e.Refusal {
		j.mustHaveCall(want.Of)
	}
	for _, want := range e.Receipt {
		j.mustHaveCall(want.Of)
	}
	for _, want := range e.Bind {
		j.bind(want)
	}
	for _, want := range e.Snapshot {
		j.snapshot(want)
	}
	for _, want := range e.Generation {
		j.generation(want)
	}
	for _, want := range e.Rounds {
		if _, called := j.mustHaveCall(want.Of); called {
			j.rounds(want)
		}
	}
	for _, want := range e.Effect {
		j.effect(want)
	}
	for _, want := range e.Blocks {
		j.block(want)
	}
	if e.Elsewhere == "silent" {
		j.elsewhere()
	}
}

// mustHaveCall returns the last call of a step; a step that was planned and never called is named, unless the row ended early for a cause
// of its own.
func (j *judgement) mustHaveCall(step string) (Observation, bool) {
	calls := j.stepCalls[step]
	if len(calls) == 0 {
		if !j.interrupted() {
			j.add("J1", ReasonTooFewSeen, j.end(), "step %s is expected to be judged and was never called", step)
		}
		return Observation{}, false
	}
	last := calls[len(calls)-1]
	return last, last.Call.Carrier == ""
}

func (j *judgement) bind(want matrix.BindExpect) {
	o, ok := j.mustHaveCall(want.Of)
	if !ok || o.Call.Status == engine.StatusRefused {
		return
	}
	if want.Within > 0 {
		j.late(j.row.Requirement, ReasonBudgetMissed, o, time.Duration(o.Call.ReplyNS-o.Call.StartNS), want.Within)
	}
	b := o.Call.Bind
	switch {
	case b == nil:
		j.add(j.row.Requirement, ReasonBindWrong, o, "the bind returned no target")
	case b.Quality != want.Quality:
		j.add(j.row.Requirement, ReasonBindWrong, o, "binding quality is %q, want %q", b.Quality, want.Quality)
	case (b.Quality == engine.QualityExact) != b.MutationAllowed:
		j.add(j.row.Requirement, ReasonBindWrong, o, "quality %q with mutation_allowed %t; only exact may mutate", b.Quality, b.MutationAllowed)
	case want.Tabs > 0 && len(b.Active) != want.Tabs:
		j.add(j.row.Requirement, ReasonBindWrong, o, "%d tabs listed, want %d", len(b.Active), want.Tabs)
	case want.Active != "" && (len(b.Active) == 0 || b.Active[0] != want.Active):
		j.add(j.row.Requirement, ReasonBindWrong, o, "active is %v, want %s first", b.Active, want.Active)
	}
}

func (j *judgement) snapshot(want matrix.SnapshotExpect) {
	if len(want.Either) > 0 {
		j.either(want)
	}
	o, ok := j.mustHaveCall(want.Of)
	if !ok || o.Call.Status == engine.StatusRefused {
		return
	}
	s := o.Call.Snapshot
	if s == nil {
		j.add(j.row.Requirement, ReasonSnapshotWrong, o, "the snapshot returned no list")
		return
	}
	for _, node := range want.Has {
		if n := count(s.Nodes, node); n != 1 {
			j.add(j.row.Requirement, ReasonSnapshotWrong, o, "%s %q is listed %d times, want once", node.Role, node.Name, n)
		}
	}
	for _, node := range want.Lacks {
		if count(s.Nodes, node) > 0 {
			j.add(j.row.Requirement, ReasonSnapshotWrong, o, "%s %q is listed and must be left out", node.Role, node.Name)
		}
	}
}

// either holds that snapshots are of one document each: of the lists at most one is there, whole. A document that is still empty has none; all
// of them may not be so.
func (j *judgement) either(want matrix.SnapshotExpect) {
	found := 0
	for _, o := range j.stepCalls[want.Of] {
		if o.Call.Carrier != "" || o.Call.Snapshot == nil {
			continue
		}
		whole, parts := 0, 0
		for _, list := range want.Either {
			n := 0
			for _, node := range list {
				n += min(count(o.Call.Snapshot.Nodes, node), 1)
			}
			switch n {
			case 0:
			case len(list):
				whole++
			default:
				parts++
			}
		}
		found += whole
		if whole > 1 || parts > 0 {
			j.add(j.row.Requirement, ReasonSnapshotWrong, o, "%s holds %d of the %d lists whole and a part of %d; a snapshot is of one document", o.Step, whole, len(want.Either), parts)
		}
	}
	if calls := j.stepCalls[want.Of]; found == 0 && len(calls) > 0 && !j.interrupted() {
		j.add(j.row.Requirement, ReasonSnapshotWrong, calls[len(calls)-1], "no snapshot of %s holds any of the %d lists", want.Of, len(want.Either))
	}
}

func count(nodes []matrix.RoleName, want matrix.RoleName) int {
	n := 0
	for _, node := range nodes {
		if node.Role == want.Role && node.Name == want.Name && (want.Frame == "" || node.Frame == want.Frame) {
			n++
		}
	}
	return n
}

func (j *judgement) generation(want matrix.GenerationExpect) {
	before, ok1 := j.mustHaveCall(want.Before)
	after, ok2 := j.mustHaveCall(want.After)
	if !ok1 || !ok2 {
		return
	}
	a, b := generationOf(before.Call), generationOf(after.Call)
	if a == "" || b == "" || a == b {
		j.add(j.row.Requirement, ReasonGenerationKept, after, "the generation after %s is %q, before it was %q; they must differ", want.After, b, a)
	}
}

// generationOf is the generation that a bind or a receipt names.
func generationOf(c *Call) string {
	switch {
	case c.Bind != nil:
		return c.Bind.Generation
	case c.Receipt != nil:
		return c.Receipt.Generation
	}
	return ""
}

// seen returns the page's own accepted reports of the background phase.
func (j *judgement) seen() []Observation {
	var out []Observation
	for _, o := range j.of(KindJournal) {
		if o.Phase == PhaseBackground && o.Journal.Signed && o.Journal.Origin == "browser" {
			out = append(out, o)
		}
	}
	return out
}

// effect judges one expected effect.
func (j *judgement) effect(want matrix.EffectExpect) {
	if j.refusedBefore() {
		return
	}
	want.Page = j.row.PageName(want.Page)
	var events []Observation
	for _, o := range j.seen() {
		ev := o.Journal
		if ev.Page != want.Page || want.Control != "" && ev.Control != want.Control {
			continue
		}
		if want.Loaded != "" && ev.Type == "load" && ev.File == want.Loaded || want.Event != "" && ev.Type == want.Event {
			events = append(events, o)
		}
	}
	var final *Observation
	if want.Value != nil {
		final = j.finalValue(want)
	}
	where := want.Page + " " + want.Control
	if want.Value != nil {
		switch {
		case final == nil || final.Journal.Value != *want.Value && final.Journal.ValueDigest == "" && !j.changed(*final):
			j.add(j.row.Requirement, ReasonEffectMissing, j.end(), "%s never changed, want the value %q", where, *want.Value)
		case final.Journal.ValueDigest == "" && final.Journal.Value != *want.Value:
			j.add(j.row.Requirement, ReasonEffectWrong, *final, "%s has the value %q, want %q", where, final.Journal.Value, *want.Value)
		case final.Journal.ValueDigest != "" && final.Journal.ValueDigest != *want.Value:
			j.add(j.row.Requirement, ReasonEffectWrong, *final, "the secret in %s is not the one that was typed", where)
		}
	}
	if want.Event != "" || want.Loaded != "" {
		wantCount, what := max(want.Count, want.AtLeast, 1), want.Event
		if want.Loaded != "" {
			what = "load of " + want.Loaded
		}
		switch n := len(events); {
		case n < wantCount:
			j.add(j.row.Requirement, ReasonEffectMissing, j.end(), "%s saw %s %d times, want %d", where, what, n, wantCount)
		case n > wantCount && want.AtLeast == 0:
			j.add(j.row.Requirement, ReasonEffectRepeated, events[wantCount], "%s saw %s %d times, want %d", where, what, n, wantCount)
		}
	}
	if want.Trusted != nil {
		if want.Value != nil && want.Event == "" && final != nil && final.Journal.Type != "state" {
			events = append(events, *final)
		}
		for _, o := range events {
			if o.Journal.Trusted != *want.Trusted {
				j.add(j.row.Requirement, ReasonTrustWrong, o, "%s saw %s with isTrusted %t, want %t", where, o.Journal.Type, o.Journal.Trusted, *want.Trusted)
			}
		}
	}
}

// finalValue is the last value that a control reported in the last document that saw input in it; a later document's own first state is not
// an effect of the action. Without any input it is the last state of all.
func (j *judgement) finalValue(want matrix.EffectExpect) *Observation {
	var final *Observation
	document := 0
	seen := j.seen()
	for _, o := range seen {
		if ev := o.Journal; ev.Page == want.Page && ev.Control == want.Control && (ev.Type == "input" || ev.Type == "change") {
			document = ev.Document
		}
	}
	for _, o := range seen {
		ev := o.Journal
		if ev.Page == want.Page && ev.Control == want.Control && (document == 0 || ev.Document == document) &&
			(ev.Type == "input" || ev.Type == "change" || ev.Type == "state") {
			final = &o
		}
	}
	return final
}

// changed reports that a control has another value than when its document was loaded, or saw input.
func (j *judgement) changed(final Observation) bool {
	if final.Journal.Type != "state" {
		return true
	}
	for _, o := range j.of(KindJournal) {
		ev := o.Journal
		if ev.Page == final.Journal.Page && ev.Control == final.Journal.Control && ev.Document == final.Journal.Document && ev.Signed {
			if ev.Type == "input" || ev.Type == "change" || ev.Value != final.Journal.Value {
				return true
			}
		}
	}
	return false
}

// refusedBefore reports that a step of the row was refused where it had to be delivered: its missing effect is that refusal, not a second
// fault.
func (j *judgement) refusedBefore() bool {
	return j.has(ReasonRefused) || j.has(ReasonPreconditionUnmet) || j.has(ReasonEngineGone) || j.has(ReasonNotOffered)
}

// elsewhere holds "nowhere else": only the controls and pages that the row names may see anything.
func (j *judgement) elsewhere() {
	for _, o := range j.seen() {
		ev := o.Journal
		if !interaction[ev.Type] || j.expected(ev) || slices.ContainsFunc(j.row.Expect.Blocks, func(want matrix.BlockExpect) bool { return j.lands(want, ev) }) {
			continue
		}
		j.add(j.row.Requirement, ReasonEffectElsewhere, o, "%s %s (%s) saw %s, where all had to be silent", ev.Page, ev.Control, ev.File, ev.Type)
	}
}

// expected reports whether an expected effect of the row explains an event.
func (j *judgement) expected(ev *Journal) bool {
	return slices.ContainsFunc(j.row.Expect.Effect, func(want matrix.EffectExpect) bool {
		want.Page = j.row.PageName(want.Page)
		return covers(want, ev)
	})
}

// covers reports whether an expected effect explains an event: the same page, and the same control, or the load that it asks for.
func covers(want matrix.EffectExpect, ev *Journal) bool {
	if want.Page != ev.Page {
		return false
	}
	if ev.Type == "load" {
		return want.Loaded != "" && ev.File == want.Loaded
	}
	return want.Loaded == "" && want.Control == ev.Control
}

// journal holds M18: a report that is not the page's own is seen and named, and charged to whoever made it.
func (j *judgement) journal() {
	named := false
	for _, o := range j.of(KindJournal) {
		ev := o.Journal
		if ev.Signed && ev.Origin == "browser" {
			continue
		}
		if j.row.Expect.Forged != "" && ev.Origin == "harness" && !ev.Signed {
			named = true
			continue
		}
		text := fmt.Sprintf("%s: a report of %s from %s was not the page's own: %s", ev.Page, ev.Type, ev.Origin, ev.Reason)
		switch ev.Origin {
		case "browser", "engine":
			j.add("M18", ReasonJournalForged, o, "%s", text)
		case "harness":
			j.add("J5", ReasonHarnessFault, o, "%s", text)
		default:
			j.add("J5", ReasonEnvironmentFault, o, "%s", text)
		}
	}
	if j.row.Expect.Forged != "" && !named {
		j.add(j.row.Requirement, ReasonTooFewSeen, j.end(), "the forged report was not seen")
	}
}

// detailFields gives a refusal's detail as text fields, by their JSON names.
func detailFields(d engine.Detail) map[string]string {
	return textFields(d)
}

func sideEffectFlags(s engine.SideEffects) map[string]bool {
	b, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	out := map[string]bool{}
	if json.Unmarshal(b, &out) != nil {
		return nil
	}
	return out
}

func textFields(v any) map[string]string {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	raw := map[string]any{}
	if json.Unmarshal(b, &raw) != nil {
		return nil
	}
	out := map[string]string{}
	for k, v := range raw {
		out[k] = fmt.Sprint(v)
	}
	return out
}
