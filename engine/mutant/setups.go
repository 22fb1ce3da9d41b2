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
		{Name: "presents-its-own-as-the-persons", Seam: SeamReceipt, Text: "says of a browser that it launched that it is the person's", Rows: []string{"attach-never-pretends"},
			Kills: kills("S14", "posture_untrue"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				r, err := n.Call(ctx, op, args)
				if r.Target != nil {
					r.Target.Posture = engine.PostureExisting
				}
				return r, err
			})},
		{Name: "keeps-the-profile", Seam: SeamAdapter, Text: "gives a new session what the one before left in its profile", Rows: []string{"isolation-two-sessions"},
			Kills: kills("S15", "effect_wrong"),
			parts: func(p *Parts) {
				k := &keeps{Adapter: p.Adapter}
				p.Adapter = k
				p.Wrap = func(n engine.Engine) engine.Engine {
					return wrapped{n, func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
						if op == engine.OpSessionEnd && k.dir != "" && k.kept == "" {
							// Links go on naming what the browser writes until it is gone.
							k.kept = filepath.Join(os.Getenv("XDG_CACHE_HOME"), "kept")
							_ = exec.Command("cp", "-al", k.dir, k.kept).Run()
						}
						return n.Call(ctx, op, args)
					}}
				}
			}},
		{Name: "explains-nothing", Seam: SeamReceipt, Text: "says of every launch that fails that the browser exited", Rows: []string{"failure-launch*"},
			Kills: kills("S9", "refusal_wrong"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				r, err := n.Call(ctx, op, args)
				if r.Refusal != nil && r.Refusal.Trigger == "launch_failed" {
					r.Refusal.Detail.Reason = "exited"
				}
				return r, err
			})},
		{Name: "trusts-the-endpoint-file", Seam: SeamAdapter, Text: "speaks to whatever the endpoint file names", Rows: []string{"failure-stale-endpoint", "listener-elsewhere"},
			Kills: kills("S9", "decoy_reached", "S9", "refused", "S13", "decoy_reached", "S13", "refusal_wrong"),
			parts: func(p *Parts) { p.Adapter = trusting{p.Adapter} }},
		{Name: "mistakes-the-environment", Seam: SeamReceipt, Text: "says of every missing display or window that the browser does not answer", Rows: []string{"environment-unavailable*"},
			Kills: kills("R13", "refusal_wrong"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				r, err := n.Call(ctx, op, args)
				if r.Refusal != nil && r.Refusal.Trigger == "environment" {
					r.Refusal.Trigger, r.Refusal.Detail.Limitation = "unresponsive", "unresponsive"
				}
				return r, err
			})},
	}
}

// trusting launches without the proof that an endpoint is the browser's own.
type trusting struct{ engine.Adapter }

// Launch implements [engine.Adapter].
func (t trusting) Launch(ctx context.Context, spec engine.LaunchSpec) (engine.Browser, error) {
	spec.Owns = nil
	return t.Adapter.Launch(ctx, spec)
}

// keeps launches on what it kept of the last profile.
type keeps struct {
	engine.Adapter
	dir, kept string
}

// Launch implements [engine.Adapter].
func (k *keeps) Launch(ctx context.Context, spec engine.LaunchSpec) (engine.Browser, error) {
	if k.kept != "" {
		_ = exec.Command("cp", "-a", k.kept+"/.", spec.ProfileDir).Run()
		for _, name := range []string{"SingletonLock", "SingletonCookie", "SingletonSocket", "DevToolsActivePort"} {
			_ = os.Remove(filepath.Join(spec.ProfileDir, name))
		}
	}
	k.dir = spec.ProfileDir
	return k.Adapter.Launch(ctx, spec)
}
