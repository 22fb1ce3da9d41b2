package recorder

import "github.com/engine-acceptance/acceptance/redaction"

// PaneState says what the second pane of a frame shows.
type PaneState string

// The closed list of pane states.
const (
	PaneNone     PaneState = "none"         // no window was named yet
	PaneOwn      PaneState = "own_pixels"   // the window's own pixels, covered or not
	PaneInactive PaneState = "inactive_tab" // the window's own pixels, but the tab acted on is not the one it shows
	PaneUnmapped PaneState = "unmapped"     // the window is minimised or withdrawn and has no pixels
	PaneLost     PaneState = "lost"         // the window is gone or its pixels cannot be read
)

// source captures a desk. It is used by one goroutine.
type source interface {
	size() (w, h int)
	newShot() (*shot, error)
	target(window uint32)
	own(windows []uint32) // nil: layers are not looked at
	grab(*shot) error
	close()
	abort() // from any goroutine: makes a grab that hangs fail
}

// shot is one capture, unmasked, in memory only.
type shot struct {
	desk  []byte // BGRX, as wide as the desk
	pane  []byte // BGRX, paneW wide
	paneW int
	paneH int
	scale int
	win   redaction.Rect // the target window on the desk; empty when there is none
	state PaneState
	mouse sprite
	seg   uint32 // of the source

	layers []layer // nil: not looked at
	shaky  bool    // windows moved during every attempt at this capture, so that layers do not fit the picture
}
