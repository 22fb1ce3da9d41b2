package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/evidence/report"
)

// The report prints how long a decision may be quoted: as long as the release policy says.
func TestReportValidity_is_that_of_the_release_policy(t *testing.T) {
	g := gomega.NewWithT(t)
	m, err := load()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	policy, err := m.Policy("release")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(policy.MaxAge).To(gomega.Equal(report.Validity))
}

// The exit codes of the commands that read a bundle: 2 for what was asked wrongly, 3 for a bundle that says nothing.
func TestBundleCommands_exit_codes(t *testing.T) {
	empty := t.TempDir()
	cut := t.TempDir()
	if err := os.WriteFile(filepath.Join(cut, "plan.json"), []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"gate_without_bundle", []string{"gate"}, exitUsage, "too few arguments"},
		{"gate_with_two", []string{"gate", empty, empty}, exitUsage, "stray argument"},
		{"gate_unknown_policy", []string{"gate", "--policy", "relase", empty}, exitUsage, "release"},
		{"gate_unknown_flag", []string{"gate", "--polcy", "x", empty}, exitUsage, "polcy"},
		{"gate_flag_twice", []string{"gate", "--plan", "a", "--plan", "b", empty}, exitUsage, "given twice"},
		{"gate_no_folder", []string{"gate", filepath.Join(empty, "none")}, exitUsage, "no folder"},
		{"gate_no_baseline_folder", []string{"gate", "--baseline", filepath.Join(empty, "none"), empty}, exitUsage, "no folder"},
		{"gate_no_ledger", []string{"gate", "--ledger", filepath.Join(empty, "none"), empty}, exitUsage, "ledger"},
		{"gate_no_key", []string{"gate", "--signer", filepath.Join(empty, "none"), empty}, exitUsage, "signer's key"},
		{"gate_empty_bundle", []string{"gate", empty}, exitUsage, "holds no file of a bundle"},
		{"gate_no_kill_table", []string{"gate", "--kills", filepath.Join(empty, "none"), cut}, exitUsage, "kill table"},
		{"gate_cut_bundle", []string{"gate", "--policy", "development", cut}, exitCannotJudge, "UNDETERMINED"},
		{"report_without_report", []string{"report", empty}, exitUsage, "has no report"},
		{"why_without_row", []string{"why", empty}, exitUsage, "too few arguments"},
		{"why_without_plan", []string{"why", empty, "row"}, exitUsage, "plan.json"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			var out, errs bytes.Buffer
			code := dispatch(context.Background(), tc.args, streams{nil, &out, &errs})
			g.Expect(out.String() + errs.String()).To(gomega.ContainSubstring(tc.says))
			g.Expect(code).To(gomega.Equal(tc.code))
		})
	}
}
