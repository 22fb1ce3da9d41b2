package desktop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/recorder/bus"
	"github.com/engine-acceptance/acceptance/recorder/x11"
)

// busBudget bounds the start of the bus channels: the accessibility bus is a service that the session bus starts when it is
// asked for.
const busBudget = 10 * time.Second

// maxNames bounds the names and connections that are remembered of one bus.
const maxNames = 4096

// The service that knows where the accessibility bus is (at-spi2-core).
const (
	accessName = "org.a11y.Bus"
	accessPath = "/org/a11y/bus"
)

// markName stands in the question by which a barrier finds its place among the messages; nobody has it.
const markName = "acceptance.guard.mark"

// busWatch watches one message bus: a monitor, which may only listen, and a connection that asks.
type busWatch struct {
	channel          Channel
	monitor, control *bus.Conn
	kinds            struct{ action, read, service, listen Kind }

	// Under the log's lock.
	names       map[string]string  // well-known name to the unique one of its owner
	programs    map[string]*client // unique name to the process behind it
	activatable map[string]bool
	marks       map[string]chan struct{}
}

func (b *busWatch) err() error {
	for _, c := range []*bus.Conn{b.monitor, b.control} {
		if c != nil && c.Err() != nil {
			return c.Err()
		}
	}
	return nil
}

func (b *busWatch) close() {
	for _, c := range []*bus.Conn{b.monitor, b.control} {
		if c != nil {
			_ = c.Close() // ending; the events are kept
		}
	}
}

// startBuses watches the session bus, asks it to start the accessibility bus, and watches that as well: from now on no message can be sent
// before the guard looks.
func (l *Log) startBuses(ctx context.Context) error {
	if l.cfg.Bus == "" {
		return nil
	}
	session, err := l.startBus(ctx, Bus, l.cfg.Bus)
	if err != nil {
		return &ChannelError{Channel: Bus, Err: err}
	}
	answer, err := session.control.AskProgram(ctx, accessName, accessPath, accessName, "GetAddress")
	if err != nil {
		return &ChannelError{Channel: Accessibility, Extension: accessName, Err: fmt.Errorf("start the accessibility bus (package at-spi2-core): %w", err)}
	}
	address := answer.Strings()
	if len(address) != 1 {
		return &ChannelError{Channel: Accessibility, Err: fmt.Errorf("address of the accessibility bus: got %d strings, want one", len(address))}
	}
	if _, err := l.startBus(ctx, Accessibility, address[0]); err != nil {
		return &ChannelError{Channel: Accessibility, Err: err}
	}
	return nil
}

func (l *Log) startBus(ctx context.Context, ch Channel, address string) (*busWatch, error) {
	b := &busWatch{channel: ch, names: map[string]string{}, programs: map[string]*client{}, activatable: map[string]bool{}, marks: map[string]chan struct{}{}}
	b.kinds.action, b.kinds.read, b.kinds.service, b.kinds.listen = BusAction, BusRead, BusService, BusListen
	if ch == Accessibility {
		b.kinds.action, b.kinds.read, b.kinds.service, b.kinds.listen = AccessAction, AccessRead, AccessService, AccessListen
	}
	l.mu.Lock()
	l.buses = append(l.buses, b) // so that Stop frees what comes
	l.health[ch] = ChannelHealth{Channel: ch, Alive: true}
	l.mu.Unlock()
	var err error
	if b.control, err = bus.Dial(ctx, address, l.cfg.BusUID); err != nil {
		return nil, err
	}
	if b.monitor, err = bus.Dial(ctx, address, l.cfg.BusUID); err != nil {
		return nil, err
	}
	lost := func(err error) { l.channelLost(ch, err) }
	b.control.Handle(bus.Handler{Lost: lost})
	b.monitor.Handle(bus.Handler{Lost: lost, Message: func(m bus.Message) { l.busMessage(b, m) }})
	if err := b.monitor.Monitor(ctx); err != nil {
		return nil, err
	}
	activatable, err := b.control.Ask(ctx, "ListActivatableNames")
	if err != nil {
		return nil, err
	}
	names, err := b.control.Ask(ctx, "ListNames")
	if err != nil {
		return nil, err
	}
	owners := map[string]string{}
	for _, name := range names.List() {
		if strings.HasPrefix(name, ":") {
			owners[name] = name
			continue
		}
		if name == bus.Bus {
			continue
		}
		owner, err := b.control.Ask(ctx, "GetNameOwner", name)
		var gone *bus.BusError
		if errors.As(err, &gone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if s := owner.Strings(); len(s) == 1 {
			owners[name] = s[0]
		}
	}
	l.locked(func() {
		for _, name := range activatable.List() {
			b.activatable[name] = true
		}
		for _, name := range slices.Sorted(maps.Keys(owners)) {
			l.busOwner(b, name, owners[name])
		}
	})
	return b, nil
}

// busOwner remembers who has a name now; the lock is held.
func (l *Log) busOwner(b *busWatch, name, owner string) {
	if owner == "" {
		// Programs keep their entry in events; a unique name is never given again.
		delete(b.names, name)
		delete(b.programs, name)
		return
	}
	if len(b.names)+len(b.programs) >= maxNames {
		l.health[b.channel].Errors++
		return
	}
	if strings.HasPrefix(name, ":") {
		l.program(b, name)
		return
	}
	b.names[name] = owner
}

// program returns the process behind a unique name, asking for it at once when it is new; the lock is held.
func (l *Log) program(b *busWatch, unique string) *client {
	if c := b.programs[unique]; c != nil {
		return c
	}
	c := &client{}
	if len(b.names)+len(b.programs) >= maxNames {
		l.health[b.channel].Errors++
		return c
	}
	b.programs[unique] = c
	l.deferred = append(l.deferred, func() {
		b.control.Async(func(m bus.Message, err error) {
			if err != nil {
				return // gone already: the process stays unknown
			}
			pid, ok := m.Uint32()
			if !ok {
				return
			}
			exe, start := processOf(int(pid))
			l.locked(func() { c.pid, c.exe, c.start = int(pid), exe, start })
		}, bus.Bus, "GetConnectionUnixProcessID", unique)
	})
	return c
}

// busMessage takes one message that the monitor was shown.
func (l *Log) busMessage(b *busWatch, m bus.Message) {
	l.locked(func() {
		if m.Cut {
			// Who hides what a message is from the guard has blinded it.
			l.health[b.channel].Errors++
			l.put(Event{Channel: b.channel, Kind: GuardError, Detail: uint32(m.Type)}, nil)
			return
		}
		switch {
		case m.Sender == b.control.Unique():
			if s := m.Strings(); len(s) == 1 && b.marks[s[0]] != nil {
				close(b.marks[s[0]])
				delete(b.marks, s[0])
			}
		case m.Sender == bus.Bus:
			if s := m.Strings(); m.Type == bus.Signal && m.Member == "NameOwnerChanged" && len(s) == 3 {
				l.busOwner(b, s[0], s[2])
			}
		case m.Type == bus.MethodCall, m.Type == bus.Signal && m.Destination != "":
			l.busCall(b, m)
		}
	})
}

// busCall logs a call or a directed signal; the lock is held.
func (l *Log) busCall(b *busWatch, m bus.Message) {
	ev := Event{Channel: b.channel, Request: m.Interface + "." + m.Member, Peer: m.Destination}
	actor := l.program(b, m.Sender)
	if m.Destination == bus.Bus || m.Destination == "" {
		switch {
		case m.Member == "BecomeMonitor", m.Member == "AddMatch" && slices.ContainsFunc(m.Strings(), eavesdrops):
			ev.Kind = b.kinds.listen
		case m.Member == "UpdateActivationEnvironment":
			ev.Kind, ev.Role = b.kinds.action, Other // what programs of the person are started with
		default:
			return // what every program asks its bus
		}
		l.putMessage(ev, actor, nil)
		return
	}
	unique := m.Destination
	if !strings.HasPrefix(unique, ":") {
		unique = b.names[unique]
	}
	var peer *client
	if unique != "" {
		peer = l.program(b, unique)
	}
	if peer != nil || b.activatable[m.Destination] {
		ev.Role = Other
	}
	t, err := violations()
	if err != nil {
		return // Start refuses to run on a broken table
	}
	addressed := []string{m.Destination}
	for name, owner := range b.names {
		if owner == unique {
			addressed = append(addressed, name)
		}
	}
	switch {
	case m.Type == bus.MethodCall && t.serves(addressed, m.Interface, m.Member):
		ev.Kind = b.kinds.service
	case m.Type == bus.MethodCall && asks(m.Interface, m.Member):
		ev.Kind = b.kinds.read
	case strings.HasSuffix(m.Interface, ".Registry") && m.Member == "RegisterEvent":
		ev.Kind = b.kinds.listen
	default:
		ev.Kind = b.kinds.action
	}
	l.putMessage(ev, actor, peer)
}

// putMessage logs a message with both its ends; the lock is held.
func (l *Log) putMessage(ev Event, actor, peer *client) {
	ev.MonoNS = x11.MonoNS()
	if r, _ := Violation(ev); r != "" && (actor.pid == 0 || !l.exempt[actor.pid]) {
		l.disturbed = ev.MonoNS
	}
	l.health[ev.Channel].Events++
	l.ring.add(entry{Event: ev, actor: actor, peer: peer})
}

// eavesdrops reports whether a match rule asks for messages that are addressed to others.
func eavesdrops(rule string) bool { return strings.Contains(rule, "eavesdrop") }

// serves reports whether a call is one of the table's services.
func (t *table) serves(addressed []string, iface, member string) bool {
	return slices.ContainsFunc(t.services, func(s service) bool {
		return slices.Contains(addressed, s.To) && s.Interface == iface && (len(s.Members) == 0 || slices.Contains(s.Members, member))
	})
}

// asks reports whether a call only reads, by the standard interfaces of D-Bus and those of accessibility (at-spi2-core, xml/*.xml), whose
// questions begin so.
func asks(iface, member string) bool {
	switch iface {
	case "org.freedesktop.DBus.Introspectable", "org.freedesktop.DBus.Peer", "org.freedesktop.DBus.ObjectManager":
		return true
	case "org.freedesktop.DBus.Properties":
		return member == "Get" || member == "GetAll"
	}
	return strings.HasPrefix(iface, "org.a11y.atspi.") && (strings.HasPrefix(member, "Get") || strings.HasPrefix(member, "Is") || member == "Contains")
}

// markBuses puts a barrier's mark into every bus and returns what is closed when its monitor has shown it, and what is told when
// everything that was asked before is answered.
func (l *Log) markBuses() []busMark {
	out := make([]busMark, len(l.buses))
	for i, b := range l.buses {
		l.mu.Lock()
		l.token++
		name := fmt.Sprintf("%s.t%d", markName, l.token)
		out[i] = busMark{name, make(chan struct{}), make(chan error, 1)}
		b.marks[name] = out[i].seen
		l.mu.Unlock()
		b.control.Async(func(_ bus.Message, err error) { out[i].answered <- err }, bus.Bus, "NameHasOwner", name)
	}
	return out
}

type busMark struct {
	name     string
	seen     chan struct{}
	answered chan error
}

// reach waits for a mark.
func (b *busWatch) reach(ctx context.Context, m busMark) error {
	select {
	case err := <-m.answered:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-m.seen:
		return nil
	case <-b.monitor.Done():
		return b.monitor.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
