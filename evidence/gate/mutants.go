package gate

import (
	"fmt"

	"github.com/engine-acceptance/acceptance/evidence/explain"
	"github.com/engine-acceptance/acceptance/evidence/kills"
)

// Kills is a kill table as it was read, and who signed it.
type Kills struct {
	Table kills.Table
	// Signer is the id of the key that its envelope names, empty for a bare table; Checked is true when the caller's key made its signature.
	Signer  string
	Checked bool
	// Problem says why it could not be read; Table is then zero.
	Problem string
}

// Instrumented is what a gate says of what was shown with mutants: on the same build of the harness, with faults in the engine's process, which
// is not the process that was judged.
const Instrumented = "shown on the instrumented build"

// mutants asks that every check was seen failing on this very build (J6). It returns what the table shows, empty where it shows nothing.
func (e *evaluation) mutants() string {
	rule, k := e.policy.Mutants, e.x.Kills
	const want = "a kill table of this build: every mutant killed as declared, the healthy engine green, a kill for every requirement with rows"
	switch {
	case rule == "unused":
		e.clause("mutants", true, "not used", "not looked at")
		return ""
	case k == nil:
		e.clause("mutants", rule == "optional", rule+" kill table", "none was given")
		return ""
	case k.Problem != "":
		e.clause("mutants", false, want, "%s", k.Problem)
		return ""
	}
	if e.policy.Signer.Required && !k.Checked {
		got := "signed by " + brief(k.Signer) + ", not checked: name the signer's key"
		if k.Signer == "" {
			got = "unsigned"
		}
		e.clause("mutants", false, "a kill table that the bundle's signer signed", "%s", got)
		return ""
	}
	p := e.report.ProvenanceContent
	problems := k.Table.Check(kills.Build{Harness: p.Harness.SHA256, Commit: p.Repository.Commit, Plan: e.plan, Cowards: e.x.Cowards})
	if len(problems) > 0 {
		got := problems[0]
		if n := len(problems) - 1; n > 0 {
			got = fmt.Sprintf("%s; and %d more", got, n)
		}
		e.clause("mutants", false, want, "%s", got)
		return ""
	}
	shown := fmt.Sprintf("%s killed as declared, table %s: %s", explain.Count(len(k.Table.Mutants), "mutant"), brief(k.Table.Digest), Instrumented)
	e.clause("mutants", true, want, "%s", shown)
	return shown
}

// brief is the beginning of a digest or key id.
func brief(s string) string { return s[:min(12, len(s))] }
