// Package verify checks a bundle from its bytes alone and derives every verdict again. It needs no browser, no display, no network, no cgo and
// no other program.
//
//	report, err := verify.Verify(ctx, dir, verify.Options{Judge: evidence.Judge, Key: pub})
//	os.Exit(report.Status.ExitCode())
//
// Nothing in the folder is trusted. Names, kinds and sizes are looked at before a byte is read; every file must be in the manifest and
// every entry of the manifest must be a file; every document must be exactly the canonical JSON of its known fields; the plan's digest is
// recomputed; rows are compared with the plan both ways; the log's chain is followed; the judge is run on the observations and must
// reach the verdict that is written; exports are made again; the statement's every claim is compared.
//
// What it cannot repeat is listed in [Report.NotRederived]; a [DeepFunc] may repeat some of it. Without a signer's key, somebody who
// rewrites a whole bundle consistently is not found out: then the digest of the manifest must be known from elsewhere.
package verify

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"sort"
	"strings"
	"sync"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/bundle"
	"github.com/engine-acceptance/acceptance/evidence/junit"
	"github.com/engine-acceptance/acceptance/evidence/provenance"
	"github.com/engine-acceptance/acceptance/evidence/statement"
	"github.com/engine-acceptance/acceptance/matrix"
)

// Format names the format and version of a [Report].
const Format = "acceptance.verify/v1"

// MaxProblems is how many problems a report lists; ProblemCount counts all.
const MaxProblems = 1000

// JudgeFunc is the judge: a pure function. A panic in it is a problem of the row, never ours.
type JudgeFunc func(matrix.Contract, []evidence.Observation) evidence.Verdict

// Status is what came of a verification. The zero value is no success.
type Status string

// The closed list of statuses.
const (
	// OK: whole, unchanged, and every verdict was derived again.
	OK Status = "ok"
	// Altered: something is not as it was written, or not as the judge sees it.
	Altered Status = "altered"
	// Usage: there is no bundle to verify, or no judge.
	Usage Status = "usage"
	// Incomplete: the run was cut; nothing else is wrong with what is there.
	Incomplete Status = "incomplete"
)

// ExitCode is 0 ok, 1 altered, 2 usage, 3 incomplete. Any other status is 3: not judged.
func (s Status) ExitCode() int {
	switch s {
	case OK:
		return 0
	case Altered:
		return 1
	case Usage:
		return 2
	}
	return 3
}

// Problem is one thing that is not as it must be. File is a path inside the bundle. Status is [Altered] or [Incomplete].
type Problem struct {
	File   string `json:"file"`
	Status Status `json:"status"`
	// Check is a closed word: path, manifest, digest, document, plan, row, observations, verdict, log, export, statement, deep.
	Check string `json:"check"`
	Want  string `json:"want"`
	Got   string `json:"got"`
}

// String reads file, check, got and want.
func (p Problem) String() string {
	return fmt.Sprintf("%s: %s: %s: got %s, want %s", p.File, p.Status, p.Check, p.Got, p.Want)
}

// RowResult is one planned row as it was derived again.
type RowResult struct {
	Row      matrix.RowID     `json:"row"`
	Attempts int              `json:"attempts"`
	Outcome  evidence.Outcome `json:"outcome"`
	// Verdict joins the derived verdicts of all attempts.
	Verdict evidence.Verdict `json:"verdict"`
}

// Report is the result. Lists are sorted.
type Report struct {
	Format       string    `json:"format"`
	Status       Status    `json:"status"`
	Problems     []Problem `json:"problems"`
	ProblemCount int       `json:"problem_count"`
	// NotRederived says what was taken on trust, and why.
	NotRederived []string `json:"not_rederived"`
	// Signer is the key id that the bundle names, or "unsigned". SignatureChecked is true when the caller's key made the signature.
	Signer           string `json:"signer"`
	SignatureChecked bool   `json:"signature_checked"`
	// SignatureWhole is true when the signature was made by the key that the bundle itself carries: no byte of it was changed. Who that
	// key belongs to, it does not say.
	SignatureWhole bool `json:"signature_whole"`
	// Manifest is the sha256 of manifest.json: what a bundle is known by.
	Manifest string      `json:"manifest_sha256"`
	Plan     string      `json:"plan_digest"`
	Rows     []RowResult `json:"rows"`
	// Guards are what the rows proved that the guards can see.
	Guards []Armed `json:"guards"`
	Files  int     `json:"files"`
	Bytes  int64   `json:"bytes"`

	// Plan and provenance as read, for callers that go on to decide. They are zero when they could not be read.
	PlanContent       matrix.Plan           `json:"-"`
	ProvenanceContent provenance.Provenance `json:"-"`
}

// DeepRow is one attempt as a [DeepFunc] sees it. Open opens a file of the attempt for reading, as far as it is in the manifest.
type DeepRow struct {
	Contract     matrix.Contract
	Attempt      int
	Dir          string
	Observations []evidence.Observation
	Open         func(name string) (io.ReadCloser, error)
}

// DeepFunc repeats what the judge takes on trust (decoding the film, reading its codes, searching canaries) with other tools, and returns
// what differs from the observations. An error is a problem as well: what was asked for and could not be repeated is not ok.
type DeepFunc func(ctx context.Context, row DeepRow) ([]Problem, error)

// Options of a verification.
type Options struct {
	// Judge is needed.
	Judge JudgeFunc
	// Key, when set, must be the signer's. An unsigned bundle is then a problem.
	Key ed25519.PublicKey
	// Commit, when set, must be the harness commit of the provenance.
	Commit string
	// Deep, when set, is called for each attempt; DeepTools names its tools with their digests and is printed.
	Deep      DeepFunc
	DeepTools []string
	// Workers is how many files are read at once: 1 or 2. 0 means 2.
	Workers int
}

// ErrUsage is returned, with a report of status [Usage], when there is nothing to verify.
var ErrUsage = errors.New("nothing to verify")

// Verify verifies the bundle in dir. The error is [ErrUsage] or that of ctx; everything else is in the report.
func Verify(ctx context.Context, dir string, o Options) (Report, error) {
	r := Report{Format: Format, Status: Usage, Problems: []Problem{}, NotRederived: []string{}, Rows: []RowResult{}, Guards: []Armed{}}
	if o.Judge == nil {
		return r, fmt.Errorf("verify: %w: no judge was given", ErrUsage)
	}
	if o.Key != nil && len(o.Key) != ed25519.PublicKeySize {
		return r, fmt.Errorf("verify: %w: the key is no Ed25519 public key", ErrUsage)
	}
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return r, fmt.Errorf("verify: %w: %q is no folder", ErrUsage, dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return r, fmt.Errorf("verify: %w: %q cannot be opened", ErrUsage, dir)
	}
	defer root.Close()
	v := &verifier{root: root, dir: dir, options: o, report: &r, rows: map[bundle.Place]*rowState{}, armedIn: map[string]int{}, sums: map[string]string{}}
	if err := v.run(ctx); err != nil {
		return r, fmt.Errorf("verify: %w", err)
	}
	v.finish()
	return r, nil
}

type verifier struct {
	root    *os.Root
	dir     string
	options Options
	report  *Report

	mu       sync.Mutex // guards report.Problems
	found    map[string]found
	manifest bundle.Manifest
	plan     matrix.Plan
	planRaw  string // sha256 of plan.json
	prov     provenance.Provenance
	rows     map[bundle.Place]*rowState // with Attempt
	exports  map[string][]byte
	derived  []evidence.Verdict
	trusted  map[string]int
	// armedIn counts the attempts that proved a guard, judged all that could.
	armedIn map[string]int
	judged  int
	// begun is true when an unfinished file of a bundle was seen; cut, when there is no manifest.
	begun, cut bool
	// sums are the digests of the files that were read.
	sums map[string]string
}

// rowState is one attempt.
type rowState struct {
	dir     string
	derived evidence.Verdict
	judged  bool
	written string // outcome of verdict.json
	// unended: the run was cut before the attempt ended.
	unended bool
}

func (v *verifier) problem(status Status, file, check, want, got string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.report.ProblemCount++
	v.report.Problems = append(v.report.Problems, Problem{File: clip(file), Status: status, Check: check, Want: clip(want), Got: clip(got)})
}

func (v *verifier) altered(file, check, want, got string) {
	v.problem(Altered, file, check, want, got)
}

// clip bounds what a hostile bundle can put into a report.
func clip(s string) string {
	const limit = 400
	if len(s) > limit {
		s = s[:limit] + "..."
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f || r == '\ufffd' }) {
		s = fmt.Sprintf("%q", s)
	}
	return s
}

func (v *verifier) run(ctx context.Context) error {
	if err := v.walk(ctx); err != nil {
		return err
	}
	if len(v.found) == 0 && !v.begun {
		return fmt.Errorf("%w: %q holds no file of a bundle", ErrUsage, v.dir)
	}
	if _, ok := v.found[bundle.ManifestFile]; !ok {
		v.problem(Incomplete, bundle.ManifestFile, "manifest", "present: it is written last", "absent: the run did not finish")
		return v.cutShort(ctx)
	}
	if !v.readManifest() {
		return ctx.Err()
	}
	planOK := v.readPlan()
	v.readProvenance()
	v.placeRows(planOK)
	if err := v.files(ctx); err != nil {
		return err
	}
	if planOK {
		v.joinRows()
		v.readLog()
		v.checkExports()
	}
	v.checkStatement(planOK)
	return ctx.Err()
}

// cutShort looks at what a run left that did not finish. The rows that ended are whole: the log names the digest of each of their files, and they are
// judged again. What was still being written can be compared with nothing, and is left alone.
func (v *verifier) cutShort(ctx context.Context) error {
	v.cut = true
	planOK := v.readPlan()
	if _, there := v.found[bundle.ProvenanceFile]; there {
		v.readProvenance()
	}
	if !planOK {
		return ctx.Err()
	}
	v.placeRows(planOK)
	ended := v.endedRows()
	for place, state := range v.rows {
		state.unended = !ended[place]
	}
	if err := v.files(ctx); err != nil {
		return err
	}
	v.joinRows()
	v.readLog()
	rows := map[matrix.RowID]bool{}
	for place := range ended {
		rows[place.Row] = true
	}
	if got := len(rows); got < len(v.plan.Rows) {
		v.problem(Incomplete, bundle.PlanFile, "row", fmt.Sprintf("%d rows that ended", len(v.plan.Rows)), fmt.Sprintf("%d, which were checked", got))
	}
	return ctx.Err()
}

// readManifest reads the manifest and compares it with what lies in the folder. False means that nothing can be compared.
func (v *verifier) readManifest() bool {
	raw, sum, ok := v.read(bundle.ManifestFile)
	if !ok {
		return false
	}
	v.report.Manifest = sum
	m := &v.manifest
	if err := bundle.DecodeDocument(raw, m); err != nil {
		v.altered(bundle.ManifestFile, "document", "canonical JSON of a manifest", err.Error())
		return false
	}
	if m.Format != bundle.ManifestFormat {
		v.altered(bundle.ManifestFile, "manifest", "format "+bundle.ManifestFormat, m.Format)
		return false
	}
	v.report.Signer = m.Signer
	if len(m.Files) > bundle.MaxFiles {
		v.altered(bundle.ManifestFile, "manifest", fmt.Sprintf("at most %d files", bundle.MaxFiles), fmt.Sprint(len(m.Files)))
		return false
	}
	listed := map[string]bool{bundle.ManifestFile: true, bundle.StatementFile: true}
	for i, f := range m.Files {
		if i > 0 && m.Files[i-1].Path >= f.Path {
			v.altered(bundle.ManifestFile, "manifest", "paths sorted, each once", fmt.Sprintf("%q after %q", f.Path, m.Files[i-1].Path))
		}
		if _, ok := bundle.Size(f.Path); !ok || listed[f.Path] {
			v.altered(bundle.ManifestFile, "manifest", "names of a bundle, each once", f.Path)
			continue
		}
		listed[f.Path] = true
		have, ok := v.found[f.Path]
		switch {
		case !ok:
			v.altered(f.Path, "manifest", "present", "absent")
		case have.size != f.Size:
			v.altered(f.Path, "digest", fmt.Sprintf("%d bytes", f.Size), fmt.Sprintf("%d bytes", have.size))
		}
	}
	for name := range v.found {
		if !listed[name] {
			v.altered(name, "manifest", "absent: the manifest does not list it", "present")
		}
	}
	for _, name := range []string{bundle.PlanFile, bundle.ProvenanceFile, bundle.LogFile} {
		if !listed[name] {
			v.altered(bundle.ManifestFile, "manifest", name+" listed", "not listed")
		}
	}
	// The entry that each file is compared with.
	for _, f := range m.Files {
		if have, ok := v.found[f.Path]; ok {
			have.want = f.SHA256
			v.found[f.Path] = have
		}
	}
	v.report.Files = len(m.Files)
	return true
}

func (v *verifier) readPlan() bool {
	raw, sum, ok := v.read(bundle.PlanFile)
	if !ok {
		if _, listed := v.found[bundle.PlanFile]; !listed && v.manifest.Format == "" {
			v.problem(Incomplete, bundle.PlanFile, "plan", "present: it is written first", "absent")
		}
		return false
	}
	v.planRaw = sum
	var p matrix.Plan
	if err := bundle.DecodeDocument(raw, &p); err != nil {
		v.altered(bundle.PlanFile, "document", "canonical JSON of a plan", err.Error())
		return false
	}
	if p.Format != matrix.PlanFormat {
		v.altered(bundle.PlanFile, "plan", "format "+matrix.PlanFormat, p.Format)
		return false
	}
	digest, err := bundle.PlanDigest(p)
	if err != nil || digest != p.Digest {
		v.altered(bundle.PlanFile, "plan", "digest "+digest, p.Digest)
		return false
	}
	if v.manifest.Format != "" && v.manifest.Plan != p.Digest {
		v.altered(bundle.ManifestFile, "plan", "plan digest "+p.Digest, v.manifest.Plan)
	}
	v.plan, v.report.Plan, v.report.PlanContent = p, p.Digest, p
	return true
}

func (v *verifier) readProvenance() {
	raw, _, ok := v.read(bundle.ProvenanceFile)
	if !ok {
		return
	}
	if err := bundle.DecodeDocument(raw, &v.prov); err != nil {
		v.altered(bundle.ProvenanceFile, "document", "canonical JSON of a provenance", err.Error())
		return
	}
	if v.prov.Format != provenance.Format {
		v.altered(bundle.ProvenanceFile, "document", "format "+provenance.Format, v.prov.Format)
	}
	if want := v.options.Commit; want != "" && v.prov.Repository.Commit != want {
		v.altered(bundle.ProvenanceFile, "statement", "harness commit "+want, v.prov.Repository.Commit)
	}
	v.report.ProvenanceContent = v.prov
}

// placeRows compares the folders of rows with the plan, both ways.
func (v *verifier) placeRows(planOK bool) {
	attempts := map[bundle.Place]int{} // with Attempt 0
	for name := range v.found {
		place, _, err := bundle.SplitRow(name)
		if err != nil {
			continue
		}
		if _, seen := v.rows[place]; !seen {
			v.rows[place] = &rowState{dir: path.Dir(name)}
			place.Attempt = 0
			attempts[place]++
		}
	}
	if !planOK {
		return
	}
	planned := map[bundle.Place]bool{}
	for _, c := range v.plan.Rows {
		place := bundle.PlaceOf(c, 0)
		dir, err := place.RowPath()
		switch {
		case err != nil:
			v.altered(bundle.PlanFile, "plan", "row ids that can be names", err.Error())
		case planned[place]:
			v.altered(bundle.PlanFile, "plan", "each row once", fmt.Sprintf("%q twice", c.ID))
		case attempts[place] == 0 && v.cut:
		case attempts[place] == 0:
			v.problem(Incomplete, dir, "row", "present: the row is planned", "absent")
		default:
			for n := 1; n <= attempts[place]; n++ {
				place.Attempt = n
				if v.rows[place] == nil {
					v.altered(path.Join(dir, fmt.Sprintf("attempt-%d", n)), "row", "present: attempts have no gaps", "absent")
				}
			}
			place.Attempt = 0
		}
		planned[place] = true
	}
	for place, state := range v.rows {
		place.Attempt = 0
		if !planned[place] {
			v.altered(state.dir, "row", "absent: the row is not planned", "present")
		}
	}
}

// joinRows joins the verdicts that were derived, in the plan's order.
func (v *verifier) joinRows() {
	for _, c := range v.plan.Rows {
		var all []evidence.Verdict
		place := bundle.PlaceOf(c, 1)
		for ; v.rows[place] != nil && v.rows[place].judged; place.Attempt++ {
			all = append(all, v.rows[place].derived)
		}
		joined := bundle.RowVerdict(c.ID, all)
		v.derived = append(v.derived, joined)
		v.report.Rows = append(v.report.Rows, RowResult{Row: c.ID, Attempts: len(all), Outcome: joined.Outcome, Verdict: joined})
	}
}

// checkExports makes junit.xml and the table of summary.md again.
func (v *verifier) checkExports() {
	if raw, ok := v.exports[bundle.JUnitFile]; ok {
		want, err := junit.XML(v.plan, v.derived)
		if err != nil {
			v.altered(bundle.JUnitFile, "export", "what follows from the verdicts", err.Error())
		} else if !bytes.Equal(want, raw) {
			v.altered(bundle.JUnitFile, "export", fmt.Sprintf("the %d bytes that follow from the verdicts", len(want)), "other bytes")
		}
	}
	if raw, ok := v.exports[bundle.SummaryFile]; ok {
		want, err := junit.Table(v.plan, v.derived)
		if err != nil {
			v.altered(bundle.SummaryFile, "export", "what follows from the verdicts", err.Error())
		} else if !bytes.HasSuffix(raw, want) {
			v.altered(bundle.SummaryFile, "export", "at its end, the table that follows from the verdicts", "another table")
		}
	}
}

func (v *verifier) checkStatement(planOK bool) {
	file := bundle.StatementFile
	signer := v.manifest.Signer
	_, there := v.found[file]
	switch {
	case signer == bundle.Unsigned && there:
		v.altered(file, "statement", "absent: the manifest says unsigned", "present")
		return
	case signer == bundle.Unsigned && v.options.Key != nil:
		v.altered(file, "statement", "signed by "+statement.KeyID(v.options.Key), bundle.Unsigned)
		return
	case signer == bundle.Unsigned:
		return
	case !there:
		v.altered(file, "statement", "present: the manifest names signer "+signer, "absent")
		return
	}
	raw, _, ok := v.read(file)
	if !ok {
		return
	}
	var s statement.Statement
	var err error
	if v.options.Key != nil {
		s, err = statement.Open(raw, v.options.Key)
		v.report.SignatureChecked, v.report.SignatureWhole = err == nil, err == nil
	} else {
		var id string
		s, id, err = statement.Read(raw)
		v.report.SignatureWhole = err == nil
		if err == nil && id != signer {
			v.altered(file, "statement", "signer "+signer, id)
		}
	}
	if err != nil {
		v.claims(file, err)
		return
	}
	if v.options.Key != nil && signer != statement.KeyID(v.options.Key) {
		v.altered(bundle.ManifestFile, "statement", "signer "+statement.KeyID(v.options.Key), signer)
	}
	if !planOK {
		return
	}
	want, err := bundle.ClaimsOf(v.plan, v.prov, v.report.Manifest, v.planRaw)
	if err != nil {
		v.altered(bundle.PlanFile, "plan", "a plan that has digests", err.Error())
		return
	}
	v.claims(file, statement.Match(s, want))
}

// claims makes a problem of each claim in err.
func (v *verifier) claims(file string, err error) {
	if err == nil {
		return
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			v.claims(file, e)
		}
		return
	}
	var claim *statement.ClaimError
	if errors.As(err, &claim) {
		v.altered(file, "statement", claim.Claim+" "+claim.Want, claim.Claim+" "+claim.Got)
		return
	}
	v.altered(file, "statement", "a statement", err.Error())
}

// finish sorts, bounds and sums up.
func (v *verifier) finish() {
	r := v.report
	sort.SliceStable(r.Problems, func(i, j int) bool {
		a, b := r.Problems[i], r.Problems[j]
		if a.File != b.File {
			return a.File < b.File
		}
		return a.String() < b.String()
	})
	r.Status = OK
	for _, p := range r.Problems {
		if p.Status == Altered {
			r.Status = Altered
			break
		}
		r.Status = Incomplete
	}
	if len(r.Problems) > MaxProblems {
		r.Problems = r.Problems[:MaxProblems]
	}
	r.Guards = v.guards()
	r.NotRederived = v.notRederived()
}

// notRederived lists what a static reader takes on trust.
func (v *verifier) notRederived() []string {
	list := []string{"that the run happened: a signature says who vouches, not what was"}
	add := func(kind evidence.Kind, what string) {
		if n := v.trusted[string(kind)]; n > 0 && v.options.Deep == nil {
			list = append(list, fmt.Sprintf("%s: %d observations", what, n))
		}
	}
	add(evidence.KindFilm, "film decoded, its codes and masks read (deep)")
	add(evidence.KindScan, "canary findings in raw output, bundle and temporary files (deep)")
	if v.options.Deep != nil {
		list = append(list, "deep checks: repeated with "+strings.Join(v.options.DeepTools, ", "))
	}
	list = append(list, "digests of harness, engine and browsers: the files are not in the bundle")
	switch v.prov.Engine.Basis {
	case provenance.BasisBuildInformation:
		list = append(list, "engine commit: from build information, not rebuilt")
	default:
		list = append(list, "engine commit: claimed")
	}
	switch {
	case v.manifest.Signer == bundle.Unsigned:
		list = append(list, "origin: the bundle is unsigned")
	case v.manifest.Signer == "":
		list = append(list, "origin: the run did not finish, so nobody signed")
	case v.options.Key == nil && v.report.SignatureWhole:
		list = append(list, "signer: the signature was checked with the key that the bundle itself carries; no key from elsewhere was given")
	}
	sort.Strings(list)
	return list
}
