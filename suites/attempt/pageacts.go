package attempt

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/fixtures"
)

// PageActs asks the page of a tab to do something to the desk by itself, while no call of the engine is in flight, waits until the page has
// said so and the desk shows it, and closes that window of time. That the desk shows it is a measured precondition.
func (a *Attempt) PageActs(ctx context.Context, tab *Tab, act string) error {
	docs := a.docs[tab.Page]
	if len(docs) == 0 {
		return fmt.Errorf("no document of %s is known", tab.Page)
	}
	if err := a.collect(ctx); err != nil { // what came before belongs to the time before
		return err
	}
	w, document := tab.Target.Window, docs[len(docs)-1]
	before := *w
	if err := a.Stage.Measure(ctx, &before); err != nil {
		return a.fault("environment", "measure the window of a page that acts: %v", err)
	}
	if err := a.pages.Act(document, act); err != nil {
		return a.fault("harness", "%v", err)
	}
	wait, cancel := context.WithTimeout(ctx, pageBudget)
	defer cancel()
	_, err := a.Stage.Pages.Journal().Wait(wait, 0, func(ev fixtures.Event) bool {
		return ev.Row == a.pages.ID() && ev.Document == document && ev.Type == "act" && ev.Value == act
	})
	got, met := "the page did not say so", false
	if err == nil {
		got, met = a.acted(wait, before.ID, act, func() (bool, error) {
			now := before
			if err := a.Stage.Measure(ctx, &now); err != nil {
				return false, err
			}
			return now.Client != before.Client, nil
		})
	}
	a.observe(evidence.Observation{Kind: evidence.KindPrecondition, Precondition: &evidence.Precondition{Name: "page act", Want: act, Got: got, Met: met}})
	if !met {
		return ErrStopped
	}
	return a.closeWindow(ctx)
}

// acted waits until the desk shows what a page said that it does.
func (a *Attempt) acted(ctx context.Context, window uint32, act string, moved func() (bool, error)) (got string, met bool) {
	for {
		switch act {
		case "move":
			if there, err := moved(); err == nil && there {
				return act, true
			}
		case "close":
			if all, err := a.Stage.ManagedWindows(ctx); err == nil && !slices.Contains(all, window) {
				return act, true
			}
		}
		select {
		case <-ctx.Done():
			return "the page said so, and the desk does not show it", false
		case <-time.After(10 * time.Millisecond):
		}
	}
}
