package matrix

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/fixtures/pages"
	"github.com/engine-acceptance/acceptance/matrix/strict"
)

// named is what a name of a row stands for.
type named struct {
	kind NameKind
	// window is the desk's window, from 1, for a target, and tabs how many it has; tab is the tab, for a snapshot.
	window, tabs int
	launch       int
	tab          place
}

// place is a tab of the desk: window and tab from 1, and the number of launches that the row's steps made before, for each of them begins
// with window 1 again. Opened names the step that opened the tab, from 1; 0 for a tab of the desk.
type place struct {
	window, tab    int
	launch, opened int
}

// scope is what is known while the steps of a row are read, in order.
type scope struct {
	row   *Row
	pages pages.Set
	names map[string]named
	order []string
	steps map[string]int
	// given are the names that the row gave to steps itself, with their place; used are the steps that expectations speak of.
	given []givenName
	used  map[string]bool
	// touched is the tab that each step acts on.
	touched map[int]place
	bound   map[string]bool
	// stepNode and the others are where each step and each entry of an expectation stands.
	stepNode                                                     []strict.Node
	effectNode, receiptNode, refusalNode, bindNode, snapshotNode []strict.Object
	// unresolved says that a step names something that is not there: what the row uses is then not known.
	unresolved bool
	// nested counts the steps inside blocks; block is the verb of the block that is being read, empty outside.
	nested int
	block  string
	// launches counts prepare steps: after one, window 1 is the new browser's, with one tab.
	launches int
	// launchOf is the last launch of each session, and launch that of the session of the step that is being read.
	launchOf map[string]int
	launch   int
}

type givenName struct {
	name string
	node strict.Node
}

func newScope(row *Row, known pages.Set) *scope {
	return &scope{row: row, pages: known, names: map[string]named{}, steps: map[string]int{}, used: map[string]bool{}, touched: map[int]place{}, bound: map[string]bool{}, launchOf: map[string]int{}}
}

func (s *scope) known(kinds ...NameKind) []string {
	var out []string
	for _, name := range s.order {
		for _, k := range kinds {
			if s.names[name].kind == k {
				out = append(out, name)
			}
		}
	}
	return out
}

func (r *reader) steps(n strict.Node, s *scope) {
	items := n.List()
	if n.IsList() && len(items) == 0 {
		n.Bad("no steps")
	}
	if len(items) > maxSteps {
		n.Bad("%d steps, at most %d", len(items), maxSteps)
		return
	}
	for i, item := range items {
		step := s.step(item, i)
		s.stepNode = append(s.stepNode, item)
		s.row.Steps = append(s.row.Steps, step)
	}
}

// step reads one step: a mapping with one key, the verb.
func (s *scope) step(n strict.Node, index int) Step {
	o := n.Map()
	if n.IsObject() && len(o.Keys()) != 1 {
		n.Bad("a step is one verb with its fields, got %d keys", len(o.Keys()))
	}
	if len(o.Keys()) == 0 {
		return Step{}
	}
	word := o.Keys()[0]
	step := Step{Verb: word, Name: fmt.Sprintf("%s-%d", word, index+1)}
	if s.block != "" {
		step.Name = fmt.Sprintf("%s-%s-%d", s.block, word, s.nested)
	}
	verb, ok := LookupVerb(word)
	if !ok {
		n.Bad("unknown verb %q%s", bounded(word), strict.Hint(word, verbNames()))
		return step
	}
	body := o.Get(word)
	fields := body.Object(append(verb.fieldNames(), "name")...)
	if name := fields.Get("name"); name.Exists() {
		if step.Name = name.Text(); step.Name != "" && !nameForm.MatchString(step.Name) {
			name.Bad("the name %q must be a word of a-z, 0-9, - and _", bounded(step.Name))
		}
		s.given = append(s.given, givenName{step.Name, name})
	}
	if first, twice := s.steps[step.Name]; twice {
		body.Bad("the name %q was given to step %d already", step.Name, first+1)
	}
	s.steps[step.Name] = index
	session := ""
	if at := fields.Get("session"); at.Exists() {
		session = at.String()
	}
	s.launch = s.launchOf[session]
	args := map[string]any{}
	var added []func()
	for _, f := range verb.Fields {
		node := fields.Get(f.Name)
		if !node.Exists() {
			if f.Required && body.IsObject() {
				body.Bad("%s is missing: %s", f.Name, f.Doc)
			}
			continue
		}
		switch f.Kind {
		case FieldSteps:
			if f.Name == "first" {
				step.First = s.lane(node, word)
			} else {
				step.Lanes = append(step.Lanes, s.lane(node, word))
			}
			continue
		case FieldLanes:
			items := node.List()
			if len(items) < 2 || len(items) > maxLanes {
				node.Bad("%d lanes, want 2 to %d", len(items), maxLanes)
			}
			for _, item := range items {
				step.Lanes = append(step.Lanes, s.lane(item, word))
			}
			continue
		}
		value, after := s.field(node, f, index)
		args[f.Name] = value
		if after != nil {
			added = append(added, after)
		}
	}
	if at := fields.Get("beside"); index == 0 && at.Exists() {
		at.Bad("no step stands before the first")
	}
	if session, ok := verb.Field("session"); ok && s.row.Launch == LaunchNone && !fields.Get("session").Exists() && body.IsObject() {
		body.Bad("%s is missing: with launch none a row has no session of its own", session.Name)
	}
	for _, group := range verb.OneOf {
		there := 0
		for _, name := range group {
			if _, ok := args[name]; ok {
				there++
			}
		}
		if there != 1 && body.IsObject() {
			body.Bad("want exactly one of %s", strings.Join(group, ", "))
		}
	}
	for _, after := range added { // names bind after the step's own fields were read
		after()
	}
	if len(args) > 0 {
		step.Args = args
	}
	s.background(body, &step)
	return step
}

// background marks the step. A session's background phase begins with its first bind and ends with the session. A launch is always
// prepare, until the next bind of its session; no other session may be in its background phase then, for a launch touches the desk.
func (s *scope) background(body strict.Node, step *Step) {
	session, _ := step.Args["session"].(string)
	switch step.Verb {
	case "bind":
		s.bound[session] = true
	case "kill":
		if step.Text("process") == "engine" {
			clear(s.bound) // its sessions are over
		}
	case "prepare":
		delete(s.bound, session)
		s.launches++
		s.launchOf[session] = s.launches
		if len(s.bound) > 0 {
			body.Bad("launches while another session has a bound window; prepare every session before the first bind")
		}
	}
	step.Background = len(s.bound) > 0 && step.Verb != "prepare"
	if step.Verb == "end_session" {
		delete(s.bound, session)
	}
}

// field reads one field. What it returns second binds names, and is called once the whole step was read.
func (s *scope) field(n strict.Node, f Field, index int) (any, func()) {
	switch f.Kind {
	case FieldText:
		text := n.String()
		s.variables(n, text)
		return text, nil
	case FieldInt:
		return n.Int(f.Low, f.High), nil
	case FieldBool:
		return n.Bool(), nil
	case FieldDuration:
		return n.Duration(30 * time.Second).String(), nil
	case FieldEnum:
		word := n.Enum(f.Words...)
		if f.Name == "product" && word != "" && !contains(s.row.Desk.Decoys, word) {
			n.Bad("the desk seats no %s; add it to desk.decoys", word)
		}
		return word, nil
	case FieldPage:
		return page(n, s.pages), nil
	case FieldWindow:
		number := n.Int(1, 8)
		if most := s.windows(); number > most {
			n.Bad("window %d: the desk has %d", number, most)
		}
		return number, func() { s.touched[index] = place{window: number, launch: s.launch} }
	case FieldNew:
		name := n.Text()
		if name != "" && !nameForm.MatchString(name) {
			n.Bad("the name %q must be a word of a-z, 0-9, - and _", bounded(name))
		}
		if old, ok := s.names[name]; ok && old.kind != f.Names {
			n.Bad("%q names a %s already", name, old.kind)
		}
		return name, func() {
			at := s.touched[index]
			if _, ok := s.names[name]; !ok {
				s.order = append(s.order, name)
			}
			if f.Names == NameTab {
				at = place{window: at.window, launch: at.launch, opened: index + 1}
				s.touched[index] = at
			}
			s.names[name] = named{kind: f.Names, window: at.window, launch: at.launch, tabs: s.tabs(at), tab: at}
		}
	case FieldUse:
		name := n.Text()
		if got, ok := s.names[name]; name != "" && (!ok || got.kind != f.Names) {
			s.unresolved = true
			n.Bad("no %s is named %q yet%s", f.Names, bounded(name), strict.Hint(name, s.known(f.Names)))
		} else if f.Names == NameTarget {
			s.touched[index] = place{window: got.window, launch: got.launch}
		}
		return name, nil
	case FieldTab:
		text, at := s.tab(n)
		s.touched[index] = at
		return text, nil
	case FieldNode:
		text := n.Text()
		if text == "" {
			return "", nil
		}
		ref, err := ParseNodeRef(text)
		if err != nil {
			n.Bad("%s", err)
			return text, nil
		}
		got, ok := s.names[ref.Snapshot]
		if !ok || got.kind != NameSnapshot {
			s.unresolved = true
			n.Bad("no snapshot is named %q yet%s", ref.Snapshot, strict.Hint(ref.Snapshot, s.known(NameSnapshot)))
		}
		s.touched[index] = got.tab
		return text, nil
	case FieldArgs:
		if !n.IsObject() {
			n.Bad("want a mapping of arguments")
			return nil, nil
		}
		value := n.Plain()
		s.variables(n, value)
		return value, nil
	}
	n.Bad("field of unknown kind %q", f.Kind)
	return nil, nil
}

// variables checks a text, or those inside raw arguments.
func (s *scope) variables(n strict.Node, value any) {
	switch v := value.(type) {
	case string:
		vars, err := Variables(v)
		if err != nil {
			n.Bad("%s", err)
		}
		for _, one := range vars {
			if _, ok := s.pages[one.Name]; one.Kind == "page" && !ok {
				n.Bad("there is no fixture page %q%s", one.Name, strict.Hint(one.Name, s.pages.Names()))
			}
			if one.Kind == "round" && s.block == "" {
				n.Bad("{{round}} has a number only inside repeat and race")
			}
		}
	case []any:
		for _, item := range v {
			s.variables(n, item)
		}
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			s.variables(n, v[k])
		}
	}
}

// tab reads a tab reference and finds its place on the desk.
func (s *scope) tab(n strict.Node) (string, place) {
	text := n.Text()
	if text == "" {
		return "", place{}
	}
	ref, err := ParseTabRef(text)
	if err != nil {
		n.Bad("%s", err)
		return text, place{}
	}
	if ref.Name != "" {
		got, ok := s.names[ref.Name]
		if !ok || got.kind != NameTab {
			hint := strict.Hint(ref.Name, s.known(NameTab))
			if ok && got.kind == NameTarget {
				hint = fmt.Sprintf("; %s is a window, name its tab: \"%s/tab 1\"", ref.Name, ref.Name)
			}
			s.unresolved = true
			n.Bad("no tab is named %q yet%s", ref.Name, hint)
		}
		return text, got.tab
	}
	got, ok := s.names[ref.Target]
	if !ok || got.kind != NameTarget {
		s.unresolved = true
		n.Bad("no bound window is named %q yet%s", ref.Target, strict.Hint(ref.Target, s.known(NameTarget)))
		return text, place{}
	}
	if ref.Tab > got.tabs {
		n.Bad("tab %d: window %d of the desk has %d", ref.Tab, got.window, got.tabs)
	}
	return text, place{window: got.window, tab: ref.Tab, launch: got.launch}
}

// windows is how many windows the step's session can bind now, and tabs how many tabs one of them has.
func (s *scope) windows() int {
	if s.launch > 0 {
		return 1
	}
	return max(len(s.row.Desk.Windows), 1)
}

func (s *scope) tabs(at place) int {
	if w := s.row.Desk.Windows; at.launch == 0 && at.window >= 1 && at.window <= len(w) {
		return len(w[at.window-1].Tabs)
	}
	return 1
}

// checkNeeds reports needs that no step exercises, or that the desk contradicts.
func (s *scope) checkNeeds(n strict.Node) {
	c := s.row.Needs
	if c == nil || c.Action == "" || c.Route == "" || c.State == "" || c.Delivery == "" {
		return
	}
	at := -1
	for i, step := range s.row.Steps {
		if step.Exercises(*c) {
			at = i
			break
		}
	}
	if at < 0 {
		n.Bad("no step does %s by %s, which the row says it needs", c.Action, c.Route)
		return
	}
	where := s.touched[at]
	if where.window == 0 {
		return
	}
	visible := where.opened == 0
	if w := s.row.Desk.Windows; where.tab > 0 && where.window <= len(w) && where.tab <= len(w[where.window-1].Tabs) {
		visible = w[where.window-1].Tabs[where.tab-1].Visible
	}
	switch c.State {
	case engine.StateInactiveTab:
		if visible && where.tab > 0 {
			n.Bad("state inactive_tab, but %s acts on a tab that its window shows", s.row.Steps[at].Name)
		}
	case engine.StateCovered, engine.StatePartlyCovered, engine.StateVisibleTab:
		if !visible {
			n.Bad("state %s, but %s acts on a tab that its window does not show", c.State, s.row.Steps[at].Name)
		}
		want := map[engine.State]Person{engine.StateCovered: PersonCovers, engine.StatePartlyCovered: PersonPartlyCovers, engine.StateVisibleTab: PersonBeside}[c.State]
		if s.row.Desk.Person != want {
			n.Bad("state %s wants desk.person %s, got %s", c.State, want, s.row.Desk.Person)
		}
	}
}

func unknownVariable(kind string) error {
	return errors.New("unknown variable {{" + bounded(kind) + "}}" + strict.Hint(kind, VariableKinds()))
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}
