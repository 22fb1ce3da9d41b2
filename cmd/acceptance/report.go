package main

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/bundle"
	"github.com/engine-acceptance/acceptance/evidence/junit"
	"github.com/engine-acceptance/acceptance/evidence/report"
	"github.com/engine-acceptance/acceptance/evidence/statement"
	"github.com/engine-acceptance/acceptance/evidence/verify"
	"github.com/engine-acceptance/acceptance/suites/campaign"
)

// exports returns what writes the pages that people and CI systems read instead of the bundle's own files. key is what will sign the bundle, nil
// when nobody does.
func exports(key ed25519.PrivateKey) func(context.Context, *bundle.Writer, campaign.Result) error {
	return func(ctx context.Context, w *bundle.Writer, r campaign.Result) error {
		xml, err := junit.XML(r.Plan, r.Verdicts)
		if err != nil {
			return err
		}
		if err := w.Export(bundle.JUnitFile, xml); err != nil {
			return err
		}
		summary, err := junit.Summary(r.Plan, r.Verdicts, r.Ruling.Decision.String())
		if err != nil {
			return err
		}
		if err := w.Export(bundle.SummaryFile, summary); err != nil {
			return err
		}
		signer := bundle.Unsigned
		if len(key) == ed25519.PrivateKeySize {
			if pub, ok := key.Public().(ed25519.PublicKey); ok {
				signer = statement.KeyID(pub)
			}
		}
		return report.Write(ctx, w, report.Input{Plan: r.Plan, Provenance: r.Provenance, Verdicts: r.Verdicts, Ruling: r.Ruling, Signer: signer})
	}
}

// reportCommand says where the report of a bundle is, and what it decides.
func reportCommand(ctx context.Context, args []string, std streams) int {
	f := newFlags("report", std)
	if !f.parse(args, 1, 1) {
		return exitUsage
	}
	page := filepath.Join(f.Arg(0), filepath.FromSlash(report.IndexFile))
	if _, err := os.Stat(page); err != nil {
		std.say("report: %q has no report: the run was cut, or this is no bundle", f.Arg(0))
		return exitUsage
	}
	checked, code := verified(ctx, f.Arg(0), "", std)
	if code != exitOK {
		return code
	}
	fmt.Fprintf(std.out, "report    %s\n", page)
	printRuling(std.out, checked.PlanContent, rulingOf(checked), standingOf(checked).Limits)
	fmt.Fprintf(std.out, "bundle    verifies as %s\n", checked.Status)
	if checked.Status != verify.OK {
		return checked.Status.ExitCode()
	}
	return sameReport(ctx, f.Arg(0), checked, std)
}

// sameReport makes the report again. A page that differs although this very program wrote the bundle was altered by somebody who could make a
// manifest anew; another version of the program may write other pages, and that is said.
func sameReport(ctx context.Context, dir string, checked verify.Report, std streams) int {
	in := report.Input{Plan: checked.PlanContent, Provenance: checked.ProvenanceContent, Ruling: rulingOf(checked), Signer: checked.Signer}
	for _, row := range checked.Rows {
		in.Verdicts = append(in.Verdicts, row.Verdict)
	}
	differs, err := report.Differences(ctx, dir, in)
	switch {
	case err != nil:
		std.say("report: %v", err)
		return exitCannotJudge
	case len(differs) == 0:
		fmt.Fprintln(std.out, "pages     are what follows from the bundle, made again")
		return exitOK
	case checked.ProvenanceContent.Harness.SHA256 == ownDigest():
		fmt.Fprintf(std.out, "pages     ALTERED: %s, the first is %s\n", plural(len(differs), "file"), differs[0])
		return exitRejected
	}
	fmt.Fprintf(std.out, "pages     %s differ from what this program makes, the first is %s: another version wrote them, or they were altered\n", plural(len(differs), "file"), differs[0])
	return exitOK
}

// ownDigest is the sha256 of this program, "" when it cannot be read.
func ownDigest() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(self)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// rulingOf decides again over a verified bundle.
func rulingOf(r verify.Report) evidence.Ruling {
	var verdicts []evidence.Verdict
	for _, row := range r.Rows {
		verdicts = append(verdicts, row.Verdict)
	}
	return evidence.Decide(r.PlanContent, verdicts, standingOf(r))
}

// standingOf is what a decision over a verified bundle rests on.
func standingOf(r verify.Report) evidence.Standing {
	standing := campaign.StandingOf(r.ProvenanceContent)
	standing.Verified = r.Status == verify.OK
	return standing
}
