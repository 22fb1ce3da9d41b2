package matrix

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix/strict"
)

// Triggers is what the matrix needs of the refusal vocabulary: the code that a trigger gives.
type Triggers interface {
	Code(trigger string) (engine.Code, bool)
}

// triggerNames is an optional ability of [Triggers], for nearest words.
type triggerNames interface{ Triggers() []string }

var (
	expectFields  = []string{"effect", "elsewhere", "receipt", "refusal", "bind", "snapshot", "profile", "probes", "generation", "rounds", "forged"}
	sideEffects   = jsonNames(reflect.TypeFor[engine.SideEffects]())
	refusalDetail = jsonNames(reflect.TypeFor[engine.Detail]())
)

// jsonNames lists the JSON names of a struct's fields, in order.
func jsonNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}

func (r *reader) expect(n strict.Node, s *scope) {
	o := n.Object(expectFields...)
	if n.IsObject() && len(o.Keys()) == 0 {
		n.Bad("expects nothing")
	}
	e := &s.row.Expect
	for _, item := range entries(o.Get("effect")) {
		e.Effect = append(e.Effect, s.effect(item))
	}
	if at := o.Get("elsewhere"); at.Exists() {
		e.Elsewhere = at.Enum("silent")
	}
	for _, item := range entries(o.Get("receipt")) {
		e.Receipt = append(e.Receipt, s.receipt(item))
	}
	for _, item := range entries(o.Get("refusal")) {
		e.Refusal = append(e.Refusal, r.refusal(item, s))
	}
	for _, item := range entries(o.Get("bind")) {
		e.Bind = append(e.Bind, s.bind(item))
	}
	for _, item := range entries(o.Get("snapshot")) {
		e.Snapshot = append(e.Snapshot, s.snapshot(item))
	}
	if at := o.Get("profile"); at.Exists() {
		p := at.Object("of", "posture")
		e.Profile = &ProfileExpect{Of: s.of(p.Need("of"), "prepare"), Posture: engine.Posture(p.Need("posture").Enum(texts(postures)...))}
	}
	if at := o.Get("probes"); at.Exists() {
		e.Probes = at.Enum("none")
	}
	for _, item := range entries(o.Get("generation")) {
		p := item.Object("before", "after")
		e.Generation = append(e.Generation, GenerationExpect{Before: s.of(p.Need("before"), "bind", "prepare"), After: s.of(p.Need("after"), "bind", "prepare")})
	}
	for _, item := range entries(o.Get("rounds")) {
		e.Rounds = append(e.Rounds, r.rounds(item, s))
	}
	if at := o.Get("forged"); at.Exists() {
		e.Forged = at.Enum("named")
		if !slices.ContainsFunc(s.row.Steps, func(step Step) bool { return step.Verb == "report_forged" }) {
			at.Bad("no step posts a forged report")
		}
	}
}

// checkExpect reports what a row does and does not judge: an action whose effect nobody looks for, an effect without silence elsewhere, a
// step that was named for nothing. So an expectation that is taken out of a row is missed.
func (s *scope) checkExpect(n strict.Node) {
	e := s.row.Expect
	refused := func(name string) bool {
		return slices.ContainsFunc(e.Refusal, func(r RefusalExpect) bool { return r.Of == name })
	}
	bound := false
	for i, step := range s.row.Steps {
		bound = bound || step.Verb == "bind"
		var shows func(EffectExpect) bool
		var want string
		switch step.Verb {
		case "navigate":
			shows, want = func(x EffectExpect) bool { return x.Loaded != "" }, "loaded"
		case "click":
			shows, want = func(x EffectExpect) bool { return x.Event != "" }, "an event"
		case "type":
			shows, want = func(x EffectExpect) bool { return x.Value != nil || x.Event != "" && x.Event != "click" }, "a value or an event"
		default:
			continue
		}
		if refused(step.Name) || s.touched[i] == (place{}) { // the second: its reference was reported
			continue
		}
		if !slices.ContainsFunc(e.Effect, func(x EffectExpect) bool { return shows(x) && s.place(x.Page) == s.touched[i] }) {
			n.Bad("no effect is expected of %s: want %s in the tab that it acts on", step.Name, want)
		}
	}
	if e.Elsewhere == "" && bound {
		n.Bad("elsewhere is missing: what happens in other places is judged, too")
	}
	for _, step := range s.row.Steps {
		switch {
		case step.Verb == "report_forged" && e.Forged == "":
			n.Bad("forged is missing: %s posts a false report", step.Name)
		case step.Verb == "attach" && e.Probes == "":
			n.Bad("probes is missing: %s must be answered before anything is looked at", step.Name)
		}
	}
	for _, g := range s.given {
		if !s.used[g.name] && g.name != "" {
			g.node.Bad("nothing is expected of the step %q; leave its name out", g.name)
		}
	}
}

// place finds the tab that a reference of an expectation names.
func (s *scope) place(ref string) place {
	t, err := ParseTabRef(ref)
	if err != nil {
		return place{}
	}
	if t.Name != "" {
		return s.names[t.Name].tab
	}
	return place{window: s.names[t.Target].window, tab: t.Tab, launch: s.names[t.Target].launch}
}

var postures = []engine.Posture{engine.PostureIsolatedNew, engine.PostureIsolatedNamed, engine.PostureExisting}

// entries reads a list, or a single mapping as a list of one.
func entries(n strict.Node) []strict.Node {
	if n.IsObject() {
		return []strict.Node{n}
	}
	if n.IsList() && len(n.List()) == 0 {
		n.Bad("is empty")
	}
	return n.List()
}

// of reads the name of a step of one of the verbs; no verbs means any that calls the engine.
func (s *scope) of(n strict.Node, verbs ...string) string {
	name := n.Text()
	if name == "" {
		return ""
	}
	index, ok := s.steps[name]
	s.used[name] = true
	if !ok {
		known := make([]string, len(s.row.Steps))
		for i, step := range s.row.Steps {
			known[i] = step.Name
		}
		n.Bad("no step is named %q%s", bounded(name), strict.Hint(name, known))
		return name
	}
	if index >= len(s.row.Steps) {
		return name
	}
	verb := s.row.Steps[index].Verb
	if len(verbs) == 0 {
		if v, ok := LookupVerb(verb); ok && v.Operation == "" && verb != "call" {
			n.Bad("the step %q is a %s, which calls no engine", name, verb)
		}
		return name
	}
	if !contains(verbs, verb) {
		n.Bad("the step %q is a %s, want %s", name, verb, strings.Join(verbs, " or "))
	}
	return name
}

func (s *scope) effect(n strict.Node) EffectExpect {
	o := n.Object("page", "control", "value", "event", "count", "at_least", "trusted", "loaded")
	var e EffectExpect
	e.Page, _ = s.tab(o.Need("page"))
	if at := o.Get("control"); at.Exists() {
		if e.Control = at.Text(); e.Control != "" && !controlForm.MatchString(e.Control) {
			at.Bad("%q is no control; want a data-control name such as full-name", bounded(e.Control))
		}
	}
	if at := o.Get("value"); at.Exists() {
		v := at.String()
		if _, err := Variables(v); err != nil {
			at.Bad("%s", err)
		}
		e.Value = &v
	}
	if at := o.Get("event"); at.Exists() {
		if e.Event = at.Text(); e.Event != "" && !nameForm.MatchString(e.Event) {
			at.Bad("%q is no event type", bounded(e.Event))
		}
	}
	if at := o.Get("count"); at.Exists() {
		e.Count = at.Int(1, 10_000)
	}
	if at := o.Get("at_least"); at.Exists() {
		e.AtLeast = at.Int(1, 10_000)
		if e.Count != 0 {
			at.Bad("count is there, too: a number is exact or a floor")
		}
	}
	if at := o.Get("trusted"); at.Exists() {
		v := at.Bool()
		e.Trusted = &v
	}
	if at := o.Get("loaded"); at.Exists() {
		e.Loaded = page(at)
	}
	asksControl := e.Value != nil || e.Event != ""
	switch {
	case !n.IsObject():
	case asksControl == (e.Loaded != ""):
		n.Bad("want either value or event of a control, or loaded")
	case e.Value != nil && e.Control == "":
		n.Bad("control is missing: whose value")
	case (e.Count != 0 && e.Loaded == "" || e.Trusted != nil) && e.Event == "":
		n.Bad("count and trusted belong to an event")
	case e.AtLeast != 0 && e.Event == "" && e.Loaded == "":
		n.Bad("at_least belongs to an event or to loaded")
	}
	return e
}

func (s *scope) receipt(n strict.Node) ReceiptExpect {
	o := n.Object("of", "effect", "trust", "route", "side_effects")
	e := ReceiptExpect{Of: s.of(o.Need("of"))}
	for _, w := range o.Get("effect").Words(texts(effects)...) {
		e.Effect = append(e.Effect, engine.Effect(w))
	}
	if at := o.Get("trust"); at.Exists() {
		e.Trust = engine.Trust(at.Enum(texts(trusts)...))
	}
	if at := o.Get("route"); at.Exists() {
		e.Route = engine.Route(at.Enum(texts(engine.Routes)...))
	}
	if at := o.Get("side_effects"); at.Exists() {
		flags := at.Object(sideEffects...)
		e.SideEffects = map[string]bool{}
		for _, key := range flags.Keys() {
			e.SideEffects[key] = flags.Get(key).Bool()
		}
	}
	if n.IsObject() && len(o.Keys()) < 2 {
		n.Bad("asks nothing of the receipt")
	}
	return e
}

var (
	effects = []engine.Effect{engine.EffectConfirmed, engine.EffectPartial, engine.EffectUnverifiable, engine.EffectSuspectedNoop, engine.EffectUnknown}
	trusts  = []engine.Trust{engine.TrustTrustedInput, engine.TrustDOMEvent, engine.TrustNone}
)

func (r *reader) refusal(n strict.Node, s *scope) RefusalExpect {
	o := n.Object("of", "trigger", "code", "detail", "within")
	e := RefusalExpect{Of: s.of(o.Need("of")), Trigger: o.Need("trigger").Text()}
	if e.Trigger != "" {
		code, ok := r.triggers.Code(e.Trigger)
		if !ok {
			var known []string
			if t, can := r.triggers.(triggerNames); can {
				known = t.Triggers()
			}
			o.Get("trigger").Bad("unknown trigger %q%s", bounded(e.Trigger), strict.Hint(e.Trigger, known))
		}
		e.Code = code
		if at := o.Get("code"); at.Exists() {
			if said := at.Enum(texts(engine.Codes)...); said != "" && ok && engine.Code(said) != code {
				at.Bad("the trigger %s gives %s, not %s", e.Trigger, code, said)
			}
		}
	}
	if at := o.Get("detail"); at.Exists() {
		fields := at.Object(refusalDetail...)
		e.Detail = map[string]string{}
		for _, key := range fields.Keys() {
			v := plainText(fields.Get(key))
			if len(v) > engine.MaxDetailValue {
				fields.Get(key).Bad("%d bytes, a detail has at most %d", len(v), engine.MaxDetailValue)
			}
			e.Detail[key] = v
		}
	}
	if at := o.Get("within"); at.Exists() {
		e.Within = at.Duration(40 * time.Second)
	}
	return e
}

func (s *scope) bind(n strict.Node) BindExpect {
	o := n.Object("of", "quality", "tabs", "active")
	e := BindExpect{Of: s.of(o.Need("of"), "bind")}
	e.Quality = engine.Quality(o.Need("quality").Enum(string(engine.QualityExact), string(engine.QualityHeuristic), string(engine.QualityNone)))
	if at := o.Get("tabs"); at.Exists() {
		e.Tabs = at.Int(1, 64)
	}
	if at := o.Get("active"); at.Exists() {
		e.Active = at.Enum("true", "false", "null")
	}
	return e
}

// frames are where a node of a snapshot may be.
var frames = []string{"main", "same_site", "other_site"}

func (s *scope) snapshot(n strict.Node) SnapshotExpect {
	o := n.Object("of", "has", "lacks", "either")
	e := SnapshotExpect{Of: s.of(o.Need("of"), "snapshot")}
	read := func(list strict.Node) []RoleName {
		var out []RoleName
		for _, item := range list.List() {
			p := item.Object("role", "name", "frame")
			rn := RoleName{Role: p.Need("role").Text(), Name: p.Need("name").String()}
			if f := p.Get("frame"); f.Exists() {
				rn.Frame = f.Enum(frames...)
			}
			if slices.Contains(out, rn) {
				item.Bad("occurs twice")
			}
			out = append(out, rn)
		}
		return out
	}
	e.Has, e.Lacks = read(o.Get("has")), read(o.Get("lacks"))
	if at := o.Get("either"); at.Exists() {
		for _, item := range at.List() {
			e.Either = append(e.Either, read(item))
		}
		if len(e.Either) < 2 {
			at.Bad("%d lists, want at least two: one is has", len(e.Either))
		}
	}
	if n.IsObject() && len(e.Has)+len(e.Lacks)+len(e.Either) == 0 {
		n.Bad("asks nothing of the snapshot")
	}
	for _, rn := range e.Has {
		if slices.Contains(e.Lacks, rn) {
			n.Bad("%s is both wanted and not wanted", fmt.Sprintf("%s %q", rn.Role, rn.Name))
		}
	}
	return e
}

// rounds reads the floor of a repeated step.
func (r *reader) rounds(n strict.Node, s *scope) RoundsExpect {
	o := n.Object("of", "delivered", "refused")
	e := RoundsExpect{Of: s.of(o.Need("of")), Delivered: o.Need("delivered").Int(0, maxTimes*maxCallers)}
	if index, ok := s.steps[e.Of]; ok && index < len(s.row.Steps) {
		if calls := s.row.Steps[index].Calls(); calls < 2 {
			o.Get("of").Bad("the step %q is not repeated", e.Of)
		} else if e.Delivered > calls {
			o.Get("delivered").Bad("the step %q makes %d calls", e.Of, calls)
		}
	}
	refused := o.Need("refused")
	for _, item := range entries(refused) {
		trigger := item.Text()
		if _, ok := r.triggers.Code(trigger); trigger != "" && !ok {
			item.Bad("unknown trigger %q", bounded(trigger))
		}
		e.Refused = append(e.Refused, trigger)
	}
	return e
}
