package gate

import (
	"fmt"
	"slices"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence/explain"
	"github.com/engine-acceptance/acceptance/evidence/verify"
	"github.com/engine-acceptance/acceptance/matrix"
)

// Loss is one thing that a baseline had and a plan lacks or loosens (J13).
type Loss struct {
	// Kind is row, requirement, capability, feature, budget, core, exception or expectation.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// How is "lost" or "loosened", with what it was and is.
	How string `json:"how"`
}

// String reads kind, name and how.
func (l Loss) String() string { return fmt.Sprintf("%s %s: %s", l.Kind, l.Name, l.How) }

// baseline asks that nothing was lost against the baseline.
func (e *evaluation) baseline() []Loss {
	rule, b := e.policy.Baseline, e.x.Baseline
	switch {
	case rule == "unused":
		e.clause("baseline", true, "not used", "not looked at")
		return nil
	case b == nil:
		e.clause("baseline", rule == "optional", rule+" baseline bundle", "none was given")
		return nil
	case b.Report.Status != verify.OK:
		e.clause("baseline", false, "a baseline that verifies", "%s", b.Report.Status)
		return nil
	}
	old := b.Report.PlanContent
	if old.Engine != e.plan.Engine || old.Product != e.plan.Product || old.Environment != e.plan.Environment {
		e.clause("baseline", false, "a baseline of the same engine, product and environment", "%s on %s in %s", old.Engine, old.Product, old.Environment)
		return nil
	}
	lost := Compare(old, e.plan)
	got := "nothing lost, nothing loosened"
	if len(lost) > 0 {
		got = fmt.Sprintf("%d lost or loosened, the first is %s", len(lost), lost[0])
	}
	e.clause("baseline", len(lost) == 0, "nothing lost or loosened", "%s", got)
	return lost
}

// Compare names what the baseline's plan had and the plan lacks or loosens. What is added or tightened is no loss.
func Compare(old, now matrix.Plan) []Loss {
	var lost []Loss
	add := func(kind, name, format string, args ...any) {
		lost = append(lost, Loss{kind, name, fmt.Sprintf(format, args...)})
	}
	rows := map[matrix.RowID]matrix.Contract{}
	covered := map[matrix.RequirementID]bool{}
	for _, c := range now.Rows {
		rows[c.ID] = c
		covered[c.Requirement] = true
	}
	requirements := map[matrix.RequirementID]bool{}
	for _, c := range old.Rows {
		requirements[c.Requirement] = true
		fresh, there := rows[c.ID]
		if !there {
			add("row", string(c.ID), "lost")
			continue
		}
		loosened(c, fresh, add)
	}
	for _, id := range sortedKeys(requirements) {
		if !covered[id] {
			add("requirement", string(id), "lost: it had rows")
		}
	}
	claimed := map[engine.Capability]bool{}
	for _, c := range now.Declared {
		claimed[c.Capability] = c.Declared
	}
	for _, c := range old.Declared {
		if c.Declared && !claimed[c.Capability] {
			add("capability", fmt.Sprintf("%s/%s/%s/%s", c.Action, c.Route, c.Delivery, c.State), "lost: it was claimed")
		}
	}
	for _, f := range old.Features {
		if !slices.Contains(now.Features, f) {
			add("feature", f, "lost: it was claimed")
		}
	}
	for _, name := range sortedKeys(old.Budgets) {
		was := old.Budgets[name]
		switch is, there := now.Budgets[name]; {
		case !there:
			add("budget", name, "lost: it was %v", was)
		case is > was:
			add("budget", name, "loosened from %v to %v", was, is)
		}
	}
	core := slices.Concat(now.CoreDeliver, now.CoreHold)
	for _, id := range slices.Concat(old.CoreDeliver, old.CoreHold) {
		switch {
		case !slices.Contains(core, id):
			add("core", string(id), "lost: it was core")
		case slices.Contains(old.CoreDeliver, id) && !slices.Contains(now.CoreDeliver, id):
			add("core", string(id), "loosened: it had to be delivered")
		case slices.Contains(now.CoreMissing, id) && !slices.Contains(old.CoreMissing, id):
			add("core", string(id), "lost: it had every row that core asks for")
		}
	}
	for _, group := range old.CoreAny {
		if !slices.ContainsFunc(now.CoreAny, func(g []matrix.RequirementID) bool { return slices.Equal(g, group) }) &&
			!slices.ContainsFunc(group, func(id matrix.RequirementID) bool { return slices.Contains(now.CoreDeliver, id) }) {
			add("core", fmt.Sprint(group), "lost: one of them had to be delivered")
		}
	}
	for _, id := range sortedKeys(now.NotApplicable) {
		if _, before := old.NotApplicable[id]; !before {
			add("exception", string(id), "loosened: said not to apply, %s", now.NotApplicable[id])
		}
	}
	return lost
}

// loosened compares the same row in two plans.
func loosened(was, is matrix.Contract, add func(kind, name, format string, args ...any)) {
	name := string(was.ID)
	if is.Budget > was.Budget {
		add("budget", name, "loosened from %v to %v", was.Budget, is.Budget)
	}
	if !was.Twin && is.Twin {
		add("expectation", name, "loosened: it had to be delivered and must now be refused")
		return
	}
	if was.Requirement != is.Requirement || was.Aspect != is.Aspect {
		add("expectation", name, "lost: it proved %s %s and proves %s %s", was.Requirement, was.Aspect, is.Requirement, is.Aspect)
	}
	if was.Launch == matrix.LaunchFresh && is.Launch == matrix.LaunchShared {
		add("expectation", name, "loosened: it had a browser of its own")
	}
	var texts []string
	for _, c := range explain.Clauses(is) {
		texts = append(texts, c.Text)
	}
	for _, c := range explain.Clauses(was) {
		// Budgets are compared as times, and the arrangement of the desk is no expectation.
		if c.About != explain.AboutExpect || c.Of == "" && c.Text == budgetText(was) || slices.Contains(texts, c.Text) {
			continue
		}
		add("expectation", name, "loosened: %s", c.Text)
	}
}

// budgetText is the clause that stands for the row's budget.
func budgetText(c matrix.Contract) string {
	for _, cl := range explain.Clauses(matrix.Contract{Budget: c.Budget}) {
		if cl.About == explain.AboutExpect {
			return cl.Text
		}
	}
	return ""
}
