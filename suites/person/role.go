package person

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/engine-acceptance/acceptance/suites/process"
	"github.com/engine-acceptance/acceptance/suites/talk"
	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// maxType bounds one command to type, in characters.
const maxType = 10000

// Work says how the person works on until paused.
type Work struct {
	Every      time.Duration `json:"every"`       // between two strokes, ns in JSON; at least 5 ms
	ClickEvery int           `json:"click_every"` // every so many strokes is a click; 0 is never
	X          int           `json:"x"`           // upper left corner of the 29x29 root pixels that are clicked into
	Y          int           `json:"y"`
}

func (w Work) check() error {
	if w.Every < 5*time.Millisecond || w.Every > time.Minute {
		return fmt.Errorf("one stroke every %v, want 5ms to 1m", w.Every)
	}
	if w.ClickEvery < 0 {
		return fmt.Errorf("a click every %d strokes", w.ClickEvery)
	}
	return nil
}

type point struct {
	X int `json:"x"`
	Y int `json:"y"`
}

type role struct {
	out   *talk.Writer
	hands *hands
	seed  uint64
	n     uint64 // strokes
	typed uint64 // characters
	work  *Work
}

// Main is the role: it injects into DISPLAY with XAUTHORITY what it is told on stdin, until that ends or
// "quit". Exit codes: 0 ended as asked, 1 the display was lost or refused, 2 wrong arguments.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		fmt.Fprintln(stderr, "person: takes no arguments")
		return 2
	}
	if err := run(ctx, stdin, stdout); err != nil {
		fmt.Fprintln(stderr, "person:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	// Our own connection proves that this is the desk's display, and tells when it is lost.
	c, err := xwire.Dial(ctx, os.Getenv("DISPLAY"), os.Getenv("XAUTHORITY"))
	if err != nil {
		return err
	}
	defer c.Close()
	h, err := newHands()
	if err != nil {
		return err
	}
	defer h.close()
	r := &role{out: talk.NewWriter(stdout), hands: h}
	requests := talk.Requests(ctx, stdin)
	next := time.NewTimer(time.Hour)
	next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.Done():
			return c.Err()
		case <-next.C:
			if r.work == nil {
				continue
			}
			if err := r.stroke(); err != nil {
				return err
			}
			next.Reset(r.work.Every)
		case q, ok := <-requests:
			if !ok || q.Op == "quit" {
				return nil
			}
			result, err := r.serve(q)
			if r.work != nil {
				next.Reset(r.work.Every)
			} else {
				next.Stop()
			}
			if err := r.out.Answer(q, result, err); err != nil {
				return err
			}
		}
	}
}

func (r *role) serve(q talk.Request) (any, error) {
	switch q.Op {
	case "hello":
		return Injector, nil
	case "seed":
		return nil, q.Decode(&r.seed)
	case "type":
		var n int
		if err := q.Decode(&n); err != nil {
			return nil, err
		}
		if n < 1 || n > maxType {
			return nil, fmt.Errorf("type %d characters, want 1 to %d", n, maxType)
		}
		for range n {
			if err := r.key(); err != nil {
				return nil, err
			}
		}
		return nil, nil
	case "click":
		var at point
		if err := q.Decode(&at); err != nil {
			return nil, err
		}
		return nil, r.click(at)
	case "work":
		var w Work
		if err := q.Decode(&w); err != nil {
			return nil, err
		}
		if err := w.check(); err != nil {
			return nil, err
		}
		r.work = &w
		return nil, nil
	case "pause":
		// Strokes are injected by this goroutine and return when the server has them: none is on its way.
		r.work = nil
		return r.n, nil
	}
	return nil, fmt.Errorf("unknown operation %q", q.Op)
}

// stroke is the next key or click of continuous work. Clicks go to a place of their own each, in turn.
func (r *role) stroke() error {
	w := r.work
	if w.ClickEvery > 0 && (r.n+1)%uint64(w.ClickEvery) == 0 {
		k := int(r.n / uint64(w.ClickEvery))
		return r.click(point{w.X + k%5*7, w.Y + k/5%5*7})
	}
	return r.key()
}

func (r *role) key() error {
	c := Sequence(r.seed, r.typed)
	r.typed++
	s := Stroke{Kind: Key, Char: string(c), Began: process.Mono()}
	return r.report(s, r.hands.key(c))
}

func (r *role) click(at point) error {
	s := Stroke{Kind: Click, X: at.X, Y: at.Y, Began: process.Mono()}
	return r.report(s, r.hands.click(at.X, at.Y))
}

func (r *role) report(s Stroke, err error) error {
	if err != nil {
		return err
	}
	s.Ended = process.Mono()
	r.n++
	s.N = r.n
	return r.out.Event(s)
}
