package evidence

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
)

// JudgeVersion changes whenever the same observations could give another verdict. It is part of every verdict and of the bundle.
const JudgeVersion = "2"

// Limits of the judge that are not in the row.
const (
	// refusalBudget bounds a refusal that needed the wire (contract R7).
	refusalBudget = 2 * time.Second
	// personLate is how long an input of the person may take to arrive; four times what a reader on a busy machine of two cores was seen to lag.
	personLate = time.Second
	// minPersonEvents is the least number of inputs that the person must have made for D7 to be judged.
	minPersonEvents = 2
	// longestStill is the longest time that the film may stand still while the person types (contract V4).
	longestStill = 2500 * time.Millisecond
	// longestGap is the longest time without a capture that still counts as filmed throughout.
	longestGap = 2500 * time.Millisecond
)

// requiredChannels are the guard channels that every row needs alive (design section 6).
var requiredChannels = []string{"core", "input", "record", "selection", "output", "properties", "bus", "accessibility", "sentinel", "profiles", "listeners"}

// requiredControls are the kinds that the controls process must have committed, and every guard seen, around each row.
var requiredControls = []Reason{ReasonFocusLeft, ReasonStackingChanged, ReasonCoverChanged, ReasonPointerMoved, ReasonPointerWarped, ReasonPointerGrabbed,
	ReasonInputLeaked, ReasonInputForged, ReasonWindowAbovePerson, ReasonUrgencyRaised, ReasonOpacityChanged, ReasonClipboardTaken, ReasonPrimaryTaken,
	ReasonKeyboardGrabbed, ReasonHotkeyGrabbed, ReasonServerGrabbed, ReasonBusAction, ReasonAccessAction, ReadDisclosed}

// requiredOnce are the kinds that must have been committed, and seen, once on the desk that carried the row out: the window manager takes a while over
// them. output_changed is the request and its event; as a violation it has the reason workspace_changed.
var requiredOnce = []string{string(ReasonKeymapChanged), string(ReasonMasterAdded), string(ReasonWorkspaceChanged), "output_changed"}

// Judge says what the observations of one attempt mean for one contract. It is pure: it reads nothing else, keeps nothing, and the order
// of its findings depends on its input alone. Nothing seen is never a pass.
func Judge(c matrix.Contract, obs []Observation) Verdict {
	v := Verdict{Row: c.ID, JudgeVersion: JudgeVersion}
	if len(obs) == 0 {
		return v
	}
	j := &judgement{row: c, obs: obs}
	if j.wellFormed() {
		j.index()
		j.guards()
		j.preconditions()
		j.faults()
		j.declaration()
		j.calls()
		j.expectations()
		j.journal()
		j.desk()
		j.disclosures()
		j.person()
		j.system()
		j.scans()
		j.film()
	}
	v.Findings = j.sorted()
	v.Outcome = j.outcome()
	return v
}

// judgement carries one judging. It is not kept.
type judgement struct {
	row      matrix.Contract
	obs      []Observation
	findings []Finding
	// stepCalls holds the call of each step, in order; calls that arranged the desk are under their own names.
	stepCalls map[string][]Observation
	steps     map[string]matrix.Step
}

// add records a finding once: the same requirement, reason and step is one finding, shown by its first observation.
func (j *judgement) add(req matrix.RequirementID, reason Reason, o Observation, format string, args ...any) {
	for _, f := range j.findings {
		if f.Requirement == req && f.Reason == reason && f.Step == o.Step {
			return
		}
	}
	j.findings = append(j.findings, Finding{Requirement: req, Reason: reason, Observation: o.Seq, Step: o.Step, Text: fmt.Sprintf(format, args...)})
}

func (j *judgement) sorted() []Finding {
	slices.SortStableFunc(j.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Requirement, b.Requirement), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Observation, b.Observation))
	})
	return j.findings
}

// outcome orders what was found: what makes judging impossible comes before what was judged, so that no fault of ours is charged to the
// engine (J5). A harness-duty row that finds a harness fault has done its work: it fails.
func (j *judgement) outcome() Outcome {
	worst := Pass
	rank := map[Outcome]int{Pass: 0, NotExercised: 1, Fail: 2, NotOffered: 3, InvalidGuard: 4, EnvironmentUnmet: 5, HarnessError: 6}
	for _, f := range j.findings {
		o := HarnessError
		switch reasonClass[f.Reason] {
		case classEngine:
			o = Fail
			if f.Reason == ReasonNotOffered {
				o = NotOffered
			}
		case classGuard:
			o = InvalidGuard
		case classPrecondition:
			o = NotExercised
		case classEnvironment:
			o = EnvironmentUnmet
		case classHarness:
			if j.row.Duty == matrix.DutyHarness && f.Requirement == j.row.Requirement {
				o = Fail
			}
		}
		if rank[o] > rank[worst] {
			worst = o
		}
	}
	if worst == Fail && j.has(ReasonPreconditionUnmet) {
		// What the row needed was not there, so nothing that followed says anything about the engine.
		return NotExercised
	}
	return worst
}

func (j *judgement) has(r Reason) bool {
	return slices.ContainsFunc(j.findings, func(f Finding) bool { return f.Reason == r })
}

// wellFormed checks that the observations are one whole, ordered, closed attempt of this row.
func (j *judgement) wellFormed() bool {
	first, last := j.obs[0], j.obs[len(j.obs)-1]
	for i, o := range j.obs {
		if o.Seq != i+1 {
			j.add("J1", ReasonObservationsBad, o, "observation %d stands at place %d: numbers must run from 1 without gaps", o.Seq, i+1)
			return false
		}
		if err := o.payload(); err != nil {
			j.add("J1", ReasonObservationsBad, o, "%v", err)
			return false
		}
	}
	if first.Kind != KindBegin || first.Begin.Row != j.row.ID {
		j.add("J1", ReasonObservationsBad, first, "the first observation must begin row %q", j.row.ID)
		return false
	}
	if last.Kind != KindEnd || last.End.Observations != len(j.obs) {
		j.add("J1", ReasonRowCut, last, "the row was cut: its observations do not end with the count of all of them")
		return false
	}
	for _, o := range j.obs[1 : len(j.obs)-1] {
		if o.Kind == KindBegin || o.Kind == KindEnd {
			j.add("J1", ReasonObservationsBad, o, "a second %s inside the row", o.Kind)
			return false
		}
	}
	return true
}

// payload checks that exactly the payload of the kind is there.
func (o Observation) payload() error {
	set := map[Kind]bool{KindBegin: o.Begin != nil, KindEnd: o.End != nil, KindStep: o.StepInfo != nil, KindCall: o.Call != nil,
		KindJournal: o.Journal != nil, KindDesk: o.Desk != nil, KindControls: o.Controls != nil, KindGuard: o.Guard != nil,
		KindPerson: o.Person != nil, KindPrecondition: o.Precondition != nil, KindSystem: o.System != nil, KindScan: o.Scan != nil,
		KindFilm: o.Film != nil, KindFault: o.Fault != nil, KindHeartbeat: o.Heartbeat != nil, KindDeclaration: o.Declaration != nil}
	own, known := set[o.Kind]
	if !known {
		return fmt.Errorf("observation %d: unknown kind %q", o.Seq, o.Kind)
	}
	n := 0
	for _, there := range set {
		if there {
			n++
		}
	}
	if !own || n != 1 {
		return fmt.Errorf("observation %d: kind %q with %d payloads, want its own only", o.Seq, o.Kind, n)
	}
	switch o.Phase {
	case PhasePrepare, PhaseBackground, PhaseCleanup:
		return nil
	}
	return fmt.Errorf("observation %d: unknown phase %q", o.Seq, o.Phase)
}

func (j *judgement) index() {
	j.stepCalls = map[string][]Observation{}
	j.steps = map[string]matrix.Step{}
	for _, s := range j.row.Steps {
		j.steps[s.Name] = s
	}
	for _, o := range j.of(KindCall) {
		j.stepCalls[o.Step] = append(j.stepCalls[o.Step], o)
	}
}

// of returns the observations of one kind, in order.
func (j *judgement) of(k Kind) []Observation {
	var out []Observation
	for _, o := range j.obs {
		if o.Kind == k {
			out = append(out, o)
		}
	}
	return out
}

func (j *judgement) end() Observation { return j.obs[len(j.obs)-1] }

// guards holds J2: every channel alive with nothing dropped, every control seen before and after.
func (j *judgement) guards() {
	seen := map[string]bool{}
	for _, o := range j.of(KindGuard) {
		seen[o.Guard.Channel] = true
		if !o.Guard.Alive || o.Guard.Dropped > 0 {
			j.add("J2", ReasonGuardLost, o, "guard channel %s: alive %t, %d events dropped (%s)", o.Guard.Channel, o.Guard.Alive, o.Guard.Dropped, o.Guard.Reason)
		}
	}
	for _, ch := range requiredChannels {
		if !seen[ch] {
			j.add("J2", ReasonGuardLost, j.end(), "nothing is known about guard channel %s", ch)
		}
	}
	rounds := map[string]bool{}
	for _, o := range j.of(KindControls) {
		rounds[o.Controls.When] = true
		for _, missed := range o.Controls.Missed {
			j.add("J2", ReasonControlMissed, o, "control %q %s the row was committed and not seen", missed, o.Controls.When)
		}
		for _, want := range wantedControls(o.Controls.When) {
			if !slices.Contains(o.Controls.Committed, want) {
				j.add("J2", ReasonControlMissed, o, "control %q %s the row was not committed", want, o.Controls.When)
			}
		}
	}
	for _, when := range []string{"desk", "before", "after"} {
		if !rounds[when] {
			j.add("J2", ReasonControlMissed, j.end(), "no round of controls %s the row", when)
		}
	}
}

func wantedControls(when string) []string {
	if when == "desk" {
		return requiredOnce
	}
	var out []string
	for _, r := range requiredControls {
		out = append(out, string(r))
	}
	return out
}

// preconditions: a row proves what it rests on, or was not exercised.
func (j *judgement) preconditions() {
	state := false
	for _, o := range j.of(KindPrecondition) {
		state = state || o.Precondition.Name == "state"
		if !o.Precondition.Met {
			j.add(j.row.Requirement, ReasonPreconditionUnmet, o, "%s: want %s, measured %s", o.Precondition.Name, o.Precondition.Want, o.Precondition.Got)
		}
	}
	if j.row.Needs != nil && !state && !j.refusedWhileArranging() {
		j.add(j.row.Requirement, ReasonPreconditionUnmet, j.end(), "the state of the window was not measured")
	}
}

func (j *judgement) faults() {
	for _, o := range j.of(KindFault) {
		switch o.Fault.Whose {
		case "environment":
			j.add("J5", ReasonEnvironmentFault, o, "%s", o.Fault.What)
		default:
			j.add("J5", ReasonHarnessFault, o, "%s", o.Fault.What)
		}
	}
	for _, o := range j.of(KindStep) {
		if o.StepInfo.Outcome != "done" {
			j.add("J5", ReasonHarnessFault, o, "step %s (%s) could not be done: %s", o.Step, o.StepInfo.Verb, o.StepInfo.Note)
		}
	}
	done := map[string]bool{}
	for _, o := range j.of(KindStep) {
		done[o.Step] = true
	}
	for _, s := range j.row.Steps {
		if !done[s.Name] && !j.interrupted() {
			j.add("J1", ReasonTooFewSeen, j.end(), "step %s was planned and never observed", s.Name)
		}
	}
	for _, s := range j.row.Steps {
		if n := s.Calls(); n > 1 && len(j.stepCalls[s.Name]) != n && !j.interrupted() {
			j.add("J1", ReasonTooFewSeen, j.end(), "step %s makes %d calls, %d were observed", s.Name, n, len(j.stepCalls[s.Name]))
		}
	}
	if len(j.of(KindHeartbeat)) == 0 {
		j.add("J5", ReasonTooFewSeen, j.end(), "the harness's own heartbeat was not recorded")
	}
}

// interrupted reports that the row ended before its last step for a cause that is itself observed: a refusal that later steps needed, or
// an unmet precondition.
func (j *judgement) interrupted() bool {
	if len(j.of(KindFault)) > 0 || j.has(ReasonPreconditionUnmet) {
		return true
	}
	for _, o := range j.of(KindCall) {
		if o.Call.Carrier == "" && o.Call.Block != "" {
			continue // a refusal in a block ends one run of it, not the row
		}
		if o.Call.Carrier != "" || o.Call.Status == engine.StatusRefused && j.expectedRefusal(o.Step) == nil && !j.allowedRefusal(o) {
			return true
		}
		if o.Call.Status == engine.StatusOK && (j.expectedRefusal(o.Step) != nil || j.windowless(o)) {
			return true
		}
	}
	return false
}

func (j *judgement) declaration() {
	all := j.of(KindDeclaration)
	if len(all) == 0 {
		j.add("J9", ReasonTooFewSeen, j.end(), "the engine's declaration was not read")
	}
	for _, o := range all {
		if !o.Declaration.Total {
			j.add("J10", ReasonDeclIncomplete, o, "the engine's declaration has holes")
		}
		if n := len(o.Declaration.Differences); n > 0 {
			j.add("J9", ReasonDeclMismatch, o, "declaration and engine file differ in %d places, first %s", n, o.Declaration.Differences[0])
		}
	}
}

func (j *judgement) maxGap() time.Duration {
	gap := int64(0)
	for _, o := range j.of(KindHeartbeat) {
		gap = max(gap, o.Heartbeat.MaxGapNS)
	}
	return time.Duration(gap)
}

// late adds a missed budget, unless the harness itself was starved (J5).
func (j *judgement) late(req matrix.RequirementID, reason Reason, o Observation, took, budget time.Duration) {
	if took <= budget {
		return
	}
	if j.maxGap() > budget/5 {
		j.add("J5", ReasonClockStarved, o, "took %v of %v, while the harness's own clock stood for %v", took, budget, j.maxGap())
		return
	}
	j.add(req, reason, o, "took %v, budget %v", took.Round(time.Millisecond), budget)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
