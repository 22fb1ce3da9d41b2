package mutant

import (
	"context"
	"encoding/json"

	"github.com/engine-acceptance/acceptance/engine"
)

// edited makes a wrapper that edits every receipt.
func edited(edit func(op engine.Operation, r *engine.Receipt)) func(*Parts) {
	return around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
		r, err := n.Call(ctx, op, args)
		if err == nil && r.Receipt != nil {
			edit(op, r.Receipt)
		}
		return r, err
	})
}

// receipts are engines that do the right thing and say something else.
func receipts() []Mutant {
	return []Mutant{
		{Name: "sells-synthetic-as-trusted", Seam: SeamReceipt, Text: "reports script clicks as trusted input", Rows: []string{"click-by-script*"},
			Kills: kills("M17", "receipt_untrue", "M4", "receipt_unexpected"),
			parts: edited(func(_ engine.Operation, r *engine.Receipt) {
				if r.Trust == engine.TrustDOMEvent {
					r.Trust = engine.TrustTrustedInput
				}
			})},
		{Name: "hides-the-raise", Seam: SeamReceipt, Text: "does not declare that the launch raised a window", Rows: []string{"launch-side-effects"},
			Kills: kills("S4", "side_effect_undeclared", "S4", "receipt_unexpected"),
			parts: edited(func(op engine.Operation, r *engine.Receipt) {
				if op == engine.OpPrepare {
					r.SideEffects.RaisedWindow, r.SideEffects.OpenedWindow = false, false
				}
			})},
		{Name: "invents-a-side-effect", Seam: SeamReceipt, Text: "declares that typing moved the pointer", Rows: []string{"receipt-type-confirmed"},
			Kills: kills("M17", "receipt_untrue", "M17", "receipt_unexpected"),
			parts: edited(func(op engine.Operation, r *engine.Receipt) {
				if op == engine.OpType {
					r.SideEffects.MovedPointer = true
				}
			})},
		{Name: "hides-what-the-page-did", Seam: SeamReceipt, Text: "leaves out of its receipts what the page did to the desk by itself", Rows: []string{"disclosure-of-page-acts"},
			Kills: kills("D10", "receipt_untrue"),
			parts: edited(func(_ engine.Operation, r *engine.Receipt) { r.BrowserInitiated = []string{} })},
	}
}
