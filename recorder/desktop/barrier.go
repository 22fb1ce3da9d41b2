package desktop

import (
	"context"
	"fmt"
	"time"

	"github.com/engine-acceptance/acceptance/recorder/x11"
)

// Barrier returns when everything that the server did before the call is in the log, on every channel, with the
// processes of the clients that it could still be asked about. It gives the place in the log reached then. What
// clients have written but the server has not yet run is not covered: make a round trip with them first. A lost
// channel is a *ChannelError; a barrier that is not reached within the call budget is the context's error, and
// the guard is behind or stuck.
func (l *Log) Barrier(ctx context.Context) (Mark, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.CallBudget)
	defer cancel()
	// One mark for each recorder: a message, and a property.
	seen := map[Channel]chan struct{}{Record: make(chan struct{}), Properties: make(chan struct{})}
	tokens := map[Channel]uint32{}
	l.mu.Lock()
	for ch, c := range seen {
		l.token++
		tokens[ch] = l.token
		l.marks[l.token] = c
	}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		for _, token := range tokens {
			delete(l.marks, token)
		}
		l.mu.Unlock()
	}()
	fail := func(ch Channel, err error) (Mark, error) {
		if lost := l.lostErr(); lost != nil {
			return 0, lost
		}
		return 0, &ChannelError{Channel: ch, Err: fmt.Errorf("barrier: %w", err)}
	}
	// The mark is a request like any other; RECORD shows it in its place among the others. The data connection of
	// RECORD answers no questions while it records.
	q := l.conns[Query]
	marker, err := q.Atom(ctx, atomMarker)
	if err != nil {
		return fail(Query, err)
	}
	if err := q.Send(ctx, x11.SendEvent(l.markWindow, 0, 0, x11.ClientMessageEvent(l.markWindow, marker, tokens[Record])),
		x11.ChangeProperty32(l.markWindow, marker, x11.AtomCardinal, tokens[Properties])); err != nil {
		return fail(Query, err)
	}
	if err := q.Sync(ctx); err != nil {
		return fail(Query, err)
	}
	buses := l.markBuses()
	channels := []Channel{Core, Input, Selection, Output}
	answers := make([]chan error, len(channels))
	for i, ch := range channels {
		answers[i] = make(chan error, 1)
		l.conns[ch].Async(ctx, x11.NewRequest(43, 0), func(_ x11.Reply, err error) { answers[i] <- err })
	}
	for i, ch := range channels {
		select {
		case err := <-answers[i]:
			if err != nil {
				return fail(ch, err)
			}
		case <-ctx.Done():
			return fail(ch, context.Cause(ctx))
		}
	}
	for _, ch := range []Channel{Record, Properties} {
		select {
		case <-seen[ch]:
		case <-l.conns[ch].Done():
			return fail(ch, l.conns[ch].Err())
		case <-ctx.Done():
			return fail(ch, context.Cause(ctx))
		}
	}
	// Questions about processes were asked before this one, and are answered in order.
	if err := l.conns[Control].Sync(ctx); err != nil {
		return fail(Control, err)
	}
	for i, b := range l.buses {
		if err := b.reach(ctx, buses[i]); err != nil {
			return fail(b.channel, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return Mark(l.ring.last), nil
}

// Settle is a barrier, then waits until no violation by a process that is not exempt was logged for quiet, then is
// a barrier again. It gives up after the settle budget with the context's error: the desk does not come to rest.
func (l *Log) Settle(ctx context.Context, quiet time.Duration) (Mark, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.SettleBudget)
	defer cancel()
	if _, err := l.Barrier(ctx); err != nil {
		return 0, err
	}
	since := x11.MonoNS()
	for {
		l.mu.Lock()
		from := max(since, l.disturbed)
		l.mu.Unlock()
		if rest := quiet - time.Duration(x11.MonoNS()-from); rest > 0 {
			timer := time.NewTimer(rest)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return 0, fmt.Errorf("the desk did not come to rest for %v: %w", quiet, context.Cause(ctx))
			}
			continue
		}
		m, err := l.Barrier(ctx)
		if err != nil {
			return 0, err
		}
		l.mu.Lock()
		still := l.disturbed <= from
		l.mu.Unlock()
		if still {
			return m, nil
		}
	}
}
