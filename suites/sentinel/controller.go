// Package sentinel is a window of the person: the application that has the focus and covers the
// browser (sentinel), or another one that watches for stray input (bystander).
//
// The role, a process of its own, draws a document in which the typed text, a clock and a beat can be seen
// on a film, and logs every event that reaches its window, with the send_event bit. The controller, in
// the worker, places it and keeps the log:
//
//	s, err := sentinel.Start(ctx, d.StartRole, sentinel.Options{})
//	p, err := s.Place(ctx, sentinel.Fully(browser, screen)) // p says what the server has, not what was asked
//	err = s.Echo(ctx)                                       // everything before is in the log now
//	for _, e := range s.Since(mark) { ... }
//
// Placing, raising and minimising are done as a pager does them, through the window manager, and belong
// to the prepare phase.
package sentinel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/engine-acceptance/acceptance/suites/process"
	"github.com/engine-acceptance/acceptance/suites/sessionbus"
	"github.com/engine-acceptance/acceptance/suites/talk"
	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// maxEvents bounds one window's log; a film of an hour has some ten thousand.
const maxEvents = 1 << 20

// ErrOverflow says that more events came than are kept: the log is not complete.
var ErrOverflow = fmt.Errorf("more than %d events", maxEvents)

// Starter starts a role process with pipes on stdin and stdout; (*desk.Desk).StartRole is one.
type Starter func(ctx context.Context, role string, args ...string) (*process.Process, error)

// Options of a window; the zero value is the sentinel's.
type Options struct {
	Role    string // "sentinel" when empty, or "bystander"
	Title   string // empty: "Letter", or "Terminal" for a bystander
	Heading string // empty: the title, or "The person's document" where that is empty, too
	Dark    bool
	Above   bool // keeps itself on top by its own property (desk.Above)
	Quiet   bool // does not take the focus when it opens
	Rect    xwire.Rect
	// Bus makes the window's program one that can be acted on over the desk's buses, as applications are; nothing for the zero value.
	Bus sessionbus.Address
}

// Placement is where a window is, by the server's word.
type Placement struct {
	Window     uint32     `json:"window"`
	Frame      uint32     `json:"frame"` // the manager's window around it
	Client     xwire.Rect `json:"client"`
	FrameRect  xwire.Rect `json:"frame_rect"`
	Focused    bool       `json:"focused"`
	Shown      bool       `json:"shown"`      // it, or its frame at least, is mapped with all its ancestors
	Overlapped int        `json:"overlapped"` // square pixels of windows above it, counted once each
}

// PlacementError says that the window manager did something else than was asked.
type PlacementError struct {
	Op   string
	Want xwire.Rect // of a place
	Got  Placement
}

// Error implements error.
func (e *PlacementError) Error() string {
	return fmt.Sprintf("%s: window manager made it %+v, want client %+v", e.Op, e.Got, e.Want)
}

// Sentinel is the worker's side of one window. Its methods are safe for use by several goroutines.
type Sentinel struct {
	p      *process.Process
	caller *talk.Caller
	window uint32

	mu     sync.Mutex
	events []Event
	err    error
	beat   int64
}

// Start starts the role and waits until its window is shown.
func Start(ctx context.Context, start Starter, o Options) (*Sentinel, error) {
	if o.Role == "" {
		o.Role = "sentinel"
	}
	title, heading := "Letter", "The person's document"
	if o.Role == "bystander" {
		title, heading = "Terminal", "Terminal"
	}
	o.Title, o.Heading = or(o.Title, title), or(o.Heading, or(o.Title, heading))
	args := append([]string{"--title", o.Title, "--heading", or(o.Heading, o.Title)}, o.Bus.Args()...)
	for flag, on := range map[string]bool{"--dark": o.Dark, "--above": o.Above, "--quiet": o.Quiet} {
		if on {
			args = append(args, flag)
		}
	}
	if o.Rect != (xwire.Rect{}) {
		if err := checkSize(o.Rect); err != nil {
			return nil, err
		}
		for flag, v := range map[string]int{"--x": o.Rect.X, "--y": o.Rect.Y, "--width": o.Rect.Width, "--height": o.Rect.Height} {
			args = append(args, flag, strconv.Itoa(v))
		}
	}
	p, err := start(ctx, o.Role, args...)
	if err != nil {
		return nil, err
	}
	s := &Sentinel{p: p}
	s.caller = talk.NewCaller(p.Stdin(), p.Stdout(), s.event)
	w, err := s.Where(ctx)
	if err != nil {
		err = errors.Join(err, p.Stop(ctx, time.Second))
		return nil, fmt.Errorf("start %s: %w: %s", o.Role, err, p.Tail())
	}
	s.window = w.Window
	return s, nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (s *Sentinel) event(line []byte) {
	var e Event
	err := json.Unmarshal(line, &e)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
	case err != nil:
		s.err = fmt.Errorf("log of the window: %w", err)
	case e.N != uint64(len(s.events))+1:
		s.err = fmt.Errorf("log of the window: event %d after %d", e.N, len(s.events))
	case len(s.events) >= maxEvents:
		s.err = ErrOverflow
	default:
		s.events = append(s.events, e)
		if e.Kind == Beat {
			s.beat = e.Mono
		}
	}
}

// Window is the X window, as the server numbers it.
func (s *Sentinel) Window() uint32 { return s.window }

// Process is the role's process.
func (s *Sentinel) Process() *process.Process { return s.p }

// Mark returns the number of the last event, for Since.
func (s *Sentinel) Mark() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint64(len(s.events))
}

// Since returns the events after a mark, oldest first; 0 is all.
func (s *Sentinel) Since(mark uint64) []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mark >= uint64(len(s.events)) {
		return nil
	}
	return slices.Clone(s.events[mark:])
}

// LastBeat is the CLOCK_MONOTONIC time in ns of the last heartbeat, 0 before the first.
func (s *Sentinel) LastBeat() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beat
}

// Err is nil while the log is whole and the role lives.
func (s *Sentinel) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.err, s.caller.Err())
}

// Echo is a barrier: when it returns, every event that the server had sent to the window is in the log.
func (s *Sentinel) Echo(ctx context.Context) error { return s.caller.Ask(ctx, "echo", nil, nil) }

// Where asks the server for the placement.
func (s *Sentinel) Where(ctx context.Context) (Placement, error) {
	var p Placement
	err := s.caller.Ask(ctx, "where", nil, &p)
	return p, err
}

// Place moves and sizes the window so that its inside, without the manager's frame, is at r.
// *PlacementError when the manager did otherwise.
func (s *Sentinel) Place(ctx context.Context, r xwire.Rect) (Placement, error) {
	var p Placement
	err := s.caller.Ask(ctx, "place", r, &p)
	if err == nil && p.Client != r {
		err = &PlacementError{Op: "place", Want: r, Got: p}
	}
	return p, err
}

// Raise shows the window on top and gives it the focus, as a person does who picks it from a task bar.
// *PlacementError when it is not so afterwards.
func (s *Sentinel) Raise(ctx context.Context) (Placement, error) {
	var p Placement
	err := s.caller.Ask(ctx, "raise", nil, &p)
	if err == nil && (!p.Focused || !p.Shown || p.Overlapped > 0) {
		err = &PlacementError{Op: "raise", Want: p.Client, Got: p}
	}
	return p, err
}

// Minimise makes the window an icon. *PlacementError when it is still shown.
func (s *Sentinel) Minimise(ctx context.Context) (Placement, error) {
	var p Placement
	err := s.caller.Ask(ctx, "minimise", nil, &p)
	if err == nil && p.Shown {
		err = &PlacementError{Op: "minimise", Want: p.Client, Got: p}
	}
	return p, err
}

// Close ends the role. It may be called twice.
func (s *Sentinel) Close(ctx context.Context) error { return s.p.Stop(ctx, time.Second) }
