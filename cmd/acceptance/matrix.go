package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/matrix/refusal"
)

// matrixCommand checks the data files: those built in, or those of a folder.
func matrixCommand(_ context.Context, args []string, std streams) int {
	f := newFlags("matrix", std)
	if !f.parse(args, 1, 2) {
		return exitUsage
	}
	if f.Arg(0) != "lint" {
		std.say("matrix: unknown word %q%s", f.Arg(0), nearest(f.Arg(0), []string{"lint"}))
		return exitUsage
	}
	var files fs.FS = matrix.Embedded()
	if f.NArg() == 2 {
		if info, err := os.Stat(f.Arg(1)); err != nil || !info.IsDir() {
			std.say("matrix lint: %q is no folder", f.Arg(1))
			return exitUsage
		}
		files = os.DirFS(f.Arg(1))
	}
	table, err := refusal.Load()
	if err != nil {
		std.say("%v", err)
		return exitUsage
	}
	report, err := matrix.Lint(files, table, nil)
	if err != nil {
		fmt.Fprintln(std.err, err)
		return exitUsage
	}
	fmt.Fprintf(std.out, "%s, %s, %s: no problems; each of %s is missed when it is taken out\n", plural(report.Files, "file"), plural(report.Rows, "row")+" of all engines and environments",
		plural(report.Requirements, "requirement"), plural(report.Expectations, "expectation"))
	fmt.Fprintf(std.out, "without rows: %v\ncore without rows: %v\n", report.Uncovered, report.CoreUncovered)
	return exitOK
}
