package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/engine/cdp"
	"github.com/engine-acceptance/acceptance/engine/core"
	"github.com/engine-acceptance/acceptance/engine/mcp"
	"github.com/engine-acceptance/acceptance/engine/native"
)

// adapters maps the name of an engine to the constructor of its adapter. Nothing registers itself.
var adapters = map[string]func(log io.Writer) engine.Adapter{
	"chromium": func(log io.Writer) engine.Adapter {
		wire := &wireLog{out: log}
		return cdp.New(cdp.Config{WireTap: wire.tap})
	},
}

// engineCommand serves an engine, or says what one declares.
func engineCommand(ctx context.Context, args []string, std streams) int {
	f := newFlags("engine", std)
	if !f.parse(args, 2, 2) {
		return exitUsage
	}
	if f.Arg(0) != "serve" {
		std.say("engine: unknown word %q%s", f.Arg(0), nearest(f.Arg(0), []string{"serve"}))
		return exitUsage
	}
	make, ok := adapters[f.Arg(1)]
	if !ok {
		std.say("engine: no engine is named %q%s", f.Arg(1), nearest(f.Arg(1), keys(adapters)))
		return exitUsage
	}
	return serve(ctx, make(std.err), std, nil)
}

// serve answers calls on standard input and output until it closes. wrap, if any, stands between carrier and core: see package mutant.
func serve(ctx context.Context, adapter engine.Adapter, std streams, wrap func(engine.Engine) engine.Engine) int {
	platform, err := native.Open(ctx, os.Getenv("DISPLAY"))
	if err != nil {
		// Without a window system the engine still answers: it refuses, and says why.
		platform = native.Unavailable()
	}
	defer platform.Close()
	guardian, err := guardianCommand()
	if err != nil {
		std.say("engine: %v", err)
		return exitCannotJudge
	}
	// Made now, so that a call that is refused later leaves no trace of having been made. Where it cannot be made a launch says so.
	_ = os.MkdirAll(core.DefaultProfileRoot(), 0o700)
	return serveOn(ctx, core.Config{Adapter: adapter, Native: platform, Guardian: guardian}, std, wrap)
}

func serveOn(ctx context.Context, cfg core.Config, std streams, wrap func(engine.Engine) engine.Engine) int {
	e, err := core.New(cfg)
	if err != nil {
		std.say("engine: %v", err)
		return exitCannotJudge
	}
	var served engine.Engine = e
	if wrap != nil {
		served = wrap(e)
	}
	in, ok := std.in.(io.ReadCloser)
	out, okOut := std.out.(io.WriteCloser)
	if !ok || !okOut {
		std.say("engine: standard input and output must be pipes")
		return exitUsage
	}
	err = mcp.Serve(ctx, served, version(), in, out)
	if closing := e.Close(context.WithoutCancel(ctx)); closing != nil {
		std.say("engine: %v", closing)
		return exitCannotJudge
	}
	if err != nil && ctx.Err() == nil {
		std.say("engine: %v", err)
		return exitCannotJudge
	}
	return exitOK
}

// guardianCommand is how the engine starts its own guardian: this very program, whatever became of its path.
func guardianCommand() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	return []string{self, "role", "guardian"}, nil
}

// wireLog writes one line a protocol message to the engine's standard error: direction, method, size and time, never a payload. The harness
// keeps it, marked engine_reported: it can fail a row, never pass one.
type wireLog struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *wireLog) tap(e cdp.WireEvent) {
	direction := "received"
	if e.Sent {
		direction = "sent"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.out, "{\"wire\":%q,\"method\":%q,\"id\":%d,\"session\":%q,\"bytes\":%d,\"failed\":%t}\n", direction, e.Method, e.ID, e.Session, e.Bytes, e.Failed)
}
