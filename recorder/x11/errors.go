package x11

import (
	"errors"
	"fmt"
)

// Sentinels. Errors of this package match them with errors.Is.
var (
	// ErrDisplay: the display string is not a local display such as ":93".
	ErrDisplay = errors.New("not a local display")
	// ErrAuthority: the authority file cannot be read, is malformed, or has no cookie for the display.
	ErrAuthority = errors.New("no usable authority")
	// ErrSetup: the server refused the connection or its setup block is malformed.
	ErrSetup = errors.New("connection setup failed")
	// ErrLost: the connection has ended. Every later call on it returns an error that matches this.
	ErrLost = errors.New("connection lost")
	// ErrClosed: the connection was closed by our own side. It matches ErrLost too.
	ErrClosed = fmt.Errorf("closed by us: %w", ErrLost)
	// ErrTooLarge: a request is longer than the server takes, or a reply longer than MaxFrame.
	ErrTooLarge = errors.New("too large")
	// ErrMalformed: a reply is shorter than its own counts say.
	ErrMalformed = errors.New("malformed reply")
	// ErrNoExtension: the server lacks an extension.
	ErrNoExtension = errors.New("no such extension")
	// ErrNoPID: the server knows no process for a client (remote, or already gone).
	ErrNoPID = errors.New("no process known")
)

// Core error codes (X protocol, section 4).
const (
	BadRequest = 1
	BadValue   = 2
	BadWindow  = 3
	BadAtom    = 5
	BadMatch   = 8
	BadAccess  = 10
)

// XError is an error that the server sent for one request.
type XError struct {
	Code     byte   // core or extension error code
	Major    byte   // opcode of the request
	Minor    uint16 // minor opcode of the request
	Value    uint32 // offending id, atom or value, where the code has one
	Sequence uint16 // low 16 bits of the request's sequence number
}

// Error implements error.
func (e *XError) Error() string {
	return fmt.Sprintf("x error %d (value 0x%x) for request %d.%d", e.Code, e.Value, e.Major, e.Minor)
}

// IsGone reports whether err says that a window (or other resource) no longer exists.
func IsGone(err error) bool {
	var x *XError
	return errors.As(err, &x) && (x.Code == BadWindow || x.Code == 9 /* BadDrawable */)
}

// ExtensionError says which extension the server lacks, or has in too old a version.
type ExtensionError struct {
	Name string // as registered, such as "RECORD"
	Want string // version wanted, empty when the extension is absent
	Got  string
}

// Error implements error.
func (e *ExtensionError) Error() string {
	if e.Want == "" {
		return fmt.Sprintf("extension %q is absent", e.Name)
	}
	return fmt.Sprintf("extension %q: got version %s, want %s", e.Name, e.Got, e.Want)
}

// Unwrap makes an ExtensionError match ErrNoExtension.
func (e *ExtensionError) Unwrap() error { return ErrNoExtension }
