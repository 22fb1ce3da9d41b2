package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/evidence/gate"
	"github.com/engine-acceptance/acceptance/evidence/kills"
	"github.com/engine-acceptance/acceptance/evidence/ledger"
	"github.com/engine-acceptance/acceptance/evidence/verify"
)

// gateCommand verifies a bundle and asks a policy of it. It exits 0 when the policy is met, 1 when it is not, 2 on usage, 3 when nothing was
// decided about the build: undetermined, or expired.
func gateCommand(ctx context.Context, args []string, std streams) int {
	f := newFlags("gate", std)
	policyName := f.text("policy", "release", "policy file")
	signer := f.text("signer", "", "public key that must have signed, PEM")
	baseline := f.text("baseline", "", "folder of an earlier bundle that nothing may be lost against")
	runs := f.text("ledger", "", "ledger of complete runs")
	killFile := f.text("kills", "", "kill table of acceptance mutants")
	oldKills := f.text("baseline-kills", "", "kill table of the baseline")
	waiverFile := f.text("waiver", "", "signed waiver of losses against the baseline")
	waiverSigner := f.text("waiver-signer", "", "public key that must have signed the waiver, PEM; without it the signer's")
	var build gate.Build
	for _, b := range []struct {
		name string
		into *string
		help string
	}{
		{"product-version", &build.ProductVersion, "version of the product to release"}, {"product-sha256", &build.ProductSHA256, "digest of its executable"},
		{"engine-sha256", &build.EngineSHA256, "digest of the engine to release"}, {"harness-sha256", &build.HarnessSHA256, "digest of the harness"},
		{"harness-commit", &build.HarnessCommit, "commit of the harness"}, {"plan", &build.PlanDigest, "digest of the plan"},
	} {
		f.Var(&onceInto{into: b.into}, b.name, b.help)
	}
	asJSON := f.is("json", "print the decision as JSON")
	if !f.parse(args, 1, 1) {
		return exitUsage
	}
	m, err := load()
	if err != nil {
		std.say("%v", err)
		return exitUsage
	}
	policy, err := m.Policy(*policyName)
	if err != nil {
		std.say("gate: %v", err)
		return exitUsage
	}
	x := gate.Extra{Now: time.Now(), Features: m.Profiles().Features, Cowards: m.Profiles().Cowards, Build: build}
	if *runs != "" {
		l, err := ledger.Read(*runs)
		if err != nil {
			std.say("gate: %v", err)
			return exitUsage
		}
		x.Ledger = &l
	}
	for _, need := range []struct{ flag, given, with, there string }{
		{"baseline-kills", *oldKills, "baseline", *baseline}, {"waiver", *waiverFile, "baseline", *baseline}, {"waiver-signer", *waiverSigner, "waiver", *waiverFile},
	} {
		if need.given != "" && need.there == "" {
			std.say("gate: --%s says nothing without --%s", need.flag, need.with)
			return exitUsage
		}
	}
	trusted, err := keyOr(*signer, nil)
	if err != nil {
		std.say("gate: %v", err)
		return exitUsage
	}
	if *killFile != "" {
		if x.Kills, err = readKills(*killFile, trusted); err != nil {
			std.say("gate: %v", err)
			return exitUsage
		}
	}
	if *baseline != "" {
		b, code := verified(ctx, *baseline, "", std)
		if code != exitOK {
			return code
		}
		x.Baseline = &gate.Baseline{Report: b}
		if *oldKills != "" {
			if x.Baseline.Kills, err = readKills(*oldKills, trusted); err != nil {
				std.say("gate: %v", err)
				return exitUsage
			}
		}
	}
	if *waiverFile != "" {
		pub, err := keyOr(*waiverSigner, trusted)
		if err == nil {
			x.Waiver, err = readWaiver(*waiverFile, pub)
		}
		if err != nil {
			std.say("gate: %v", err)
			return exitUsage
		}
	}
	report, code := verified(ctx, f.Arg(0), *signer, std)
	if code != exitOK {
		return code
	}
	if x.Began, err = gate.Began(f.Arg(0)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		std.say("gate: %v", err)
	}
	x.Standing = standingOf(report)
	d := gate.Evaluate(*policy, report, rulingOf(report), x)
	if *asJSON {
		if err := writeJSON(std.out, d); err != nil {
			std.say("write the decision: %v", err)
			return exitCannotJudge
		}
		return d.ExitCode()
	}
	printGate(std.out, report, d)
	if x.Baseline != nil {
		fmt.Fprintf(std.out, "baseline  manifest %s\n", x.Baseline.Report.Manifest)
	}
	return d.ExitCode()
}

// readKills reads a kill table. A file that is not there is an error; one that is no whole table is for the policy to refuse.
func readKills(path string, pub ed25519.PublicKey) (*gate.Kills, error) {
	raw, err := readBounded(path, kills.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("read the kill table: %w", err)
	}
	k := &gate.Kills{}
	if k.Table, k.Signer, k.Checked, err = kills.Read(raw, pub); err != nil {
		k.Problem = err.Error()
	}
	return k, nil
}

// keyOr reads a public key; without a name it is the other one.
func keyOr(path string, otherwise ed25519.PublicKey) (ed25519.PublicKey, error) {
	if path == "" {
		return otherwise, nil
	}
	return publicKey(path)
}

// readBounded reads a regular file of at most one byte more than limit, so that the reader of its content says that it is too large.
func readBounded(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}

// onceInto is a text flag that writes to a field and may be given one time.
type onceInto struct {
	once
	into *string
}

// Set implements flag.Value.
func (o *onceInto) Set(v string) error {
	if err := o.once.Set(v); err != nil {
		return err
	}
	*o.into = v
	return nil
}

// printGate prints status, what decided, and every clause.
func printGate(w io.Writer, r verify.Report, d gate.Decision) {
	fmt.Fprintf(w, "gate      %s: %s\n          %s\n", d.Policy, strings.ToUpper(strings.ReplaceAll(string(d.Status), "_", " ")), d.Decided)
	for _, p := range r.Problems[:min(len(r.Problems), 3)] {
		fmt.Fprintf(w, "          %s\n", p)
	}
	if r.PlanContent.Digest == "" {
		// Without a plan there is no engine, no product and no row to speak of.
		fmt.Fprintf(w, "\nnothing is known of what was run: the bundle has no plan that can be read\n")
		return
	}
	printRuling(w, r.PlanContent, d.Ruling, standingOf(r).Limits)
	s := d.Subject
	fmt.Fprintf(w, "\nproduct   %s %s\nengine    %s, commit %s (%s)\nharness   %s, commit %s\nplan      %s\n", s.ProductVersion, brief(s.ProductSHA256), brief(s.EngineSHA256),
		brief(s.EngineCommit), s.CommitBasis, brief(s.HarnessSHA256), brief(s.HarnessCommit), brief(s.Plan))
	if !s.ValidUntil.IsZero() {
		fmt.Fprintf(w, "valid     until %s, for this build only\n", s.ValidUntil.Format(time.DateOnly))
	}
	fmt.Fprintln(w)
	for _, c := range d.Clauses {
		mark := "met    "
		if !c.Met {
			mark = "NOT MET"
		}
		fmt.Fprintf(w, "%s   %-20s want %s; got %s\n", mark, c.Name, c.Want, c.Got)
	}
	const most = 20
	for i, l := range d.Lost {
		if i == most {
			fmt.Fprintf(w, "lost      and %d more\n", len(d.Lost)-most)
			break
		}
		fmt.Fprintf(w, "lost      %s\n", l)
	}
	if d.Instrumented != "" {
		fmt.Fprintf(w, "mutants   %s\n", d.Instrumented)
	}
	for _, l := range d.Waived {
		fmt.Fprintf(w, "waived    %s (%s, until %s: %s)\n", l.Loss, l.Owner, l.Expires, l.Reason)
	}
	for _, n := range d.NotRederived {
		fmt.Fprintf(w, "trust     not re-derived: %s\n", n)
	}
}

// brief is the beginning of a digest or commit.
func brief(s string) string {
	if s == "" {
		return "unknown"
	}
	return s[:min(12, len(s))]
}
