package core

import (
	"context"
	"slices"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
)

// settleLaunch is how long a fresh browser's window is given to reach the rectangle that its protocol tells.
const settleLaunch = time.Second

// A caller may bound a launch itself, within these.
const minLaunch, maxLaunch = 500 * time.Millisecond, 20 * time.Second

// prepare launches the session's browser on a profile of its own, or says that it runs already. Attaching to a running browser is refused by
// what that browser is.
func (e *Engine) prepare(ctx context.Context, op engine.Operation, req engine.PrepareRequest) engine.Result {
	started := time.Now()
	s := e.session(req.Session)
	if s == nil {
		return engine.Refused(e.noSession(op))
	}
	budget := e.cfg.Budgets.Launch
	if asked := time.Duration(req.TimeoutMS) * time.Millisecond; req.TimeoutMS != 0 {
		if asked < minLaunch || asked > maxLaunch {
			return engine.Refused(e.argument(op, "invalid_argument", "timeout_ms"))
		}
		budget = min(budget, asked)
	}
	ctx, release, ok := s.enter(ctx, budget)
	if !ok {
		return engine.Refused(e.noSession(op))
	}
	defer release()
	if req.PID < 0 {
		return engine.Refused(e.argument(op, "invalid_argument", "pid"))
	}
	if req.PID != 0 {
		p := s.process()
		if p == nil || p.id.PID != req.PID {
			return engine.Refused(e.foreign(ctx, op, req.PID))
		}
	} else if req.WindowID != 0 {
		return engine.Refused(e.argument(op, "invalid_argument", "window_id"))
	}
	if r := e.posture(op, req.Profile); r != nil {
		return engine.Refused(r)
	}
	if err := s.prepare.lock(ctx); err != nil {
		return engine.Refused(e.adopt(ctx, op, s, nil, err))
	}
	defer s.prepare.unlock()
	if !s.alive() {
		return engine.Refused(e.noSession(op))
	}
	old := s.process()
	if old != nil && !old.lost() {
		if r := e.proveProcess(ctx, op, s, old); r == nil {
			rc := e.prepareReceipt(op, old)
			rc.SideEffects.ReusedDriverProfile = false
			rc.BrowserInitiated = e.settleIdle(ctx, old)
			rc.Durations.TotalMS = ms(time.Since(started))
			rc.Durations.ProofMS = rc.Durations.TotalMS
			return engine.Result{Status: engine.StatusOK, Receipt: &rc, Prepared: &engine.Prepared{Action: "already_prepared", PID: old.id.PID,
				Windows: slices.Clone(old.opened), Posture: old.posture, Generation: old.generation}}
		} else if !old.lost() {
			return engine.Refused(r)
		}
	}
	if req.PID != 0 {
		return engine.Refused(e.stale(op, s, old))
	}
	if !req.AllowLaunch {
		return engine.Refused(e.refuse(op, "endpoint_absent", engine.Detail{NextAction: "allow_launch"}))
	}
	return e.launch(ctx, op, s, old, started)
}

// posture refuses a profile posture that is malformed or not declared.
func (e *Engine) posture(op engine.Operation, p engine.Profile) *engine.Refusal {
	declared := slices.Contains(e.decl.Postures, p.Kind)
	switch p.Kind {
	case engine.PostureIsolatedNew:
		if p.Name != "" {
			return e.argument(op, "invalid_argument", "profile.name")
		}
		if !declared {
			return e.refuse(op, "undeclared", engine.Detail{})
		}
		return nil
	case engine.PostureIsolatedNamed:
		return e.refuse(op, "undeclared", engine.Detail{})
	case engine.PostureExisting:
		return e.refuse(op, "unsupported_engine", engine.Detail{Limitation: "engine_route_unavailable"})
	}
	return e.argument(op, "invalid_argument", "profile.kind")
}

func (e *Engine) prepareReceipt(op engine.Operation, p *process) engine.Receipt {
	return engine.Receipt{Operation: op, Effect: engine.EffectConfirmed, Route: engine.RouteEngine, Trust: engine.TrustNone, Delivery: engine.DeliveryBackground,
		RequestedCount: 1, DeliveredCount: 1, Posture: p.posture, Generation: p.generation, BrowserInitiated: []string{}}
}

// launch starts a browser on a new profile. s.prepare is held. Whatever fails, nothing is left.
func (e *Engine) launch(ctx context.Context, op engine.Operation, s *session, old *process, started time.Time) engine.Result {
	// Without a desk to prove a window on, no process is started.
	obs, err := e.cfg.Native.Observe(ctx)
	if err != nil {
		return engine.Refused(e.adopt(ctx, op, s, nil, err))
	}
	watching := true
	defer func() {
		if watching {
			stop, cancel := context.WithTimeout(context.Background(), graceReturn)
			defer cancel()
			_, _ = obs.Stop(stop, engine.Process{})
		}
	}()
	restarted := false
	generation := mint("g-")
	if old != nil {
		// The browser of the lost generation goes first; its successor has the name that refusals gave since.
		if err := e.shutdown(old); err != nil {
			return engine.Refused(e.refuse(op, "launch_failed", engine.Detail{Reason: "profile_in_use"}))
		}
		e.declareLost(old)
		generation, restarted = old.successor, true
	}
	dir, err := newProfile(e.cfg.ProfileRoot)
	if err != nil {
		return engine.Refused(e.refuse(op, "launch_failed", engine.Detail{Reason: "profile_unwritable"}))
	}
	if err := e.guardian.watch(dir); err != nil {
		_ = dir.remove(ctx)
		return engine.Refused(e.refuse(op, "launch_failed", engine.Detail{Reason: "exited"}))
	}
	dispatched := time.Now()
	b, err := e.cfg.Adapter.Launch(ctx, engine.LaunchSpec{ProfileDir: dir.data(), Env: dir.environment(e.cfg.Env), Budget: e.remaining(ctx), Owns: e.cfg.Native.OwnsEndpoint})
	if err != nil {
		e.discard(dir, nil, engine.Process{})
		return engine.Refused(e.adopt(ctx, op, s, nil, err))
	}
	p := &process{generation: generation, posture: engine.PostureIsolatedNew, browser: b, id: b.Process(), profile: dir, windows: newGate(),
		pairs: map[uint32]engine.WindowKey{}, targets: map[uint32]*target{}, dead: make(chan struct{}), known: make(chan struct{})}
	fail := func(r *engine.Refusal) engine.Result {
		_ = e.shutdown(p)
		return engine.Refused(r)
	}
	if err := e.guardian.process(dir, p.id); err != nil {
		return fail(e.refuse(op, "launch_failed", engine.Detail{Reason: "exited"}))
	}
	if err := e.cfg.Native.SameProcess(ctx, p.id); err != nil {
		return fail(e.refuse(op, "launch_failed", engine.Detail{Reason: "exited"}))
	}
	if err := e.cfg.Native.OwnsEndpoint(ctx, p.id, b.Endpoint()); err != nil {
		return fail(e.adopt(ctx, op, s, p, err))
	}
	if r := e.construct(ctx, op, s, p); r != nil {
		return fail(r)
	}
	_ = pause(ctx, quietDesk)
	done := time.Now()
	fx, err := obs.Stop(ctx, p.id)
	watching = false
	if err != nil {
		return fail(e.adopt(ctx, op, s, p, err))
	}
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return fail(e.noSession(op))
	}
	s.proc = p
	s.mu.Unlock()
	e.attend(ctx, p)
	rc := e.prepareReceipt(op, p)
	rc.SideEffects = engine.SideEffects{LaunchedBrowser: true, RestartedBrowser: restarted, CreatedProfile: true, OpenedWindow: len(p.opened) > 0 || len(fx.Opened) > 0,
		ClosedWindow: fx.Closed, ForegroundedWindow: fx.Foregrounded, RaisedWindow: fx.Raised, MovedPointer: fx.MovedPointer}
	rc.Durations = engine.Durations{ProofMS: ms(done.Sub(dispatched)), DispatchMS: ms(done.Sub(dispatched)), TotalMS: ms(time.Since(started))}
	return engine.Result{Status: engine.StatusOK, Receipt: &rc, Prepared: &engine.Prepared{Action: "launched_isolated_browser", PID: p.id.PID,
		Windows: slices.Clone(p.opened), Posture: p.posture, Generation: p.generation}}
}

// attend watches the connection and, between operations, the desk.
func (e *Engine) attend(ctx context.Context, p *process) {
	go func() {
		select {
		case <-p.browser.Lost():
			e.declareLost(p)
		case <-p.dead:
		}
	}()
	p.deskMu.Lock()
	defer p.deskMu.Unlock()
	p.idle, _ = e.cfg.Native.Observe(ctx) // as in leave
}

func (e *Engine) remaining(ctx context.Context) time.Duration {
	if d, ok := ctx.Deadline(); ok {
		return time.Until(d)
	}
	return e.cfg.Budgets.Launch
}

// construct waits for the fresh browser's windows. When there is one native and one protocol window, they are the same by construction.
func (e *Engine) construct(ctx context.Context, op engine.Operation, s *session, p *process) *engine.Refusal {
	var settle time.Time
	// none says that the last look found no window; a look that the deadline cuts short says nothing new.
	none := false
	failed := func(err error) *engine.Refusal {
		if none && ctx.Err() == context.DeadlineExceeded && s.alive() {
			return e.refuse(op, "environment", engine.Detail{Limitation: "no_native_window"})
		}
		return e.adopt(ctx, op, s, p, err)
	}
	for {
		if p.lost() {
			return e.refuse(op, "launch_failed", engine.Detail{Reason: "exited"})
		}
		windows, err := e.cfg.Native.Windows(ctx, p.id)
		if err != nil {
			return failed(err)
		}
		none = len(windows) == 0
		contexts, err := p.browser.Contexts(ctx)
		if err != nil {
			return failed(err)
		}
		keys := windowsOf(contexts)
		if len(windows) > 0 && len(keys) > 0 {
			if settle.IsZero() {
				settle = time.Now().Add(settleLaunch)
			}
			agree := len(windows) == len(keys)
			for _, w := range windows {
				fits := false
				for _, k := range keys {
					fits = fits || near(w.Bounds, k.bounds)
				}
				agree = agree && (fits || w.Minimised)
			}
			if agree || time.Now().After(settle) {
				for _, w := range windows {
					p.opened = append(p.opened, w.ID)
				}
				if len(windows) == 1 && len(keys) == 1 {
					p.pairs[windows[0].ID] = keys[0].key
				}
				return nil
			}
		}
		if err := pause(ctx, settleStep); err != nil {
			return failed(err)
		}
	}
}

// protocolWindow is one window as the protocol tells it.
type protocolWindow struct {
	key    engine.WindowKey
	bounds engine.Rect
}

func windowsOf(contexts []engine.BrowserContext) []protocolWindow {
	var out []protocolWindow
	for _, c := range contexts {
		if c.Window == "" || slices.ContainsFunc(out, func(w protocolWindow) bool { return w.key == c.Window }) {
			continue
		}
		out = append(out, protocolWindow{c.Window, c.Bounds})
	}
	return out
}
