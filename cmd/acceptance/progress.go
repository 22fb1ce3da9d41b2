package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/suites/worker"
)

// progress shows how far a run is: a line that is rewritten on a terminal, one plain line a row elsewhere.
type progress struct {
	out     io.Writer
	live    bool
	total   int
	done    int
	failed  int
	open    int
	started time.Time
	quiet   bool
}

func newProgress(std streams, total int, quiet bool) *progress {
	f, isFile := std.err.(*os.File)
	return &progress{out: std.err, live: isFile && isatty.IsTerminal(f.Fd()), total: total, started: time.Now(), quiet: quiet}
}

// event shows one event of a worker.
func (p *progress) event(e worker.Event) {
	switch e.Kind {
	case "stage":
		fmt.Fprintf(p.out, "acceptance: desk %s, %dx%d, %s, engine uid %d (%s)\n", e.Desk.Variant, e.Desk.WidthPx, e.Desk.HeightPx, e.Desk.ManagerName, e.Desk.UID, e.Desk.Posture)
	case "begin":
		if p.live {
			p.line(fmt.Sprintf("[%d/%d] %s", p.done+1, p.total, e.Row))
		}
	case "row":
		p.done++
		switch e.Outcome {
		case evidence.Pass:
		case evidence.Fail, evidence.Flaky:
			p.failed++
		default:
			p.open++
		}
		text := fmt.Sprintf("%3d/%d  %-16s %6.1f s  %s", p.done, p.total, e.Outcome, float64(e.TookMS)/1000, e.Row)
		if p.live {
			p.line("")
		}
		fmt.Fprintln(p.out, text)
		// What was seen first is most often why; what was not seen at all has no place, and comes last.
		findings := slices.Clone(e.Finding)
		place := func(f evidence.Finding) uint { return uint(f.Observation) - 1 }
		slices.SortStableFunc(findings, func(a, b evidence.Finding) int { return cmp.Compare(place(a), place(b)) })
		for i, f := range findings {
			if i == 3 {
				fmt.Fprintf(p.out, "%s and %d more\n", "           ", len(findings)-3)
				break
			}
			fmt.Fprintf(p.out, "           %s %s, step %s: %s\n", f.Requirement, f.Reason, f.Step, f.Text)
		}
	}
}

// line rewrites the present line of a terminal.
func (p *progress) line(text string) { fmt.Fprintf(p.out, "\r\x1b[K%s", text) }

// end closes the display.
func (p *progress) end() {
	if p.live {
		p.line("")
	}
	fmt.Fprintf(p.out, "acceptance: %d of %d rows in %.0f s, %d failed, %d could not be judged\n", p.done, p.total, time.Since(p.started).Seconds(), p.failed, p.open)
}
