package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// cut cuts the connection between engine and browser from outside.
func cut(ctx context.Context, a *attempt.Attempt, _ matrix.Step) error { return a.Cut(ctx) }
