package process

import (
	"errors"
	"fmt"
)

// ErrGone says that the named process no longer exists, is a zombie, or that its pid belongs to
// another process now. Nothing was signalled.
var ErrGone = errors.New("no such process any more")

// ErrUnsupported says that this operating system has no proof of process identity that we trust.
var ErrUnsupported = errors.New("process identity is not supported on this operating system")

// StartError says why a program could not be started. Nothing is left running.
type StartError struct {
	Path string // as given in the Spec
	Err  error
}

// Error implements error.
func (e *StartError) Error() string { return fmt.Sprintf("start %q: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// ExitError describes how a process ended when it should have gone on, or that it ended badly.
type ExitError struct {
	Path  string // as given in the Spec
	State string // "exit status 3", "signal: killed"
	Tail  string // last bytes of its stderr, then of its stdout if that was kept; bounded by Spec
}

// Error implements error.
func (e *ExitError) Error() string {
	if e.Tail == "" {
		return fmt.Sprintf("%q ended: %s", e.Path, e.State)
	}
	return fmt.Sprintf("%q ended: %s; it said: %q", e.Path, e.State, e.Tail)
}

// LeftError lists processes that outlived an attempt to end them.
type LeftError struct{ Left []Identity }

// Error implements error.
func (e *LeftError) Error() string {
	return fmt.Sprintf("%d processes outlived SIGKILL: %v", len(e.Left), e.Left)
}
