//go:build browser

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine/mutant"
	"github.com/engine-acceptance/acceptance/evidence/kills"
)

// wholeBudget bounds what takes minutes: every planned row, or every mutant. On an idle machine of two cores the plan takes three.
const wholeBudget = 12 * time.Minute

// TestRun_every_planned_row is the main job: every row of the plan passes on the real browser, nothing is left, and the bundle verifies.
func TestRun_every_planned_row(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := filepath.Join(t.TempDir(), "bundle")
	a := begin(t, nil, "run", "--out", dir, "--json")
	code := a.endWithin(wholeBudget)
	var s runSummary
	g.Expect(json.Unmarshal([]byte(a.out.String()), &s)).To(gomega.Succeed(), a.err.String())
	for _, r := range s.Rows {
		if r.Outcome.String() != "pass" {
			t.Errorf("%s: %s %v", r.Row, r.Outcome, r.Findings)
		}
	}
	g.Expect(code).To(gomega.Equal(exitOK), a.err.String())
	g.Expect(len(s.Rows)).To(gomega.BeNumerically(">", 80))
	a.leavesNothing()
	g.Expect(call(t, static, "verify", dir).code).To(gomega.Equal(exitOK))
}

// sample is one mutant or more of each seam and of each claim that has mutants. The whole table takes the better part of an hour on two
// cores, for the healthy engine carries out the same rows beside each; it is made by the soak, and a release asks for it.
var sample = []string{"navigates-nowhere", "acts-in-the-other-tab", "guesses-between-twins", "revives-old-refs", "clicks-twice", "steals-the-focus-later",
	"sells-synthetic-as-trusted", "refuses-and-acts", "logs-what-is-typed", "leaves-the-browser", "probes-before-it-refuses", "takes-hidden-for-shown"}

// TestMutants_of_each_seam_are_killed_as_declared shows that checks can fail, and for the stated reason.
func TestMutants_of_each_seam_are_killed_as_declared(t *testing.T) {
	g := gomega.NewWithT(t)
	seams := map[mutant.Seam]bool{}
	for _, name := range sample {
		m, ok := mutant.Find(name)
		g.Expect(ok).To(gomega.BeTrue(), name)
		seams[m.Seam] = true
	}
	for _, seam := range []mutant.Seam{mutant.SeamReceipt, mutant.SeamStore, mutant.SeamNative, mutant.SeamAdapter, mutant.SeamDesk} {
		g.Expect(seams[seam]).To(gomega.BeTrue(), "no mutant stands on the seam %s, or none is in the sample", seam)
	}
	for _, m := range mutant.All() {
		g.Expect(seams[m.Seam]).To(gomega.BeTrue(), "no mutant of seam %s is in the sample", m.Seam)
	}
	dir := filepath.Join(t.TempDir(), "mutants")
	a := begin(t, nil, "mutants", "--only", strings.Join(sample, ","), "--out", dir, "--json")
	code := a.endWithin(wholeBudget)
	var table kills.Table
	g.Expect(json.Unmarshal([]byte(a.out.String()), &table)).To(gomega.Succeed(), a.err.String())
	for _, m := range table.Mutants {
		if state, why := m.Judge(); state != kills.Killed {
			t.Errorf("%s: %s: %s", m.Name, state, why)
		}
	}
	g.Expect(table.Mutants).To(gomega.HaveLen(len(sample)))
	g.Expect(code).To(gomega.Equal(exitOK), a.err.String())
	a.leavesNothing()
}
