package main

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/engine/cdp"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/bundle"
	"github.com/engine-acceptance/acceptance/evidence/ledger"
	"github.com/engine-acceptance/acceptance/evidence/provenance"
	"github.com/engine-acceptance/acceptance/evidence/statement"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/campaign"
	"github.com/engine-acceptance/acceptance/suites/host"
)

// environmentOf is the environment that this process can give: as an ordinary user engine and browsers have our own uid, which is an
// environment of its own because the engine's separation from the bundle is then not enforced by the kernel.
func environmentOf(file *matrix.EngineFile) matrix.EnvironmentID {
	const shared = "x11-user"
	if os.Getuid() != 0 && slices.Contains(file.Environments, shared) {
		return shared
	}
	return file.Environments[0]
}

// globs splits a comma-separated list of patterns.
func globs(list string) []string {
	var out []string
	for g := range strings.SplitSeq(list, ",") {
		if g = strings.TrimSpace(g); g != "" {
			out = append(out, g)
		}
	}
	return out
}

// runSummary is what run prints with --json.
type runSummary struct {
	Bundle   string          `json:"bundle"`
	Report   string          `json:"report"`
	Plan     string          `json:"plan_digest"`
	Finished bool            `json:"finished"`
	Signer   string          `json:"signer"`
	TookMS   int64           `json:"took_ms"`
	Ruling   evidence.Ruling `json:"ruling"`
	Rows     []rowSummary    `json:"rows"`
	Error    string          `json:"error,omitempty"`
}

type rowSummary struct {
	Row      matrix.RowID       `json:"row"`
	Outcome  evidence.Outcome   `json:"outcome"`
	TookMS   int64              `json:"took_ms"`
	Findings []evidence.Finding `json:"findings,omitempty"`
}

// hasPrograms says of every program that a run needs and that is missing what to do, and returns whether none is.
func hasPrograms(ctx context.Context, std streams) bool {
	missing := preflight(ctx)
	for _, p := range missing {
		std.say("%s: %s; %s", p.Name, p.Problem, p.Fix)
	}
	return len(missing) == 0
}

// runCommand carries a plan out.
func runCommand(ctx context.Context, args []string, std streams) int {
	f := newFlags("run", std)
	engineName := f.text("engine", "chromium", "engine: a name of the matrix, or a .yaml file of one from elsewhere")
	rows := f.list("rows", "globs over rows and requirements, comma-separated")
	out := f.text("out", "", "folder of the bundle")
	key := f.text("key", "", "signing key, PKCS#8 PEM")
	runs := f.text("ledger", "", "ledger that a run of the whole plan is added to, whatever it ends with: gate --ledger reads it")
	asJSON := f.is("json", "print the result as JSON")
	// Not for people: make bench measures rows with and without film. Without one, no row can pass (film_missing).
	withoutFilm := f.is("no-film-for-bench", "measure rows without film; none of them can pass")
	verbose := f.is("v", "show what worker and Ginkgo say")
	if !f.parse(args, 0, 0) {
		return exitUsage
	}
	m, plan, ok := loadPlan(std, request{*engineName, *rows})
	if !ok {
		return exitUsage
	}
	if err := recordable(*runs, *plan); err != nil {
		std.say("run: %v", err)
		return exitUsage
	}
	cfg, code := runConfig(*plan, plan.Engine, *key, std)
	if code != exitOK {
		return code
	}
	if external(*engineName) {
		_, file, err := withEngine(m, *engineName)
		if err == nil {
			cfg.Engine, err = commandOf(*engineName, file, cfg.Binary)
		}
		if err != nil {
			std.say("%v", err)
			return exitUsage
		}
	}
	cfg.Dir, cfg.WithoutFilm = *out, *withoutFilm
	if cfg.Dir == "" {
		cfg.Dir = filepath.Join("out", time.Now().UTC().Format("20060102T150405Z"))
	}
	if !hasPrograms(ctx, std) {
		return exitUsage
	}
	if err := os.MkdirAll(filepath.Dir(cfg.Dir), 0o755); err != nil {
		std.say("make the folder of the bundle: %v", err)
		return exitUsage
	}
	if *verbose {
		cfg.Log = std.err
	}
	show := newProgress(std, len(plan.Rows), *asJSON)
	cfg.Progress = show.event
	fmt.Fprintf(std.err, "acceptance: %s on %s, %s, %s planned, plan %s\n", plan.Engine, plan.Product, plan.Environment, plural(len(plan.Rows), "row"), plan.Digest[:12])
	result, err := campaign.Run(ctx, cfg)
	if !errors.Is(err, bundle.ErrExists) {
		show.end()
	}
	if err != nil && ctx.Err() != nil {
		// Every part of the run says in its own words that it was told to stop; once is enough.
		err = fmt.Errorf("%w: what is there verifies as incomplete", errInterrupted)
	}
	code = finishRun(std, cfg, result, err, *asJSON)
	if err := record(ctx, *runs, cfg, result, code); err != nil {
		std.say("run: %v", err)
		return exitCannotJudge
	}
	return code
}

// recordable says why a run of a plan cannot be added to a ledger, before it is carried out.
func recordable(path string, plan matrix.Plan) error {
	if path == "" {
		return nil
	}
	if plan.Subset {
		return errors.New("--ledger lists runs of the whole plan: leave --rows out")
	}
	l, err := ledger.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(l.Problems) > 0:
		return fmt.Errorf("ledger %s: line %d: %s; nothing is added to what cannot be believed", path, l.Problems[0].Line, l.Problems[0].What)
	}
	return nil
}

// record adds a complete run to a ledger.
func record(ctx context.Context, path string, cfg campaign.Config, r campaign.Result, code int) error {
	if path == "" || !r.Finished {
		return nil
	}
	raw, err := os.ReadFile(filepath.Join(cfg.Dir, bundle.ManifestFile))
	if err != nil {
		return fmt.Errorf("read the manifest for the ledger: %w", err)
	}
	sum := sha256.Sum256(raw)
	_, err = ledger.Append(ctx, path, ledger.Entry{Commit: r.Provenance.Repository.Commit, Subject: r.Provenance.Engine.SubjectCommit, Manifest: hex.EncodeToString(sum[:]),
		Plan: cfg.Plan.Digest, Engine: cfg.Plan.Engine, Product: string(cfg.Plan.Product), Environment: string(cfg.Plan.Environment), ExitCode: code,
		Wall: time.Now().UTC().Format(time.RFC3339)})
	return err
}

// errInterrupted says that somebody stopped the run.
var errInterrupted = errors.New("interrupted")

// runConfig puts together what every run needs.
func runConfig(plan matrix.Plan, engineName, keyFile string, std streams) (campaign.Config, int) {
	self, err := os.Executable()
	if err != nil {
		std.say("find own program: %v", err)
		return campaign.Config{}, exitCannotJudge
	}
	cfg := campaign.Config{Plan: plan, Binary: self, EngineName: engineName, Engine: host.Command{Path: self, Args: []string{"engine", "serve", engineName}},
		Browsers: browsersOf(plan.Product)}
	if keyFile != "" {
		if cfg.Key, err = readKey(keyFile); err != nil {
			std.say("%v", err)
			return campaign.Config{}, exitUsage
		}
	}
	cfg.Exports = exports(cfg.Key)
	return cfg, exitOK
}

func readKey(path string) (ed25519.PrivateKey, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the signing key: %w", err)
	}
	key, err := statement.ParsePrivateKey(b)
	if err != nil {
		return nil, fmt.Errorf("read the signing key: %s: %w", path, err)
	}
	return key, nil
}

// browsersOf says where the browser under test lies, for provenance.
func browsersOf(p engine.Product) []provenance.BrowserInput {
	for _, path := range cdp.Binaries {
		if _, err := os.Stat(path); err == nil && p == engine.ProductChromium {
			return []provenance.BrowserInput{{Product: p, Path: path}}
		}
	}
	return nil
}

// finishRun prints the result and returns the exit code: 1 when a row failed, 3 when something could not be judged, 0 when every planned
// row passed.
func finishRun(std streams, cfg campaign.Config, r campaign.Result, err error, asJSON bool) int {
	s := runSummary{Bundle: cfg.Dir, Report: filepath.Join(cfg.Dir, "report", "index.html"), Plan: cfg.Plan.Digest, Finished: r.Finished, Signer: r.Signer,
		TookMS: r.Took.Milliseconds(), Ruling: r.Ruling}
	for _, v := range r.Verdicts {
		s.Rows = append(s.Rows, rowSummary{v.Row, v.Outcome, r.RowMS[v.Row], v.Findings})
	}
	if err != nil {
		s.Error = err.Error()
		std.say("%v", err)
	}
	if asJSON {
		if err := writeJSON(std.out, s); err != nil {
			std.say("write the result: %v", err)
			return exitCannotJudge
		}
	} else if err == nil {
		printRuling(std.out, cfg.Plan, r.Ruling, campaign.StandingOf(r.Provenance).Limits)
		fmt.Fprintf(std.out, "bundle    %s (%d files, %.1f MB, %s)\nreport    %s\n", s.Bundle, r.Files, float64(r.Bytes)/1e6, signerWords(r.Signer), s.Report)
	}
	switch {
	case errors.Is(err, bundle.ErrExists):
		return exitUsage
	case err != nil || !r.Finished:
		return exitCannotJudge
	}
	return runCode(r.Verdicts)
}

func signerWords(signer string) string {
	if signer == bundle.Unsigned {
		return "unsigned"
	}
	return "signed by " + signer[:min(16, len(signer))]
}

// runCode is the exit code of the rows themselves.
func runCode(verdicts []evidence.Verdict) int {
	code := exitOK
	for _, v := range verdicts {
		switch v.Outcome {
		case evidence.Pass, evidence.NotApplicable:
		case evidence.Fail, evidence.Flaky:
			return exitRejected
		default:
			code = exitCannotJudge
		}
	}
	if len(verdicts) == 0 {
		return exitCannotJudge
	}
	return code
}

// folded puts core requirements without rows onto one line: they are many, and alike.
func folded(reasons []string) []string {
	var out, ids []string
	at := 0
	for _, r := range reasons {
		id, ok := strings.CutPrefix(r, "core requirement ")
		id, without := strings.CutSuffix(id, " has no row")
		if !ok || !without {
			out = append(out, r)
			continue
		}
		if len(ids) == 0 {
			at = len(out)
			out = append(out, "")
		}
		ids = append(ids, id)
	}
	if len(ids) > 0 {
		out[at] = fmt.Sprintf("%s without rows: %s", plural(len(ids), "core requirement"), strings.Join(ids, " "))
	}
	return out
}

// printRuling prints a decision, the first reasons for it, and its limits: those of the decision, and those of where it was made, which hold
// whatever was decided.
func printRuling(w io.Writer, p matrix.Plan, r evidence.Ruling, standing []string) {
	fmt.Fprintf(w, "\ndecision  %s on %s (%s): %s\n", p.Engine, p.Product, p.Environment, strings.ToUpper(r.Decision.String()))
	const most = 8
	reasons := folded(r.Reasons)
	for i, reason := range reasons {
		if i == most {
			fmt.Fprintf(w, "          and %d more reasons: see the report\n", len(reasons)-most)
			break
		}
		fmt.Fprintf(w, "          %s\n", reason)
	}
	limits := slices.Clone(r.Limits)
	for _, limit := range standing {
		if !slices.Contains(limits, limit) {
			limits = append(limits, limit)
		}
	}
	for _, limit := range limits {
		fmt.Fprintf(w, "limit     %s\n", limit)
	}
	counts := []string{}
	for _, name := range keys(r.Counts) {
		counts = append(counts, fmt.Sprintf("%d %s", r.Counts[name], name))
	}
	fmt.Fprintf(w, "rows      %s\n", strings.Join(counts, ", "))
}
