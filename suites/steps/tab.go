package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// openTab opens a tab in the background of a bound window and names it.
func openTab(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	t, err := a.Target(attempt.Text(s, "in"))
	if err != nil {
		return err
	}
	args := map[string]any{"session": t.Session, "target_id": t.ID, "kind": "open"}
	if len(t.Tabs) > 0 {
		args["tab_id"] = t.Tabs[0].ID
	}
	r, err := a.Call(ctx, engine.OpContext, args, attempt.Aim{})
	if err != nil {
		return err
	}
	if r == nil || r.Tab == nil {
		return a.UnlessExpected(ctx)
	}
	name := attempt.Text(s, "as")
	a.NameTab(name, &attempt.Tab{ID: r.Tab.ID, Target: t, Page: name, Mark: name})
	return nil
}

// closeTab closes a tab.
func closeTab(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	tab, args, err := aimAt(a, s)
	if err != nil {
		return err
	}
	args["kind"] = "close"
	_, err = a.Call(ctx, engine.OpContext, args, attempt.Aim{Tab: tab})
	return err
}
