package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/bundle"
	"github.com/engine-acceptance/acceptance/evidence/junit"
	"github.com/engine-acceptance/acceptance/evidence/verify"
	"github.com/engine-acceptance/acceptance/suites/campaign"
)

// exports writes what people and CI systems read instead of the bundle's own files.
func exports(ctx context.Context, w *bundle.Writer, r campaign.Result) error {
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
	return w.Export(bundle.SummaryFile, summary)
}

// reportCommand says where the report of a bundle is, and what it decides.
func reportCommand(ctx context.Context, args []string, std streams) int {
	f := newFlags("report", std)
	if !f.parse(args, 1, 1) {
		return exitUsage
	}
	page := filepath.Join(f.Arg(0), "report", "index.html")
	if _, err := os.Stat(page); err != nil {
		std.say("report: %q has no report: the run was cut, or this is no bundle", f.Arg(0))
		return exitUsage
	}
	report, code := verified(ctx, f.Arg(0), "", std)
	if code != exitOK {
		return code
	}
	printRuling(std.out, report.PlanContent, rulingOf(report))
	fmt.Fprintf(std.out, "report    %s\n", page)
	return report.Status.ExitCode()
}

// rulingOf decides again over a verified bundle.
func rulingOf(report verify.Report) evidence.Ruling {
	var verdicts []evidence.Verdict
	for _, row := range report.Rows {
		verdicts = append(verdicts, row.Verdict)
	}
	standing := campaign.StandingOf(report.ProvenanceContent)
	standing.Verified = report.Status == verify.OK
	return evidence.Decide(report.PlanContent, verdicts, standing)
}
