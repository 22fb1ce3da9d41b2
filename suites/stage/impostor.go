package stage

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// worn are the properties by which a client names itself and its window; an impostor wears them all.
var worn = []string{"WM_NAME", "_NET_WM_NAME", "WM_CLASS", "WM_CLIENT_MACHINE", "WM_WINDOW_ROLE", "_NET_WM_PID", "_NET_WM_WINDOW_TYPE", "_GTK_FRAME_EXTENTS", "_MOTIF_WM_HINTS"}

// Impersonate maps a window of this process that wears every name, the size and the place of w, and returns its id once the window manager
// manages it. Nothing but the X server's own word tells them apart.
func (s *Stage) Impersonate(ctx context.Context, w *Window) (uint32, error) {
	if err := s.Measure(ctx, w); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	id := s.x.NewID()
	reqs := []*xwire.Request{xwire.Req(1, 0).U32(id, s.x.Root).I16(w.Client.X, w.Client.Y).U16(uint16(w.Client.Width), uint16(w.Client.Height), 0, 1).U32(0, 0)}
	for _, name := range worn {
		typ, value, err := s.x.Property(ctx, w.ID, name)
		if err != nil {
			return 0, err
		}
		if typ == 0 {
			continue
		}
		atom, err := s.x.Atom(ctx, name)
		if err != nil {
			return 0, err
		}
		width := byte(8)
		if slices.Contains([]string{"_NET_WM_PID", "_NET_WM_WINDOW_TYPE", "_GTK_FRAME_EXTENTS", "_MOTIF_WM_HINTS"}, name) {
			width = 32
		}
		reqs = append(reqs, xwire.SetProperty(id, atom, typ, width, value))
	}
	// WM_NORMAL_HINTS: position and size were chosen by the person; the position is the inside's (static gravity).
	reqs = append(reqs, xwire.SetProperty(id, 40, 41, 32, xwire.Words32(1|2|512, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10)), xwire.Req(8, 0).U32(id))
	if err := s.x.Send(reqs...); err != nil {
		return 0, err
	}
	for {
		if err := s.ManagerTrip(ctx); err != nil {
			return 0, err
		}
		managed, err := s.ManagedWindows(ctx)
		if err != nil {
			return 0, err
		}
		if slices.Contains(managed, id) {
			return id, s.Arrange(ctx, &Window{ID: id}, w.Client)
		}
		if ctx.Err() != nil {
			return 0, errors.Join(errors.New("the window manager does not manage the window"), ctx.Err())
		}
	}
}

// CloseWindow destroys a window of this process.
func (s *Stage) CloseWindow(ctx context.Context, id uint32) error {
	if err := s.x.Send(xwire.Req(4, 0).U32(id)); err != nil {
		return err
	}
	return s.ManagerTrip(ctx)
}

// Relabel changes the process that a window names as its client.
func (s *Stage) Relabel(ctx context.Context, window uint32, pid int) error {
	atom, err := s.x.Atom(ctx, "_NET_WM_PID")
	if err != nil {
		return err
	}
	const cardinal = 6
	if err := s.x.Send(xwire.SetProperty(window, atom, cardinal, 32, xwire.Words32(uint32(pid)))); err != nil {
		return err
	}
	_, err = s.x.Focus(ctx) // a round trip: the server has it
	return err
}
