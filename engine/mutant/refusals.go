package mutant

import (
	"context"
	"encoding/json"

	"github.com/engine-acceptance/acceptance/engine"
)

// refusals are defects of refusing.
func refusals() []Mutant {
	return []Mutant{
		{Name: "refuses-and-acts", Seam: SeamReceipt, Text: "clicks by script and then refuses", Rows: []string{"undeclared-click*"},
			Kills: kills("R2", "refusal_mutated", "R3", "effect_elsewhere"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				r, err := n.Call(ctx, op, args)
				if err == nil && op == engine.OpClick && r.Refusal != nil {
					if _, err := n.Call(ctx, op, with(args, "input_route", engine.RouteDOMEvent)); err != nil {
						return r, err
					}
				}
				return r, err
			})},
		{Name: "delivers-the-undeclared", Seam: SeamReceipt, Text: "clicks by script where a trusted click is not declared", Rows: []string{"undeclared-click*"},
			Kills: kills("R3", "refusal_missing", "R3", "effect_elsewhere"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				r, err := n.Call(ctx, op, args)
				if err == nil && op == engine.OpClick && r.Refusal != nil {
					return n.Call(ctx, op, with(args, "input_route", engine.RouteDOMEvent))
				}
				return r, err
			})},
		{Name: "refuses-with-another-code", Seam: SeamReceipt, Text: "refuses an upload as an unavailable route", Rows: []string{"undeclared-upload"},
			Kills: kills("R3", "refusal_wrong"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				if op == engine.OpUpload {
					return refused(engine.CodeRouteUnavailable, op, "unresponsive", engine.Detail{EngineFamily: engine.FamilyChromium, Product: engine.ProductChromium,
						RequiredProtocol: engine.ProtocolCDP, Limitation: "unresponsive"}), nil
				}
				return n.Call(ctx, op, args)
			})},
		{Name: "probes-before-it-refuses", Seam: SeamDesk, Text: "asks the X server about a window before it refuses to attach", Rows: []string{"attach-ordinary-firefox*"},
			Kills: kills("S10", "probed"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				if op == engine.OpPrepare {
					act(readFocus)
				}
				return n.Call(ctx, op, args)
			})},
	}
}
