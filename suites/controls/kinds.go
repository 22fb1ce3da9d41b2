// Package controls commits, on command, one known violation of every kind that the desk's guards watch for,
// and undoes it: what a guard does not see here, it would not see from an engine either.
//
// The role is a process of its own, because attribution by pid means something across processes only.
// It owns a small window at the bottom of the desk, and the person's clipboard and primary selection,
// so that these have an owner to be taken from. The worker pauses the person, commits, lets the guards
// look, and works on:
//
//	c, err := controls.Start(ctx, d.StartRole, controls.Options{Clipboard: "..."})
//	r, err := c.Commit(ctx, sentinel.Window()) // about 20 ms, limit Budget
//	// every kind of r.Acts between its times must be in the event log
//	r, err = c.CommitOnce(ctx, sentinel.Window()) // keyboard map, second pointer, workspace: once a desk
//
// A result says whether focus, stacking, pointer, selections, geometry and workspace are as before;
// when not, Differences names what is not, and the desk has to be restored.
package controls

import "time"

// Budget is the longest that Commit may take.
const Budget = 150 * time.Millisecond

// Kind names what was violated, in the words of the event log.
type Kind string

// Kinds of violations.
const (
	FocusLeft         Kind = "focus_left"
	StackingChanged   Kind = "stacking_changed"
	PointerMoved      Kind = "pointer_moved"
	PointerWarped     Kind = "pointer_warped"
	PointerGrabbed    Kind = "pointer_grabbed"
	InputLeaked       Kind = "input_leaked"
	InputForged       Kind = "input_forged"
	WindowAbovePerson Kind = "window_above_person"
	ClipboardTaken    Kind = "clipboard_taken"
	PrimaryTaken      Kind = "primary_taken"
	KeyboardGrabbed   Kind = "keyboard_grabbed"
	HotkeyGrabbed     Kind = "hotkey_grabbed"
	ServerGrabbed     Kind = "server_grabbed"
	OpacityChanged    Kind = "opacity_changed"
	CoverChanged      Kind = "cover_changed"
	UrgencyRaised     Kind = "urgency_raised"
	WindowRead        Kind = "window_read"

	// Where there is a bus.
	BusAction           Kind = "bus_action"
	AccessibilityAction Kind = "accessibility_action"

	// Once a desk, since the window manager takes a while over them.
	KeymapChanged    Kind = "keymap_changed"
	MasterAdded      Kind = "master_added"
	WorkspaceChanged Kind = "workspace_changed"
	OutputChanged    Kind = "output_changed"
)

// KindsOnBuses are what one Commit commits as well on a desk with a session bus.
func KindsOnBuses() []Kind { return []Kind{BusAction, AccessibilityAction} }

// Kinds are what one Commit commits, each at least once.
func Kinds() []Kind {
	return []Kind{FocusLeft, StackingChanged, PointerMoved, PointerWarped, PointerGrabbed, InputLeaked, InputForged, WindowAbovePerson, ClipboardTaken,
		PrimaryTaken, KeyboardGrabbed, HotkeyGrabbed, ServerGrabbed, OpacityChanged, CoverChanged, UrgencyRaised, WindowRead}
}

// KindsOnce are what one CommitOnce commits.
func KindsOnce() []Kind { return []Kind{KeymapChanged, MasterAdded, WorkspaceChanged, OutputChanged} }

// Act is one violation with its undoing.
type Act struct {
	Kind Kind   `json:"kind"`
	How  string `json:"how"`
	// Began and Ended are CLOCK_MONOTONIC in ns: before the first request was sent, and after the server, and
	// the window manager where it has a part, had the last.
	Began int64 `json:"began"`
	Ended int64 `json:"ended"`
}

// Result is what a Commit did.
type Result struct {
	Acts []Act         `json:"acts"`
	Took time.Duration `json:"took"` // ns in JSON
	// Differences names what is not as it was before; empty is what must be.
	Differences []string `json:"differences,omitempty"`
}
