package native

import (
	"context"
	"net/netip"

	"github.com/engine-acceptance/acceptance/engine"
)

func environment(limitation string) *engine.Refusal {
	return &engine.Refusal{Code: engine.CodeRouteUnavailable, Trigger: "environment", Detail: engine.Detail{Limitation: limitation}}
}

func notABrowser(limitation string) *engine.Refusal {
	return &engine.Refusal{Code: engine.CodeRouteUnavailable, Trigger: "not_a_browser", Detail: engine.Detail{Limitation: limitation}}
}

func changed(reason string) *engine.Refusal {
	return &engine.Refusal{Code: engine.CodeBindingStale, Trigger: "generation_changed", Detail: engine.Detail{Reason: reason}}
}

func wrongTarget(reason string) *engine.Refusal {
	return &engine.Refusal{Code: engine.CodeWrongTarget, Trigger: "wrong_target", Detail: engine.Detail{Reason: reason}}
}

func endpointOwner(reason string) *engine.Refusal {
	return &engine.Refusal{Code: engine.CodeEndpointOwnerMismatch, Trigger: "endpoint_owner", Detail: engine.Detail{Reason: reason}}
}

// Unavailable is the platform where there is no display: it refuses every window question with trigger environment, limitation no_display.
func Unavailable() engine.NativePlatform { return Refusing(environment("no_display")) }

// Refusing is a platform that answers every question with r.
func Refusing(r *engine.Refusal) engine.NativePlatform { return refusing{r} }

type refusing struct{ r *engine.Refusal }

func (p refusing) err() error {
	r := *p.r
	return &r
}

func (p refusing) Identify(context.Context, int) (engine.Process, error) {
	return engine.Process{}, p.err()
}
func (p refusing) SameProcess(context.Context, engine.Process) error    { return p.err() }
func (p refusing) Observe(context.Context) (engine.DeskObserver, error) { return nil, p.err() }
func (p refusing) Close() error                                         { return nil }
func (p refusing) Window(context.Context, uint32, engine.Process) (engine.NativeWindow, error) {
	return engine.NativeWindow{}, p.err()
}
func (p refusing) Windows(context.Context, engine.Process) ([]engine.NativeWindow, error) {
	return nil, p.err()
}
func (p refusing) OwnsEndpoint(context.Context, engine.Process, netip.AddrPort) error { return p.err() }
