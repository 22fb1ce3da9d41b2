package matrix

import (
	"regexp"

	"github.com/engine-acceptance/acceptance/matrix/strict"
)

// EnvironmentsFormat names the format and version of environments.yaml.
const EnvironmentsFormat = "acceptance.environments/v1"

// Lane says what an environment is for.
type Lane string

// The closed list of lanes.
const (
	// LaneFull: the full contract is run.
	LaneFull Lane = "full"
	// LaneRefusal: only rows that name the environment run, and every one of them expects a refusal.
	LaneRefusal Lane = "refusal"
)

// Environment is one kind of desk that rows run on.
type Environment struct {
	ID    EnvironmentID
	Title string
	Lane  Lane
	// Desk is the kind of desk of rows that name none.
	Desk DeskKind
	// Ceiling is the best decision that a run here can reach: "supported", "experimental" or, in a refusal lane, "none".
	Ceiling string
	// Limits are printed beside every decision made here.
	Limits []string
}

var environmentForm = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

func readEnvironments(top strict.Node) []Environment {
	o := top.Object("format", "environments")
	o.Need("format").Enum(EnvironmentsFormat)
	seen := map[EnvironmentID]bool{}
	var all []Environment
	for _, n := range o.Need("environments").List() {
		f := n.Object("id", "title", "lane", "desk", "ceiling", "limits")
		id := f.Need("id")
		e := Environment{
			ID:      EnvironmentID(id.Text()),
			Title:   f.Need("title").Text(),
			Lane:    Lane(f.Need("lane").Enum(string(LaneFull), string(LaneRefusal))),
			Desk:    DeskOpenbox,
			Ceiling: f.Need("ceiling").Enum("supported", "experimental", "none"),
		}
		if e.ID != "" && !environmentForm.MatchString(string(e.ID)) {
			id.Bad("%q is no environment id; want words of a-z and 0-9 with - between", bounded(string(e.ID)))
		}
		if seen[e.ID] {
			id.Bad("%s occurs twice", e.ID)
			continue
		}
		seen[e.ID] = true
		if (e.Ceiling == "none") != (e.Lane == LaneRefusal) && e.Ceiling != "" && e.Lane != "" {
			f.Get("ceiling").Bad("ceiling none belongs to refusal lanes, and only there")
		}
		if at := f.Get("desk"); at.Exists() {
			e.Desk = DeskKind(at.Enum(texts(DeskKinds)...))
		}
		for _, l := range f.Get("limits").List() {
			e.Limits = append(e.Limits, l.Text())
		}
		all = append(all, e)
	}
	return all
}
