package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// impossibleWindow is an X id that no client can have: the server hands out ids of at most 29 bits.
const impossibleWindow = 0x3fffffff

// attach asks the engine to attach to an ordinary program of the person. Requests to the X server and connections that the engine makes
// meanwhile are observed.
func attach(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	id, err := a.Session(s)
	if err != nil {
		return err
	}
	product := attempt.Text(s, "product")
	w, err := a.Decoy(product)
	if err != nil {
		return err
	}
	window := w.ID
	if attempt.Text(s, "window") == "impossible" {
		window = impossibleWindow
	}
	probes, err := a.WatchProbes(ctx)
	if err != nil {
		return err
	}
	_, err = a.Call(ctx, engine.OpPrepare, map[string]any{"session": id, "profile": map[string]any{"kind": engine.PostureExisting}, "pid": w.Owner.PID, "window_id": window}, attempt.Aim{})
	if watched := probes.Stop(ctx); watched != nil {
		return watched
	}
	a.FactBystander(product)
	return err
}
