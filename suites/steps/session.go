package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// startSession opens a session of the engine and names it.
func startSession(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	r, err := a.Must(ctx, engine.OpSessionStart, map[string]any{}, attempt.Aim{})
	if err != nil {
		return err
	}
	if r.Session != nil {
		a.NameSession(attempt.Text(s, "as"), r.Session.ID)
	}
	return nil
}

// endSession ends a session; what it leaves behind is observed.
func endSession(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	id, err := a.Session(s)
	if err != nil {
		return err
	}
	_, err = a.EndSession(ctx, id)
	return err
}
