package attempt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/suites/process"
)

const (
	// garbleBudget bounds every wait of [Attempt.Garble]; a call in flight is given up by the engine after 1.5 s at the earliest.
	garbleBudget = time.Second
	// endlessBytes is how much of a message that never ends is sent at most, in bytes: more than any engine should be willing to keep.
	endlessBytes = 192 << 20
	// settled is how long the engine is given to send the rest of the commands that belong together.
	settled = 20 * time.Millisecond
	// mostReplies bounds the replies that are taken from the engine, in bytes; those of one proof are some hundred.
	mostReplies = 1 << 20
)

// Garble sends the engine something that its browser never said, in the middle of a call, over the very connection that the two have: the
// browser's own end of it is copied out of the frozen browser by pidfd_getfd. No seam inside the engine is needed, and nobody stands between
// the two who could be refused for that (contract G15).
//
// malformed, oversized, endless and unfinished are messages of ours. For reordered and duplicated the engine is stopped while the browser
// answers; the replies are taken out of the engine's queue and sent again, the last one first or each one twice. Afterwards the browser goes on.
func (a *Attempt) Garble(ctx context.Context, with string) error {
	if a.frozen.PID == 0 {
		return fmt.Errorf("nothing is frozen: freeze the browser first, so that a call is in flight")
	}
	ctx, cancel := context.WithTimeout(ctx, 4*garbleBudget)
	defer cancel()
	c, err := a.connection()
	if err != nil {
		return err
	}
	defer c.close()
	if err := await(ctx, func() bool { n, err := unix.IoctlGetInt(c.browser, unix.TIOCINQ); return err == nil && n > 0 }); err != nil {
		return a.fault("harness", "garble: no command of the engine is on its way to the browser: %v", err)
	}
	if with != "reordered" && with != "duplicated" {
		c.release() // while a copy of its end is held, the connection would outlive what the engine does
	}
	var sent int
	switch with {
	case "malformed":
		sent, err = send(ctx, c.browser, frame([]byte(`{"id":1,"result":{"`)))
	case "oversized":
		sent, err = send(ctx, c.browser, binary.BigEndian.AppendUint64([]byte{0x81, 127}, 1<<32))
	case "unfinished":
		sent, err = send(ctx, c.browser, append(binary.BigEndian.AppendUint64([]byte{0x81, 127}, 1<<20), `{"id":1`...))
	case "endless":
		sent, err = endless(ctx, c.browser)
	case "reordered", "duplicated":
		sent, err = a.replay(ctx, c, with)
	default:
		return fmt.Errorf("no way to garble is called %q", with)
	}
	if err != nil {
		return a.fault("harness", "garble, %s: %v", with, err)
	}
	goesOn := a.frozen.Kill(syscall.SIGCONT) == nil && a.awaitStopped(false)
	a.Fact(evidence.FactGarbled, sent > 0 && goesOn, sent, with)
	a.frozen = process.Identity{}
	return nil
}

// connection is both ends of the connection between the engine and the row's browser, as copied descriptors.
type connection struct{ engine, browser int }

// release closes the copy of the engine's end.
func (c *connection) release() {
	if c.engine >= 0 {
		_ = unix.Close(c.engine)
		c.engine = -1
	}
}

func (c *connection) close() {
	c.release()
	_ = unix.Close(c.browser)
}

// connection finds and copies both ends.
func (a *Attempt) connection() (*connection, error) {
	engine := a.Stage.Host.Identity()
	table, err := tcpTable()
	if err != nil {
		return nil, a.fault("harness", "read the kernel's socket table: %v", err)
	}
	ours, theirs := socketsOf(engine.PID), socketsOf(a.browser.PID)
	for _, line := range table {
		near, held := ours[line.inode]
		if !held || line.state != tcpEstablished {
			continue
		}
		for _, other := range table {
			far, held := theirs[other.inode]
			if !held || other.local != line.remote || other.remote != line.local {
				continue
			}
			c := &connection{}
			if c.engine, err = copied(engine.PID, near); err != nil {
				return nil, a.fault("environment", "copy the engine's end of the connection: %v", err)
			}
			if c.browser, err = copied(a.browser.PID, far); err != nil {
				_ = unix.Close(c.engine)
				return nil, a.fault("environment", "copy the browser's end of the connection: %v", err)
			}
			return c, nil
		}
	}
	return nil, a.fault("harness", "garble: the engine has no connection to the row's browser")
}

// replay has the browser answer while the engine stands still, and sends what it answered in another order or twice.
func (a *Attempt) replay(ctx context.Context, c *connection, with string) (sent int, err error) {
	engine := a.Stage.Host.Identity()
	time.Sleep(settled) // commands that belong together leave together
	asked := make([]byte, mostReplies)
	n, _, err := unix.Recvfrom(c.browser, asked, unix.MSG_DONTWAIT|unix.MSG_PEEK)
	if err != nil {
		return 0, fmt.Errorf("look at the commands that wait for the browser: %w", err)
	}
	commands, whole := split(asked[:n])
	if !whole || with == "reordered" && len(commands) < 2 {
		return 0, fmt.Errorf("%d commands wait for the browser (all whole: %t), want at least two", len(commands), whole)
	}
	if err := engine.Kill(syscall.SIGSTOP); err != nil {
		return 0, fmt.Errorf("stop the engine: %w", err)
	}
	defer func() {
		if goOn := engine.Kill(syscall.SIGCONT); goOn != nil {
			err = errors.Join(err, fmt.Errorf("let the engine go on: %w", goOn))
		}
	}()
	if err := a.frozen.Kill(syscall.SIGCONT); err != nil {
		return 0, fmt.Errorf("let the browser go on: %w", err)
	}
	var frames [][]byte
	var buf []byte
	err = await(ctx, func() bool {
		b := make([]byte, 64<<10)
		n, _, err := unix.Recvfrom(c.engine, b, unix.MSG_DONTWAIT)
		if err == nil && n > 0 {
			buf = append(buf, b[:n]...)
		}
		frames, whole = split(buf)
		replies := 0
		for _, f := range frames {
			if bytes.Contains(f[:min(len(f), 16)], []byte(`{"id":`)) {
				replies++
			}
		}
		return whole && replies >= len(commands) || len(buf) > mostReplies
	})
	if err != nil || len(buf) > mostReplies {
		return 0, fmt.Errorf("the browser's replies to %d commands: %d messages in %d bytes: %w", len(commands), len(frames), len(buf), err)
	}
	if with == "reordered" {
		slices.Reverse(frames)
	} else {
		var twice [][]byte
		for _, f := range frames {
			twice = append(twice, f, f)
		}
		frames = twice
	}
	return send(ctx, c.browser, slices.Concat(frames...))
}

// split cuts a stream of websocket frames; whole is false when the last one is not there to its end.
func split(b []byte) (frames [][]byte, whole bool) {
	for len(b) > 0 {
		if len(b) < 2 {
			return frames, false
		}
		head, n := 2, uint64(b[1]&0x7f)
		switch n {
		case 126:
			head = 4
		case 127:
			head = 10
		}
		if len(b) < head {
			return frames, false
		}
		switch head {
		case 4:
			n = uint64(binary.BigEndian.Uint16(b[2:]))
		case 10:
			n = binary.BigEndian.Uint64(b[2:])
		}
		if b[1]&0x80 != 0 {
			head += 4 // the mask of what a client sends
		}
		if head > len(b) || n > uint64(len(b)-head) {
			return frames, false
		}
		end := head + int(n)
		frames, b = append(frames, b[:end]), b[end:]
	}
	return frames, true
}

// frame is one unmasked text frame of less than 126 bytes.
func frame(text []byte) []byte { return append([]byte{0x81, byte(len(text))}, text...) }

// endless sends one message in fragments none of which is the last, until the engine has closed the connection or enough was sent.
func endless(ctx context.Context, fd int) (int, error) {
	fragment := append(binary.BigEndian.AppendUint64([]byte{0x01, 127}, 1<<20), slices.Repeat([]byte("x"), 1<<20)...)
	total := 0
	for total < endlessBytes {
		n, err := send(ctx, fd, fragment)
		total += n
		if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) || ctx.Err() != nil && total > 0 {
			return total, nil // the engine has had enough, or reads no more
		}
		if err != nil {
			return total, err
		}
		fragment[0] = 0x00
	}
	return total, nil
}

// send writes everything to a socket that does not block, until ctx ends.
func send(ctx context.Context, fd int, b []byte) (sent int, err error) {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		switch {
		case err == nil:
			sent, b = sent+n, b[n:]
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			if ctx.Err() != nil {
				return sent, fmt.Errorf("the engine reads no more after %d bytes: %w", sent, ctx.Err())
			}
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 20)
		default:
			return sent, fmt.Errorf("write: %w", err)
		}
	}
	return sent, nil
}

// await looks every few milliseconds whether something is so, at most [garbleBudget].
func await(ctx context.Context, so func() bool) error {
	for end := time.Now().Add(garbleBudget); !so(); time.Sleep(2 * time.Millisecond) {
		if ctx.Err() != nil || time.Now().After(end) {
			return fmt.Errorf("not seen within %v", garbleBudget)
		}
	}
	return nil
}

// copied copies a descriptor out of another process.
func copied(pid, fd int) (int, error) {
	p, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, fmt.Errorf("pidfd_open: %w", err)
	}
	defer unix.Close(p)
	got, err := unix.PidfdGetfd(p, fd, 0)
	if err != nil {
		return -1, fmt.Errorf("pidfd_getfd: %w (ptrace rights over the process are needed)", err)
	}
	return got, nil
}
