package attempt

import (
	"context"
	"fmt"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/stage"
	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// Window is the window that a step names: a number on the browser of the step's session.
func (a *Attempt) Window(s matrix.Step) (*stage.Window, error) {
	session, err := a.Session(s)
	if err != nil {
		return nil, err
	}
	windows, _ := a.windowsOf(session)
	n := Int(s, "window")
	if n < 1 || n > len(windows) {
		return nil, fmt.Errorf("the session's browser has %d windows, the row speaks of window %d", len(windows), n)
	}
	return windows[n-1], nil
}

// windowsOf lists the windows of a session's browser, and the number of the launch that it came with: 0 for the arrangement's.
func (a *Attempt) windowsOf(session string) ([]*stage.Window, int) {
	if l := a.launches[session]; l != nil && l.number > 0 {
		return l.windows, l.number
	}
	return a.desk, 0
}

// Place gives a window a rectangle through the window manager, and has the person cover it again.
func (a *Attempt) Place(ctx context.Context, w *stage.Window, b matrix.Bounds) error {
	return a.harnessActs(ctx, func() error {
		if err := a.Stage.Arrange(ctx, w, xwire.Rect{X: b.X, Y: b.Y, Width: b.W, Height: b.H}); err != nil {
			return a.fault("environment", "place a window: %v", err)
		}
		return a.cover(ctx)
	})
}

// Maximise maximises a window through the window manager, and has the person cover it again.
func (a *Attempt) Maximise(ctx context.Context, w *stage.Window) error {
	return a.harnessActs(ctx, func() error {
		if err := a.Stage.Maximise(ctx, w); err != nil {
			return a.fault("environment", "maximise a window: %v", err)
		}
		return a.cover(ctx)
	})
}
