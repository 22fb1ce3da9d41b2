package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// garble has the browser's end of the connection say what no browser says.
func garble(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	return a.Garble(ctx, s.Text("with"))
}
