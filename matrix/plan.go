package matrix

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix/canonical"
	"github.com/engine-acceptance/acceptance/matrix/strict"
)

// PlanRequest says what to plan: one engine, one of its products, in one environment.
type PlanRequest struct {
	Engine      string
	Product     engine.Product
	Environment EnvironmentID
	// Select are globs (* and ?) over row ids, stems and requirement ids; empty selects every row.
	Select []string
}

// ErrNothingSelected: no row met the selection.
var ErrNothingSelected = errors.New("the selection meets no row")

// Plan fixes every expected row of a run. A selection that meets no row, or a pattern that meets none, is an error that names the
// nearest ids; a selection that leaves rows out makes the plan a subset. CoreMissing is counted over all rows, before the selection.
func (m *Matrix) Plan(req PlanRequest) (*Plan, error) {
	file, err := m.EngineFile(req.Engine)
	if err != nil {
		return nil, err
	}
	env, err := m.Environment(req.Environment)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(file.Products, func(p ProductClaim) bool { return p.Product == req.Product }) {
		var known []string
		for _, p := range file.Products {
			known = append(known, string(p.Product))
		}
		return nil, fmt.Errorf("engine %s claims no product %q%s", file.Name, bounded(string(req.Product)), strict.Hint(string(req.Product), known))
	}
	if env.Lane == LaneFull && !slices.Contains(file.Environments, req.Environment) {
		return nil, fmt.Errorf("engine %s claims no environment %q%s", file.Name, req.Environment, strict.Hint(string(req.Environment), texts(file.Environments)))
	}
	p := &Plan{
		Format: PlanFormat, Engine: file.Name, EngineFile: file.SHA256, MatrixDigest: m.digest, Product: req.Product, Environment: req.Environment,
		Declared: slices.Clone(file.Claims), Postures: slices.Clone(file.Postures), Reconnect: file.Reconnect, NotApplicable: maps.Clone(file.NotApplicable), Ceiling: env.Ceiling, Budgets: maps.Clone(file.Budgets),
		CoreHold: slices.Clone(m.profiles.Hold), Limits: slices.Clone(env.Limits), Features: slices.Clone(file.Features),
	}
	p.CoreDeliver, p.CoreAny = m.profiles.CoreDeliver()
	var all []Contract
	for _, row := range m.rows {
		if c, ok := m.contract(row, file, env, req); ok {
			all = append(all, c)
		}
	}
	for _, r := range m.requirements {
		if r.applies(req) {
			p.Requirements = append(p.Requirements, PlanRequirement{ID: r.ID, Claim: r.Claim, Duty: r.Duty, Must: r.Must})
		}
	}
	p.CoreMissing = m.coreMissing(all, file)
	for _, feature := range file.Features {
		if slices.ContainsFunc(m.profiles.Features[feature], func(id RequirementID) bool { return !delivered(all, id) }) {
			p.FeatureMissing = append(p.FeatureMissing, feature)
		}
	}
	if err := p.choose(all, req.Select); err != nil {
		return nil, err
	}
	p.Digest, err = canonical.Digest(p)
	if err != nil {
		return nil, fmt.Errorf("digest of the plan: %w", err)
	}
	return p, nil
}

// CheckDigest recomputes the digest of a plan that was read from a file.
func (p *Plan) CheckDigest() error {
	bare := *p
	bare.Digest = ""
	got, err := canonical.Digest(&bare)
	if err != nil {
		return fmt.Errorf("digest of the plan: %w", err)
	}
	if got != p.Digest {
		return fmt.Errorf("the plan's digest is %s, its content gives %s", bounded(p.Digest), got)
	}
	return nil
}

// applies says whether a requirement is for the product and the environment that a plan is asked for.
func (r Requirement) applies(req PlanRequest) bool {
	return (len(r.Products) == 0 || slices.Contains(r.Products, req.Product)) && (len(r.Environments) == 0 || slices.Contains(r.Environments, req.Environment))
}

// contract makes a row of this product and environment of it; false when the row is for others.
func (m *Matrix) contract(row Row, file *EngineFile, env Environment, req PlanRequest) (Contract, bool) {
	requirement := m.byID[row.Requirement]
	for _, limit := range [][]engine.Product{row.Products, requirement.Products} {
		if len(limit) > 0 && !slices.Contains(limit, req.Product) {
			return Contract{}, false
		}
	}
	named := false
	for _, limit := range [][]EnvironmentID{row.Environments, requirement.Environments} {
		if len(limit) > 0 && !slices.Contains(limit, req.Environment) {
			return Contract{}, false
		}
		named = named || len(limit) > 0
	}
	if env.Lane == LaneRefusal && !named {
		return Contract{}, false
	}
	claims := func(feature string) bool { return slices.Contains(file.Features, feature) }
	if slices.ContainsFunc(row.Without, claims) || slices.ContainsFunc(row.With, func(f string) bool { return !claims(f) }) {
		return Contract{}, false
	}
	c := Contract{
		ID: row.ID, Stem: row.Stem, Axes: row.Axes, Requirement: row.Requirement, Aspect: row.Aspect, Duty: requirement.Duty, Title: row.Title, Product: req.Product,
		Environment: req.Environment, Needs: row.Needs, Launch: row.Launch, Desk: row.Desk, Steps: row.Steps, Expect: row.Expect, Budget: row.Budget,
		Source: row.Source,
	}
	if c.Desk.Kind == "" {
		c.Desk.Kind = env.Desk
	}
	if row.Needs == nil {
		return c, true
	}
	claim := file.Lookup(*row.Needs)
	if claim.Declared {
		return c, row.Only != OnlyUndeclared
	}
	if row.Only == OnlyDeclared {
		return Contract{}, false
	}
	c.twin(claim)
	return c, true
}

// twin turns a delivering row into the refusal that must come instead: everything up to the step that needs what is not declared, then
// the ends of sessions; what was expected of those steps stays, and nothing may happen anywhere.
func (c *Contract) twin(claim engine.Claim) {
	c.Twin = true
	at := slices.IndexFunc(c.Steps, func(s Step) bool { return s.Exercises(*c.Needs) })
	refused := c.Steps[at]
	steps := slices.Clone(c.Steps[:at+1])
	for _, s := range c.Steps[at+1:] {
		if s.Verb == "end_session" {
			steps = append(steps, s)
		}
	}
	kept := func(name string) bool {
		return name != refused.Name && slices.ContainsFunc(steps, func(s Step) bool { return s.Name == name })
	}
	trigger := limitations[claim.Limitation]
	e := Expect{Elsewhere: "silent", Profile: c.Expect.Profile, Probes: c.Expect.Probes}
	switch trigger {
	case "would_touch_desk":
		e.Refusal = []RefusalExpect{{Of: refused.Name, Code: engine.CodeInputTrustUnavailable, Trigger: trigger,
			Detail: map[string]string{"requested_route": string(claim.Route), "limitation": claim.Limitation}}}
	default:
		e.Refusal = []RefusalExpect{{Of: refused.Name, Code: engine.CodeActionUnavailable, Trigger: trigger,
			Detail: map[string]string{"action": string(claim.Action), "limitation": claim.Limitation}}}
	}
	if e.Profile != nil && !kept(e.Profile.Of) {
		e.Profile = nil
	}
	for _, b := range c.Expect.Bind {
		if kept(b.Of) {
			e.Bind = append(e.Bind, b)
		}
	}
	for _, s := range c.Expect.Snapshot {
		if kept(s.Of) {
			e.Snapshot = append(e.Snapshot, s)
		}
	}
	for _, r := range c.Expect.Rounds {
		if kept(r.Of) {
			e.Rounds = append(e.Rounds, r)
		}
	}
	for _, g := range c.Expect.Generation {
		if kept(g.Before) && kept(g.After) {
			e.Generation = append(e.Generation, g)
		}
	}
	for _, r := range c.Expect.Refusal {
		if kept(r.Of) {
			e.Refusal = append(e.Refusal, r)
		}
	}
	for _, r := range c.Expect.Receipt {
		if kept(r.Of) {
			e.Receipt = append(e.Receipt, r)
		}
	}
	c.Steps, c.Expect = steps, e
}

// delivered says whether a row that is no twin covers the requirement.
func delivered(rows []Contract, id RequirementID) bool {
	return slices.ContainsFunc(rows, func(c Contract) bool { return c.Requirement == id && !c.Twin })
}

// coreMissing lists the core requirements that no row covers. What must be delivered is covered by a delivering row for each aspect that
// core asks for; what must hold, by any row.
func (m *Matrix) coreMissing(rows []Contract, file *EngineFile) []RequirementID {
	covered := func(id RequirementID, aspect string, delivering bool) bool {
		return slices.ContainsFunc(rows, func(c Contract) bool {
			return c.Requirement == id && (aspect == "" || c.Aspect == aspect) && !(delivering && c.Twin)
		})
	}
	var missing []RequirementID
	for _, group := range m.profiles.Groups {
		for _, d := range m.profiles.Deliver[group] {
			aspects := d.Only
			if len(aspects) == 0 {
				aspects = []string{""}
			}
			all := slices.ContainsFunc(d.Any, func(id RequirementID) bool {
				return !slices.ContainsFunc(aspects, func(a string) bool { return !covered(id, a, true) })
			})
			if !all {
				missing = append(missing, d.Any...)
			}
		}
	}
	for _, id := range m.profiles.Hold {
		if _, exempt := file.NotApplicable[id]; !exempt && !covered(id, "", false) {
			missing = append(missing, id)
		}
	}
	return missing
}

// choose keeps the selected rows.
func (p *Plan) choose(all []Contract, patterns []string) error {
	if len(all) == 0 {
		return fmt.Errorf("%w: no row is for %s in %s", ErrNothingSelected, p.Product, p.Environment)
	}
	if len(patterns) == 0 {
		p.Rows = all
		return nil
	}
	met := make([]bool, len(patterns))
	for _, c := range all {
		chosen := false
		for i, pattern := range patterns {
			if glob(pattern, string(c.ID)) || glob(pattern, c.Stem) || glob(pattern, string(c.Requirement)) {
				met[i], chosen = true, true
			}
		}
		if chosen {
			p.Rows = append(p.Rows, c)
		} else {
			p.Left = append(p.Left, c.ID)
		}
	}
	var errs []error
	for i, ok := range met {
		if ok {
			continue
		}
		errs = append(errs, fmt.Errorf("%w: %q%s", ErrNothingSelected, bounded(patterns[i]), nearRows(patterns[i], all)))
	}
	p.Subset = len(p.Left) > 0
	return errors.Join(errs...)
}

// nearRows hints at the ids that a pattern may have meant.
func nearRows(pattern string, all []Contract) string {
	bare := strings.Trim(pattern, "*?")
	var known []string
	for _, c := range all {
		for _, name := range []string{string(c.ID), c.Stem, string(c.Requirement)} {
			if !slices.Contains(known, name) {
				known = append(known, name)
			}
		}
	}
	slices.Sort(known)
	var near []string
	for range 3 {
		n := strict.Nearest(bare, known)
		if n == "" {
			break
		}
		near = append(near, n)
		known = slices.DeleteFunc(known, func(s string) bool { return s == n })
	}
	if len(near) == 0 {
		return "; `plan` lists every row"
	}
	return "; nearest: " + strings.Join(near, ", ")
}

// glob matches * (any text) and ? (one character); everything else stands for itself, brackets too.
func glob(pattern, s string) bool {
	p, t := []rune(pattern), []rune(s)
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(t) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == t[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
