package core

import (
	"context"
	"slices"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
)

// state binds a window or reads a snapshot.
func (e *Engine) state(ctx context.Context, op engine.Operation, req engine.StateRequest) engine.Result {
	switch req.Mode {
	case engine.ModeBind:
		for field, set := range map[string]bool{"target_id": req.TargetID != "", "tab_id": req.TabID != "", "max_nodes": req.MaxNodes != 0} {
			if set {
				return engine.Refused(e.argument(op, "invalid_argument", field))
			}
		}
		return e.bind(ctx, op, req)
	case engine.ModeSnapshot:
		for field, set := range map[string]bool{"pid": req.PID != 0, "window_id": req.WindowID != 0, "max_nodes": req.MaxNodes < 0} {
			if set {
				return engine.Refused(e.argument(op, "invalid_argument", field))
			}
		}
		return e.snapshot(ctx, op, req)
	}
	return engine.Refused(e.argument(op, "invalid_argument", "mode"))
}

// bind binds a window. A connection that turns out lost only in the middle of it, for the loss is learned a moment after it happens, is made anew as
// one that was known to be lost is: a bind reads and mints, and has sent nothing that could act twice.
func (e *Engine) bind(ctx context.Context, op engine.Operation, req engine.StateRequest) engine.Result {
	r := e.bindOnce(ctx, op, req)
	if e.decl.Reconnect && r.Refusal != nil && r.Refusal.Trigger == "generation_changed" && r.Refusal.Detail.Reason == "connection" {
		r = e.bindOnce(ctx, op, req)
	}
	return r
}

func (e *Engine) bindOnce(ctx context.Context, op engine.Operation, req engine.StateRequest) engine.Result {
	s := e.session(req.Session)
	if s == nil {
		return engine.Refused(e.noSession(op))
	}
	if req.PID <= 0 {
		return engine.Refused(e.argument(op, "invalid_argument", "pid"))
	}
	p := s.process()
	if p != nil && p.id.PID == req.PID && p.lost() && e.decl.Reconnect {
		var r *engine.Refusal
		if p, r = e.reconnect(ctx, op, s, p); r != nil {
			return engine.Refused(r)
		}
	}
	ctx, release, ok := s.enter(ctx, e.cfg.Budgets.Bind)
	if !ok {
		return engine.Refused(e.noSession(op))
	}
	defer release()
	if p == nil || p.id.PID != req.PID {
		return engine.Refused(e.foreign(ctx, op, req.PID))
	}
	if req.WindowID == 0 {
		return engine.Refused(e.argument(op, "invalid_argument", "window_id"))
	}
	if r := e.proveProcess(ctx, op, s, p); r != nil {
		return engine.Refused(r)
	}
	if err := p.windows.lock(ctx); err != nil {
		return engine.Refused(e.adopt(ctx, op, s, p, err))
	}
	defer p.windows.unlock()
	if r := e.proveProcess(ctx, op, s, p); r != nil {
		return engine.Refused(r)
	}
	key, contexts, r := e.match(ctx, op, s, p, req.WindowID)
	if r != nil {
		return engine.Refused(r)
	}
	t := p.bound(req.WindowID, key)
	out := engine.Target{ID: t.id, Quality: engine.QualityExact, Route: "native_window", Posture: p.posture, MutationAllowed: true, Generation: p.generation}
	var mine []engine.BrowserContext
	for _, c := range contexts {
		if c.Window == key {
			mine = append(mine, c)
		}
	}
	for _, tb := range t.open() {
		if !slices.ContainsFunc(mine, func(c engine.BrowserContext) bool { return c.Key == tb.key }) {
			tb.close()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return engine.Refused(e.noSession(op))
	}
	if s.proc != p || p.lost() {
		// The stale path reads the session again, so it must not hold it.
		s.mu.Unlock()
		r := e.stale(op, s, p)
		s.mu.Lock()
		return engine.Refused(r)
	}
	s.targets[t.id] = t
	for _, c := range mine {
		tb, _ := t.tab(c.Key)
		s.tabs[tb.id] = tb
		active := c.Visible
		if len(mine) == 1 {
			yes := true
			active = &yes
		}
		out.Tabs = append(out.Tabs, engine.Tab{ID: tb.id, Title: bounded(c.Title), Active: active})
	}
	return engine.Result{Status: engine.StatusOK, Target: &out}
}

// bound returns the target of a native window, minting one when there is none for this protocol window.
func (p *process) bound(native uint32, key engine.WindowKey) *target {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pairs[native] = key
	if t := p.targets[native]; t != nil && t.key == key {
		t.mu.Lock()
		t.gone = false
		t.mu.Unlock()
		return t
	}
	t := &target{id: mint("bt-"), proc: p, native: native, key: key, mutate: newGate(), tabs: map[engine.ContextKey]*tab{}}
	p.targets[native] = t
	return t
}

// match finds the protocol window of a native one. A pair that is known needs only to agree still. Otherwise both sides are read twice and
// must not have moved in between, so that windows that change places cannot pass for each other; then exactly one protocol window must
// fit the native one and exactly one native window must fit that geometry. Pairs that are known are no candidates.
func (e *Engine) match(ctx context.Context, op engine.Operation, s *session, p *process, id uint32) (engine.WindowKey, []engine.BrowserContext, *engine.Refusal) {
	deadline := time.Now().Add(e.cfg.Budgets.Settle)
	for {
		key, contexts, r, again := e.tryMatch(ctx, op, s, p, id)
		if !again {
			return key, contexts, r
		}
		if time.Now().After(deadline) {
			return "", nil, r
		}
		if err := pause(ctx, settleStep); err != nil {
			return "", nil, e.adopt(ctx, op, s, p, err)
		}
	}
}

type look struct {
	native   []engine.NativeWindow
	contexts []engine.BrowserContext
}

func (e *Engine) look(ctx context.Context, p *process) (look, error) {
	windows, err := e.cfg.Native.Windows(ctx, p.id)
	if err != nil {
		return look{}, err
	}
	contexts, err := p.browser.Contexts(ctx)
	return look{windows, contexts}, err
}

func sameLook(a, b look) bool {
	if !slices.Equal(a.native, b.native) {
		return false
	}
	return slices.Equal(windowsOf(a.contexts), windowsOf(b.contexts))
}

func (e *Engine) tryMatch(ctx context.Context, op engine.Operation, s *session, p *process, id uint32) (engine.WindowKey, []engine.BrowserContext, *engine.Refusal, bool) {
	stop := func(r *engine.Refusal) (engine.WindowKey, []engine.BrowserContext, *engine.Refusal, bool) {
		return "", nil, r, false
	}
	retry := func(r *engine.Refusal) (engine.WindowKey, []engine.BrowserContext, *engine.Refusal, bool) {
		return "", nil, r, true
	}
	w, err := e.cfg.Native.Window(ctx, id, p.id)
	if err != nil {
		return stop(e.adopt(ctx, op, s, p, err))
	}
	first, err := e.look(ctx, p)
	if err != nil {
		return stop(e.adopt(ctx, op, s, p, err))
	}
	protocol := windowsOf(first.contexts)
	p.mu.Lock()
	known, paired := p.pairs[id]
	if paired && !slices.ContainsFunc(protocol, func(x protocolWindow) bool { return x.key == known }) {
		// That protocol window is gone; the native id belongs to another window now, if to any.
		delete(p.pairs, id)
		if t := p.targets[id]; t != nil {
			t.mu.Lock()
			t.gone = true
			t.mu.Unlock()
		}
		paired = false
	}
	pairs := map[uint32]engine.WindowKey{}
	for n, k := range p.pairs {
		pairs[n] = k
	}
	p.mu.Unlock()
	notExact := e.refuse(op, "wrong_target", engine.Detail{Reason: "not_exact"})
	if paired {
		for _, x := range protocol {
			if x.key == known && (w.Minimised || near(w.Bounds, x.bounds)) {
				return known, first.contexts, nil, false
			}
		}
		return retry(notExact)
	}
	managed := func(l look) bool {
		return slices.ContainsFunc(l.native, func(n engine.NativeWindow) bool { return n.ID == id && n.Bounds == w.Bounds })
	}
	if !managed(first) {
		return retry(e.refuse(op, "environment", engine.Detail{Limitation: "no_native_window"}))
	}
	second, err := e.look(ctx, p)
	if err != nil {
		return stop(e.adopt(ctx, op, s, p, err))
	}
	if !sameLook(first, second) || !managed(second) {
		return retry(notExact)
	}
	taken := map[engine.WindowKey]bool{}
	for _, k := range pairs {
		taken[k] = true
	}
	var fits []engine.WindowKey
	for _, x := range windowsOf(second.contexts) {
		if !taken[x.key] && near(w.Bounds, x.bounds) {
			fits = append(fits, x.key)
		}
	}
	natives := 0
	for _, n := range second.native {
		if _, ok := pairs[n.ID]; !ok && near(n.Bounds, w.Bounds) {
			natives++
		}
	}
	switch {
	case len(fits) == 1 && natives == 1:
		return fits[0], second.contexts, nil, false
	case len(fits) == 0:
		return retry(notExact)
	default:
		return retry(e.refuse(op, "several_fit", engine.Detail{CandidateCount: max(len(fits), natives)}))
	}
}

// snapshot reads what can be acted on, after the same proof as a mutation.
func (e *Engine) snapshot(ctx context.Context, op engine.Operation, req engine.StateRequest) engine.Result {
	s := e.session(req.Session)
	if s == nil {
		return engine.Refused(e.noSession(op))
	}
	ctx, release, ok := s.enter(ctx, e.cfg.Budgets.Action)
	if !ok {
		return engine.Refused(e.noSession(op))
	}
	defer release()
	t, tb, r := e.resolve(op, s, req.TargetID, req.TabID)
	if r != nil {
		return engine.Refused(r)
	}
	c := &call{e: e, op: op, session: s, proc: t.proc, target: t, tab: tb, started: time.Now()}
	p, r := c.prove(ctx)
	if r != nil {
		return engine.Refused(r)
	}
	visible, r := c.visibility(ctx, p)
	if r != nil {
		return engine.Refused(r)
	}
	if r := c.permit(ctx, p, visible, engine.ActionSnapshot, engine.RouteEngine, engine.DeliveryBackground); r != nil {
		return engine.Refused(r)
	}
	reader, ok := t.proc.browser.(engine.Snapshotter)
	if !ok {
		return engine.Refused(e.refuse(op, "undeclared", engine.Detail{Action: engine.ActionSnapshot, Route: engine.RouteEngine}))
	}
	limit := req.MaxNodes
	if limit == 0 {
		limit = e.cfg.MaxNodes
	}
	limit = min(limit, maxNodes)
	type result struct {
		page engine.PageSnapshot
		err  error
	}
	ch := make(chan result, 1)
	go func() {
		page, err := reader.Snapshot(ctx, tb.key, limit)
		ch <- result{page, err}
	}()
	var got result
	select {
	case got = <-ch:
	case <-ctx.Done():
		return engine.Refused(e.adopt(ctx, op, s, t.proc, ctx.Err()))
	}
	if got.err != nil {
		return engine.Refused(e.adopt(ctx, op, s, t.proc, got.err))
	}
	page := got.page
	if page.Document == "" || page.Total < 0 || page.Provenance != engine.ProvenanceAccessibility && page.Provenance != engine.ProvenanceDOM {
		return engine.Refused(e.refuse(op, "protocol_violation", engine.Detail{}))
	}
	// What was read counts only while everything that was proved still holds.
	if !s.alive() {
		return engine.Refused(e.noSession(op))
	}
	if t.proc.lost() {
		return engine.Refused(e.stale(op, s, t.proc))
	}
	omitted := map[string]int{}
	for _, reason := range []string{"hidden", "budget", "unprovable_frame"} {
		if n := page.Omitted[reason]; n > 0 {
			omitted[reason] = n
		}
	}
	if fit := fitting(page.Nodes, limit); fit < len(page.Nodes) {
		omitted["budget"] += len(page.Nodes) - fit
		page.Nodes = page.Nodes[:fit]
	}
	id := mint("sn-")
	out := engine.Snapshot{ID: id, TabID: tb.id, Provenance: page.Provenance, Complete: omitted["budget"] == 0 && omitted["unprovable_frame"] == 0,
		TotalNodes: max(page.Total, len(page.Nodes)), Omitted: omitted, Refs: make([]engine.Ref, 0, len(page.Nodes))}
	for i, n := range page.Nodes {
		out.Refs = append(out.Refs, engine.Ref{Ref: refOf(id, i), Role: bounded(n.Role), Name: bounded(n.Name), Value: bounded(n.Value), States: boundedList(n.States),
			Actions: knownActions(n.Actions), Frame: oneOf(n.Frame, "other_site", "main", "same_site", "other_site"),
			Visibility: oneOf(n.Visibility, "unknown", "in_view", "scrolled_away", "unknown")})
	}
	tb.keep(&snapshot{id: id, document: page.Document, nodes: page.Nodes})
	return engine.Result{Status: engine.StatusOK, Snapshot: &out}
}

// fitting says how many nodes a snapshot of at most limit nodes and [maxListed] bytes of text has room for.
func fitting(nodes []engine.PageNode, limit int) int {
	size := 0
	for i, n := range nodes {
		size += min(len(n.Role), maxText) + min(len(n.Name), maxText) + min(len(n.Value), maxText)
		if i >= limit || size > maxListed {
			return i
		}
	}
	return len(nodes)
}

// boundedList bounds a list of short words.
func boundedList(in []string) []string {
	out := make([]string, 0, min(len(in), 32))
	for _, s := range in[:min(len(in), 32)] {
		out = append(out, bounded(s))
	}
	return out
}

func knownActions(in []engine.Action) []engine.Action {
	var out []engine.Action
	for _, a := range engine.Actions {
		if slices.Contains(in, a) {
			out = append(out, a)
		}
	}
	return out
}

// oneOf returns v when it is one of the closed list, else what is said of a thing that is not known.
func oneOf(v, unknown string, list ...string) string {
	if slices.Contains(list, v) {
		return v
	}
	return unknown
}
