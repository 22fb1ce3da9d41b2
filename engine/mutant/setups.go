package mutant

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
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
		{Name: "has-no-guardian", Seam: SeamStore, Text: "leaves nobody to clean up after it when it is killed", Rows: []string{"killed-engine"},
			Kills: kills("S11", "profile_left"),
			parts: func(p *Parts) { p.Unguarded = true }},
		{Name: "leaves-a-helper", Seam: SeamAdapter, Text: "starts a helper beside the browser that nothing ends when it is killed", Rows: []string{"killed-engine"},
			Kills: kills("S11", "process_left"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				r, err := n.Call(ctx, op, args)
				if op == engine.OpPrepare && r.Prepared != nil {
					// It ends by itself, so that nothing is left of this mutant either; its session is its own.
					helper := exec.Command("setsid", "sleep", "20")
					if helper.Start() == nil {
						go func() { _ = helper.Wait() }()
					}
				}
				return r, err
			})},
		{Name: "reads-the-persons-profile", Seam: SeamAdapter, Text: "looks into the person's Firefox profiles before it launches a browser", Rows: []string{"person-profiles"},
			Kills: kills("S3", "person_profile_touched"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				if home, err := os.UserHomeDir(); err == nil && op == engine.OpPrepare {
					_, _ = os.ReadFile(filepath.Join(home, ".mozilla", "firefox", "profiles.ini"))
				}
				return n.Call(ctx, op, args)
			})},
		{Name: "listens-to-everybody", Seam: SeamAdapter, Text: "listens on all addresses while it loads a page", Rows: []string{"listener-loopback"},
			Kills: kills("S13", "listener_exposed"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				if op == engine.OpNavigate {
					if l, err := net.Listen("tcp4", "0.0.0.0:0"); err == nil {
						time.AfterFunc(300*time.Millisecond, func() { _ = l.Close() })
					}
				}
				return n.Call(ctx, op, args)
			})},
	}
}
