package mutant

import (
	"context"
	"encoding/json"

	"github.com/engine-acceptance/acceptance/engine"
)

// bindings are defects of binding windows.
func bindings() []Mutant {
	return []Mutant{
		{Name: "binds-the-first-window", Seam: SeamStore, Text: "gives the first bound window for every window", Rows: []string{"several-windows"},
			Kills: kills("B3", "effect_missing", "B3", "effect_wrong", "M17", "receipt_untrue"),
			parts: func(p *Parts) { p.Wrap = func(n engine.Engine) engine.Engine { return &firstWindow{n: n} } }},
		{Name: "guesses-between-twins", Seam: SeamReceipt, Text: "takes the older of two windows that both fit, and calls it exact", Rows: []string{"twins-of-the-person"},
			Kills: kills("B5", "refusal_missing"),
			parts: func(p *Parts) {
				p.Wrap = func(n engine.Engine) engine.Engine { return &guesses{n: n, at: engine.CodeBindingAmbiguous} }
			}},
		{Name: "believes-the-label", Seam: SeamReceipt, Text: "takes a window for the browser's because it says so", Rows: []string{"impostor-window"},
			Kills: kills("B12", "refusal_missing"),
			parts: func(p *Parts) {
				p.Wrap = func(n engine.Engine) engine.Engine { return &guesses{n: n, at: engine.CodeWrongTarget} }
			}},
		{Name: "breaks-ties-by-age", Seam: SeamNative, Text: "tells windows of one size and place apart by their age, and has it the wrong way round", Rows: []string{"twins-of-the-person", "twins-in-bounds"},
			Kills: kills("B4", "effect_elsewhere", "B5", "refusal_missing", "M17", "receipt_untrue"),
			parts: func(p *Parts) { p.Native, p.Adapter = &agedWindows{p.Native}, adapterWith{p.Adapter, age} }},
		{Name: "believes-a-title", Seam: SeamStore, Text: "takes two windows for each other when the page of the first has the title of the second", Rows: []string{"swap-titles"},
			Kills: kills("B6", "effect_elsewhere", "B6", "effect_missing", "M17", "receipt_untrue"),
			parts: func(p *Parts) { p.Wrap = func(n engine.Engine) engine.Engine { return &believesTitles{n: n} } }},
		{Name: "keeps-the-old-place", Seam: SeamNative, Text: "remembers where a window was when it first saw it", Rows: []string{"moved-window"},
			Kills: kills("B7", "refused"),
			parts: func(p *Parts) { p.Native = &oldPlaces{NativePlatform: p.Native, seen: map[uint32]engine.Rect{}} }},
		{Name: "follows-the-newest-page", Seam: SeamAdapter, Text: "reads and types in the page that came last, whichever was bound", Rows: []string{"popups-inherit-nothing"},
			Kills: kills("B11", "effect_elsewhere", "B11", "effect_missing", "M17", "receipt_untrue"),
			parts: func(p *Parts) {
				p.Adapter = adapterWith{p.Adapter, func(b engine.Browser) engine.Browser {
					return &newestPage{abilities: able(b), age: map[engine.ContextKey]int{}}
				}}
			}},
		{Name: "has-one-current-page", Seam: SeamStore, Text: "types into the page that was read last, whoever read it", Rows: []string{"crossing-callers", "beside-another-browser"},
			Kills: kills("B16", "effect_elsewhere", "B16", "effect_missing", "B16", "refusal_wrong", "B21", "effect_missing", "B21", "effect_wrong", "M17", "receipt_untrue"),
			parts: func(p *Parts) {
				p.Wrap = func(n engine.Engine) engine.Engine { return &currentPage{n: n, seen: map[string]engine.Ref{}} }
			}},
		{Name: "proves-a-window-once", Seam: SeamNative, Text: "proves whose window it is at the first look and remembers it", Rows: []string{"changed-between", "changed-alone*"},
			Kills: kills("B20", "refusal_missing", "B20", "refusal_wrong", "B20", "refused", "B22", "refusal_missing", "B22", "effect_elsewhere", "B22", "effect_wrong"),
			parts: func(p *Parts) {
				p.Native = &provesOnce{NativePlatform: p.Native, known: map[uint32]engine.NativeWindow{}}
			}},
		{Name: "trusts-the-port", Seam: SeamNative, Text: "takes whoever listens at the endpoint for the browser", Rows: []string{"impostor-endpoint", "changed-alone*"},
			Kills: kills("B13", "refusal_missing", "B13", "refusal_wrong", "B13", "effect_elsewhere", "B13", "probed", "R7", "refusal_late", "B22", "refusal_missing", "B22", "effect_elsewhere", "B22", "effect_wrong"),
			parts: func(p *Parts) { p.Native = trustsPorts{p.Native} }},
	}
}

// firstWindow answers every bind with the first target that the row was given, and every snapshot of it with the first snapshot.
type firstWindow struct {
	n        next
	binds    int
	target   *engine.Target
	snapshot *engine.Snapshot
}

// Call implements [engine.Engine].
func (f *firstWindow) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	mode := text(args, "mode")
	switch {
	case op != engine.OpState:
	case mode == string(engine.ModeBind):
		// The arrangement binds once, the row twice.
		if f.binds++; f.binds == 3 {
			return engine.Result{Status: engine.StatusOK, Target: f.target}, nil
		}
	case f.snapshot != nil:
		return engine.Result{Status: engine.StatusOK, Snapshot: f.snapshot}, nil
	}
	r, err := f.n.Call(ctx, op, args)
	if r.Target != nil {
		f.target = r.Target
	}
	if r.Snapshot != nil {
		f.snapshot = r.Snapshot
	}
	return r, err
}

// guesses answers one kind of refusal with the target that it bound last.
type guesses struct {
	n    next
	at   engine.Code
	last *engine.Target
}

// Call implements [engine.Engine].
func (g *guesses) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	r, err := g.n.Call(ctx, op, args)
	switch {
	case err != nil:
	case r.Target != nil:
		g.last = r.Target
	case r.Refusal != nil && r.Refusal.Code == g.at && op == engine.OpState && g.last != nil:
		return engine.Result{Status: engine.StatusOK, Target: g.last}, nil
	}
	return r, err
}
