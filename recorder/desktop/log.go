package desktop

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/engine-acceptance/acceptance/recorder/x11"
)

// Defaults of Config.
const (
	// DefaultCapacity is 262,144 events, about 60 MB when full.
	DefaultCapacity = 1 << 18
	// DefaultCallBudget bounds one question to the server and one barrier.
	DefaultCallBudget = 3 * time.Second
	// DefaultSettleBudget bounds one Settle.
	DefaultSettleBudget = 5 * time.Second
)

// maxQuestions bounds the questions about windows that may be under way at once. A window that cannot be asked
// about counts as one that covers.
const maxQuestions = 256

// maxClients bounds the clients that are remembered; X servers allow at most 2,048.
const maxClients = 4096

// Config says which desk is watched and how much is kept. Zero budgets and capacity mean the defaults.
type Config struct {
	Display      string // such as ":93"
	XAuthority   string // path of the authority file, empty for none
	Capacity     int    // events kept in memory; when full the oldest are dropped and counted
	CallBudget   time.Duration
	SettleBudget time.Duration
	// Bus is the address of the desk's session bus, such as "unix:path=/run/user/1000/bus"; BusUID the uid that it serves. Empty watches no bus:
	// then the channels bus and accessibility are not there.
	Bus    string
	BusUID int
	// Exempt lists processes whose requests and device events do not keep Settle waiting: the window manager,
	// the person. They are logged and classified like all others.
	Exempt []int
}

// ChannelError says which guard channel failed, and which extension it lacks. A guard that gives one is invalid.
type ChannelError struct {
	Channel   Channel
	Extension string // as the server registers it, empty when the connection itself failed
	Err       error
}

// Error implements error.
func (e *ChannelError) Error() string {
	if e.Extension != "" {
		return fmt.Sprintf("guard channel %s (%s): %v", e.Channel, e.Extension, e.Err)
	}
	return fmt.Sprintf("guard channel %s: %v", e.Channel, e.Err)
}

// Unwrap returns the cause.
func (e *ChannelError) Unwrap() error { return e.Err }

// ChannelHealth is the state of one guard channel.
type ChannelHealth struct {
	Channel  Channel `json:"channel"`
	Alive    bool    `json:"alive"`
	LostAtNS int64   `json:"lost_at_ns,omitempty"` // CLOCK_MONOTONIC
	Cause    string  `json:"cause,omitempty"`
	Events   uint64  `json:"events"` // logged from this channel
	Errors   uint64  `json:"errors"` // X errors and things that could not be read
	// Overruns counts the times that the guard fell so far behind that the server may have lost requests.
	Overruns uint64 `json:"overruns"`
	Dropped  uint64 `json:"dropped"` // of the logged events, those that are no longer kept because the log was full
}

// client is one X client and the process behind it. pid 0 means not known.
type client struct {
	base  uint32
	pid   int
	start uint64
	exe   string
}

// watched is a window with a role.
type watched struct {
	id     uint32
	role   WindowRole
	top    uint32 // itself or the frame that it is in
	dx, dy int    // its corner within top, pixels from top's outer corner
	w, h   int
	above  map[uint32]bool // for the person: windows that lie above now
}

// pair is a target whose cover is followed.
type pair struct {
	target uint32
	last   float64
}

// Log is a running event log. Its methods are safe for concurrent use.
type Log struct {
	cfg   Config
	conns [xChannels]*x11.Conn
	buses []*busWatch
	own   map[uint32]bool // resource bases of the guard's connections
	exts  struct{ input, fixes, randr, shape x11.Extension }
	mask  uint32

	mu        sync.Mutex
	ring      ring
	health    [channelCount]ChannelHealth
	dec       decoder
	tree      *tree
	watched   map[uint32]*watched
	baseRole  map[uint32]WindowRole
	clients   map[uint32]*client
	covers    []*pair
	tests     map[uint16]bool // ids of XTEST devices
	exempt    map[int]bool
	cause     cause
	disturbed int64 // MonoNS of the last violation by a process that is not exempt
	marks     map[uint32]chan struct{}
	token     uint32
	deferred  []func() // to run once the lock is free
	questions int
	stopping  bool

	markWindow uint32
}

// cause is the last request that makes the server produce input.
type cause struct {
	actor *client
	class byte // core event code of what it makes
}

func (l *Log) base(xid uint32) uint32 { return xid &^ l.mask }

// locked runs f under the lock and afterwards what f left to do.
func (l *Log) locked(f func()) {
	l.mu.Lock()
	f()
	deferred := l.deferred
	l.deferred = nil
	l.mu.Unlock()
	for _, t := range deferred {
		t()
	}
}

// put logs an event; the lock is held. The role follows from the window when it is not given.
func (l *Log) put(ev Event, actor *client) {
	ev.MonoNS = x11.MonoNS()
	if ev.Role == NoWindow {
		ev.Role = l.roleOf(ev.Window)
	}
	exempt := false
	if actor != nil {
		ev.Client = actor.base
		exempt = actor.pid != 0 && l.exempt[actor.pid]
	}
	if r, _ := Violation(ev); r != "" && !exempt {
		l.disturbed = ev.MonoNS
	}
	l.health[ev.Channel].Events++
	l.ring.add(entry{Event: ev, actor: actor})
}

// roleOf says whose window it is; the lock is held.
func (l *Log) roleOf(w uint32) WindowRole {
	switch {
	case w == 0:
		return NoWindow
	case w == l.tree.root:
		return Root
	}
	if s := l.watched[w]; s != nil {
		return s.role
	}
	if n := l.tree.nodes[w]; n != nil && n.inner != 0 {
		if s := l.watched[n.inner]; s != nil {
			return s.role
		}
		w = n.inner
	}
	if r, ok := l.baseRole[l.base(w)]; ok {
		return r
	}
	return Other
}

// actor returns the client that owns a resource, asking for its process when it is new; the lock is held.
func (l *Log) actor(xid uint32) *client {
	b := l.base(xid)
	if c := l.clients[b]; c != nil {
		return c
	}
	return l.newClient(b)
}

// newClient remembers a client and asks for its process at once: a client that lives shortly can only be asked
// about while it lives.
func (l *Log) newClient(b uint32) *client {
	c := &client{base: b}
	if len(l.clients) >= maxClients {
		l.health[Control].Errors++
		return c
	}
	l.clients[b] = c
	l.deferred = append(l.deferred, func() { l.resolve(c) })
	return c
}

func (l *Log) resolve(c *client) {
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.CallBudget)
	defer cancel() // bounds the write; the reply comes on the reader
	control := l.conns[Control]
	req, err := control.ClientPIDRequest(ctx, c.base)
	if err != nil {
		return // the channel is lost, which is told elsewhere
	}
	control.Async(ctx, req, func(r x11.Reply, err error) {
		if err != nil {
			return // gone already: the process stays unknown
		}
		pid, err := x11.ParseClientPID(r, c.base, l.mask)
		if err != nil {
			return
		}
		exe, start := processOf(pid)
		l.locked(func() { c.pid, c.exe, c.start = pid, exe, start })
	})
}

// processOf reads a process's executable and start time (field 22 of /proc/pid/stat, clock ticks since boot).
func processOf(pid int) (exe string, start uint64) {
	dir := "/proc/" + strconv.Itoa(pid)
	exe, err := os.Readlink(dir + "/exe")
	if err != nil {
		exe = ""
	}
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return exe, 0
	}
	_, rest, ok := strings.Cut(string(stat[max(0, strings.LastIndexByte(string(stat), ')')):]), ") ")
	if !ok {
		return exe, 0
	}
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return exe, 0
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return exe, 0
	}
	return exe, start
}

// Between returns the events after from, up to and including to, in order. Events that are not there any more, because the
// log was full or because they were released, are told by a first event of kind events_dropped.
func (l *Log) Between(from, to Mark) []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Event
	missing := l.ring.each(uint64(from), uint64(to), func(e *entry) {
		ev := e.Event
		if e.actor != nil {
			ev.PID, ev.Exe, ev.ProcStart = e.actor.pid, e.actor.exe, e.actor.start
		}
		if e.peer != nil {
			ev.PeerPID, ev.PeerExe = e.peer.pid, e.peer.exe
			if ev.PID != 0 && ev.PID == ev.PeerPID {
				ev.Role = Target
			}
		}
		out = append(out, ev)
	})
	if missing > 0 {
		gap := Event{Seq: uint64(from) + 1, Kind: EventsDropped, Detail: uint32(min(missing, 1<<32-1))}
		if len(out) > 0 {
			gap.MonoNS = out[0].MonoNS
		}
		out = append([]Event{gap}, out...)
	}
	return out
}

// Release lets the log forget events up to and including m; they are not counted as dropped.
func (l *Log) Release(m Mark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring.release(uint64(m))
}

// Health tells the state of every channel, in a fixed order. A guard with a channel that is not alive, or that
// dropped events, proves nothing.
func (l *Log) Health() []ChannelHealth {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]ChannelHealth, 0, channelCount-1)
	for ch := NoChannel + 1; ch < channelCount; ch++ {
		h := l.health[ch]
		if h.Channel == NoChannel {
			continue // no bus is watched
		}
		h.Dropped = l.ring.droppedBy[ch]
		out = append(out, h)
	}
	return out
}

// Exempt adds processes to Config.Exempt.
func (l *Log) Exempt(pids ...int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range pids {
		l.exempt[p] = true
	}
}

// lostErr is the error of the first channel that is not alive.
func (l *Log) lostErr() error {
	for ch := NoChannel + 1; ch < xChannels; ch++ {
		if c := l.conns[ch]; c != nil && c.Err() != nil {
			return &ChannelError{Channel: ch, Err: c.Err()}
		}
	}
	for _, b := range l.buses {
		if err := b.err(); err != nil {
			return &ChannelError{Channel: b.channel, Err: err}
		}
	}
	return nil
}

// Stop ends every guard connection. It returns the first channel that was lost before, if any. The events stay
// readable.
func (l *Log) Stop(ctx context.Context) error {
	err := l.lostErr()
	l.mu.Lock()
	l.stopping = true
	l.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, c := range l.conns {
			if c != nil {
				_ = c.Close() // ending; the events are kept
			}
		}
		for _, b := range l.buses {
			b.close()
		}
	}()
	select {
	case <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("stop event log: %w", context.Cause(ctx))
	}
}
