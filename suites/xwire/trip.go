package xwire

import "context"

// Trip makes round trips through the window manager, on a connection of its own: when Do returns, the
// manager has handled everything that reached it before, and the server has its requests.
//
// It asks for the frame extents of a window that is never mapped (EWMH, _NET_REQUEST_FRAME_EXTENTS);
// the manager answers by a property. A caller that sent requests on another connection does a round
// trip there first.
type Trip struct {
	c       *Conn
	win     uint32
	ask     uint32
	extents uint32
}

// NewTrip connects; the caller closes it.
func NewTrip(ctx context.Context, display, xauthority string) (*Trip, error) {
	c, err := Dial(ctx, display, xauthority)
	if err != nil {
		return nil, err
	}
	t := &Trip{c: c, win: c.NewID()}
	if t.ask, err = c.Atom(ctx, "_NET_REQUEST_FRAME_EXTENTS"); err == nil {
		t.extents, err = c.Atom(ctx, "_NET_FRAME_EXTENTS")
	}
	if err == nil {
		// CreateWindow 1x1, event mask PropertyChange.
		err = c.Send(Req(1, 0).U32(t.win, c.Root).I16(0, 0).U16(1, 1, 0, 1).U32(0, 0x800, 0x400000))
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return t, nil
}

// Do makes one round trip.
func (t *Trip) Do(ctx context.Context) error {
	ctx, cancel := budget(ctx)
	defer cancel()
	if err := t.c.Send(Req(19, 0).U32(t.win, t.extents)); err != nil {
		return err
	}
	if _, err := t.c.Focus(ctx); err != nil {
		return err
	}
	t.c.Take()
	if err := t.c.Send(t.c.ToManager(t.win, t.ask)); err != nil {
		return err
	}
	for {
		for _, ev := range t.c.Take() {
			if ev.Kind == 28 && le.Uint32(ev.Raw[8:]) == t.extents && ev.Raw[16] == 0 {
				return nil
			}
		}
		select {
		case <-t.c.Ready():
		case <-t.c.Done():
			return t.c.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close ends the connection.
func (t *Trip) Close() error { return t.c.Close() }

// Done is closed when the connection has ended.
func (t *Trip) Done() <-chan struct{} { return t.c.Done() }
