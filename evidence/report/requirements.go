package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/explain"
	"github.com/engine-acceptance/acceptance/matrix"
)

// requirementGroup are the requirements of one claim.
type requirementGroup struct {
	Name  string
	Lines []requirementLine
	Shown int
}

// requirementLine is one requirement: its sentence, and what the rows of this run came to.
type requirementLine struct {
	ID, Must string
	// Place says what core asks of it, empty for what is not in core; Duty is set where it is the harness that answers.
	Place, Duty string
	Word        string
	look
	Rows []rowLink
	// Open lists the rows at once: one of them is no pass.
	Open bool
}

// rowLink leads to the page of a row.
type rowLink struct {
	ID, Outcome, Page string
	look
}

// requirements lists every requirement that applies, those of rows included that no list of the plan names.
func (d *index) requirements(in Input, rows []indexRow) {
	p := in.Plan
	all := slices.Clone(p.Requirements)
	known := map[matrix.RequirementID]bool{}
	for _, r := range all {
		known[r.ID] = true
	}
	place := map[matrix.RequirementID]string{}
	core := func(word string, ids []matrix.RequirementID) {
		for _, id := range ids {
			place[id] = word
			if !known[id] {
				known[id] = true
				all = append(all, matrix.PlanRequirement{ID: id, Claim: claimOf(id)})
			}
		}
	}
	core("core: deliver", p.CoreDeliver)
	for _, group := range p.CoreAny {
		core("core: one of", group)
	}
	core("core: hold", p.CoreHold)
	byReq := map[matrix.RequirementID][]indexRow{}
	for _, r := range rows {
		id := r.contract.Requirement
		byReq[id] = append(byReq[id], r)
		if !known[id] {
			known[id] = true
			all = append(all, matrix.PlanRequirement{ID: id, Claim: claimOf(id), Duty: r.contract.Duty})
		}
	}
	byClaim := map[matrix.Claim]*requirementGroup{}
	for _, r := range all {
		g := byClaim[r.Claim]
		if g == nil {
			g = &requirementGroup{Name: string(r.Claim)}
			byClaim[r.Claim] = g
		}
		line := requirementLine{ID: string(r.ID), Must: r.Must, Place: place[r.ID]}
		if r.Duty == matrix.DutyHarness {
			line.Duty = "the harness answers"
		}
		line.judge(p, r.ID, byReq[r.ID])
		if line.Class == "good" {
			g.Shown++
		}
		g.Lines = append(g.Lines, line)
	}
	for _, claim := range append(slices.Clone(matrix.Claims), "other") {
		if g := byClaim[claim]; g != nil {
			slices.SortStableFunc(g.Lines, func(a, b requirementLine) int {
				return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
			})
			d.Requirements = append(d.Requirements, *g)
		}
	}
}

// judge says in a word what the rows of a requirement came to. What is not core and has no rows is said without a sign: nobody asks for it.
func (l *requirementLine) judge(p matrix.Plan, id matrix.RequirementID, rows []indexRow) {
	var bad, open int
	for _, r := range rows {
		l.Rows = append(l.Rows, rowLink{r.ID, r.Outcome, r.Page, r.look})
		switch r.Class {
		case "bad":
			bad++
		case "open":
			open++
		}
	}
	slices.SortStableFunc(l.Rows, func(a, b rowLink) int { return cmp.Compare(rank(a.Class), rank(b.Class)) })
	l.Open = bad+open > 0
	missing := slices.Contains(p.CoreMissing, id)
	switch {
	case bad > 0:
		l.Word, l.look = fmt.Sprintf("%d of %s fail", bad, explain.Count(len(rows), "row")), look{"✗", "bad"}
	case open > 0:
		l.Word, l.look = fmt.Sprintf("%d of %s open", open, explain.Count(len(rows), "row")), look{"?", "open"}
	case len(rows) > 0 && missing:
		l.Word, l.look = "in part: an aspect has no row", look{"○", "open"}
	case len(rows) > 0 && !slices.ContainsFunc(rows, func(r indexRow) bool { return r.outcome == evidence.Pass }):
		l.Word, l.look = "does not apply", look{"–", "mute"}
	case len(rows) > 0:
		l.Word, l.look = "shown", look{"✓", "good"}
	case p.NotApplicable[id] != "":
		l.Word, l.look = "does not apply: "+p.NotApplicable[id], look{"–", "mute"}
	case missing:
		l.Word, l.look = "no row proves it", look{"○", "open"}
	case l.Place != "":
		l.Word, l.look = "left out of this run", look{"○", "open"}
	default:
		l.Word, l.look = "no row here", look{"", "mute"}
	}
}
