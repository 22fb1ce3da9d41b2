package desk

import (
	"fmt"
	"strings"
)

// MissingProgramError says that a part of the desk is not installed.
type MissingProgramError struct {
	Program string // what was looked for
	Package string // Debian package that has it
	Err     error
}

// Error implements error.
func (e *MissingProgramError) Error() string {
	return fmt.Sprintf("%s not found: %v; install it (Debian: apt-get install %s)", e.Program, e.Err, e.Package)
}

// Unwrap returns the cause.
func (e *MissingProgramError) Unwrap() error { return e.Err }

// Attempt is one directory that was tried.
type Attempt struct {
	Dir string
	Err error
}

// DirectoryError says that no place for the homes of a desk could be written.
type DirectoryError struct{ Tried []Attempt }

// Error implements error.
func (e *DirectoryError) Error() string {
	var b strings.Builder
	b.WriteString("no writable directory for the desk's homes; tried")
	for _, a := range e.Tried {
		fmt.Fprintf(&b, " %q (%v)", a.Dir, a.Err)
	}
	b.WriteString("; mount a tmpfs on /dev/shm, or set XDG_RUNTIME_DIR or TMPDIR to a directory that this user may write")
	return b.String()
}

// ReadinessError says that a part started but did not become ready.
type ReadinessError struct {
	Part string // "X server", "window manager", "session bus", "compositor"
	Err  error
}

// Error implements error.
func (e *ReadinessError) Error() string {
	return fmt.Sprintf("%s did not become ready: %v", e.Part, e.Err)
}

// Unwrap returns the cause.
func (e *ReadinessError) Unwrap() error { return e.Err }

// LostError says that a part of an open desk ended by itself. It is the environment's fault.
type LostError struct {
	Part string
	Err  error
}

// Error implements error.
func (e *LostError) Error() string { return fmt.Sprintf("desk lost its %s: %v", e.Part, e.Err) }

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

// IdentityError says that engine and browsers cannot get the identity that was asked for.
type IdentityError struct {
	UID    int
	Reason string
}

// Error implements error.
func (e *IdentityError) Error() string {
	return fmt.Sprintf("uid %d for engine and browsers: %s", e.UID, e.Reason)
}

// ResidueError lists what closing a desk could not remove.
type ResidueError struct{ Left []string }

// Error implements error.
func (e *ResidueError) Error() string { return "desk left behind: " + strings.Join(e.Left, "; ") }
