package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// race does the lanes of a block at once, many times.
func race(ctx context.Context, a *attempt.Attempt, s matrix.Step) error { return a.Block(ctx, s) }
