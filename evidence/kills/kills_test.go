package kills_test

import (
	"crypto/ed25519"
	"encoding/json"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/kills"
	"github.com/engine-acceptance/acceptance/matrix"
)

var (
	wrong   = kills.Pair{Requirement: "M5", Reason: evidence.ReasonEffectWrong}
	focus   = kills.Pair{Requirement: "D1", Reason: evidence.ReasonFocusLeft}
	refused = kills.Pair{Requirement: "M5", Reason: evidence.ReasonRefused}
)

func row(id matrix.RowID, o evidence.Outcome, found ...kills.Pair) kills.Row {
	return kills.Row{Row: id, Outcome: o, Found: append([]kills.Pair{}, found...), Own: true}
}

func build() kills.Build {
	return kills.Build{Harness: "h", Commit: "c", Cowards: []string{"null"}, Plan: matrix.Plan{MatrixDigest: "m", CoreDeliver: []matrix.RequirementID{"M5"}, Rows: []matrix.Contract{
		{ID: "type", Requirement: "M5", Duty: matrix.DutyEngine}, {ID: "focus", Requirement: "D1", Duty: matrix.DutyEngine},
		{ID: "film", Requirement: "V1", Duty: matrix.DutyHarness}, {ID: "drag", Requirement: "M8", Duty: matrix.DutyEngine, Twin: true},
	}}}
}

// sound is a table that shows everything; cases change one thing.
func sound() kills.Table {
	return kills.Table{Format: kills.Format, Harness: "h", Commit: "c", Matrix: "m", Engine: "chromium", Product: "chromium", Environment: "x11",
		Known:   []string{"swallows", "steals", "null"},
		Healthy: []kills.Row{row("type", evidence.Pass), row("focus", evidence.Pass)},
		Mutants: []kills.Mutant{
			{Name: "swallows", Declared: []kills.Pair{wrong}, Decision: "not_supported", Rows: []kills.Row{row("type", evidence.Fail, wrong)}},
			{Name: "steals", Declared: []kills.Pair{focus}, Decision: "not_supported", Rows: []kills.Row{row("focus", evidence.Fail, focus), row("type", evidence.Pass)}},
			{Name: "null", Coward: true, Declared: []kills.Pair{refused}, Decision: "not_supported", Rows: []kills.Row{row("type", evidence.Fail, refused, focus), row("focus", evidence.HarnessError)}},
		}}
}

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*kills.Table)
		want   string
	}{
		{"everything_is_shown", func(*kills.Table) {}, ""},
		{"another_harness", func(t *kills.Table) { t.Harness = "x" }, "its harness digest is x, the bundle's is h"},
		{"another_commit", func(t *kills.Table) { t.Commit = "x" }, "its harness commit is x"},
		{"another_matrix", func(t *kills.Table) { t.Matrix = "x" }, "its matrix digest is x"},
		{"nobody_said_which_harness", func(t *kills.Table) { t.Harness = "" }, "its harness digest is unknown"},
		{"a_mutant_was_left_out", func(t *kills.Table) { t.Mutants = t.Mutants[1:] }, "incomplete: 1 mutant not run: swallows"},
		{"a_coward_is_unknown_to_the_program", func(t *kills.Table) { t.Known, t.Mutants = t.Known[:2], t.Mutants[:2] }, "incomplete: 1 mutant not run: null"},
		{"nothing_was_run", func(t *kills.Table) { t.Known, t.Mutants = nil, nil }, "incomplete"},
		{"a_mutant_twice", func(t *kills.Table) { t.Mutants = append(t.Mutants, t.Mutants[0]) }, "swallows is there twice"},
		{"a_stranger", func(t *kills.Table) { t.Known = t.Known[1:] }, "swallows is not one of the program's"},
		{"a_survivor", func(t *kills.Table) { t.Mutants[0].Rows[0] = row("type", evidence.Pass) }, "swallows: survived: no row found anything"},
		{"another_set", func(t *kills.Table) { t.Mutants[0].Rows[0].Found = []kills.Pair{wrong, focus} }, "swallows: another_set: reports D1 focus_left, which it does not declare"},
		{"less_than_declared", func(t *kills.Table) { t.Mutants[0].Declared = []kills.Pair{wrong, focus} }, "swallows: another_set: declares D1 focus_left, which nothing reports"},
		{"killed_and_yet_supported", func(t *kills.Table) { t.Mutants[0].Decision = "undetermined" }, "swallows: another_decision"},
		{"a_row_that_could_not_be_judged", func(t *kills.Table) {
			t.Mutants[0].Rows = append(t.Mutants[0].Rows, row("focus", evidence.InvalidGuard))
		}, "swallows: not_judged: 1 row could not be judged (invalid_guard): that is about the machine"},
		{"what_was_not_exercised_is_judged", func(t *kills.Table) {
			t.Mutants[0].Rows = append(t.Mutants[0].Rows, row("focus", evidence.NotExercised))
		}, ""},
		{"a_mutant_that_did_not_run", func(t *kills.Table) { t.Mutants[0].Error = "no desk" }, "swallows: not_judged: no desk"},
		{"rows_that_are_not_its_own_do_not_kill", func(t *kills.Table) { t.Mutants[0].Rows[0].Own = false }, "swallows: not_judged: no row of its own was run"},
		{"what_others_found_beyond_its_own_is_no_other_set", func(t *kills.Table) {
			beyond := row("focus", evidence.Fail, focus)
			beyond.Own = false
			t.Mutants[0].Rows = append(t.Mutants[0].Rows, beyond)
		}, ""},
		{"the_healthy_engine_fails", func(t *kills.Table) { t.Healthy[0] = row("type", evidence.Fail, wrong) }, "the healthy engine does not pass type: fail M5 effect_wrong"},
		{"the_healthy_engine_is_flaky", func(t *kills.Table) { t.Healthy[0] = row("type", evidence.Flaky) }, "the healthy engine does not pass type: flaky"},
		{"the_healthy_engine_could_not_be_judged", func(t *kills.Table) { t.Healthy[0] = row("type", evidence.HarnessError) }, "1 row of the healthy engine could not be judged"},
		{"the_healthy_engine_was_not_run", func(t *kills.Table) { t.Healthy = nil }, "the healthy engine was not run"},
		{"the_healthy_engine_ran_less", func(t *kills.Table) { t.Healthy = t.Healthy[:1] }, "steals ran focus, and the healthy engine did not"},
		{"a_coward_is_supported", func(t *kills.Table) {
			t.Mutants[2].Decision, t.Mutants[2].Rows[1] = "supported", row("focus", evidence.Pass)
		}, "null: survived: the decision is supported"},
		{"a_coward_for_another_reason", func(t *kills.Table) {
			t.Mutants[2].Rows = []kills.Row{row("type", evidence.Fail, wrong), row("focus", evidence.Pass)}
		}, "null: another_set: not_supported, and not for the stated reason: nothing reports M5 refused"},
		{"a_coward_that_could_not_be_judged", func(t *kills.Table) { t.Mutants[2].Rows[0] = row("type", evidence.HarnessError) }, "null: not_judged"},
		{"a_coward_ran_less_than_core", func(t *kills.Table) {
			t.Mutants[2].Rows = []kills.Row{row("focus", evidence.Fail, refused)}
		}, "null did not run every core row: 1 row left out: type"},
		{"a_coward_that_was_run_as_something_else", func(t *kills.Table) { t.Mutants[2].Coward = false }, "null is a coward by the profiles"},
		{"a_requirement_that_nothing_is_killed_for", func(t *kills.Table) {
			t.Mutants, t.Known = t.Mutants[1:], t.Known[1:]
		}, "no mutant is killed for 1 engine-duty requirement that rows prove: M5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			table := sound()
			tc.change(&table)
			got := table.Check(build())
			if tc.want == "" {
				g.Expect(got).To(gomega.BeEmpty())
			} else {
				g.Expect(strings.Join(got, "\n")).To(gomega.ContainSubstring(tc.want))
			}
		})
	}
}

// What the command answers: what is wrong comes before what could not be judged.
func TestResult(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*kills.Table)
		want   kills.State
	}{
		{"all_killed", func(*kills.Table) {}, kills.Killed},
		{"nothing_was_run", func(t *kills.Table) { t.Mutants = nil }, kills.NotJudged},
		{"no_healthy_engine", func(t *kills.Table) { t.Healthy = nil }, kills.NotJudged},
		{"a_survivor_beside_what_could_not_be_judged", func(t *kills.Table) {
			t.Mutants[0].Error, t.Mutants[1].Rows[0] = "no desk", row("focus", evidence.Pass)
		}, kills.Survived},
		{"a_healthy_failure_comes_first", func(t *kills.Table) {
			t.Healthy[0], t.Mutants[1].Rows[0] = row("type", evidence.Fail, wrong), row("focus", evidence.Pass)
		}, kills.Unhealthy},
		{"the_machine", func(t *kills.Table) { t.Mutants[0].Rows[0] = row("type", evidence.EnvironmentUnmet) }, kills.NotJudged},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			table := sound()
			tc.change(&table)
			got, why := table.Result()
			g.Expect(got).To(gomega.Equal(tc.want), why)
			g.Expect(why).NotTo(gomega.BeEmpty())
		})
	}
	var zero kills.State
	gomega.NewWithT(t).Expect(zero).To(gomega.Equal(kills.NotJudged), "the zero state must not be a kill")
}

func TestRead(t *testing.T) {
	g := gomega.NewWithT(t)
	pub, key, err := ed25519.GenerateKey(nil)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	other, _, err := ed25519.GenerateKey(nil)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	plain, err := sound().Marshal()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	sealed, err := sound().Seal(key)
	g.Expect(err).NotTo(gomega.HaveOccurred())

	table, signer, checked, err := kills.Read(plain, pub)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(signer).To(gomega.BeEmpty())
	g.Expect(checked).To(gomega.BeFalse())
	g.Expect(table.Check(build())).To(gomega.BeEmpty())
	again, signer, checked, err := kills.Read(sealed, pub)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(again).To(gomega.Equal(table))
	g.Expect(signer).To(gomega.HaveLen(64))
	g.Expect(checked).To(gomega.BeTrue())
	_, _, checked, err = kills.Read(sealed, nil)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(checked).To(gomega.BeFalse())

	_, _, _, err = kills.Read(sealed, other)
	g.Expect(err).To(gomega.MatchError(kills.ErrTable))
	for _, raw := range [][]byte{plain, sealed} {
		for i := range raw {
			bad := append([]byte{}, raw...)
			bad[i] ^= 1
			if _, _, _, err := kills.Read(bad, nil); err == nil {
				t.Fatalf("byte %d (%q) changed: accepted", i, raw[i])
			}
		}
		for _, cut := range []int{0, 1, len(raw) / 2, len(raw) - 1} {
			_, _, _, err := kills.Read(raw[:cut], nil)
			g.Expect(err).To(gomega.MatchError(kills.ErrTable), "cut at %d", cut)
		}
	}
	_, _, _, err = kills.Read([]byte(strings.Replace(string(plain), kills.Format, "acceptance.kills/v1", 1)), nil)
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("acceptance.kills/v1")))
	// A kill that is written into the table afterwards, with a digest made anew, is as whole as any other: that is what the signature is for.
	forged := table
	forged.Mutants[0].Rows[0].Outcome = evidence.Pass
	raw, err := forged.Marshal()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, signer, _, err = kills.Read(raw, pub)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(signer).To(gomega.BeEmpty())
	g.Expect(json.Valid(raw)).To(gomega.BeTrue())
}
