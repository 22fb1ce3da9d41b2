package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// pageDoes has a page change by itself, at this moment and not at one of its own.
func pageDoes(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	tab, err := a.Tab(s.Text("tab"))
	if err != nil {
		return err
	}
	return a.PageDoes(ctx, tab, s.Text("what"))
}

// awaitDialog waits until a dialog holds a page up.
func awaitDialog(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	tab, err := a.Tab(s.Text("tab"))
	if err != nil {
		return err
	}
	return a.AwaitDialog(ctx, tab)
}
