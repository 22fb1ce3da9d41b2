package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/bundle"
	"github.com/engine-acceptance/acceptance/evidence/explain"
	"github.com/engine-acceptance/acceptance/matrix"
)

// index is the content of index.html.
type index struct {
	Title                        string
	Decision, Word, Sign, Class  string
	Meaning                      string
	Engine, Product, Environment string
	Reasons, MoreReasons         []string
	Limits                       []string
	Counts                       []count
	Total                        int
	Subset                       int
	Incomplete                   bool
	Facts                        []fact
	Core                         []coreGroup
	CoreRows, CoreAll            int
	Uncovered                    []matrix.RequirementID
	Features, FeatureMissing     []string
	NotApplicable                []fact
	Requirements                 []requirementGroup
	Claims                       []claimGroup
	Capabilities                 []capability
	States                       []string
	Unclaimed                    string
	Differences                  int
	Dirt                         []string
	Problems                     []string
}

type count struct {
	Word string
	N    int
	look
}

type fact struct {
	Name, Value string
	// Short is shown with Value as its title when it is not empty.
	Short string
}

// indexRow is one line of the table of rows.
type indexRow struct {
	contract matrix.Contract
	outcome  evidence.Outcome
	Outcome  string
	look
	Requirement, ID, Title string
	Kind                   string
	Page                   string
	Reason, Text           string
	More                   int
	TookMS                 int64
	Attempts               int
}

type claimGroup struct {
	Name string
	Rows []indexRow
	Pass int
}

func indexRowOf(c matrix.Contract, v evidence.Verdict, page string, t times, attempts []explain.Attempt) indexRow {
	r := indexRow{contract: c, outcome: v.Outcome, Outcome: v.Outcome.String(), look: lookOf(v.Outcome), Requirement: string(c.Requirement), ID: string(c.ID), Title: c.Title,
		Kind: "deliver", Page: page, TookMS: t.rows[c.ID], Attempts: len(attempts)}
	if c.Aspect != "" {
		r.Requirement += " " + c.Aspect
	}
	if c.Twin {
		r.Kind = "refuse"
	}
	if len(v.Findings) > 0 {
		r.Reason, r.Text, r.More = string(v.Findings[0].Requirement)+" "+string(v.Findings[0].Reason), v.Findings[0].Text, len(v.Findings)-1
	}
	return r
}

// meanings say what a decision means, in one sentence.
var meanings = map[evidence.Decision]string{
	evidence.Supported:           "Every core requirement was delivered or held, judged from outside.",
	evidence.SupportedWithLimits: "Every core requirement was delivered or held, with the limits below.",
	evidence.Experimental:        "Every planned row passed, and the environment allows no stronger word.",
	evidence.NotSupported:        "The engine broke a requirement that it answers for.",
	evidence.Undetermined:        "Nothing may be said yet: something that decides was not shown.",
	evidence.Expired:             "The decision was about another build, or is too old.",
}

// firstReasons is how many reasons stand on the first screen.
const firstReasons = 6

// maxReasons bounds the reasons that are listed at all.
const maxReasons = 300

func indexPage(in Input, rows []indexRow, t times) index {
	p := in.Plan
	d := index{Title: fmt.Sprintf("%s on %s: %s", p.Engine, p.Product, in.Ruling.Decision), Decision: in.Ruling.Decision.String(),
		Word: strings.ReplaceAll(in.Ruling.Decision.String(), "_", " "), Meaning: meanings[in.Ruling.Decision], Engine: p.Engine, Product: string(p.Product),
		Environment: string(p.Environment), Limits: union(in.Ruling.Limits, p.Limits), Total: len(p.Rows), Subset: len(p.Left), Incomplete: in.Ruling.Incomplete,
		Features: p.Features, FeatureMissing: p.FeatureMissing}
	switch in.Ruling.Decision {
	case evidence.Supported, evidence.SupportedWithLimits:
		d.Sign, d.Class = "✓", "good"
	case evidence.NotSupported, evidence.Expired:
		d.Sign, d.Class = "✗", "bad"
	default:
		d.Sign, d.Class = "?", "open"
	}
	reasons := bounded(folded(in.Ruling.Reasons), maxReasons)
	d.Reasons, d.MoreReasons = reasons[:min(len(reasons), firstReasons)], reasons[min(len(reasons), firstReasons):]
	for _, id := range slices.Sorted(keysOf(p.NotApplicable)) {
		d.NotApplicable = append(d.NotApplicable, fact{Name: string(id), Value: p.NotApplicable[id]})
	}
	n := map[evidence.Outcome]int{}
	for _, v := range in.Verdicts {
		n[v.Outcome]++
	}
	for o := evidence.NotRun; o <= evidence.Flaky; o++ {
		if n[o] > 0 {
			d.Counts = append(d.Counts, count{o.String(), n[o], lookOf(o)})
		}
	}
	slices.SortStableFunc(d.Counts, func(a, b count) int { return cmp.Compare(rank(a.Class), rank(b.Class)) })
	d.Facts, d.Dirt = facts(in, t)
	d.Problems = bounded(in.Provenance.Problems, 20)
	d.coverage(in)
	d.requirements(in, rows)
	d.Claims = grouped(rows)
	d.capabilities(in)
	return d
}

// folded puts the reasons that differ by a core requirement only into one each, where the first of them stood, so that the first screen has room
// for the others.
func folded(reasons []string) []string {
	var out []string
	kinds := []string{" has no row", " was not run"}
	at, ids := map[string]int{}, map[string][]string{}
	for _, r := range reasons {
		id, isCore := strings.CutPrefix(r, "core requirement ")
		kind := ""
		for _, k := range kinds {
			if bare, ok := strings.CutSuffix(id, k); ok && isCore && len(bare) <= 8 {
				id, kind = bare, k
			}
		}
		if kind == "" {
			out = append(out, r)
			continue
		}
		if _, there := at[kind]; !there {
			at[kind] = len(out)
			out = append(out, r)
		}
		ids[kind] = append(ids[kind], id)
	}
	for kind, i := range at {
		if n := len(ids[kind]); n > 1 {
			words := map[string]string{" has no row": "have no row", " was not run": "were not run"}[kind]
			out[i] = fmt.Sprintf("%d core requirements %s: %s", n, words, strings.Join(ids[kind], ", "))
		}
	}
	return out
}

// rank puts what is wrong first.
func rank(class string) int { return slices.Index([]string{"bad", "open", "good", "mute"}, class) }

func keysOf[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// bounded cuts a list and says so in its last entry.
func bounded(list []string, most int) []string {
	if len(list) <= most {
		return list
	}
	return append(slices.Clone(list[:most]), fmt.Sprintf("and %d more", len(list)-most))
}

// facts say what was judged, exactly.
func facts(in Input, t times) ([]fact, []string) {
	p, v := in.Plan, in.Provenance
	var out []fact
	add := func(name, value string) { out = append(out, fact{Name: name, Value: cmp.Or(value, "unknown")}) }
	digest := func(name, value string) {
		if len(value) <= 12 {
			add(name, value)
			return
		}
		out = append(out, fact{Name: name, Value: value, Short: value[:12]})
	}
	for _, b := range v.Browsers {
		add("product", cmp.Or(b.Version, string(b.Product)))
		digest("product digest", b.SHA256)
	}
	add("environment", fmt.Sprintf("%s, %s, %s", p.Environment, v.System.Release, v.System.Arch))
	display := v.System.Display
	add("desk", strings.Join(slices.DeleteFunc([]string{display["server"], display["window_manager"], display["variant"], display["screen"]}, func(s string) bool { return s == "" }), ", "))
	separate := "the harness's own uid"
	if v.System.Separate {
		separate = "a uid of its own"
	}
	add("engine runs as", fmt.Sprintf("%s, browser sandbox %s", separate, cmp.Or(v.System.Sandbox, "unknown")))
	digest("engine artifact", v.Engine.SHA256)
	commit := "unknown"
	if v.Engine.SubjectCommit != "" {
		commit = v.Engine.SubjectCommit
	}
	add("engine commit", fmt.Sprintf("%s (%s)", short(commit), v.Engine.Basis))
	add("harness commit", fmt.Sprintf("%s (%s tree)", short(cmp.Or(v.Repository.Commit, "unknown")), v.Repository.State))
	digest("harness binary", v.Harness.SHA256)
	digest("plan", p.Digest)
	digest("support contract", p.EngineFile)
	digest("matrix", p.MatrixDigest)
	if in.Signer == bundle.Unsigned || in.Signer == "" {
		add("signer", "unsigned: nobody vouches for it")
	} else {
		out = append(out, fact{Name: "signer", Value: in.Signer, Short: in.Signer[:min(16, len(in.Signer))]})
	}
	if !t.start.IsZero() {
		add("run began", t.start.UTC().Format("2006-01-02 15:04:05 UTC"))
		add("valid until", t.start.Add(Validity).UTC().Format("2006-01-02")+", for this build only")
	} else {
		add("valid until", fmt.Sprintf("%d days from the run, for this build only", int(Validity/(24*time.Hour))))
	}
	var dirt []string
	for _, x := range v.Repository.Dirt {
		dirt = append(dirt, fmt.Sprintf("%s: %s", x.Path, x.Detail))
	}
	return out, bounded(dirt, 20)
}

func short(commit string) string { return commit[:min(12, len(commit))] }

type coreGroup struct {
	Name, Doc string
	Tiles     []tile
}

// tile is one core requirement.
type tile struct {
	ID, Word, Detail string
	Anchor           string
	look
}

// coverage says for each core requirement whether it was shown.
func (d *index) coverage(in Input) {
	p := in.Plan
	type tally struct{ all, pass, bad, open int }
	byReq := map[matrix.RequirementID]*tally{}
	for i, c := range p.Rows {
		t := byReq[c.Requirement]
		if t == nil {
			t = &tally{}
			byReq[c.Requirement] = t
		}
		t.all++
		switch lookOf(in.Verdicts[i].Outcome).Class {
		case "good", "mute":
			t.pass++
		case "bad":
			t.bad++
		default:
			t.open++
		}
	}
	d.Uncovered = p.CoreMissing
	of := func(id matrix.RequirementID) tile {
		t := byReq[id]
		anchor := "req-" + string(id)
		d.CoreAll++
		missing := slices.Contains(p.CoreMissing, id)
		switch {
		case t == nil && p.NotApplicable[id] != "":
			return tile{ID: string(id), Word: "not applicable", Detail: p.NotApplicable[id], Anchor: anchor, look: look{"–", "mute"}}
		case t == nil && missing:
			return tile{ID: string(id), Word: "no row", Detail: "no row proves it", Anchor: anchor, look: look{"○", "open"}}
		case t == nil:
			return tile{ID: string(id), Word: "left out", Detail: "its rows were left out of this run", Anchor: anchor, look: look{"○", "open"}}
		}
		d.CoreRows++
		detail := fmt.Sprintf("%s: %d pass, %d fail, %d not judged", explain.Count(t.all, "row"), t.pass, t.bad, t.open)
		switch {
		case t.bad > 0:
			return tile{string(id), fmt.Sprintf("%d/%d fail", t.bad, t.all), detail, anchor, look{"✗", "bad"}}
		case t.open > 0:
			return tile{string(id), fmt.Sprintf("%d/%d open", t.open, t.all), detail, anchor, look{"?", "open"}}
		case missing:
			return tile{string(id), "in part", detail + "; a part of it has no row", anchor, look{"○", "open"}}
		}
		return tile{string(id), fmt.Sprintf("%d pass", t.pass), detail, anchor, look{"✓", "good"}}
	}
	add := func(name, doc string, ids []matrix.RequirementID) {
		g := coreGroup{Name: name, Doc: doc}
		for _, id := range ids {
			g.Tiles = append(g.Tiles, of(id))
		}
		if len(g.Tiles) > 0 {
			d.Core = append(d.Core, g)
		}
	}
	add("delivered", "must be delivered by an engine that wants to be supported", p.CoreDeliver)
	for _, group := range p.CoreAny {
		add("one of", "one of these must be delivered", group)
	}
	add("held", "must hold, whatever the engine claims", p.CoreHold)
}

// claimNames are the chapters of the contract by the first letter of their requirements.
var claimNames = map[byte]matrix.Claim{'S': matrix.ClaimSetup, 'B': matrix.ClaimBinding, 'G': matrix.ClaimGeneration, 'M': matrix.ClaimMutation, 'D': matrix.ClaimDesk,
	'R': matrix.ClaimRefusal, 'P': matrix.ClaimPrivacy, 'V': matrix.ClaimEvidence, 'J': matrix.ClaimJudge}

// claimOf is the chapter that a requirement belongs to, "other" for what is named in none.
func claimOf(id matrix.RequirementID) matrix.Claim {
	if id != "" {
		if name, ok := claimNames[id[0]]; ok {
			return name
		}
	}
	return "other"
}

func grouped(rows []indexRow) []claimGroup {
	byClaim := map[matrix.Claim][]indexRow{}
	for _, r := range rows {
		claim := claimOf(r.contract.Requirement)
		byClaim[claim] = append(byClaim[claim], r)
	}
	var out []claimGroup
	for _, claim := range append(slices.Clone(matrix.Claims), "other") {
		g := claimGroup{Name: string(claim), Rows: byClaim[claim]}
		slices.SortStableFunc(g.Rows, func(a, b indexRow) int {
			return cmp.Or(cmp.Compare(rank(a.Class), rank(b.Class)), cmp.Compare(requirementNumber(a), requirementNumber(b)), cmp.Compare(a.ID, b.ID))
		})
		for i := range g.Rows {
			if g.Rows[i].outcome == evidence.Pass {
				g.Pass++
			}
		}
		if len(g.Rows) > 0 {
			out = append(out, g)
		}
	}
	return out
}

func requirementNumber(r indexRow) int {
	n := 0
	for _, c := range string(r.contract.Requirement) {
		if c >= '0' && c <= '9' {
			n = n*10 + int(c-'0')
		}
	}
	return n
}

// capability is one line of the capability table: an action by a route, over all states.
type capability struct {
	Action, Route, Delivery string
	Cells                   []cell
	Difference              []string
}

type cell struct {
	State, Claimed, Observed string
	look
}

// capabilities compares what is claimed with what was observed.
func (d *index) capabilities(in Input) {
	claims := map[engine.Capability]engine.Claim{}
	for _, c := range in.Plan.Declared {
		claims[c.Capability] = c
	}
	seen := map[engine.Capability][]int{}
	for i, c := range in.Plan.Rows {
		if c.Needs != nil {
			seen[*c.Needs] = append(seen[*c.Needs], i)
		}
	}
	for _, s := range engine.States {
		d.States = append(d.States, string(s))
	}
	var without []string
	for _, delivery := range engine.Deliveries {
		for _, a := range engine.Actions {
			offered := false
			for _, r := range engine.Routes {
				line := capability{Action: string(a), Route: string(r), Delivery: string(delivery)}
				shown := false
				for _, s := range engine.States {
					at := engine.Capability{Action: a, Route: r, Delivery: delivery, State: s}
					shown = shown || claims[at].Declared || len(seen[at]) > 0
					c := cellOf(in, claims[at], seen[at])
					c.State = string(s)
					if c.Class == "bad" {
						line.Difference = append(line.Difference, fmt.Sprintf("%s: %s, %s", s, c.Claimed, c.Observed))
					}
					line.Cells = append(line.Cells, c)
				}
				if shown {
					offered = true
					d.Differences += len(line.Difference)
					d.Capabilities = append(d.Capabilities, line)
				}
			}
			if !offered && delivery == engine.DeliveryBackground {
				without = append(without, string(a))
			}
		}
	}
	d.Unclaimed = strings.Join(without, ", ")
}

func cellOf(in Input, claim engine.Claim, rows []int) cell {
	c := cell{Claimed: "not claimed"}
	if claim.Declared {
		c.Claimed = "claimed"
	}
	var pass, bad, open int
	for _, i := range rows {
		switch lookOf(in.Verdicts[i].Outcome).Class {
		case "good":
			pass++
		case "bad":
			bad++
		default:
			open++
		}
	}
	done := "delivered"
	if !claim.Declared {
		done = "refused as due"
	}
	switch {
	case len(rows) == 0 && claim.Declared:
		c.Observed, c.look = "no row here", look{"○", "open"}
	case len(rows) == 0:
		c.Observed, c.look = "no row here", look{"", "mute"}
	case bad > 0:
		c.Observed, c.look = fmt.Sprintf("fails (%d/%d)", bad, len(rows)), look{"✗", "bad"}
	case open > 0:
		c.Observed, c.look = fmt.Sprintf("not judged (%d/%d)", open, len(rows)), look{"?", "open"}
	default:
		c.Observed, c.look = fmt.Sprintf("%s (%s)", done, explain.Count(pass, "row")), look{"✓", "good"}
	}
	return c
}

// union is both lists in order, each line once.
func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, line := range b {
		if !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}
