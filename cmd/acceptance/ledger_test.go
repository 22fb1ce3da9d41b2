package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/evidence/bundle"
	"github.com/engine-acceptance/acceptance/evidence/ledger"
	"github.com/engine-acceptance/acceptance/evidence/provenance"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/campaign"
)

// A run that ended is listed whatever it ended with, one that was cut is not, and nothing is added to a ledger that cannot be believed.
func TestRunLedger(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "runs.jsonl")
	plan := matrix.Plan{Digest: strings.Repeat("a", 64), Engine: "chromium", Product: "chromium", Environment: "x11"}
	ended := campaign.Result{Finished: true, Provenance: provenance.Provenance{Repository: provenance.Repository{Commit: "c1"}, Engine: provenance.Engine{SubjectCommit: "s1"}}}
	run := func(name string, r campaign.Result, code int) error {
		cfg := campaign.Config{Plan: plan, Dir: filepath.Join(dir, name)}
		g.Expect(os.MkdirAll(cfg.Dir, 0o700)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(cfg.Dir, bundle.ManifestFile), []byte(name), 0o600)).To(Succeed())
		return record(t.Context(), path, cfg, r, code)
	}
	g.Expect(recordable(path, plan)).To(Succeed(), "a ledger that is not there is begun")
	g.Expect(run("cut", campaign.Result{}, exitCannotJudge)).To(Succeed())
	g.Expect(path).NotTo(BeAnExistingFile())
	g.Expect(run("green", ended, exitOK)).To(Succeed())
	g.Expect(run("red", ended, exitRejected)).To(Succeed())
	g.Expect(run("red", ended, exitOK)).To(MatchError(ledger.ErrRecorded), "a run is listed once")
	l, err := ledger.Read(path)
	g.Expect(err).NotTo(HaveOccurred())
	runs := l.Runs("c1", "s1")
	g.Expect(runs).To(HaveLen(2))
	g.Expect(runs[1].Counter).To(Equal(2))
	g.Expect(runs[1].ExitCode).To(Equal(exitRejected))

	subset := plan
	subset.Subset = true
	g.Expect(recordable(path, subset)).To(MatchError(ContainSubstring("whole plan")))
	text, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(path, []byte(strings.Replace(string(text), `"exit_code":0`, `"exit_code":1`, 1)), 0o600)).To(Succeed())
	g.Expect(recordable(path, plan)).To(MatchError(ContainSubstring("cannot be believed")))
}
