package mutant

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/engine-acceptance/acceptance/engine"
)

// actions are defects of navigation, clicks and typing.
func actions() []Mutant {
	return []Mutant{
		{Name: "navigates-nowhere", Seam: SeamReceipt, Text: "answers a navigation with a sound receipt and loads nothing", Rows: []string{"navigate-loads*"},
			Kills: kills("M2", "effect_missing", "M17", "receipt_untrue"),
			parts: func(p *Parts) {
				p.Wrap = func(n engine.Engine) engine.Engine { return nowhere{n} }
			}},
		{Name: "clicks-twice", Seam: SeamAdapter, Text: "clicks twice and reports one click", Rows: []string{"click-*"},
			Kills: kills("M3", "effect_repeated", "M3", "effect_wrong", "M4", "effect_repeated"),
			parts: func(p *Parts) {
				p.Adapter = adapterWith{p.Adapter, func(b engine.Browser) engine.Browser { return twice{b} }}
			}},
		{Name: "swallows-a-character", Seam: SeamReceipt, Text: "types all but the last character and reports all", Rows: []string{"type-insert*", "type-unicode*"},
			Kills: kills("M5", "effect_wrong"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				if op != engine.OpType {
					return n.Call(ctx, op, args)
				}
				whole := []rune(text(args, "text"))
				if len(whole) < 2 {
					return n.Call(ctx, op, args)
				}
				r, err := n.Call(ctx, op, with(args, "text", string(whole[:len(whole)-1])))
				if r.Receipt != nil {
					r.Receipt.RequestedCount, r.Receipt.DeliveredCount = len(whole), len(whole)
				}
				return r, err
			})},
		{Name: "acts-in-the-other-tab", Seam: SeamStore, Text: "types into the tab that was opened before the one that was asked for", Rows: []string{"inactive-tab-reached"},
			Kills: kills("B2", "effect_missing", "B2", "effect_elsewhere", "M17", "receipt_untrue"),
			parts: func(p *Parts) { p.Wrap = func(n engine.Engine) engine.Engine { return &otherTab{n: n} } }},
	}
}

// nowhere loads every page but the one with the buttons, for the arrangement of its rows needs the others.
type nowhere struct{ n next }

// Call implements [engine.Engine].
func (w nowhere) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	if op != engine.OpNavigate || !strings.Contains(text(args, "url"), "/click.html") {
		return w.n.Call(ctx, op, args)
	}
	r := sound(op, engine.ActionNavigate, "g-none", 1)
	r.Route, r.Trust = engine.RouteEngine, engine.TrustNone
	return engine.Result{Status: engine.StatusOK, Receipt: r}, nil
}

// adapterWith changes the browsers that an adapter launches.
type adapterWith struct {
	engine.Adapter
	change func(engine.Browser) engine.Browser
}

// Launch implements [engine.Adapter].
func (a adapterWith) Launch(ctx context.Context, spec engine.LaunchSpec) (engine.Browser, error) {
	b, err := a.Adapter.Launch(ctx, spec)
	if err != nil {
		return nil, err
	}
	return a.change(b), nil
}

// abilities is what the healthy browser can do; a wrapper must hand every ability on.
type abilities interface {
	engine.Browser
	engine.Navigator
	engine.Snapshotter
	engine.Clicker
	engine.Typer
	engine.ContextKeeper
}

// able hands on the abilities of a browser.
func able(b engine.Browser) abilities { a, _ := b.(abilities); return a }

// twice clicks twice.
type twice struct{ engine.Browser }

func (t twice) Navigate(ctx context.Context, c engine.ContextKey, url string) (engine.Outcome, error) {
	return able(t.Browser).Navigate(ctx, c, url)
}

func (t twice) Snapshot(ctx context.Context, c engine.ContextKey, most int) (engine.PageSnapshot, error) {
	return able(t.Browser).Snapshot(ctx, c, most)
}

func (t twice) Click(ctx context.Context, c engine.ContextKey, n engine.NodeRef, route engine.Route) (engine.Outcome, error) {
	if o, err := able(t.Browser).Click(ctx, c, n, route); err != nil {
		return o, err
	}
	return able(t.Browser).Click(ctx, c, n, route)
}

func (t twice) Type(ctx context.Context, c engine.ContextKey, n engine.NodeRef, s string, mode engine.TypeMode, replace bool) (engine.Outcome, error) {
	return able(t.Browser).Type(ctx, c, n, s, mode, replace)
}

func (t twice) OpenContext(ctx context.Context, beside engine.ContextKey) (engine.BrowserContext, error) {
	return able(t.Browser).OpenContext(ctx, beside)
}

func (t twice) CloseContext(ctx context.Context, c engine.ContextKey) (engine.Outcome, error) {
	return able(t.Browser).CloseContext(ctx, c)
}

// otherTab takes snapshots of, and acts in, the first tab that it ever saw.
type otherTab struct {
	n     next
	first string
}

// Call implements [engine.Engine].
func (o *otherTab) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	tab := text(args, "tab_id")
	if o.first == "" {
		o.first = tab
	}
	if tab != "" && (op == engine.OpState || op == engine.OpType) {
		args = with(args, "tab_id", o.first)
	}
	return o.n.Call(ctx, op, args)
}
