package core

import (
	"context"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
)

// attempts is how often a lost connection is made anew before the budget counts as spent.
const attempts = 3

// attemptBudget bounds one attempt. A browser on this machine that lets a new connection wait for so long does not answer; three attempts and their
// pauses stay far below the budget of all, in which there is room for proofs on a busy machine. A third of the budget each would leave none.
const attemptBudget = 3 * time.Second

// retryAfter is the pause before the second attempt; it doubles after that.
const retryAfter = 200 * time.Millisecond

// reconnect makes the lost connection to a living browser anew. One caller leads; the others wait and take what it got. Nothing that was
// minted before is revived: the new connection is a new generation, whose windows are bound afresh.
func (e *Engine) reconnect(parent context.Context, op engine.Operation, s *session, old *process) (*process, *engine.Refusal) {
	ctx, release, ok := s.enter(parent, e.cfg.Budgets.Reconnect)
	if !ok {
		return nil, e.noSession(op)
	}
	defer release()
	if err := s.prepare.lock(ctx); err != nil {
		return nil, e.adopt(ctx, op, s, nil, err)
	}
	defer s.prepare.unlock()
	if !s.alive() {
		return nil, e.noSession(op)
	}
	if now := s.process(); now != old {
		return now, nil // somebody else led
	}
	e.declareLost(old)
	<-old.known
	maker, able := old.browser.(engine.Reconnector)
	if old.reason != "connection" || !able {
		return nil, e.stale(op, s, old)
	}
	exhausted := func() *engine.Refusal {
		return e.refuse(op, "reconnect_budget", engine.Detail{Attempts: attempts, NextAction: "prepare"})
	}
	if old.exhausted {
		return nil, exhausted()
	}
	wait := retryAfter
	for n := range attempts {
		if n > 0 {
			if err := pause(ctx, wait); err != nil {
				break
			}
			wait *= 2
		}
		if err := e.cfg.Native.SameProcess(ctx, old.id); err != nil {
			return nil, e.refuse(op, "generation_changed", engine.Detail{Reason: "process", Generation: old.successor, NextAction: "prepare"})
		}
		if err := e.cfg.Native.OwnsEndpoint(ctx, old.id, old.browser.Endpoint()); err != nil {
			return nil, e.adopt(ctx, op, s, nil, err) // not a byte to somebody else's listener
		}
		b, err := once(ctx, min(attemptBudget, e.cfg.Budgets.Reconnect/attempts), maker)
		if err != nil {
			continue
		}
		p := &process{generation: old.successor, posture: old.posture, browser: b, id: b.Process(), profile: old.profile, windows: newGate(), opened: old.opened,
			pairs: map[uint32]engine.WindowKey{}, targets: map[uint32]*target{}, dead: make(chan struct{}), known: make(chan struct{})}
		if p.id != old.id {
			return nil, e.refuse(op, "endpoint_owner", engine.Detail{Reason: "owner"})
		}
		s.mu.Lock()
		if s.ended {
			s.mu.Unlock()
			_ = e.shutdown(p)
			return nil, e.noSession(op)
		}
		s.proc = p
		s.mu.Unlock()
		e.attend(ctx, p)
		return p, nil
	}
	if !s.alive() {
		return nil, e.noSession(op)
	}
	old.exhausted = true
	return nil, exhausted()
}

// once makes one attempt, which is waited for no longer than its share of the budget.
func once(parent context.Context, budget time.Duration, maker engine.Reconnector) (engine.Browser, error) {
	ctx, cancel := context.WithTimeout(parent, budget)
	defer cancel()
	type result struct {
		b   engine.Browser
		err error
	}
	ch := make(chan result, 1)
	go func() {
		b, err := maker.Reconnect(ctx)
		ch <- result{b, err}
	}()
	select {
	case r := <-ch:
		return r.b, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
