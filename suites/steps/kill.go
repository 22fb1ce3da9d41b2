package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// kill ends the engine as a crash does, without a word to it.
func kill(ctx context.Context, a *attempt.Attempt, _ matrix.Step) error { return a.KillEngine(ctx) }
