package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// change changes one component of a binding from outside.
func change(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	switch s.Text("component") {
	case "endpoint":
		return a.TakeEndpoint(ctx)
	case "connection":
		return a.Cut(ctx)
	}
	w, err := a.Window(s)
	if err != nil {
		return err
	}
	return a.Relabel(ctx, w, s.Bool("back"))
}
