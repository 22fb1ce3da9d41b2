package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// bind binds a window of the desk.
func bind(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	id, err := a.Session(s)
	if err != nil {
		return err
	}
	return a.Bind(ctx, attempt.Int(s, "window"), attempt.Text(s, "as"), id)
}
