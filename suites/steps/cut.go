package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// cut cuts the connection between engine and browser from outside, at once or in the middle of what a page does.
func cut(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	if s.Text("when") == "page_asks" {
		if err := a.AwaitHold(ctx); err != nil {
			return err
		}
	}
	return a.Cut(ctx)
}
