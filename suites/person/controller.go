package person

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/engine-acceptance/acceptance/suites/process"
	"github.com/engine-acceptance/acceptance/suites/talk"
)

// maxStrokes bounds what one person's report keeps.
const maxStrokes = 1 << 20

// Starter starts a role process with pipes on stdin and stdout; (*desk.Desk).StartRole is one.
type Starter func(ctx context.Context, role string, args ...string) (*process.Process, error)

// Person is the worker's side. Its methods are safe for use by several goroutines.
type Person struct {
	p        *process.Process
	caller   *talk.Caller
	injector string

	mu      sync.Mutex
	strokes []Stroke
	err     error
}

// Start starts the role; it does nothing yet.
func Start(ctx context.Context, start Starter, seed uint64) (*Person, error) {
	pr, err := start(ctx, "person")
	if err != nil {
		return nil, err
	}
	p := &Person{p: pr}
	p.caller = talk.NewCaller(pr.Stdin(), pr.Stdout(), p.event)
	if err = p.caller.Ask(ctx, "hello", nil, &p.injector); err == nil {
		err = p.Seed(ctx, seed)
	}
	if err != nil {
		err = errors.Join(err, pr.Stop(ctx, time.Second))
		return nil, fmt.Errorf("start person: %w: %s", err, pr.Tail())
	}
	return p, nil
}

func (p *Person) event(line []byte) {
	var s Stroke
	err := json.Unmarshal(line, &s)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil:
	case err != nil:
		p.err = fmt.Errorf("report of the person: %w", err)
	case s.N != uint64(len(p.strokes))+1 || len(p.strokes) >= maxStrokes:
		p.err = fmt.Errorf("report of the person: stroke %d after %d", s.N, len(p.strokes))
	default:
		p.strokes = append(p.strokes, s)
	}
}

// Injector is what injects: "robotgo" or "xgb". It is a fact of provenance.
func (p *Person) Injector() string { return p.injector }

// Process is the role's process; the guards know its requests by its pid.
func (p *Person) Process() *process.Process { return p.p }

// Seed sets the sequence that is typed from now on, at the place where the last one was left.
func (p *Person) Seed(ctx context.Context, seed uint64) error {
	return p.caller.Ask(ctx, "seed", seed, nil)
}

// Type types the next n characters (1 to 10,000) and returns when the server has them all.
func (p *Person) Type(ctx context.Context, n int) error { return p.caller.Ask(ctx, "type", n, nil) }

// Click moves the pointer to a place on the root window, in pixels, and clicks the left button.
func (p *Person) Click(ctx context.Context, x, y int) error {
	return p.caller.Ask(ctx, "click", point{x, y}, nil)
}

// Link clicks a link of a page, in prepare, so that it opens a window that no engine opened. It is a Click;
// its stroke is not one for the sentinel, so take Mark after it.
func (p *Person) Link(ctx context.Context, x, y int) error { return p.Click(ctx, x, y) }

// Work lets the person work on until Pause. A second call changes how.
func (p *Person) Work(ctx context.Context, w Work) error { return p.caller.Ask(ctx, "work", w, nil) }

// Pause stops the work and returns when the last stroke is with the server and in Strokes.
func (p *Person) Pause(ctx context.Context) error { return p.caller.Ask(ctx, "pause", nil, nil) }

// Mark returns the number of the last stroke, for Since.
func (p *Person) Mark() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return uint64(len(p.strokes))
}

// Since returns the strokes after a mark; 0 is all.
func (p *Person) Since(mark uint64) []Stroke {
	p.mu.Lock()
	defer p.mu.Unlock()
	if mark >= uint64(len(p.strokes)) {
		return nil
	}
	return slices.Clone(p.strokes[mark:])
}

// Strokes returns all strokes so far.
func (p *Person) Strokes() []Stroke { return p.Since(0) }

// Err is nil while the report is whole and the role lives.
func (p *Person) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.err, p.caller.Err())
}

// Close ends the role. It may be called twice.
func (p *Person) Close(ctx context.Context) error { return p.p.Stop(ctx, time.Second) }
