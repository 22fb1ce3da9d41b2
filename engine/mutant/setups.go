package mutant

import (
	"context"
	"encoding/json"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
)

// setups are defects of launch and end.
func setups() []Mutant {
	return []Mutant{
		{Name: "leaves-the-browser", Seam: SeamStore, Text: "reports the end of a session and leaves browser and profile", Rows: []string{"profile-isolated-new"},
			Kills: kills("S1", "process_left", "S1", "profile_left"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				if op == engine.OpSessionEnd {
					go func() {
						// It does end, but long after it said so.
						time.Sleep(6 * time.Second)
						_, _ = n.Call(context.WithoutCancel(ctx), op, args)
					}()
					return engine.Result{Status: engine.StatusOK}, nil
				}
				return n.Call(ctx, op, args)
			})},
	}
}
