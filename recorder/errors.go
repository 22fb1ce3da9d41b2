package recorder

import (
	"errors"
	"fmt"
)

// Kinds of [Error], for errors.Is.
var (
	ErrUnsupported = errors.New("filming is not supported here")
	ErrConfig      = errors.New("film configuration is not usable")
	ErrDisplay     = errors.New("display lost or not usable")
	ErrNoEncoder   = errors.New("no encoder")
	ErrEncoderDied = errors.New("encoder died")
	ErrEncoderHung = errors.New("encoder does not take frames")
	ErrDiskFull    = errors.New("disk full")
	ErrWrite       = errors.New("evidence not written")
	ErrStopped     = errors.New("film has ended")
)

// Error says what the recorder was doing, which kind of failure it was, and why.
type Error struct {
	Op   string // "start film", "film", "still", "check film"
	Kind error  // one of the kinds above
	Err  error  // the cause; may be nil
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s: %v", e.Op, e.Kind)
	}
	return fmt.Sprintf("%s: %v: %v", e.Op, e.Kind, e.Err)
}

// Unwrap returns kind and cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

func fail(op string, kind, err error) *Error { return &Error{op, kind, err} }
