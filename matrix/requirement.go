package matrix

import (
	"regexp"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix/strict"
)

// RequirementsFormat names the format and version of requirements.yaml.
const RequirementsFormat = "acceptance.requirements/v1"

// Claim is one of the nine chapters of the acceptance contract, and the folder that its rows live in.
type Claim string

// The closed list of claims.
const (
	ClaimSetup      Claim = "setup"
	ClaimBinding    Claim = "binding"
	ClaimGeneration Claim = "generation"
	ClaimMutation   Claim = "mutation"
	ClaimDesk       Claim = "desk"
	ClaimRefusal    Claim = "refusal"
	ClaimPrivacy    Claim = "privacy"
	ClaimEvidence   Claim = "evidence"
	ClaimJudge      Claim = "judge"
)

// Claims lists every claim, in the order of the contract.
var Claims = []Claim{ClaimSetup, ClaimBinding, ClaimGeneration, ClaimMutation, ClaimDesk, ClaimRefusal, ClaimPrivacy, ClaimEvidence, ClaimJudge}

// letters are the first letters of the requirements of each claim.
var letters = map[Claim]byte{ClaimSetup: 'S', ClaimBinding: 'B', ClaimGeneration: 'G', ClaimMutation: 'M', ClaimDesk: 'D', ClaimRefusal: 'R', ClaimPrivacy: 'P',
	ClaimEvidence: 'V', ClaimJudge: 'J'}

// Requirement is one thing that must be proven.
type Requirement struct {
	ID    RequirementID
	Claim Claim
	Duty  Duty
	// Must is the sentence that is proven; Reason says why it matters; Source says where it comes from.
	Must   string
	Reason string
	Source string
	// Codes are the refusal codes that its rows may meet.
	Codes []engine.Code
	// Aspects are the parts that rows must name one of; empty when the requirement has no parts.
	Aspects []string
	// Expects are the kinds of expectation that every row of it carries, beyond what follows from the row's steps.
	Expects []string
	// Receipts are the verbs whose receipts every row of it states, and SideEffects the flags that those receipts state.
	Receipts    []string
	SideEffects []string
	// Products and Environments narrow where it applies; empty means everywhere.
	Products     []engine.Product
	Environments []EnvironmentID
}

var (
	requirementForm = regexp.MustCompile(`^[SBGMDRPVJ][1-9][0-9]?$`)
	aspectForm      = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)
)

// kinds are what a requirement can ask of every row of it: bind and snapshot of each step that is one; active, within (of a refusal), budget (within,
// of a bind or receipt), value_before and hints of each entry that can state it; loads of two pages that are loaded at least so often; the others
// once a row.
var kinds = []string{"bind", "active", "snapshot", "profile", "generation", "rounds", "refusal", "within", "probes", "identifiers", "forged", "budget", "value_before", "hints", "loads"}

func readRequirements(top strict.Node, environments []string) []Requirement {
	o := top.Object("format", "requirements")
	o.Need("format").Enum(RequirementsFormat)
	seen := map[RequirementID]bool{}
	var all []Requirement
	for _, n := range o.Need("requirements").List() {
		f := n.Object("id", "claim", "duty", "must", "reason", "source", "codes", "aspects", "expects", "receipts", "side_effects", "applies")
		id := f.Need("id")
		req := Requirement{
			ID:     RequirementID(id.Text()),
			Claim:  Claim(f.Need("claim").Enum(texts(Claims)...)),
			Duty:   Duty(f.Need("duty").Enum(string(DutyEngine), string(DutyHarness))),
			Must:   f.Need("must").Text(),
			Reason: f.Need("reason").Text(),
			Source: f.Need("source").Text(),
		}
		switch {
		case req.ID == "":
		case !requirementForm.MatchString(string(req.ID)):
			id.Bad("%q is no requirement id; want a letter and a number such as M5", bounded(string(req.ID)))
		case req.Claim != "" && letters[req.Claim] != req.ID[0]:
			id.Bad("%s begins with another letter than the requirements of the claim %s", req.ID, req.Claim)
		}
		if seen[req.ID] {
			id.Bad("%s occurs twice", req.ID)
			continue
		}
		seen[req.ID] = true
		for _, c := range f.Get("codes").Words(texts(engine.Codes)...) {
			req.Codes = append(req.Codes, engine.Code(c))
		}
		for _, a := range f.Get("aspects").List() {
			word := a.Text()
			if word != "" && !aspectForm.MatchString(word) {
				a.Bad("%q is no aspect; want a word of a-z, 0-9 and _", bounded(word))
			}
			if contains(req.Aspects, word) {
				a.Bad("%q occurs twice", word)
			}
			req.Aspects = append(req.Aspects, word)
		}
		req.Expects = f.Get("expects").Words(kinds...)
		req.Receipts = f.Get("receipts").Words(verbNames()...)
		req.SideEffects = f.Get("side_effects").Words(sideEffects...)
		if len(req.SideEffects) > 0 && len(req.Receipts) == 0 {
			f.Get("side_effects").Bad("receipts is missing: whose receipts state them")
		}
		if applies := f.Get("applies"); applies.Exists() {
			a := applies.Object("products", "environments")
			for _, p := range a.Get("products").Words(texts(products)...) {
				req.Products = append(req.Products, engine.Product(p))
			}
			for _, e := range a.Get("environments").Words(environments...) {
				req.Environments = append(req.Environments, EnvironmentID(e))
			}
		}
		all = append(all, req)
	}
	return all
}
