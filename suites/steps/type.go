package steps

import (
	"context"
	"unicode/utf8"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// typeText enters text into a control of a snapshot.
func typeText(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	tab, args, err := onRef(a, s, "into")
	if err != nil {
		return err
	}
	text, err := a.Expand(attempt.Text(s, "text"))
	if err != nil {
		return err
	}
	args["text"] = text
	if mode := attempt.Text(s, "mode"); mode != "" {
		args["mode"] = mode
	}
	if attempt.Bool(s, "replace") {
		args["replace"] = true
	}
	if s.Has("expected") {
		args["expected_value"] = s.Text("expected")
	}
	_, err = a.Call(ctx, engine.OpType, args, attempt.Aim{Tab: tab, Chars: utf8.RuneCountInString(text)})
	return err
}
