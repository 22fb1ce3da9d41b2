package attempt

import (
	"context"
	"slices"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/suites/stage"
)

// share takes the browser that rows have in common, and launches it when there is none or when it cannot be put in order.
func (a *Attempt) share(ctx context.Context) error {
	if s := a.Stage.Shared; s != nil {
		if a.Stage.Measure(ctx, s.Window) == nil && a.tidy(ctx, s) {
			a.session, a.posture = s.Session, s.Posture
			a.profiles = append(a.profiles, s.Profile)
			if home := a.browserHome(s.PID); home != "" {
				a.homes = append(a.homes, home)
			}
			a.veil()
			a.adopt([]*stage.Window{s.Window})
			if err := a.restore(ctx); err != nil {
				return err
			}
			a.phase = evidence.PhaseBackground
			return nil
		}
		if err := a.Stage.EndShared(ctx); err != nil {
			return a.fault("harness", "end the shared browser: %v", err)
		}
	}
	r, err := a.Must(ctx, engine.OpSessionStart, map[string]any{}, Aim{})
	if err != nil {
		return err
	}
	if r.Session != nil {
		a.session = r.Session.ID
	}
	if _, err := a.Launch(ctx, a.session, engine.PostureIsolatedNew); err != nil {
		return err
	}
	if len(a.windows) != 1 {
		return a.fault("harness", "the launch opened %d windows, want one", len(a.windows))
	}
	a.Stage.Shared = &stage.Shared{Session: a.session, PID: a.browser.PID, Posture: a.posture, Window: a.windows[0], Profile: slices.Concat(a.profiles, []string{""})[0]}
	return nil
}

// tidy closes the tabs that the row before left and this one has no use for, over the engine's own tools; false when the browser does not
// answer as it should, and it is then given up. What stays open is loaded anew by the arrangement, before the row's first step.
func (a *Attempt) tidy(ctx context.Context, s *stage.Shared) bool {
	call := func(op engine.Operation, args map[string]any) *engine.Result {
		raw, carrier := a.Stage.Host.Call(ctx, op, args)
		if carrier != "" {
			return nil
		}
		r, problems := engine.ParseResult(raw)
		if len(problems) > 0 || r.Status != engine.StatusOK {
			return nil
		}
		return &r
	}
	r := call(engine.OpState, map[string]any{"session": s.Session, "mode": "bind", "pid": s.Window.Owner.PID, "window_id": s.Window.ID})
	if r == nil || r.Target == nil || len(r.Target.Tabs) == 0 {
		return false
	}
	title, err := a.Stage.Title(ctx, s.Window.ID)
	if err != nil {
		return false
	}
	shown := theShown(title, r.Target.Tabs)
	if shown < 0 {
		return false
	}
	want := 1
	if plans := a.Contract.Desk.Windows; len(plans) > 0 && !s.HeldUp {
		want = max(1, len(plans[0].Tabs))
	}
	kept := 1
	for i, tab := range r.Target.Tabs {
		if i == shown {
			continue
		}
		if kept++; kept <= want {
			continue
		}
		if call(engine.OpContext, map[string]any{"session": s.Session, "target_id": r.Target.ID, "tab_id": tab.ID, "kind": "close"}) == nil {
			return false
		}
	}
	s.HeldUp = false
	return true
}

// theShown is the only tab that the window's title says is shown, or -1. The only tab of a window is shown whatever its title.
func theShown(title string, tabs []engine.Tab) int {
	if len(tabs) == 1 {
		return 0
	}
	at := -1
	for i, t := range tabs {
		if !shows(title, t.Title) {
			continue
		}
		if at >= 0 {
			return -1
		}
		at = i
	}
	return at
}

// shownFirst puts the tab that the window shows before the others, as rows count them.
func (a *Attempt) shownFirst(ctx context.Context, t *Target) error {
	if len(t.Tabs) < 2 {
		return nil
	}
	title, err := a.Stage.Title(ctx, t.Window.ID)
	if err != nil {
		return a.fault("environment", "read the title of the browser's window: %v", err)
	}
	tabs := make([]engine.Tab, len(t.Tabs))
	for i, tab := range t.Tabs {
		tabs[i].Title = tab.Title
	}
	i := theShown(title, tabs)
	if i < 0 {
		return a.fault("environment", "no single tab of %d is shown by the window's title", len(tabs))
	}
	t.Tabs[0], t.Tabs[i] = t.Tabs[i], t.Tabs[0]
	return nil
}
