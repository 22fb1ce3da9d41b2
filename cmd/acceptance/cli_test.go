package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/statement"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/worker"
)

// said is what a command printed, and its exit code.
type said struct {
	code     int
	out, err string
}

func try(ctx context.Context, args ...string) said {
	var out, errs bytes.Buffer
	code := dispatch(ctx, args, streams{strings.NewReader(""), &out, &errs})
	return said{code, out.String(), errs.String()}
}

// A command that was asked wrongly exits 2, says what was wrong on standard error and nothing on standard output, and makes nothing.
func TestCommandLine_usage_errors(t *testing.T) {
	for _, tc := range []struct {
		name, line, says string
	}{
		{"no_command", "", "usage:"},
		{"unknown_command_with_the_nearest", "pla", `did you mean "plan"`},
		{"unknown_command_far_from_all", "frobnicate-it", `unknown command "frobnicate-it"; known: doctor`},
		{"role_is_not_offered", "rol", "unknown command"},
		{"role_without_name", "role", "not for people"},
		{"role_unknown", "role wrker", `unknown role "wrker"`},
		{"unknown_flag_with_the_nearest", "plan --row x", `-row; did you mean "rows"`},
		{"unknown_flag_of_run", "run --keyy x", `did you mean "key"`},
		{"text_flag_twice", "plan --rows a --rows b", "given twice"},
		{"switch_twice", "plan --json --json", "given twice"},
		{"switch_with_a_word", "plan --json=maybe", "want true or false"},
		{"flag_without_value", "run --out", "needs an argument"},
		{"stray_argument", "plan stray", `stray argument "stray"`},
		{"stray_argument_of_run", "run type-insert", `stray argument "type-insert"`},
		{"stray_behind_the_bundle", "verify a b", `stray argument "b"`},
		{"stray_for_doctor", "doctor now", `stray argument "now"`},
		{"no_such_row_with_the_nearest", "plan --rows type-insrt", "nearest: type-insert"},
		{"no_such_row_for_run", "run --rows exact-one-windw", "nearest: exact-one-window"},
		{"one_pattern_of_two_meets_nothing", "plan --rows type-insert*,nosuchthing", `"nosuchthing"`},
		{"empty_selection", "plan --rows=", "selects nothing"},
		{"selection_of_commas", "run --rows=,,", "selects nothing"},
		{"bracket_is_no_pattern", "plan --rows [", "meets no row"},
		{"no_such_engine_with_the_nearest", "run --engine chromum", `did you mean "chromium"`},
		{"no_such_engine_lists_the_known", "plan --engine netscape", "known: chromium"},
		{"engine_in_a_path", "plan --engine ../chromium", "unknown engine"},
		{"serve_without_name", "engine serve", "too few arguments"},
		{"serve_misspelt", "engine serv chromium", `did you mean "serve"`},
		{"serve_unknown", "engine serve chromum", `did you mean "chromium"`},
		{"no_such_mutant_with_the_nearest", "mutants --only swalows-a-character", `did you mean "swallows-a-character"`},
		{"empty_selection_of_mutants", "mutants --only=", "selects nothing"},
		{"mutant_as_a_role_only", "role mutant nosuch", "no mutant is named"},
		{"no_such_policy_with_the_nearest", "gate --policy relese x", `did you mean "release"`},
		{"matrix_without_word", "matrix", "too few arguments"},
		{"matrix_misspelt", "matrix lnt", `did you mean "lint"`},
		{"matrix_lint_no_folder", "matrix lint none/such", "is no folder"},
		{"key_without_folder", "key", "too few arguments"},
		{"no_signing_key", "run --rows exact-one-window --key none/such", "read the signing key"},
		{"verify_without_bundle", "verify", "too few arguments"},
		{"verify_no_folder", "verify none/such", "is no folder"},
		{"verify_no_signer", "verify --signer none/such x", "signer's key"},
		{"report_no_folder", "report none/such", "has no report"},
		{"why_no_folder", "why none/such row", "no such file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			t.Chdir(t.TempDir())
			got := try(t.Context(), strings.Fields(tc.line)...)
			g.Expect(got.err).To(gomega.ContainSubstring(tc.says))
			g.Expect(got.out).To(gomega.BeEmpty())
			g.Expect(got.code).To(gomega.Equal(exitUsage))
			g.Expect(os.ReadDir(".")).To(gomega.BeEmpty(), "a usage error left something")
		})
	}
}

func TestCommandLine_help_is_a_result(t *testing.T) {
	for _, line := range []string{"help", "-h", "--help", "plan --help", "run -h", "gate x -help"} {
		g := gomega.NewWithT(t)
		got := try(t.Context(), strings.Fields(line)...)
		g.Expect(got).To(gomega.Equal(said{exitOK, usage, ""}), line)
	}
}

// Every command that the usage names is one, and the other way round.
func TestUsage_names_every_command(t *testing.T) {
	g := gomega.NewWithT(t)
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^  acceptance (\w+) `).FindAllStringSubmatch(usage, -1) {
		named[m[1]] = true
	}
	g.Expect(keys(named)).To(gomega.Equal(visible()))
}

func TestPlan_prints_the_same_plan_twice(t *testing.T) {
	g := gomega.NewWithT(t)
	first, second := try(t.Context(), "plan", "--json", "--rows", "type-insert*,B1"), try(t.Context(), "plan", "--rows", "type-insert*,B1", "--json")
	g.Expect(first.code).To(gomega.Equal(exitOK), first.err)
	g.Expect(second.out).To(gomega.Equal(first.out))
	var p matrix.Plan
	g.Expect(json.Unmarshal([]byte(first.out), &p)).To(gomega.Succeed())
	g.Expect(p.Format).To(gomega.Equal(matrix.PlanFormat))
	g.Expect(p.Subset).To(gomega.BeTrue(), "a selection that leaves rows out is a subset")
	g.Expect(p.Left).NotTo(gomega.BeEmpty())
	for _, r := range p.Rows {
		g.Expect(r.Stem == "type-insert" || r.Requirement == "B1").To(gomega.BeTrue(), string(r.ID))
	}
	whole := try(t.Context(), "plan", "--json")
	var all matrix.Plan
	g.Expect(json.Unmarshal([]byte(whole.out), &all)).To(gomega.Succeed())
	g.Expect(all.Subset).To(gomega.BeFalse())
	g.Expect(len(all.Rows)).To(gomega.Equal(len(p.Rows) + len(p.Left)))
	g.Expect(all.Digest).NotTo(gomega.Equal(p.Digest))
}

func TestPlan_for_people_names_rows_and_what_has_none(t *testing.T) {
	g := gomega.NewWithT(t)
	got := try(t.Context(), "plan")
	g.Expect(got.code).To(gomega.Equal(exitOK), got.err)
	g.Expect(got.out).To(gomega.MatchRegexp(`(?m)^M5 +deliver +type-insert\[state=covered\]`))
	g.Expect(got.out).To(gomega.MatchRegexp(`(?m)^R3 +refuse +undeclared-`))
	g.Expect(got.out).To(gomega.ContainSubstring("core without rows:"))
}

// copyMatrix writes the built-in data files to a folder that a test may spoil.
func copyMatrix(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, matrix.Embedded()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// spoil changes one file of a folder; from must be there once.
func spoil(t *testing.T, dir, name, from, to string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, []byte(from)) {
		t.Fatalf("%s does not hold %q", name, from)
	}
	if err := os.WriteFile(path, bytes.Replace(b, []byte(from), []byte(to), 1), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestMatrixLint_of_the_built_in_data(t *testing.T) {
	g := gomega.NewWithT(t)
	built, copied := try(t.Context(), "matrix", "lint"), try(t.Context(), "matrix", "lint", copyMatrix(t))
	g.Expect(built.code).To(gomega.Equal(exitOK), built.err)
	g.Expect(built.out).To(gomega.ContainSubstring("no problems"))
	g.Expect(copied).To(gomega.Equal(built))
}

// YAML lies in many ways: words that turn to booleans, keys that are given twice, merges, bombs. All of them are reported in one go, each with
// its file and line.
func TestMatrixLint_reports_every_problem_of_every_file(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := copyMatrix(t)
	spoil(t, dir, "policies/release.yaml", "format: ", "format: acceptance.policy/v1\nformat: ")
	spoil(t, dir, "engines/chromium.yaml", "reconnect: true", "reconnect: on")
	spoil(t, dir, "rows/mutation/once.yaml", "budget: ", "budgt: ")
	spoil(t, dir, "rows/mutation/click.yaml", "budget: 10s", "budget: 10")
	spoil(t, dir, "rows/mutation/click.yaml", "launch: ", "lanch: ")
	spoil(t, dir, "rows/evidence/film.yaml", "launch: shared", "launch: &l shared\n    <<: {launch: fresh}")
	spoil(t, dir, "rows/mutation/once.yaml", "requirement: M", "requirement: Q")
	bomb := "format: acceptance.rows/v1\na: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c <= 'c'; c++ {
		p := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+p+", ", 9), ", ") + "]\n"
	}
	g.Expect(os.WriteFile(filepath.Join(dir, "rows/evidence/bomb.yaml"), []byte(bomb), 0o600)).To(gomega.Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "rows/evidence/tab.yaml"), []byte("format: acceptance.rows/v1\nrows:\n\t- id: x\n"), 0o600)).To(gomega.Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "rows/evidence/two.yaml"), []byte("format: acceptance.rows/v1\nrows: []\n---\nrows: []\n"), 0o600)).To(gomega.Succeed())

	got := try(t.Context(), "matrix", "lint", dir)
	g.Expect(got.code).To(gomega.Equal(exitUsage))
	g.Expect(got.out).To(gomega.BeEmpty())
	for _, want := range []string{
		`policies/release\.yaml:\d+: .*"format" occurs twice`, `engines/chromium\.yaml:\d+: .*reconnect.*on`,
		`rows/mutation/click\.yaml:\d+: .*budget.*10`, `rows/mutation/click\.yaml:\d+: .*lanch.*launch`, `rows/evidence/film\.yaml:\d+: .*<<`,
		`rows/mutation/once\.yaml:\d+: .*unknown requirement "Q`, `rows/mutation/once\.yaml:\d+: .*budgt.*budget`, `rows/evidence/bomb\.yaml:\d+: `, `rows/evidence/tab\.yaml:\d+: `, `rows/evidence/two\.yaml:\d+: `,
	} {
		if !regexp.MustCompile(want).MatchString(got.err) {
			t.Errorf("no problem reads like %s in\n%s", want, got.err)
		}
	}
}

func TestKey_makes_a_pair_once_and_never_overwrites(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := filepath.Join(t.TempDir(), "deep", "er")
	got := try(t.Context(), "key", dir)
	g.Expect(got.code).To(gomega.Equal(exitOK), got.err)
	private, public := filepath.Join(dir, "signing.pem"), filepath.Join(dir, "signer.pem")
	g.Expect(got.out).To(gomega.Equal(private + "\n" + public + "\n"))
	info, err := os.Stat(private)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(info.Mode()).To(gomega.Equal(fs.FileMode(0o600)))
	key, err := readKey(private)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	pub, err := publicKey(public)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(key.Public()).To(gomega.Equal(pub))
	g.Expect(statement.KeyID(pub)).NotTo(gomega.BeEmpty())
	before, err := os.ReadFile(private)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	again := try(t.Context(), "key", dir)
	g.Expect(again.code).To(gomega.Equal(exitUsage))
	g.Expect(again.err).To(gomega.ContainSubstring("is not overwritten"))
	after, err := os.ReadFile(private)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(after).To(gomega.Equal(before))
	// Where only the public half is there, no private key without it is left behind.
	g.Expect(os.Remove(private)).To(gomega.Succeed())
	g.Expect(try(t.Context(), "key", dir).code).To(gomega.Equal(exitUsage))
	g.Expect(private).NotTo(gomega.BeAnExistingFile())
}

// A key that is none, or the other half of the pair, is named with its file.
func TestKeys_that_do_not_fit_are_named_with_their_file(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys")
	g.Expect(try(t.Context(), "key", keys).code).To(gomega.Equal(exitOK))
	private, public, notes := filepath.Join(keys, "signing.pem"), filepath.Join(keys, "signer.pem"), filepath.Join(dir, "notes.txt")
	g.Expect(os.WriteFile(notes, []byte("no key\n"), 0o600)).To(gomega.Succeed())
	for _, args := range [][]string{
		{"run", "--key", public}, {"run", "--key", notes}, {"verify", "--signer", private, dir}, {"verify", "--signer", notes, dir}, {"gate", "--signer", private, dir},
		{"mutants", "--key", public}, {"waive", "--key", public, "--out", filepath.Join(dir, "w"), notes},
	} {
		got := try(t.Context(), args...)
		g.Expect(got.code).To(gomega.Equal(exitUsage), "%v", args)
		file := args[2]
		g.Expect(got.err).To(gomega.ContainSubstring(file), "%v", args)
		g.Expect(got.err).To(gomega.ContainSubstring("want one PEM block"), "%v", args)
	}
}

// A waiver is signed once, and says what it lets pass.
func TestWaive(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := t.TempDir()
	g.Expect(try(t.Context(), "key", dir).code).To(gomega.Equal(exitOK))
	key, written, signed := filepath.Join(dir, "signing.pem"), filepath.Join(dir, "waiver.yaml"), filepath.Join(dir, "waiver.json")
	g.Expect(os.WriteFile(written, []byte("format: acceptance.waiver/v1\nbaseline: \""+strings.Repeat("a", 64)+"\"\nowner: ada\nreason: moved\nexpires: \"2027-01-31\"\n"+
		"losses:\n  - {kind: row, name: drag, how: lost}\n"), 0o600)).To(gomega.Succeed())
	got := try(t.Context(), "waive", "--key", key, "--out", signed, written)
	g.Expect(got).To(gomega.Equal(said{exitOK, "waived    row drag: lost\nwaiver    " + signed + ", by ada until 2027-01-31\n", ""}))
	pub, err := publicKey(filepath.Join(dir, "signer.pem"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	w, err := readWaiver(signed, pub)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(w.Problem).To(gomega.BeEmpty())
	g.Expect(w.Checked).To(gomega.BeTrue())
	unsigned, err := readWaiver(written, pub)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(unsigned.Problem).To(gomega.ContainSubstring("not signed"))
	again := try(t.Context(), "waive", "--key", key, "--out", signed, written)
	g.Expect(again.code).To(gomega.Equal(exitUsage))
	g.Expect(again.err).To(gomega.ContainSubstring("is not overwritten"))
	g.Expect(try(t.Context(), "waive", written).err).To(gomega.ContainSubstring("want --key and --out"))
	for _, args := range [][]string{{"--waiver", signed}, {"--baseline-kills", signed}, {"--waiver-signer", key}} {
		got := try(t.Context(), append([]string{"gate", dir}, args...)...)
		g.Expect(got.code).To(gomega.Equal(exitUsage))
		g.Expect(got.err).To(gomega.ContainSubstring("says nothing without"))
	}
}

func TestDoctor_with_an_empty_path_names_what_is_missing_and_the_fix(t *testing.T) {
	g := gomega.NewWithT(t)
	t.Setenv("PATH", t.TempDir())
	got := try(t.Context(), "doctor")
	g.Expect(got.code).To(gomega.Equal(exitUsage))
	for _, want := range []string{"Xvfb is not installed", "openbox is not installed", "ffmpeg is not installed", "apt-get install xvfb", "apt-get install ffmpeg"} {
		g.Expect(got.out).To(gomega.ContainSubstring(want))
	}
	asJSON := try(t.Context(), "doctor", "--json")
	g.Expect(asJSON.code).To(gomega.Equal(exitUsage))
	var all []need
	g.Expect(json.Unmarshal([]byte(asJSON.out), &all)).To(gomega.Succeed())
	missing := 0
	for _, n := range all {
		g.Expect(n.Found == "").To(gomega.Equal(n.Problem != ""), n.Name)
		if n.Problem != "" {
			missing++
			g.Expect(n.Fix).NotTo(gomega.BeEmpty(), n.Name)
		}
	}
	g.Expect(missing).To(gomega.BeNumerically(">=", 4))
}

// A run on a machine that lacks something says so before it makes anything.
func TestRun_without_programs_makes_nothing(t *testing.T) {
	g := gomega.NewWithT(t)
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	for _, args := range [][]string{
		{"run", "--rows", "exact-one-window", "--out", filepath.Join(dir, "deep", "bundle")}, {"mutants", "--only", "swallows-a-character", "--out", filepath.Join(dir, "mutants")},
	} {
		got := try(t.Context(), args...)
		g.Expect(got.code).To(gomega.Equal(exitUsage))
		g.Expect(got.err).To(gomega.ContainSubstring("Xvfb is not installed; install it: apt-get install xvfb"))
	}
	g.Expect(os.ReadDir(dir)).To(gomega.BeEmpty())
}

// Folders that are no bundle, or the beginning of one, are never green.
func TestReaders_of_what_is_no_bundle(t *testing.T) {
	empty, stranger, begun := t.TempDir(), t.TempDir(), t.TempDir()
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(stranger, "notes.txt")
	write(file, "not a bundle\n")
	write(filepath.Join(begun, "plan.json"), try(t.Context(), "plan", "--json", "--rows", "exact-one-window").out)
	for _, tc := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"verify_empty", []string{"verify", empty}, exitUsage, "holds no file of a bundle"},
		{"verify_stranger", []string{"verify", stranger}, exitUsage, "holds no file of a bundle"},
		{"verify_file", []string{"verify", file}, exitUsage, "is no folder"},
		{"verify_plan_that_is_not_canonical", []string{"verify", begun}, exitRejected, "plan.json"},
		{"gate_empty", []string{"gate", empty}, exitUsage, "holds no file of a bundle"},
		{"gate_stranger", []string{"gate", stranger}, exitUsage, "holds no file of a bundle"},
		{"gate_plan_that_is_not_canonical", []string{"gate", begun}, exitCannotJudge, "nothing is known of what was run"},
		{"report_stranger", []string{"report", stranger}, exitUsage, "has no report"},
		{"why_stranger", []string{"why", stranger, "exact-one-window"}, exitUsage, "read the bundle"},
		{"why_plan_that_is_not_canonical", []string{"why", begun, "exact-one-window"}, exitUsage, "not the canonical JSON"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			got := try(t.Context(), tc.args...)
			g.Expect(got.out + got.err).To(gomega.ContainSubstring(tc.says))
			g.Expect(got.code).To(gomega.Equal(tc.code))
		})
	}
}

func TestMutants_list_says_what_each_declares(t *testing.T) {
	g := gomega.NewWithT(t)
	got := try(t.Context(), "mutants", "--list", "--only", "swallows-*")
	g.Expect(got).To(gomega.Equal(said{exitOK, "swallows-a-character         receipt          types all but the last character and reports all\n" +
		"                             declares [{M5 effect_wrong}]\n", ""}))
}

// Three findings are shown of a row: those that were seen first, since they are most often why.
func TestProgress_shows_what_was_seen_first(t *testing.T) {
	g := gomega.NewWithT(t)
	var errs bytes.Buffer
	p := newProgress(streams{err: &errs}, 1, false)
	p.event(worker.Event{Kind: "row", Row: "r", Outcome: evidence.HarnessError, TookMS: 1500, Finding: []evidence.Finding{
		{Requirement: "B1", Reason: "precondition_unmet", Observation: 0, Text: "missing"}, {Requirement: "D7", Reason: "too_few_seen", Observation: 17, Text: "third"},
		{Requirement: "J5", Reason: "harness_fault", Observation: 2, Text: "first"}, {Requirement: "J9", Reason: "too_few_seen", Observation: 4, Text: "second"},
	}})
	g.Expect(errs.String()).To(gomega.Equal("  1/1  harness_error       1.5 s  r\n" +
		"           J5 harness_fault, step : first\n           J9 too_few_seen, step : second\n           D7 too_few_seen, step : third\n            and 1 more\n"))
}
