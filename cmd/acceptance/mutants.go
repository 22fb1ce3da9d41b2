package main

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/engine/cdp"
	"github.com/engine-acceptance/acceptance/engine/core"
	"github.com/engine-acceptance/acceptance/engine/mutant"
	"github.com/engine-acceptance/acceptance/engine/native"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/bundle"
	"github.com/engine-acceptance/acceptance/evidence/kills"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/matrix/canonical"
	"github.com/engine-acceptance/acceptance/suites/campaign"
	"github.com/engine-acceptance/acceptance/suites/host"
)

// mutantsRequest is what mutants is asked for.
type mutantsRequest struct {
	chosen []mutant.Mutant
	// rows narrow the rows of every mutant; nil leaves them as they are declared.
	rows []string
	// cross runs every mutant against every row of the plan.
	cross bool
	dir   string
}

// mutantsCommand runs engines that are wrong on purpose, and compares what they are killed for with what they declare. The engine without a defect
// passes the same rows first, in the same command: what it fails, no mutant can be blamed for. It exits 0 when every mutant was killed as declared, 1
// when one survived, was found out for something else, or the healthy engine failed, and 3 when rows could not be judged: those are about the machine,
// and are not run again here, for a row that is repeated until it is green proves nothing.
func mutantsCommand(ctx context.Context, args []string, std streams) int {
	f := newFlags("mutants", std)
	only := f.list("only", "globs over names of mutants, comma-separated")
	rows := f.list("rows", "globs that narrow the rows of each mutant; such a table never meets a policy")
	out := f.text("out", "", "folder of the kill table and the bundles")
	keyFile := f.text("key", "", "signing key of the kill table, PKCS#8 PEM")
	asJSON := f.is("json", "print the table as JSON")
	list := f.is("list", "print the mutants and what they declare, and run none")
	cross := f.is("cross", "run every mutant against every row of the plan")
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
		return listMutants(m, chosen, len(*only) == 0, std)
	}
	var key ed25519.PrivateKey
	if *keyFile != "" {
		if key, err = readKey(*keyFile); err != nil {
			std.say("%v", err)
			return exitUsage
		}
	}
	dir := *out
	if dir == "" {
		dir = filepath.Join("out", "mutants-"+time.Now().UTC().Format("20060102T150405Z"))
	}
	if !hasPrograms(ctx, std) {
		return exitUsage
	}
	file := filepath.Join(dir, "kills.json")
	if exists(file) {
		std.say("mutants: %s exists and is not overwritten; name another folder", file)
		return exitUsage
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		std.say("mutants: %v", err)
		return exitUsage
	}
	table, err := tryMutants(ctx, m, mutantsRequest{chosen, *rows, *cross, dir}, std)
	if err != nil {
		std.say("mutants: %v", err)
		return exitCannotJudge
	}
	raw, err := table.Marshal()
	if err == nil && key != nil {
		raw, err = table.Seal(key)
	}
	if err == nil {
		err = os.WriteFile(file, raw, 0o644)
	}
	if err == nil {
		table, _, _, err = kills.Read(raw, nil)
	}
	if err != nil {
		std.say("mutants: write the kill table: %v", err)
		return exitCannotJudge
	}
	return printKills(table, file, *asJSON, std)
}

// printKills prints what the table says and returns the exit code.
func printKills(table kills.Table, file string, asJSON bool, std streams) int {
	state, why := table.Result()
	code := exitRejected
	switch state {
	case kills.Killed:
		code = exitOK
	case kills.NotJudged:
		code = exitCannotJudge
	}
	if asJSON {
		if err := writeJSON(std.out, table); err != nil {
			std.say("write the result: %v", err)
			return exitCannotJudge
		}
		return code
	}
	for _, k := range table.Mutants {
		state, why := k.Judge()
		fmt.Fprintf(std.out, "%-28s %-16s %s\n", k.Name, state, why)
	}
	fmt.Fprintf(std.out, "table     %s, %s\nresult    %s\n", file, table.Digest[:12], why)
	return code
}

// listMutants prints what each declares, and, when every mutant is asked for, which engine-duty requirements have rows and no mutant.
func listMutants(m *matrix.Matrix, chosen []mutant.Mutant, all bool, std streams) int {
	for _, x := range chosen {
		word := "declares"
		if x.Coward {
			word = "rests on"
		}
		fmt.Fprintf(std.out, "%-28s %-16s %s\n%28s %s %v\n", x.Name, x.Seam, x.Text, "", word, x.Kills)
	}
	if !all {
		return exitOK
	}
	plan, err := planOf(m, request{"chromium", nil})
	if err != nil {
		std.say("mutants: %v", err)
		return exitUsage
	}
	bare := kills.Bare(*plan, declaredBy(chosen))
	fmt.Fprintf(std.out, "\n%s, %s with rows and no mutant: %v\n", plural(len(chosen), "mutant"), plural(len(bare), "engine-duty requirement"), bare)
	return exitOK
}

// declaredBy names the requirements that mutants declare to be killed for. Cowards do not count.
func declaredBy(all []mutant.Mutant) map[matrix.RequirementID]bool {
	out := map[matrix.RequirementID]bool{}
	for _, x := range all {
		for _, k := range x.Kills {
			if !x.Coward {
				out[matrix.RequirementID(k.Requirement)] = true
			}
		}
	}
	return out
}

// tryMutants runs the healthy engine and then each mutant. The error is about the request or the folder: what a mutant's run came to is in the table.
func tryMutants(ctx context.Context, m *matrix.Matrix, r mutantsRequest, std streams) (kills.Table, error) {
	table := kills.Table{Matrix: m.Digest(), Cross: r.cross}
	for _, x := range mutant.All() {
		table.Known = append(table.Known, x.Name)
	}
	whole, err := planOf(m, request{"chromium", nil})
	if err != nil {
		return table, err
	}
	table.Engine, table.Product, table.Environment = whole.Engine, string(whole.Product), string(whole.Environment)
	plans := map[string]*matrix.Plan{}
	union := map[matrix.RowID]bool{}
	for _, x := range r.chosen {
		own, err := ownRows(m, x, r.rows)
		if err != nil {
			return table, fmt.Errorf("%s: %w", x.Name, err)
		}
		plans[x.Name] = own
		for _, c := range own.Rows {
			union[c.ID] = true
		}
	}
	healthy := *whole
	if !r.cross {
		healthy.Rows = slices.DeleteFunc(slices.Clone(whole.Rows), func(c matrix.Contract) bool { return !union[c.ID] })
	}
	fmt.Fprintf(std.err, "acceptance: the healthy engine on %s\n", plural(len(healthy.Rows), "row"))
	result, err := runMutant(ctx, healthy, "", filepath.Join(r.dir, "healthy"), std)
	if err != nil {
		return table, fmt.Errorf("run the healthy engine: %w", err)
	}
	table.Harness, table.Commit, table.HealthyManifest = result.Provenance.Harness.SHA256, result.Provenance.Repository.Commit, manifestOf(filepath.Join(r.dir, "healthy"))
	for _, v := range result.Verdicts {
		table.Healthy = append(table.Healthy, kills.Seen(v, true))
	}
	for i, x := range r.chosen {
		fmt.Fprintf(std.err, "acceptance: mutant %d of %d: %s: %s\n", i+1, len(r.chosen), x.Name, x.Text)
		plan := *plans[x.Name]
		own := map[matrix.RowID]bool{}
		for _, c := range plan.Rows {
			own[c.ID] = true
		}
		if r.cross {
			plan.Rows = whole.Rows
		}
		k := tryMutant(ctx, plan, own, x, filepath.Join(r.dir, x.Name), std)
		table.Mutants = append(table.Mutants, k)
		state, why := k.Judge()
		fmt.Fprintf(std.err, "acceptance: %s: %s: %s\n", x.Name, state, why)
		if err := ctx.Err(); err != nil {
			return table, errors.New("interrupted")
		}
	}
	return table, nil
}

// ownRows are the rows of a mutant, narrowed where that was asked for.
func ownRows(m *matrix.Matrix, x mutant.Mutant, narrow []string) (*matrix.Plan, error) {
	plan, err := planOf(m, request{"chromium", x.Rows})
	if err != nil || narrow == nil {
		return plan, err
	}
	few, err := planOf(m, request{"chromium", narrow})
	if err != nil {
		return nil, err
	}
	wanted := map[matrix.RowID]bool{}
	for _, c := range few.Rows {
		wanted[c.ID] = true
	}
	plan.Rows = slices.DeleteFunc(plan.Rows, func(c matrix.Contract) bool { return !wanted[c.ID] })
	if len(plan.Rows) == 0 {
		return nil, fmt.Errorf("none of its rows is among %v", narrow)
	}
	return plan, nil
}

// runMutant carries rows out on a mutant; no name stands for the healthy engine. The rows are the whole plan: it lacks core rows, so it may say
// not_supported and never supported.
func runMutant(ctx context.Context, plan matrix.Plan, name, dir string, std streams) (campaign.Result, error) {
	plan.Subset, plan.Left, plan.Digest = false, nil, ""
	var err error
	if plan.Digest, err = canonical.Digest(plan); err != nil {
		return campaign.Result{}, err
	}
	cfg, code := runConfig(plan, "chromium", "", std)
	if code != exitOK {
		return campaign.Result{}, errors.New("cannot configure a run")
	}
	cfg.Dir = dir
	if name != "" {
		cfg.Engine = host.Command{Path: cfg.Binary, Args: []string{"role", "mutant", name}}
	}
	return campaign.Run(ctx, cfg)
}

// tryMutant runs one mutant.
func tryMutant(ctx context.Context, plan matrix.Plan, own map[matrix.RowID]bool, x mutant.Mutant, dir string, std streams) kills.Mutant {
	k := kills.Mutant{Name: x.Name, Seam: string(x.Seam), Text: x.Text, Coward: x.Coward, Declared: declared(x), Rows: []kills.Row{}}
	r, err := runMutant(ctx, plan, x.Name, dir, std)
	if err != nil {
		k.Error = err.Error()
		return k
	}
	for _, v := range r.Verdicts {
		k.Rows = append(k.Rows, kills.Seen(v, own[v.Row]))
	}
	// A mutant is a defect of the engine, whatever the state of the tree that it was built from.
	k.Decision = evidence.Decide(r.Plan, r.Verdicts, evidence.Standing{Verified: r.Finished, Clean: true}).Decision.String()
	k.Manifest = manifestOf(dir)
	return k
}

// declared are the pairs of a mutant, sorted.
func declared(x mutant.Mutant) []kills.Pair {
	out := []kills.Pair{}
	for _, k := range x.Kills {
		out = append(out, kills.Pair{Requirement: matrix.RequirementID(k.Requirement), Reason: evidence.Reason(k.Reason)})
	}
	slices.SortFunc(out, func(a, b kills.Pair) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// manifestOf is the sha256 of a bundle's manifest, "" when it has none.
func manifestOf(dir string) string {
	raw, err := os.ReadFile(filepath.Join(dir, bundle.ManifestFile))
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw))
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
	_ = os.MkdirAll(core.DefaultProfileRoot(), 0o700) // as the healthy engine does
	if p.Wire != nil {
		p.Adapter = cdp.New(cdp.Config{WireTap: (&wireLog{out: std.err}).tap, Wire: p.Wire})
	}
	cfg := core.Config{Adapter: p.Adapter, Native: p.Native}
	if !p.Unguarded {
		if cfg.Guardian, err = guardianCommand(); err != nil {
			std.say("role mutant: %v", err)
			return exitCannotJudge
		}
	}
	return serveOn(ctx, cfg, std, p.Wrap)
}
