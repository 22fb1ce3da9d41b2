// Package suites turns planned rows into Ginkgo specs: one spec a row, one container a claim. A spec carries its row out, has the judge
// look at the observations, and asserts the judge's verdict; it never makes one.
//
// Trees are built from a list, at run time, outside of go test: see [Run]. The runner's settings cannot flatter: an empty tree fails, a
// pending spec fails, nothing is retried.
package suites

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/matrix"
)

// Perform carries one row out on the desk. What it returns closes the row's evidence, needs no desk, and returns the judge's verdict.
type Perform func(ctx context.Context, c matrix.Contract) Finish

// Finish closes a row that was carried out and returns the judge's verdict on it.
type Finish func() evidence.Verdict

// rowTimeout bounds one row on the desk, whatever it says itself, and again the closing of its evidence: neither may hang the run.
const rowTimeout = 3 * time.Minute

// claims names the containers of the tree, by the letter of a requirement.
var claims = map[byte]string{'S': "setup and launch follow the advertised profile contract", 'B': "windows and contexts are bound exactly",
	'G': "generations are invalidated and stale capabilities refused", 'M': "page state changes, seen from outside",
	'D': "the person's desk is left alone", 'R': "refusals are structured and change nothing", 'P': "what is kept is redacted",
	'V': "evidence at the exact commit", 'J': "the judge itself"}

// runner lets Ginkgo run outside of go test.
type runner struct{ failed bool }

// Fail implements ginkgo.GinkgoTestingT.
func (r *runner) Fail() { r.failed = true }

// Run builds one spec a row and runs them once: first rows with a browser of their own, in their order, then those that share one, so that it
// is launched once, and of these the ones that begin from the same desk together, so that it need not be arranged anew. Ginkgo allows one run
// a process. It reports whether every spec passed.
//
// While a row's film is decoded and its evidence scanned, the next row has the desk already: a spec waits for the verdict on its own row.
func Run(ctx context.Context, rows []matrix.Contract, perform Perform) bool {
	gomega.RegisterFailHandler(ginkgo.Fail)
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b matrix.Contract) int { return cmp.Or(shares(a)-shares(b), likeness(a, b)) })
	verdicts := ahead(ctx, rows, perform)
	_ = ginkgo.Describe("acceptance", ginkgo.Ordered, ginkgo.ContinueOnFailure, func() {
		for i, c := range rows {
			ginkgo.It(name(c), ginkgo.Label(string(c.Requirement)), func(spec ginkgo.SpecContext) {
				select {
				case v := <-verdicts[i]:
					gomega.Expect(v).To(HavePassed())
				case <-spec.Done():
					ginkgo.Fail(fmt.Sprintf("%s: no verdict in %v", c.ID, 2*rowTimeout))
				}
			}, ginkgo.SpecTimeout(2*rowTimeout))
		}
	})
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.FailOnEmpty, suite.FailOnPending, suite.FlakeAttempts, suite.RandomizeAllSpecs = true, true, 0, false
	reporter.NoColor, reporter.Succinct = true, true
	r := &runner{}
	return ginkgo.RunSpecs(r, "release acceptance", suite, reporter) && !r.failed
}

// ahead carries the rows out one after the other, and has at most one row's evidence closed beside the row that has the desk. Each channel
// gets one verdict; one that is closed without says, as the zero verdict, that the row was not run.
func ahead(ctx context.Context, rows []matrix.Contract, perform Perform) []chan evidence.Verdict {
	verdicts := make([]chan evidence.Verdict, len(rows))
	for i := range verdicts {
		verdicts[i] = make(chan evidence.Verdict, 1)
	}
	go func() {
		var closing sync.WaitGroup
		defer closing.Wait()
		for i, c := range rows {
			if ctx.Err() != nil {
				close(verdicts[i])
				continue
			}
			row, cancel := context.WithTimeout(ctx, rowTimeout)
			finish := perform(row, c)
			cancel()
			closing.Wait()
			closing.Go(func() { verdicts[i] <- finish() })
		}
	}()
	return verdicts
}

func shares(c matrix.Contract) int {
	if c.Launch == matrix.LaunchShared {
		return 1
	}
	return 0
}

// likeness orders rows that share a browser by what the row before leaves as the next one wants it: where the person's window lies, and how
// many tabs the browser has.
func likeness(a, b matrix.Contract) int {
	if shares(a) == 0 || shares(b) == 0 {
		return 0
	}
	return cmp.Or(cmp.Compare(a.Desk.Person, b.Desk.Person), tabs(a)-tabs(b))
}

func tabs(c matrix.Contract) int {
	if len(c.Desk.Windows) == 0 {
		return 0
	}
	return len(c.Desk.Windows[0].Tabs)
}

// name reads "claim: title [row]".
func name(c matrix.Contract) string {
	claim := claims[c.Requirement[0]]
	return fmt.Sprintf("%s: %s [%s]", claim, c.Title, c.ID)
}

// HavePassed succeeds when a verdict is pass. An unmet expectation fails the spec; a value that is no verdict is an error of ours.
//
//	Expect(evidence.Judge(contract, observations)).To(HavePassed())
func HavePassed() passed { return passed{} }

type passed struct{}

// Match implements gomega's matcher.
func (passed) Match(actual any) (bool, error) {
	v, ok := actual.(evidence.Verdict)
	if !ok {
		return false, fmt.Errorf("HavePassed wants an evidence.Verdict, got %T", actual)
	}
	return v.Outcome == evidence.Pass, nil
}

// FailureMessage lists the findings of a verdict that is not pass.
func (passed) FailureMessage(actual any) string {
	v, _ := actual.(evidence.Verdict)
	lines := []string{fmt.Sprintf("%s: %s", v.Row, v.Outcome)}
	for _, f := range v.Findings {
		lines = append(lines, fmt.Sprintf("  %s %s at observation %d, step %s: %s", f.Requirement, f.Reason, f.Observation, f.Step, f.Text))
	}
	return strings.Join(lines, "\n")
}

// NegatedFailureMessage says that a verdict passed where it had to fail.
func (passed) NegatedFailureMessage(actual any) string {
	v, _ := actual.(evidence.Verdict)
	return fmt.Sprintf("%s passed, and had to fail", v.Row)
}
