package steps

import (
	"context"
	"time"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// wait lets the desk be, with nobody but the person at work.
func wait(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	d, err := time.ParseDuration(attempt.Text(s, "quiet"))
	if err != nil {
		return err
	}
	return a.Wait(ctx, d)
}
