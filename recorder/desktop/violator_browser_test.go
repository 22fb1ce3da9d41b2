//go:build browser

package desktop

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/recorder/x11"
)

// violatorEnv makes the test binary the violator: a program that commits each kind of disturbance and undoes it
// at once, as a browser engine might by accident or in the hope not to be seen.
const violatorEnv = "ACCEPTANCE_DESK_VIOLATOR"

type offender struct {
	c              *x11.Conn
	person, target uint32
	mine, popup    uint32
	atoms          map[string]uint32
	xi, fixes      x11.Extension
	shape, comp    x11.Extension
	n              int
	bus            busOffender
	kept           net.Conn // a connection of its own, closed by the next command
}

// violatorMain reads commands, one a line: "init PERSON TARGET", "KIND HOLD". It answers ok or the error.
func violatorMain(in io.Reader, out, errs io.Writer) int {
	o := &offender{atoms: map[string]uint32{}}
	sc := bufio.NewScanner(in)
	for sc.Scan() {
		answer := "ok"
		if err := o.command(sc.Text()); err != nil {
			answer = strings.ReplaceAll(err.Error(), "\n", " ")
		}
		if _, err := fmt.Fprintln(out, answer); err != nil {
			fmt.Fprintln(errs, err)
			return 1
		}
	}
	return 0
}

func (o *offender) command(line string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	f := strings.Fields(line)
	if f[0] == "init" {
		if _, err := fmt.Sscan(f[1], &o.person); err != nil {
			return err
		}
		if _, err := fmt.Sscan(f[2], &o.target); err != nil {
			return err
		}
		return o.init(ctx)
	}
	if f[0] == "bus" {
		return o.bus.init(f[1])
	}
	if strings.HasPrefix(f[0], "bus_") || strings.HasPrefix(f[0], "access_") {
		return o.bus.offend(f[0])
	}
	hold, err := time.ParseDuration(f[1])
	if err != nil {
		return err
	}
	return o.offend(ctx, f[0], hold)
}

func (o *offender) init(ctx context.Context) (err error) {
	if o.c, err = x11.Dial(ctx, os.Getenv("DISPLAY"), os.Getenv("XAUTHORITY")); err != nil {
		return err
	}
	o.c.Handle(x11.Handler{Error: func(e *x11.XError) { fmt.Fprintln(os.Stderr, "violator:", e) }})
	for _, name := range []string{"_NET_ACTIVE_WINDOW", "CLIPBOARD", "_NET_WM_WINDOW_OPACITY", "_NET_CURRENT_DESKTOP", "_NET_WM_STATE",
		"_NET_WM_STATE_DEMANDS_ATTENTION", "XdndEnter", "WM_PROTOCOLS", "WM_DELETE_WINDOW", "_NET_RESTACK_WINDOW",
		"_NET_CLOSE_WINDOW", "_NET_MOVERESIZE_WINDOW"} {
		if o.atoms[name], err = o.c.Atom(ctx, name); err != nil {
			return err
		}
	}
	if o.xi, err = o.c.UseInput(ctx); err != nil {
		return err
	}
	if o.fixes, err = o.c.UseFixes(ctx); err != nil {
		return err
	}
	if _, err = o.c.Call(ctx, x11.NewRequest(o.fixes.Major, 0).U32(5, 0)); err != nil { // hiding the cursor is of version 4, barriers of 5
		return err
	}
	if o.shape, err = o.c.Extension(ctx, x11.ExtShape); err != nil {
		return err
	}
	if o.comp, err = o.c.Extension(ctx, x11.ExtComposite); err != nil {
		return err
	}
	if _, err = o.c.Extension(ctx, x11.ExtTest); err != nil {
		return err
	}
	if o.mine, err = o.c.CreateWindow(ctx, x11.WindowOptions{X: 320, Y: 280, Width: 400, Height: 300, Background: 0xaa3333}); err != nil {
		return err
	}
	hints := make([]byte, 72)
	hints[0] = 3
	if err := o.c.Send(ctx, x11.SetTitle(o.mine, "offender"), x11.ChangeProperty(o.mine, x11.AtomNormalHint, x11.AtomSizeHints, 32, hints),
		x11.MapWindow(o.mine)); err != nil {
		return err
	}
	if o.popup, err = o.c.CreateWindow(ctx, x11.WindowOptions{X: 200, Y: 200, Width: 100, Height: 100, OverrideRedirect: true}); err != nil {
		return err
	}
	for {
		a, err := o.c.Attributes(ctx, o.mine)
		if err != nil || a.Viewable {
			return err
		}
	}
}

// both sends do and undo: in one write without hold, else with hold between.
func (o *offender) both(ctx context.Context, hold time.Duration, do, undo *x11.Request) error {
	if hold == 0 {
		if err := o.c.Send(ctx, do, undo); err != nil {
			return err
		}
		return o.c.Sync(ctx)
	}
	if err := o.c.Send(ctx, do); err != nil {
		return err
	}
	if err := o.c.Sync(ctx); err != nil {
		return err
	}
	for t := time.Now(); time.Since(t) < hold; { // exact to the microsecond, which a timer is not
	}
	if err := o.c.Send(ctx, undo); err != nil {
		return err
	}
	return o.c.Sync(ctx)
}

func (o *offender) fake(ctx context.Context, code, detail byte, x, y int16) *x11.Request {
	r, err := o.c.FakeInput(ctx, code, detail, x, y)
	if err != nil {
		return x11.NewRequest(127, 0)
	}
	return r
}

func (o *offender) offend(ctx context.Context, kind string, hold time.Duration) error {
	c := o.c
	root := c.Root()
	both := func(do, undo *x11.Request) error { return o.both(ctx, hold, do, undo) }
	message := func(w uint32, name string, v ...uint32) *x11.Request { return c.RootMessage(w, o.atoms[name], v...) }
	xiWarp := func(x, y uint32) *x11.Request {
		return x11.NewRequest(o.xi.Major, 41).U32(0, root, 0, 0).U16(0, 0).U32(x<<16, y<<16).U16(2, 0)
	}
	o.n++
	switch kind {
	case "none":
		return c.Sync(ctx)
	case "focus":
		return both(x11.SetInputFocus(o.mine), x11.SetInputFocus(o.person))
	case "focus_none":
		return both(x11.SetInputFocus(0), x11.SetInputFocus(o.person))
	case "xi_focus":
		xf := func(w uint32) *x11.Request { return x11.NewRequest(o.xi.Major, 49).U32(w, 0).U16(3, 0) }
		return both(xf(o.mine), xf(o.person))
	case "activate":
		return both(message(o.mine, "_NET_ACTIVE_WINDOW", 2, 0, 0), message(o.person, "_NET_ACTIVE_WINDOW", 2, 0, 0))
	case "raise":
		return both(x11.Restack(o.mine, 0, x11.Above), x11.Restack(o.mine, 0, x11.Below))
	case "popup":
		return both(x11.MapWindow(o.popup), x11.UnmapWindow(o.popup))
	case "popup_throwaway": // made, mapped and destroyed in one write
		id := c.NewID()
		create := x11.NewRequest(1, 0).U32(id, root).I16(150, 150).U16(50, 50, 0, 1).U32(0, 2|0x200, 0xff, 1)
		if err := c.Send(ctx, create, x11.MapWindow(id), x11.DestroyWindow(id)); err != nil {
			return err
		}
		return c.Sync(ctx)
	case "popup_input_only":
		id := c.NewID()
		create := x11.NewRequest(1, 0).U32(id, root).I16(150, 150).U16(50, 50, 0, 2).U32(0, 0x200, 1)
		if err := c.Send(ctx, create, x11.MapWindow(id), x11.DestroyWindow(id)); err != nil {
			return err
		}
		return c.Sync(ctx)
	case "move_person":
		return both(x11.MoveWindow(o.person, 130, 120), x11.MoveWindow(o.person, 101, 121))
	case "warp":
		return both(c.WarpPointer(390, 330), c.WarpPointer(350, 300))
	case "xi_warp":
		return both(xiWarp(390, 330), xiWarp(350, 300))
	case "test_motion":
		return both(o.fake(ctx, x11.MotionNotify, 0, 390, 330), o.fake(ctx, x11.MotionNotify, 0, 350, 300))
	case "test_key":
		return both(o.fake(ctx, x11.KeyPress, 38, 0, 0), o.fake(ctx, x11.KeyRelease, 38, 0, 0))
	case "test_button":
		return both(o.fake(ctx, x11.ButtonPress, 1, 0, 0), o.fake(ctx, x11.ButtonRelease, 1, 0, 0))
	case "send_key":
		return both(x11.SendEvent(o.person, x11.MaskKeyPress, 0, c.InputEvent(x11.KeyPress, 38, o.person)),
			x11.SendEvent(o.person, x11.MaskKeyRelease, 0, c.InputEvent(x11.KeyRelease, 38, o.person)))
	case "send_key_focus": // to whoever has the focus
		return both(x11.SendEvent(1, x11.MaskKeyPress, 0, c.InputEvent(x11.KeyPress, 38, o.person)),
			x11.SendEvent(1, x11.MaskKeyRelease, 0, c.InputEvent(x11.KeyRelease, 38, o.person)))
	case "send_button":
		return both(x11.SendEvent(o.person, x11.MaskButtonPress, 0, c.InputEvent(x11.ButtonPress, 1, o.person)),
			x11.SendEvent(o.person, x11.MaskButtonRelease, 0, c.InputEvent(x11.ButtonRelease, 1, o.person)))
	case "send_message":
		return both(x11.SendEvent(o.person, 0, 0, x11.ClientMessageEvent(o.person, 400, 1)), x11.SendEvent(o.person, 0, 0, x11.ClientMessageEvent(o.person, 400, 2)))
	case "send_drag":
		return both(x11.SendEvent(o.person, 0, 0, x11.ClientMessageEvent(o.person, o.atoms["XdndEnter"], o.mine)), c.WarpPointer(350, 300))
	case "grab_pointer":
		return both(x11.NewRequest(26, 1).U32(root).U16(4|64).U8(1, 1).U32(0, 0, 0), x11.NewRequest(27, 0).U32(0))
	case "xi_grab_pointer":
		return both(x11.NewRequest(o.xi.Major, 51).U32(root, 0, 0).U16(2).U8(1, 1, 0, 0).U16(1).U32(1<<4|1<<5),
			x11.NewRequest(o.xi.Major, 52).U32(0).U16(2, 0))
	case "grab_keyboard":
		return both(x11.NewRequest(31, 1).U32(root, 0).U8(1, 1), x11.NewRequest(32, 0).U32(0))
	case "xi_grab_keyboard":
		return both(x11.NewRequest(o.xi.Major, 51).U32(root, 0, 0).U16(3).U8(1, 1, 0, 0).U16(1).U32(1<<2|1<<3),
			x11.NewRequest(o.xi.Major, 52).U32(0).U16(3, 0))
	case "grab_key":
		return both(x11.NewRequest(33, 1).U32(root).U16(0).U8(39, 1, 1), x11.NewRequest(34, 39).U32(root).U16(0, 0))
	case "master":
		return o.master(ctx)
	case "clipboard":
		return both(x11.SetSelectionOwner(o.mine, o.atoms["CLIPBOARD"]), x11.SetSelectionOwner(0, o.atoms["CLIPBOARD"]))
	case "primary":
		return both(x11.SetSelectionOwner(o.mine, x11.AtomPrimary), x11.SetSelectionOwner(0, x11.AtomPrimary))
	case "keymap":
		km := func(a, b uint32) *x11.Request { return x11.NewRequest(100, 1).U8(255, 2, 0, 0).U32(a, b) }
		return both(km(0x61+uint32(o.n%20), 0x61), km(0, 0))
	case "modifiers":
		kb, err := c.Extension(ctx, x11.ExtKeyboard)
		if err != nil {
			return err
		}
		lock := func(v byte) *x11.Request { // LatchLockState: device, affect locks, locks
			return x11.NewRequest(kb.Major, 5).U16(0x100).U8(2, v, 0, 0).U16(0).U8(0, 0).U16(0)
		}
		if _, err := c.Call(ctx, x11.NewRequest(kb.Major, 0).U16(1, 0)); err != nil {
			return err
		}
		return both(lock(2), lock(0))
	case "grab_server":
		return o.grabServer(ctx)
	case "opacity":
		a := o.atoms["_NET_WM_WINDOW_OPACITY"]
		return both(x11.ChangeProperty32(o.person, a, x11.AtomCardinal, 0), x11.DeleteProperty(o.person, a))
	case "shape":
		mask := func(op byte, rects ...uint16) *x11.Request {
			return x11.NewRequest(o.shape.Major, 1).U8(op, 0, 0, 0).U32(o.person).I16(0, 0).U16(rects...)
		}
		whole := x11.NewRequest(o.shape.Major, 2).U8(0, 0, 0, 0).U32(o.person).I16(0, 0).U32(0)
		return both(mask(0, 0, 0, 10, 10), whole)
	case "hide_cursor":
		return both(x11.NewRequest(o.fixes.Major, 29).U32(root), x11.NewRequest(o.fixes.Major, 30).U32(root))
	case "overlay":
		if _, err := c.Call(ctx, x11.NewRequest(o.comp.Major, 0).U32(0, 4)); err != nil {
			return err
		}
		if _, err := c.Call(ctx, x11.NewRequest(o.comp.Major, 7).U32(root)); err != nil {
			return err
		}
		return c.Send(ctx, x11.NewRequest(o.comp.Major, 8).U32(root))
	case "workspace":
		return both(message(root, "_NET_CURRENT_DESKTOP", 1, 0), message(root, "_NET_CURRENT_DESKTOP", 0, 0))
	case "urgency":
		hints := func(flags uint32) *x11.Request {
			return x11.ChangeProperty32(o.mine, x11.AtomWMHints, x11.AtomWMHints, flags, 0, 0, 0, 0, 0, 0, 0, 0)
		}
		return both(hints(1<<8), hints(0))
	case "urgency_state":
		a, b := o.atoms["_NET_WM_STATE"], o.atoms["_NET_WM_STATE_DEMANDS_ATTENTION"]
		return both(c.RootMessage(o.mine, a, 1, b, 0, 1), c.RootMessage(o.mine, a, 0, b, 0, 1))
	case "read_person":
		_, err := c.Call(ctx, x11.NewRequest(73, 2).U32(o.person).I16(0, 0).U16(10, 10).U32(0xffffffff))
		return err
	case "read_shm": // MIT-SHM GetImage; the segment need not be there for the request to be made
		shm, err := c.Extension(ctx, x11.ExtShm)
		if err != nil {
			return err
		}
		_, err = c.Call(ctx, x11.NewRequest(shm.Major, 4).U32(o.person).I16(0, 0).U16(10, 10).U32(0xffffffff).U8(2, 0, 0, 0).U32(c.NewID(), 0))
		var refused *x11.XError
		if errors.As(err, &refused) {
			return nil
		}
		return err
	case "read_composite":
		return o.refusable(ctx, x11.NewRequest(o.comp.Major, 6).U32(o.person, c.NewID()))
	case "read_property":
		_, err := c.Property(ctx, o.person, x11.AtomWMName, 100)
		return err
	case "listen":
		return both(x11.SelectInput(o.person, x11.MaskKeyPress), x11.SelectInput(o.person, 0))
	case "xi_listen": // raw keys of everybody, wherever the focus is
		xs := func(mask uint32) *x11.Request {
			return x11.NewRequest(o.xi.Major, 46).U32(root).U16(1, 0).U16(1, 1).U32(mask)
		}
		return both(xs(1<<x11.XIRawKeyPress), xs(0))
	case "grab_button": // any click on the root's windows
		return both(x11.NewRequest(28, 1).U32(root).U16(4).U8(1, 1).U32(0, 0).U8(9, 0).U16(0x8000), x11.NewRequest(29, 9).U32(root).U16(0x8000, 0))
	case "barrier":
		id := c.NewID()
		return both(x11.NewRequest(o.fixes.Major, 31).U32(id, root).U16(640, 0, 640, 800).U32(0).U16(0, 0), x11.NewRequest(o.fixes.Major, 32).U32(id))
	case "output":
		return o.output(ctx)
	case "restack_message":
		return both(message(o.mine, "_NET_RESTACK_WINDOW", 2, o.person, uint32(x11.Above)), message(o.mine, "_NET_RESTACK_WINDOW", 2, 0, uint32(x11.Below)))
	case "move_message":
		return both(message(o.person, "_NET_MOVERESIZE_WINDOW", 10|0x100|0x200|0x2000, 130, 120), message(o.person, "_NET_MOVERESIZE_WINDOW", 10|0x100|0x200|0x2000, 101, 121))
	case "kill_client": // of a window that is not there: the request alone counts
		return o.refusable(ctx, x11.NewRequest(113, 0).U32(o.mine|0xffff))
	case "malformed":
		return o.malformed(ctx)
	case "warp_swapped":
		return o.keep(rawWarp(true, false))
	case "warp_long":
		return o.keep(rawWarp(false, true))
	case "warp_short_lived":
		nc, err := rawWarp(false, false)
		if err != nil {
			return err
		}
		return nc.Close()
	case "paced": // a second of a person's motion, 50 times there and back
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for range 50 {
			<-tick.C
			if err := both(o.fake(ctx, x11.MotionNotify, 0, 390, 330), o.fake(ctx, x11.MotionNotify, 0, 350, 300)); err != nil {
				return err
			}
		}
		return nil
	case "flood":
		return o.flood(ctx)
	case "huge_property":
		return o.hugeProperty(ctx)
	}
	return fmt.Errorf("unknown kind %q", kind)
}

// refusable sends a request that the server may refuse.
func (o *offender) refusable(ctx context.Context, r *x11.Request) error {
	o.c.Handle(x11.Handler{}) // without a word
	defer o.c.Handle(x11.Handler{Error: func(e *x11.XError) { fmt.Fprintln(os.Stderr, "violator:", e) }})
	if err := o.c.Send(ctx, r); err != nil {
		return err
	}
	return o.c.Sync(ctx)
}

// output writes a property of the first output and deletes it.
func (o *offender) output(ctx context.Context) error {
	randr, err := o.c.UseRandR(ctx)
	if err != nil {
		return err
	}
	r, err := o.c.Call(ctx, x11.NewRequest(randr.Major, 8).U32(o.c.Root()))
	if err != nil {
		return err
	}
	output, name := r.U32(32+4*int(r.U16(16))), o.atoms["XdndEnter"]
	if err := o.c.Send(ctx, x11.NewRequest(randr.Major, 13).U32(output, name, x11.AtomCardinal).U8(32, 0, 0, 0).U32(1, 1),
		x11.NewRequest(randr.Major, 14).U32(output, name)); err != nil {
		return err
	}
	return o.c.Sync(ctx)
}

// malformed sends what nobody should: messages of no format, about no window, of an atom that is not there, events of codes that do not
// exist, to windows of everybody; and then warps.
func (o *offender) malformed(ctx context.Context) error {
	for i := range 256 {
		event := make([]byte, 32)
		for j := range event {
			event[j] = byte(i * (j + 7))
		}
		if i%2 == 0 {
			event[0], event[1] = x11.ClientMessage, byte(i)
		}
		for _, w := range []uint32{o.c.Root(), o.target, o.mine} {
			// The server refuses codes beyond its last event: as an answer to nobody.
			if err := o.refusable(ctx, x11.SendEvent(w, 0xffffff&^(x11.MaskSubstructure|x11.MaskSubstructureDirect), 0, event)); err != nil {
				return err
			}
		}
	}
	if err := o.c.Send(ctx, o.c.WarpPointer(390, 330), o.c.WarpPointer(350, 300)); err != nil {
		return err
	}
	return o.c.Sync(ctx)
}

func (o *offender) keep(nc net.Conn, err error) error {
	if o.kept != nil {
		_ = o.kept.Close() // served its purpose
	}
	o.kept = nc
	return err
}

// master adds a second master pointer and removes it again.
func (o *offender) master(ctx context.Context) error {
	name := fmt.Sprintf("second %d", o.n)
	add := x11.NewRequest(o.xi.Major, 43).U8(1, 0, 0, 0).U16(1, uint16(2+(len(name)+3)/4), uint16(len(name))).U8(0, 1).Text(name)
	if err := o.c.Send(ctx, add); err != nil {
		return err
	}
	devices, err := o.c.Devices(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(devices, func(d x11.Device) bool { return d.Name == name+" pointer" })
	if i < 0 {
		return fmt.Errorf("no device %q came", name)
	}
	remove := x11.NewRequest(o.xi.Major, 43).U8(1, 0, 0, 0).U16(2, 3, devices[i].ID).U8(2, 0).U16(0, 0)
	if err := o.c.Send(ctx, remove); err != nil {
		return err
	}
	return o.c.Sync(ctx)
}

// grabServer steals the focus and warps, and undoes both, while no other client can look.
func (o *offender) grabServer(ctx context.Context) error {
	if err := o.c.Send(ctx, x11.NewRequest(36, 0), x11.SetInputFocus(o.mine), o.c.WarpPointer(390, 330),
		x11.SetInputFocus(o.person), o.c.WarpPointer(350, 300), x11.NewRequest(37, 0)); err != nil {
		return err
	}
	return o.c.Sync(ctx)
}

// flood writes 100,000 property changes of a root child and moves it, as fast as the server takes them.
func (o *offender) flood(ctx context.Context) error {
	batch := make([]*x11.Request, 0, 1000)
	for i := range 100 {
		batch = batch[:0]
		for j := range 500 {
			batch = append(batch, x11.MoveWindow(o.popup, int16(700+(i+j)%50), 50), x11.ChangeProperty32(o.popup, x11.AtomWMName, x11.AtomString, uint32(j)))
		}
		if err := o.c.Send(ctx, batch...); err != nil {
			return err
		}
		if err := o.c.Sync(ctx); err != nil {
			return err
		}
	}
	return nil
}

// hugeProperty writes properties of 200 kB, and then warps.
func (o *offender) hugeProperty(ctx context.Context) error {
	for range 20 {
		if err := o.c.Send(ctx, x11.ChangeProperty(o.popup, x11.AtomWMName, x11.AtomString, 8, make([]byte, 200_000))); err != nil {
			return err
		}
	}
	if err := o.c.Send(ctx, o.c.WarpPointer(390, 330), o.c.WarpPointer(350, 300)); err != nil {
		return err
	}
	return o.c.Sync(ctx)
}

// rawWarp connects anew, warps there and back: in the other byte order, or with the long form of the
// length (BIG-REQUESTS).
func rawWarp(swapped, long bool) (_ net.Conn, err error) {
	order := binary.ByteOrder(binary.LittleEndian)
	if swapped {
		order = binary.BigEndian
	}
	display := strings.TrimPrefix(os.Getenv("DISPLAY"), ":")
	f, err := os.Open(os.Getenv("XAUTHORITY"))
	if err != nil {
		return nil, err
	}
	entries, err := x11.ParseAuthority(f)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	nc, err := net.Dial("unix", "/tmp/.X11-unix/X"+display)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = nc.Close()
		}
	}()
	u16 := func(b []byte, v ...uint16) []byte {
		for _, x := range v {
			b = append(b, 0, 0)
			order.PutUint16(b[len(b)-2:], x)
		}
		return b
	}
	u32 := func(b []byte, v ...uint32) []byte {
		for _, x := range v {
			b = append(b, 0, 0, 0, 0)
			order.PutUint32(b[len(b)-4:], x)
		}
		return b
	}
	first := byte('l')
	if swapped {
		first = 'B'
	}
	setup := u16([]byte{first, 0}, 11, 0, uint16(len(entries[0].Name)), uint16(len(entries[0].Data)), 0)
	setup = append(setup, entries[0].Name...)
	setup = append(setup, make([]byte, -len(setup)&3)...)
	setup = append(setup, entries[0].Data...)
	if _, err := nc.Write(setup); err != nil {
		return nil, err
	}
	head := make([]byte, 8)
	if _, err := io.ReadFull(nc, head); err != nil {
		return nil, err
	}
	body := make([]byte, 4*int(order.Uint16(head[6:])))
	if _, err := io.ReadFull(nc, body); err != nil {
		return nil, err
	}
	root := order.Uint32(body[32+(int(order.Uint16(body[16:]))+3)/4*4+8*int(body[21]):])
	reply := make([]byte, 32)
	var out []byte
	if long {
		name := "BIG-REQUESTS"
		q := append(u16([]byte{98, 0}, uint16(2+len(name)/4), uint16(len(name)), 0), name...)
		if _, err := nc.Write(q); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(nc, reply); err != nil {
			return nil, err
		}
		if _, err := nc.Write(u16([]byte{reply[9], 0}, 1)); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(nc, reply); err != nil {
			return nil, err
		}
	}
	for _, p := range [][2]uint16{{390, 330}, {350, 300}} {
		if long {
			out = u32(u16([]byte{41, 0}, 0), 7)
		} else {
			out = u16([]byte{41, 0}, 6)
		}
		out = u16(u32(out, 0, root), 0, 0, 0, 0, p[0], p[1])
		if _, err := nc.Write(out); err != nil {
			return nil, err
		}
	}
	if _, err := nc.Write(u16([]byte{43, 0}, 1)); err != nil {
		return nil, err
	}
	for { // events may come first
		if _, err := io.ReadFull(nc, reply); err != nil {
			return nil, err
		}
		if reply[0] == 1 {
			return nc, nil
		}
	}
}
