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

// Triggers is what the matrix needs of the refusal vocabulary. Package matrix/refusal has it.
type Triggers interface {
	// Code is the code that a trigger gives; false for one that there is not.
	Code(trigger string) (engine.Code, bool)
	// Triggers lists every trigger, for nearest words.
	Triggers() []string
	// Fields are the detail fields that a refusal of the trigger carries: those with a closed list of values, and the others.
	Fields(trigger string) (closed, open []string)
}

var (
	expectFields  = []string{"effect", "elsewhere", "receipt", "refusal", "bind", "snapshot", "profile", "probes", "generation", "rounds", "blocks", "identifiers", "forged"}
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
		e.Refusal = append(e.Refusal, r.refusal(item, s, true))
	}
	for _, item := range entries(o.Get("blocks")) {
		e.Blocks = append(e.Blocks, r.blockExpect(item, s))
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
	if at := o.Get("identifiers"); at.Exists() {
		e.Identifiers = at.Enum("hidden")
	}
	if at := o.Get("forged"); at.Exists() {
		e.Forged = at.Enum("named")
		if !slices.ContainsFunc(s.row.Steps, func(step Step) bool { return step.Verb == "report_forged" }) {
			at.Bad("no step posts a forged report")
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
	if index >= maxSteps {
		n.Bad("%q is inside a block; what a block shows is asked for in blocks", name)
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
	s.effectNode = append(s.effectNode, o)
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
		e.Loaded = page(at, s.pages)
	}
	asksControl := e.Value != nil || e.Event != ""
	switch {
	case !n.IsObject():
	case asksControl == (e.Loaded != ""):
		n.Bad("want either value or event of a control, or loaded")
	case e.Value != nil && e.Control == "":
		n.Bad("control is missing: whose value")
	case e.Event != "" && e.Control == "" && !slices.Contains(documentEvents, e.Event):
		n.Bad("control is missing: who saw the %s", e.Event)
	case e.Event != "" && e.Trusted == nil:
		n.Bad("trusted is missing: whether a hand made the %s, or a script", e.Event)
	case e.Trusted != nil && e.Event == "":
		n.Bad("trusted belongs to an event")
	case e.Count+e.AtLeast != 0 && e.Event == "" && e.Loaded == "":
		n.Bad("count and at_least belong to an event, or to loaded")
	}
	return e
}

// documentEvents are what a document sees and no control of it.
var documentEvents = []string{"scroll", "hashchange", "popstate", "pageshow", "pagehide", "visibilitychange", "fullscreenchange"}

func (s *scope) receipt(n strict.Node) ReceiptExpect {
	o := n.Object("of", "effect", "trust", "route", "side_effects", "value_before", "within")
	s.receiptNode = append(s.receiptNode, o)
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
	if at := o.Get("value_before"); at.Exists() {
		v := at.String()
		e.ValueBefore = &v
	}
	if at := o.Get("within"); at.Exists() {
		e.Within = at.Duration(40 * time.Second)
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

// refusal reads a refusal: of a step when one is named, else of any call of a block.
func (r *reader) refusal(n strict.Node, s *scope, named bool) RefusalExpect {
	fields := []string{"of", "trigger", "detail", "within"}
	if !named {
		fields = fields[1:]
	}
	o := n.Object(fields...)
	e := RefusalExpect{Trigger: o.Need("trigger").Text()}
	if named {
		s.refusalNode = append(s.refusalNode, o)
		e.Of = s.of(o.Need("of"))
	}
	if e.Trigger != "" {
		code, ok := r.triggers.Code(e.Trigger)
		if !ok {
			o.Get("trigger").Bad("unknown trigger %q%s", bounded(e.Trigger), strict.Hint(e.Trigger, r.triggers.Triggers()))
		}
		e.Code = code
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
	o := n.Object("of", "quality", "tabs", "active", "within")
	s.bindNode = append(s.bindNode, o)
	e := BindExpect{Of: s.of(o.Need("of"), "bind")}
	e.Quality = engine.Quality(o.Need("quality").Enum(string(engine.QualityExact), string(engine.QualityHeuristic), string(engine.QualityNone)))
	if at := o.Get("tabs"); at.Exists() {
		e.Tabs = at.Int(1, 64)
	}
	if at := o.Get("within"); at.Exists() {
		e.Within = at.Duration(40 * time.Second)
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
	s.snapshotNode = append(s.snapshotNode, o)
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
		for _, list := range e.Either {
			if len(list) != len(e.Either[0]) {
				at.Bad("either: lists of %d and of %d nodes; want as many of each document", len(e.Either[0]), len(list))
			}
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
