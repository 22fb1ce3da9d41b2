package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// reportForged posts a false page report from a process that is not the browser (contract M18).
func reportForged(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	tab, err := a.Tab(attempt.Text(s, "page"))
	if err != nil {
		return err
	}
	return a.ForgeReport(ctx, tab, attempt.Text(s, "control"), attempt.Text(s, "value"))
}
