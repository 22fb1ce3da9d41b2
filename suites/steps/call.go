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
	if err := swap(a, s, args); err != nil {
		return err
	}
	if raw, ok := s.Args["args"].(map[string]any); ok {
		expanded, err := expand(a, raw)
		if err != nil {
			return err
		}
		maps.Copy(args, expanded.(map[string]any))
	}
	_, err = a.Call(ctx, engine.Operation(attempt.Text(s, "operation")), args, attempt.Aim{Tab: tab})
	return err
}

// swap puts another tab or target in the place of the one that belongs to a ref or tab, where the row names both.
func swap(a *attempt.Attempt, s matrix.Step, args map[string]any) error {
	ref, tab, target := s.Text("ref"), s.Text("tab"), s.Text("target")
	if ref != "" && tab != "" {
		other, err := a.Tab(tab)
		if err != nil {
			return err
		}
		args["tab_id"] = other.ID
	}
	if target != "" && (ref != "" || tab != "") {
		other, err := a.Target(target)
		if err != nil {
			return err
		}
		args["target_id"] = other.ID
	}
	return nil
}

// expand replaces the variables in every text of a raw argument.
func expand(a *attempt.Attempt, v any) (any, error) {
	switch v := v.(type) {
	case string:
		return a.Expand(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			var err error
			if out[i], err = expand(a, e); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			var err error
			if out[k], err = expand(a, e); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}
