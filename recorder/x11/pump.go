package x11

import (
	"io"
	"sync"
)

const (
	pumpRead  = 256 << 10 // one read takes all that a local socket holds
	pumpQueue = 64 << 20  // bytes read ahead; beyond it the server has to wait
)

// pump reads ahead of the parser, so that the server's writes are taken as fast as the machine allows, whatever a
// handler does meanwhile.
type pump struct {
	src    io.Reader
	behind func(backlog int) // told the size of every read, as kernel memory that the server's writes held

	mu      sync.Mutex
	changed sync.Cond
	pending []byte
	err     error

	current []byte // the parser's own
	rest    []byte
}

func newPump(src io.Reader, seed []byte, behind func(int)) *pump {
	p := &pump{src: src, behind: behind, pending: append([]byte(nil), seed...)}
	p.changed.L = &p.mu
	return p
}

// run reads until the source ends.
func (p *pump) run() {
	buf := make([]byte, pumpRead)
	var w frameWalk
	for {
		n, err := p.src.Read(buf)
		frames := w.walk(buf[:n])
		p.mu.Lock()
		for len(p.pending) > pumpQueue && p.err == nil {
			p.changed.Wait()
		}
		p.pending = append(p.pending, buf[:n]...)
		p.err = err
		p.changed.Broadcast()
		p.mu.Unlock()
		if n > 0 {
			// A small message costs the kernel about 768 bytes beside itself, a larger one up to twice its size.
			p.behind(2*n + 768*frames)
		}
		if err != nil {
			return
		}
	}
}

// Read hands out what was read ahead; the parser's goroutine calls it.
func (p *pump) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		p.mu.Lock()
		for len(p.pending) == 0 && p.err == nil {
			p.changed.Wait()
		}
		if len(p.pending) == 0 {
			err := p.err
			p.mu.Unlock()
			return 0, err
		}
		spare := p.current[:0]
		if cap(spare) > 1<<20 {
			spare = nil // a flood's buffer must not be kept for ever
		}
		p.current, p.pending = p.pending, spare
		p.rest = p.current
		p.changed.Broadcast()
		p.mu.Unlock()
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// frameWalk counts the frames that begin in a stream handed to it in pieces.
type frameWalk struct {
	head [8]byte
	have int
	skip uint64
}

func (w *frameWalk) walk(b []byte) (frames int) {
	for len(b) > 0 {
		if w.skip > 0 {
			n := min(w.skip, uint64(len(b)))
			w.skip -= n
			b = b[n:]
			continue
		}
		n := copy(w.head[w.have:], b)
		w.have += n
		b = b[n:]
		if w.have == len(w.head) {
			w.skip, w.have = 24, 0
			if w.head[0] == 1 || w.head[0]&0x7f == GenericEvent {
				w.skip += 4 * uint64(le.Uint32(w.head[4:]))
			}
			frames++
		}
	}
	return frames
}
