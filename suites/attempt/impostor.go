package attempt

import (
	"context"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/suites/stage"
)

// Impersonate opens a window of ours that wears everything by which a client can name a window of the browser, asks the engine to bind it as
// that browser's, and closes it again.
func (a *Attempt) Impersonate(ctx context.Context, w *stage.Window) error {
	id := uint32(0)
	err := a.harnessActs(ctx, func() error {
		var err error
		if id, err = a.Stage.Impersonate(ctx, w); err != nil {
			return a.fault("harness", "open a window like the browser's: %v", err)
		}
		return a.cover(ctx)
	})
	if err != nil {
		return err
	}
	r, err := a.Call(ctx, engine.OpState, map[string]any{"session": a.session, "mode": "bind", "pid": w.Owner.PID, "window_id": id}, Aim{})
	if err != nil {
		return err
	}
	if err := a.harnessActs(ctx, func() error { return a.Stage.CloseWindow(ctx, id) }); err != nil {
		return err
	}
	if r == nil || r.Target == nil {
		return a.UnlessExpected(ctx)
	}
	return nil
}

// Relabel makes a window name another process than its own as its client, which any client of the display can do, or gives it its name back.
func (a *Attempt) Relabel(ctx context.Context, w *stage.Window, back bool) error {
	pid := a.Stage.Sentinel.Process().Identity().PID
	if back {
		pid = w.Owner.PID
	}
	return a.harnessActs(ctx, func() error {
		if err := a.Stage.Relabel(ctx, w.ID, pid); err != nil {
			return a.fault("harness", "have a window name another process: %v", err)
		}
		return nil
	})
}
