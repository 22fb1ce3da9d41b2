package controls

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

var le = binary.LittleEndian

const (
	popupPx = 48
	keyCode = 38 // a letter key on every layout; it goes to a window of our own, or is marked as forged
)

// fake builds XTEST FakeInput; the server acts on it before the next request of this connection.
func (r *role) fake(kind, detail byte, x, y int) *xwire.Request {
	return xwire.Req(r.xtest, 2).U8(kind, detail).U16(0).U32(0, 0, 0, 0).I16(x, y).U32(0, 0)
}

func focus(win uint32) *xwire.Request { return xwire.Req(42, 1).U32(win, 0) }

func warp(root uint32, x, y int) *xwire.Request {
	return xwire.Req(41, 0).U32(0, root).I16(0, 0).U16(0, 0).I16(x, y)
}

func stack(win, mode uint32) *xwire.Request {
	return xwire.Req(12, 0).U32(win).U16(0x40, 0).U32(mode)
}

// commit does every act of Kinds. The victim is the person's window.
func (r *role) commit(ctx context.Context, victim uint32) (Result, error) {
	if err := r.holdSelections(ctx); err != nil {
		return Result{}, err
	}
	began := process.Mono()
	before, err := r.baseline(ctx, victim)
	if err != nil {
		return Result{}, err
	}
	if before.focus != victim {
		return Result{}, fmt.Errorf("focus is at window 0x%x, not at the person's 0x%x: restore the desk before", before.focus, victim)
	}
	c, a := r.c, r.atoms
	var res Result
	var errs []error
	act := func(f func() error, kinds ...Act) {
		t := process.Mono()
		err := f()
		if err == nil {
			_, err = c.Focus(ctx)
		}
		end := process.Mono()
		for _, k := range kinds {
			k.Began, k.Ended = t, end
			res.Acts = append(res.Acts, k)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", kinds[0].How, err))
		}
	}
	send := func(reqs ...*xwire.Request) func() error { return func() error { return c.Send(reqs...) } }

	act(send(focus(r.panel), r.fake(2, keyCode, 0, 0), r.fake(3, keyCode, 0, 0), focus(victim)),
		Act{Kind: FocusLeft, How: "SetInputFocus to another window and back"}, Act{Kind: InputLeaked, How: "XTEST key to another window"})

	// A popup over the person's window; the pointer goes there, clicks, and comes back.
	at := before.victim
	x, y := at.X+at.Width/2, at.Y+at.Height/2
	px, py := before.pointerX, before.pointerY
	act(send(
		xwire.Req(12, 0).U32(r.popup).U16(0x43, 0).U32(uint32(int32(x-popupPx/2)), uint32(int32(y-popupPx/2)), 0), xwire.Req(8, 0).U32(r.popup),
		warp(c.Root, x, y), r.fake(6, 0, x+5, y+5), r.fake(4, 1, 0, 0), r.fake(5, 1, 0, 0), warp(c.Root, px, py),
		xwire.Req(10, 0).U32(r.popup)),
		Act{Kind: WindowAbovePerson, How: "override-redirect window mapped and unmapped"}, Act{Kind: PointerWarped, How: "WarpPointer there and back"},
		Act{Kind: PointerMoved, How: "XTEST motion"}, Act{Kind: InputLeaked, How: "XTEST button to another window"})

	act(send(xwire.SendEvent(victim, 1, r.forgedKey(victim))), Act{Kind: InputForged, How: "SendEvent of a key press"})
	act(func() error {
		return r.grab(ctx, xwire.Req(26, 1).U32(c.Root).U16(4|64).U8(1, 1).U32(0, 0, 0), xwire.Req(27, 0).U32(0))
	},
		Act{Kind: PointerGrabbed, How: "GrabPointer and UngrabPointer"})
	act(func() error {
		return r.grab(ctx, xwire.Req(31, 1).U32(c.Root, 0).U8(1, 1, 0, 0), xwire.Req(32, 0).U32(0))
	},
		Act{Kind: KeyboardGrabbed, How: "GrabKeyboard and UngrabKeyboard"})
	// Control, Mod3 and Mod5 together: nobody's hot key.
	act(send(xwire.Req(33, 1).U32(c.Root).U16(4|32|128).U8(keyCode, 1, 1, 0), xwire.Req(34, keyCode).U32(c.Root).U16(4|32|128, 0)),
		Act{Kind: HotkeyGrabbed, How: "GrabKey and UngrabKey"})
	act(send(xwire.Req(22, 0).U32(r.taker, a["CLIPBOARD"], 0), xwire.Req(22, 0).U32(r.panel, a["CLIPBOARD"], 0)), Act{Kind: ClipboardTaken, How: "SetSelectionOwner CLIPBOARD"})
	act(send(xwire.Req(22, 0).U32(r.taker, 1, 0), xwire.Req(22, 0).U32(r.panel, 1, 0)), Act{Kind: PrimaryTaken, How: "SetSelectionOwner PRIMARY"})
	opacity := func(win uint32) []*xwire.Request {
		return []*xwire.Request{xwire.SetProperty(win, a["_NET_WM_WINDOW_OPACITY"], 6, 32, xwire.Words32(0x7fffffff)), xwire.Req(19, 0).U32(win, a["_NET_WM_WINDOW_OPACITY"])}
	}
	act(send(append(opacity(r.panel), opacity(victim)...)...), Act{Kind: OpacityChanged, How: "_NET_WM_WINDOW_OPACITY set and deleted"})
	act(send(hints(r.panel, 256), hints(r.panel, 0)), Act{Kind: UrgencyRaised, How: "urgency hint set and cleared"})
	act(send(xwire.Req(36, 0), xwire.Req(37, 0)), Act{Kind: ServerGrabbed, How: "GrabServer and UngrabServer"})
	act(func() error {
		_, err := c.Call(ctx, xwire.Req(73, 2).U32(victim).I16(at.Width/2, at.Height/2).U16(1, 1).U32(0xffffffff))
		return err
	}, Act{Kind: WindowRead, How: "GetImage of one pixel of the person's window"})

	if r.buses != nil {
		act(func() error { return r.buses.Act(ctx) }, Act{Kind: BusAction, How: "Activate of the person's application over the session bus"})
		act(func() error { return r.buses.Press(ctx) }, Act{Kind: AccessibilityAction, How: "DoAction of a control of the person's application over the accessibility bus"})
	}

	// The rest goes through the window manager, which handles what it gets one after the other; so one wait
	// is enough before the focus, which it gives away, is taken back.
	dx := at.Width / 2
	if at.X+at.Width/2 > c.Width/2 {
		dx = -dx
	}
	move := func(to int) *xwire.Request {
		return c.ToManager(victim, a["_NET_MOVERESIZE_WINDOW"], 10|0x100|0x2000, uint32(int32(to)))
	}
	act(func() error {
		return errors.Join(
			c.Send(stack(r.panel, 0), stack(r.panel, 1), move(at.X+dx), move(at.X), c.ToManager(r.panel, a["_NET_ACTIVE_WINDOW"], 2, 0, 0)), r.settle(ctx),
			c.Send(focus(victim), stack(r.panel, 1)), r.settle(ctx))
	}, Act{Kind: StackingChanged, How: "ConfigureWindow above and below"}, Act{Kind: CoverChanged, How: "the person's window moved by half its width and back"},
		Act{Kind: FocusLeft, How: "_NET_ACTIVE_WINDOW for another window"})

	return r.finish(ctx, began, before, victim, res, errs)
}

// commitOnce does the acts of KindsOnce.
func (r *role) commitOnce(ctx context.Context, victim uint32) (Result, error) {
	began := process.Mono()
	before, err := r.baseline(ctx, victim)
	if err != nil {
		return Result{}, err
	}
	var res Result
	var errs []error
	for _, do := range []struct {
		act Act
		f   func(context.Context) error
	}{
		{Act{Kind: KeymapChanged, How: "ChangeKeyboardMapping of one key and back"}, r.changeKeymap},
		{Act{Kind: MasterAdded, How: "XIChangeHierarchy: master added and removed"}, r.addMaster},
		{Act{Kind: WorkspaceChanged, How: "_NET_CURRENT_DESKTOP to another and back"}, r.changeWorkspace},
		{Act{Kind: OutputChanged, How: "RandR property of an output written and deleted"}, r.changeOutput},
	} {
		do.act.Began = process.Mono()
		err := do.f(ctx)
		if err == nil {
			err = r.settle(ctx)
		}
		do.act.Ended = process.Mono()
		res.Acts = append(res.Acts, do.act)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", do.act.How, err))
		}
	}
	// A manager that comes back to a workspace chooses the focus itself.
	errs = append(errs, r.c.Send(focus(before.focus)))
	return r.finish(ctx, began, before, victim, res, errs)
}

// restoredWithin bounds the wait for the desk to be as before.
const restoredWithin = 3 * time.Second

// finish waits until the desk is as before.
func (r *role) finish(ctx context.Context, began int64, before baseline, victim uint32, res Result, errs []error) (Result, error) {
	until := time.Now().Add(restoredWithin)
	for {
		after, err := r.baseline(ctx, victim)
		if err != nil {
			return res, err
		}
		if res.Differences = before.differences(after); len(res.Differences) == 0 || time.Now().After(until) {
			break
		}
		if err := r.settle(ctx); err != nil {
			return res, err
		}
		t := time.NewTimer(5 * time.Millisecond)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return res, ctx.Err()
		}
	}
	for _, e := range r.c.Errors() {
		errs = append(errs, e)
	}
	res.Took = time.Duration(process.Mono() - began)
	return res, errors.Join(errs...)
}

func hints(win, urgent uint32) *xwire.Request {
	return xwire.SetProperty(win, 35, 35, 32, xwire.Words32(1|urgent, 1, 0, 0, 0, 0, 0, 0, 0))
}

func (r *role) forgedKey(victim uint32) []byte {
	ev := make([]byte, 32)
	ev[0], ev[1], ev[30] = 2, keyCode, 1
	le.PutUint32(ev[8:], r.c.Root)
	le.PutUint32(ev[12:], victim)
	return ev
}

func (r *role) grab(ctx context.Context, grab, release *xwire.Request) error {
	b, err := r.c.Call(ctx, grab)
	if err != nil {
		return err
	}
	if err := r.c.Send(release); err != nil {
		return err
	}
	if b[1] != 0 {
		return fmt.Errorf("grab refused with status %d", b[1])
	}
	return nil
}

func (r *role) settle(ctx context.Context) error {
	if _, err := r.c.Focus(ctx); err != nil {
		return err
	}
	return r.trip.Do(ctx)
}

func (r *role) changeKeymap(ctx context.Context) error {
	code := r.c.MaxKeycode
	b, err := r.c.Call(ctx, xwire.Req(101, 0).U8(code, 1, 0, 0))
	if err != nil {
		return err
	}
	per := b[1]
	if per == 0 || len(b) < 32+4*int(per) {
		return errors.New("keyboard map is empty")
	}
	old := b[32 : 32+4*int(per)]
	changed := slices.Clone(old)
	le.PutUint32(changed, 0x1002620) // Unicode U+2620
	if slices.Equal(old, changed) {
		return errors.New("keyboard map has the control's symbol already")
	}
	set := func(syms []byte) *xwire.Request { return xwire.Req(100, 1).U8(code, per, 0, 0).Bytes(syms) }
	if err := r.c.Send(set(changed), set(old)); err != nil {
		return err
	}
	b, err = r.c.Call(ctx, xwire.Req(101, 0).U8(code, 1, 0, 0))
	if err == nil && !slices.Equal(b[32:32+len(old)], old) {
		err = errors.New("keyboard map was not restored")
	}
	return err
}

func (r *role) addMaster(ctx context.Context) error {
	const name = "temp" // four bytes: one unit
	add := xwire.Req(r.xi, 43).U8(1, 0, 0, 0).U16(1, 3, uint16(len(name))).U8(0, 1).Bytes([]byte(name))
	if err := r.c.Send(add); err != nil {
		return err
	}
	b, err := r.c.Call(ctx, xwire.Req(r.xi, 48).U16(0, 0))
	if err != nil {
		return err
	}
	id, err := findDevice(b, name+" pointer")
	if err != nil {
		return err
	}
	// RemoveMaster; its slaves, of which it has its own two XTEST devices only, float.
	return r.c.Send(xwire.Req(r.xi, 43).U8(1, 0, 0, 0).U16(2, 3, id).U8(2, 0).U16(0, 0))
}

// findDevice reads a reply of XIQueryDevice.
func findDevice(b []byte, name string) (uint16, error) {
	short := errors.New("device list is too short")
	if len(b) < 32 {
		return 0, short
	}
	n := int(le.Uint16(b[8:]))
	b = b[32:]
	for range n {
		if len(b) < 12 {
			return 0, short
		}
		id, classes, length := le.Uint16(b), int(le.Uint16(b[6:])), int(le.Uint16(b[8:]))
		b = b[12:]
		if len(b) < (length+3)/4*4 {
			return 0, short
		}
		if string(b[:length]) == name {
			return id, nil
		}
		b = b[(length+3)/4*4:]
		for range classes {
			if len(b) < 4 {
				return 0, short
			}
			size := int(le.Uint16(b[2:])) * 4
			if size < 4 || size > len(b) {
				return 0, short
			}
			b = b[size:]
		}
	}
	return 0, fmt.Errorf("no device %q", name)
}

// changeOutput writes a property of the first output and deletes it: nothing that is shown changes.
func (r *role) changeOutput(ctx context.Context) error {
	b, err := r.c.Call(ctx, xwire.Req(r.randr, 8).U32(r.c.Root)) // RRGetScreenResources
	if err != nil {
		return err
	}
	if len(b) < 32 {
		return errors.New("screen resources are too short")
	}
	crtcs, outputs := int(le.Uint16(b[16:])), int(le.Uint16(b[18:]))
	at := 32 + 4*crtcs
	if outputs == 0 || len(b) < at+4 {
		return fmt.Errorf("the screen has %d outputs, want one or more", outputs)
	}
	output, name := le.Uint32(b[at:]), r.atoms["_ACCEPTANCE_CONTROL"]
	return r.c.Send(
		xwire.Req(r.randr, 13).U32(output, name, 6).U8(32, 0, 0, 0).U32(1, 1), // RRChangeOutputProperty: CARDINAL, one of 32 bits
		xwire.Req(r.randr, 14).U32(output, name))                              // RRDeleteOutputProperty
}

func (r *role) changeWorkspace(ctx context.Context) error {
	count, err := r.c.Words(ctx, r.c.Root, "_NET_NUMBER_OF_DESKTOPS")
	if err != nil {
		return err
	}
	now, err := r.c.Words(ctx, r.c.Root, "_NET_CURRENT_DESKTOP")
	if err != nil {
		return err
	}
	if len(count) != 1 || len(now) != 1 || count[0] < 2 {
		return fmt.Errorf("window manager has workspaces %v, at %v; want two or more", count, now)
	}
	desktop := r.atoms["_NET_CURRENT_DESKTOP"]
	err = errors.Join(r.c.Send(r.c.ToManager(r.c.Root, desktop, (now[0]+1)%count[0])), r.settle(ctx), r.c.Send(r.c.ToManager(r.c.Root, desktop, now[0])), r.settle(ctx))
	if err != nil {
		return err
	}
	return r.clearPopups(ctx)
}

// clearPopups takes away what the window manager shows for a while because of what was just done: openbox the name of the workspace, for 875 ms, over
// the person's window. It takes it away once more itself, to no effect.
func (r *role) clearPopups(ctx context.Context) error {
	check, err := r.c.Words(ctx, r.c.Root, "_NET_SUPPORTING_WM_CHECK")
	if err != nil || len(check) != 1 {
		return err
	}
	popups, err := r.c.Popups(ctx, check[0])
	if err != nil {
		return err
	}
	for _, w := range popups {
		if err := r.c.Send(xwire.Req(10, 0).U32(w)); err != nil {
			return err
		}
	}
	return nil
}
