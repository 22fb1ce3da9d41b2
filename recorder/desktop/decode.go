package desktop

import (
	"slices"

	"github.com/engine-acceptance/acceptance/recorder/x11"
)

// Atom names that the guard knows. Their ids are asked from the server at the start.
const (
	atomActive      = "_NET_ACTIVE_WINDOW"
	atomRestack     = "_NET_RESTACK_WINDOW"
	atomCurrent     = "_NET_CURRENT_DESKTOP"
	atomCount       = "_NET_NUMBER_OF_DESKTOPS"
	atomViewport    = "_NET_DESKTOP_VIEWPORT"
	atomGeometry    = "_NET_DESKTOP_GEOMETRY"
	atomShowing     = "_NET_SHOWING_DESKTOP"
	atomWMDesktop   = "_NET_WM_DESKTOP"
	atomState       = "_NET_WM_STATE"
	atomAttention   = "_NET_WM_STATE_DEMANDS_ATTENTION"
	atomAbove       = "_NET_WM_STATE_ABOVE"
	atomBelow       = "_NET_WM_STATE_BELOW"
	atomFullscreen  = "_NET_WM_STATE_FULLSCREEN"
	atomMoveResize  = "_NET_WM_MOVERESIZE"
	atomPlace       = "_NET_MOVERESIZE_WINDOW"
	atomClose       = "_NET_CLOSE_WINDOW"
	atomProtocols   = "WM_PROTOCOLS"
	atomDelete      = "WM_DELETE_WINDOW"
	atomClientList  = "_NET_CLIENT_LIST"
	atomStacking    = "_NET_CLIENT_LIST_STACKING"
	atomOpacity     = "_NET_WM_WINDOW_OPACITY"
	atomClipboard   = "CLIPBOARD"
	atomUserTime    = "_NET_WM_USER_TIME"
	atomWMState     = "WM_STATE"
	atomXdndEnter   = "XdndEnter"
	atomXdndPos     = "XdndPosition"
	atomXdndDrop    = "XdndDrop"
	atomXdndLeave   = "XdndLeave"
	atomMarker      = "_ACCEPTANCE_GUARD_MARK"
	atomWMHints     = "WM_HINTS"
	atomPrimary     = "PRIMARY"
	atomWMName      = "WM_NAME"
	urgencyHint     = 1 << 8 // ICCCM 4.1.2.4, WM_HINTS.flags
	configureStack  = 0x60   // sibling and stack mode
	attributeEvents = 0x800  // CWEventMask
	changeProperty  = 18     // the one request that may be of any size and that every client makes
)

var atomNames = []string{
	atomActive, atomRestack, atomCurrent, atomCount, atomViewport, atomGeometry, atomShowing, atomWMDesktop, atomState,
	atomAttention, atomAbove, atomBelow, atomFullscreen, atomMoveResize, atomPlace, atomClose, atomProtocols, atomDelete,
	atomClientList, atomStacking, atomOpacity, atomClipboard, atomUserTime, atomWMState, atomXdndEnter, atomXdndPos,
	atomXdndDrop, atomXdndLeave, atomMarker, atomWMHints, atomPrimary, atomWMName,
}

// decoder knows the server's numbers: where extensions are and what atoms mean. It has no other state, so the
// reading of requests is a pure function.
type decoder struct {
	test, input, fixes, shape, randr, keyboard, shm, composite byte // major opcodes, 0 when absent
	atoms                                                      map[uint32]string
	keyboards                                                  map[uint16]bool // ids of keyboard devices
	root                                                       uint32
}

// coreRequests are the core opcodes that the guard records.
var coreRequests = map[byte]string{
	2: "ChangeWindowAttributes", 4: "DestroyWindow", 5: "DestroySubwindows", 7: "ReparentWindow", 8: "MapWindow",
	9: "MapSubwindows", 10: "UnmapWindow", 11: "UnmapSubwindows", 12: "ConfigureWindow", 13: "CirculateWindow",
	18: "ChangeProperty", 19: "DeleteProperty", 20: "GetProperty", 22: "SetSelectionOwner", 24: "ConvertSelection",
	25: "SendEvent", 26: "GrabPointer", 27: "UngrabPointer", 28: "GrabButton", 29: "UngrabButton",
	30: "ChangeActivePointerGrab", 31: "GrabKeyboard", 32: "UngrabKeyboard", 33: "GrabKey", 34: "UngrabKey",
	35: "AllowEvents", 36: "GrabServer", 37: "UngrabServer", 41: "WarpPointer", 42: "SetInputFocus",
	73: "GetImage", 100: "ChangeKeyboardMapping", 102: "ChangeKeyboardControl", 104: "Bell",
	105: "ChangePointerControl", 107: "SetScreenSaver", 111: "SetAccessControl", 112: "SetCloseDownMode",
	113: "KillClient", 114: "RotateProperties", 115: "ForceScreenSaver", 116: "SetPointerMapping",
	118: "SetModifierMapping",
}

type extRequest struct {
	minor byte
	name  string
	kind  Kind
	win   int // offset of the window field in a request without long length, 0 for none
}

var (
	testRequests  = []extRequest{{2, "XTEST.FakeInput", 0, 0}, {3, "XTEST.GrabControl", ReqAllowEvents, 0}}
	inputRequests = []extRequest{
		{13, "XInput.GrabDevice", ReqGrabKeyboard, 4}, {14, "XInput.UngrabDevice", ReqUngrab, 0},
		{15, "XInput.GrabDeviceKey", ReqGrabKey, 4}, {16, "XInput.UngrabDeviceKey", ReqUngrab, 0},
		{17, "XInput.GrabDeviceButton", ReqGrabButton, 4}, {18, "XInput.UngrabDeviceButton", ReqUngrab, 0},
		{21, "XInput.SetDeviceFocus", ReqFocus, 4},
		{25, "XInput.ChangeDeviceKeyMapping", ReqKeymap, 0}, {27, "XInput.SetDeviceModifierMapping", ReqKeymap, 0},
		{29, "XInput.SetDeviceButtonMapping", ReqPointerMap, 0}, {31, "XInput.SendExtensionEvent", SendInput, 4},
		{33, "XInput.SetDeviceValuators", ReqHierarchy, 0}, {35, "XInput.ChangeDeviceControl", ReqHierarchy, 0},
		{41, "XInput.XIWarpPointer", ReqWarp, 8}, {42, "XInput.XIChangeCursor", ReqCursor, 4},
		{43, "XInput.XIChangeHierarchy", ReqHierarchy, 0}, {44, "XInput.XISetClientPointer", ReqHierarchy, 4},
		{46, "XInput.XISelectEvents", ReqListen, 4}, {49, "XInput.XISetFocus", ReqFocus, 4},
		{51, "XInput.XIGrabDevice", ReqGrabPointer, 4}, {52, "XInput.XIUngrabDevice", ReqUngrab, 0},
		{53, "XInput.XIAllowEvents", ReqAllowEvents, 0}, {54, "XInput.XIPassiveGrabDevice", ReqGrabButton, 8},
		{55, "XInput.XIPassiveUngrabDevice", ReqUngrab, 4}, {57, "XInput.XIChangeProperty", ReqHierarchy, 0},
		{58, "XInput.XIDeleteProperty", ReqHierarchy, 0}, {61, "XInput.XIBarrierReleasePointer", ReqCursor, 0},
	}
	fixesRequests = []extRequest{
		{21, "XFIXES.SetWindowShapeRegion", ReqShape, 4}, {29, "XFIXES.HideCursor", ReqCursor, 4},
		{30, "XFIXES.ShowCursor", ReqCursor, 4}, {31, "XFIXES.CreatePointerBarrier", ReqCursor, 8},
		{32, "XFIXES.DeletePointerBarrier", ReqCursor, 0},
	}
	shapeRequests = []extRequest{
		{1, "SHAPE.Rectangles", ReqShape, 8}, {2, "SHAPE.Mask", ReqShape, 8}, {3, "SHAPE.Combine", ReqShape, 8},
		{4, "SHAPE.Offset", ReqShape, 8},
	}
	randrRequests = []extRequest{
		{2, "RANDR.SetScreenConfig", ReqOutput, 0}, {7, "RANDR.SetScreenSize", ReqOutput, 4},
		{12, "RANDR.ConfigureOutputProperty", ReqOutput, 0}, {13, "RANDR.ChangeOutputProperty", ReqOutput, 0},
		{14, "RANDR.DeleteOutputProperty", ReqOutput, 0},
		{21, "RANDR.SetCrtcConfig", ReqOutput, 0}, {24, "RANDR.SetCrtcGamma", ReqOutput, 0},
		{26, "RANDR.SetCrtcTransform", ReqOutput, 0}, {29, "RANDR.SetPanning", ReqOutput, 0},
		{30, "RANDR.SetOutputPrimary", ReqOutput, 4}, {43, "RANDR.SetMonitor", ReqOutput, 4},
		{44, "RANDR.DeleteMonitor", ReqOutput, 4},
	}
	keyboardRequests = []extRequest{
		{5, "XKB.LatchLockState", ReqModifiers, 0}, {7, "XKB.SetControls", ReqModifiers, 0}, {9, "XKB.SetMap", ReqKeymap, 0},
		{11, "XKB.SetCompatMap", ReqKeymap, 0}, {18, "XKB.SetNames", ReqKeymap, 0}, {20, "XKB.SetGeometry", ReqKeymap, 0},
		{23, "XKB.GetKbdByName", ReqKeymap, 0}, {25, "XKB.SetDeviceInfo", ReqKeymap, 0},
	}
	shmRequests       = []extRequest{{4, "MIT-SHM.GetImage", ReqRead, 4}}
	compositeRequests = []extRequest{
		{1, "Composite.RedirectWindow", ReqOverlay, 4}, {2, "Composite.RedirectSubwindows", ReqOverlay, 4},
		{6, "Composite.NameWindowPixmap", ReqRead, 4}, {7, "Composite.GetOverlayWindow", ReqOverlay, 4},
	}
)

func (d *decoder) extension(major byte) []extRequest {
	switch major {
	case d.test:
		return testRequests
	case d.input:
		return inputRequests
	case d.fixes:
		return fixesRequests
	case d.shape:
		return shapeRequests
	case d.randr:
		return randrRequests
	case d.keyboard:
		return keyboardRequests
	case d.shm:
		return shmRequests
	case d.composite:
		return compositeRequests
	}
	return nil
}

// ranges lists what RECORD is asked for.
func (d *decoder) ranges() []x11.RecordRange {
	var out []x11.RecordRange
	for op := range byte(128) {
		if _, ok := coreRequests[op]; ok && op != changeProperty {
			out = append(out, x11.RecordRange{Core: [2]byte{op, op}})
		}
	}
	for _, major := range []byte{d.test, d.input, d.fixes, d.shape, d.randr, d.keyboard, d.shm, d.composite} {
		if major == 0 {
			continue
		}
		for _, q := range d.extension(major) {
			out = append(out, x11.RecordRange{ExtMajor: [2]byte{major, major}, ExtMinor: [2]uint16{uint16(q.minor), uint16(q.minor)}})
		}
	}
	return append(out, x11.RecordRange{DeviceEvents: [2]byte{x11.KeyPress, x11.MotionNotify}, Clients: true})
}

// request reads one recorded request into an event without role and actor. Hostile requests (cut short, counts
// that lie) read as zeros and never fail: the server has refused them or will.
func (d *decoder) request(q x11.RecordedRequest) Event {
	// at is the offset of a field as the protocol documents it, for a request without long length.
	shift := q.Body() - 4
	u32 := func(off int) uint32 { return q.U32(off + shift) }
	u16 := func(off int) uint16 { return q.U16(off + shift) }
	i16 := func(off int) int32 { return int32(q.I16(off + shift)) }
	u8 := func(off int) byte { return q.U8(off + shift) }
	ev := Event{Channel: Record, Swapped: q.Order != x11.Little(nil).Order}

	if q.Major >= 128 {
		list := d.extension(q.Major)
		i := slices.IndexFunc(list, func(r extRequest) bool { return r.minor == q.Minor })
		if i < 0 {
			ev.Kind, ev.Detail = GuardError, uint32(q.Major)<<8|uint32(q.Minor)
			return ev
		}
		r := list[i]
		ev.Kind, ev.Request = r.kind, r.name
		if r.win != 0 {
			ev.Window = u32(r.win)
		}
		switch {
		case q.Major == d.test && q.Minor == 2:
			ev.Detail, ev.X, ev.Y = uint32(u8(5)), i16(24), i16(26)
			switch u8(4) & 0x7f {
			case x11.KeyPress, x11.KeyRelease:
				ev.Kind = ReqFakeKey
			case x11.ButtonPress, x11.ButtonRelease:
				ev.Kind = ReqFakeButton
			case x11.MotionNotify:
				ev.Kind = ReqFakeMotion
			default: // events of extension devices: the kind of device is not told
				ev.Kind = ReqFakeKey
			}
			ev.Release = u8(4) == x11.KeyRelease || u8(4) == x11.ButtonRelease
		case q.Major == d.input && q.Minor == 41:
			ev.X, ev.Y = int32(u32(24))>>16, int32(u32(28))>>16
		case q.Major == d.input && q.Minor == 43:
			d.hierarchy(q, &ev)
		case q.Major == d.input && q.Minor == 51:
			ev.Device = u16(16)
			if d.keyboards[ev.Device] {
				ev.Kind = ReqGrabKeyboard
			}
		case q.Major == d.input && q.Minor == 54:
			// time 4, window 8, cursor 12, detail 16, device 20, modifiers 22, mask words 24, type 26
			ev.Detail, ev.Device = u32(16), u16(20)
			if u8(26) == 1 || u8(26) == 3 { // keycode, focus in
				ev.Kind = ReqGrabKey
			}
		}
		return ev
	}

	ev.Request = coreRequests[q.Major]
	ev.Window = u32(4)
	switch q.Major {
	case 2:
		mask := u32(8)
		ev.Kind, ev.Detail = ReqAttributes, mask
		if mask&^attributeEvents == 0 {
			ev.Kind, ev.Detail = ReqListen, u32(12)
		}
	case 4, 5:
		ev.Kind = ReqDestroy
	case 7:
		ev.Kind, ev.Detail, ev.X, ev.Y = ReqReparent, u32(8), i16(12), i16(14)
	case 8, 9:
		ev.Kind = ReqMap
	case 10, 11:
		ev.Kind = ReqUnmap
	case 12:
		mask := u16(8)
		ev.Kind, ev.Detail = ReqConfigure, uint32(mask)
		if mask&configureStack != 0 {
			ev.Kind = ReqRestack
		}
	case 13:
		ev.Kind, ev.Detail = ReqRestack, uint32(q.Minor)
	case 18:
		d.property(q, shift, &ev)
	case 19:
		ev.Kind = ReqProperty
		ev.Atom = d.atoms[u32(8)]
		if ev.Atom == atomOpacity {
			ev.Kind = ReqOpacity
		}
	case 114:
		ev.Kind = ReqProperty
	case 20:
		ev.Kind, ev.Atom = ReqRead, d.atoms[u32(8)]
	case 73:
		ev.Kind, ev.X, ev.Y = ReqRead, i16(8), i16(10)
		ev.Width, ev.Height = int32(u16(12)), int32(u16(14))
	case 22:
		ev.Detail = u32(8)
		ev.Atom = d.atoms[ev.Detail]
		ev.Kind = selectionKind(ev.Atom, ReqClipboard, ReqPrimary, ReqSelection)
	case 24:
		ev.Kind, ev.Detail = ReqConvert, u32(8)
		ev.Atom = d.atoms[ev.Detail]
	case 25:
		d.sendEvent(q, shift, &ev)
	case 26:
		ev.Kind = ReqGrabPointer
	case 27, 29, 32, 34, 37:
		ev.Kind = ReqUngrab
		if q.Major != 29 && q.Major != 34 {
			ev.Window = 0
		}
		if q.Major == 29 || q.Major == 34 {
			ev.Detail = uint32(q.Minor)
		}
	case 28:
		ev.Kind, ev.Detail = ReqGrabButton, uint32(u8(20))
	case 30:
		ev.Kind, ev.Window = ReqGrabPointer, 0
	case 31:
		ev.Kind = ReqGrabKeyboard
	case 33:
		ev.Kind, ev.Detail = ReqGrabKey, uint32(u8(10))
	case 35:
		ev.Kind, ev.Window, ev.Detail = ReqAllowEvents, 0, uint32(q.Minor)
	case 36:
		ev.Kind, ev.Window = ReqGrabServer, 0
	case 41:
		ev.Kind, ev.Window, ev.X, ev.Y = ReqWarp, u32(8), i16(20), i16(22)
	case 42:
		ev.Kind = ReqFocus
	case 100, 118:
		ev.Kind, ev.Window, ev.Detail = ReqKeymap, 0, uint32(q.Minor)
	case 102:
		ev.Kind, ev.Window, ev.Detail = ReqModifiers, 0, u32(4)
	case 105, 116:
		ev.Kind, ev.Window = ReqPointerMap, 0
	case 113:
		ev.Kind = ReqKillClient
	case 104, 107, 111, 112, 115:
		ev.Kind, ev.Window, ev.Detail = ReqSaver, 0, uint32(q.Minor)
	default:
		ev.Kind, ev.Window, ev.Detail = GuardError, 0, uint32(q.Major)
	}
	return ev
}

func selectionKind(atom string, clipboard, primary, other Kind) Kind {
	switch atom {
	case atomClipboard:
		return clipboard
	case atomPrimary:
		return primary
	}
	return other
}

// hierarchy looks for an added master among the changes of XIChangeHierarchy.
func (d *decoder) hierarchy(q x11.RecordedRequest, ev *Event) {
	off := q.Body() + 4
	for range q.U8(q.Body()) {
		words := int(q.U16(off + 2))
		if words == 0 || !q.Has(off, 4) {
			return
		}
		if q.U16(off) == 1 {
			ev.Kind = ReqAddMaster
			return
		}
		off += 4 * words
	}
}

// property reads ChangeProperty: the window, and whether it asks for attention or changes opacity.
func (d *decoder) property(q x11.RecordedRequest, shift int, ev *Event) {
	ev.Kind = ReqProperty
	ev.Atom = d.atoms[q.U32(8+shift)]
	format, n := q.U8(16+shift), q.U32(20+shift)
	ev.Detail = n
	if format != 32 {
		return
	}
	data := 24 + shift
	switch ev.Atom {
	case atomOpacity:
		ev.Kind, ev.Detail = ReqOpacity, q.U32(data)
	case atomWMHints:
		if n > 0 && q.U32(data)&urgencyHint != 0 {
			ev.Kind = ReqUrgency
		}
	case atomState:
		for i := range int(min(n, 64)) {
			if d.atoms[q.U32(data+4*i)] == atomAttention {
				ev.Kind = ReqUrgency
			}
		}
	}
}

// sendEvent reads SendEvent: the receiver, and what kind of event was made.
func (d *decoder) sendEvent(q x11.RecordedRequest, shift int, ev *Event) {
	e := func(off int) int { return 12 + shift + off } // the made event starts at 12
	code := q.U8(e(0)) & 0x7f
	ev.Detail = uint32(code)
	switch {
	case code >= x11.KeyPress && code <= x11.FocusOut, code == x11.GenericEvent:
		ev.Kind = SendInput
		ev.X, ev.Y = int32(q.I16(e(20))), int32(q.I16(e(22)))
		return
	case code != x11.ClientMessage:
		ev.Kind = SendOther
		return
	}
	ev.Kind = SendMessage
	ev.Atom = d.atoms[q.U32(e(8))]
	about := q.U32(e(4))
	word := func(i int) uint32 { return q.U32(e(12 + 4*i)) }
	switch ev.Atom {
	case atomActive:
		ev.Kind = SendActivate
	case atomRestack:
		ev.Kind = SendRestack
	case atomCurrent, atomCount, atomViewport, atomGeometry, atomShowing, atomWMDesktop:
		ev.Kind = SendWorkspace
	case atomState:
		for _, i := range []int{1, 2} {
			switch d.atoms[word(i)] {
			case atomAttention:
				ev.Kind = SendUrgency
			case atomAbove, atomBelow, atomFullscreen:
				if ev.Kind == SendMessage {
					ev.Kind = SendRestack
				}
			}
		}
	case atomMoveResize:
		ev.Kind = SendDragWindow
	case atomPlace:
		ev.Kind = SendMoveResize
	case atomClose:
		ev.Kind = SendClose
	case atomProtocols:
		if d.atoms[word(0)] == atomDelete {
			ev.Kind = SendClose
		}
	case atomXdndEnter, atomXdndPos, atomXdndDrop, atomXdndLeave:
		ev.Kind = SendDrag
	case atomMarker:
		ev.Detail = word(0)
	}
	if ev.Window == d.root && ev.Kind != SendMessage {
		ev.Window = about // a message to the root speaks about another window
	}
}
