package engine

import "fmt"

// Capability is one cell of the total table: one action by one route with one delivery in one state.
type Capability struct {
	Action   Action   `json:"action"`
	Route    Route    `json:"route"`
	Delivery Delivery `json:"delivery"`
	State    State    `json:"state"`
}

// Claim says whether a capability is declared; where it is not, Limitation says why in a bounded word.
type Claim struct {
	Capability
	Declared   bool   `json:"declared"`
	Limitation string `json:"limitation,omitempty"`
}

// Declaration is what an engine says about itself before anything is bound. It is total: every [Capability] of [AllCapabilities] occurs
// in Claims exactly once, in that order. It does not change within a generation of the engine's process.
type Declaration struct {
	Format           string    `json:"format"`
	Engine           string    `json:"engine"`
	EngineVersion    string    `json:"engine_version"`
	EngineFamily     Family    `json:"engine_family"`
	Product          Product   `json:"product"`
	RequiredProtocol Protocol  `json:"required_protocol"`
	Postures         []Posture `json:"postures"`
	// Reconnect says that a lost connection can be made anew to the same browser.
	Reconnect bool `json:"reconnect"`
	// Components are the parts of a capability that are proved anew before each action (contract G16).
	Components []string `json:"components"`
	Claims     []Claim  `json:"claims"`
}

// DeclarationFormat names the format and version of a [Declaration].
const DeclarationFormat = "acceptance.declaration/v1"

// AllCapabilities returns the total table in canonical order: actions, then routes, deliveries, states.
func AllCapabilities() []Capability {
	all := make([]Capability, 0, len(Actions)*len(Routes)*len(Deliveries)*len(States))
	for _, a := range Actions {
		for _, r := range Routes {
			for _, d := range Deliveries {
				for _, s := range States {
					all = append(all, Capability{a, r, d, s})
				}
			}
		}
	}
	return all
}

// Total returns an error naming the first hole, duplicate, disorder or missing limitation, or nil when the declaration is total.
func (d Declaration) Total() error {
	all := AllCapabilities()
	if len(d.Claims) != len(all) {
		return fmt.Errorf("declaration has %d claims, want %d: one for each action, route, delivery and state", len(d.Claims), len(all))
	}
	for i, want := range all {
		got := d.Claims[i]
		if got.Capability != want {
			return fmt.Errorf("declaration claim %d is %v, want %v", i, got.Capability, want)
		}
		if got.Declared == (got.Limitation != "") {
			return fmt.Errorf("declaration claim %d (%v): declared %t with limitation %q; exactly one of the two", i, want, got.Declared, got.Limitation)
		}
	}
	return nil
}

// Lookup finds one capability. A capability that is not in the table is not declared.
func (d Declaration) Lookup(c Capability) Claim {
	for _, claim := range d.Claims {
		if claim.Capability == c {
			return claim
		}
	}
	return Claim{Capability: c, Limitation: "undeclared"}
}
