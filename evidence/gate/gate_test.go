package gate

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/kills"
	"github.com/engine-acceptance/acceptance/evidence/ledger"
	"github.com/engine-acceptance/acceptance/evidence/provenance"
	"github.com/engine-acceptance/acceptance/evidence/verify"
	"github.com/engine-acceptance/acceptance/evidence/waiver"
	"github.com/engine-acceptance/acceptance/matrix"
)

var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// world is everything that one evaluation is made from; cases change one thing.
type world struct {
	policy matrix.Policy
	report verify.Report
	ruling evidence.Ruling
	extra  Extra
	// again decides anew after the case changed plan or verdicts.
	again bool
}

func sound() *world {
	value := "Ada"
	type1 := matrix.Contract{ID: "type", Stem: "type", Requirement: "M5", Duty: matrix.DutyEngine, Launch: matrix.LaunchFresh, Budget: 5 * time.Second,
		Expect: matrix.Expect{Effect: []matrix.EffectExpect{{Page: "w/tab 1", Control: "full-name", Value: &value}}, Elsewhere: "silent"}}
	click := matrix.Contract{ID: "click", Stem: "click", Requirement: "M3", Duty: matrix.DutyEngine, Launch: matrix.LaunchFresh, Budget: 5 * time.Second}
	extra := matrix.Contract{ID: "hover", Stem: "hover", Requirement: "M8", Duty: matrix.DutyEngine, Launch: matrix.LaunchFresh, Budget: 5 * time.Second}
	w := &world{policy: matrix.Policy{Name: "release", Profile: "core", Features: []string{"trusted-click"}, Products: []engine.Product{engine.ProductChromium},
		Environments: []matrix.EnvironmentID{"x11"}, Accept: []string{"supported", "supported_with_limits"}, Signer: matrix.SignerRule{Required: true}, MaxAge: 14 * 24 * time.Hour,
		CompleteRuns: 2, Baseline: "optional", Mutants: "required", Uncovered: "refuse", Dirty: "refuse"}}
	w.report = verify.Report{Status: verify.OK, Signer: strings.Repeat("5", 64), SignatureChecked: true, Manifest: strings.Repeat("1", 64), Plan: "p",
		PlanContent: matrix.Plan{Engine: "chromium", Product: engine.ProductChromium, Environment: "x11", Ceiling: "supported", MatrixDigest: "m0", Digest: strings.Repeat("9", 64),
			Rows: []matrix.Contract{type1, click, extra}, CoreDeliver: []matrix.RequirementID{"M5"}, CoreHold: []matrix.RequirementID{"M3"}, Features: []string{"trusted-click"},
			Declared: []engine.Claim{{Capability: engine.Capability{Action: engine.ActionClick}, Declared: true}}, Budgets: map[string]time.Duration{"bind": time.Second}},
		ProvenanceContent: provenance.Provenance{Repository: provenance.Repository{State: provenance.StateClean, Commit: "c0"}, Harness: provenance.Binary{SHA256: "h0", MatchesRepository: true},
			Engine:   provenance.Engine{SHA256: "e0", SubjectCommit: "s0", Basis: provenance.BasisBuildInformation},
			Browsers: []provenance.Browser{{Product: engine.ProductChromium, Version: "Chromium 156", SHA256: "b0"}}}}
	for _, c := range w.report.PlanContent.Rows {
		w.report.Rows = append(w.report.Rows, verify.RowResult{Row: c.ID, Attempts: 1, Outcome: evidence.Pass, Verdict: evidence.Verdict{Row: c.ID, Outcome: evidence.Pass}})
	}
	run := func(manifest string, n int) ledger.Entry {
		return ledger.Entry{Commit: "c0", Subject: "s0", Counter: n, Manifest: manifest, Plan: w.report.PlanContent.Digest, Engine: "chromium", Product: "chromium", Environment: "x11"}
	}
	w.extra = Extra{Now: now, Began: now.Add(-time.Hour), Standing: evidence.Standing{Verified: true, Clean: true}, Features: map[string][]matrix.RequirementID{"trusted-click": {"M3"}},
		Ledger: &ledger.Ledger{Entries: []ledger.Entry{run(strings.Repeat("0", 64), 1), run(w.report.Manifest, 2)}}}
	w.extra.Cowards, w.extra.Kills = []string{"null"}, &Kills{Table: shown(), Signer: w.report.Signer, Checked: true}
	w.decide()
	return w
}

// shown is a kill table of this build in which everything is as it must be.
func shown() kills.Table {
	pair := func(id matrix.RequirementID, r evidence.Reason) []kills.Pair {
		return []kills.Pair{{Requirement: id, Reason: r}}
	}
	t := kills.Table{Harness: "h0", Commit: "c0", Matrix: "m0", Known: []string{"null"}, Digest: strings.Repeat("7", 64)}
	null := kills.Mutant{Name: "null", Coward: true, Declared: pair("M5", evidence.ReasonRefused), Decision: "not_supported"}
	for row, id := range map[matrix.RowID]matrix.RequirementID{"type": "M5", "click": "M3", "hover": "M8"} {
		name := "breaks-" + string(row)
		t.Known = append(t.Known, name)
		t.Healthy = append(t.Healthy, kills.Row{Row: row, Outcome: evidence.Pass, Own: true})
		t.Mutants = append(t.Mutants, kills.Mutant{Name: name, Declared: pair(id, evidence.ReasonEffectMissing), Decision: "not_supported",
			Rows: []kills.Row{{Row: row, Outcome: evidence.Fail, Own: true, Found: pair(id, evidence.ReasonEffectMissing)}}})
		null.Rows = append(null.Rows, kills.Row{Row: row, Outcome: evidence.Fail, Own: true, Found: pair(id, evidence.ReasonRefused)})
	}
	t.Mutants = append(t.Mutants, null)
	return t
}

// less is a baseline that had one row more, and lost is what gate says of it.
func (w *world) less() (row, requirement Loss) {
	b := sound().report
	b.Manifest = strings.Repeat("b", 64)
	b.PlanContent.Rows = append(b.PlanContent.Rows, matrix.Contract{ID: "drag", Requirement: "M9"})
	w.extra.Baseline = &Baseline{b, &Kills{Table: shown(), Checked: true}}
	return Loss{Kind: "row", Name: "drag", How: "lost"}, Loss{Kind: "requirement", Name: "M9", How: "lost: it had rows"}
}

// waives gives the world a waiver of everything that less loses, signed by the key that signed the bundle; change may spoil it.
func waives(change func(*world, *Waiver)) func(*world) {
	return func(w *world) {
		row, requirement := w.less()
		signed := &Waiver{Document: waiver.Waiver{Format: waiver.Format, Baseline: w.extra.Baseline.Report.Manifest, Owner: "ada", Reason: "moved elsewhere",
			Expires: now.Format(time.DateOnly), Losses: []Loss{row, requirement}}, Signer: w.report.Signer, Checked: true}
		w.extra.Waiver = signed
		if change != nil {
			change(w, signed)
		}
	}
}

func (w *world) decide() {
	var all []evidence.Verdict
	for _, r := range w.report.Rows {
		all = append(all, r.Verdict)
	}
	w.ruling = evidence.Decide(w.report.PlanContent, all, w.extra.Standing)
}

// outcome sets the verdict of a row.
func (w *world) outcome(row matrix.RowID, o evidence.Outcome, findings ...evidence.Finding) {
	for i := range w.report.Rows {
		if w.report.Rows[i].Row == row {
			w.report.Rows[i].Outcome = o
			w.report.Rows[i].Verdict = evidence.Verdict{Row: row, Outcome: o, Findings: findings}
		}
	}
	w.again = true
}

// known is a deviation that holds.
func known() matrix.Deviation {
	return matrix.Deviation{Requirement: "M8", Row: "hover", Owner: "ada", Issue: "issue 7", Reason: "waits for a fix", Expires: now.Add(24 * time.Hour)}
}

var hovers = evidence.Finding{Requirement: "M8", Reason: evidence.ReasonEffectMissing, Text: "nothing"}

func TestEvaluate(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*world)
		want   Status
		// clause must not be met; empty where all are.
		clause string
	}{
		{"everything_holds", func(*world) {}, Met, ""},
		{"bundle_is_altered", func(w *world) { w.report.Status = verify.Altered }, Undetermined, "verified"},
		{"bundle_is_incomplete", func(w *world) { w.report.Status = verify.Incomplete }, Undetermined, "verified"},
		{"zero_report", func(w *world) { w.report = verify.Report{} }, Undetermined, "verified"},
		{"zero_ruling", func(w *world) { w.ruling = evidence.Ruling{} }, Undetermined, "decision"},
		{"zero_policy", func(w *world) { w.policy = matrix.Policy{MaxAge: time.Hour * 24} }, NotMet, "decision"},
		{"engine_fails", func(w *world) {
			w.outcome("type", evidence.Fail, evidence.Finding{Requirement: "M5", Reason: evidence.ReasonEffectMissing})
		}, NotMet, "decision"},
		{"row_not_judged", func(w *world) { w.outcome("type", evidence.InvalidGuard) }, Undetermined, "decision"},
		{"limits_are_not_accepted", func(w *world) {
			w.policy.Accept = []string{"supported"}
			w.extra.Standing.Limits, w.again = []string{"shared uid"}, true
		}, NotMet, "decision"},
		{"limits_are_accepted", func(w *world) { w.extra.Standing.Limits, w.again = []string{"shared uid"}, true }, Met, ""},
		{"experimental_environment", func(w *world) { w.report.PlanContent.Ceiling, w.again = "experimental", true }, NotMet, "decision"},
		{"subset", func(w *world) {
			w.report.PlanContent.Subset, w.report.PlanContent.Left, w.again = true, []matrix.RowID{"x"}, true
		}, Undetermined, "all rows"},
		{"dirty_tree", func(w *world) {
			w.report.ProvenanceContent.Repository.State = provenance.StateDirty
			w.extra.Standing.Clean, w.again = false, true
		}, Undetermined, "clean"},
		{"dirty_engine_but_ruled_on", func(w *world) { w.report.ProvenanceContent.Engine.Dirty = true }, NotMet, "clean"},
		{"harness_not_of_its_commit", func(w *world) { w.report.ProvenanceContent.Harness.MatchesRepository = false }, NotMet, "provenance"},
		{"facts_not_collected", func(w *world) { w.report.ProvenanceContent.Problems = []string{"browser"} }, NotMet, "provenance"},
		{"dirt_is_only_printed", func(w *world) {
			w.policy.Dirty = "print"
			w.report.ProvenanceContent.Engine.Dirty = true
			w.report.ProvenanceContent.Harness.MatchesRepository = false
		}, Met, ""},
		{"another_product", func(w *world) { w.policy.Products = []engine.Product{engine.ProductFirefox} }, NotMet, "product"},
		{"another_environment", func(w *world) { w.policy.Environments = []matrix.EnvironmentID{"x11-user"} }, NotMet, "environment"},
		{"core_without_rows", func(w *world) { w.report.PlanContent.CoreMissing = []matrix.RequirementID{"S9"} }, NotMet, "profile core"},
		{"core_without_rows_is_printed", func(w *world) {
			w.report.PlanContent.CoreMissing, w.policy.Uncovered = []matrix.RequirementID{"S9"}, "print"
		}, Met, ""},
		{"no_core_lists", func(w *world) { w.report.PlanContent.CoreDeliver, w.report.PlanContent.CoreHold = nil, nil }, NotMet, "profile core"},
		{"feature_not_claimed", func(w *world) { w.report.PlanContent.Features = nil }, NotMet, "feature trusted-click"},
		{"feature_not_shown", func(w *world) { w.report.PlanContent.FeatureMissing = []string{"trusted-click"} }, NotMet, "feature trusted-click"},
		{"feature_unknown", func(w *world) { w.extra.Features = nil }, NotMet, "feature trusted-click"},
		{"feature_refused", func(w *world) { w.report.PlanContent.Rows[1].Twin = true }, NotMet, "feature trusted-click"},
		{"unsigned", func(w *world) { w.report.Signer, w.report.SignatureChecked = "unsigned", false }, NotMet, "signer"},
		{"signature_not_checked", func(w *world) { w.report.SignatureChecked = false }, NotMet, "signer"},
		{"signed_by_another", func(w *world) { w.policy.Signer.Keys = []string{"other"} }, NotMet, "signer"},
		{"signed_by_a_key_of_the_policy", func(w *world) { w.policy.Signer.Keys = []string{w.report.Signer} }, Met, ""},
		{"no_signer_asked", func(w *world) {
			w.policy.Signer.Required, w.report.Signer, w.report.SignatureChecked = false, "unsigned", false
		}, Met, ""},
		{"too_old", func(w *world) { w.extra.Began = now.Add(-15 * 24 * time.Hour) }, Expired, "age"},
		{"age_unknown", func(w *world) { w.extra.Began = time.Time{} }, NotMet, "age"},
		{"began_in_the_future", func(w *world) { w.extra.Began = now.Add(time.Hour) }, NotMet, "age"},
		{"clocks_differ_a_little", func(w *world) { w.extra.Began = now.Add(time.Minute) }, Met, ""},
		{"no_ledger", func(w *world) { w.extra.Ledger = nil }, NotMet, "complete runs"},
		{"one_run_needs_no_ledger", func(w *world) { w.extra.Ledger, w.policy.CompleteRuns = nil, 1 }, Met, ""},
		{"ledger_broken", func(w *world) { w.extra.Ledger.Problems = []ledger.Problem{{Line: 1, What: "x"}} }, NotMet, "complete runs"},
		{"ledger_lacks_this_run", func(w *world) { w.extra.Ledger.Entries = w.extra.Ledger.Entries[:1] }, NotMet, "complete runs"},
		{"too_few_runs", func(w *world) { w.policy.CompleteRuns = 3 }, NotMet, "complete runs"},
		{"run_again_until_green", func(w *world) { w.extra.Ledger.Entries[0].ExitCode = 1 }, NotMet, "complete runs"},
		{"run_of_another_plan_does_not_count", func(w *world) { w.extra.Ledger.Entries[0].Plan = "x" }, NotMet, "complete runs"},
		{"another_product_version", func(w *world) { w.extra.Build.ProductVersion = "Chromium 157" }, Expired, "build"},
		{"another_product_digest", func(w *world) { w.extra.Build.ProductSHA256 = "b1" }, Expired, "build"},
		{"another_harness", func(w *world) { w.extra.Build.HarnessSHA256 = "h1" }, Expired, "build"},
		{"another_harness_commit", func(w *world) { w.extra.Build.HarnessCommit = "c1" }, Expired, "build"},
		{"another_engine", func(w *world) { w.extra.Build.EngineSHA256 = "e1" }, Expired, "build"},
		{"another_plan", func(w *world) { w.extra.Build.PlanDigest = "p1" }, Expired, "build"},
		{"the_same_build", func(w *world) {
			w.extra.Build = Build{"Chromium 156", "b0", "e0", "h0", "c0", w.report.PlanContent.Digest}
		}, Met, ""},
		{"altered_comes_before_expired", func(w *world) {
			w.report.Status, w.extra.Build.PlanDigest = verify.Altered, "p1"
		}, Undetermined, "build"},

		{"no_kill_table", func(w *world) { w.extra.Kills = nil }, NotMet, "mutants"},
		{"no_kill_table_where_it_is_optional", func(w *world) { w.policy.Mutants, w.extra.Kills = "optional", nil }, Met, ""},
		{"kill_table_is_not_used", func(w *world) { w.policy.Mutants, w.extra.Kills = "unused", &Kills{Problem: "altered"} }, Met, ""},
		{"kill_table_is_bad_where_it_is_optional", func(w *world) { w.policy.Mutants, w.extra.Kills = "optional", &Kills{Problem: "altered"} }, NotMet, "mutants"},
		{"kill_table_is_altered", func(w *world) { w.extra.Kills = &Kills{Problem: "altered"} }, NotMet, "mutants"},
		{"kill_table_is_unsigned", func(w *world) { w.extra.Kills.Signer, w.extra.Kills.Checked = "", false }, NotMet, "mutants"},
		{"kill_table_is_signed_and_not_checked", func(w *world) { w.extra.Kills.Checked = false }, NotMet, "mutants"},
		{"kill_table_is_unsigned_where_nothing_is_signed", func(w *world) {
			w.policy.Signer.Required, w.extra.Kills.Signer, w.extra.Kills.Checked = false, "", false
		}, Met, ""},
		{"kill_table_of_another_harness", func(w *world) { w.extra.Kills.Table.Harness = "h1" }, NotMet, "mutants"},
		{"kill_table_of_another_matrix", func(w *world) { w.extra.Kills.Table.Matrix = "m1" }, NotMet, "mutants"},
		{"kill_table_lacks_a_mutant", func(w *world) { w.extra.Kills.Table.Known = append(w.extra.Kills.Table.Known, "left-out") }, NotMet, "mutants"},
		{"kill_table_lacks_a_coward", func(w *world) { w.extra.Cowards = append(w.extra.Cowards, "shy") }, NotMet, "mutants"},
		{"kill_table_has_a_survivor", func(w *world) { w.extra.Kills.Table.Mutants[0].Rows[0].Outcome = evidence.Pass }, NotMet, "mutants"},
		{"a_requirement_without_a_kill", func(w *world) {
			w.report.PlanContent.Rows[2].Requirement = "M7"
			w.again = true
		}, NotMet, "mutants"},

		{"known_deviation", func(w *world) {
			w.policy.Deviations = []matrix.Deviation{known()}
			w.outcome("hover", evidence.Fail, hovers)
		}, Met, ""},
		{"known_deviation_is_a_limit", func(w *world) {
			w.policy.Deviations, w.policy.Accept = []matrix.Deviation{known()}, []string{"supported"}
			w.outcome("hover", evidence.Fail, hovers)
		}, NotMet, "decision"},
		{"deviation_and_another_failure", func(w *world) {
			w.policy.Deviations = []matrix.Deviation{known()}
			w.outcome("hover", evidence.Fail, hovers, evidence.Finding{Requirement: "D1", Reason: evidence.ReasonFocusLeft})
		}, NotMet, "deviation M8 hover"},
		{"deviation_passes_unexpectedly", func(w *world) { w.policy.Deviations = []matrix.Deviation{known()} }, NotMet, "deviation M8 hover"},
		{"deviation_unused", func(w *world) {
			d := known()
			d.Row = "gone"
			w.policy.Deviations = []matrix.Deviation{d}
		}, NotMet, "deviation M8 gone"},
		{"deviation_expired", func(w *world) {
			d := known()
			d.Expires = now.Add(-48 * time.Hour)
			w.policy.Deviations = []matrix.Deviation{d}
			w.outcome("hover", evidence.Fail, hovers)
		}, NotMet, "deviation M8 hover"},
		{"deviation_without_owner", func(w *world) {
			d := known()
			d.Owner = ""
			w.policy.Deviations = []matrix.Deviation{d}
			w.outcome("hover", evidence.Fail, hovers)
		}, NotMet, "deviation M8 hover"},
		{"deviation_in_core", func(w *world) {
			d := known()
			d.Requirement, d.Row = "M5", "type"
			w.policy.Deviations = []matrix.Deviation{d}
			w.outcome("type", evidence.Fail, evidence.Finding{Requirement: "M5", Reason: evidence.ReasonEffectMissing})
		}, NotMet, "deviation M5 type"},
		{"deviation_of_a_stem_one_row_of_which_passes", func(w *world) {
			w.policy.Deviations = []matrix.Deviation{known()}
			twin := w.report.PlanContent.Rows[2]
			twin.ID = "hover[state=covered]"
			w.report.PlanContent.Rows = append(w.report.PlanContent.Rows, twin)
			w.report.Rows = append(w.report.Rows, verify.RowResult{Row: twin.ID, Outcome: evidence.Pass, Verdict: evidence.Verdict{Row: twin.ID, Outcome: evidence.Pass}})
			w.outcome("hover", evidence.Fail, hovers)
		}, NotMet, "deviation M8 hover"},
		{"deviation_of_a_core_row_that_fails_for_something_else", func(w *world) {
			d := known()
			d.Row = "type"
			w.policy.Deviations = []matrix.Deviation{d}
			w.outcome("type", evidence.Fail, hovers)
		}, NotMet, "deviation M8 type"},
		{"deviation_twice", func(w *world) {
			w.policy.Deviations = []matrix.Deviation{known(), known()}
			w.outcome("hover", evidence.Fail, hovers)
		}, NotMet, "deviation M8 hover"},
		{"deviation_on_its_last_day", func(w *world) {
			d := known()
			d.Expires = now.Truncate(24 * time.Hour)
			w.policy.Deviations = []matrix.Deviation{d}
			w.outcome("hover", evidence.Fail, hovers)
		}, Met, ""},
		{"deviation_without_issue", func(w *world) {
			d := known()
			d.Issue = ""
			w.policy.Deviations = []matrix.Deviation{d}
			w.outcome("hover", evidence.Fail, hovers)
		}, NotMet, "deviation M8 hover"},
		{"deviation_without_reason", func(w *world) {
			d := known()
			d.Reason = ""
			w.policy.Deviations = []matrix.Deviation{d}
			w.outcome("hover", evidence.Fail, hovers)
		}, NotMet, "deviation M8 hover"},
		{"deviation_without_expiry", func(w *world) {
			d := known()
			d.Expires = time.Time{}
			w.policy.Deviations = []matrix.Deviation{d}
			w.outcome("hover", evidence.Fail, hovers)
		}, NotMet, "deviation M8 hover"},
		{"deviation_does_not_excuse_a_flaky_row", func(w *world) {
			w.policy.Deviations = []matrix.Deviation{known()}
			w.outcome("hover", evidence.Flaky, hovers)
		}, NotMet, "deviation M8 hover"},
		{"deviation_cannot_excuse_what_was_not_judged", func(w *world) {
			w.policy.Deviations = []matrix.Deviation{known()}
			w.outcome("hover", evidence.InvalidGuard)
		}, Undetermined, "deviation M8 hover"},

		{"baseline_required_and_none", func(w *world) { w.policy.Baseline = "required" }, NotMet, "baseline"},
		{"baseline_is_the_same", func(w *world) {
			w.policy.Baseline, w.extra.Baseline = "required", &Baseline{sound().report, &Kills{Table: shown(), Checked: true}}
		}, Met, ""},
		{"baseline_does_not_verify", func(w *world) {
			b := sound().report
			b.Status = verify.Altered
			w.extra.Baseline = &Baseline{b, &Kills{Table: shown(), Checked: true}}
		}, NotMet, "baseline"},
		{"baseline_of_another_product", func(w *world) {
			b := sound().report
			b.PlanContent.Product = engine.ProductFirefox
			w.extra.Baseline = &Baseline{b, &Kills{Table: shown(), Checked: true}}
		}, NotMet, "baseline"},
		{"loss_is_waived", waives(nil), Met, ""},
		{"loss_is_waived_by_a_key_of_the_policy", waives(func(w *world, x *Waiver) { w.policy.Signer.Keys = []string{x.Signer} }), Met, ""},
		{"waiver_is_unsigned", waives(func(_ *world, x *Waiver) { *x = Waiver{Problem: "the waiver is not signed"} }), NotMet, "baseline"},
		{"waiver_is_not_checked", waives(func(_ *world, x *Waiver) { x.Checked = false }), NotMet, "baseline"},
		{"waiver_is_signed_by_another", waives(func(w *world, x *Waiver) {
			w.policy.Signer.Keys, x.Signer = []string{w.report.Signer}, strings.Repeat("6", 64)
		}), NotMet, "baseline"},
		{"waiver_has_expired", waives(func(_ *world, x *Waiver) { x.Document.Expires = now.AddDate(0, 0, -1).Format(time.DateOnly) }), NotMet, "baseline"},
		{"waiver_has_no_day", waives(func(_ *world, x *Waiver) { x.Document.Expires = "" }), NotMet, "baseline"},
		{"waiver_of_another_baseline", waives(func(_ *world, x *Waiver) { x.Document.Baseline = strings.Repeat("c", 64) }), NotMet, "baseline"},
		{"waiver_names_less", waives(func(_ *world, x *Waiver) { x.Document.Losses = x.Document.Losses[:1] }), NotMet, "baseline"},
		{"waiver_names_more", waives(func(_ *world, x *Waiver) {
			x.Document.Losses = append(x.Document.Losses, Loss{Kind: "row", Name: "type", How: "lost"})
		}), NotMet, "baseline"},
		{"waiver_names_another_loss_of_the_same_row", waives(func(_ *world, x *Waiver) { x.Document.Losses[0].How = "loosened" }), NotMet, "baseline"},
		{"waiver_is_unused", func(w *world) {
			waives(nil)(w)
			w.extra.Baseline = &Baseline{sound().report, &Kills{Table: shown(), Checked: true}}
			w.extra.Waiver.Document.Baseline = w.extra.Baseline.Report.Manifest
		}, NotMet, "baseline"},
		{"baseline_without_its_kill_table", func(w *world) { w.extra.Baseline = &Baseline{sound().report, nil} }, NotMet, "baseline"},
		{"baseline_without_its_kill_table_where_none_is_asked", func(w *world) {
			w.policy.Mutants, w.extra.Baseline = "optional", &Baseline{sound().report, nil}
		}, Met, ""},
		{"baseline_with_the_kill_table_of_another", func(w *world) {
			other := shown()
			other.Harness = "h1"
			w.extra.Baseline = &Baseline{sound().report, &Kills{Table: other, Checked: true}}
		}, NotMet, "baseline"},
		{"baseline_with_an_unsigned_kill_table", func(w *world) { w.extra.Baseline = &Baseline{sound().report, &Kills{Table: shown()}} }, NotMet, "baseline"},
		{"baseline_had_more", func(w *world) {
			b := sound().report
			b.PlanContent.Rows = append(b.PlanContent.Rows, matrix.Contract{ID: "drag", Requirement: "M8"})
			w.extra.Baseline = &Baseline{b, &Kills{Table: shown(), Checked: true}}
		}, NotMet, "baseline"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			w := sound()
			tc.change(w)
			if w.again {
				w.decide()
			}
			d := Evaluate(w.policy, w.report, w.ruling, w.extra)
			g.Expect(d.Status).To(gomega.Equal(tc.want), "%s: %v", d.Decided, d.Clauses)
			g.Expect(d.Decided).NotTo(gomega.BeEmpty())
			var unmet []string
			for _, c := range d.Clauses {
				if !c.Met {
					unmet = append(unmet, c.Name)
				}
			}
			if tc.clause == "" {
				g.Expect(unmet).To(gomega.BeEmpty())
			} else {
				g.Expect(unmet).To(gomega.ContainElement(tc.clause))
			}
			g.Expect(d.ExitCode()).To(gomega.Equal(map[Status]int{Met: 0, NotMet: 1, Undetermined: 3, Expired: 3}[tc.want]))
			if tc.want == Expired {
				g.Expect(d.Ruling.Decision).To(gomega.Equal(evidence.Expired))
			}
		})
	}
}

// A known failure that is let pass is printed as a limit, with whose it is and until when.
func TestEvaluate_deviation_becomes_a_printed_limit(t *testing.T) {
	g := gomega.NewWithT(t)
	w := sound()
	w.policy.Deviations = []matrix.Deviation{known()}
	w.outcome("hover", evidence.Fail, hovers)
	w.decide()
	d := Evaluate(w.policy, w.report, w.ruling, w.extra)
	g.Expect(d.Ruling.Decision).To(gomega.Equal(evidence.SupportedWithLimits))
	g.Expect(d.Ruling.Limits).To(gomega.Equal([]string{"M8 fails in hover until 2026-12-02: waits for a fix (ada, issue 7)"}))
	g.Expect(w.report.Rows[2].Verdict.Outcome).To(gomega.Equal(evidence.Fail), "the bundle's own verdict is not touched")
}

// A decision names exactly what it is about (V12).
func TestEvaluate_subject(t *testing.T) {
	g := gomega.NewWithT(t)
	w := sound()
	s := Evaluate(w.policy, w.report, w.ruling, w.extra).Subject
	g.Expect(s.ProductVersion).To(gomega.Equal("Chromium 156"))
	g.Expect(s.ProductSHA256).To(gomega.Equal("b0"))
	g.Expect(s.HarnessSHA256).To(gomega.Equal("h0"))
	g.Expect(s.EngineCommit).To(gomega.Equal("s0"))
	g.Expect(s.ValidUntil).To(gomega.Equal(w.extra.Began.Add(w.policy.MaxAge)))
	g.Expect(Decision{}.ExitCode()).To(gomega.Equal(3))
}

func TestBegan(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := t.TempDir()
	_, err := Began(dir)
	g.Expect(err).To(gomega.MatchError(fs.ErrNotExist))
	log := filepath.Join(dir, "log.jsonl")
	line := `{"seq":1,"prev":"","entry":{"format":"acceptance.log/v1","wall":"2026-11-30T19:25:43.5Z","event":"start"}}` + "\n"
	g.Expect(os.WriteFile(log, []byte(line), 0o600)).To(gomega.Succeed())
	at, err := Began(dir)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(at).To(gomega.Equal(time.Date(2026, 11, 30, 19, 25, 43, 5e8, time.UTC)))
	// Only the first entry can be the start, and it says when.
	for _, bad := range []string{"nonsense\n" + line, strings.Replace(line, "start", "note", 1), strings.Replace(line, "2026-11", "2026-13", 1)} {
		g.Expect(os.WriteFile(log, []byte(bad), 0o600)).To(gomega.Succeed())
		at, err := Began(dir)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(at.IsZero()).To(gomega.BeTrue())
	}
}

// Guards and mutants are part of the comparison (J13).
func TestCompareGuards_and_mutants(t *testing.T) {
	g := gomega.NewWithT(t)
	old := []verify.Armed{{Name: "control focus_left", Rows: 3, Every: true}, {Name: "control keymap", Rows: 1}, {Name: "channel core", Rows: 3, Every: true}}
	g.Expect(CompareGuards(old, old)).To(gomega.BeEmpty())
	g.Expect(CompareGuards(old[:2], old)).To(gomega.BeEmpty(), "what is added is no loss")
	var got []string
	for _, l := range CompareGuards(old, []verify.Armed{{Name: "control focus_left", Rows: 2}}) {
		got = append(got, l.String())
	}
	g.Expect(got).To(gomega.Equal([]string{"guard control focus_left: loosened: it was armed in every row, and is in 2", "guard control keymap: lost: it was armed", "guard channel core: lost: it was armed"}))

	less := shown()
	was := less.Mutants[0]
	less.Mutants = less.Mutants[1:]
	g.Expect(CompareMutants(shown(), shown())).To(gomega.BeEmpty())
	g.Expect(CompareMutants(less, shown())).To(gomega.BeEmpty())
	full := less
	full.Mutants = append([]kills.Mutant{was}, less.Mutants...)
	g.Expect(CompareMutants(full, less)).To(gomega.Equal([]Loss{{Kind: "mutant", Name: was.Name, How: "lost: it was run"}}))
	softer := was
	softer.Declared = nil
	g.Expect(CompareMutants(kills.Table{Mutants: []kills.Mutant{was}}, kills.Table{Mutants: []kills.Mutant{softer}})).To(gomega.Equal(
		[]Loss{{Kind: "mutant", Name: was.Name, How: "loosened: it was killed for " + was.Declared[0].String()}}))
	g.Expect(CompareMutants(full, kills.Table{})).To(gomega.HaveLen(len(full.Mutants)))
}

// J13: each thing that a baseline had and a plan lacks or loosens is named; what is added or tightened is not.
func TestCompare(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*matrix.Plan)
		want   string
	}{
		{"same", func(*matrix.Plan) {}, ""},
		{"row_added", func(p *matrix.Plan) { p.Rows = append(p.Rows, matrix.Contract{ID: "new", Requirement: "S1"}) }, ""},
		{"budget_tightened", func(p *matrix.Plan) { p.Budgets["bind"] = time.Millisecond; p.Rows[0].Budget = time.Second }, ""},
		{"row_lost", func(p *matrix.Plan) { p.Rows = p.Rows[:2] }, "row hover: lost"},
		{"requirement_lost", func(p *matrix.Plan) { p.Rows = p.Rows[:2] }, "requirement M8: lost: it had rows"},
		{"capability_lost", func(p *matrix.Plan) { p.Declared = nil }, "capability click///: lost: it was claimed"},
		{"feature_lost", func(p *matrix.Plan) { p.Features = nil }, "feature trusted-click: lost: it was claimed"},
		{"budget_loosened", func(p *matrix.Plan) { p.Budgets["bind"] = 2 * time.Second }, "budget bind: loosened from 1s to 2s"},
		{"budget_lost", func(p *matrix.Plan) { delete(p.Budgets, "bind") }, "budget bind: lost: it was 1s"},
		{"row_budget_loosened", func(p *matrix.Plan) { p.Rows[0].Budget = time.Minute }, "budget type: loosened from 5s to 1m0s"},
		{"expectation_loosened", func(p *matrix.Plan) { p.Rows[0].Expect.Elsewhere = "" }, "expectation type: loosened: no other control and no other page sees anything"},
		{"delivery_becomes_refusal", func(p *matrix.Plan) { p.Rows[0].Twin = true }, "expectation type: loosened: it had to be delivered and must now be refused"},
		{"proves_another_requirement", func(p *matrix.Plan) { p.Rows[0].Requirement = "M3" }, "expectation type: lost: it proved M5  and proves M3 "},
		{"core_lost", func(p *matrix.Plan) { p.CoreHold = nil }, "core M3: lost: it was core"},
		{"core_no_longer_delivered", func(p *matrix.Plan) { p.CoreHold = append(p.CoreHold, p.CoreDeliver...); p.CoreDeliver = nil }, "core M5: loosened: it had to be delivered"},
		{"core_rows_lost", func(p *matrix.Plan) { p.CoreMissing = []matrix.RequirementID{"M5"} }, "core M5: lost: it had every row that core asks for"},
		{"exception_added", func(p *matrix.Plan) { p.NotApplicable = map[matrix.RequirementID]string{"B8": "no tabs"} }, "exception B8: loosened: said not to apply, no tabs"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			plan := sound().report.PlanContent
			tc.change(&plan)
			var got []string
			for _, l := range Compare(sound().report.PlanContent, plan) {
				got = append(got, l.String())
			}
			if tc.want == "" {
				g.Expect(got).To(gomega.BeEmpty())
			} else {
				g.Expect(got).To(gomega.ContainElement(tc.want))
			}
		})
	}
}
