package attempt

import (
	"context"
	"fmt"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/matrix"
)

// deskProof measures that the desk is of the kind that the row asks for.
func (a *Attempt) deskProof(ctx context.Context) error {
	got, err := a.Stage.Kind(ctx)
	if err != nil {
		return a.fault("harness", "measure the kind of the desk: %v", err)
	}
	want := a.Contract.Desk.Kind
	if want == "" {
		want = matrix.DeskOpenbox
	}
	return a.require("desk", string(want), string(got))
}

// Unmet writes an attempt down for which there was no desk: its environment was not to be had, and nothing was done.
func Unmet(c matrix.Contract, out Out, o Options, cause error) ([]evidence.Observation, error) {
	a := &Attempt{Contract: c, Plan: o.PlanDigest, Number: o.Number, out: out, rules: o.Rules, phase: evidence.PhasePrepare}
	a.observe(evidence.Observation{Kind: evidence.KindBegin, Begin: &evidence.Begin{Row: c.ID, Attempt: o.Number, Plan: o.PlanDigest}})
	_ = a.fault("environment", "%v", cause)
	a.observe(evidence.Observation{Kind: evidence.KindEnd, End: &evidence.End{}})
	return a.kept, a.writeErr
}

// require observes a precondition, and stops the row where it is not met.
func (a *Attempt) require(name, want, got string) error {
	met := want == got
	a.observe(evidence.Observation{Kind: evidence.KindPrecondition, Precondition: &evidence.Precondition{Name: name, Want: want, Got: got, Met: met}})
	if !met {
		return ErrStopped
	}
	return nil
}

// hide hides the windows that the row wants hidden, and measures that they are.
func (a *Attempt) hide(ctx context.Context) error {
	for i, p := range a.Contract.Desk.Windows {
		if p.Hidden == "" || i >= len(a.windows) {
			continue
		}
		w := a.windows[i]
		err := a.harnessActs(ctx, func() error {
			if err := a.Stage.Hide(ctx, w, p.Hidden); err != nil {
				return a.fault("environment", "hide window %d: %v", i+1, err)
			}
			// The window manager may have given the focus to another window.
			return a.cover(ctx)
		})
		if err != nil {
			return err
		}
		a.hidden = append(a.hidden, w)
		got, err := a.Stage.Hidden(ctx, w)
		if err != nil {
			return a.fault("environment", "measure how window %d is hidden: %v", i+1, err)
		}
		if err := a.require(fmt.Sprintf("window %d hidden", i+1), string(p.Hidden), string(got)); err != nil {
			return err
		}
	}
	return nil
}

// show shows what hide hid, so that the next row finds the shared browser as it was.
func (a *Attempt) show(ctx context.Context) {
	for _, w := range a.hidden {
		if err := a.Stage.Show(ctx, w); err != nil {
			_ = a.fault("environment", "show a hidden window again: %v", err)
		}
	}
	a.hidden = nil
}

// scaleProof measures that pages are drawn at the scale that the desk asks for: a page tells how many device pixels one of its own has.
func (a *Attempt) scaleProof() error {
	if a.Contract.Desk.Kind != matrix.DeskScale2 {
		return nil
	}
	return a.require("scale of the pages", "2", fmt.Sprint(a.pages.Scale()))
}
