package core

import (
	"context"
	"errors"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
)

// refuse makes a refusal from a trigger of the table. A code that carries the engine's family gets it from the declaration.
func (e *Engine) refuse(op engine.Operation, trigger string, d engine.Detail) *engine.Refusal {
	if tr, ok := e.table.Trigger(trigger); ok && tr.Code == engine.CodeRouteUnavailable {
		if d.EngineFamily == "" {
			d.EngineFamily = e.decl.EngineFamily
		}
		if d.Product == "" {
			d.Product = e.decl.Product
		}
		if d.RequiredProtocol == "" {
			d.RequiredProtocol = e.decl.RequiredProtocol
		}
	}
	r, err := e.table.New(op, trigger, d)
	if err == nil {
		return r
	}
	// What an adapter or a platform said does not fit the vocabulary. That is its violation, and none of its words leave.
	return &engine.Refusal{Code: engine.CodeRouteUnavailable, Operation: op, Trigger: "protocol_violation", Detail: engine.Detail{
		EngineFamily: engine.FamilyUnknown, Product: engine.ProductNone, RequiredProtocol: engine.ProtocolUnknown, Limitation: "protocol_violation"}}
}

func (e *Engine) argument(op engine.Operation, limitation, field string) *engine.Refusal {
	return e.refuse(op, "argument", engine.Detail{Limitation: limitation, Field: field})
}

func (e *Engine) noSession(op engine.Operation) *engine.Refusal {
	return e.refuse(op, "generation_changed", engine.Detail{Reason: "session", NextAction: "session_start"})
}

func (e *Engine) unknownTarget(op engine.Operation, generation string) *engine.Refusal {
	return e.refuse(op, "generation_changed", engine.Detail{Reason: "unknown_target", Generation: generation, NextAction: "bind"})
}

// stale says that what was minted on p is void, why, and what the next generation is called.
func (e *Engine) stale(op engine.Operation, s *session, p *process) *engine.Refusal {
	e.declareLost(p)
	<-p.known // closed within graceDeath of the loss
	if now := s.process(); now != nil && now != p {
		return e.refuse(op, "generation_changed", engine.Detail{Reason: p.reason, Generation: now.generation, NextAction: "bind"})
	}
	if p.reason == "connection" && !e.decl.Reconnect {
		return e.refuse(op, "reconnect_unsupported", engine.Detail{Generation: p.successor})
	}
	next := "prepare"
	if p.reason == "connection" {
		next = "bind"
	}
	return e.refuse(op, "generation_changed", engine.Detail{Reason: p.reason, Generation: p.successor, NextAction: next})
}

// graceDeath is how long a broken connection is given to turn out as a process that is ending: the socket closes first.
const graceDeath = 25 * time.Millisecond

// declareLost marks everything on p as void, at once, and finds out whether the process or only the connection is gone.
func (e *Engine) declareLost(p *process) {
	p.lose.Do(func() {
		close(p.dead)
		p.successor = mint("g-")
		go func() {
			defer close(p.known)
			ctx, cancel := context.WithTimeout(context.Background(), graceDeath)
			defer cancel()
			for {
				if e.cfg.Native.SameProcess(ctx, p.id) != nil {
					p.reason = "process"
					return
				}
				select {
				case <-ctx.Done():
					p.reason = "connection"
					return
				case <-time.After(5 * time.Millisecond):
				}
			}
		}()
	})
}

// adopt turns an error of the adapter or the platform, met before dispatch, into a refusal of op.
func (e *Engine) adopt(ctx context.Context, op engine.Operation, s *session, p *process, err error) *engine.Refusal {
	if !s.alive() {
		return e.noSession(op)
	}
	if r := engine.AsRefusal(err); r != nil {
		if p != nil && r.Trigger == "generation_changed" && (r.Detail.Reason == "process" || r.Detail.Reason == "connection") {
			return e.stale(op, s, p)
		}
		if p != nil && r.Trigger == "generation_changed" && r.Detail.Generation == "" {
			d := r.Detail
			d.Generation = p.generation
			if d.NextAction == "" {
				d.NextAction = "bind"
			}
			return e.refuse(op, r.Trigger, d)
		}
		return e.refuse(op, r.Trigger, r.Detail)
	}
	if p != nil && p.lost() {
		return e.stale(op, s, p)
	}
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return e.refuse(op, "unresponsive", engine.Detail{})
	}
	return e.refuse(op, "protocol_violation", engine.Detail{})
}
