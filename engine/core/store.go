package core

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
)

// mint makes an unguessable id: 128 random bits as 32 letters. Letters only, so that no id looks like a number.
func mint(prefix string) string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // crypto/rand.Read never fails
	out := make([]byte, 0, len(prefix)+2*len(raw))
	out = append(out, prefix...)
	for _, b := range raw {
		out = append(out, 'a'+b>>4, 'a'+b&15)
	}
	return string(out)
}

// gate is a lock that is waited for no longer than a context.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

func (g gate) lock(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	default:
	}
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g gate) unlock() { <-g }

// session is one caller's scope.
type session struct {
	id string
	// prepare serialises launches and the end.
	prepare gate

	mu      sync.Mutex
	ended   bool
	done    chan struct{} // closed when the end is complete
	cleaned bool          // set before done: nothing is left
	receipt engine.Receipt
	calls   map[int]context.CancelFunc
	next    int
	proc    *process
	targets map[string]*target
	// tabs holds every tab ever minted in the session, closed ones too, so that a closed tab is told from a guessed one.
	tabs map[string]*tab
}

// enter registers one call. The context ends with the budget or with the session; release must be called.
func (s *session) enter(parent context.Context, budget time.Duration) (ctx context.Context, release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, nil, false
	}
	ctx, cancel := context.WithTimeout(parent, budget)
	n := s.next
	s.next++
	s.calls[n] = cancel
	return ctx, func() {
		cancel()
		s.mu.Lock()
		delete(s.calls, n)
		s.mu.Unlock()
	}, true
}

func (s *session) alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.ended
}

func (s *session) process() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// process is one browser with one connection: the generation of everything that was minted on it.
type process struct {
	generation string
	posture    engine.Posture
	browser    engine.Browser
	id         engine.Process
	profile    profile
	// windows serialises what changes the set of windows or contexts, or binds.
	windows gate

	mu sync.Mutex
	// pairs are native windows whose protocol window is known: by construction, or by an earlier exact proof in this generation.
	pairs   map[uint32]engine.WindowKey
	opened  []uint32
	targets map[uint32]*target

	// dead is closed at the loss; reason and successor are set before known is closed.
	lose      sync.Once
	dead      chan struct{}
	known     chan struct{}
	reason    string
	successor string
	// exhausted, guarded by the session's prepare gate, says that the reconnect budget of this generation is spent.
	exhausted bool

	shut     sync.Once
	shutErr  error
	deskMu   sync.Mutex
	inFlight int
	idle     engine.DeskObserver
	pending  []string
}

func (p *process) lost() bool {
	select {
	case <-p.dead:
		return true
	case <-p.browser.Lost():
		return true
	default:
		return false
	}
}

// target is one bound window.
type target struct {
	id     string
	proc   *process
	native uint32
	key    engine.WindowKey
	// mutate serialises the mutations of this window's tabs.
	mutate gate

	mu   sync.Mutex
	tabs map[engine.ContextKey]*tab
	list []*tab
	gone bool
}

// open lists the tabs that are not known to be closed, in the order in which they were seen.
func (t *target) open() []*tab {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*tab
	for _, tb := range t.list {
		if !tb.closed {
			out = append(out, tb)
		}
	}
	return out
}

// tab returns the tab of a context, minting it when it is new.
func (t *target) tab(key engine.ContextKey) (*tab, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tb, ok := t.tabs[key]; ok && !tb.closed {
		return tb, false
	}
	tb := &tab{id: mint("tb-"), key: key, target: t}
	t.tabs[key] = tb
	t.list = append(t.list, tb)
	return tb, true
}

// tab is one context of a bound window. Fields below key are guarded by the target's mutex.
type tab struct {
	id     string
	key    engine.ContextKey
	target *target

	closed   bool
	snapshot *snapshot
	// departed is the id of the snapshot of the document that the tab left last.
	departed string
}

func (tb *tab) close() {
	tb.target.mu.Lock()
	defer tb.target.mu.Unlock()
	tb.closed = true
	tb.snapshot = nil
}

func (tb *tab) isClosed() bool {
	tb.target.mu.Lock()
	defer tb.target.mu.Unlock()
	return tb.closed
}

func (tb *tab) latest() *snapshot {
	tb.target.mu.Lock()
	defer tb.target.mu.Unlock()
	return tb.snapshot
}

func (tb *tab) keep(s *snapshot) {
	tb.target.mu.Lock()
	defer tb.target.mu.Unlock()
	tb.snapshot = s
}

// snapshot is the newest snapshot of a tab; an older one is forgotten, and its refs with it.
type snapshot struct {
	id       string
	document engine.DocumentKey
	nodes    []engine.PageNode
}

// leave retires the snapshot of a document that the tab has left, and remembers which it was: its refs are refused for the document, whatever
// is read of the next one.
func (tb *tab) leave() {
	tb.target.mu.Lock()
	defer tb.target.mu.Unlock()
	if tb.snapshot != nil {
		tb.departed = tb.snapshot.id
	}
	tb.snapshot = nil
}

// left reports whether a snapshot is of the document that the tab left last.
func (tb *tab) left(id string) bool {
	tb.target.mu.Lock()
	defer tb.target.mu.Unlock()
	return id != "" && id == tb.departed
}
