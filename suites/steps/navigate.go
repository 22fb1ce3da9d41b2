package steps

import (
	"context"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/attempt"
)

// navigate loads a fixture page, or an address as it stands.
func navigate(ctx context.Context, a *attempt.Attempt, s matrix.Step) error {
	tab, args, err := aimAt(a, s)
	if err != nil {
		return err
	}
	if page := attempt.Text(s, "page"); page != "" {
		args["url"] = a.URL(page, a.TitleFor(page, tab), tab.Page)
	} else {
		address, err := a.Expand(attempt.Text(s, "url"))
		if err != nil {
			return err
		}
		args["url"] = a.ForTab(address, tab)
	}
	_, err = a.Call(ctx, engine.OpNavigate, args, attempt.Aim{Tab: tab})
	return err
}
