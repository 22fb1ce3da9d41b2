package stage

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/desk"
	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// hideBudget bounds how long the window manager may take to hide or show a window.
const hideBudget = 3 * time.Second

// iconic is the state of a window that is an icon (ICCCM 4.1.3.1).
const iconic = 3

// Hide has the window manager hide a window, as a pager would, and waits until it has. It belongs to the prepare phase.
func (s *Stage) Hide(ctx context.Context, w *Window, how matrix.Hidden) error {
	name, data := "WM_CHANGE_STATE", []uint32{iconic}
	if how == matrix.HiddenElsewhere {
		now, err := s.workspace(ctx, s.x.Root, "_NET_CURRENT_DESKTOP")
		if err != nil {
			return err
		}
		name, data = "_NET_WM_DESKTOP", []uint32{now + 1, 2}
	}
	return s.change(ctx, w, name, data, func() (bool, error) {
		got, err := s.Hidden(ctx, w)
		return got == how, err
	})
}

// Show undoes Hide: the window is on the workspace that is shown, and no icon.
func (s *Stage) Show(ctx context.Context, w *Window) error {
	how, err := s.Hidden(ctx, w)
	if err != nil || how == "" {
		return err
	}
	name, data := "_NET_ACTIVE_WINDOW", []uint32{2, 0, 0}
	if how == matrix.HiddenElsewhere {
		now, err := s.workspace(ctx, s.x.Root, "_NET_CURRENT_DESKTOP")
		if err != nil {
			return err
		}
		name, data = "_NET_WM_DESKTOP", []uint32{now, 2}
	}
	return s.change(ctx, w, name, data, func() (bool, error) { return s.x.Viewable(ctx, w.ID) })
}

// change asks the window manager for a change and waits until it is done.
func (s *Stage) change(ctx context.Context, w *Window, message string, data []uint32, done func() (bool, error)) error {
	typ, err := s.x.Atom(ctx, message)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, hideBudget)
	defer cancel()
	if err := s.x.Send(s.x.ToManager(w.ID, typ, data...)); err != nil {
		return err
	}
	for {
		if err := s.ManagerTrip(ctx); err != nil {
			return fmt.Errorf("%s for window %#x: %w", message, w.ID, err)
		}
		if there, err := done(); err != nil || there {
			return err
		}
	}
}

// Hidden measures how a window is hidden; empty when it is shown, or not shown for another cause.
func (s *Stage) Hidden(ctx context.Context, w *Window) (matrix.Hidden, error) {
	shown, err := s.x.Viewable(ctx, w.ID)
	if err != nil || shown {
		return "", err
	}
	at, err := s.workspace(ctx, w.ID, "_NET_WM_DESKTOP")
	if err != nil {
		return "", err
	}
	now, err := s.workspace(ctx, s.x.Root, "_NET_CURRENT_DESKTOP")
	if err != nil {
		return "", err
	}
	if at != now {
		return matrix.HiddenElsewhere, nil
	}
	_, state, err := s.x.Property(ctx, w.ID, "WM_STATE")
	if err == nil && len(state) >= 4 && binary.LittleEndian.Uint32(state) == iconic {
		return matrix.HiddenMinimised, nil
	}
	return "", err
}

func (s *Stage) workspace(ctx context.Context, window uint32, property string) (uint32, error) {
	v, err := s.x.Words(ctx, window, property)
	if err == nil && len(v) == 0 {
		err = fmt.Errorf("window %#x has no %s", window, property)
	}
	if err != nil {
		return 0, err
	}
	return v[0], nil
}

// Kind measures of which kind the desk is, as the X server tells: who manages and composes it, how many outputs it has, whether the person
// keeps the own window above. What a session asks of applications the server does not know; that is the desk's own word.
func (s *Stage) Kind(ctx context.Context) (matrix.DeskKind, error) {
	var extras []matrix.DeskKind
	states, err := s.x.Words(ctx, s.Sentinel.Window(), "_NET_WM_STATE")
	if err != nil {
		return "", err
	}
	above, err := s.x.Atom(ctx, "_NET_WM_STATE_ABOVE")
	if err != nil {
		return "", err
	}
	if slices.Contains(states, above) {
		extras = append(extras, matrix.DeskAbove)
	}
	composer, err := s.composerWindow(ctx)
	if err != nil {
		return "", err
	}
	if composer != 0 {
		extras = append(extras, matrix.DeskPicom)
	}
	outputs, err := desk.Outputs(ctx, s.x)
	if err != nil {
		return "", err
	}
	if outputs == 2 {
		extras = append(extras, matrix.DeskTwoOutputs)
	}
	if s.Desk.Facts().Scale == 2 {
		extras = append(extras, matrix.DeskScale2)
	}
	switch len(extras) {
	case 0:
		return matrix.DeskOpenbox, nil
	case 1:
		return extras[0], nil
	}
	return "", fmt.Errorf("the desk is of several kinds at once: %v", extras)
}

// composerWindow is the window of the compositor, which owns a selection of that name (EWMH), 0 where there is none.
func (s *Stage) composerWindow(ctx context.Context) (uint32, error) {
	selection, err := s.x.Atom(ctx, "_NET_WM_CM_S0")
	if err != nil {
		return 0, err
	}
	owner, err := s.x.Call(ctx, xwire.Req(23, 0).U32(selection)) // GetSelectionOwner
	if err != nil {
		return 0, err
	}
	if len(owner) < 12 {
		return 0, fmt.Errorf("short answer about the compositor")
	}
	return binary.LittleEndian.Uint32(owner[8:]), nil
}

func (s *Stage) findComposer(ctx context.Context) (int, error) {
	w, err := s.composerWindow(ctx)
	if err != nil || w == 0 {
		return 0, err
	}
	return s.clientPID(ctx, w)
}
