package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// place moves and resizes a window, or maximises it, as the person would through the window manager.
func place(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	w, err := a.Window(s)
	if err != nil {
		return err
	}
	if s.Bool("maximised") {
		return a.Maximise(ctx, w)
	}
	return a.Place(ctx, w, matrix.Bounds{X: s.Int("x"), Y: s.Int("y"), W: s.Int("w"), H: s.Int("h")})
}
