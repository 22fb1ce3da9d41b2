package gate

import (
	"fmt"
	"slices"
	"time"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/matrix"
)

// deviations applies the policy's known departures (J4): a row that fails for the named requirement alone becomes a printed limit. An entry that is
// about core or about a row of core, has expired, meets no row, or one of whose rows passes, is a clause that is not met.
func (e *evaluation) deviations(ruling evidence.Ruling) evidence.Ruling {
	if len(e.policy.Deviations) == 0 {
		return ruling
	}
	verdicts := make([]evidence.Verdict, 0, len(e.report.Rows))
	for _, r := range e.report.Rows {
		verdicts = append(verdicts, r.Verdict)
	}
	standing := e.x.Standing
	standing.Limits = slices.Clone(standing.Limits)
	excused := false
	for _, d := range e.policy.Deviations {
		got, ok := e.deviation(d, verdicts)
		e.clause(fmt.Sprintf("deviation %s %s", d.Requirement, d.Row), ok, fmt.Sprintf("a known failure of %s (%s)", d.Owner, d.Issue), "%s", got)
		if ok {
			excused = true
			standing.Limits = append(standing.Limits, fmt.Sprintf("%s fails in %s until %s: %s (%s, %s)", d.Requirement, d.Row, d.Expires.Format(time.DateOnly), d.Reason, d.Owner, d.Issue))
		}
	}
	if !excused {
		return ruling
	}
	return evidence.Decide(e.plan, verdicts, standing)
}

// deviation looks one entry up, and marks its rows as excused when it applies to all of them.
func (e *evaluation) deviation(d matrix.Deviation, verdicts []evidence.Verdict) (string, bool) {
	if d.Owner == "" || d.Issue == "" || d.Reason == "" || d.Expires.IsZero() {
		return "owner, issue, reason and expiry are all needed", false
	}
	if e.core(d.Requirement) {
		return "core has no deviations", false
	}
	if e.x.Now.After(d.Expires.Add(24 * time.Hour)) {
		return "expired on " + d.Expires.Format(time.DateOnly), false
	}
	var rows []int
	for i, v := range verdicts {
		c, planned := e.contract(v.Row)
		if planned && (string(v.Row) == d.Row || c.Stem == d.Row) {
			if e.core(c.Requirement) {
				return fmt.Sprintf("core has no deviations, and %s proves %s", v.Row, c.Requirement), false
			}
			rows = append(rows, i)
		}
	}
	if len(rows) == 0 {
		return "unused: no planned row of that name", false
	}
	for _, i := range rows {
		v := verdicts[i]
		switch {
		case v.Outcome == evidence.Pass:
			return fmt.Sprintf("unexpected pass of %s: take it out of the entry", v.Row), false
		case v.Outcome != evidence.Fail:
			return fmt.Sprintf("%s is %s: only a failure can be known", v.Row, v.Outcome), false
		}
		for _, f := range v.Findings {
			if f.Requirement != d.Requirement {
				return fmt.Sprintf("%s fails for %s %s as well", v.Row, f.Requirement, f.Reason), false
			}
		}
	}
	for _, i := range rows {
		verdicts[i].Outcome, verdicts[i].Findings = evidence.Pass, nil
	}
	return fmt.Sprintf("fails as known, until %s", d.Expires.Format(time.DateOnly)), true
}

// core reports whether a requirement is core by the plan.
func (e *evaluation) core(id matrix.RequirementID) bool {
	return slices.Contains(e.plan.CoreDeliver, id) || slices.Contains(e.plan.CoreHold, id) ||
		slices.ContainsFunc(e.plan.CoreAny, func(group []matrix.RequirementID) bool { return slices.Contains(group, id) })
}
