package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// repeat does the steps of a block in turn, many times.
func repeat(ctx context.Context, a *attempt.Attempt, s matrix.Step) error { return a.Block(ctx, s) }
