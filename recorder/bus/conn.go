package bus

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// writeBudget bounds one write to the bus, and the authentication.
const writeBudget = 10 * time.Second

const (
	// Bus is the name of the bus itself.
	Bus         = "org.freedesktop.DBus"
	monitorFace = "org.freedesktop.DBus.Monitoring"
)

// Handler receives what is not the reply of a call of ours. Its functions run on the reader's goroutine, in the order of the
// stream, and must not wait for a call on the same connection.
type Handler struct {
	Message func(Message)
	Lost    func(error) // once, when the connection ends
}

// Conn is one connection. Its methods are safe for concurrent use.
type Conn struct {
	nc     net.Conn
	unique string

	wmu    sync.Mutex
	serial uint32

	mu      sync.Mutex
	handler Handler
	waiting map[uint32]func(Message, error)
	lostErr error
	told    bool
	lost    chan struct{}
	reader  sync.WaitGroup
}

// BusError is an error that was sent for one call.
type BusError struct{ Name, Text string }

// Error implements error.
func (e *BusError) Error() string { return fmt.Sprintf("bus error %s: %.200s", e.Name, e.Text) }

// path reads the socket of the first unix address of a list (D-Bus specification, server addresses). A leading @ stands for an
// abstract one.
func path(address string) (string, error) {
	for one := range strings.SplitSeq(address, ";") {
		rest, ok := strings.CutPrefix(one, "unix:")
		if !ok {
			continue
		}
		for pair := range strings.SplitSeq(rest, ",") {
			key, value, _ := strings.Cut(pair, "=")
			value, err := url.PathUnescape(value)
			if err != nil {
				return "", fmt.Errorf("bus address %.200q: %w", address, err)
			}
			switch key {
			case "path":
				return value, nil
			case "abstract":
				return "@" + value, nil
			}
		}
	}
	return "", fmt.Errorf("bus address %.200q: want unix:path= or unix:abstract=", address)
}

// Dial connects to a bus as a uid: a bus serves its own uid only, and as root we may have that of another for the time of the
// connecting. Close frees the connection. Errors match ErrRefused or are the socket's own.
func Dial(ctx context.Context, address string, uid int) (*Conn, error) {
	socket, err := path(address)
	if err != nil {
		return nil, err
	}
	nc, err := ConnectAs(socket, uid)
	if err != nil {
		return nil, fmt.Errorf("connect to bus %s as uid %d: %w", socket, uid, err)
	}
	c, err := newConn(ctx, nc, uid)
	if err != nil {
		_ = nc.Close() // the first error says more
		return nil, fmt.Errorf("bus %s as uid %d: %w", socket, uid, err)
	}
	return c, nil
}

func newConn(ctx context.Context, nc net.Conn, uid int) (*Conn, error) {
	deadline := time.Now().Add(writeBudget)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := nc.SetDeadline(deadline); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	r := bufio.NewReaderSize(nc, 64<<10)
	for _, step := range [][2]string{
		{"\x00AUTH EXTERNAL " + hex.EncodeToString([]byte(strconv.Itoa(uid))) + "\r\n", "OK "},
		{"NEGOTIATE_UNIX_FD\r\n", "AGREE_UNIX_FD"},
	} {
		if _, err := io.WriteString(nc, step[0]); err != nil {
			return nil, fmt.Errorf("authenticate: %w", err)
		}
		line, err := r.ReadSlice('\n')
		if err != nil {
			return nil, fmt.Errorf("authenticate: %w", err)
		}
		if !strings.HasPrefix(string(line), step[1]) {
			return nil, fmt.Errorf("authenticate: bus answered %.80q, want %q: %w", line, step[1], ErrRefused)
		}
	}
	if _, err := io.WriteString(nc, "BEGIN\r\n"); err != nil {
		return nil, fmt.Errorf("authenticate: %w", err)
	}
	if !stop() {
		return nil, context.Cause(ctx)
	}
	if err := nc.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	c := &Conn{nc: nc, waiting: map[uint32]func(Message, error){}, lost: make(chan struct{})}
	c.reader.Add(1)
	go c.read(r)
	hello, err := c.Ask(ctx, "Hello")
	if err == nil {
		if s := hello.Strings(); len(s) == 1 && strings.HasPrefix(s[0], ":") {
			c.unique = s[0]
			return c, nil
		}
		err = fmt.Errorf("answer to Hello: %w", ErrMalformed)
	}
	return nil, errors.Join(err, c.Close())
}

// Unique is the name that the bus gave this connection.
func (c *Conn) Unique() string { return c.unique }

// Handle sets the handler. When the connection is already lost, Lost is called at once.
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

// Close ends the connection and waits for the reader. It may be called more than once, but not from a Handler.
func (c *Conn) Close() error {
	err := c.end(fmt.Errorf("closed by us: %w", ErrLost))
	c.reader.Wait()
	return err
}

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
	for _, done := range waiting {
		done(Message{}, cause)
	}
	close(c.lost)
	if lost != nil {
		lost(cause)
	}
	return err
}

func (c *Conn) read(r io.Reader) {
	defer c.reader.Done()
	var buf []byte
	for {
		m, err := read(r, &buf)
		if err != nil {
			_ = c.end(fmt.Errorf("%w: %w", ErrLost, err)) // closing a broken socket tells nothing new
			return
		}
		c.mu.Lock()
		// An answer is ours when the bus sends it to us; a monitor is shown those of others too.
		var done func(Message, error)
		if (m.Type == MethodReturn || m.Type == Error) && (m.Destination == c.unique || c.unique == "") {
			done = c.waiting[m.ReplySerial]
			delete(c.waiting, m.ReplySerial)
		}
		h := c.handler.Message
		c.mu.Unlock()
		switch {
		case done != nil && m.Type == Error:
			text := ""
			if s := m.Strings(); len(s) > 0 {
				text = printable(s[0])
			}
			done(Message{}, &BusError{m.Error, text})
		case done != nil:
			done(m, nil)
		case h != nil:
			h(m)
		}
	}
}

// Async calls a method of the bus itself, or of the named program when to is not empty, with strings as arguments. done is called
// once: on the reader's goroutine with the answer, or on the caller's when the call cannot be sent. The serial is that of the call, 0 when it
// was not sent.
func (c *Conn) Async(done func(Message, error), iface, member string, args ...string) (serial uint32) {
	var body []byte
	for _, a := range args {
		body = appendString(body, a)
	}
	return c.send(done, func(serial uint32) []byte {
		return call(serial, iface, member, strings.Repeat("s", len(args)), body)
	})
}

func (c *Conn) send(done func(Message, error), build func(serial uint32) []byte) uint32 {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	c.serial++
	serial := c.serial
	c.mu.Lock()
	if err := c.lostErr; err != nil {
		c.mu.Unlock()
		done(Message{}, err)
		return 0
	}
	c.waiting[serial] = done
	c.mu.Unlock()
	err := c.nc.SetWriteDeadline(time.Now().Add(writeBudget))
	if err == nil {
		_, err = c.nc.Write(build(serial))
	}
	if err != nil {
		_ = c.end(fmt.Errorf("%w: write: %w", ErrLost, err)) // answers the call too; a partial write cannot be mended
		return 0
	}
	return serial
}

// wait makes a call of an asynchronous one.
func (c *Conn) wait(ctx context.Context, send func(done func(Message, error))) (Message, error) {
	type result struct {
		m   Message
		err error
	}
	answer := make(chan result, 1)
	send(func(m Message, err error) {
		m.Body = append([]byte(nil), m.Body...)
		answer <- result{m, err}
	})
	select {
	case r := <-answer:
		return r.m, r.err
	case <-ctx.Done():
		return Message{}, fmt.Errorf("no answer: %w", context.Cause(ctx))
	}
}

// Ask calls a method of the bus itself, such as ListNames. The error is a *BusError, matches ErrLost, or is the context's.
func (c *Conn) Ask(ctx context.Context, member string, args ...string) (Message, error) {
	m, err := c.wait(ctx, func(done func(Message, error)) { c.Async(done, Bus, member, args...) })
	if err != nil {
		return m, fmt.Errorf("%s %v: %w", member, args, err)
	}
	return m, nil
}

// AskProgram calls a method without arguments of another program on the bus.
func (c *Conn) AskProgram(ctx context.Context, name, path, iface, member string) (Message, error) {
	m, err := c.wait(ctx, func(done func(Message, error)) {
		c.send(done, func(serial uint32) []byte { return encode(serial, name, path, iface, member, "", nil) })
	})
	if err != nil {
		return m, fmt.Errorf("%s.%s of %s: %w", iface, member, name, err)
	}
	return m, nil
}

// Monitor makes the connection one that is shown every message of the bus, and may send nothing any more. The bus refuses it to
// others than root and its own uid.
func (c *Conn) Monitor(ctx context.Context) error {
	body := le.AppendUint32(nil, 0) // no rules: everything
	body = le.AppendUint32(body, 0) // flags
	_, err := c.wait(ctx, func(done func(Message, error)) {
		c.send(done, func(serial uint32) []byte { return call(serial, monitorFace, "BecomeMonitor", "asu", body) })
	})
	if err != nil {
		return fmt.Errorf("become a monitor: %w", err)
	}
	return nil
}
