package steps

import (
	"context"
	"fmt"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// kill ends a process as a crash does, without a word to it.
func kill(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	switch which := s.Text("process"); which {
	case "engine":
		return a.KillEngine(ctx)
	case "browser":
		return a.KillBrowser(ctx)
	case "renderers":
		return a.KillRenderers(ctx)
	default:
		return fmt.Errorf("no process %q to kill", which)
	}
}

// freeze stops the browser without ending it; thaw lets it go on.
func freeze(ctx context.Context, a *attempt.Attempt, _ matrix.Step) error { return a.Freeze(ctx) }

func thaw(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	if s.Text("when") == "dialled" {
		return a.ThawDialled(ctx)
	}
	return a.Thaw(ctx)
}

// startEngine starts the engine again after it was killed.
func startEngine(ctx context.Context, a *attempt.Attempt, _ matrix.Step) error {
	return a.StartEngine(ctx)
}
