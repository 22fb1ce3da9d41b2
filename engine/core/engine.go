package core

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix/refusal"
)

var _ engine.Engine = (*Engine)(nil)

// Engine implements [engine.Engine]. It is safe for concurrent use; [Engine.Close] must be called to end its browsers.
type Engine struct {
	cfg      Config
	table    *refusal.Table
	decl     engine.Declaration
	claims   map[engine.Capability]engine.Claim
	guardian *guardian

	mu       sync.Mutex
	closed   bool
	sessions map[string]*session
	ended    []string // ids of ended sessions, oldest first
}

// Call implements [engine.Engine]. The error is set for an operation that is no public tool, and for a nil engine.
func (e *Engine) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	if e == nil {
		return engine.Result{}, fmt.Errorf("engine: call of %s on no engine", op)
	}
	handler, ok := handlers[op]
	if !ok {
		return engine.Result{}, fmt.Errorf("engine: unknown operation of %d bytes", len(op))
	}
	return handler(e, ctx, op, args), nil
}

type handler func(e *Engine, ctx context.Context, op engine.Operation, args json.RawMessage) engine.Result

// handlers maps every public tool to what answers it.
var handlers = map[engine.Operation]handler{
	engine.OpDeclaration:  with((*Engine).declaration),
	engine.OpSessionStart: with((*Engine).sessionStart),
	engine.OpSessionEnd:   with((*Engine).sessionEnd),
	engine.OpPrepare:      with((*Engine).prepare),
	engine.OpState:        with((*Engine).state),
	engine.OpNavigate:     with((*Engine).navigate),
	engine.OpClick:        with((*Engine).click),
	engine.OpType:         with((*Engine).typeText),
	engine.OpContext:      with((*Engine).context),
	engine.OpPointer:      with((*Engine).act),
	engine.OpSelect:       with((*Engine).act),
	engine.OpDialog:       with((*Engine).act),
	engine.OpUpload:       with((*Engine).act),
	engine.OpDownload:     with((*Engine).act),
	engine.OpScreenshot:   with((*Engine).act),
}

// with decodes the arguments before f sees them.
func with[T any](f func(*Engine, context.Context, engine.Operation, T) engine.Result) handler {
	return func(e *Engine, ctx context.Context, op engine.Operation, raw json.RawMessage) engine.Result {
		var req T
		if limitation, field := decode(raw, &req); limitation != "" {
			return engine.Refused(e.argument(op, limitation, field))
		}
		return f(e, ctx, op, req)
	}
}

func (e *Engine) declaration(_ context.Context, op engine.Operation, _ struct{}) engine.Result {
	d := e.decl
	d.Claims = slices.Clone(d.Claims)
	d.Postures = slices.Clone(d.Postures)
	d.Components = slices.Clone(d.Components)
	return engine.Result{Status: engine.StatusOK, Declaration: &d}
}

func (e *Engine) sessionStart(_ context.Context, op engine.Operation, _ struct{}) engine.Result {
	e.mu.Lock()
	defer e.mu.Unlock()
	live := 0
	for _, s := range e.sessions {
		if s.alive() {
			live++
		}
	}
	if e.closed || live >= maxSessions {
		return engine.Refused(e.refuse(op, "unresponsive", engine.Detail{}))
	}
	s := &session{id: mint("bs-"), prepare: newGate(), done: make(chan struct{}), calls: map[int]context.CancelFunc{}, targets: map[string]*target{}, tabs: map[string]*tab{}}
	e.sessions[s.id] = s
	return engine.Result{Status: engine.StatusOK, Session: &engine.Session{ID: s.id}}
}

func (e *Engine) session(id string) *session {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sessions[id]
}

// sessionEnd revokes everything of a session at once, then ends its browser and removes its profile. Ending a session again, also while it is
// being ended, waits for that end and says the same, without claiming its side effects a second time.
func (e *Engine) sessionEnd(ctx context.Context, op engine.Operation, req engine.SessionRequest) engine.Result {
	s := e.session(req.Session)
	if s == nil {
		return engine.Refused(e.noSession(op))
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Budgets.End)
	defer cancel()
	first := e.end(s)
	select {
	case <-s.done:
	case <-ctx.Done():
		rc := engine.Receipt{Operation: op, Effect: engine.EffectUnknown, Route: engine.RouteEngine, Trust: engine.TrustNone, Delivery: engine.DeliveryBackground,
			RequestedCount: 1, BrowserInitiated: []string{}}
		return engine.Result{Status: engine.StatusOK, Session: &engine.Session{ID: s.id}, Receipt: &rc}
	}
	rc := s.receipt
	if !first {
		// What the end did, its first call did; this one found it done.
		rc.SideEffects, rc.BrowserInitiated = engine.SideEffects{}, []string{}
	}
	return engine.Result{Status: engine.StatusOK, Session: &engine.Session{ID: s.id}, Receipt: &rc}
}

// end starts the end of a session once, and says whether this call did. It does not depend on the caller: a caller that goes away does not leave a browser behind.
func (e *Engine) end(s *session) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.ended = true
	for _, cancel := range s.calls {
		cancel()
	}
	go e.finish(s)
	return true
}

func (e *Engine) finish(s *session) {
	started := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), e.cfg.Budgets.End)
	defer cancel()
	// A launch in flight was cancelled; it cleans up after itself before it lets go.
	err := s.prepare.lock(ctx)
	s.mu.Lock()
	p := s.proc
	clear(s.targets)
	clear(s.tabs)
	s.mu.Unlock()
	rc := engine.Receipt{Operation: engine.OpSessionEnd, Effect: engine.EffectConfirmed, Route: engine.RouteEngine, Trust: engine.TrustNone,
		Delivery: engine.DeliveryBackground, RequestedCount: 1, DeliveredCount: 1, BrowserInitiated: []string{}}
	if p != nil {
		rc.Posture, rc.Generation = p.posture, p.generation
		rc.BrowserInitiated = e.settleIdle(ctx, p)
		gone := e.cfg.Native.SameProcess(ctx, p.id) != nil
		watch, werr := e.cfg.Native.Observe(ctx)
		if e := e.shutdown(p); err == nil {
			err = e
		}
		rc.SideEffects.ClosedWindow = !gone && len(p.opened) > 0
		if werr == nil {
			if fx, ferr := watch.Stop(ctx, p.id); ferr == nil {
				rc.SideEffects.ClosedWindow = fx.Closed || rc.SideEffects.ClosedWindow
				rc.SideEffects.ForegroundedWindow, rc.SideEffects.RaisedWindow = fx.Foregrounded, fx.Raised
			}
		}
	}
	if err != nil {
		rc.Effect, rc.DeliveredCount = engine.EffectPartial, 0
	}
	rc.Durations.TotalMS = ms(time.Since(started))
	rc.Durations.DispatchMS = rc.Durations.TotalMS
	s.receipt, s.cleaned = rc, err == nil
	close(s.done)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = append(e.ended, s.id)
	if len(e.ended) > maxEnded {
		delete(e.sessions, e.ended[0])
		e.ended = e.ended[1:]
	}
}

// Close ends every session and waits until all browsers and profiles are gone or ctx is over. Afterwards no session can be started.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	all := make([]*session, 0, len(e.sessions))
	for _, s := range e.sessions {
		all = append(all, s)
	}
	e.mu.Unlock()
	for _, s := range all {
		e.end(s)
	}
	var failed error
	for _, s := range all {
		select {
		case <-s.done:
			if !s.cleaned && failed == nil {
				failed = fmt.Errorf("engine: a session left its browser or profile behind")
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := e.guardian.close(ctx); failed == nil {
		failed = err
	}
	return failed
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
