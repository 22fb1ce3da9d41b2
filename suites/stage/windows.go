package stage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/engine-acceptance/acceptance/suites/process"
	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// Window is a managed window of a browser on the desk, as the X server tells of it.
type Window struct {
	ID    uint32
	Owner process.Identity
	// Client is the inside of the window in root pixels, Frame the window manager's window around it.
	Client xwire.Rect
	Frame  xwire.Rect
}

// ManagedWindows lists the windows that the window manager manages, in the order in which it mapped them.
func (s *Stage) ManagedWindows(ctx context.Context) ([]uint32, error) {
	return s.x.Words(ctx, s.x.Root, "_NET_CLIENT_LIST")
}

// WindowsOf lists the managed windows whose client is one of the given processes, by the X server's own word (X-Resource).
func (s *Stage) WindowsOf(ctx context.Context, tree []process.Entry) ([]*Window, error) {
	ids, err := s.ManagedWindows(ctx)
	if err != nil {
		return nil, err
	}
	var out []*Window
	for _, id := range ids {
		pid, err := s.clientPID(ctx, id)
		if err != nil {
			var gone *xwire.ProtocolError
			if errors.As(err, &gone) {
				continue
			}
			return nil, err
		}
		i := slices.IndexFunc(tree, func(e process.Entry) bool { return e.PID == pid })
		if i < 0 {
			continue
		}
		w := &Window{ID: id, Owner: tree[i].Identity}
		if err := s.Measure(ctx, w); err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}

// Measure reads where a window is now.
func (s *Stage) Measure(ctx context.Context, w *Window) error {
	var err error
	if w.Client, err = s.x.OnRoot(ctx, w.ID); err != nil {
		return err
	}
	top, err := s.x.Top(ctx, w.ID)
	if err != nil {
		return err
	}
	w.Frame, err = s.x.OnRoot(ctx, top)
	return err
}

// clientPID asks X-Resource for the process behind a window (QueryClientIds, mask LocalClientPID).
func (s *Stage) clientPID(ctx context.Context, window uint32) (int, error) {
	major, _, present, err := s.x.Extension(ctx, "X-Resource")
	if err != nil {
		return 0, err
	}
	if !present {
		return 0, errors.New("the X server has no X-Resource extension")
	}
	reply, err := s.x.Call(ctx, xwire.Req(major, 4).U32(1, window, 2))
	if err != nil {
		return 0, err
	}
	// Header 32 bytes, then spec (8 bytes), length (4), value (4).
	if len(reply) < 48 || binary.LittleEndian.Uint32(reply[8:]) == 0 {
		return 0, fmt.Errorf("the X server names no process for window %#x", window)
	}
	return int(binary.LittleEndian.Uint32(reply[44:])), nil
}

// AboveAnother reports whether one of some windows lies above a managed window that is none of them.
func (s *Stage) AboveAnother(ctx context.Context, windows []*Window) (bool, error) {
	order, err := s.x.Words(ctx, s.x.Root, "_NET_CLIENT_LIST_STACKING")
	if err != nil {
		return false, err
	}
	other := false
	for _, id := range order { // bottom first
		if !slices.ContainsFunc(windows, func(w *Window) bool { return w.ID == id }) {
			other = true
		} else if other {
			return true, nil
		}
	}
	return false, nil
}

// Title is the window's title, as the person would see it.
func (s *Stage) Title(ctx context.Context, window uint32) (string, error) {
	_, value, err := s.x.Property(ctx, window, "_NET_WM_NAME")
	return string(value), err
}

// Shown reports whether a window is mapped with all its ancestors.
func (s *Stage) Shown(ctx context.Context, window uint32) (bool, error) {
	return s.x.Viewable(ctx, window)
}

// Arrange asks the window manager to give a window's client area a rectangle, as a pager would (EWMH, _NET_MOVERESIZE_WINDOW, gravity
// static), and waits until it has it. It belongs to the prepare phase.
func (s *Stage) Arrange(ctx context.Context, w *Window, want xwire.Rect) error {
	typ, err := s.x.Atom(ctx, "_NET_MOVERESIZE_WINDOW")
	if err != nil {
		return err
	}
	const static, fields, pager = 10, 0xf << 8, 2 << 12
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := s.x.Send(s.x.ToManager(w.ID, typ, static|fields|pager, uint32(want.X), uint32(want.Y), uint32(want.Width), uint32(want.Height))); err != nil {
		return err
	}
	for {
		if err := s.ManagerTrip(ctx); err != nil {
			return fmt.Errorf("arrange window: have %+v, want %+v: %w", w.Client, want, err)
		}
		if err := s.Measure(ctx, w); err != nil {
			return err
		}
		if w.Client == want {
			return nil
		}
	}
}

// Maximise asks the window manager to maximise a window, as a pager would (EWMH, _NET_WM_STATE), and waits until the window has the state
// and another size than before.
func (s *Stage) Maximise(ctx context.Context, w *Window) error {
	atoms, err := s.x.Atoms(ctx, "_NET_WM_STATE", "_NET_WM_STATE_MAXIMIZED_VERT", "_NET_WM_STATE_MAXIMIZED_HORZ")
	if err != nil {
		return err
	}
	before := w.Client
	vert, horz := atoms["_NET_WM_STATE_MAXIMIZED_VERT"], atoms["_NET_WM_STATE_MAXIMIZED_HORZ"]
	const add, pager = 1, 2
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := s.x.Send(s.x.ToManager(w.ID, atoms["_NET_WM_STATE"], add, vert, horz, pager)); err != nil {
		return err
	}
	for {
		if err := s.ManagerTrip(ctx); err != nil {
			return fmt.Errorf("maximise window: have %+v: %w", w.Client, err)
		}
		if err := s.Measure(ctx, w); err != nil {
			return err
		}
		state, err := s.x.Words(ctx, w.ID, "_NET_WM_STATE")
		if err != nil {
			return err
		}
		if slices.Contains(state, vert) && slices.Contains(state, horz) && w.Client != before {
			return nil
		}
	}
}

// ManagerTrip makes one round trip through the window manager: everything that was asked of it before has been done.
func (s *Stage) ManagerTrip(ctx context.Context) error {
	if _, err := s.x.Focus(ctx); err != nil {
		return err
	}
	return s.trip.Do(ctx)
}

// ClientsOf counts the X clients of the given processes, by the X server's own word (X-Resource, QueryClients and QueryClientIds).
func (s *Stage) ClientsOf(ctx context.Context, tree []process.Entry) (int, error) {
	major, _, present, err := s.x.Extension(ctx, "X-Resource")
	if err != nil || !present {
		return 0, errors.Join(err, errors.New("the X server has no X-Resource extension"))
	}
	reply, err := s.x.Call(ctx, xwire.Req(major, 1))
	if err != nil {
		return 0, err
	}
	if len(reply) < 32 {
		return 0, errors.New("short list of X clients")
	}
	n := 0
	count := binary.LittleEndian.Uint32(reply[8:])
	for i := range count {
		at := 32 + int(i)*8
		if at+8 > len(reply) {
			return 0, errors.New("short list of X clients")
		}
		pid, err := s.clientPID(ctx, binary.LittleEndian.Uint32(reply[at:]))
		if err != nil {
			continue // a client that left between the two questions is nobody's
		}
		if slices.ContainsFunc(tree, func(e process.Entry) bool { return e.PID == pid }) {
			n++
		}
	}
	return n, nil
}
