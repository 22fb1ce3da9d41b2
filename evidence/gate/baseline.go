package gate

import (
	"fmt"
	"slices"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence/explain"
	"github.com/engine-acceptance/acceptance/evidence/kills"
	"github.com/engine-acceptance/acceptance/evidence/verify"
	"github.com/engine-acceptance/acceptance/evidence/waiver"
	"github.com/engine-acceptance/acceptance/matrix"
)

// Loss is one thing that a baseline had and this lacks or loosens (J13). Its kind is row, requirement, capability, feature, budget, core, exception,
// expectation, guard or mutant; How is "lost" or "loosened", with what it was and is.
type Loss = waiver.Loss

// Waived is one loss that a signed waiver allows.
type Waived struct {
	Loss
	Owner   string `json:"owner"`
	Reason  string `json:"reason"`
	Expires string `json:"expires"`
}

// baseline asks that nothing was lost against the baseline, but what a signed waiver names.
func (e *evaluation) baseline() (lost []Loss, waived []Waived) {
	rule, b := e.policy.Baseline, e.x.Baseline
	switch {
	case rule == "unused":
		e.clause("baseline", true, "not used", "not looked at")
		return nil, nil
	case b == nil:
		e.clause("baseline", rule == "optional", rule+" baseline bundle", "none was given")
		return nil, nil
	case b.Report.Status != verify.OK:
		e.clause("baseline", false, "a baseline that verifies", "%s", b.Report.Status)
		return nil, nil
	}
	old := b.Report.PlanContent
	if old.Engine != e.plan.Engine || old.Product != e.plan.Product || old.Environment != e.plan.Environment {
		e.clause("baseline", false, "a baseline of the same engine, product and environment", "%s on %s in %s", old.Engine, old.Product, old.Environment)
		return nil, nil
	}
	lost = slices.Concat(Compare(old, e.plan), CompareGuards(b.Report.Guards, e.report.Guards))
	mutants, blind := e.baselineMutants(b)
	if blind != "" {
		e.clause("baseline", false, "a kill table of the baseline, so that mutants can be compared", "%s", blind)
		return lost, nil
	}
	lost, waived, bad := e.waive(slices.Concat(lost, mutants))
	got := "nothing lost, nothing loosened"
	switch {
	case bad != "":
		got = bad
	case len(lost) > 0:
		got = fmt.Sprintf("%d lost or loosened, the first is %s", len(lost), lost[0])
	case len(waived) > 0:
		got = fmt.Sprintf("%s, waived by %s until %s: %s", explain.Count(len(waived), "loss"), waived[0].Owner, waived[0].Expires, waived[0].Reason)
	}
	e.clause("baseline", len(lost) == 0 && bad == "", "nothing lost or loosened without a signed waiver", "%s", got)
	return lost, waived
}

// baselineMutants compares the kill tables; blind says why they cannot be compared although the policy asks for both.
func (e *evaluation) baselineMutants(b *Baseline) (lost []Loss, blind string) {
	switch {
	case e.policy.Mutants == "unused":
		return nil, ""
	case b.Kills == nil && e.policy.Mutants == "required":
		return nil, "none was given"
	case b.Kills == nil:
		return nil, ""
	case b.Kills.Problem != "":
		return nil, b.Kills.Problem
	case e.policy.Signer.Required && !b.Kills.Checked:
		return nil, "it is not signed by the signer that was named"
	}
	if p := b.Report.ProvenanceContent; b.Kills.Table.Harness != p.Harness.SHA256 || b.Kills.Table.Matrix != b.Report.PlanContent.MatrixDigest {
		return nil, "it is of another build than the baseline"
	}
	var now kills.Table
	if e.x.Kills != nil {
		now = e.x.Kills.Table
	}
	return CompareMutants(b.Kills.Table, now), ""
}

// waive takes what the waiver names out of what was lost. bad says why the waiver itself does not hold: then it waives nothing.
func (e *evaluation) waive(all []Loss) (lost []Loss, waived []Waived, bad string) {
	w := e.x.Waiver
	if w == nil {
		return all, nil, ""
	}
	switch doc := w.Document; {
	case w.Problem != "":
		return all, nil, w.Problem
	case !w.Checked:
		return all, nil, "the waiver is signed by " + brief(w.Signer) + ", not checked: name its signer's key"
	case len(e.policy.Signer.Keys) > 0 && !slices.Contains(e.policy.Signer.Keys, w.Signer):
		return all, nil, "the waiver is signed by " + brief(w.Signer) + ", which is no key of the policy"
	case doc.Baseline != e.x.Baseline.Report.Manifest:
		return all, nil, "the waiver is about another baseline, " + brief(doc.Baseline)
	case !e.x.Now.Before(doc.Until()):
		return all, nil, "the waiver expired on " + doc.Expires
	}
	for _, l := range all {
		if slices.Contains(w.Document.Losses, l) {
			waived = append(waived, Waived{l, w.Document.Owner, w.Document.Reason, w.Document.Expires})
		} else {
			lost = append(lost, l)
		}
	}
	for _, l := range w.Document.Losses {
		if !slices.Contains(all, l) {
			return lost, waived, fmt.Sprintf("the waiver names what was not lost: %s", l)
		}
	}
	return lost, waived, ""
}

// CompareGuards names the kinds of violation and the channels that the baseline's rows proved and these do not, or not in every row.
func CompareGuards(old, now []verify.Armed) []Loss {
	var lost []Loss
	is := map[string]verify.Armed{}
	for _, a := range now {
		is[a.Name] = a
	}
	for _, was := range old {
		switch a, there := is[was.Name]; {
		case !there:
			lost = append(lost, Loss{Kind: "guard", Name: was.Name, How: "lost: it was armed"})
		case was.Every && !a.Every:
			lost = append(lost, Loss{Kind: "guard", Name: was.Name, How: fmt.Sprintf("loosened: it was armed in every row, and is in %d", a.Rows)})
		}
	}
	return lost
}

// CompareMutants names the mutants that the baseline's table killed and this one does not run, or kills for less.
func CompareMutants(old, now kills.Table) []Loss {
	var lost []Loss
	is := map[string]kills.Mutant{}
	for _, m := range now.Mutants {
		is[m.Name] = m
	}
	for _, was := range old.Mutants {
		m, there := is[was.Name]
		if !there {
			lost = append(lost, Loss{Kind: "mutant", Name: was.Name, How: "lost: it was run"})
			continue
		}
		for _, p := range was.Declared {
			if !slices.Contains(m.Declared, p) {
				lost = append(lost, Loss{Kind: "mutant", Name: was.Name, How: "loosened: it was killed for " + p.String()})
			}
		}
	}
	return lost
}

// Compare names what the baseline's plan had and the plan lacks or loosens. What is added or tightened is no loss.
func Compare(old, now matrix.Plan) []Loss {
	var lost []Loss
	add := func(kind, name, format string, args ...any) {
		lost = append(lost, Loss{Kind: kind, Name: name, How: fmt.Sprintf(format, args...)})
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
