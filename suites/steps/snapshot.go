package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// snapshot lists what can be acted on in a tab, and keeps the refs under a name.
func snapshot(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	tab, args, err := aimAt(a, s)
	if err != nil {
		return err
	}
	args["mode"] = engine.ModeSnapshot
	if n := attempt.Int(s, "max_nodes"); n > 0 {
		args["max_nodes"] = n
	}
	r, err := a.Call(ctx, engine.OpState, args, attempt.Aim{Tab: tab})
	if err != nil {
		return err
	}
	if r == nil || r.Snapshot == nil {
		return a.UnlessExpected(ctx)
	}
	a.NameSnapshot(attempt.Text(s, "as"), &attempt.Snapshot{Tab: tab, Refs: r.Snapshot.Refs})
	return nil
}

// aimAt resolves the tab of a step and fills the arguments that every call on a tab has.
func aimAt(a *attempt.Attempt, s matrix.Step) (*attempt.Tab, map[string]any, error) {
	tab, err := a.Tab(attempt.Text(s, "tab"))
	if err != nil {
		return nil, nil, err
	}
	args, err := on(a, s, tab)
	return tab, args, err
}

// on fills session, target and tab.
func on(a *attempt.Attempt, s matrix.Step, tab *attempt.Tab) (map[string]any, error) {
	id := tab.Target.Session
	if attempt.Text(s, "session") != "" {
		var err error
		if id, err = a.Session(s); err != nil {
			return nil, err
		}
	}
	return map[string]any{"session": id, "target_id": tab.Target.ID, "tab_id": tab.ID}, nil
}

// onRef resolves the node of a step and fills the arguments that every call on a node has.
func onRef(a *attempt.Attempt, s matrix.Step, field string) (*attempt.Tab, map[string]any, error) {
	ref, tab, err := a.Ref(attempt.Text(s, field))
	if err != nil {
		return nil, nil, err
	}
	args, err := on(a, s, tab)
	if err != nil {
		return nil, nil, err
	}
	args["ref"] = ref
	return tab, args, nil
}
