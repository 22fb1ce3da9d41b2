package kills

import (
	"fmt"
	"slices"
	"strings"

	"github.com/engine-acceptance/acceptance/evidence"
)

// State is what became of a mutant. The zero value is not_judged.
type State string

// The closed list of states.
const (
	// NotJudged: rows of its own could not be judged, which is about the machine; nothing is known about the mutant.
	NotJudged State = ""
	// Killed: found out for exactly what it declares.
	Killed State = "killed"
	// Survived: every row of its own was judged and none found anything.
	Survived State = "survived"
	// OtherSet: found out for something else than it declares.
	OtherSet State = "another_set"
	// OtherDecision: the decision over its rows is not not_supported.
	OtherDecision State = "another_decision"
	// Unhealthy is a state of a table alone: the engine without a defect fails a row.
	Unhealthy State = "healthy_engine_fails"
)

// String is the word; the zero value reads "not_judged".
func (s State) String() string {
	if s == NotJudged {
		return "not_judged"
	}
	return string(s)
}

// aboutTheMachine reports that an outcome says nothing about the engine: guard, harness or environment failed, or the row never ran. A row that
// was not exercised is not among them: the engine itself can be why what the row needs is not there.
func aboutTheMachine(o evidence.Outcome) bool {
	switch o {
	case evidence.InvalidGuard, evidence.HarnessError, evidence.EnvironmentUnmet, evidence.NotRun:
		return true
	}
	return false
}

// Unjudged lists the rows of its own that could not be judged for a reason that is not the engine's.
func (m Mutant) Unjudged() []Row { return unjudged(m.own()) }

func unjudged(rows []Row) []Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return !aboutTheMachine(r.Outcome) })
}

func (m Mutant) own() []Row {
	return slices.DeleteFunc(slices.Clone(m.Rows), func(r Row) bool { return !r.Own })
}

// Reported is the set of pairs that the failed rows of its own found, sorted.
func (m Mutant) Reported() []Pair {
	out := []Pair{}
	for _, r := range m.own() {
		if r.Outcome != evidence.Fail && r.Outcome != evidence.Flaky {
			continue
		}
		for _, p := range r.Found {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	slices.SortFunc(out, comparePairs)
	return out
}

// lacks lists what want has and have has not.
func lacks(want, have []Pair) []Pair {
	out := slices.DeleteFunc(slices.Clone(want), func(p Pair) bool { return slices.Contains(have, p) })
	slices.SortFunc(out, comparePairs)
	return out
}

// Judge says what became of the mutant, and why in one sentence. What could not be judged is never a kill, and never a survivor.
func (m Mutant) Judge() (State, string) {
	reported := m.Reported()
	missing, extra := lacks(m.Declared, reported), lacks(reported, m.Declared)
	blind := ""
	if n := len(m.Unjudged()); n > 0 {
		blind = fmt.Sprintf("%s could not be judged (%s): that is about the machine and says nothing about the mutant", count(n, "row"), m.Unjudged()[0].Outcome)
	}
	supported := m.Decision != evidence.NotSupported.String()
	switch {
	case m.Error != "":
		return NotJudged, m.Error
	case len(m.own()) == 0:
		return NotJudged, "no row of its own was run"
	case m.Coward && (supported || len(missing) > 0) && blind != "":
		return NotJudged, blind
	case m.Coward && supported:
		return Survived, fmt.Sprintf("the decision is %s, want %s", m.Decision, evidence.NotSupported)
	case m.Coward && len(missing) > 0:
		return OtherSet, fmt.Sprintf("%s, and not for the stated reason: nothing reports %s", m.Decision, words(missing))
	case m.Coward:
		return Killed, fmt.Sprintf("%s, for %s", m.Decision, words(m.Declared))
	case len(extra) > 0:
		return OtherSet, fmt.Sprintf("reports %s, which it does not declare", words(extra))
	case blind != "":
		return NotJudged, blind
	case len(reported) == 0:
		return Survived, "no row found anything"
	case len(missing) > 0:
		return OtherSet, fmt.Sprintf("declares %s, which nothing reports", words(missing))
	case supported:
		return OtherDecision, fmt.Sprintf("the decision is %s, want %s", m.Decision, evidence.NotSupported)
	}
	return Killed, "for " + words(reported)
}

// healthy says whether the engine without a defect passed every row, whether that could be judged at all, and why not.
func (t Table) healthy() (green, judged bool, why string) {
	for _, r := range t.Healthy {
		switch {
		case r.Outcome == evidence.Pass, r.Outcome == evidence.NotApplicable, aboutTheMachine(r.Outcome):
		default:
			return false, true, fmt.Sprintf("the healthy engine does not pass %s: %s %s", r.Row, r.Outcome, words(r.Found))
		}
	}
	switch blind := unjudged(t.Healthy); {
	case len(t.Healthy) == 0:
		return false, false, "the healthy engine was not run"
	case len(blind) > 0:
		return false, false, fmt.Sprintf("%s of the healthy engine could not be judged, the first is %s: %s", count(len(blind), "row"), blind[0].Row, blind[0].Outcome)
	}
	return true, true, ""
}

// Result sums the table up: Killed when every mutant was killed and the healthy engine passed, NotJudged when something could not be judged, else
// the first thing that is wrong. What is wrong comes before what could not be judged.
func (t Table) Result() (State, string) {
	blind := ""
	switch green, judged, why := t.healthy(); {
	case judged && !green:
		return Unhealthy, why
	case !judged:
		blind = why
	}
	for _, m := range t.Mutants {
		switch state, why := m.Judge(); state {
		case Killed:
		case NotJudged:
			if blind == "" {
				blind = m.Name + ": " + why
			}
		default:
			return state, m.Name + ": " + why
		}
	}
	switch {
	case blind != "":
		return NotJudged, blind
	case len(t.Mutants) == 0:
		return NotJudged, "no mutant was run"
	}
	return Killed, fmt.Sprintf("%s killed as declared, and the healthy engine passes the same rows", count(len(t.Mutants), "mutant"))
}

func words(pairs []Pair) string {
	const most = 4
	var all []string
	for _, p := range pairs[:min(len(pairs), most)] {
		all = append(all, p.String())
	}
	text := strings.Join(all, ", ")
	if n := len(pairs) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
