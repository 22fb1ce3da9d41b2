package matrix

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/fixtures/pages"
	"github.com/engine-acceptance/acceptance/matrix/strict"
)

// What a row has to expect follows from three things: from its requirement (requirements.yaml says which kinds of expectation every row of it
// carries), from its steps (what is done must be seen, or be refused), and from the pages (a page says what using one of its controls does).
// An expectation that follows and is not there is a problem of the row, so none can be taken out unnoticed; see [Weightless].

// covering is what is known of a row while its expectations are held against it.
type covering struct {
	*scope
	requirement Requirement
	triggers    Triggers
	// at is the row's expect: problems about what is missing are reported there.
	at    strict.Node
	deeds []deed
	// shown are the pages that each tab showed, in order; a name that is empty stands for one that the steps do not tell.
	shown map[place][]string
}

// deed is what a step does, as far as steps and pages tell.
type deed struct {
	verb    Verb
	refused bool
	// at is the tab that the step acts on; the zero value when it acts on none.
	at place
	// page is the page that was in that tab when the step, or for a control the snapshot, saw it; empty when that is not known.
	page string
	// document counts the documents of the row, so that two loads of one page are two.
	document int
	// control is what the step acts on; nil when it acts on none, or on one that its page does not tell apart.
	control *pages.Control
	// loads is the page that the step loads in its tab.
	loads string
}

// cover reports what the row does and does not judge.
func (r *reader) cover(n strict.Node, s *scope) {
	c := &covering{scope: s, requirement: r.requirements[s.row.Requirement], triggers: r.triggers, at: n, shown: map[place][]string{}}
	c.follow()
	c.checkControls()
	for i := range s.row.Steps {
		c.step(i)
	}
	c.counts()
	c.receipts()
	c.refusals()
	c.binds()
	c.snapshots()
	c.kinds()
	c.checkBlocks(n)
	for _, g := range s.given {
		if !s.used[g.name] && g.name != "" {
			g.node.Bad(namedForNothing+" %q; leave its name out", g.name)
		}
	}
}

const namedForNothing = "nothing is expected of the step"

// bad reports what the row's expectations lack.
func (c *covering) bad(format string, args ...any) {
	c.at.Bad("%s: %s", c.row.Stem, fmt.Sprintf(format, args...))
}

func (c *covering) refused(name string) bool {
	return slices.ContainsFunc(c.row.Expect.Refusal, func(r RefusalExpect) bool { return r.Of == name })
}

// follow walks through the steps and remembers what each acts on.
func (c *covering) follow() {
	type document struct {
		page   string
		number int
	}
	tabs, snapshots, documents := map[place]document{}, map[string]document{}, 0
	show := func(at place, page string) {
		documents++
		tabs[at] = document{page, documents}
		c.shown[at] = append(c.shown[at], page)
	}
	for w, window := range c.row.Desk.Windows {
		for t, tab := range window.Tabs {
			page, _, _ := strings.Cut(tab.Page, "?")
			show(place{window: w + 1, tab: t + 1}, page)
		}
	}
	for i, step := range c.row.Steps {
		verb, _ := LookupVerb(step.Verb)
		d := deed{verb: verb, refused: c.refused(step.Name), at: c.touched[i]}
		now := tabs[d.at]
		d.page, d.document = now.page, now.number
		if node, ok := nodeOf(step, verb); ok {
			now = snapshots[node.Snapshot]
			d.page, d.document = now.page, now.number
			d.control = c.control(d.page, node)
		}
		switch {
		case d.refused:
		case step.Verb == "snapshot":
			snapshots[step.Text("as")] = now
		case verb.Action == engine.ActionNavigate:
			d.loads = loadedBy(step)
			show(d.at, d.loads)
		case d.control != nil && d.control.Does != nil && d.control.Does.Loads != "" && c.works(step, d.control):
			d.loads = d.control.Does.Loads
			show(d.at, d.loads)
		case !verb.KeepsPages && verb.Action == "":
			// The step may have changed any page in a way that the language does not tell.
			for _, at := range slices.Collect(maps.Keys(tabs)) {
				show(at, "")
			}
		}
		c.deeds = append(c.deeds, d)
	}
}

// nodeOf is the control that a step names.
func nodeOf(step Step, verb Verb) (NodeRef, bool) {
	for _, f := range verb.Fields {
		if f.Kind == FieldNode && step.Has(f.Name) {
			ref, err := ParseNodeRef(step.Text(f.Name))
			return ref, err == nil
		}
	}
	return NodeRef{}, false
}

// loadedBy is the fixture page that a navigation loads; empty when its address is none.
func loadedBy(step Step) string {
	if page := step.Text("page"); page != "" {
		return page
	}
	vars, err := Variables(step.Text("url"))
	if err != nil || len(vars) == 0 || vars[0].Kind != "page" || !strings.HasPrefix(step.Text("url"), "{{page") {
		return ""
	}
	return vars[0].Name
}

// controls lists the controls of a page and of the pages in its frames.
func (c *covering) controls(page string) []pages.Control {
	return c.below(page, 0)
}

func (c *covering) below(page string, depth int) []pages.Control {
	p := c.pages[page]
	out := slices.Clone(p.Controls)
	for _, f := range p.Frames {
		if f.Page != "" && depth < 4 {
			out = append(out, c.below(f.Page, depth+1)...)
		}
	}
	return out
}

// control finds the one control of a page that has a role and a name; nil when several have, or the page is not known.
func (c *covering) control(page string, node NodeRef) *pages.Control {
	var found []pages.Control
	for _, one := range c.controls(page) {
		if one.Role == node.Role && one.Name == node.Name && !one.Hidden {
			found = append(found, one)
		}
	}
	if len(found) != 1 {
		return nil
	}
	return &found[0]
}

// works says whether a page does what it says of a control when a step uses it: some ask for trusted input.
func (c *covering) works(step Step, control *pages.Control) bool {
	return !control.Does.Trusted || step.Text("route") != string(engine.RouteDOMEvent)
}

// checkControls reports names of controls that no page of the tab has.
func (c *covering) checkControls() {
	for i, step := range c.row.Steps {
		node, ok := nodeOf(step, c.deeds[i].verb)
		if _, known := c.pages[c.deeds[i].page]; !ok || !known {
			continue
		}
		var names []string
		for _, one := range c.controls(c.deeds[i].page) {
			names = append(names, one.Role+" "+fmt.Sprintf("%q", one.Name))
		}
		if want := node.Role + " " + fmt.Sprintf("%q", node.Name); !slices.Contains(names, want) {
			c.stepNode[i].Bad("the page %s has no %s%s", c.deeds[i].page, want, strict.Hint(want, names))
		}
	}
	for i, e := range c.row.Expect.Effect {
		shown := c.shown[c.place(e.Page)]
		if e.Control == "" || len(shown) == 0 || slices.Contains(shown, "") {
			continue
		}
		var names []string
		for _, page := range shown {
			for _, one := range c.controls(page) {
				names = append(names, one.Control)
			}
		}
		if !slices.Contains(names, e.Control) {
			c.effectNode[i].Get("control").Bad("%s has no control %q%s", strings.Join(shown, ", "), bounded(e.Control), strict.Hint(e.Control, names))
		}
	}
}

// has says whether an effect is expected in a tab.
func (c *covering) has(at place, fits func(EffectExpect) bool) bool {
	return slices.ContainsFunc(c.row.Expect.Effect, func(e EffectExpect) bool { return c.place(e.Page) == at && fits(e) })
}

func valueOf(control string) func(EffectExpect) bool {
	return func(e EffectExpect) bool { return e.Value != nil && (control == "" || e.Control == control) }
}

func eventOf(control, kind string) func(EffectExpect) bool {
	return func(e EffectExpect) bool {
		return e.Event != "" && (kind == "" || e.Event == kind) && (control == "" || e.Control == control)
	}
}

// refOf writes the tab of a place as the row may.
func (c *covering) refOf(at place) string {
	for _, name := range c.order {
		n := c.names[name]
		switch {
		case n.kind == NameTab && n.tab == at:
			return name
		case n.kind == NameTarget && at.opened == 0 && n.window == at.window && n.launch == at.launch:
			return TabRef{Target: name, Tab: max(at.tab, 1)}.String()
		}
	}
	return "its tab"
}

// step holds one step: what it does is seen, or it is refused.
func (c *covering) step(i int) {
	step, d := c.row.Steps[i], c.deeds[i]
	if d.refused {
		return
	}
	missing := func(format string, args ...any) {
		c.bad("no effect is expected of %s, and no refusal: want "+format, append([]any{step.Name}, args...)...)
	}
	name := ""
	if d.control != nil {
		name = d.control.Control
	}
	called := "CONTROL"
	if name != "" {
		called = name
	}
	acts := d.at != (place{}) // else its reference was reported
	switch {
	case step.Verb == "bind" && !c.spokenOf(step.Name) && !c.uses(i, step.Text("as")):
		c.bad("nothing uses what %s binds, and nothing is expected of it: a bind, or a refusal", step.Name)
	case step.Verb == "snapshot" && !c.spokenOf(step.Name) && !c.uses(i, step.Text("as")) && !c.retires(i):
		c.bad("nothing uses what %s lists, and nothing is expected of it: a snapshot, or a refusal", step.Name)
	case step.Verb == "call" && !c.spokenOf(step.Name):
		c.bad("nothing is expected of the answer to %s: a refusal, or what it brings about", step.Name)
	case step.Verb == "attach":
		if c.row.Expect.Probes == "" {
			c.bad("probes is missing: %s must be answered before anything is looked at", step.Name)
		}
		if !c.spokenOf(step.Name) {
			c.bad("nothing is expected of the answer to %s: a refusal, a bind or a receipt", step.Name)
		}
	case step.Verb == "report_forged" && c.row.Expect.Forged == "":
		c.bad("forged is missing: %s posts a false report", step.Name)
	case !acts || d.verb.Action == "":
	case d.verb.Action == engine.ActionNavigate && d.loads == "":
		if step.Verb == "navigate" && !c.hasReceipt(step.Name) {
			c.bad("%s loads no fixture page: want a receipt of it, or a refusal", step.Name)
		}
	case d.verb.Action == engine.ActionNavigate: // counted below
	case d.verb.Action == engine.ActionType && d.control != nil && d.control.Secret:
		if !c.has(d.at, eventOf(name, "input")) && !c.has(d.at, valueOf(name)) {
			missing("{page: %s, control: %s, event: input, trusted: %t}", c.refOf(d.at), called, trustedBy(step, d.verb))
		}
	case d.verb.Action == engine.ActionType || d.verb.Action == engine.ActionSelect:
		if !c.has(d.at, valueOf(name)) {
			missing("{page: %s, control: %s, value: ...}", c.refOf(d.at), called)
		}
	case d.verb.Action == engine.ActionClick: // counted below
		if name == "" && !c.has(d.at, eventOf("", "click")) {
			missing("{page: %s, control: CONTROL, event: click, trusted: %t}", c.refOf(d.at), trustedBy(step, d.verb))
		}
	case name != "":
		if !c.has(d.at, eventOf(name, "")) && !c.has(d.at, valueOf(name)) {
			missing("an event or a value of {page: %s, control: %s}", c.refOf(d.at), name)
		}
	}
	if d.loads != "" {
		for _, told := range c.controls(d.loads) {
			if told.Found && !c.has(d.at, valueOf(told.Control)) {
				missing("{page: %s, control: %s, value: ...}, for that is what %s says it found", c.refOf(d.at), told.Control, d.loads)
			}
		}
	}
	if d.control == nil || d.control.Does == nil || !acts || d.verb.Action == "" || !c.works(step, d.control) {
		return
	}
	for _, other := range d.control.Does.Changes {
		if !c.has(d.at, valueOf(other)) {
			missing("{page: %s, control: %s, value: ...}, for that is what %s says its %s does", c.refOf(d.at), other, d.page, name)
		}
	}
}

// trustedBy says whether the page may believe the events of a step.
func trustedBy(step Step, verb Verb) bool {
	route := verb.Route
	if asked := step.Text("route"); asked != "" {
		route = engine.Route(asked)
	}
	return route != engine.RouteDOMEvent
}

// uses says whether a step after i uses a name, or may: when another name leads nowhere, that was reported.
func (c *covering) uses(i int, name string) bool {
	if c.unresolved {
		return true
	}
	for _, step := range flat(c.row.Steps[i+1:]) {
		verb, _ := LookupVerb(step.Verb)
		for _, f := range verb.Fields {
			text := step.Text(f.Name)
			switch f.Kind {
			case FieldUse:
				if text == name {
					return true
				}
			case FieldTab, FieldNode:
				if strings.HasPrefix(text, name+"/") {
					return true
				}
			}
		}
	}
	return false
}

// retires says whether a step after i, that uses an older list of the same tab, is refused because there is a newer one: list i is then what
// makes the older stale.
func (c *covering) retires(i int) bool {
	return slices.ContainsFunc(c.row.Expect.Refusal, func(e RefusalExpect) bool {
		at, ok := c.steps[e.Of]
		if !ok || at <= i || at >= len(c.deeds) || e.Detail["reason"] != "snapshot" {
			return false
		}
		ref, ok := nodeOf(c.row.Steps[at], c.deeds[at].verb)
		return ok && slices.ContainsFunc(c.row.Steps[:i], func(s Step) bool { return s.Verb == "snapshot" && s.Text("as") == ref.Snapshot })
	})
}

// spokenOf says whether an expectation is about a step.
func (c *covering) spokenOf(name string) bool { return c.used[name] }

func (c *covering) hasReceipt(name string) bool {
	return slices.ContainsFunc(c.row.Expect.Receipt, func(r ReceiptExpect) bool { return r.Of == name })
}

// counts holds what is counted: loads of a page in a tab, and clicks on a control.
func (c *covering) counts() {
	type key struct {
		at   place
		what string
	}
	loads, clicks, trusted, floor := map[key]int{}, map[key]int{}, map[key]map[bool]bool{}, map[key]bool{}
	var order []key
	first := map[key]string{}
	for i, d := range c.deeds {
		step := c.row.Steps[i]
		if d.refused {
			continue
		}
		if d.loads != "" {
			k := key{d.at, d.loads}
			if loads[k] == 0 {
				order, first[k] = append(order, k), step.Name
			}
			loads[k] += step.Calls()
			floor[k] = floor[k] || c.hasFloor(step.Name)
		}
		if d.verb.Action == engine.ActionClick && d.control != nil {
			k := key{d.at, "#" + d.control.Control}
			if clicks[k] == 0 {
				order, first[k], trusted[k] = append(order, k), step.Name, map[bool]bool{}
			}
			clicks[k] += step.Calls()
			floor[k] = floor[k] || c.hasFloor(step.Name)
			trusted[k][trustedBy(step, d.verb)] = true
		}
	}
	for _, k := range order {
		control, isClick := strings.CutPrefix(k.what, "#")
		want := max(loads[k], clicks[k])
		text := fmt.Sprintf("{page: %s, loaded: %s", c.refOf(k.at), k.what)
		if isClick {
			text = fmt.Sprintf("{page: %s, control: %s, event: click", c.refOf(k.at), control)
		}
		switch {
		case floor[k]:
			text += ", at_least: ..."
		case want > 1:
			text += fmt.Sprintf(", count: %d", want)
		}
		if isClick && len(trusted[k]) == 1 {
			text += fmt.Sprintf(", trusted: %t", trusted[k][true])
		}
		fits := func(e EffectExpect) bool {
			return !isClick && e.Loaded == k.what || isClick && e.Control == control && e.Event == "click"
		}
		if !c.has(k.at, fits) {
			c.bad("no effect is expected of %s, and no refusal: want %s}", first[k], text)
			continue
		}
		for i, e := range c.row.Expect.Effect {
			if c.place(e.Page) != k.at || !fits(e) {
				continue
			}
			switch got := max(e.Count, 1); {
			case floor[k] && e.AtLeast == 0 && got != want:
				c.effectNode[i].Node().Bad("%s: at_least is missing: rounds let fewer than %d happen", c.row.Stem, want)
			case !floor[k] && (got != want || e.AtLeast != 0):
				c.effectNode[i].Node().Bad("%s: the effect's count is %d, and the row's steps bring it about %d times: want %s}, or a refusal of one", c.row.Stem, got, want, text)
			}
			if isClick && e.Trusted != nil && len(trusted[k]) == 1 && !trusted[k][*e.Trusted] {
				c.effectNode[i].Get("trusted").Bad("%s: by the route of %s the page sees trusted: %t", c.row.Stem, first[k], !*e.Trusted)
			}
		}
	}
}

// hasFloor says whether some of a step's calls may be refused, and some not.
func (c *covering) hasFloor(name string) bool {
	return slices.ContainsFunc(c.row.Expect.Rounds, func(r RoundsExpect) bool { return r.Of == name })
}

// ofVerb are the side-effect flags that a receipt of a verb states, whatever the requirement.
var ofVerb = map[string][]string{
	"open_tab":    {"opened_context", "opened_window"},
	"close_tab":   {"closed_context", "closed_window"},
	"end_session": {"closed_window"},
}

// receipts holds which steps' receipts are stated, and what each of them states.
func (c *covering) receipts() {
	for i, step := range c.row.Steps {
		d := c.deeds[i]
		if d.refused || c.hasReceipt(step.Name) {
			continue
		}
		// What changes tabs, or acts in a way that no rule above looks for in the pages, is shown by its receipt.
		acts := d.verb.Action != "" && !slices.Contains([]engine.Action{engine.ActionNavigate, engine.ActionClick, engine.ActionType, engine.ActionSnapshot}, d.verb.Action)
		if acts || slices.Contains(c.requirement.Receipts, step.Verb) {
			c.bad("no receipt is expected of %s: want receipt: {of: %s, %s}", step.Name, step.Name, c.receiptOf(step, d.verb))
		}
	}
	for i, e := range c.row.Expect.Receipt {
		at, step := c.receiptNode[i], c.stepNamed(e.Of)
		verb, ok := LookupVerb(step.Verb)
		if !ok {
			continue
		}
		missing := func(field string) {
			at.Node().Bad("%s: %s is missing in the receipt of %s: want %s", c.row.Stem, field, e.Of, c.receiptOf(step, verb))
		}
		if len(e.Effect) == 0 {
			missing("effect")
		}
		if onPages(verb) && e.Route == "" {
			missing("route")
		}
		if onPages(verb) && e.Trust == "" {
			missing("trust")
		}
		if step.Bool("replace") && e.ValueBefore == nil && slices.Contains(c.requirement.Expects, "value_before") {
			missing("value_before")
		}
		if e.Within == 0 && slices.Contains(c.requirement.Expects, "budget") {
			missing("within")
		}
		for _, flag := range c.flags(step.Verb) {
			if _, ok := e.SideEffects[flag]; !ok {
				at.Node().Bad("%s: side_effects of the receipt of %s does not state %s", c.row.Stem, e.Of, flag)
			}
		}
	}
}

// onPages says whether a verb acts on a page, by a route that its receipt names with the trust that goes with it.
func onPages(verb Verb) bool {
	return verb.Route != "" && !slices.Contains([]engine.Action{engine.ActionSnapshot, engine.ActionContextOpen, engine.ActionContextClose}, verb.Action)
}

// flags are the side-effect flags that the receipt of a verb states in this row.
func (c *covering) flags(verb string) []string {
	flags := slices.Clone(ofVerb[verb])
	if slices.Contains(c.requirement.Receipts, verb) {
		for _, f := range c.requirement.SideEffects {
			if !slices.Contains(flags, f) {
				flags = append(flags, f)
			}
		}
	}
	return flags
}

// receiptOf writes what a receipt states, as a row does.
func (c *covering) receiptOf(step Step, verb Verb) string {
	text := "effect: confirmed"
	if onPages(verb) {
		route, trust := string(verb.Route), engine.TrustTrustedInput
		if asked := step.Text("route"); asked != "" {
			route = asked
		}
		switch {
		case route == string(engine.RouteDOMEvent):
			text, trust = "effect: unverifiable", engine.TrustDOMEvent
		case route == string(engine.RouteEngine):
			trust = engine.TrustNone
		default:
			text = "effect: [confirmed, unverifiable]"
		}
		text += fmt.Sprintf(", route: %s, trust: %s", route, trust)
	}
	if flags := c.flags(step.Verb); len(flags) > 0 {
		text += ", side_effects: {" + strings.Join(flags, ": ..., ") + ": ...}"
	}
	return text
}

func (c *covering) stepNamed(name string) Step {
	if i, ok := c.steps[name]; ok && i < len(c.row.Steps) {
		return c.row.Steps[i]
	}
	return Step{}
}

// refusals holds what each refusal states: every detail that its trigger has a closed list for, else every detail.
func (c *covering) refusals() {
	for i, e := range c.row.Expect.Refusal {
		closed, open := c.triggers.Fields(e.Trigger)
		want := closed
		if len(want) == 0 {
			want = open
		}
		for _, field := range want {
			if _, ok := e.Detail[field]; !ok {
				c.refusalNode[i].Node().Bad("%s: detail of the refusal of %s does not state %s, which %s carries", c.row.Stem, e.Of, field, e.Trigger)
			}
		}
		if slices.Contains(c.requirement.Expects, "hints") {
			for _, field := range []string{"alternative_route", "next_action"} {
				if _, ok := e.Detail[field]; !ok {
					c.refusalNode[i].Node().Bad("%s: detail of the refusal of %s does not state %s: rows of %s state what helps, and what does not", c.row.Stem, e.Of, field, c.requirement.ID)
				}
			}
		}
		if e.Within == 0 && slices.Contains(c.requirement.Expects, "within") {
			c.refusalNode[i].Node().Bad("%s: within is missing in the refusal of %s: rows of %s state it", c.row.Stem, e.Of, c.requirement.ID)
		}
		if e.Within == 0 && c.stepNamed(e.Of).Verb == "prepare" {
			c.refusalNode[i].Node().Bad("%s: within is missing in the refusal of %s: how long a launch may take to fail is for the row to say", c.row.Stem, e.Of)
		}
	}
}

// binds holds what each binding states, and that those of a requirement about bindings are stated.
func (c *covering) binds() {
	for i, step := range c.row.Steps {
		if step.Verb == "bind" && !c.deeds[i].refused && slices.Contains(c.requirement.Expects, "bind") &&
			!slices.ContainsFunc(c.row.Expect.Bind, func(b BindExpect) bool { return b.Of == step.Name }) {
			c.bad("no bind is expected of %s, as rows of %s do: want bind: {of: %s, quality: exact, tabs: %d}", step.Name, c.requirement.ID, step.Name,
				c.names[step.Text("as")].tabs)
		}
	}
	for i, e := range c.row.Expect.Bind {
		if e.Quality == engine.QualityExact && e.Tabs == 0 {
			c.bindNode[i].Node().Bad("%s: tabs is missing in the bind of %s: want how many the window has", c.row.Stem, e.Of)
		}
		if e.Within == 0 && slices.Contains(c.requirement.Expects, "budget") {
			c.bindNode[i].Node().Bad("%s: within is missing in the bind of %s: rows of %s state it", c.row.Stem, e.Of, c.requirement.ID)
		}
		if e.Active == "" && slices.Contains(c.requirement.Expects, "active") {
			c.bindNode[i].Node().Bad("%s: active is missing in the bind of %s: rows of %s state it", c.row.Stem, e.Of, c.requirement.ID)
		}
	}
}

// parts are the aspects of a snapshot whose rows list a part of their page whole.
var parts = []string{"main", "same_site", "open_shadow", "other_site"}

// listed are the roles of what a snapshot lists to be acted on.
var listed = []string{"button", "checkbox", "combobox", "link", "radio", "slider", "spinbutton", "textbox"}

// snapshots holds what each list must name.
func (c *covering) snapshots() {
	complete := slices.Contains(c.requirement.Expects, "snapshot") && slices.Contains(parts, c.row.Aspect)
	for i, step := range c.row.Steps {
		d := c.deeds[i]
		if step.Verb != "snapshot" || d.refused {
			continue
		}
		at := slices.IndexFunc(c.row.Expect.Snapshot, func(e SnapshotExpect) bool { return e.Of == step.Name })
		if at < 0 {
			if slices.Contains(c.requirement.Expects, "snapshot") {
				c.bad("no snapshot is expected of %s, as rows of %s do: want snapshot: {of: %s, has: [...]}", step.Name, c.requirement.ID, step.Name)
			}
			continue
		}
		e, node := c.row.Expect.Snapshot[at], c.snapshotNode[at].Node()
		if complete {
			has, lacks := c.part(d.page, c.row.Aspect)
			for _, want := range has {
				if !slices.ContainsFunc(e.Has, func(got RoleName) bool { return got.Role == want.Role && got.Name == want.Name }) {
					node.Bad("%s: has does not name %s %q, which %s says is in its part %s", c.row.Stem, want.Role, want.Name, d.page, c.row.Aspect)
				}
			}
			for _, want := range lacks {
				if !slices.ContainsFunc(e.Lacks, func(got RoleName) bool { return got.Role == want.Role && got.Name == want.Name }) {
					node.Bad("%s: lacks does not name %s %q, which %s says is hidden", c.row.Stem, want.Role, want.Name, d.page)
				}
			}
		} else {
			for j, later := range c.row.Steps {
				ref, ok := nodeOf(later, c.deeds[j].verb)
				if j <= i || !ok || ref.Snapshot != step.Text("as") {
					continue
				}
				if !slices.ContainsFunc(e.Has, func(got RoleName) bool { return got.Role == ref.Role && got.Name == ref.Name }) {
					node.Bad("%s: has does not name %s %q, which %s takes from it", c.row.Stem, ref.Role, ref.Name, later.Name)
				}
			}
			c.lacksOld(i, e, node)
		}
		if len(c.pages[d.page].Frames) == 0 {
			continue
		}
		for _, rn := range append(slices.Clone(e.Has), e.Lacks...) {
			if rn.Frame == "" {
				node.Bad("%s: frame is missing for %s %q: %s has frames", c.row.Stem, rn.Role, rn.Name, d.page)
			}
		}
	}
}

// part lists what a page says is in a part of it, and what of that is hidden.
func (c *covering) part(page, aspect string) (has, lacks []RoleName) {
	add := func(controls []pages.Control, frame string, shadow bool) {
		for _, one := range controls {
			rn := RoleName{Role: one.Role, Name: one.Name, Frame: frame}
			switch {
			case one.Shadow != shadow || one.Name == "" || !slices.Contains(listed, one.Role):
			case one.Hidden:
				lacks = append(lacks, rn)
			default:
				has = append(has, rn)
			}
		}
	}
	p := c.pages[page]
	switch aspect {
	case "main", "open_shadow":
		add(p.Controls, "main", aspect == "open_shadow")
	default:
		for _, f := range p.Frames {
			if f.Foreign == (aspect == "other_site") {
				add(c.pages[f.Page].Controls, aspect, false)
			}
		}
	}
	return has, lacks
}

// lacksOld asks of a list that was taken after the tab was loaded anew that it names something of the old page that must be gone.
func (c *covering) lacksOld(i int, e SnapshotExpect, node strict.Node) {
	at := c.deeds[i].at
	var before []string
	for j := range i {
		if d := c.deeds[j]; d.at == at && d.loads != "" && d.page != "" {
			before = append(before, d.page)
		}
	}
	gone := func(rn RoleName) bool {
		for _, page := range before {
			if slices.ContainsFunc(c.controls(page), func(o pages.Control) bool { return o.Role == rn.Role && o.Name == rn.Name }) &&
				!slices.ContainsFunc(c.controls(c.deeds[i].page), func(o pages.Control) bool { return o.Role == rn.Role && o.Name == rn.Name }) {
				return true
			}
		}
		return false
	}
	possible := false
	for _, page := range before {
		for _, o := range c.controls(page) {
			possible = possible || gone(RoleName{Role: o.Role, Name: o.Name})
		}
	}
	if possible && !slices.ContainsFunc(e.Lacks, gone) {
		node.Bad("%s: lacks names nothing of %s, which the tab showed before", c.row.Stem, strings.Join(before, ", "))
	}
}

// kinds holds the expectations that are the row's as a whole.
func (c *covering) kinds() {
	e := c.row.Expect
	there := map[string]bool{"profile": e.Profile != nil, "generation": len(e.Generation) > 0, "rounds": len(e.Rounds) > 0, "refusal": len(e.Refusal) > 0, "probes": e.Probes != "", "identifiers": e.Identifiers != "", "forged": e.Forged != ""}
	for _, kind := range c.requirement.Expects {
		if present, whole := there[kind]; whole && !present {
			c.bad("%s is missing: rows of %s expect it", kind, c.requirement.ID)
		}
	}
	if c.row.Desk.Machine == "paths_odd" && e.Profile == nil {
		c.bad("profile is missing: only what the browser uses shows that it came through the odd paths")
	}
	loads := 0
	for _, x := range e.Effect {
		if x.Loaded != "" && x.AtLeast > 0 {
			loads++
		}
	}
	if slices.Contains(c.requirement.Expects, "loads") && loads < 2 {
		c.bad("effect: rows of %s expect of two pages that each was loaded, at_least so often", c.requirement.ID)
	}
	bound := slices.ContainsFunc(flat(c.row.Steps), func(s Step) bool { return s.Verb == "bind" })
	if e.Elsewhere == "" && (bound || c.row.Launch != LaunchNone) {
		c.bad("elsewhere is missing: what happens in other places is judged, too")
	}
	if len(e.Effect)+len(e.Receipt)+len(e.Refusal)+len(e.Bind)+len(e.Snapshot)+len(e.Generation)+len(e.Blocks) == 0 && e.Profile == nil && e.Probes == "" && e.Forged == "" {
		c.bad("silence alone proves nothing: expect an effect, a refusal, a bind or a snapshot, too")
	}
}
