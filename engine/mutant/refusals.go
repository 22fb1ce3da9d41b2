package mutant

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

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
		{Name: "probes-before-it-refuses", Seam: SeamDesk, Text: "asks the X server about a window before it refuses to attach", Rows: []string{"attach-ordinary-firefox*", "process-unsupported"},
			Kills: kills("S10", "probed", "R10", "probed"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				if op == engine.OpPrepare {
					act(readFocus)
				}
				return n.Call(ctx, op, args)
			})},
		{Name: "takes-all-processes-for-one", Seam: SeamReceipt, Text: "says of every process that it is no browser, whatever it is", Rows: []string{"process-*"},
			Kills: kills("R8", "refusal_wrong", "R10", "refusal_wrong"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				if op == engine.OpPrepare && fields(args)["pid"] != nil {
					return refused(engine.CodeRouteUnavailable, op, "not_a_browser", engine.Detail{EngineFamily: engine.FamilyUnknown, Product: engine.ProductNone,
						RequiredProtocol: engine.ProtocolUnknown, Limitation: "not_a_browser"}), nil
				}
				return n.Call(ctx, op, args)
			})},
		{Name: "connects-before-consent", Seam: SeamAdapter, Text: "looks at what listens in the person's browser before it refuses to attach", Rows: []string{"attach-own-chromium"},
			Kills: kills("S5", "probed"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				if pid, ok := fields(args)["pid"].(float64); ok && op == engine.OpPrepare {
					greet(int(pid))
				}
				return n.Call(ctx, op, args)
			})},
	}
}

// greet connects to the endpoint that a Chromium wrote into its profile, and leaves again.
func greet(pid int) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return
	}
	// Chromium writes its own title over its arguments, with spaces between them.
	for arg := range strings.FieldsFuncSeq(string(line), func(r rune) bool { return r == 0 || r == ' ' }) {
		profile, ok := strings.CutPrefix(arg, "--user-data-dir=")
		if !ok {
			continue
		}
		content, err := os.ReadFile(filepath.Join(profile, "DevToolsActivePort"))
		if err != nil {
			return
		}
		port, _, _ := strings.Cut(string(content), "\n")
		if c, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second); err == nil {
			_ = c.Close()
		}
	}
}
