package steps

import (
	"context"
	"maps"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// call calls any tool with raw arguments, for rows about refusals.
func call(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	args := map[string]any{}
	var tab *attempt.Tab
	var err error
	switch {
	case attempt.Text(s, "ref") != "":
		tab, args, err = onRef(a, s, "ref")
	case attempt.Text(s, "tab") != "":
		tab, args, err = aimAt(a, s)
	case attempt.Text(s, "target") != "":
		var t *attempt.Target
		if t, err = a.Target(attempt.Text(s, "target")); err == nil {
			args["session"], args["target_id"] = t.Session, t.ID
		}
	default:
		args["session"], err = a.Session(s)
	}
	if err != nil {
		return err
	}
	if raw, ok := s.Args["args"].(map[string]any); ok {
		maps.Copy(args, raw)
	}
	_, err = a.Call(ctx, engine.Operation(attempt.Text(s, "operation")), args, attempt.Aim{Tab: tab})
	return err
}
