package mutant

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
)

// losses are defects of noticing that a browser, a renderer or the engine itself was lost.
func losses() []Mutant {
	return []Mutant{
		{Name: "speaks-for-a-dead-browser", Seam: SeamReceipt, Text: "answers with a sound receipt for targets of a browser that was killed", Rows: []string{"lost-browser-restarted"},
			Kills: kills("G3", "stale_accepted", "M17", "receipt_untrue"),
			parts: pretending("process")},
		{Name: "keeps-what-another-process-minted", Seam: SeamStore, Text: "answers with a sound receipt for sessions and targets that it never minted", Rows: []string{"lost-engine-restarted"},
			Kills: kills("G4", "stale_accepted", "M17", "receipt_untrue"),
			parts: pretending("session", "unknown_target")},
		{Name: "calls-every-loss-unresponsive", Seam: SeamReceipt, Text: "says of a crashed renderer and of a killed browser that they do not answer", Rows: []string{"lost-browser-outcomes"},
			Kills: kills("G12", "refusal_wrong"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				r, err := n.Call(ctx, op, args)
				if err == nil && r.Refusal != nil && (r.Refusal.Code == engine.CodeTabNotFound || r.Refusal.Code == engine.CodeBindingStale) {
					return refused(engine.CodeRouteUnavailable, op, "unresponsive", engine.Detail{EngineFamily: engine.FamilyChromium, Product: engine.ProductChromium,
						RequiredProtocol: engine.ProtocolCDP, Limitation: "unresponsive"}), nil
				}
				return r, err
			})},
		{Name: "leaves-without-a-word", Seam: SeamStore, Text: "ends its process a moment after it ended a session, when nobody asks it anything", Rows: []string{"cut-then-rebind"},
			Kills: kills("G1", "engine_gone"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				r, err := n.Call(ctx, op, args)
				if op == engine.OpSessionEnd {
					time.AfterFunc(30*time.Millisecond, func() { os.Exit(0) })
				}
				return r, err
			})},
	}
}

// pretending turns refusals for one of the reasons into sound receipts.
func pretending(reasons ...string) func(*Parts) {
	return around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
		r, err := n.Call(ctx, op, args)
		if err != nil || r.Refusal == nil || r.Refusal.Code != engine.CodeBindingStale {
			return r, err
		}
		for _, reason := range reasons {
			if r.Refusal.Detail.Reason != reason {
				continue
			}
			switch op {
			case engine.OpType:
				return engine.Result{Status: engine.StatusOK, Receipt: sound(op, engine.ActionType, "g-old", len([]rune(text(args, "text"))))}, nil
			case engine.OpNavigate:
				rc := sound(op, engine.ActionNavigate, "g-old", 1)
				rc.Route, rc.Trust = engine.RouteEngine, engine.TrustNone
				return engine.Result{Status: engine.StatusOK, Receipt: rc}, nil
			}
		}
		return r, err
	})
}
