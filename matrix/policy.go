package matrix

import (
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix/strict"
)

// PolicyFormat names the format and version of a policy file.
const PolicyFormat = "acceptance.policy/v1"

// Policy is what a gate asks of bundles.
type Policy struct {
	Name    string
	Profile string
	// Features must be claimed and delivered beside the profile.
	Features     []string
	Products     []engine.Product
	Environments []EnvironmentID
	// Accept are the decisions that meet the policy.
	Accept []string
	// Signer says whether a signature is required.
	Signer SignerRule
	// MaxAge is the greatest age of a bundle.
	MaxAge time.Duration
	// CompleteRuns is how many complete runs of the subject commit the ledger must show, this one included.
	CompleteRuns int
	// Deviations are known, owned and bounded departures; never in core.
	Deviations []Deviation
	// Baseline says whether a bundle to compare with (J13) is required, optional or not used.
	Baseline string
	// Mutants says whether a kill table of this very build (J6) is required, optional or not used.
	Mutants string
	// Uncovered "refuse": a core requirement without rows does not meet the policy; "print": it is listed.
	Uncovered string
	// Dirty says whether a dirty subject tree may be judged at all; it never meets a policy that refuses it.
	Dirty string
	// SHA256 is the digest of the file's bytes, hex.
	SHA256 string
}

// SignerRule is who must have signed. Keys are key ids; empty with Required means any key that the caller of gate names.
type SignerRule struct {
	Required bool
	Keys     []string
}

// Deviation is one known departure (J4).
type Deviation struct {
	Requirement RequirementID
	Row         string
	Owner       string
	Issue       string
	Reason      string
	Expires     time.Time
}

func readPolicy(top strict.Node, name string, ctx engineContext) *Policy {
	o := top.Object("format", "policy", "profile", "features", "products", "environments", "accept", "signer", "max_age", "complete_runs", "deviations",
		"baseline", "mutants", "uncovered", "dirty")
	o.Need("format").Enum(PolicyFormat)
	p := &Policy{Name: o.Need("policy").Text(), Profile: o.Need("profile").Enum("core")}
	if p.Name != "" && p.Name != name {
		o.Get("policy").Bad("the policy %q lives in a file of its own name, not in %s.yaml", bounded(p.Name), name)
	}
	if ctx.profiles != nil {
		p.Features = o.Get("features").Words(ctx.profiles.FeatureNames()...)
	}
	for _, v := range nonEmpty(o.Need("products"), texts(products)) {
		p.Products = append(p.Products, engine.Product(v))
	}
	for _, v := range nonEmpty(o.Need("environments"), ctx.environments) {
		p.Environments = append(p.Environments, EnvironmentID(v))
	}
	p.Accept = nonEmpty(o.Need("accept"), []string{"supported", "supported_with_limits", "experimental"})
	signer := o.Need("signer").Object("required", "keys")
	p.Signer.Required = signer.Need("required").Bool()
	for _, k := range signer.Get("keys").List() {
		p.Signer.Keys = append(p.Signer.Keys, k.Text())
	}
	p.MaxAge = o.Need("max_age").Duration(366 * 24 * time.Hour)
	p.CompleteRuns = o.Need("complete_runs").Int(1, 1000)
	p.Baseline = o.Need("baseline").Enum("required", "optional", "unused")
	p.Mutants = o.Need("mutants").Enum("required", "optional", "unused")
	p.Uncovered = o.Need("uncovered").Enum("refuse", "print")
	p.Dirty = o.Need("dirty").Enum("refuse", "print")
	for _, n := range o.Get("deviations").List() {
		f := n.Object("requirement", "row", "owner", "issue", "reason", "expires")
		d := Deviation{Requirement: RequirementID(f.Need("requirement").Enum(ctx.order...)), Row: f.Need("row").Text(), Owner: f.Need("owner").Text(),
			Issue: f.Need("issue").Text(), Reason: f.Need("reason").Text()}
		if at := f.Need("expires"); at.Exists() {
			t, err := time.Parse(time.DateOnly, at.Text())
			if err != nil {
				at.Bad("want a day in quotes such as \"2027-01-31\"")
			}
			d.Expires = t
		}
		if ctx.profiles != nil && d.Requirement != "" && ctx.profiles.isCore(d.Requirement) {
			f.Get("requirement").Bad("%s is core; core has no deviations", d.Requirement)
		}
		p.Deviations = append(p.Deviations, d)
	}
	return p
}
