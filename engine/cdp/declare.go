package cdp

import (
	"runtime/debug"

	"github.com/engine-acceptance/acceptance/engine"
)

// shown are the states of the visible tab in which input other than a mouse press leaves the desk alone.
var shown = []engine.State{engine.StateCovered, engine.StatePartlyCovered, engine.StateVisibleTab}

// unminimised are all states but minimised, which is not declared: what a minimised window does with a dispatched event was not proved.
var unminimised = append([]engine.State{engine.StateInactiveTab}, shown...)

// declared is what the adapter delivers in the background. Foreground delivery is never declared.
var declared = []struct {
	action engine.Action
	route  engine.Route
	states []engine.State
}{
	{engine.ActionSnapshot, engine.RouteEngine, unminimised},
	{engine.ActionNavigate, engine.RouteEngine, unminimised},
	{engine.ActionClick, engine.RouteTrustedInput, []engine.State{engine.StateInactiveTab}},
	{engine.ActionClick, engine.RouteKeyboard, unminimised},
	{engine.ActionClick, engine.RouteDOMEvent, unminimised},
	{engine.ActionType, engine.RouteTrustedInput, unminimised},
	{engine.ActionContextOpen, engine.RouteEngine, unminimised},
	{engine.ActionContextClose, engine.RouteEngine, unminimised},
}

// raising are the actions whose trusted route is a mouse press, which raises the window when its visible tab takes it.
var raising = map[engine.Action]bool{engine.ActionClick: true, engine.ActionDoubleClick: true, engine.ActionRightClick: true, engine.ActionDrag: true}

// Declare returns the total declaration. It touches no browser.
func (a *Adapter) Declare() engine.Declaration {
	can := map[engine.Capability]bool{}
	for _, d := range declared {
		for _, s := range d.states {
			can[engine.Capability{Action: d.action, Route: d.route, Delivery: engine.DeliveryBackground, State: s}] = true
		}
	}
	all := engine.AllCapabilities()
	claims := make([]engine.Claim, len(all))
	for i, c := range all {
		claims[i] = engine.Claim{Capability: c, Declared: can[c]}
		if !can[c] {
			claims[i].Limitation = limitation(c)
		}
	}
	return engine.Declaration{
		Format:           engine.DeclarationFormat,
		Engine:           "acceptance-cdp",
		EngineVersion:    version(),
		EngineFamily:     engine.FamilyChromium,
		Product:          engine.ProductChromium,
		RequiredProtocol: engine.ProtocolCDP,
		Postures:         []engine.Posture{engine.PostureIsolatedNew, engine.PostureIsolatedNamed},
		Reconnect:        true,
		Components:       []string{"process", "endpoint", "connection", "window", "context", "session"},
		Claims:           claims,
	}
}

// limitation says why a capability is not declared, in words of refusals.yaml.
func limitation(c engine.Capability) string {
	if c.Delivery == engine.DeliveryBackground {
		switch {
		case raising[c.Action] && c.Route == engine.RouteTrustedInput && c.State != engine.StateInactiveTab && c.State != engine.StateMinimised:
			return "would_raise"
		case c.Action == engine.ActionWindowOpen && c.Route == engine.RouteEngine:
			return "would_raise"
		}
	}
	return "undeclared"
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}
