package mutant

import (
	"context"
	"sync"

	"github.com/engine-acceptance/acceptance/engine"
)

// proofs are defects of the native proof: of what the window system is asked, and of what is made of its answers.
func proofs() []Mutant {
	return []Mutant{
		{Name: "is-blind-to-the-desk", Seam: SeamNative, Text: "sees nothing of what its browser does to the desk", Rows: []string{"launch-side-effects", "disclosure-of-page-acts"},
			Kills: kills("S4", "side_effect_undeclared", "D10", "receipt_untrue"),
			parts: func(p *Parts) { p.Native = blind{p.Native} }},
		{Name: "takes-hidden-for-shown", Seam: SeamNative, Text: "takes a minimised window for the one it was before", Rows: []string{"desktops-hidden"},
			Kills: kills("R3", "refusal_missing"),
			parts: func(p *Parts) {
				p.Native = &remembers{NativePlatform: p.Native, shown: map[uint32]engine.NativeWindow{}}
			}},
		{Name: "invents-a-window", Seam: SeamNative, Text: "takes a browser that shows no window for one that shows one", Rows: []string{"windowless*", "environment-unavailable*"},
			Kills: kills("B19", "refusal_missing", "R13", "refusal_missing", "S4", "side_effect_overdeclared"),
			parts: func(p *Parts) { p.Native = invents{p.Native} }},
	}
}

// invents is a window system on which every process has a window.
type invents struct{ engine.NativePlatform }

// Windows implements [engine.NativePlatform].
func (i invents) Windows(ctx context.Context, p engine.Process) ([]engine.NativeWindow, error) {
	all, err := i.NativePlatform.Windows(ctx, p)
	if err == nil && len(all) == 0 {
		all = []engine.NativeWindow{{ID: 0x400001, OwnerPID: p.PID, Bounds: engine.Rect{X: 10, Y: 40, W: 1200, H: 700}, Mapped: true}}
	}
	return all, err
}

// blind is a window system on which nothing ever happens.
type blind struct{ engine.NativePlatform }

// Observe implements [engine.NativePlatform].
func (blind) Observe(context.Context) (engine.DeskObserver, error) { return nothing{}, nil }

type nothing struct{}

// Stop implements [engine.DeskObserver].
func (nothing) Stop(context.Context, engine.Process) (engine.DeskEffects, error) {
	return engine.DeskEffects{}, nil
}

// remembers answers for a minimised window with what it was when it was shown.
type remembers struct {
	engine.NativePlatform
	mu    sync.Mutex
	shown map[uint32]engine.NativeWindow
}

// Window implements [engine.NativePlatform].
func (m *remembers) Window(ctx context.Context, id uint32, p engine.Process) (engine.NativeWindow, error) {
	w, err := m.NativePlatform.Window(ctx, id, p)
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, known := m.shown[id]; err == nil && w.Minimised && known {
		return before, nil
	}
	if err == nil {
		m.shown[id] = w
	}
	return w, err
}
