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

// TestMutants_each_is_killed_as_declared shows that every check can fail, and for the stated reason. The cowards beside the null engine run
// every row at full length; they belong to the soak.
func TestMutants_each_is_killed_as_declared(t *testing.T) {
	g := gomega.NewWithT(t)
	var names []string
	for _, m := range mutant.All() {
		if !m.Coward || m.Name == "refuses-everything" {
			names = append(names, m.Name)
		}
	}
	dir := filepath.Join(t.TempDir(), "mutants")
	a := begin(t, nil, "mutants", "--only", strings.Join(names, ","), "--out", dir, "--json")
	code := a.endWithin(wholeBudget)
	var table kills.Table
	g.Expect(json.Unmarshal([]byte(a.out.String()), &table)).To(gomega.Succeed(), a.err.String())
	for _, m := range table.Mutants {
		if state, why := m.Judge(); state != kills.Killed {
			t.Errorf("%s: %s: %s", m.Name, state, why)
		}
	}
	g.Expect(table.Mutants).To(gomega.HaveLen(len(names)))
	g.Expect(code).To(gomega.Equal(exitOK), a.err.String())
	a.leavesNothing()
}
