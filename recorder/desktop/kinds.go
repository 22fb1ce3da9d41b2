package desktop

import "fmt"

// Kind is what an event says, from a closed list. The zero value is no event.
type Kind uint8

// Effects: what the server reported.
const (
	KindNone            Kind = iota
	FocusIn                  // a watched window got the focus
	FocusOut                 // a watched window lost the focus to another window or to none
	FocusInside              // the focus moved between a watched window and its own subwindows
	FocusGrab                // a keyboard grab began or ended while a watched window had the focus
	Visibility               // Detail: 0 unobscured, 1 partly, 2 fully obscured
	WindowCreated            // a child of the root
	WindowDestroyed          //
	WindowMapped             //
	WindowUnmapped           //
	WindowReparented         //
	WindowConfigured         // neither moved nor resized; the place among siblings may have changed
	WindowMoved              // moved or resized; X, Y, Width, Height are the new place
	WindowCirculated         //
	StackingChanged          // a mapped window crossed another mapped window; Detail counts the crossed
	CoverChanged             // Window is the target, Fraction its covered part now
	AbovePerson              // a window came to lie above the person's window
	PropertyChanged          // Atom names the property where it is a known one
	ActiveWindowChanged      // _NET_ACTIVE_WINDOW of the root was written
	ClientListChanged        // _NET_CLIENT_LIST or its stacking twin was written
	WorkspaceChanged         // desktop number, viewport or showing-desktop property was written
	OpacityChanged           // _NET_WM_WINDOW_OPACITY of a watched window or its frame was written
	ClipboardChanged         // the owner of CLIPBOARD changed; Window is the new one
	PrimaryChanged           // the owner of PRIMARY changed
	KeymapChanged            // the keyboard or modifier mapping changed
	PointerMapChanged        // the button mapping changed
	DeviceMotion             // the server processed pointer motion; PID is the process whose request caused it
	DeviceKey                // a key, Detail its keycode
	DeviceButton             // a button, Detail its number
	RawMotion                // raw motion of a device that is not an XTEST device
	RawKey                   //
	RawButton                //
	RawTestMotion            // raw motion of an XTEST device
	RawTestKey               //
	RawTestButton            //
	PointerMotion            // XInput 2 motion seen on the root
	MasterAdded              // a second master pointer and keyboard appeared
	HierarchyChanged         // another change of the device hierarchy; Detail holds its flags
	OutputChanged            // screen size, output or controller changed
	ShapeChanged             // the shape of a watched window changed
	SentEvent                // an event with the send_event bit reached the guard; Detail is its code
	ClientStarted            //
	ClientDied               //
	ChannelLost              // a guard channel ended
	EventsDropped            // the log was full, or was told to forget them; Detail counts events that are missing here
	RecordOverrun            // the guard fell behind, so that the server may have lost requests; Detail is the backlog
	GuardError               // the server or a client gave the guard something that it could not read

	// Requests: what a client asked for. PID is the client's process.

	ReqFocus        // SetInputFocus, XISetFocus
	ReqConfigure    // move or resize
	ReqRestack      // raise, lower, circulate
	ReqMap          //
	ReqUnmap        //
	ReqDestroy      //
	ReqReparent     //
	ReqAttributes   // attributes of a watched window other than this client's event mask
	ReqProperty     // a property of a window was changed or deleted
	ReqOpacity      // the opacity property was changed or deleted
	ReqUrgency      // a property write that asks for attention
	ReqClipboard    // SetSelectionOwner CLIPBOARD
	ReqPrimary      // SetSelectionOwner PRIMARY
	ReqSelection    // SetSelectionOwner of another selection
	ReqConvert      // ConvertSelection: a selection was asked for
	SendInput       // SendEvent of a key, button, motion, crossing or focus event
	SendDrag        // SendEvent of a drag and drop message
	SendMessage     // SendEvent of a client message that is none of the others
	SendOther       // SendEvent of another event
	SendActivate    // _NET_ACTIVE_WINDOW
	SendRestack     // _NET_RESTACK_WINDOW, or _NET_WM_STATE above, below or fullscreen
	SendWorkspace   // current desktop, viewport, number of desktops, a window's desktop, showing desktop
	SendUrgency     // _NET_WM_STATE demands attention
	SendMoveResize  // _NET_MOVERESIZE_WINDOW
	SendDragWindow  // _NET_WM_MOVERESIZE: the window manager is asked to grab the pointer
	SendClose       // _NET_CLOSE_WINDOW, WM_DELETE_WINDOW
	ReqGrabPointer  //
	ReqUngrab       // any release of a grab
	ReqGrabButton   // passive, of a button or of entering
	ReqGrabKeyboard //
	ReqGrabKey      // passive, of a key
	ReqAllowEvents  //
	ReqGrabServer   //
	ReqWarp         //
	ReqFakeMotion   // XTEST
	ReqFakeKey      //
	ReqFakeButton   //
	ReqKeymap       // keyboard or modifier mapping, core, XInput or XKB
	ReqModifiers    // XKB latches and locks, keyboard controls
	ReqPointerMap   // button mapping, pointer control
	ReqAddMaster    //
	ReqHierarchy    // other changes of devices, client pointers, valuators
	ReqCursor       // hide the cursor, pointer barriers, XInput cursor
	ReqShape        //
	ReqOutput       // RANDR changes
	ReqOverlay      // Composite overlay window or manual redirection
	ReqKillClient   //
	ReqSaver        // screen saver, bell, access control, close-down mode
	ReqRead         // pixels or properties of a window were read
	ReqListen       // input of other clients' windows was selected

	// Messages over a bus. PID is the sender's process, Peer the receiver; Role is none when nobody got it, target when sender and
	// receiver are one process, other else.

	BusAction  // a call or a directed signal to a program on the session bus
	BusRead    // a call that only asks
	BusService // a call to a service of the session that acts on nobody's application (violations.yaml, services)
	BusListen  // a program listens to the messages of others
	AccessAction
	AccessRead
	AccessService
	AccessListen

	kindCount
)

var kindNames = [kindCount]string{
	KindNone: "none", FocusIn: "focus_in", FocusOut: "focus_out", FocusInside: "focus_inside", FocusGrab: "focus_grab",
	Visibility: "visibility", WindowCreated: "window_created", WindowDestroyed: "window_destroyed",
	WindowMapped: "window_mapped", WindowUnmapped: "window_unmapped", WindowReparented: "window_reparented",
	WindowConfigured: "window_configured", WindowMoved: "window_moved", WindowCirculated: "window_circulated",
	StackingChanged: "stacking_changed", CoverChanged: "cover_changed", AbovePerson: "above_person",
	PropertyChanged: "property_changed", ActiveWindowChanged: "active_window_changed",
	ClientListChanged: "client_list_changed", WorkspaceChanged: "workspace_changed", OpacityChanged: "opacity_changed",
	ClipboardChanged: "clipboard_changed", PrimaryChanged: "primary_changed", KeymapChanged: "keymap_changed",
	PointerMapChanged: "pointer_map_changed", DeviceMotion: "device_motion", DeviceKey: "device_key",
	DeviceButton: "device_button", RawMotion: "raw_motion", RawKey: "raw_key", RawButton: "raw_button",
	RawTestMotion: "raw_test_motion", RawTestKey: "raw_test_key", RawTestButton: "raw_test_button",
	PointerMotion: "pointer_motion", MasterAdded: "master_added", HierarchyChanged: "hierarchy_changed",
	OutputChanged: "output_changed", ShapeChanged: "shape_changed", SentEvent: "sent_event",
	ClientStarted: "client_started", ClientDied: "client_died", ChannelLost: "channel_lost",
	EventsDropped: "events_dropped", RecordOverrun: "record_overrun", GuardError: "guard_error",
	ReqFocus: "req_focus", ReqConfigure: "req_configure", ReqRestack: "req_restack", ReqMap: "req_map",
	ReqUnmap: "req_unmap", ReqDestroy: "req_destroy", ReqReparent: "req_reparent", ReqAttributes: "req_attributes",
	ReqProperty: "req_property", ReqOpacity: "req_opacity", ReqUrgency: "req_urgency", ReqClipboard: "req_clipboard",
	ReqPrimary: "req_primary", ReqSelection: "req_selection", ReqConvert: "req_convert", SendInput: "send_input",
	SendDrag: "send_drag", SendMessage: "send_message", SendOther: "send_other", SendActivate: "send_activate",
	SendRestack: "send_restack", SendWorkspace: "send_workspace", SendUrgency: "send_urgency",
	SendMoveResize: "send_move_resize", SendDragWindow: "send_drag_window", SendClose: "send_close",
	ReqGrabPointer: "req_grab_pointer", ReqUngrab: "req_ungrab", ReqGrabButton: "req_grab_button",
	ReqGrabKeyboard: "req_grab_keyboard", ReqGrabKey: "req_grab_key", ReqAllowEvents: "req_allow_events",
	ReqGrabServer: "req_grab_server", ReqWarp: "req_warp", ReqFakeMotion: "req_fake_motion", ReqFakeKey: "req_fake_key",
	ReqFakeButton: "req_fake_button", ReqKeymap: "req_keymap", ReqModifiers: "req_modifiers",
	ReqPointerMap: "req_pointer_map", ReqAddMaster: "req_add_master", ReqHierarchy: "req_hierarchy",
	ReqCursor: "req_cursor", ReqShape: "req_shape", ReqOutput: "req_output", ReqOverlay: "req_overlay",
	ReqKillClient: "req_kill_client", ReqSaver: "req_saver", ReqRead: "req_read", ReqListen: "req_listen",
	BusAction: "bus_action", BusRead: "bus_read", BusService: "bus_service", BusListen: "bus_listen",
	AccessAction: "access_action", AccessRead: "access_read", AccessService: "access_service", AccessListen: "access_listen",
}

// Kinds lists every kind an event can have.
func Kinds() []Kind {
	out := make([]Kind, 0, kindCount-1)
	for k := KindNone + 1; k < kindCount; k++ {
		out = append(out, k)
	}
	return out
}

// IsRequest reports whether the kind is a client's request rather than an effect.
func (k Kind) IsRequest() bool { return k >= ReqFocus && k < kindCount }

// IsMessage reports whether the kind is a message over a bus.
func (k Kind) IsMessage() bool { return k >= BusAction && k < kindCount }

// String is the name that the log is written with; an unknown value says its number.
func (k Kind) String() string { return nameOf(kindNames[:], int(k)) }

// MarshalText writes the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return marshal(kindNames[:], int(k), "kind") }

// UnmarshalText reads a kind's name; an unknown one is an error.
func (k *Kind) UnmarshalText(b []byte) error {
	i, err := unmarshal(kindNames[:], b, "kind")
	*k = Kind(i)
	return err
}

// Channel is the guard connection that an event came from.
type Channel uint8

// Channels. Control and Query carry the guard's own questions; they are watched for life all the same.
const (
	NoChannel Channel = iota
	Core
	Input
	Record
	Selection
	Output
	Control
	Query
	Properties    // RECORD again, of property writes alone: they may be of any size
	Bus           // monitor of the session bus
	Accessibility // monitor of the accessibility bus

	channelCount

	xChannels = Bus // the channels below it are connections to the X server
)

var channelNames = [channelCount]string{"none", "core", "input", "record", "selection", "output", "control", "query", "properties", "bus", "accessibility"}

// String is the name that the log is written with; an unknown value says its number.
func (c Channel) String() string { return nameOf(channelNames[:], int(c)) }

// MarshalText writes the channel's name.
func (c Channel) MarshalText() ([]byte, error) { return marshal(channelNames[:], int(c), "channel") }

// UnmarshalText reads a channel's name; an unknown one is an error.
func (c *Channel) UnmarshalText(b []byte) error {
	i, err := unmarshal(channelNames[:], b, "channel")
	*c = Channel(i)
	return err
}

// WindowRole says whose window an event is about. The zero value is no window.
type WindowRole uint8

// Roles. A frame of the window manager has the role of the window in it. A window made by the same client as
// a person's, bystander's or harness window has that role too.
const (
	NoWindow  WindowRole = iota
	Root                 // the root window
	Person               // the person's foreground application
	Bystander            // another application, which nothing may reach
	Target               // the window that the engine may act in
	Sibling              // another window of the target's client
	Harness              // a window of the harness that judges nothing
	Other                // any other window

	roleCount
)

var roleNames = [roleCount]string{"none", "root", "person", "bystander", "target", "sibling", "harness", "other"}

// String is the name that the log is written with; an unknown value says its number.
func (r WindowRole) String() string { return nameOf(roleNames[:], int(r)) }

// MarshalText writes the role's name.
func (r WindowRole) MarshalText() ([]byte, error) { return marshal(roleNames[:], int(r), "role") }

// UnmarshalText reads a role's name; an unknown one is an error.
func (r *WindowRole) UnmarshalText(b []byte) error {
	i, err := unmarshal(roleNames[:], b, "role")
	*r = WindowRole(i)
	return err
}

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("unknown %d", i)
}

func marshal(names []string, i int, what string) ([]byte, error) {
	if i >= len(names) {
		return nil, fmt.Errorf("unknown %s %d", what, i)
	}
	return []byte(names[i]), nil
}

func unmarshal(names []string, b []byte, what string) (int, error) {
	for i, n := range names {
		if n == string(b) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("unknown %s %.40q", what, b)
}
