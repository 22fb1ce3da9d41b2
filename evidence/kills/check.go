package kills

import (
	"fmt"
	"slices"
	"strings"

	"github.com/engine-acceptance/acceptance/matrix"
)

// Build is what a table is joined to.
type Build struct {
	// Harness is the sha256 of the program that judged the bundle, Commit its source.
	Harness, Commit string
	// Plan is the bundle's plan.
	Plan matrix.Plan
	// Cowards are the mutants that must lose, by profiles.yaml.
	Cowards []string
}

// Check lists everything that keeps the table from showing, for this build, that each check can fail. An empty list means that it does: same
// harness, same data, every mutant of the program run and killed as declared, the healthy engine green on the same rows, each coward run against
// every core row, and a kill for every engine-duty requirement that has rows.
func (t Table) Check(b Build) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, f := range []struct{ what, got, want string }{
		{"harness digest", t.Harness, b.Harness}, {"harness commit", t.Commit, b.Commit}, {"matrix digest", t.Matrix, b.Plan.MatrixDigest},
	} {
		if f.got == "" || f.got != f.want {
			add("it is about another build: its %s is %s, the bundle's is %s", f.what, brief(f.got), brief(f.want))
		}
	}
	if len(out) > 0 {
		return out // whatever else it says, it says it of another program
	}
	run := map[string]Mutant{}
	for _, m := range t.Mutants {
		if _, twice := run[m.Name]; twice {
			add("mutant %s is there twice", m.Name)
		}
		run[m.Name] = m
		if !slices.Contains(t.Known, m.Name) {
			add("mutant %s is not one of the program's", m.Name)
		}
	}
	var left []string
	for _, name := range t.Known {
		if _, ok := run[name]; !ok {
			left = append(left, name)
		}
	}
	for _, name := range b.Cowards {
		if m, ok := run[name]; ok && !m.Coward {
			add("%s is a coward by the profiles, and was not run as one", name)
		} else if !ok && !slices.Contains(left, name) {
			left = append(left, name)
		}
	}
	if len(left) > 0 || len(t.Known) == 0 {
		add("incomplete: %s not run: %s", count(len(left), "mutant"), listed(left))
	}
	if green, _, why := t.healthy(); !green {
		add("%s", why)
	}
	healthy := map[matrix.RowID]bool{}
	for _, r := range t.Healthy {
		healthy[r.Row] = true
	}
	for _, m := range t.Mutants {
		if state, why := m.Judge(); state != Killed {
			add("%s: %s: %s", m.Name, state, why)
			continue
		}
		for _, r := range m.Rows {
			if !healthy[r.Row] {
				add("%s ran %s, and the healthy engine did not", m.Name, r.Row)
				break
			}
		}
		if m.Coward {
			if missing := coreRowsWithout(b.Plan, m.Rows); len(missing) > 0 {
				add("%s did not run every core row: %s left out: %s", m.Name, count(len(missing), "row"), listed(missing))
			}
		}
	}
	if bare := Bare(b.Plan, t.killers()); len(bare) > 0 {
		add("no mutant is killed for %s that rows prove: %s", count(len(bare), "engine-duty requirement"), listed(bare))
	}
	return out
}

// killers names the requirements that a killed mutant was declared and found for. Cowards do not count: they are found by everything.
func (t Table) killers() map[matrix.RequirementID]bool {
	out := map[matrix.RequirementID]bool{}
	for _, m := range t.Mutants {
		if state, _ := m.Judge(); state != Killed || m.Coward {
			continue
		}
		for _, p := range m.Declared {
			out[p.Requirement] = true
		}
	}
	return out
}

// Bare lists the engine-duty requirements that rows of the plan prove and that no mutant is killed for, sorted. A row that became a refusal does
// not prove its requirement.
func Bare(p matrix.Plan, killed map[matrix.RequirementID]bool) []string {
	var out []string
	for _, c := range p.Rows {
		id := string(c.Requirement)
		if c.Duty == matrix.DutyEngine && !c.Twin && !killed[c.Requirement] && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// coreRowsWithout lists the rows of core requirements that are not among rows.
func coreRowsWithout(p matrix.Plan, rows []Row) []string {
	core := slices.Concat(p.CoreDeliver, p.CoreHold)
	for _, group := range p.CoreAny {
		core = append(core, group...)
	}
	ran := map[matrix.RowID]bool{}
	for _, r := range rows {
		ran[r.Row] = true
	}
	var out []string
	for _, c := range p.Rows {
		if slices.Contains(core, c.Requirement) && !ran[c.ID] {
			out = append(out, string(c.ID))
		}
	}
	return out
}

func listed(words []string) string {
	const most = 8
	if len(words) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
	}
	return strings.Join(words, ", ")
}

func brief(s string) string {
	if s == "" {
		return "unknown"
	}
	return fmt.Sprintf("%.12s", s)
}
