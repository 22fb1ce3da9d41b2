package x11

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// writeBudget bounds one write to the server, and the whole setup. A server that does not take our bytes for so
// long is lost.
const writeBudget = 10 * time.Second

// Handler receives what is not the reply of a Call. Its functions run on the reader's goroutine, in the
// order of the stream, and must not block or call back into a waiting Call on the same connection.
// Any of them may be nil.
type Handler struct {
	Event func(Event)
	Error func(*XError) // errors of requests sent with Send
	Lost  func(error)   // once, when the connection ends; after it nothing else is called
	// Behind is told after each read how much kernel memory the server's unread messages held, in bytes, rounded
	// up generously. At SendBuffer the server can write no more for the time being. It runs on a goroutine of
	// its own, ahead of the events.
	Behind func(backlog int)
}

type pending struct {
	done   func(Reply, error)
	stream bool
}

// Conn is one connection. Its methods are safe for concurrent use.
type Conn struct {
	nc    net.Conn
	setup Setup

	wmu sync.Mutex // orders writes with their sequence numbers
	seq uint16

	mu      sync.Mutex
	handler Handler
	waiting map[uint16]pending
	lostErr error
	told    bool // Lost was called
	nextID  uint32
	exts    map[string]Extension
	atoms   map[string]uint32

	lost    chan struct{}
	readers sync.WaitGroup
}

// Dial connects to a local display, authenticates with the MIT-MAGIC-COOKIE-1 of the given authority file
// (no authentication when the path is empty) and starts the reader. The environment is not consulted. Close
// frees the connection. Errors match ErrDisplay, ErrAuthority, ErrSetup or wrap the socket's own.
func Dial(ctx context.Context, display, xauthority string) (*Conn, error) {
	n, err := ParseDisplay(display)
	if err != nil {
		return nil, err
	}
	name, cookie := "", []byte(nil)
	if xauthority != "" {
		if cookie, err = readCookie(xauthority, n); err != nil {
			return nil, err
		}
		name = cookieName
	}
	var d net.Dialer
	path := "/tmp/.X11-unix/X" + strconv.Itoa(n)
	nc, err := d.DialContext(ctx, "unix", path)
	if err != nil && runtime.GOOS == "linux" && errors.Is(err, os.ErrNotExist) {
		nc, err = d.DialContext(ctx, "unix", "@"+path) // servers may listen on the abstract name only
	}
	if err != nil {
		return nil, fmt.Errorf("connect to display %d: %w", n, err)
	}
	c, err := newConn(ctx, nc, name, cookie)
	if err != nil {
		_ = nc.Close() // the setup error says more
		return nil, fmt.Errorf("display %d: %w", n, err)
	}
	return c, nil
}

// newConn runs the setup on an open stream. The caller closes nc when it fails.
func newConn(ctx context.Context, nc net.Conn, authName string, authData []byte) (*Conn, error) {
	deadline := time.Now().Add(writeBudget)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := nc.SetDeadline(deadline); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := nc.Write(setupRequest(authName, authData)); err != nil {
		return nil, fmt.Errorf("send setup: %w: %w", ErrSetup, err)
	}
	r := bufio.NewReaderSize(nc, 64<<10)
	header := make([]byte, 8)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, fmt.Errorf("read setup: %w: %w", ErrSetup, err)
	}
	body := make([]byte, int(le.Uint16(header[6:]))*4)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, fmt.Errorf("read setup: %w: %w", ErrSetup, err)
	}
	s, err := ParseSetup(header, body)
	if err != nil {
		return nil, err
	}
	if !stop() {
		return nil, fmt.Errorf("setup: %w", context.Cause(ctx))
	}
	if err := nc.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	c := &Conn{nc: nc, setup: s, waiting: map[uint16]pending{}, exts: map[string]Extension{},
		atoms: map[string]uint32{}, lost: make(chan struct{})}
	seed, err := r.Peek(r.Buffered())
	if err != nil {
		return nil, err
	}
	p := newPump(nc, seed, c.behind)
	c.readers.Add(2)
	go func() { defer c.readers.Done(); p.run() }()
	go c.read(bufio.NewReaderSize(p, 64<<10))
	return c, nil
}

// Setup is what the server said at connection time.
func (c *Conn) Setup() Setup { return c.setup }

// Root is the root window of screen 0.
func (c *Conn) Root() uint32 { return c.setup.Root }

// Handle sets the handler. Set it before selecting events; one that comes late misses what came before.
// When the connection is already lost, Lost is called at once.
func (c *Conn) Handle(h Handler) {
	c.mu.Lock()
	c.handler = h
	err := c.lostErr
	tell := err != nil && !c.told && h.Lost != nil
	c.told = c.told || tell
	c.mu.Unlock()
	if tell {
		h.Lost(err)
	}
}

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.lost }

// Err is nil while the connection lives, then the cause of its end.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lostErr
}

// Close ends the connection and waits for the reader. Windows and other resources of the connection go with
// it. It may be called more than once, but not from a Handler.
func (c *Conn) Close() error {
	err := c.end(ErrClosed)
	c.readers.Wait()
	return err
}

// end records the first cause, closes the socket and answers every waiting call.
func (c *Conn) end(cause error) error {
	c.mu.Lock()
	if c.lostErr != nil {
		c.mu.Unlock()
		return nil
	}
	c.lostErr = cause
	waiting := c.waiting
	c.waiting = nil
	lost := c.handler.Lost
	c.told = lost != nil
	c.mu.Unlock()
	err := c.nc.Close()
	for _, p := range waiting {
		p.done(Reply{}, cause)
	}
	close(c.lost)
	if lost != nil {
		lost(cause)
	}
	return err
}

func (c *Conn) behind(backlog int) {
	c.mu.Lock()
	f := c.handler.Behind
	c.mu.Unlock()
	if f != nil {
		f(backlog)
	}
}

// SendBuffer is the kernel memory, in bytes, that a local server's unread messages to one client may hold.
func SendBuffer() int {
	const usual = 212992 // net.core.wmem_default of Linux
	b, err := os.ReadFile("/proc/sys/net/core/wmem_default")
	if err != nil {
		return usual
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n <= 0 {
		return usual
	}
	return n
}

func (c *Conn) read(r *bufio.Reader) {
	defer c.readers.Done()
	err := c.readFrames(r)
	_ = c.end(fmt.Errorf("%w: %w", ErrLost, err)) // closing a broken socket tells nothing new
}

// readFrames reads until the stream ends. Buffers of events and streamed replies are used again.
func (c *Conn) readFrames(r *bufio.Reader) error {
	var shared []byte
	var head [32]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		total := 32
		if head[0] == 1 || head[0]&0x7f == GenericEvent {
			extra := uint64(le.Uint32(head[4:])) * 4
			if extra > 1<<31 {
				return fmt.Errorf("frame of %d bytes: %w", extra, ErrTooLarge)
			}
			total += int(extra)
		}
		kept := min(total, MaxFrame)
		seq := le.Uint16(head[2:])
		var p pending
		var found bool
		c.mu.Lock()
		if head[0] <= 1 {
			if p, found = c.waiting[seq]; found && (!p.stream || head[0] == 0) {
				delete(c.waiting, seq)
			}
		}
		h := c.handler
		c.mu.Unlock()

		var buf []byte
		if head[0] == 1 && found && !p.stream {
			buf = make([]byte, kept) // the caller keeps it
		} else {
			if cap(shared) < kept {
				shared = make([]byte, kept)
			}
			buf = shared[:kept]
		}
		copy(buf, head[:])
		if _, err := io.ReadFull(r, buf[32:]); err != nil {
			return err
		}
		if total > kept {
			if _, err := io.CopyN(io.Discard, r, int64(total-kept)); err != nil {
				return err
			}
		}
		switch {
		case head[0] == 0:
			f := Little(buf)
			e := &XError{Code: f.U8(1), Sequence: seq, Value: f.U32(4), Minor: f.U16(8), Major: f.U8(10)}
			if found {
				p.done(Reply{}, e)
			} else if h.Error != nil {
				h.Error(e)
			}
		case head[0] == 1:
			if found {
				p.done(Reply{Fields: Little(buf), Total: total}, nil)
			}
		default:
			if h.Event != nil {
				h.Event(Event{Fields: Little(buf), Code: head[0] & 0x7f, SendEvent: head[0]&0x80 != 0, Total: total})
			}
		}
		if cap(shared) > 64<<10 { // one giant frame must not be kept for ever
			shared = nil
		}
	}
}

// write sends finished requests in one write; the last of them gets p when it is not nil.
func (c *Conn) write(ctx context.Context, p *pending, reqs []*Request) (uint16, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	var out []byte
	for i, r := range reqs {
		b, err := r.Bytes()
		if err != nil {
			return 0, err
		}
		if len(b) > c.setup.MaxRequest {
			return 0, fmt.Errorf("request %d of %d bytes: %w", b[0], len(b), ErrTooLarge)
		}
		if i == 0 && len(reqs) == 1 {
			out = b
		} else {
			out = append(out, b...)
		}
	}
	c.wmu.Lock()
	defer c.wmu.Unlock()
	seq := c.seq + uint16(len(reqs))
	c.mu.Lock()
	if c.lostErr != nil {
		err := c.lostErr
		c.mu.Unlock()
		return 0, err
	}
	if p != nil {
		c.waiting[seq] = *p
	}
	c.mu.Unlock()
	c.seq = seq
	// Not the context's deadline: a write cut in the middle costs the connection, which a short budget must not.
	if err := c.nc.SetWriteDeadline(time.Now().Add(writeBudget)); err != nil {
		return seq, c.broken(err)
	}
	if _, err := c.nc.Write(out); err != nil {
		return seq, c.broken(err) // a partial write cannot be mended
	}
	return seq, nil
}

func (c *Conn) broken(err error) error {
	lost := fmt.Errorf("%w: write: %w", ErrLost, err)
	_ = c.end(lost) // the cause is in lost
	return lost
}

// Send writes requests that have no reply, in one write. Errors of the requests reach Handler.Error.
func (c *Conn) Send(ctx context.Context, reqs ...*Request) error {
	if len(reqs) == 0 {
		return nil
	}
	_, err := c.write(ctx, nil, reqs)
	return err
}

// Async sends a request and calls done with its reply or error on the reader's goroutine, or on the caller's
// when the request cannot be sent. done is called exactly once and must not block.
func (c *Conn) Async(ctx context.Context, req *Request, done func(Reply, error)) {
	var once sync.Once
	p := pending{done: func(r Reply, err error) { once.Do(func() { done(r, err) }) }}
	if _, err := c.write(ctx, &p, []*Request{req}); err != nil {
		p.done(Reply{}, err)
	}
}

// Call sends a request and waits for its reply within ctx (a server that takes no bytes can hold it up to ten
// seconds longer, and is lost then). The error is an *XError, matches ErrLost, or is
// the context's; after the latter the late reply is dropped.
func (c *Conn) Call(ctx context.Context, req *Request) (Reply, error) {
	type result struct {
		r   Reply
		err error
	}
	ch := make(chan result, 1)
	c.Async(ctx, req, func(r Reply, err error) { ch <- result{r, err} })
	select {
	case res := <-ch:
		return res.r, res.err
	case <-ctx.Done():
		select {
		case res := <-ch: // both were ready: the reply wins
			return res.r, res.err
		default:
		}
		return Reply{}, fmt.Errorf("no reply: %w", context.Cause(ctx))
	}
}

// Stream sends a request that has any number of replies and calls each for every one on the reader's
// goroutine; r.B is valid only during the call. err is set once, last, when the server answers with an error
// or the connection ends.
func (c *Conn) Stream(ctx context.Context, req *Request, each func(r Reply, err error)) error {
	_, err := c.write(ctx, &pending{done: each, stream: true}, []*Request{req})
	return err
}

// NewID returns an unused resource id of this connection.
func (c *Conn) NewID() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextID++
	return c.setup.ResourceBase | (c.nextID & c.setup.ResourceMask)
}

// Sync is a round trip: when it returns, every request sent before was run and every event that the server
// wrote before was handled.
func (c *Conn) Sync(ctx context.Context) error {
	_, err := c.Call(ctx, NewRequest(43, 0)) // GetInputFocus
	return err
}
