package stage

import (
	"sync"
	"time"

	"github.com/engine-acceptance/acceptance/suites/process"
)

// beat is how often the harness looks at its own clock.
const beat = 10 * time.Millisecond

// deadline bounds the end of one helper process.
const deadline = 3 * time.Second

// Mono returns CLOCK_MONOTONIC in nanoseconds: the clock of every observation.
func Mono() int64 { return process.Mono() }

// Heart is the harness's own heartbeat: the greatest gap between two beats says how starved the harness was, so that a late answer is not
// charged to an engine that waited for the same processor (contract J5).
type Heart struct {
	mu   sync.Mutex
	last int64
	gap  int64
	stop chan struct{}
	once sync.Once
}

func startHeart() *Heart {
	h := &Heart{last: Mono(), stop: make(chan struct{})}
	go func() {
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for {
			select {
			case <-h.stop:
				return
			case <-tick.C:
				h.mark()
			}
		}
	}()
	return h
}

func (h *Heart) mark() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := Mono()
	h.gap, h.last = max(h.gap, now-h.last), now
}

// Reset begins a new measure.
func (h *Heart) Reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gap, h.last = 0, Mono()
}

// MaxGapNS is the greatest gap since the last reset, in nanoseconds.
func (h *Heart) MaxGapNS() int64 {
	h.mark()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gap
}

// Stop ends the heartbeat. It may be called twice.
func (h *Heart) Stop() { h.once.Do(func() { close(h.stop) }) }
