package stage

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// Trap is a listener that nobody has business with, on all addresses: another program on a port that an endpoint file names. It counts
// who comes and says nothing.
type Trap struct {
	l    net.Listener
	n    atomic.Int64
	done chan struct{}
}

func newTrap() (*Trap, error) {
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		return nil, fmt.Errorf("open a trap: %w", err)
	}
	t := &Trap{l: l, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.n.Add(1)
			_ = c.Close()
		}
	}()
	return t, nil
}

// Port is where it listens.
func (t *Trap) Port() int { return t.l.Addr().(*net.TCPAddr).Port }

// Visitors says how many connections came. It comes itself afterwards, and is an error when that was not counted.
func (t *Trap) Visitors(ctx context.Context) (int64, error) {
	n := t.n.Load()
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", t.Port()))
	if err != nil {
		return n, fmt.Errorf("come to our own trap: %w", err)
	}
	defer c.Close()
	for end := time.Now().Add(time.Second); t.n.Load() <= n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return n, fmt.Errorf("our own connection was not counted")
		}
	}
	return n, nil
}

// Close ends it.
func (t *Trap) Close() error {
	err := t.l.Close()
	<-t.done
	return err
}
