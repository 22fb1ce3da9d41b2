package xwire

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/engine-acceptance/acceptance/suites/process"
)

const (
	maxReply = 32 << 20 // bytes of one reply; a whole 1280x800 image has 4 MiB
	maxQueue = 1 << 17  // events that nobody took

	// DefaultBudget bounds a Call whose context has no deadline.
	DefaultBudget = 5 * time.Second
)

var le = binary.LittleEndian

// Errors of a connection.
var (
	ErrClosed   = errors.New("the X connection is closed")
	ErrOverflow = fmt.Errorf("more than %d X events were not taken", maxQueue)
)

// AddressError says that a display name is not a local one, such as ":7".
type AddressError struct{ Display string }

// Error implements error.
func (e *AddressError) Error() string { return fmt.Sprintf("display %q: want :NUMBER", e.Display) }

// RefusedError is the server's refusal of a connection, such as a wrong cookie.
type RefusedError struct{ Reason string }

// Error implements error.
func (e *RefusedError) Error() string { return "the X server refused the connection: " + e.Reason }

// ProtocolError is an X error that answers a request.
type ProtocolError struct {
	Code   byte // 3 BadWindow, 8 BadMatch, 10 BadAccess ...
	Major  byte // opcode of the request
	Minor  uint16
	Value  uint32 // the resource or value it is about
	Serial uint16
}

// Error implements error.
func (e *ProtocolError) Error() string {
	return fmt.Sprintf("X error %d for request %d.%d, value 0x%x", e.Code, e.Major, e.Minor, e.Value)
}

// Event is one event as the server sent it.
type Event struct {
	Kind byte  // code without the send_event bit
	Sent bool  // came from SendEvent, not from the server's devices or state
	Mono int64 // CLOCK_MONOTONIC in ns when it was read
	Raw  []byte
}

// Setup is what the server told at connection.
type Setup struct {
	Vendor        string
	Release       uint32
	Root          uint32
	RootVisual    uint32
	RootDepth     byte
	Width, Height int // pixels of the first screen
	MinKeycode    byte
	MaxKeycode    byte
	ServerPID     int // pid of the process that listens on the socket, by the kernel's word; 0 unknown
	MaxRequest    int // bytes
}

// Conn is a connection. Its methods are safe for use by several goroutines.
type Conn struct {
	Setup
	nc    net.Conn
	mu    sync.Mutex // guards all below, and writing
	seq   uint16
	next  uint32
	base  uint32
	mask  uint32
	calls map[uint16]chan result
	queue []Event
	errs  []*ProtocolError
	err   error
	wake  chan struct{}
	done  chan struct{}
	atoms map[string]uint32
}

type result struct {
	b   []byte
	err error
}

// Dial connects to a local display (":7") with the cookie of the Xauthority file; an empty path
// sends none. Errors: *AddressError, *RefusedError, network errors.
func Dial(ctx context.Context, display, xauthority string) (*Conn, error) {
	num, ok := strings.CutPrefix(display, ":")
	num, _, _ = strings.Cut(num, ".")
	if _, err := strconv.ParseUint(num, 10, 16); !ok || err != nil {
		return nil, &AddressError{Display: display}
	}
	cookie, err := Cookie(xauthority, num)
	if err != nil {
		return nil, err
	}
	ctx, cancel := budget(ctx)
	defer cancel()
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unix", "/tmp/.X11-unix/X"+num)
	if err != nil {
		return nil, fmt.Errorf("connect to display %s: %w", display, err)
	}
	c := &Conn{nc: nc, calls: map[uint16]chan result{}, wake: make(chan struct{}, 1), done: make(chan struct{}), atoms: map[string]uint32{}}
	if deadline, ok := ctx.Deadline(); ok {
		_ = nc.SetDeadline(deadline)
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	r := bufio.NewReaderSize(nc, 64<<10)
	err = c.handshake(r, cookie)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("connect to display %s: %w", display, err)
	}
	_ = nc.SetDeadline(time.Time{})
	c.ServerPID = peerPID(nc)
	go c.read(r)
	return c, nil
}

func budget(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, DefaultBudget)
}

func (c *Conn) handshake(r io.Reader, cookie []byte) error {
	name := CookieName
	if cookie == nil {
		name = ""
	}
	b := []byte{'l', 0, 11, 0, 0, 0}
	b = le.AppendUint16(b, uint16(len(name)))
	b = le.AppendUint16(b, uint16(len(cookie)))
	b = append(b, 0, 0)
	b = pad(append(b, name...))
	b = pad(append(b, cookie...))
	if _, err := c.nc.Write(b); err != nil {
		return err
	}
	var h [8]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return err
	}
	body := make([]byte, int(le.Uint16(h[6:]))*4)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	if h[0] != 1 {
		reason := body
		if h[0] == 0 && int(h[1]) < len(body) {
			reason = body[:h[1]]
		}
		return &RefusedError{Reason: strings.TrimSpace(strings.TrimRight(string(reason), "\x00"))}
	}
	return c.parseSetup(body)
}

func (c *Conn) parseSetup(b []byte) error {
	short := errors.New("the X setup is too short")
	if len(b) < 32 {
		return short
	}
	vendor, formats := int(le.Uint16(b[16:])), int(b[21])
	screen := 32 + (vendor+3)/4*4 + formats*8
	if b[20] < 1 || len(b) < screen+40 {
		return short
	}
	c.Release, c.base, c.mask = le.Uint32(b), le.Uint32(b[4:]), le.Uint32(b[8:])
	c.MaxRequest = int(le.Uint16(b[18:])) * 4
	c.MinKeycode, c.MaxKeycode = b[26], b[27]
	c.Vendor = string(b[32 : 32+vendor])
	s := b[screen:]
	c.Root, c.RootVisual, c.RootDepth = le.Uint32(s), le.Uint32(s[32:]), s[38]
	c.Width, c.Height = int(le.Uint16(s[20:])), int(le.Uint16(s[22:]))
	return nil
}

func (c *Conn) read(r io.Reader) {
	err := c.loop(r)
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) {
		err = ErrClosed
	}
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	for seq, ch := range c.calls {
		delete(c.calls, seq)
		ch <- result{err: c.err}
	}
	c.mu.Unlock()
	c.nc.Close()
	close(c.done)
}

func (c *Conn) loop(r io.Reader) error {
	for {
		b := make([]byte, 32)
		if _, err := io.ReadFull(r, b); err != nil {
			return err
		}
		if b[0] == 1 || b[0]&0x7f == 35 {
			n := int64(le.Uint32(b[4:])) * 4
			if n > maxReply {
				return fmt.Errorf("the X message of %d bytes, more than %d", n, maxReply)
			}
			if n > 0 {
				more := make([]byte, 32+n)
				copy(more, b)
				if _, err := io.ReadFull(r, more[32:]); err != nil {
					return err
				}
				b = more
			}
		}
		if err := c.dispatch(b); err != nil {
			return err
		}
	}
}

func (c *Conn) dispatch(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b[0] > 1 {
		if len(c.queue) >= maxQueue {
			c.err = ErrOverflow
			return ErrOverflow
		}
		c.queue = append(c.queue, Event{Kind: b[0] & 0x7f, Sent: b[0]&0x80 != 0, Mono: process.Mono(), Raw: b})
		select {
		case c.wake <- struct{}{}:
		default:
		}
		return nil
	}
	seq := le.Uint16(b[2:])
	ch := c.calls[seq]
	delete(c.calls, seq)
	res := result{b: b}
	if b[0] == 0 {
		e := &ProtocolError{Code: b[1], Major: b[10], Minor: le.Uint16(b[8:]), Value: le.Uint32(b[4:]), Serial: seq}
		res = result{err: e}
		if ch == nil && len(c.errs) < 256 {
			c.errs = append(c.errs, e)
		}
	}
	if ch != nil {
		ch <- res
	}
	return nil
}

// Send writes requests that have no reply, all in one write, so that nothing comes between them but
// what the server itself does. Their X errors go to Errors.
func (c *Conn) Send(reqs ...*Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	var b []byte
	for _, r := range reqs {
		b = append(b, r.bytes()...)
	}
	c.seq += uint16(len(reqs))
	return c.write(b)
}

func (c *Conn) write(b []byte) error {
	_ = c.nc.SetWriteDeadline(time.Now().Add(DefaultBudget))
	if _, err := c.nc.Write(b); err != nil {
		c.err = fmt.Errorf("write to X server: %w", err)
		c.nc.Close()
		return c.err
	}
	return nil
}

// Call sends one request and waits for its reply. Events that the server sent before the reply are
// in the queue when it returns. Errors: *ProtocolError, the connection's, the context's.
func (c *Conn) Call(ctx context.Context, r *Request) ([]byte, error) {
	ctx, cancel := budget(ctx)
	defer cancel()
	ch := make(chan result, 1)
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return nil, c.err
	}
	c.seq++
	seq := c.seq
	c.calls[seq] = ch
	if err := c.write(r.bytes()); err != nil {
		delete(c.calls, seq)
		c.mu.Unlock()
		return nil, err
	}
	c.mu.Unlock()
	select {
	case res := <-ch:
		return res.b, res.err
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.calls, seq)
		c.mu.Unlock()
		return nil, fmt.Errorf("the X request %d: no reply: %w", r.b[0], ctx.Err())
	}
}

// Take returns the events that arrived since the last Take, oldest first.
func (c *Conn) Take() []Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queue
	c.queue = nil
	return q
}

// Ready receives when events may be waiting for Take.
func (c *Conn) Ready() <-chan struct{} { return c.wake }

// Errors returns the X errors of requests without reply since the last call, at most 256. Do a
// round trip before to know that none is on its way.
func (c *Conn) Errors() []*ProtocolError {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.errs
	c.errs = nil
	return e
}

// NewID returns a fresh resource id.
func (c *Conn) NewID() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	return c.base | c.next&c.mask
}

// Done is closed when the connection has ended; Err says why.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is nil while the connection lives.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection and waits for its reader. The server destroys what was created over it.
func (c *Conn) Close() error {
	err := c.nc.Close()
	<-c.done
	return err
}
