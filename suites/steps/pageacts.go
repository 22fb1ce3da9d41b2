package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// pageActs has a page do something to the desk by itself (contract D10).
func pageActs(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	tab, err := a.Tab(attempt.Text(s, "tab"))
	if err != nil {
		return err
	}
	return a.PageActs(ctx, tab, attempt.Text(s, "act"))
}
