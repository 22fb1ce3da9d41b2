package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// impersonate asks the engine to bind a window of a foreign client that wears everything of a window of the browser.
func impersonate(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	w, err := a.Window(s)
	if err != nil {
		return err
	}
	return a.Impersonate(ctx, w)
}
