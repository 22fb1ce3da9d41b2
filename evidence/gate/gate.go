package gate

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"encoding/json"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/bundle"
	"github.com/engine-acceptance/acceptance/evidence/explain"
	"github.com/engine-acceptance/acceptance/evidence/ledger"
	"github.com/engine-acceptance/acceptance/evidence/verify"
	"github.com/engine-acceptance/acceptance/evidence/waiver"
	"github.com/engine-acceptance/acceptance/matrix"
)

// Format names the format and version of a [Decision].
const Format = "acceptance.gate/v1"

// skew is how far a run may seem to begin in the future, for the clocks of two machines differ.
const skew = 5 * time.Minute

// Status is what a gate says. The zero value is no success.
type Status string

// The closed list of statuses.
const (
	Met          Status = "met"
	NotMet       Status = "not_met"
	Undetermined Status = "undetermined"
	Expired      Status = "expired"
)

// Build names the build that somebody wants to release. Empty fields are not asked. A decision says nothing about any other build (V12).
type Build struct {
	ProductVersion, ProductSHA256 string
	EngineSHA256                  string
	HarnessSHA256, HarnessCommit  string
	PlanDigest                    string
}

// Baseline is an earlier bundle that nothing may be lost against (J13), as verify read it, and its kill table, nil when none was given.
type Baseline struct {
	Report verify.Report
	Kills  *Kills
}

// Waiver is a waiver as it was read, and who signed it.
type Waiver struct {
	Document waiver.Waiver
	// Signer is the id of the key that its envelope names; Checked is true when the caller's key made its signature.
	Signer  string
	Checked bool
	// Problem says why it could not be read, or that nobody signed it; Document is then zero.
	Problem string
}

// Extra is what a gate needs beside policy, bundle and ruling.
type Extra struct {
	Now time.Time
	// Began is when the run began by its own log; see [Began]. Zero means unknown.
	Began time.Time
	// Standing is what the ruling was made with; deviations decide again with it.
	Standing evidence.Standing
	// Features maps each feature to the requirements that deliver it.
	Features map[string][]matrix.RequirementID
	// Ledger is nil when none was given, Baseline as well.
	Ledger   *ledger.Ledger
	Baseline *Baseline
	Build    Build
	// Kills is nil when no kill table was given. Cowards are the mutants that must lose, by profiles.yaml.
	Kills   *Kills
	Cowards []string
	// Waiver is nil when none was given.
	Waiver *Waiver
}

// Clause is one thing that the policy asks.
type Clause struct {
	Name string `json:"clause"`
	Want string `json:"want"`
	Got  string `json:"got"`
	Met  bool   `json:"met"`
}

// Subject is exactly what a decision is about (V12).
type Subject struct {
	Engine         string    `json:"engine"`
	EngineSHA256   string    `json:"engine_sha256"`
	EngineCommit   string    `json:"engine_commit"`
	CommitBasis    string    `json:"engine_commit_basis"`
	Product        string    `json:"product"`
	ProductVersion string    `json:"product_version"`
	ProductSHA256  string    `json:"product_sha256"`
	Environment    string    `json:"environment"`
	Contract       string    `json:"support_contract_sha256"`
	Plan           string    `json:"plan_digest"`
	HarnessCommit  string    `json:"harness_commit"`
	HarnessSHA256  string    `json:"harness_sha256"`
	Manifest       string    `json:"manifest_sha256"`
	Signer         string    `json:"signer"`
	ValidUntil     time.Time `json:"valid_until"`
}

// Decision is what a gate came to.
type Decision struct {
	Format       string `json:"format"`
	Policy       string `json:"policy"`
	PolicySHA256 string `json:"policy_sha256"`
	Status       Status `json:"status"`
	// Decided is what decided, in one sentence.
	Decided string  `json:"decided"`
	Subject Subject `json:"subject"`
	// Ruling is the decision about the engine, with deviations counted in; its decision is expired where the gate says so.
	Ruling evidence.Ruling `json:"ruling"`
	// Clauses are all clauses of the policy, met or not, in a fixed order.
	Clauses []Clause `json:"clauses"`
	// Instrumented says what a kill table shows beside the bundle, empty when it shows nothing.
	Instrumented string `json:"instrumented,omitempty"`
	// Lost names what the baseline had; Waived what of it a signed waiver allows to be missing.
	Lost   []Loss   `json:"lost,omitempty"`
	Waived []Waived `json:"waived,omitempty"`
	// NotRederived is what verify took on trust.
	NotRederived []string `json:"not_rederived"`
}

// ExitCode is 0 met, 1 not met, 3 undetermined or expired. Any other status is 3.
func (d Decision) ExitCode() int {
	switch d.Status {
	case Met:
		return 0
	case NotMet:
		return 1
	}
	return 3
}

// Evaluate asks a policy of a bundle. It is pure.
func Evaluate(policy matrix.Policy, report verify.Report, ruling evidence.Ruling, x Extra) Decision {
	e := &evaluation{policy: policy, report: report, plan: report.PlanContent, x: x}
	d := Decision{Format: Format, Policy: policy.Name, PolicySHA256: policy.SHA256, Subject: subjectOf(policy, report, x), NotRederived: report.NotRederived}
	d.Ruling = e.deviations(ruling)
	e.bundle(d.Ruling)
	e.scope()
	e.features()
	e.origin()
	e.runs()
	d.Instrumented = e.mutants()
	d.Lost, d.Waived = e.baseline()
	otherBuild := e.build()
	tooOld := e.age()
	d.Clauses = e.clauses
	d.Status, d.Decided = e.sum(&d.Ruling, otherBuild, tooOld)
	return d
}

type evaluation struct {
	policy  matrix.Policy
	report  verify.Report
	plan    matrix.Plan
	x       Extra
	clauses []Clause
}

func (e *evaluation) clause(name string, met bool, want, format string, args ...any) {
	e.clauses = append(e.clauses, Clause{name, want, fmt.Sprintf(format, args...), met})
}

// sum puts the clauses together. What is undetermined or expired cannot be not met: nothing was said about the build at all.
func (e *evaluation) sum(r *evidence.Ruling, otherBuild, tooOld string) (Status, string) {
	switch {
	case e.report.Status != verify.OK:
		return Undetermined, fmt.Sprintf("the bundle does not verify: %s", e.report.Status)
	case otherBuild != "":
		return expired(r, "the bundle is about another build: "+otherBuild)
	case tooOld != "":
		return expired(r, tooOld)
	case r.Decision == evidence.Undetermined:
		return Undetermined, first(r.Reasons, "nothing was decided")
	}
	for _, c := range e.clauses {
		if !c.Met {
			return NotMet, fmt.Sprintf("%s: want %s, got %s", c.Name, c.Want, c.Got)
		}
	}
	return Met, fmt.Sprintf("%s, and every clause of policy %s is met", r.Decision, e.policy.Name)
}

func expired(r *evidence.Ruling, why string) (Status, string) {
	r.Decision, r.Reasons = evidence.Expired, slices.Concat([]string{why}, r.Reasons)
	return Expired, why
}

func first(list []string, otherwise string) string {
	if len(list) == 0 {
		return otherwise
	}
	return list[0]
}

// onlyTold stands for what is wanted where a policy only has it told.
const onlyTold = "anything, told here"

// bundle asks whether the bundle is whole, what it decides, and of which tree.
func (e *evaluation) bundle(r evidence.Ruling) {
	e.clause("verified", e.report.Status == verify.OK, "a whole, unaltered bundle", "%s, %s", e.report.Status, explain.Count(e.report.ProblemCount, "problem"))
	e.clause("decision", slices.Contains(e.policy.Accept, r.Decision.String()), strings.Join(e.policy.Accept, " or "), "%s", r.Decision)
	e.clause("all rows", !e.plan.Subset, "the full plan", "%s, %d left out", explain.Count(len(e.plan.Rows), "row"), len(e.plan.Left))
	state := string(e.report.ProvenanceContent.Repository.State)
	dirty := state != "clean" || e.report.ProvenanceContent.Engine.Dirty
	got := cmp.Or(state, "unknown") + " tree"
	if e.report.ProvenanceContent.Engine.Dirty {
		got += ", engine built from a changed tree"
	}
	want := "a clean tree"
	if e.policy.Dirty == "print" {
		want = onlyTold
	}
	e.clause("clean", !dirty || e.policy.Dirty == "print", want, "%s", got)
	e.provenance()
}

// provenance asks what a release needs to know of the programs: that harness and tree belong together, and that nothing stayed unknown. A
// policy that only prints dirt only prints this.
func (e *evaluation) provenance() {
	p := e.report.ProvenanceContent
	got := "every fact was collected"
	if !p.Harness.MatchesRepository {
		got = "the harness binary was not shown to be built from its commit"
	}
	if n := len(p.Problems); n > 0 {
		got = fmt.Sprintf("%s: %s", explain.Count(n, "fact"), p.Problems[0])
	}
	want := "harness built from its commit, every program known"
	ok := p.Acceptable()
	if e.policy.Dirty == "print" {
		want, ok = onlyTold, true
	}
	e.clause("provenance", ok, want, "%s", got)
}

// scope asks for product, environment and coverage.
func (e *evaluation) scope() {
	products := make([]string, 0, len(e.policy.Products))
	for _, p := range e.policy.Products {
		products = append(products, string(p))
	}
	e.clause("product", slices.Contains(e.policy.Products, e.plan.Product), strings.Join(products, " or "), "%s", cmp.Or(string(e.plan.Product), "none"))
	environments := make([]string, 0, len(e.policy.Environments))
	for _, id := range e.policy.Environments {
		environments = append(environments, string(id))
	}
	e.clause("environment", slices.Contains(e.policy.Environments, e.plan.Environment), strings.Join(environments, " or "), "%s", cmp.Or(string(e.plan.Environment), "none"))
	missing := make([]string, 0, len(e.plan.CoreMissing))
	for _, id := range e.plan.CoreMissing {
		missing = append(missing, string(id))
	}
	got, want := "all have rows", "rows for every core requirement"
	if len(missing) > 0 {
		got = fmt.Sprintf("%d without: %s", len(missing), listed(missing, 12))
	}
	if e.policy.Uncovered == "print" {
		want = onlyTold
	}
	// A bundle without core lists was made by no plan of ours: nothing is covered by nothing.
	known := len(e.plan.CoreDeliver)+len(e.plan.CoreHold) > 0
	if !known {
		got = "the plan names no core requirement"
	}
	e.clause("profile "+e.policy.Profile, known && (len(missing) == 0 || e.policy.Uncovered == "print"), want, "%s", got)
}

func listed(words []string, most int) string {
	if len(words) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
	}
	return strings.Join(words, ", ")
}

// features asks that each feature is claimed and that its rows delivered.
func (e *evaluation) features() {
	for _, feature := range e.policy.Features {
		got, ok := e.feature(feature)
		e.clause("feature "+feature, ok, "claimed and delivered", "%s", got)
	}
}

func (e *evaluation) feature(name string) (string, bool) {
	requirements := e.x.Features[name]
	switch {
	case !slices.Contains(e.plan.Features, name):
		return "not claimed", false
	case slices.Contains(e.plan.FeatureMissing, name):
		return "claimed, and no row delivers it", false
	case len(requirements) == 0:
		return "it is not known which requirements deliver it", false
	}
	for _, id := range requirements {
		rows := 0
		for _, r := range e.report.Rows {
			c, ok := e.contract(r.Row)
			if !ok || c.Requirement != id || c.Twin {
				continue
			}
			if rows++; r.Outcome != evidence.Pass {
				return fmt.Sprintf("%s is %s", r.Row, r.Outcome), false
			}
		}
		if rows == 0 {
			return fmt.Sprintf("no row delivers %s", id), false
		}
	}
	return "claimed and delivered", true
}

func (e *evaluation) contract(id matrix.RowID) (matrix.Contract, bool) {
	i := slices.IndexFunc(e.plan.Rows, func(c matrix.Contract) bool { return c.ID == id })
	if i < 0 {
		return matrix.Contract{}, false
	}
	return e.plan.Rows[i], true
}

// origin asks who signed.
func (e *evaluation) origin() {
	rule, signer := e.policy.Signer, e.report.Signer
	unsigned := signer == "" || signer == bundle.Unsigned
	got := "unsigned"
	if !unsigned {
		got = "signed by " + signer[:min(16, len(signer))]
		if e.report.SignatureChecked {
			got += ", checked"
		} else {
			got += ", not checked: name the signer's key"
		}
	}
	switch {
	case !rule.Required:
		e.clause("signer", true, "not asked", "%s", got)
	case len(rule.Keys) > 0:
		e.clause("signer", !unsigned && e.report.SignatureChecked && slices.Contains(rule.Keys, signer), "signed by a key of the policy", "%s", got)
	default:
		e.clause("signer", !unsigned && e.report.SignatureChecked, "signed by the key that is named", "%s", got)
	}
}

// runs asks the ledger for complete runs of the same commits (J3).
func (e *evaluation) runs() {
	want := explain.Count(e.policy.CompleteRuns, "complete run")
	complete := e.report.Status == verify.OK && !e.plan.Subset
	switch l := e.x.Ledger; {
	case e.policy.CompleteRuns <= 1 && l == nil:
		e.clause("complete runs", complete, want, "this run, complete: %t", complete)
	case l == nil:
		e.clause("complete runs", false, want, "no ledger was given")
	case len(l.Problems) > 0:
		e.clause("complete runs", false, want, "the ledger is broken at line %d: %s", l.Problems[0].Line, l.Problems[0].What)
	default:
		met, got := e.ledger(*l)
		e.clause("complete runs", met && complete, want, "%s", got)
	}
}

// ledger counts the runs of this plan at these commits. One of them that was not green keeps the policy from being met: running again
// until it is green is what a ledger is against.
func (e *evaluation) ledger(l ledger.Ledger) (bool, string) {
	p := e.report.ProvenanceContent
	n, here := 0, false
	for _, run := range l.Runs(p.Repository.Commit, p.Engine.SubjectCommit) {
		if run.Plan != e.plan.Digest || run.Engine != e.plan.Engine || run.Product != string(e.plan.Product) || run.Environment != string(e.plan.Environment) {
			continue
		}
		if run.ExitCode != 0 {
			return false, fmt.Sprintf("run %d of these commits ended with %d", run.Counter, run.ExitCode)
		}
		n++
		here = here || run.Manifest == e.report.Manifest
	}
	if !here {
		return false, fmt.Sprintf("%s, and this bundle is none of them", explain.Count(n, "run"))
	}
	return n >= e.policy.CompleteRuns, fmt.Sprintf("%s of these commits, all green", explain.Count(n, "run"))
}

// build compares what was judged with what is to be released; it returns the first difference.
func (e *evaluation) build() string {
	p, b := e.report.ProvenanceContent, e.x.Build
	version, digest := "", ""
	for _, br := range p.Browsers {
		if br.Product == e.plan.Product {
			version, digest = br.Version, br.SHA256
		}
	}
	differs := ""
	asked := 0
	for _, f := range []struct{ name, want, got string }{
		{"product version", b.ProductVersion, version}, {"product digest", b.ProductSHA256, digest}, {"engine digest", b.EngineSHA256, p.Engine.SHA256},
		{"harness digest", b.HarnessSHA256, p.Harness.SHA256}, {"harness commit", b.HarnessCommit, p.Repository.Commit}, {"plan digest", b.PlanDigest, e.plan.Digest},
	} {
		if f.want == "" {
			continue
		}
		if asked++; f.want != f.got && differs == "" {
			differs = fmt.Sprintf("%s is %s, asked for %s", f.name, cmp.Or(f.got, "unknown"), f.want)
		}
	}
	switch {
	case asked == 0:
		e.clause("build", true, "not asked", "%s, plan %s", cmp.Or(version, "unknown version"), e.plan.Digest[:min(12, len(e.plan.Digest))])
	default:
		e.clause("build", differs == "", "the build that is asked for", "%s", cmp.Or(differs, "the same"))
	}
	return differs
}

// age compares the run's begin with the policy; it returns why the bundle is too old.
func (e *evaluation) age() string {
	want := fmt.Sprintf("at most %s old", days(e.policy.MaxAge))
	began := e.x.Began
	old := e.x.Now.Sub(began)
	switch {
	case began.IsZero():
		e.clause("age", false, want, "the run log does not say when the run began")
		return ""
	case old < -skew:
		e.clause("age", false, want, "it began in the future: %s", began.UTC().Format(time.RFC3339))
		return ""
	case old > e.policy.MaxAge:
		e.clause("age", false, want, "%s", days(old))
		return fmt.Sprintf("the bundle is %s old, the policy allows %s", days(old), days(e.policy.MaxAge))
	}
	e.clause("age", true, want, "%s", days(max(0, old)))
	return ""
}

func days(d time.Duration) string {
	if d >= 48*time.Hour {
		return fmt.Sprintf("%d days", int(d/(24*time.Hour)))
	}
	return d.Round(time.Minute).String()
}

func subjectOf(policy matrix.Policy, r verify.Report, x Extra) Subject {
	plan, p := r.PlanContent, r.ProvenanceContent
	s := Subject{Engine: plan.Engine, EngineSHA256: p.Engine.SHA256, EngineCommit: p.Engine.SubjectCommit, CommitBasis: string(p.Engine.Basis), Product: string(plan.Product),
		Environment: string(plan.Environment), Contract: plan.EngineFile, Plan: plan.Digest, HarnessCommit: p.Repository.Commit, HarnessSHA256: p.Harness.SHA256,
		Manifest: r.Manifest, Signer: r.Signer}
	for _, b := range p.Browsers {
		if b.Product == plan.Product {
			s.ProductVersion, s.ProductSHA256 = b.Version, b.SHA256
		}
	}
	if !x.Began.IsZero() {
		s.ValidUntil = x.Began.Add(policy.MaxAge).UTC()
	}
	return s
}

// Began reads when the run of the bundle in dir began, by its own log. Verify holds the log together; the time itself is on trust.
func Began(dir string) (time.Time, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the run log: %w", err)
	}
	defer root.Close()
	var at time.Time
	_, err = explain.EachLine(root, bundle.LogFile, func(line []byte) bool {
		var l struct {
			Entry bundle.Entry `json:"entry"`
		}
		if json.Unmarshal(line, &l) == nil && l.Entry.Event == bundle.EventStart {
			at, _ = time.Parse(time.RFC3339Nano, l.Entry.Wall)
		}
		return false
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("read the run log: %w", err)
	}
	return at, nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
