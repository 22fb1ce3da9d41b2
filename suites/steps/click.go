package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// click activates a control of a snapshot.
func click(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	tab, args, err := onRef(a, s, "on")
	if err != nil {
		return err
	}
	if route := attempt.Text(s, "route"); route != "" {
		args["input_route"] = route
	}
	_, err = a.Call(ctx, engine.OpClick, args, attempt.Aim{Tab: tab})
	return err
}
