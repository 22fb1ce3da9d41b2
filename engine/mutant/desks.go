package mutant

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
	"github.com/jezek/xgb/xtest"

	"github.com/engine-acceptance/acceptance/engine"
)

// desks are engines that do their work and touch the person's desk beside it, for one instant.
func desks() []Mutant {
	rows := []string{"focus-stays", "stacking-stays*", "pointer-stays", "input-does-not-leak", "person-works-on"}
	one := func(name, doing string, touch func(*xgb.Conn, xproto.Window), pairs ...string) Mutant {
		return Mutant{Name: name, Seam: SeamDesk, Text: doing, Rows: rows, Kills: kills(pairs...), parts: touching(touch)}
	}
	return []Mutant{
		one("steals-the-focus", "takes the focus and gives it back in one write, beside each text that it types", stealFocus, "D1", "focus_left"),
		one("raises-its-window", "raises the browser's window and lowers it again", raiseAndLower, "D2", "cover_changed", "D2", "stacking_changed", "D5", "window_above_person"),
		one("warps-the-pointer", "warps the pointer and back", warp, "D3", "pointer_moved", "D3", "pointer_warped"),
		one("types-into-the-desk", "presses a key through XTEST, which the focused window gets", pressKey, "D4", "input_leaked"),
		one("grabs-the-keyboard", "grabs the keyboard for half a second", grabKeyboard, "D6", "keyboard_grabbed", "D7", "person_input_lost"),
		{Name: "steals-the-focus-later", Seam: SeamDesk, Text: "takes the focus 20 ms after its reply", Rows: rows, Kills: kills("D1", "focus_left"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				r, err := n.Call(ctx, op, args)
				if op == engine.OpType {
					time.AfterFunc(20*time.Millisecond, func() { act(stealFocus) })
				}
				return r, err
			})},
	}
}

// touching does something to the desk beside each text that is typed.
func touching(f func(*xgb.Conn, xproto.Window)) func(*Parts) {
	return around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
		if op == engine.OpType {
			act(f)
		}
		return n.Call(ctx, op, args)
	})
}

// act opens a connection of its own to the display, does one thing, and waits until the server has done it.
func act(f func(*xgb.Conn, xproto.Window)) {
	c, err := xgb.NewConnDisplay(os.Getenv("DISPLAY"))
	if err != nil {
		return
	}
	defer c.Close()
	f(c, xproto.Setup(c).DefaultScreen(c).Root)
	_, _ = xproto.GetInputFocus(c).Reply()
}

func readFocus(c *xgb.Conn, _ xproto.Window) { _, _ = xproto.GetInputFocus(c).Reply() }

func stealFocus(c *xgb.Conn, root xproto.Window) {
	now, err := xproto.GetInputFocus(c).Reply()
	if err != nil {
		return
	}
	xproto.SetInputFocus(c, xproto.InputFocusParent, root, xproto.TimeCurrentTime)
	xproto.SetInputFocus(c, now.RevertTo, now.Focus, xproto.TimeCurrentTime)
}

// raiseAndLower asks the window manager to put the window that lies right below the topmost one above it, and back below it: the order is
// then the same as before.
func raiseAndLower(c *xgb.Conn, root xproto.Window) {
	name := "_NET_CLIENT_LIST_STACKING"
	atom, err := xproto.InternAtom(c, false, uint16(len(name)), name).Reply()
	if err != nil {
		return
	}
	list, err := xproto.GetProperty(c, false, root, atom.Atom, xproto.AtomWindow, 0, 256).Reply()
	if err != nil || len(list.Value) < 8 {
		return
	}
	top, below := xgb.Get32(list.Value[len(list.Value)-4:]), xproto.Window(xgb.Get32(list.Value[len(list.Value)-8:]))
	xproto.ConfigureWindow(c, below, xproto.ConfigWindowStackMode, []uint32{xproto.StackModeAbove})
	xproto.ConfigureWindow(c, below, xproto.ConfigWindowSibling|xproto.ConfigWindowStackMode, []uint32{top, xproto.StackModeBelow})
}

func warp(c *xgb.Conn, root xproto.Window) {
	p, err := xproto.QueryPointer(c, root).Reply()
	if err != nil {
		return
	}
	xproto.WarpPointer(c, 0, root, 0, 0, 0, 0, p.RootX+40, p.RootY+40)
	xproto.WarpPointer(c, 0, root, 0, 0, 0, 0, p.RootX, p.RootY)
}

func pressKey(c *xgb.Conn, root xproto.Window) {
	if xtest.Init(c) != nil {
		return
	}
	const code = 38 // the letter a on every layout that the desk has
	xtest.FakeInput(c, xproto.KeyPress, code, 0, root, 0, 0, 0)
	xtest.FakeInput(c, xproto.KeyRelease, code, 0, root, 0, 0, 0)
}

func grabKeyboard(c *xgb.Conn, root xproto.Window) {
	_, _ = xproto.GrabKeyboard(c, false, root, xproto.TimeCurrentTime, xproto.GrabModeAsync, xproto.GrabModeAsync).Reply()
	time.Sleep(500 * time.Millisecond)
	xproto.UngrabKeyboard(c, xproto.TimeCurrentTime)
}
