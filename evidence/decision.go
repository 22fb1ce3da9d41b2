package evidence

import (
	"fmt"
	"slices"

	"github.com/engine-acceptance/acceptance/matrix"
)

// Decision says whether an engine may be called supported, for one product in one environment. The zero value is undetermined.
type Decision int

// The closed list of decisions (design section 8).
const (
	Undetermined Decision = iota
	Supported
	SupportedWithLimits
	Experimental
	NotSupported
	Expired
)

var decisionNames = [...]string{"undetermined", "supported", "supported_with_limits", "experimental", "not_supported", "expired"}

// String returns the word used in every file.
func (d Decision) String() string {
	if d < 0 || int(d) >= len(decisionNames) {
		return fmt.Sprintf("decision(%d)", int(d))
	}
	return decisionNames[d]
}

// MarshalText writes the word; a value outside the list is an error.
func (d Decision) MarshalText() ([]byte, error) {
	if d < 0 || int(d) >= len(decisionNames) {
		return nil, fmt.Errorf("decision %d is not in the closed list", int(d))
	}
	return []byte(decisionNames[d]), nil
}

// UnmarshalText reads the word; an unknown word is an error.
func (d *Decision) UnmarshalText(b []byte) error {
	for i, name := range decisionNames {
		if name == string(b) {
			*d = Decision(i)
			return nil
		}
	}
	return fmt.Errorf("unknown decision %q", b)
}

// Standing is what a decision needs to know beside plan and verdicts. Its zero value proves nothing, so it leads to undetermined.
type Standing struct {
	// Verified: the bundle or the run in progress is whole, and its plan is the one that was fixed.
	Verified bool
	// Clean: the subject's tree and the harness's tree carry no change beside their commits.
	Clean bool
	// Limits are printed deviations from what is representative (J4, J11).
	Limits []string
}

// Ruling is a decision with everything that led to it.
type Ruling struct {
	Decision Decision `json:"decision"`
	// Reasons lead with the one that decided.
	Reasons []string `json:"reasons"`
	// Limits belong to supported_with_limits.
	Limits []string `json:"limits,omitempty"`
	// Incomplete is true when rows could not be judged although the decision stands.
	Incomplete bool           `json:"incomplete"`
	Counts     map[string]int `json:"counts"`
}

// Decide follows the precedence of design section 8. It is pure. A verdict for a row that the plan lacks, a row with two verdicts, and a
// row without one all lead to undetermined.
func Decide(p matrix.Plan, verdicts []Verdict, s Standing) Ruling {
	r := Ruling{Counts: map[string]int{}}
	byRow := map[matrix.RowID]Verdict{}
	var broken, engineFails, harnessFails, coreOpen []string
	for _, v := range verdicts {
		if _, twice := byRow[v.Row]; twice {
			broken = append(broken, fmt.Sprintf("row %s has two verdicts", v.Row))
		}
		byRow[v.Row] = v
	}
	planned := map[matrix.RowID]bool{}
	covered := map[matrix.RequirementID]bool{}
	for _, c := range p.Rows {
		planned[c.ID] = true
		v := byRow[c.ID]
		r.Counts[v.Outcome.String()]++
		_, excused := p.NotApplicable[c.Requirement]
		deliver := slices.Contains(p.CoreDeliver, c.Requirement)
		if v.Outcome != NotRun {
			covered[c.Requirement] = true
		}
		if charged := engineFindings(v); v.Outcome == Fail && len(charged) > 0 {
			engineFails = append(engineFails, fmt.Sprintf("%s: %s %s", c.ID, charged[0].Requirement, charged[0].Reason))
			continue
		}
		switch {
		case v.Outcome == Flaky && c.Duty == matrix.DutyEngine:
			engineFails = append(engineFails, fmt.Sprintf("%s: flaky", c.ID))
		case v.Outcome == NotOffered && deliver:
			engineFails = append(engineFails, fmt.Sprintf("%s: not offered", c.ID))
		case v.Outcome == NotApplicable && excused && !deliver:
		case v.Outcome == Pass:
		case c.Duty == matrix.DutyHarness:
			harnessFails = append(harnessFails, fmt.Sprintf("%s: %s", c.ID, v.Outcome))
		default:
			coreOpen = append(coreOpen, fmt.Sprintf("%s: %s", c.ID, v.Outcome))
		}
	}
	for _, v := range verdicts {
		if !planned[v.Row] {
			broken = append(broken, fmt.Sprintf("row %s was judged and never planned", v.Row))
		}
	}
	if len(p.Rows) == 0 {
		broken = append(broken, "the plan has no rows")
	}
	if !s.Verified {
		broken = append(broken, "the bundle does not verify")
	}
	if !s.Clean {
		broken = append(broken, "the source tree is not clean: what ran is not what the commit says")
	}
	if p.Subset {
		broken = append(broken, fmt.Sprintf("the run left out %d planned rows", len(p.Left)))
	}
	var missing []string
	for _, id := range p.CoreMissing {
		missing = append(missing, fmt.Sprintf("core requirement %s has no row", id))
	}
	for _, id := range slices.Concat(p.CoreDeliver, p.CoreHold) {
		if !covered[id] && !slices.Contains(p.CoreMissing, id) {
			if _, excused := p.NotApplicable[id]; !excused || slices.Contains(p.CoreDeliver, id) {
				missing = append(missing, fmt.Sprintf("core requirement %s was not run", id))
			}
		}
	}
	for _, group := range p.CoreAny {
		if !slices.ContainsFunc(group, func(id matrix.RequirementID) bool { return covered[id] || slices.Contains(p.CoreMissing, id) }) {
			missing = append(missing, fmt.Sprintf("none of the core requirements %v was run", group))
		}
	}
	for _, feature := range p.FeatureMissing {
		missing = append(missing, fmt.Sprintf("feature %s is claimed and has no row for each of its requirements", feature))
	}
	limits := slices.Concat(p.Limits, s.Limits)
	// What went wrong comes before what is not there.
	open := slices.Concat(harnessFails, coreOpen, missing)
	r.Incomplete = len(open) > 0
	switch {
	case len(broken) > 0:
		r.Decision, r.Reasons = Undetermined, slices.Concat(broken, engineFails, open)
	case len(engineFails) > 0:
		r.Decision, r.Reasons = NotSupported, slices.Concat(engineFails, open)
	case len(open) > 0:
		r.Decision, r.Reasons = Undetermined, open
	case p.Ceiling != "supported":
		r.Decision, r.Reasons = Experimental, []string{fmt.Sprintf("environment %s allows %q at most", p.Environment, p.Ceiling)}
	case len(limits) > 0 || len(p.NotApplicable) > 0:
		r.Decision, r.Limits = SupportedWithLimits, limits
		for _, id := range sortedKeys(p.NotApplicable) {
			r.Limits = append(r.Limits, fmt.Sprintf("%s does not apply: %s", id, p.NotApplicable[id]))
		}
		r.Reasons = []string{"every planned row passed, with the limits listed"}
	default:
		r.Decision, r.Reasons = Supported, []string{"every core requirement was delivered or held"}
	}
	return r
}

// engineFindings are the findings of a verdict that the engine answers for.
func engineFindings(v Verdict) []Finding {
	var out []Finding
	for _, f := range v.Findings {
		if EngineAnswers(f.Reason) {
			out = append(out, f)
		}
	}
	return out
}
