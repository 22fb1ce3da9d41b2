package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/engine-acceptance/acceptance/engine/core"
	"github.com/engine-acceptance/acceptance/engine/mutant"
	"github.com/engine-acceptance/acceptance/engine/native"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/matrix/canonical"
	"github.com/engine-acceptance/acceptance/suites/campaign"
	"github.com/engine-acceptance/acceptance/suites/host"
)

// killTable is what mutants leave behind: which defect was killed for what, on which harness.
type killTable struct {
	Format string `json:"format"`
	// Harness is the sha256 of the program that judged; Commit its source.
	Harness string         `json:"harness_sha256"`
	Commit  string         `json:"harness_commit"`
	Matrix  string         `json:"matrix_sha256"`
	Mutants []killedMutant `json:"mutants"`
}

// killTableFormat names the format and version of a kill table.
const killTableFormat = "acceptance.kills/v1"

// killedMutant is one line of the table. Agrees is true when what was reported is exactly what was declared.
type killedMutant struct {
	Name     string        `json:"name"`
	Seam     mutant.Seam   `json:"seam"`
	Text     string        `json:"text"`
	Declared []mutant.Kill `json:"declared"`
	Reported []mutant.Kill `json:"reported"`
	Decision string        `json:"decision"`
	Rows     int           `json:"rows"`
	// Unjudged counts the rows that could not be judged; what they found says nothing about the mutant.
	Unjudged int    `json:"unjudged"`
	Agrees   bool   `json:"agrees"`
	Error    string `json:"error,omitempty"`
}

// mutantsCommand runs engines that are wrong on purpose, and compares what they are killed for with what they declare.
func mutantsCommand(ctx context.Context, args []string, std streams) int {
	f := newFlags("mutants", std)
	only := f.list("only", "globs over names of mutants, comma-separated")
	out := f.text("out", "", "folder of the kill table and the bundles")
	asJSON := f.is("json", "print the table as JSON")
	list := f.is("list", "print the mutants and what they declare, and run none")
	if !f.parse(args, 0, 0) {
		return exitUsage
	}
	m, err := load()
	if err != nil {
		std.say("%v", err)
		return exitUsage
	}
	chosen, err := chooseMutants(*only)
	if err != nil {
		std.say("mutants: %v", err)
		return exitUsage
	}
	if *list {
		for _, x := range chosen {
			fmt.Fprintf(std.out, "%-28s %-16s %s\n%28s declares %v\n", x.Name, x.Seam, x.Text, "", x.Kills)
		}
		return exitOK
	}
	dir := *out
	if dir == "" {
		dir = filepath.Join("out", "mutants-"+time.Now().UTC().Format("20060102T150405Z"))
	}
	if !hasPrograms(ctx, std) {
		return exitUsage
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		std.say("mutants: %v", err)
		return exitUsage
	}
	table := killTable{Format: killTableFormat, Matrix: m.Digest()}
	code := exitOK
	for i, x := range chosen {
		fmt.Fprintf(std.err, "acceptance: mutant %d of %d: %s: %s\n", i+1, len(chosen), x.Name, x.Text)
		k, r := tryMutant(ctx, m, x, filepath.Join(dir, x.Name), std)
		table.Mutants = append(table.Mutants, k)
		if r.Provenance.Harness.SHA256 != "" {
			table.Harness, table.Commit = r.Provenance.Harness.SHA256, r.Provenance.Repository.Commit
		}
		switch {
		case k.Error != "":
			code = exitCannotJudge
		case !k.Agrees && code == exitOK:
			code = exitRejected
		}
		verdict := "killed as declared"
		if !k.Agrees {
			verdict = fmt.Sprintf("NOT as declared: declared %v, reported %v, decision %s %s", k.Declared, k.Reported, k.Decision, k.Error)
		}
		fmt.Fprintf(std.err, "acceptance: %s: %s\n", x.Name, verdict)
		if ctx.Err() != nil {
			return exitCannotJudge
		}
	}
	raw, err := canonical.Marshal(table)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "kills.json"), append(raw, '\n'), 0o644)
	}
	if err != nil {
		std.say("mutants: write the kill table: %v", err)
		return exitCannotJudge
	}
	if *asJSON {
		if err := writeJSON(std.out, table); err != nil {
			std.say("write the result: %v", err)
			return exitCannotJudge
		}
		return code
	}
	for _, k := range table.Mutants {
		fmt.Fprintf(std.out, "%-28s %-8t %v %s\n", k.Name, k.Agrees, k.Reported, k.Decision)
	}
	fmt.Fprintf(std.out, "table     %s\n", filepath.Join(dir, "kills.json"))
	return code
}

// chooseMutants selects by globs; a pattern that meets none is an error with the nearest name.
func chooseMutants(patterns []string) ([]mutant.Mutant, error) {
	all := mutant.All()
	if len(patterns) == 0 {
		return all, nil
	}
	var names []string
	for _, x := range all {
		names = append(names, x.Name)
	}
	var out []mutant.Mutant
	for _, p := range patterns {
		met := false
		for _, x := range all {
			if ok, err := filepath.Match(p, x.Name); err == nil && ok {
				met = true
				if !slices.ContainsFunc(out, func(o mutant.Mutant) bool { return o.Name == x.Name }) {
					out = append(out, x)
				}
			}
		}
		if !met {
			return nil, fmt.Errorf("no mutant is named %q%s", p, nearest(p, names))
		}
	}
	return out, nil
}

// tryMutant runs one mutant against its rows.
func tryMutant(ctx context.Context, m *matrix.Matrix, x mutant.Mutant, dir string, std streams) (killedMutant, campaign.Result) {
	k := killedMutant{Name: x.Name, Seam: x.Seam, Text: x.Text, Declared: x.Kills}
	fail := func(err error) (killedMutant, campaign.Result) {
		k.Error = err.Error()
		return k, campaign.Result{}
	}
	plan, err := planOf(m, request{"chromium", x.Rows})
	if err != nil {
		return fail(err)
	}
	// The rows of a mutant are its whole plan: it lacks core rows, so it may say not_supported and never supported.
	plan.Subset, plan.Left, plan.Digest = false, nil, ""
	if plan.Digest, err = canonical.Digest(plan); err != nil {
		return fail(err)
	}
	cfg, code := runConfig(*plan, "chromium", "", std)
	if code != exitOK {
		return fail(fmt.Errorf("cannot configure a run"))
	}
	cfg.Dir, cfg.Engine = dir, host.Command{Path: cfg.Binary, Args: []string{"role", "mutant", x.Name}}
	r, err := campaign.Run(ctx, cfg)
	if err != nil {
		return fail(err)
	}
	k.Rows = len(r.Verdicts)
	k.Reported, k.Unjudged = reported(r.Verdicts)
	// A mutant is a defect of the engine, whatever the state of the tree that it was built from.
	k.Decision = evidence.Decide(*plan, r.Verdicts, evidence.Standing{Verified: r.Finished, Clean: true}).Decision.String()
	k.Agrees = k.Decision == evidence.NotSupported.String() && (x.Coward || sameKills(k.Declared, k.Reported))
	if !k.Agrees && k.Unjudged > 0 && !x.Coward {
		k.Error = plural(k.Unjudged, "row") + " could not be judged"
	}
	return k, r
}

// reported is the set of pairs that the failed rows of a run found, and how many rows could not be judged.
func reported(verdicts []evidence.Verdict) (out []mutant.Kill, unjudged int) {
	for _, v := range verdicts {
		switch v.Outcome {
		case evidence.Fail, evidence.Flaky:
		case evidence.Pass, evidence.NotApplicable:
			continue
		default:
			unjudged++
			continue
		}
		for _, f := range v.Findings {
			k := mutant.Kill{Requirement: string(f.Requirement), Reason: string(f.Reason)}
			if !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	sortKills(out)
	return out, unjudged
}

func sortKills(k []mutant.Kill) {
	slices.SortFunc(k, func(a, b mutant.Kill) int {
		if a.Requirement != b.Requirement {
			if a.Requirement < b.Requirement {
				return -1
			}
			return 1
		}
		if a.Reason < b.Reason {
			return -1
		}
		return 1
	})
}

func sameKills(a, b []mutant.Kill) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	sortKills(a)
	sortKills(b)
	return slices.Equal(a, b)
}

// mutantRole serves a mutant in the place of the engine. It is reachable as a role only, never by run.
func mutantRole(ctx context.Context, args []string, std streams) int {
	if len(args) != 1 {
		std.say("role mutant: want one name")
		return exitUsage
	}
	x, ok := mutant.Find(args[0])
	if !ok {
		std.say("role mutant: no mutant is named %q", args[0])
		return exitUsage
	}
	platform, err := native.Open(ctx, os.Getenv("DISPLAY"))
	if err != nil {
		platform = native.Unavailable()
	}
	defer platform.Close()
	p := x.Apply(mutant.Parts{Adapter: adapters["chromium"](std.err), Native: platform})
	cfg := core.Config{Adapter: p.Adapter, Native: p.Native}
	if !p.Unguarded {
		if cfg.Guardian, err = guardianCommand(); err != nil {
			std.say("role mutant: %v", err)
			return exitCannotJudge
		}
	}
	return serveOn(ctx, cfg, std, p.Wrap)
}
