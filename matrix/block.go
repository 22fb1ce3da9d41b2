package matrix

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/engine-acceptance/acceptance/matrix/strict"
)

// A block is a step that holds steps: repeat does them in turn, race does several lanes of them at once, both many times over. A block is
// one window of time: its calls follow each other as fast as they are answered, and the oracles are read until the desk is still after the
// last. A race may begin each round with steps of its own, which are lane 0. One way through the steps of one lane is a run; a call of a run that is refused ends that run and no other.

// BlockExpect is what a block must show. Every run that was planned must have been seen.
type BlockExpect struct {
	Of string `json:"of"`
	// Delivered is the least share of runs, in percent, of which every call was answered with success and every text arrived where it was
	// sent, once. None asks for the contrary: no run is delivered.
	Delivered int  `json:"delivered_percent,omitempty"`
	None      bool `json:"none_delivered,omitempty"`
	// Refusals are the only ones that runs may meet: with their details where none is delivered, any of their triggers else.
	Refusals []RefusalExpect `json:"refusals,omitempty"`
	// Lands are the controls that the block's texts go to. Whatever else any page reports is something that came to the wrong place.
	Lands []LandExpect `json:"lands,omitempty"`
}

// LandExpect is one control of a tab.
type LandExpect struct {
	Page    string `json:"page"`
	Control string `json:"control"`
}

// blocks are the verbs that hold steps, and inside are the verbs that a block may hold.
var (
	blocks = []string{"repeat", "race"}
	inside = []string{"bind", "snapshot", "navigate", "click", "type", "open_tab", "close_tab", "call", "cut", "wait"}
)

// maxLanes is the greatest number of lanes of a race.
const maxLanes = 16

// IsBlock says whether the step holds steps.
func (s Step) IsBlock() bool { return contains(blocks, s.Verb) }

// InRound is the step as round n does it: {{round}} stands for n, from 1.
func (s Step) InRound(n int) Step {
	s.Args, _ = inRound(s.Args, strconv.Itoa(n)).(map[string]any)
	return s
}

func inRound(v any, n string) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "{{round}}", n)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = inRound(e, n)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = inRound(e, n)
		}
		return out
	}
	return v
}

// flat lists steps with those of blocks after the block that holds them.
func flat(steps []Step) []Step {
	var out []Step
	for _, s := range steps {
		out = append(out, s)
		out = append(out, flat(s.Inner())...)
	}
	return out
}

// lane reads one list of steps inside a block.
func (s *scope) lane(n strict.Node, block string) []Step {
	items := n.List()
	if n.IsList() && len(items) == 0 {
		n.Bad("no steps")
	}
	if len(items) > maxSteps {
		n.Bad("%d steps, at most %d", len(items), maxSteps)
		return nil
	}
	var out []Step
	for _, item := range items {
		for _, word := range item.Map().Keys() {
			if _, known := LookupVerb(word); known && !contains(inside, word) {
				item.Bad("%s cannot stand inside %s; it may hold %s", word, block, strings.Join(inside, ", "))
			}
		}
		s.nested++
		before := s.block
		s.block = block
		step := s.step(item, maxSteps+s.nested)
		s.block = before
		if step.Calls() > 1 || step.Bool("beside") {
			item.Bad("a step inside %s is not repeated by itself, and has nothing beside it: that is what the block is for", block)
		}
		out = append(out, step)
	}
	return out
}

// share is a percentage as rows write it.
var share = regexp.MustCompile(`^(\d{1,2}|100) %$`)

// blockExpect reads what a block must show.
func (r *reader) blockExpect(n strict.Node, s *scope) BlockExpect {
	o := n.Object("of", "delivered", "refused", "refusals", "lands")
	e := BlockExpect{Of: s.of(o.Need("of"), blocks...)}
	at := o.Need("delivered")
	switch word := at.Text(); {
	case word == "none":
		e.None = true
	case share.MatchString(word):
		e.Delivered, _ = strconv.Atoi(strings.TrimSuffix(word, " %"))
	case word != "":
		at.Bad("got %q, want a share such as \"95 %%\", or none", bounded(word))
	}
	for _, item := range entries(o.Get("refused")) {
		trigger := item.Text()
		code, ok := r.triggers.Code(trigger)
		if trigger != "" && !ok {
			item.Bad("unknown trigger %q%s", bounded(trigger), strict.Hint(trigger, r.triggers.Triggers()))
		}
		e.Refusals = append(e.Refusals, RefusalExpect{Trigger: trigger, Code: code})
	}
	for _, item := range entries(o.Get("refusals")) {
		refusal := r.refusal(item, s, false)
		closed, open := r.triggers.Fields(refusal.Trigger)
		if len(closed) == 0 {
			closed = open
		}
		for _, field := range closed {
			if _, ok := refusal.Detail[field]; !ok {
				item.Bad("%s: detail of the refusals of %s does not state %s, which %s carries", s.row.Stem, e.Of, field, refusal.Trigger)
			}
		}
		e.Refusals = append(e.Refusals, refusal)
	}
	for _, item := range entries(o.Get("lands")) {
		p := item.Object("page", "control")
		land := LandExpect{Control: p.Need("control").Text()}
		land.Page, _ = s.tab(p.Need("page"))
		if land.Control != "" && !controlForm.MatchString(land.Control) {
			p.Get("control").Bad("%q is no control; want a data-control name such as full-name", bounded(land.Control))
		}
		e.Lands = append(e.Lands, land)
	}
	switch typed, words := o.Get("refusals").Exists(), o.Get("refused").Exists(); {
	case e.None && !typed:
		n.Bad("%s: refusals is missing: nothing may be delivered, so say what is refused", s.row.Stem)
	case !e.None && typed:
		o.Get("refusals").Bad("%s: where runs may be delivered, refused lists the triggers that the others may meet", s.row.Stem)
	case e.None && words:
		o.Get("refused").Bad("%s: where no run is delivered, refusals state what each meets", s.row.Stem)
	case !e.None && e.Delivered < 100 && !words && at.Exists():
		n.Bad("%s: refused is missing: less than all may be delivered, so say how the rest is refused", s.row.Stem)
	}
	return e
}

// checkBlocks reports blocks that nothing is expected of, and texts of blocks that nobody looks for.
func (s *scope) checkBlocks(n strict.Node) {
	for _, step := range s.row.Steps {
		if !step.IsBlock() {
			continue
		}
		var want *BlockExpect
		for i := range s.row.Expect.Blocks {
			if s.row.Expect.Blocks[i].Of == step.Name {
				want = &s.row.Expect.Blocks[i]
			}
		}
		if want == nil {
			n.Bad("%s: blocks is missing: nothing is expected of %s", s.row.Stem, step.Name)
			continue
		}
		for _, inner := range flat(step.Inner()) {
			at, known := s.touched[s.steps[inner.Name]]
			if inner.Verb != "type" || want.None || !known || at == (place{}) {
				continue
			}
			found := false
			for _, l := range want.Lands {
				found = found || s.place(l.Page) == at
			}
			if !found {
				n.Bad("%s: no text of %s is looked for: lands of blocks names no control of the tab that it acts on", s.row.Stem, inner.Name)
			}
		}
	}
}

// Inner lists the steps of a block, in the order in which they are written.
func (s Step) Inner() []Step { return append(slices.Clone(s.First), slices.Concat(s.Lanes...)...) }

// Lane gives the steps of lane n, from 1; lane 0 is what each round begins with.
func (s Step) Lane(n int) []Step {
	switch {
	case n == 0:
		return s.First
	case n > 0 && n <= len(s.Lanes):
		return s.Lanes[n-1]
	}
	return nil
}

// Runs counts the runs of a block: one a lane and round.
func (s Step) Runs() int {
	n := len(s.Lanes)
	if len(s.First) > 0 {
		n++
	}
	return n * s.Int("times")
}

// Calls is how many calls of the engine one run of a lane makes when none is refused.
func Calls(lane []Step) int {
	n := 0
	for _, s := range lane {
		if v, ok := LookupVerb(s.Verb); ok && (v.Operation != "" || s.Verb == "call") {
			n++
		}
	}
	return n
}
