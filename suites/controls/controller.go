package controls

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/engine-acceptance/acceptance/suites/process"
	"github.com/engine-acceptance/acceptance/suites/sessionbus"
	"github.com/engine-acceptance/acceptance/suites/talk"
)

// Starter starts a role process with pipes on stdin and stdout; (*desk.Desk).StartRole is one.
type Starter func(ctx context.Context, role string, args ...string) (*process.Process, error)

// Options of the controls.
type Options struct {
	// Clipboard is the text of the person's clipboard and primary selection, at most 64 KiB.
	Clipboard string
	// Bus is where the person's application is acted on; without one the kinds of buses are not committed.
	Bus sessionbus.Address
}

// Controls is the worker's side. Its methods are safe for use by several goroutines.
type Controls struct {
	p      *process.Process
	caller *talk.Caller
}

// Start starts the role and waits until its panel is at the bottom of the desk and the selections are its.
func Start(ctx context.Context, start Starter, o Options) (*Controls, error) {
	p, err := start(ctx, "controls", o.Bus.Args()...)
	if err != nil {
		return nil, err
	}
	c := &Controls{p: p, caller: talk.NewCaller(p.Stdin(), p.Stdout(), nil)}
	if err := c.SetClipboard(ctx, o.Clipboard); err != nil {
		err = errors.Join(err, p.Stop(ctx, time.Second))
		return nil, fmt.Errorf("start controls: %w: %s", err, p.Tail())
	}
	return c, nil
}

// Process is the role's process; the guards must attribute what it does to its pid.
func (c *Controls) Process() *process.Process { return c.p }

// SetClipboard makes text the person's clipboard and primary selection, and the role their owner.
func (c *Controls) SetClipboard(ctx context.Context, text string) error {
	return c.caller.Ask(ctx, "clipboard", text, nil)
}

// Commit commits and undoes every kind of Kinds. The person must be paused, and the victim, the person's
// window, must have the focus, or it is refused with nothing done. An error after that says which act
// the server refused; then the guards are not proven.
func (c *Controls) Commit(ctx context.Context, victim uint32) (Result, error) {
	var r Result
	err := c.caller.Ask(ctx, "commit", victim, &r)
	return r, err
}

// CommitOnce commits and undoes every kind of KindsOnce; it may take some hundred ms.
func (c *Controls) CommitOnce(ctx context.Context, victim uint32) (Result, error) {
	var r Result
	err := c.caller.Ask(ctx, "once", victim, &r)
	return r, err
}

// Err is nil while the role lives.
func (c *Controls) Err() error { return c.caller.Err() }

// Close ends the role. It may be called twice.
func (c *Controls) Close(ctx context.Context) error { return c.p.Stop(ctx, time.Second) }
