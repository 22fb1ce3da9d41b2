package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// prepare has the engine launch a browser of its own. What it does to system and desk is observed, and the person takes the desk back.
func prepare(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	id, err := a.Session(s)
	if err != nil {
		return err
	}
	_, err = a.LaunchWithin(ctx, id, engine.Posture(attempt.Text(s, "profile")), s.Duration("timeout"))
	return err
}
