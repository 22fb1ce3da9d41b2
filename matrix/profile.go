package matrix

import (
	"slices"
	"strings"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix/strict"
)

// ProfilesFormat names the format and version of profiles.yaml.
const ProfilesFormat = "acceptance.profiles/v1"

// Profiles says what core is, and which requirements a feature stands for.
type Profiles struct {
	// Deliver are the core requirements that an engine must deliver, by group name; Groups keeps the order of the file.
	Groups  []string
	Deliver map[string][]Delivery
	// Hold are the core requirements that must never be broken.
	Hold []RequirementID
	// Provoke are the codes that must be met on a real browser.
	Provoke []engine.Code
	// NotApplicable are the reviewed core pairs that an engine file may leave out: requirement, then engine family, then reason.
	NotApplicable map[RequirementID]map[engine.Family]string
	// Features is what an engine file may claim one by one.
	Features map[string][]RequirementID
	// Cowards are the mutants that must lose.
	Cowards []string
}

// Delivery is one entry of what core must deliver: one requirement, or several of which one is enough.
type Delivery struct {
	Any []RequirementID
	// Only are the aspects that core asks for; empty means that every aspect with a row counts.
	Only []string
	// Floor is the number that a delivery must reach, in words for reader and report.
	Floor string
}

// families is the closed list of families that data may name.
var families = []engine.Family{engine.FamilyChromium, engine.FamilyGecko, engine.FamilyWebKit}

func readProfiles(top strict.Node, requirements map[RequirementID]Requirement, order []string) *Profiles {
	p := &Profiles{Deliver: map[string][]Delivery{}, NotApplicable: map[RequirementID]map[engine.Family]string{}, Features: map[string][]RequirementID{}}
	known := func(n strict.Node) RequirementID {
		return RequirementID(n.Enum(order...))
	}
	o := top.Object("format", "core", "features", "cowards")
	o.Need("format").Enum(ProfilesFormat)
	core := o.Need("core").Object("deliver", "hold", "provoke", "not_applicable")
	in := map[RequirementID]string{}
	place := func(n strict.Node, id RequirementID, where string) {
		if id == "" {
			return
		}
		if first := in[id]; first != "" {
			n.Bad("%s is in %s already", id, first)
		}
		in[id] = where
	}
	deliver := core.Need("deliver").Map()
	for _, group := range deliver.Keys() {
		p.Groups = append(p.Groups, group)
		for _, n := range deliver.Get(group).List() {
			var d Delivery
			var ids []strict.Node
			if n.IsScalar() {
				ids = []strict.Node{n}
			} else {
				f := n.Object("id", "any", "only", "floor")
				if f.Get("id").Exists() == f.Get("any").Exists() {
					n.Bad("want either id or any")
				}
				ids = f.Get("any").List()
				if id := f.Get("id"); id.Exists() {
					ids = []strict.Node{id}
				}
				if f.Get("floor").Exists() {
					d.Floor = f.Get("floor").Text()
				}
				if f.Get("id").Exists() {
					d.Only = f.Get("only").Words(requirements[RequirementID(f.Get("id").String())].Aspects...)
				} else if f.Get("only").Exists() {
					f.Get("only").Bad("only belongs to a single requirement")
				}
			}
			for _, id := range ids {
				if req := known(id); req != "" {
					d.Any = append(d.Any, req)
					place(id, req, "deliver."+group)
				}
			}
			p.Deliver[group] = append(p.Deliver[group], d)
		}
	}
	for _, n := range core.Need("hold").List() {
		if id := known(n); id != "" {
			p.Hold = append(p.Hold, id)
			place(n, id, "hold")
		}
	}
	for _, c := range core.Need("provoke").Words(texts(engine.Codes)...) {
		p.Provoke = append(p.Provoke, engine.Code(c))
	}
	na := core.Get("not_applicable").Map()
	for _, key := range na.Keys() {
		node := na.Get(key)
		id := RequirementID(key)
		switch {
		case requirements[id].ID == "":
			node.Bad("unknown requirement%s", strict.Hint(key, order))
		case strings.HasPrefix(in[id], "deliver"):
			node.Bad("%s is in %s: what core must deliver applies to every engine", id, in[id])
		}
		pairs := node.Object(texts(families)...)
		p.NotApplicable[id] = map[engine.Family]string{}
		for _, family := range pairs.Keys() {
			p.NotApplicable[id][engine.Family(family)] = pairs.Get(family).Text()
		}
	}
	features := o.Need("features").Map()
	for _, name := range features.Keys() {
		node := features.Get(name)
		if !environmentForm.MatchString(name) {
			node.Bad("the feature %q must be words of a-z and 0-9 with - between", bounded(name))
		}
		for _, n := range node.List() {
			if id := known(n); id != "" {
				p.Features[name] = append(p.Features[name], id)
			}
		}
		if len(p.Features[name]) == 0 {
			node.Bad("stands for no requirement")
		}
	}
	for _, n := range o.Need("cowards").List() {
		name := n.Text()
		if slices.Contains(p.Cowards, name) {
			n.Bad("%q occurs twice", name)
		}
		p.Cowards = append(p.Cowards, name)
	}
	return p
}

// FeatureNames lists the features, sorted.
func (p *Profiles) FeatureNames() []string {
	names := make([]string, 0, len(p.Features))
	for name := range p.Features {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// CoreDeliver lists the requirements that must be delivered one by one, and CoreAny those groups of which one is enough.
func (p *Profiles) CoreDeliver() (each []RequirementID, anyOf [][]RequirementID) {
	for _, group := range p.Groups {
		for _, d := range p.Deliver[group] {
			if len(d.Any) == 1 {
				each = append(each, d.Any[0])
			} else if len(d.Any) > 1 {
				anyOf = append(anyOf, d.Any)
			}
		}
	}
	return each, anyOf
}
