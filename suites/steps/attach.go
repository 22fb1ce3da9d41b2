package steps

import (
	"context"
	"fmt"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// impossibleWindow is an X id that no client can have: the server hands out ids of at most 29 bits.
const impossibleWindow = 0x3fffffff

// attach asks the engine to attach to an ordinary program of the person, or to a process that is none. Requests to the X server and
// connections that the engine makes meanwhile are observed, and for a program with an endpoint everybody's connections to that.
func attach(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	id, err := a.Session(s)
	if err != nil {
		return err
	}
	product := attempt.Text(s, "product")
	pid, window := 0, uint32(impossibleWindow)
	if product == "" {
		if pid, err = a.Process(ctx, attempt.Text(s, "process")); err != nil {
			return err
		}
	} else {
		w, err := a.Decoy(product)
		if err != nil {
			return err
		}
		pid = w.Owner.PID
		if attempt.Text(s, "window") == "real" {
			window = w.ID
		}
	}
	if window == 0 || product == "" && attempt.Text(s, "window") == "real" {
		return fmt.Errorf("%s%s has no window", product, attempt.Text(s, "process"))
	}
	probes, err := a.WatchProbes(ctx, product)
	if err != nil {
		return err
	}
	_, err = a.Call(ctx, engine.OpPrepare, map[string]any{"session": id, "profile": map[string]any{"kind": engine.PostureExisting}, "pid": pid, "window_id": window}, attempt.Aim{})
	if watched := probes.Stop(ctx); watched != nil {
		return watched
	}
	if product != "" {
		a.FactBystander(product)
	}
	return err
}
