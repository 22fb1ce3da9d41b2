package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// personClicks has the person click into a window, and waits for what the page opens.
func personClicks(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	w, err := a.Window(s)
	if err != nil {
		return err
	}
	return a.PersonClicks(ctx, w, s.Text("opens") == "window", s.Text("page"))
}
