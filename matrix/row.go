package matrix

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/fixtures/pages"
	"github.com/engine-acceptance/acceptance/matrix/strict"
)

// RowsFormat names the format and version of a row file.
const RowsFormat = "acceptance.rows/v1"

const (
	// maxBudget is the greatest budget of one row.
	maxBudget = 120 * time.Second
	// maxCross is the greatest number of rows that one template may become.
	maxCross = 256
	// maxSteps is the greatest number of steps of one row.
	maxSteps = 100
)

// Only restricts a row to engines that declare its needs, or to those that do not.
type Only string

// The closed list of restrictions; empty means that the row is for both, as a delivering row or as its refusal twin.
const (
	OnlyDeclared   Only = "declared"
	OnlyUndeclared Only = "undeclared"
)

// Row is one row of the matrix with its axes filled in, before it meets an engine file.
type Row struct {
	ID          RowID
	Stem        string
	Axes        map[string]string
	Requirement RequirementID
	Aspect      string
	Title       string
	Needs       *engine.Capability
	Only        Only
	Launch      Launch
	Desk        DeskPlan
	Steps       []Step
	Expect      Expect
	Budget      time.Duration
	// With and Without restrict a row to engines that claim, or do not claim, these features of profiles.yaml.
	With, Without []string
	Products      []engine.Product
	Environments  []EnvironmentID
	Source        string
}

var (
	stemForm = regexp.MustCompile(`^[a-z][a-z0-9_-]{1,62}[a-z0-9]$`)
	axisForm = regexp.MustCompile(`^[a-z][a-z_]{0,31}$`)
	// axisValueForm keeps RowIDs safe as file names and in globs.
	axisValueForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
)

// constraints are the last words of a name that Go's build takes for an operating system or an architecture, and "test": a stem becomes
// part of file names.
var constraints = []string{"aix", "android", "darwin", "dragonfly", "freebsd", "illumos", "ios", "js", "linux", "netbsd", "openbsd", "plan9", "solaris",
	"wasip1", "windows", "386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64", "ppc64le", "riscv64", "s390x", "wasm",
	"test", "unix", "zos", "hurd", "nacl"}

// reader reads row files against the requirements and triggers of the matrix.
type reader struct {
	requirements map[RequirementID]Requirement
	order        []string
	environments []string
	features     []string
	triggers     Triggers
	pages        pages.Set
	// stems remembers where each stem was first used, over all files.
	stems map[string]string
	rows  []Row
}

func (r *reader) file(top strict.Node, claim Claim, stem string) {
	if !stemForm.MatchString(stem) {
		top.Bad("the file's name %q has characters other than a-z, 0-9, - and _", stem)
	}
	if suffix := constrained(stem); suffix != "" {
		top.Bad("the file's name ends in _%s, which Go reads as a build constraint", suffix)
	}
	o := top.Object("format", "rows")
	o.Need("format").Enum(RowsFormat)
	rows := o.Need("rows")
	items := rows.List()
	if rows.IsList() && len(items) == 0 {
		rows.Bad("no rows")
	}
	for _, item := range items {
		r.template(item, claim, stem)
	}
}

func constrained(stem string) string {
	if at := strings.LastIndexByte(stem, '_'); at >= 0 && slices.Contains(constraints, stem[at+1:]) {
		return stem[at+1:]
	}
	return ""
}

var rowFields = []string{"id", "requirement", "aspect", "title", "axes", "include", "exclude", "needs", "only", "launch", "desk", "steps", "expect", "budget",
	"with", "without", "products", "environments"}

// template reads one entry of rows and adds a row for each combination of its axes.
func (r *reader) template(n strict.Node, claim Claim, file string) {
	o := n.Object(rowFields...)
	id := o.Need("id")
	stem := id.Text()
	if stem != "" {
		r.stem(id, stem, file)
	}
	for _, combo := range r.cross(o) {
		with := n.With(combo.variables)
		r.row(with.Object(rowFields...), stem, combo.axes, claim)
	}
}

func (r *reader) stem(id strict.Node, stem, file string) {
	switch {
	case !stemForm.MatchString(stem):
		id.Bad("the id %q must be 3 to 64 characters of a-z, 0-9, - and _, and begin with a letter", bounded(stem))
	case constrained(stem) != "":
		id.Bad("the id ends in _%s, which Go reads as a build constraint", constrained(stem))
	case stem != file && !strings.HasPrefix(stem, file+"-"):
		id.Bad("the id %q must be the file's name or begin with %q, so that who has one finds the other", stem, file+"-")
	}
	here := fmt.Sprintf("%s:%d", id.File(), id.Line())
	if first, twice := r.stems[stem]; twice {
		id.Bad("the id %q was used before, at %s", stem, first)
		return
	}
	r.stems[stem] = here
}

// combo is one combination of axis values, with the variables that it gives.
type combo struct {
	axes      map[string]string
	variables map[string]string
}

func (c combo) matches(want map[string]string) bool {
	for axis, v := range want {
		if c.axes[axis] != v {
			return false
		}
	}
	return true
}

// cross builds the product of the axes, less exclude, plus include.
func (r *reader) cross(o strict.Object) []combo {
	combos := []combo{{axes: map[string]string{}, variables: map[string]string{}}}
	axes := o.Get("axes").Map()
	names := axes.Keys()
	for _, axis := range names {
		node := axes.Get(axis)
		if !axisForm.MatchString(axis) {
			node.Bad("the axis %q must be a word of a-z and _", bounded(axis))
		}
		values := r.axis(node, axis)
		if len(combos)*len(values) > maxCross {
			axes.Node().Bad("more than %d combinations", maxCross)
			return nil
		}
		var next []combo
		for _, c := range combos {
			for _, v := range values {
				next = append(next, combo{axes: merge(c.axes, v.axes), variables: merge(c.variables, v.variables)})
			}
		}
		combos = next
	}
	if o.Get("axes").Exists() && len(names) == 0 {
		o.Get("axes").Bad("no axes")
	}
	for _, node := range o.Get("exclude").List() {
		want := r.partial(node, names, false)
		kept := slices.DeleteFunc(slices.Clone(combos), func(c combo) bool { return c.matches(want.axes) })
		switch {
		case len(want.axes) == 0:
		case len(kept) == len(combos):
			node.Bad("excludes nothing: no combination has these values")
		default:
			combos = kept
		}
	}
	for _, node := range o.Get("include").List() {
		extra := r.partial(node, names, true)
		for _, axis := range names {
			if extra.axes[axis] == "" {
				node.Bad("%s is missing: an included combination names every axis", axis)
			}
		}
		if slices.ContainsFunc(combos, func(c combo) bool { return c.matches(extra.axes) }) {
			node.Bad("includes a combination that is there already")
			continue
		}
		extra.variables = merge(extra.variables, extra.axes)
		combos = append(combos, extra)
	}
	if len(combos) == 0 && len(names) > 0 {
		o.Node().Bad("every combination is excluded")
	}
	return combos
}

// axis reads the values of one axis: a list of words, or a mapping of words to the variables that they stand for.
func (r *reader) axis(node strict.Node, axis string) []combo {
	var values []combo
	add := func(at strict.Node, word string, variables map[string]string) {
		if !axisValueForm.MatchString(word) {
			at.Bad("the value %q must be of a-z, 0-9, - and _", bounded(word))
			return
		}
		if slices.ContainsFunc(values, func(c combo) bool { return c.axes[axis] == word }) {
			at.Bad("the value %q occurs twice", word)
			return
		}
		variables = merge(variables, map[string]string{axis: word})
		values = append(values, combo{axes: map[string]string{axis: word}, variables: variables})
	}
	switch {
	case node.IsObject():
		o := node.Map()
		for _, word := range o.Keys() {
			variables := map[string]string{}
			inner := o.Get(word).Map()
			for _, name := range inner.Keys() {
				if !axisForm.MatchString(name) || name == axis {
					inner.Get(name).Bad("the variable %q must be a word of a-z and _, other than the axis", bounded(name))
				}
				variables[name] = plainText(inner.Get(name))
			}
			add(o.Get(word), word, variables)
		}
	default:
		for _, item := range node.List() {
			if word := item.Text(); word != "" {
				add(item, word, nil)
			}
		}
	}
	if len(values) == 0 {
		node.Bad("the axis has no values")
	}
	return values
}

// partial reads an entry of include or exclude: axis values, and for include variables too.
func (r *reader) partial(node strict.Node, names []string, variables bool) combo {
	c := combo{axes: map[string]string{}, variables: map[string]string{}}
	o := node.Map()
	if node.IsObject() && len(o.Keys()) == 0 {
		node.Bad("names no axis")
	}
	for _, key := range o.Keys() {
		v := plainText(o.Get(key))
		switch {
		case slices.Contains(names, key):
			if !axisValueForm.MatchString(v) {
				o.Get(key).Bad("the value %q must be of a-z, 0-9, - and _", bounded(v))
			}
			c.axes[key] = v
		case variables && axisForm.MatchString(key):
			c.variables[key] = v
		default:
			o.Get(key).Bad("unknown axis %q%s", bounded(key), strict.Hint(key, names))
		}
	}
	return c
}

// plainText reads text, or a whole number as its digits, for variables that stand for either.
func plainText(n strict.Node) string {
	if n.IsScalar() {
		if v, ok := n.Plain().(int); ok {
			return fmt.Sprint(v)
		}
	}
	return n.String()
}

func merge(a, b map[string]string) map[string]string {
	m := make(map[string]string, len(a)+len(b))
	for k, v := range a {
		m[k] = v
	}
	for k, v := range b {
		m[k] = v
	}
	return m
}

// rowID writes stem[axis=value,...], axes sorted.
func rowID(stem string, axes map[string]string) RowID {
	if len(axes) == 0 {
		return RowID(stem)
	}
	parts := make([]string, 0, len(axes))
	for axis, v := range axes {
		parts = append(parts, axis+"="+v)
	}
	sort.Strings(parts)
	return RowID(stem + "[" + strings.Join(parts, ",") + "]")
}

func (r *reader) row(o strict.Object, stem string, axes map[string]string, claim Claim) {
	row := Row{ID: rowID(stem, axes), Stem: stem, Axes: axes}
	if len(axes) == 0 {
		row.Axes = nil
	}
	here := o.Node()
	row.Source = fmt.Sprintf("%s:%d", path.Clean(here.File()), here.Line())

	node := o.Need("requirement")
	if id := node.Text(); id != "" {
		requirement, ok := r.requirements[RequirementID(id)]
		switch {
		case !ok:
			node.Bad("unknown requirement %q%s", bounded(id), strict.Hint(id, r.order))
		case requirement.Claim != claim:
			node.Bad("%s is a requirement of the claim %s; its rows belong in rows/%s, not in rows/%s", id, requirement.Claim, requirement.Claim, claim)
		}
		row.Requirement = RequirementID(id)
		if aspect := o.Get("aspect"); aspect.Exists() {
			row.Aspect = aspect.Enum(requirement.Aspects...)
		} else if ok && len(requirement.Aspects) > 0 {
			here.Bad("aspect is missing: %s has %s", id, strings.Join(requirement.Aspects, ", "))
		}
	}
	row.Title = o.Need("title").Text()
	row.Budget = o.Need("budget").Duration(maxBudget)
	row.Launch = Launch(o.Need("launch").Enum(string(LaunchFresh), string(LaunchShared), string(LaunchNone)))
	row.Needs = needs(o.Get("needs"))
	if only := o.Get("only"); only.Exists() {
		row.Only = Only(only.Enum(string(OnlyDeclared), string(OnlyUndeclared)))
		if row.Needs == nil {
			only.Bad("without needs there is nothing that could be %s", row.Only)
		}
	}
	row.With, row.Without = o.Get("with").Words(r.features...), o.Get("without").Words(r.features...)
	for _, f := range row.With {
		if contains(row.Without, f) {
			o.Get("without").Bad("%q is in with, too: no engine can be both", f)
		}
	}
	for _, p := range o.Get("products").Words(texts(products)...) {
		row.Products = append(row.Products, engine.Product(p))
	}
	for _, e := range o.Get("environments").Words(r.environments...) {
		row.Environments = append(row.Environments, EnvironmentID(e))
	}
	row.Desk = r.desk(o.Get("desk"), row.Launch)
	scope := newScope(&row, r.pages)
	r.steps(o.Need("steps"), scope)
	if only := row.Only; only == OnlyUndeclared {
		if o.Get("expect").Exists() {
			o.Get("expect").Bad("an undeclared row expects the refusal that the engine file's limitation gives; leave expect out")
		}
	} else {
		if expect := o.Need("expect"); expect.Exists() {
			r.expect(expect, scope)
			r.cover(expect, scope)
		}
	}
	scope.checkNeeds(o.Get("needs"))
	r.rows = append(r.rows, row)
}

// products is the closed list of products that rows, engine files and policies may name.
var products = []engine.Product{engine.ProductChromium, engine.ProductChrome, engine.ProductEdge, engine.ProductFirefox, engine.ProductSafari,
	engine.ProductMiniBrowser, engine.ProductEpiphany}

func needs(n strict.Node) *engine.Capability {
	if !n.Exists() {
		return nil
	}
	o := n.Object("action", "route", "delivery", "state")
	return &engine.Capability{
		Action:   engine.Action(o.Need("action").Enum(texts(engine.Actions)...)),
		Route:    engine.Route(o.Need("route").Enum(texts(engine.Routes)...)),
		Delivery: engine.Delivery(o.Need("delivery").Enum(texts(engine.Deliveries)...)),
		State:    engine.State(o.Need("state").Enum(texts(engine.States)...)),
	}
}

// desk reads the arrangement. A row that launches through the harness and names no window gets one with a blank page.
func (r *reader) desk(n strict.Node, launch Launch) DeskPlan {
	o := n.Object("kind", "windows", "person", "decoys", "machine")
	plan := DeskPlan{Person: PersonCovers}
	if kind := o.Get("kind"); kind.Exists() {
		plan.Kind = DeskKind(kind.Enum(texts(DeskKinds)...))
	}
	if person := o.Get("person"); person.Exists() {
		plan.Person = Person(person.Enum(string(PersonCovers), string(PersonPartlyCovers), string(PersonBeside)))
	}
	plan.Decoys = o.Get("decoys").Words(decoys...)
	if machine := o.Get("machine"); machine.Exists() {
		plan.Machine = machine.Enum(Machines...)
		if launch != LaunchNone {
			machine.Bad("launch %s: on such a machine the row launches itself, with launch none", launch)
		}
	}
	items := o.Get("windows").List()
	if len(items) > 8 {
		o.Get("windows").Bad("%d windows, at most 8", len(items))
	}
	if launch == LaunchNone && len(items) > 0 {
		o.Get("windows").Bad("launch none: nothing is arranged, the row's steps open every window")
	}
	for i, item := range items {
		plan.Windows = append(plan.Windows, r.window(item, i))
	}
	if launch != LaunchNone && len(items) == 0 {
		plan.Windows = []WindowPlan{{Opened: "launch", Tabs: []TabPlan{{Page: "blank.html", Visible: true}}}}
	}
	return plan
}

func (r *reader) window(n strict.Node, index int) WindowPlan {
	o := n.Object("opened", "bounds", "hidden", "tabs")
	w := WindowPlan{Opened: "launch"}
	if index > 0 {
		w.Opened = "person"
	}
	if opened := o.Get("opened"); opened.Exists() {
		word := opened.Enum("launch", "person", "page")
		if word != "" && (index == 0) != (word == "launch") {
			opened.Bad("the first window is opened by the launch, and only the first")
		}
		w.Opened = word
	}
	if bounds := o.Get("bounds"); bounds.Exists() {
		b := bounds.Object("x", "y", "w", "h")
		w.Bounds = &Bounds{X: b.Need("x").Int(-4000, 8000), Y: b.Need("y").Int(-4000, 8000), W: b.Need("w").Int(100, 8000), H: b.Need("h").Int(100, 8000)}
	}
	if hidden := o.Get("hidden"); hidden.Exists() {
		w.Hidden = Hidden(hidden.Enum(texts(hiddenWays)...))
	}
	tabs := o.Need("tabs")
	visible := -1
	for i, item := range tabs.List() {
		t := item.Object("page", "title", "visible")
		tab := TabPlan{Page: tabPage(t.Need("page"), r.pages)}
		if title := t.Get("title"); title.Exists() {
			tab.Title = title.Text()
			if _, err := Variables(tab.Title); err != nil {
				title.Bad("%s", err)
			}
		}
		if v := t.Get("visible"); v.Exists() && v.Bool() {
			if visible >= 0 {
				v.Bad("tab %d is visible already; a window shows one tab", visible+1)
			}
			visible = i
		}
		w.Tabs = append(w.Tabs, tab)
	}
	if tabs.IsList() && len(w.Tabs) == 0 || len(w.Tabs) > 16 {
		tabs.Bad("%d tabs, want 1 to 16", len(w.Tabs))
		return w
	}
	if len(w.Tabs) > 0 {
		w.Tabs[max(visible, 0)].Visible = true
	}
	return w
}

// hiddenWays lists every way to hide a window.
var hiddenWays = []Hidden{HiddenMinimised, HiddenElsewhere}

// page reads the name of a fixture page.
func page(n strict.Node, known pages.Set) string { return pageLike(n, known, pageForm) }

// tabPage reads a page of the desk, which may say something in its query.
func tabPage(n strict.Node, known pages.Set) string { return pageLike(n, known, tabPageForm) }

func pageLike(n strict.Node, known pages.Set, form *regexp.Regexp) string {
	s := n.String()
	if s == "" {
		return ""
	}
	if !form.MatchString(s) {
		n.Bad("%q is no fixture page; want a name such as form.html", bounded(s))
		return ""
	}
	if name, _, _ := strings.Cut(s, "?"); !hasPage(known, name) {
		n.Bad("there is no fixture page %q%s", bounded(s), strict.Hint(s, known.Names()))
		return ""
	}
	return s
}

func hasPage(known pages.Set, name string) bool { _, ok := known[name]; return ok }
