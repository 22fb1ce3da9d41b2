package recorder

import (
	"errors"
	"os"
	"sync"
	"time"
)

// maxBacklog is how many frames may wait for the encoder: three seconds of film at [DefaultFPS]. An encoder that starts on a busy machine
// takes no frame for a second or two, and captures must not stop for that: what is not captured was not seen.
const maxBacklog = 45

// backlog hands frames to the encoder on a goroutine of its own. One goroutine puts; a frame's bytes may be used again once put returns.
type backlog struct {
	out     *os.File
	waiting chan []byte
	free    chan []byte
	made    int // buffers
	done    chan struct{}

	mu  sync.Mutex
	err error
}

func newBacklog(out *os.File) *backlog {
	b := &backlog{out: out, waiting: make(chan []byte, maxBacklog), free: make(chan []byte, maxBacklog), done: make(chan struct{})}
	go b.write()
	return b
}

// put queues a copy of a frame. It waits while the backlog is full, at most [frameWriteBudget]; then the encoder is hung. An error of an
// earlier frame is reported by a later call.
func (b *backlog) put(frame []byte) error {
	if err := b.failed(); err != nil {
		return err
	}
	var buf []byte
	select {
	case buf = <-b.free:
	default:
		if b.made < maxBacklog {
			b.made++
			break
		}
		t := time.NewTimer(frameWriteBudget)
		defer t.Stop()
		select {
		case buf = <-b.free:
		case <-t.C:
			return errors.Join(errBacklog, b.failed())
		}
	}
	b.waiting <- append(buf[:0], frame...) // there are no more buffers than places
	return nil
}

// errBacklog says that nothing was taken from a full backlog for the whole budget.
var errBacklog = errors.New("the backlog is full")

func (b *backlog) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// write is the goroutine. After an error it only hands buffers back.
func (b *backlog) write() {
	defer close(b.done)
	for buf := range b.waiting {
		if b.failed() == nil {
			b.out.SetWriteDeadline(time.Now().Add(frameWriteBudget))
			if _, err := b.out.Write(buf); err != nil {
				b.mu.Lock()
				b.err = err
				b.mu.Unlock()
			}
		}
		b.free <- buf
	}
}

// end waits until what is queued is written, and returns the first error. Nothing may be put after it.
func (b *backlog) end() error {
	close(b.waiting)
	<-b.done
	return b.failed()
}
