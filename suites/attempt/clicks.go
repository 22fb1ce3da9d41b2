package attempt

import (
	"context"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/suites/stage"
)

// PersonClicks has the person click into a window whose page opens another, in a window of its own or in a tab, and waits until that page
// reports under its name. What the click did to the desk is the person's.
func (a *Attempt) PersonClicks(ctx context.Context, w *stage.Window, opensWindow bool, page string) error {
	before := a.phase
	a.phase = evidence.PhasePrepare
	err := a.harnessActs(ctx, func() error {
		tree, err := a.Stage.Host.Tree()
		if err != nil {
			return a.fault("harness", "list the engine's processes: %v", err)
		}
		if err := a.Stage.ClickInto(ctx, w); err != nil {
			return a.fault("harness", "the person's click into a page: %v", err)
		}
		if err := a.awaitPage(ctx, page); err != nil {
			return err
		}
		if opensWindow {
			fresh, err := a.awaitWindow(ctx, tree)
			if err != nil {
				return err
			}
			a.windows = append(a.windows, fresh)
		}
		return a.cover(ctx)
	})
	if err == nil {
		// What the pages saw of the click came about in this phase.
		err = a.closeQuickly(ctx)
	}
	a.excuseOverruns() // a browser that opens a window gives it an icon
	a.phase = before
	a.aim()
	if err != nil {
		return err
	}
	if err := a.watchTargets(ctx); err != nil {
		return a.fault("harness", "watch the windows that the person opened: %v", err)
	}
	return nil
}
