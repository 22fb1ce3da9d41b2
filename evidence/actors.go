package evidence

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
)

// Charge says what an act on the desk is worth, by who did it.
type Charge string

// The closed list of charges.
const (
	// ChargeEngine: a violation, by the engine.
	ChargeEngine Charge = "charged"
	// ChargeNobody: the actor may do it.
	ChargeNobody Charge = "nobody"
	// ChargeEnvironment: no engine is to blame, and the row cannot be judged.
	ChargeEnvironment Charge = "environment"
)

// Worth says what a charged act is worth in a phase.
type Worth string

// The closed list of worths.
const (
	// WorthAbsolute: charged whatever a receipt says.
	WorthAbsolute Worth = "absolute"
	// WorthDeclared: it must stand in the receipt, exactly.
	WorthDeclared Worth = "declared"
	// WorthOwn: the harness's own doing, as it ends what the row began.
	WorthOwn Worth = "own"
)

const actorsFormat = "acceptance.desk-actors/1"

//go:embed actors.yaml
var actorsYAML []byte

// deskPolicy is who may do what on the desk. Every actor, phase and page act is in it.
type deskPolicy struct {
	Format string              `yaml:"format"`
	Actors map[Actor]actorRule `yaml:"actors"`
	Phases map[Phase]Worth     `yaml:"phases"`
	Pages  map[string]pageAct  `yaml:"page_acts"`
}

type actorRule struct {
	Request Charge `yaml:"request"`
	Effect  Charge `yaml:"effect"`
	// ForPage: an act of this actor can be a page's own doing.
	ForPage bool `yaml:"for_page"`
}

// pageAct is what a page's act is called in a receipt, and which reasons it can give on the desk.
type pageAct struct {
	ToldAs string   `yaml:"told_as"`
	Brings []Reason `yaml:"brings"`
}

// policy is the table that the program was built with. A judge whose table is not whole judges nothing.
var policy = func() *deskPolicy {
	p, err := parsePolicy(actorsYAML)
	if err != nil {
		panic(err)
	}
	return p
}()

// parsePolicy reads the table. What is missing, unknown or not of a closed list is an error.
func parsePolicy(b []byte) (*deskPolicy, error) {
	var p deskPolicy
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(&p); err != nil {
		return nil, fmt.Errorf("desk actors: %w", err)
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("desk actors: "+format, args...)) }
	if p.Format != actorsFormat {
		bad("got format %q, want %q", p.Format, actorsFormat)
	}
	known(p.Actors, Actors, "actor", bad)
	known(p.Phases, []Phase{PhasePrepare, PhaseBackground, PhaseCleanup}, "phase", bad)
	known(p.Pages, matrix.PageActs, "page act", bad)
	for name, a := range p.Actors {
		for what, c := range map[string]Charge{"request": a.Request, "effect": a.Effect} {
			if !slices.Contains([]Charge{ChargeEngine, ChargeNobody, ChargeEnvironment}, c) {
				bad("%s: %s: got %q, want charged, nobody or environment", name, what, c)
			}
		}
	}
	for name, w := range p.Phases {
		if !slices.Contains([]Worth{WorthAbsolute, WorthDeclared, WorthOwn}, w) {
			bad("phase %s: got %q, want absolute, declared or own", name, w)
		}
	}
	for name, act := range p.Pages {
		if !slices.Contains(engine.Initiated, act.ToldAs) {
			bad("page act %s: no receipt has the word %q", name, act.ToldAs)
		}
		for _, r := range act.Brings {
			if _, is := deskReasons[r]; !is {
				bad("page act %s: no reason %q on the desk", name, r)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &p, nil
}

// known reports names that are missing and names that are none.
func known[K ~string, V any](got map[K]V, want []K, what string, bad func(string, ...any)) {
	for _, name := range want {
		if _, there := got[name]; !there {
			bad("%s %q is missing", what, name)
		}
	}
	for name := range got {
		if !slices.Contains(want, name) {
			bad("unknown %s %q", what, name)
		}
	}
}

// ChargeOf says what an act of an actor is worth: of a request, or else of an effect. Of an actor that is none, everything is charged.
func ChargeOf(a Actor, request bool) Charge {
	rule, known := policy.Actors[a]
	switch {
	case !known:
		return ChargeEngine
	case request:
		return rule.Request
	}
	return rule.Effect
}

// WorthIn says what a charged act is worth in a phase.
func WorthIn(p Phase) Worth { return policy.Phases[p] }
