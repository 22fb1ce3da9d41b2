// Package talk is the line protocol between a worker and the role processes of its desk.
//
// Requests and answers are JSON, one a line. The worker asks {"id":1,"op":"place","args":{...}};
// the role answers {"re":1,"result":{...}} or {"re":1,"error":"..."}; any other line of the role is
// an event of its own. Lines are bounded, questions have a budget, and an end of the stream fails
// every open question.
//
//	Caller   the worker's side: Ask, and a handler for events
//	Requests the role's side: a channel of requests
//	Writer   the role's side: answers and events, one whole line each
package talk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// MaxLine bounds one line in bytes, without its line feed.
const MaxLine = 1 << 20

// DefaultBudget bounds a question whose context has no deadline.
const DefaultBudget = 5 * time.Second

// ErrClosed says that the other side has gone.
var ErrClosed = errors.New("the other side closed the conversation")

// ErrLineTooLong says that a line exceeded MaxLine; the conversation ends with it.
var ErrLineTooLong = fmt.Errorf("line longer than %d bytes", MaxLine)

// RemoteError is an answer that refuses: the role's own words.
type RemoteError struct{ Op, Text string }

// Error implements error.
func (e *RemoteError) Error() string { return fmt.Sprintf("%s: %s", e.Op, e.Text) }

// Request is one question.
type Request struct {
	ID   uint64          `json:"id"`
	Op   string          `json:"op"`
	Args json.RawMessage `json:"args,omitempty"`
}

// Decode reads the arguments strictly into v: unknown fields are an error.
func (r Request) Decode(v any) error {
	if len(r.Args) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(r.Args))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("arguments of %q: %w", r.Op, err)
	}
	return nil
}

type answer struct {
	Re     *uint64         `json:"re"`
	Error  string          `json:"error,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// Caller asks a role. Create it with NewCaller; it is safe for use by several goroutines.
type Caller struct {
	w       io.Writer
	writing sync.Mutex
	mu      sync.Mutex
	next    uint64
	open    map[uint64]chan answer
	err     error
	done    chan struct{}
}

// NewCaller reads the role's lines from r until it ends and hands those that are no answers to
// event, one after the other, in order; event may be nil and must not call Ask. An answer is given
// to its asker after every line before it was handled. The slice is event's to keep.
func NewCaller(w io.Writer, r io.Reader, event func(line []byte)) *Caller {
	c := &Caller{w: w, open: map[uint64]chan answer{}, done: make(chan struct{})}
	go c.read(r, event)
	return c
}

func (c *Caller) read(r io.Reader, event func([]byte)) {
	err := Lines(r, func(line []byte) error {
		var a answer
		if json.Unmarshal(line, &a) != nil || a.Re == nil {
			if event != nil {
				event(line)
			}
			return nil
		}
		c.mu.Lock()
		ch := c.open[*a.Re]
		delete(c.open, *a.Re)
		c.mu.Unlock()
		if ch != nil {
			ch <- a
		}
		return nil
	})
	if err == nil {
		err = ErrClosed
	}
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	close(c.done)
}

// Done is closed when the role's stream has ended; Err says why.
func (c *Caller) Done() <-chan struct{} { return c.done }

// Err is nil while the conversation goes on, then ErrClosed or the reading error.
func (c *Caller) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Ask sends a question and waits for its answer, which it decodes into result unless that is nil.
// Without a deadline in ctx the budget is DefaultBudget. Errors: *RemoteError, ErrClosed, the
// context's.
func (c *Caller) Ask(ctx context.Context, op string, args, result any) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultBudget)
		defer cancel()
	}
	req := Request{Op: op}
	if args != nil {
		b, err := json.Marshal(args)
		if err != nil {
			return fmt.Errorf("ask %q: %w", op, err)
		}
		req.Args = b
	}
	ch := make(chan answer, 1)
	c.mu.Lock()
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		return fmt.Errorf("ask %q: %w", op, err)
	}
	c.next++
	req.ID = c.next
	c.open[req.ID] = ch
	c.mu.Unlock()
	line, err := json.Marshal(req)
	if err == nil && len(line) > MaxLine {
		err = ErrLineTooLong
	}
	if err == nil {
		c.writing.Lock()
		_, err = c.w.Write(append(line, '\n'))
		c.writing.Unlock()
	}
	if err != nil {
		c.forget(req.ID)
		return fmt.Errorf("ask %q: %w", op, err)
	}
	select {
	case a := <-ch:
		return a.into(op, result)
	case <-ctx.Done():
		c.forget(req.ID)
		return fmt.Errorf("ask %q: no answer: %w", op, ctx.Err())
	case <-c.done:
		select {
		case a := <-ch: // it answered, then ended
			return a.into(op, result)
		default:
			return fmt.Errorf("ask %q: %w", op, c.Err())
		}
	}
}

func (a answer) into(op string, result any) error {
	if a.Error != "" {
		return &RemoteError{Op: op, Text: a.Error}
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(a.Result, result); err != nil {
		return fmt.Errorf("answer to %q: %w", op, err)
	}
	return nil
}

func (c *Caller) forget(id uint64) {
	c.mu.Lock()
	delete(c.open, id)
	c.mu.Unlock()
}

// Lines calls f with each line of r, without its line feed, until r ends or f fails. The slice is
// f's to keep. A last line without line feed is a torn write and is dropped. An end of r is nil.
func Lines(r io.Reader, f func(line []byte) error) error {
	br := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	for {
		part, err := br.ReadSlice('\n')
		if len(line)+len(part) > MaxLine+1 {
			return ErrLineTooLong
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := f(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return err
		}
		line = nil
	}
}

// Requests reads questions until r ends, ctx ends or a line is no request; then it closes the
// channel. A role ends when its channel does.
func Requests(ctx context.Context, r io.Reader) <-chan Request {
	ch := make(chan Request)
	go func() {
		defer close(ch)
		_ = Lines(r, func(line []byte) error {
			var q Request
			if err := json.Unmarshal(line, &q); err != nil {
				return err
			}
			select {
			case ch <- q:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return ch
}

// Writer writes whole lines; safe for use by several goroutines.
type Writer struct {
	mu sync.Mutex
	w  io.Writer
}

// NewWriter returns a Writer on w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Event writes v as one line. v must not have a top-level field "re".
func (w *Writer) Event(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.w.Write(append(b, '\n'))
	return err
}

// Answer answers q with result, or refuses with err when that is not nil.
func (w *Writer) Answer(q Request, result any, err error) error {
	a := answer{Re: &q.ID}
	if err != nil {
		a.Error = err.Error()
		if a.Error == "" {
			a.Error = "failed"
		}
	} else if result != nil {
		if a.Result, err = json.Marshal(result); err != nil {
			return err
		}
	}
	return w.Event(a)
}
