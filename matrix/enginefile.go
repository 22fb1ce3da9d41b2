package matrix

import (
	"regexp"
	"slices"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix/strict"
)

// EngineFormat names the format and version of an engine file.
const EngineFormat = "acceptance.engine/v1"

// EngineFile is the public support contract of one engine, written by the engine's owner: what is claimed, for which products, where.
type EngineFile struct {
	Name             string
	Title            string
	Owner            string
	Family           engine.Family
	RequiredProtocol engine.Protocol
	Products         []ProductClaim
	Environments     []EnvironmentID
	Postures         []engine.Posture
	// Reconnect says that a lost connection is made anew to the same browser.
	Reconnect bool
	// Components are the parts of a capability that are proved anew before each action (G16).
	Components []string
	// Features are those of profiles.yaml that the engine claims beyond core.
	Features []string
	// Claims is the total capability table, in canonical order.
	Claims        []engine.Claim
	NotApplicable map[RequirementID]string
	Budgets       map[string]time.Duration
	// Command starts an engine from elsewhere: the program, then its arguments. Mapping is the file that says how it names tools and fields, empty
	// when it has the contract's names. Both are for files that are not part of the matrix.
	Command []string
	Mapping string
	// SHA256 is the digest of the file's bytes, hex.
	SHA256 string
}

// ProductClaim is one product with the versions that the contract is for: From at least, and below Before when that is set.
type ProductClaim struct {
	Product engine.Product
	From    string
	Before  string
}

// Lookup returns the claim about one capability.
func (e *EngineFile) Lookup(c engine.Capability) engine.Claim {
	return engine.Declaration{Claims: e.Claims}.Lookup(c)
}

// limitations are the words that the table may give for what is not declared, each with the trigger that the refusal then has.
var limitations = map[string]string{
	"undeclared":     "undeclared",
	"would_raise":    "would_touch_desk",
	"would_activate": "would_touch_desk",
	"would_grab":     "would_touch_desk",
}

// Budgets are the words that an engine file gives budgets for (design, numbers to reach).
var Budgets = []string{"launch", "bind", "action", "dialog_notice", "refusal", "refusal_without_wire"}

var versionForm = regexp.MustCompile(`^[0-9]{1,5}(\.[0-9]{1,6}){0,3}$`)

type engineContext struct {
	name         string
	requirements map[RequirementID]Requirement
	order        []string
	environments []string
	profiles     *Profiles
	// external is true for a file from outside of the matrix, which says how its engine is started.
	external bool
}

func readEngine(top strict.Node, ctx engineContext) *EngineFile {
	fields := []string{"format", "engine", "title", "owner", "family", "required_protocol", "products", "environments", "postures", "reconnect", "components",
		"features", "capabilities", "not_applicable", "budgets"}
	if ctx.external {
		fields = append(fields, "command", "mapping")
	}
	o := top.Object(fields...)
	o.Need("format").Enum(EngineFormat)
	e := &EngineFile{
		Name:             o.Need("engine").Text(),
		Title:            o.Need("title").Text(),
		Owner:            o.Need("owner").Text(),
		Family:           engine.Family(o.Need("family").Enum(texts(families)...)),
		RequiredProtocol: engine.Protocol(o.Need("required_protocol").Enum(string(engine.ProtocolCDP), string(engine.ProtocolBiDi), string(engine.ProtocolAutomation))),
		Reconnect:        o.Need("reconnect").Bool(),
		NotApplicable:    map[RequirementID]string{},
		Budgets:          map[string]time.Duration{},
	}
	if e.Name != "" && e.Name != ctx.name {
		o.Get("engine").Bad("the engine %q lives in a file of its own name, not in %s.yaml", bounded(e.Name), ctx.name)
	}
	list := o.Need("products")
	for _, n := range list.List() {
		f := n.Object("product", "from", "before")
		p := ProductClaim{Product: engine.Product(f.Need("product").Enum(texts(products)...)), From: version(f.Need("from"))}
		if f.Get("before").Exists() {
			p.Before = version(f.Get("before"))
		}
		if slices.ContainsFunc(e.Products, func(other ProductClaim) bool { return other.Product == p.Product }) {
			n.Bad("%s occurs twice", p.Product)
		}
		e.Products = append(e.Products, p)
	}
	if list.IsList() && len(e.Products) == 0 {
		list.Bad("no products")
	}
	for _, id := range nonEmpty(o.Need("environments"), ctx.environments) {
		e.Environments = append(e.Environments, EnvironmentID(id))
	}
	for _, p := range nonEmpty(o.Need("postures"), texts(postures)) {
		e.Postures = append(e.Postures, engine.Posture(p))
	}
	for _, n := range o.Need("components").List() {
		word := n.Text()
		if word != "" && !aspectForm.MatchString(word) || contains(e.Components, word) {
			n.Bad("%q must be a word of a-z, 0-9 and _, once", bounded(word))
		}
		e.Components = append(e.Components, word)
	}
	if ctx.profiles != nil {
		e.Features = o.Get("features").Words(ctx.profiles.FeatureNames()...)
		if o.Get("features").Exists() && slices.Contains(e.Features, "reconnect") != e.Reconnect {
			o.Get("features").Bad("the feature reconnect is claimed exactly when reconnect is true")
		}
	}
	if ctx.external {
		list := o.Need("command")
		for _, n := range list.List() {
			e.Command = append(e.Command, n.Text())
		}
		if list.IsList() && len(e.Command) == 0 {
			list.Bad("names no program")
		}
		if n := o.Get("mapping"); n.Exists() {
			e.Mapping = n.Text()
		}
	}
	e.Claims = capabilities(o.Need("capabilities"))
	e.notApplicable(o.Get("not_applicable"), ctx)
	budgets := o.Need("budgets").Object(Budgets...)
	for _, word := range Budgets {
		e.Budgets[word] = budgets.Need(word).Duration(maxBudget)
	}
	return e
}

func nonEmpty(n strict.Node, words []string) []string {
	got := n.Words(words...)
	if n.IsList() && len(n.List()) == 0 {
		n.Bad("is empty")
	}
	return got
}

func version(n strict.Node) string {
	s := n.Text()
	if s != "" && !versionForm.MatchString(s) {
		n.Bad("%q is no version; want digits and dots in quotes, such as \"156.0.7204\"", bounded(s))
	}
	return s
}

// notApplicable reads reviewed exceptions. A core requirement needs its pair in profiles.yaml, and is never one that must be delivered.
func (e *EngineFile) notApplicable(n strict.Node, ctx engineContext) {
	o := n.Map()
	for _, key := range o.Keys() {
		node := o.Get(key)
		id := RequirementID(key)
		reason := node.Text()
		if ctx.requirements[id].ID == "" {
			node.Bad("unknown requirement%s", strict.Hint(key, ctx.order))
			continue
		}
		if ctx.profiles != nil && ctx.profiles.isCore(id) {
			if _, ok := ctx.profiles.NotApplicable[id][e.Family]; !ok {
				node.Bad("%s is core, and profiles.yaml lists no reviewed exception of it for %s", id, e.Family)
				continue
			}
		}
		e.NotApplicable[id] = reason
	}
}

func (p *Profiles) isCore(id RequirementID) bool {
	if slices.Contains(p.Hold, id) {
		return true
	}
	for _, ds := range p.Deliver {
		for _, d := range ds {
			if slices.Contains(d.Any, id) {
				return true
			}
		}
	}
	return false
}

// capabilities reads the ordered rules of the table. The first rule that matches a cell wins; every cell must be met, and every rule must
// win at least one.
func capabilities(n strict.Node) []engine.Claim {
	type rule struct {
		node      strict.Node
		actions   []string
		routes    []string
		delivers  []string
		states    []string
		claim     engine.Claim
		wins      int
		malformed bool
	}
	const wild = "*"
	pattern := func(n strict.Node, words []string) ([]string, bool) {
		if n.IsScalar() && n.String() == wild {
			return words, true
		}
		got := n.Words(words...)
		return got, len(got) > 0
	}
	var rules []*rule
	for _, item := range n.List() {
		o := item.Object("action", "route", "delivery", "state", "declared", "limitation")
		r := &rule{node: item}
		var ok [4]bool
		r.actions, ok[0] = pattern(o.Need("action"), texts(engine.Actions))
		r.routes, ok[1] = pattern(o.Need("route"), texts(engine.Routes))
		r.delivers, ok[2] = pattern(o.Need("delivery"), texts(engine.Deliveries))
		r.states, ok[3] = pattern(o.Need("state"), texts(engine.States))
		r.malformed = ok != [4]bool{true, true, true, true}
		if at := o.Get("declared"); at.Exists() && !at.Bool() {
			at.Bad("want declared: true, or a limitation instead")
		} else {
			r.claim.Declared = at.Exists()
		}
		if at := o.Get("limitation"); at.Exists() {
			words := make([]string, 0, len(limitations))
			for w := range limitations {
				words = append(words, w)
			}
			slices.Sort(words)
			r.claim.Limitation = at.Enum(words...)
		}
		if o.Get("declared").Exists() == o.Get("limitation").Exists() && item.IsObject() {
			item.Bad("want either declared: true or a limitation")
		}
		rules = append(rules, r)
	}
	var claims []engine.Claim
	holes := 0
	var hole engine.Capability
	for _, c := range engine.AllCapabilities() {
		at := slices.IndexFunc(rules, func(r *rule) bool {
			return contains(r.actions, string(c.Action)) && contains(r.routes, string(c.Route)) && contains(r.delivers, string(c.Delivery)) &&
				contains(r.states, string(c.State))
		})
		if at < 0 {
			if holes++; holes == 1 {
				hole = c
			}
			continue
		}
		rules[at].wins++
		claim := rules[at].claim
		claim.Capability = c
		claims = append(claims, claim)
	}
	if holes > 0 && n.IsList() {
		n.Bad("not total: %d capabilities are met by no rule, the first is %s by %s, %s, %s", holes, hole.Action, hole.Route, hole.Delivery, hole.State)
	}
	for _, r := range rules {
		if r.wins == 0 && !r.malformed {
			r.node.Bad("never reached: earlier rules meet all that it matches")
		}
	}
	return claims
}
