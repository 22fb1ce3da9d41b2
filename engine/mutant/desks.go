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

// later is how long after its reply a mutant touches the desk: the call's window of time is still open then.
const later = 20 * time.Millisecond

// desks are engines that do their work and touch the person's desk beside it: for one instant, and again with the touch after the reply.
func desks() []Mutant {
	everyRow := []string{"focus-stays", "stacking-stays*", "pointer-stays", "input-does-not-leak", "person-works-on"}
	var all []Mutant
	both := func(name, doing string, rows []string, touch func(*xgb.Conn, xproto.Window), pairs ...string) {
		all = append(all,
			Mutant{Name: name, Seam: SeamDesk, Text: doing + ", beside each text that it types", Rows: rows, Kills: kills(pairs...), parts: touching(touch)},
			Mutant{Name: name + "-later", Seam: SeamDesk, Text: doing + ", a moment after it said that a text is typed", Rows: rows, Kills: kills(pairs...), parts: touchingLater(touch)})
	}
	both("steals-the-focus", "takes the focus and gives it back in one write", everyRow, stealFocus, "D1", "focus_left")
	both("raises-its-window", "raises the browser's window and lowers it again", []string{"stacking-stays*", "person-works-on"}, raiseAndLower,
		"D2", "cover_changed", "D2", "stacking_changed", "D5", "window_above_person")
	both("warps-the-pointer", "warps the pointer and back", []string{"focus-stays", "pointer-stays"}, warp, "D3", "pointer_moved", "D3", "pointer_warped")
	both("grabs-the-pointer", "grabs the pointer and lets it go in one write", []string{"person-works-on"}, grabPointer, "D3", "pointer_grabbed")
	both("types-into-the-desk", "presses a key through XTEST, which the focused window gets", []string{"input-does-not-leak"}, pressKey, "D4", "input_leaked")
	both("forges-input", "sends a key event that no device made to the focused window", []string{"input-does-not-leak"}, forgeKey, "D4", "input_forged")
	both("shows-a-panel", "maps a window over the person's and unmaps it in one write", []string{"surfaces-none"}, showPanel, "D5", "window_above_person")
	both("asks-for-attention", "marks the browser's window as urgent and takes it back", []string{"surfaces-none"}, askAttention, "D5", "urgency_raised")
	both("makes-the-person-see-through", "makes the focused window transparent and opaque again", []string{"surfaces-none"}, fade, "D5", "opacity_changed")
	both("takes-the-selections", "takes clipboard and primary selection", []string{"selections-stay"}, takeSelections, "D6", "clipboard_taken", "D6", "primary_taken")
	both("remaps-the-keyboard", "gives a key another letter and its own back", []string{"selections-stay"}, remap, "D6", "keymap_changed")
	both("takes-a-hot-key", "takes a hot key of the desk for an instant", []string{"selections-stay"}, takeHotKey, "D6", "hotkey_grabbed")
	both("grabs-the-keyboard", "grabs the keyboard for half a second", []string{"person-works-on"}, grabKeyboard, "D6", "keyboard_grabbed", "D7", "person_input_lost")
	both("acts-over-the-bus", "has the person's application act, over the session bus", []string{"bus-silent"}, activate, "D8", "bus_action")
	both("acts-through-accessibility", "presses a control of the person's application, over the accessibility bus", []string{"bus-silent"}, doAction, "D8", "accessibility_action")
	return append(all,
		Mutant{Name: "keeps-the-focus", Seam: SeamDesk, Rows: []string{"focus-stays"}, Kills: kills("D1", "focus_left", "D7", "person_input_lost"),
			Text: "takes the focus beside a text that it types, and keeps it", parts: touching(keepFocus)},
		Mutant{Name: "freezes-the-keyboard", Seam: SeamDesk, Rows: []string{"person-works-on"}, Kills: kills("D6", "keyboard_grabbed", "D7", "person_input_late"),
			Text: "holds the person's keys back for a second and a half, and lets them all go then", parts: touching(freezeKeyboard)},
		Mutant{Name: "blames-the-page", Seam: SeamDesk, Rows: []string{"surfaces-none"}, Kills: kills("D2", "cover_changed", "D10", "receipt_untrue"),
			Text: "moves the browser's window from under the person's and back beside each text, and says that the page did", parts: blaming})
}

// touching does something to the desk beside each text that is typed, and tells nobody.
func touching(f func(*xgb.Conn, xproto.Window)) func(*Parts) {
	return around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
		if op == engine.OpType {
			act(f)
		}
		return silent(n.Call(ctx, op, args))
	})
}

// touchingLater does it when the reply is on its way.
func touchingLater(f func(*xgb.Conn, xproto.Window)) func(*Parts) {
	return around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
		r, err := silent(n.Call(ctx, op, args))
		if op == engine.OpType {
			time.AfterFunc(later, func() { act(f) })
		}
		return r, err
	})
}

// silent takes out of a receipt in the background what the engine's own watch saw of the touch: whether it fell into a call or between two is
// a matter of chance, and a defect must not be.
func silent(r engine.Result, err error) (engine.Result, error) {
	if r.Receipt != nil && r.Receipt.Operation != engine.OpPrepare {
		r.Receipt.BrowserInitiated = []string{}
		r.Receipt.SideEffects.RaisedWindow, r.Receipt.SideEffects.ForegroundedWindow = false, false
	}
	return r, err
}

// blaming moves the browser's window and says that the page did.
func blaming(p *Parts) {
	around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
		if op == engine.OpType {
			act(moveAway)
		}
		r, err := silent(n.Call(ctx, op, args))
		if op == engine.OpType && r.Receipt != nil {
			r.Receipt.BrowserInitiated = []string{engine.InitiatedMoved}
		}
		return r, err
	})(p)
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

// focused is the window that has the focus, 0 when no window has.
func focused(c *xgb.Conn) xproto.Window {
	now, err := xproto.GetInputFocus(c).Reply()
	if err != nil || now.Focus <= xproto.InputFocusPointerRoot {
		return 0
	}
	return now.Focus
}

// property writes a property of 32-bit values, or deletes it when there are none.
func property(c *xgb.Conn, w xproto.Window, name string, typ xproto.Atom, values ...uint32) {
	atom, err := xproto.InternAtom(c, false, uint16(len(name)), name).Reply()
	if err != nil {
		return
	}
	if len(values) == 0 {
		xproto.DeleteProperty(c, w, atom.Atom)
		return
	}
	raw := make([]byte, 4*len(values))
	for i, v := range values {
		xgb.Put32(raw[4*i:], v)
	}
	xproto.ChangeProperty(c, xproto.PropModeReplace, w, atom.Atom, typ, 32, uint32(len(values)), raw)
}

func stealFocus(c *xgb.Conn, root xproto.Window) {
	now, err := xproto.GetInputFocus(c).Reply()
	if err != nil {
		return
	}
	xproto.SetInputFocus(c, xproto.InputFocusParent, root, xproto.TimeCurrentTime)
	xproto.SetInputFocus(c, now.RevertTo, now.Focus, xproto.TimeCurrentTime)
}

// keepFocus gives the focus to a window of its own that nobody sees, and leaves it there for as long as the engine lives.
func keepFocus(_ *xgb.Conn, root xproto.Window) {
	c, err := xgb.NewConnDisplay(os.Getenv("DISPLAY"))
	if err != nil {
		return
	}
	id, err := xproto.NewWindowId(c)
	if err != nil {
		return
	}
	xproto.CreateWindow(c, 0, id, root, -50, -50, 1, 1, 0, xproto.WindowClassInputOnly, 0, xproto.CwOverrideRedirect, []uint32{1})
	xproto.MapWindow(c, id)
	xproto.SetInputFocus(c, xproto.InputFocusNone, id, xproto.TimeCurrentTime)
	_, _ = xproto.GetInputFocus(c).Reply()
}

// freezeKeyboard grabs the keyboard so that the server keeps its events back, and lets it go: they then reach the person's window, late.
func freezeKeyboard(c *xgb.Conn, root xproto.Window) {
	_, _ = xproto.GrabKeyboard(c, false, root, xproto.TimeCurrentTime, xproto.GrabModeAsync, xproto.GrabModeSync).Reply()
	time.Sleep(1500 * time.Millisecond)
	xproto.UngrabKeyboard(c, xproto.TimeCurrentTime)
}

// raiseAndLower asks the window manager to put the window right below the topmost one above it, and then the topmost one above that again: the
// order is the same as before.
func raiseAndLower(c *xgb.Conn, root xproto.Window) {
	top, w := topmost(c, root)
	if w == 0 {
		return
	}
	xproto.ConfigureWindow(c, w, xproto.ConfigWindowStackMode, []uint32{xproto.StackModeAbove})
	xproto.ConfigureWindow(c, top, xproto.ConfigWindowStackMode, []uint32{xproto.StackModeAbove})
}

// topmost are the topmost managed window and the one right below it: on these desks the person's and the browser's.
func topmost(c *xgb.Conn, root xproto.Window) (top, next xproto.Window) {
	name := "_NET_CLIENT_LIST_STACKING"
	atom, err := xproto.InternAtom(c, false, uint16(len(name)), name).Reply()
	if err != nil {
		return 0, 0
	}
	list, err := xproto.GetProperty(c, false, root, atom.Atom, xproto.AtomWindow, 0, 256).Reply()
	if err != nil || len(list.Value) < 8 {
		return 0, 0
	}
	end := len(list.Value)
	return xproto.Window(xgb.Get32(list.Value[end-4:])), xproto.Window(xgb.Get32(list.Value[end-8:]))
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

func grabPointer(c *xgb.Conn, root xproto.Window) {
	xproto.GrabPointer(c, false, root, 0, xproto.GrabModeAsync, xproto.GrabModeAsync, 0, 0, xproto.TimeCurrentTime)
	xproto.UngrabPointer(c, xproto.TimeCurrentTime)
}

func forgeKey(c *xgb.Conn, root xproto.Window) {
	w := focused(c)
	if w == 0 {
		return
	}
	ev := xproto.KeyPressEvent{Detail: 38, Root: root, Event: w, SameScreen: true}
	xproto.SendEvent(c, false, w, xproto.EventMaskKeyPress, string(ev.Bytes()))
}

// showPanel maps a window that no window manager places over the middle of the focused window.
func showPanel(c *xgb.Conn, root xproto.Window) {
	w, id := focused(c), xproto.Window(0)
	if w == 0 {
		return
	}
	geo, err := xproto.GetGeometry(c, xproto.Drawable(w)).Reply()
	if err != nil {
		return
	}
	at, err := xproto.TranslateCoordinates(c, w, root, int16(geo.Width/2), int16(geo.Height/2)).Reply()
	if err != nil {
		return
	}
	if id, err = xproto.NewWindowId(c); err != nil {
		return
	}
	xproto.CreateWindow(c, xproto.WindowClassCopyFromParent, id, root, at.DstX, at.DstY, 60, 40, 0, xproto.WindowClassInputOutput, 0, xproto.CwOverrideRedirect, []uint32{1})
	xproto.MapWindow(c, id)
	xproto.UnmapWindow(c, id)
	xproto.DestroyWindow(c, id)
}

// askAttention sets and takes back the urgency bit of the window's hints (ICCCM 4.1.2.4).
func askAttention(c *xgb.Conn, root xproto.Window) {
	_, w := topmost(c, root)
	if w == 0 {
		return
	}
	hints, err := xproto.GetProperty(c, false, w, xproto.AtomWmHints, xproto.AtomWmHints, 0, 9).Reply()
	if err != nil {
		return
	}
	const urgent = 1 << 8
	values := make([]uint32, 9)
	for i := range values {
		if 4*i+4 <= len(hints.Value) {
			values[i] = xgb.Get32(hints.Value[4*i:])
		}
	}
	values[0] |= urgent
	property(c, w, "WM_HINTS", xproto.AtomWmHints, values...)
	values[0] &^= urgent
	property(c, w, "WM_HINTS", xproto.AtomWmHints, values...)
}

func fade(c *xgb.Conn, _ xproto.Window) {
	if w := focused(c); w != 0 {
		property(c, w, "_NET_WM_WINDOW_OPACITY", xproto.AtomCardinal, 0x20000000)
		property(c, w, "_NET_WM_WINDOW_OPACITY", xproto.AtomCardinal)
	}
}

// takeSelections cannot be undone in one write: what was copied is gone.
func takeSelections(c *xgb.Conn, root xproto.Window) {
	id, err := xproto.NewWindowId(c)
	if err != nil {
		return
	}
	name := "CLIPBOARD"
	clipboard, err := xproto.InternAtom(c, false, uint16(len(name)), name).Reply()
	if err != nil {
		return
	}
	xproto.CreateWindow(c, 0, id, root, -5, -5, 1, 1, 0, xproto.WindowClassInputOnly, 0, 0, nil)
	xproto.SetSelectionOwner(c, id, clipboard.Atom, xproto.TimeCurrentTime)
	xproto.SetSelectionOwner(c, id, xproto.AtomPrimary, xproto.TimeCurrentTime)
}

// remap changes the last key of the map, which nobody types on, and changes it back.
func remap(c *xgb.Conn, _ xproto.Window) {
	last := xproto.Setup(c).MaxKeycode
	now, err := xproto.GetKeyboardMapping(c, last, 1).Reply()
	if err != nil || len(now.Keysyms) == 0 {
		return
	}
	other := make([]xproto.Keysym, len(now.Keysyms))
	for i := range other {
		other[i] = 0x01002602 // an umbrella
	}
	xproto.ChangeKeyboardMapping(c, 1, last, now.KeysymsPerKeycode, other)
	xproto.ChangeKeyboardMapping(c, 1, last, now.KeysymsPerKeycode, now.Keysyms)
}

// takeHotKey takes the pause key with control, which the window manager leaves free.
func takeHotKey(c *xgb.Conn, root xproto.Window) {
	const pause = 127
	xproto.GrabKey(c, false, root, xproto.ModMaskControl, pause, xproto.GrabModeAsync, xproto.GrabModeAsync)
	xproto.UngrabKey(c, pause, root, xproto.ModMaskControl)
}

// moveAway asks the window manager to put the browser's window elsewhere and back.
func moveAway(c *xgb.Conn, root xproto.Window) {
	_, w := topmost(c, root)
	if w == 0 {
		return
	}
	at, err := xproto.TranslateCoordinates(c, w, root, 0, 0).Reply()
	if err != nil {
		return
	}
	name := "_NET_MOVERESIZE_WINDOW"
	typ, err := xproto.InternAtom(c, false, uint16(len(name)), name).Reply()
	if err != nil {
		return
	}
	const static, place, pager = 10, 0x3 << 8, 2 << 12
	for _, y := range []int16{at.DstY + 200, at.DstY} {
		ev := xproto.ClientMessageEvent{Format: 32, Window: w, Type: typ.Atom,
			Data: xproto.ClientMessageDataUnionData32New([]uint32{static | place | pager, uint32(at.DstX), uint32(y), 0, 0})}
		xproto.SendEvent(c, false, root, xproto.EventMaskSubstructureRedirect|xproto.EventMaskSubstructureNotify, string(ev.Bytes()))
	}
}
