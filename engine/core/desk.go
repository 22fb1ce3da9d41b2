package core

import (
	"context"
	"slices"

	"github.com/engine-acceptance/acceptance/engine"
)

// deskWatch is the observation of the desk during one operation.
type deskWatch struct {
	e    *Engine
	proc *process
	obs  engine.DeskObserver
}

// watchDesk starts to watch for one operation. With the first operation in flight, what was seen since the last one becomes
// browser-initiated.
func (e *Engine) watchDesk(ctx context.Context, p *process) (*deskWatch, error) {
	p.deskMu.Lock()
	defer p.deskMu.Unlock()
	if p.inFlight == 0 {
		e.collectIdle(ctx, p)
	}
	obs, err := e.cfg.Native.Observe(ctx)
	if err != nil {
		return nil, err
	}
	p.inFlight++
	return &deskWatch{e: e, proc: p, obs: obs}, nil
}

// collectIdle closes the watch between operations. p.deskMu is held.
func (e *Engine) collectIdle(ctx context.Context, p *process) {
	if p.idle == nil {
		return
	}
	fx, err := p.idle.Stop(ctx, p.id)
	p.idle = nil
	if err != nil {
		return
	}
	for _, f := range []struct {
		is   bool
		word string
	}{{len(fx.Opened) > 0, engine.InitiatedOpened}, {fx.Closed, engine.InitiatedClosed}, {fx.Foregrounded, engine.InitiatedForegrounded},
		{fx.Raised, engine.InitiatedRaised}, {fx.Moved, engine.InitiatedMoved}} {
		if f.is && !slices.Contains(p.pending, f.word) {
			p.pending = append(p.pending, f.word)
		}
	}
}

// settleIdle closes the watch for good and returns what was seen.
func (e *Engine) settleIdle(ctx context.Context, p *process) []string {
	p.deskMu.Lock()
	defer p.deskMu.Unlock()
	e.collectIdle(ctx, p)
	out := append([]string{}, p.pending...)
	p.pending = nil
	return out
}

func (d *deskWatch) leave(ctx context.Context) {
	d.proc.deskMu.Lock()
	defer d.proc.deskMu.Unlock()
	d.proc.inFlight--
	if d.proc.inFlight == 0 && d.proc.idle == nil && !d.proc.lost() {
		// Without a watch between operations nothing is disclosed as browser-initiated; operations themselves are always watched.
		d.proc.idle, _ = d.e.cfg.Native.Observe(ctx)
	}
}

// abandon ends the watch of an operation that dispatched nothing.
func (d *deskWatch) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), graceReturn)
	defer cancel()
	_, _ = d.obs.Stop(ctx, d.proc.id)
	d.leave(ctx)
}

// finish ends the watch and writes the desk's share of the receipt. When the desk cannot be read any more, the effect is not known either.
func (d *deskWatch) finish(parent context.Context, rc *engine.Receipt) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(parent), graceReturn)
	defer cancel()
	fx, err := d.obs.Stop(ctx, d.proc.id)
	if err != nil {
		rc.Effect = engine.EffectUnknown
	}
	rc.SideEffects.OpenedWindow = rc.SideEffects.OpenedWindow || len(fx.Opened) > 0
	rc.SideEffects.ClosedWindow = rc.SideEffects.ClosedWindow || fx.Closed
	rc.SideEffects.ForegroundedWindow = rc.SideEffects.ForegroundedWindow || fx.Foregrounded
	rc.SideEffects.RaisedWindow = rc.SideEffects.RaisedWindow || fx.Raised
	rc.SideEffects.MovedPointer = rc.SideEffects.MovedPointer || fx.MovedPointer
	d.proc.deskMu.Lock()
	rc.BrowserInitiated = append([]string{}, d.proc.pending...)
	d.proc.pending = nil
	d.proc.deskMu.Unlock()
	d.leave(ctx)
}
