package bundle

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/chain"
	"github.com/engine-acceptance/acceptance/evidence/provenance"
	"github.com/engine-acceptance/acceptance/evidence/statement"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/matrix/canonical"
)

var (
	// ErrExists is returned by [Create] for a folder that holds anything: no bundle is ever overwritten. It is a usage error (exit 2).
	ErrExists = errors.New("the bundle's folder is not empty")
	// ErrWrite is what errors.Is finds in every error of writing evidence (evidence_write_failed). After one the bundle cannot finish.
	ErrWrite = errors.New("evidence_write_failed")
	// ErrUnfinished is returned by [Writer.Finish] when a planned row has no verdict, or something is still open.
	ErrUnfinished = errors.New("the bundle is not complete")
	// ErrClosed is returned for writes after the end.
	ErrClosed = errors.New("already closed")
)

// WriteError is a failed write of evidence: op, path inside the bundle, cause.
type WriteError struct {
	Op, Path string
	Err      error
}

// Error reads op, path and cause.
func (e *WriteError) Error() string {
	return fmt.Sprintf("%v: %s %s: %v", ErrWrite, e.Op, e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *WriteError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrWrite) true.
func (e *WriteError) Is(target error) bool { return target == ErrWrite }

// Writer writes one bundle. It is safe for concurrent use; each row is written by one goroutine. The first failed write is kept and makes
// [Writer.Finish] fail.
type Writer struct {
	dir  string
	plan matrix.Plan
	now  func() time.Time

	mu       sync.Mutex
	log      *os.File
	chain    *chain.Writer
	planned  map[Place]matrix.Contract // with Attempt 0
	open     map[Place]bool
	attempts map[Place][]evidence.Verdict // with Attempt 0
	failed   error
	done     bool
}

// Option changes how a [Writer] works.
type Option func(*Writer)

// WithClock sets the wall clock of the run log; the default is time.Now.
func WithClock(now func() time.Time) Option { return func(w *Writer) { w.now = now } }

// Create makes the folder dir, which must not exist or be empty, and writes the plan into it before anything else. The plan's digest must
// be right, its row ids unique.
func Create(ctx context.Context, dir string, plan matrix.Plan, options ...Option) (*Writer, error) {
	w := &Writer{dir: dir, plan: plan, now: time.Now, planned: map[Place]matrix.Contract{}, open: map[Place]bool{}, attempts: map[Place][]evidence.Verdict{}}
	for _, o := range options {
		o(w)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("create bundle: %w", err)
	}
	if plan.Format != matrix.PlanFormat {
		return nil, fmt.Errorf("create bundle: plan format %q, want %q", plan.Format, matrix.PlanFormat)
	}
	digest, err := PlanDigest(plan)
	if err != nil {
		return nil, fmt.Errorf("create bundle: plan: %w", err)
	}
	if digest != plan.Digest {
		return nil, fmt.Errorf("create bundle: the plan says digest %q, its content has %s", plan.Digest, digest)
	}
	for _, c := range plan.Rows {
		place := PlaceOf(c, 0)
		if _, err := place.RowPath(); err != nil {
			return nil, fmt.Errorf("create bundle: %w", err)
		}
		if _, twice := w.planned[place]; twice {
			return nil, fmt.Errorf("create bundle: row %q is planned twice", c.ID)
		}
		w.planned[place] = c
	}
	if err := makeRoot(dir); err != nil {
		return nil, err
	}
	raw, err := canonical.Marshal(plan)
	if err != nil {
		return nil, fmt.Errorf("create bundle: plan: %w", err)
	}
	raw = append(raw, '\n')
	if err := w.write(PlanFile, raw); err != nil {
		return nil, err
	}
	if w.log, err = os.OpenFile(w.abs(LogFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600); err != nil {
		return nil, w.fail("create", LogFile, err)
	}
	w.chain = chain.NewWriter(w.log, hexSum(raw))
	if err := w.entry(Entry{Format: LogFormat, Event: EventStart, Detail: plan.Digest}); err != nil {
		return nil, err
	}
	return w, nil
}

// makeRoot makes an empty folder of mode 0700 that is ours.
func makeRoot(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return &WriteError{"create", ".", err}
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return &WriteError{"create", ".", err}
	}
	if !info.IsDir() {
		return fmt.Errorf("create bundle: %w: %q is no folder", ErrExists, dir)
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return &WriteError{"create", ".", err}
	}
	if len(names) > 0 {
		return fmt.Errorf("create bundle: %w: %q holds %q; name another folder", ErrExists, dir, names[0].Name())
	}
	// Also where it existed before, and whatever the umask says. It fails where the folder belongs to another uid.
	if err := os.Chmod(dir, 0o700); err != nil {
		return &WriteError{"chmod", ".", err}
	}
	return nil
}

func (w *Writer) abs(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

// Dir returns the folder of the bundle.
func (w *Writer) Dir() string { return w.dir }

// fail keeps the first error.
func (w *Writer) fail(op, name string, err error) error {
	var already *WriteError
	if !errors.As(err, &already) {
		err = &WriteError{op, name, pathless(err)}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed = err
	}
	return err
}

// pathless takes the absolute path out of an error: our own names are inside the bundle.
func pathless(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err
	}
	return err
}

func (w *Writer) write(name string, content []byte) error {
	if err := writeWhole(w.abs(name), content); err != nil {
		return w.fail("write", name, err)
	}
	return nil
}

func (w *Writer) entry(e Entry) error {
	e.Wall = w.now().UTC().Format(time.RFC3339Nano)
	e.Detail = cut(e.Detail, MaxDetail)
	if err := w.chain.Append(e); err != nil {
		return w.fail("append", LogFile, err)
	}
	return nil
}

// Note adds a line to the run log. Detail must already be redacted; it is cut at [MaxDetail] bytes.
func (w *Writer) Note(detail string) error { return w.entry(Entry{Event: EventNote, Detail: detail}) }

// Provenance writes provenance.json. It is wanted once, before the first row.
func (w *Writer) Provenance(p provenance.Provenance) error {
	raw, err := canonical.Marshal(p)
	if err != nil {
		return fmt.Errorf("write provenance: %w", err)
	}
	return w.write(ProvenanceFile, append(raw, '\n'))
}

// Row begins one attempt at a planned row and logs it. Attempts count from 1 without gaps.
func (w *Writer) Row(c matrix.Contract, attempt int) (*RowWriter, error) {
	if err := w.Begin(c, attempt); err != nil {
		return nil, err
	}
	row, err := openRow(w.dir, w.plan.Digest, c, attempt)
	if err != nil {
		return nil, w.fail("create", string(c.ID), err)
	}
	row.writer = w
	return row, nil
}

// Begin logs the begin of an attempt that another process of the harness writes through [OpenRow]. [Writer.Row] does it itself.
func (w *Writer) Begin(c matrix.Contract, attempt int) error {
	place := PlaceOf(c, 0)
	w.mu.Lock()
	planned, ok := w.planned[place]
	w.mu.Unlock()
	if !ok {
		return fmt.Errorf("begin row %q: it is not in the plan", c.ID)
	}
	if same, err := sameJSON(planned, c); err != nil || !same {
		return errors.Join(fmt.Errorf("begin row %q: its contract is not the planned one", c.ID), err)
	}
	w.mu.Lock()
	want := len(w.attempts[place]) + 1
	ready := attempt == want && !w.open[place] && !w.done
	if ready {
		w.open[place] = true
	}
	w.mu.Unlock()
	if !ready {
		return fmt.Errorf("begin row %q: attempt %d, want %d after the one before has ended", c.ID, attempt, want)
	}
	return w.entry(Entry{Event: EventRowBegin, Row: c.ID, Attempt: attempt})
}

// Verdict writes verdict.json of an attempt whose writer is closed, and logs its end.
func (w *Writer) Verdict(c matrix.Contract, attempt int, v evidence.Verdict) error {
	place := PlaceOf(c, 0)
	w.mu.Lock()
	begun := w.open[place] && attempt == len(w.attempts[place])+1
	w.mu.Unlock()
	if !begun {
		return fmt.Errorf("verdict on row %q, attempt %d: the attempt was not begun", c.ID, attempt)
	}
	if v.Row != c.ID {
		return fmt.Errorf("verdict on row %q names row %q", c.ID, v.Row)
	}
	dir, err := PlaceOf(c, attempt).Path()
	if err != nil {
		return err
	}
	raw, err := canonical.Marshal(VerdictDocument{Format: VerdictFormat, Verdict: v})
	if err != nil {
		return fmt.Errorf("verdict on row %q: %w", c.ID, err)
	}
	if err := w.write(path.Join(dir, VerdictFile), append(raw, '\n')); err != nil {
		return err
	}
	files, err := w.filesOf(dir)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.attempts[place] = append(w.attempts[place], v)
	delete(w.open, place)
	w.mu.Unlock()
	return w.entry(Entry{Event: EventRowEnd, Row: c.ID, Attempt: attempt, Outcome: v.Outcome.String(), Files: files})
}

// filesOf reads back what lies in the folder of an attempt.
func (w *Writer) filesOf(dir string) ([]FileEntry, error) {
	names, err := os.ReadDir(w.abs(dir))
	if err != nil {
		return nil, w.fail("read back", dir, err)
	}
	var files []FileEntry
	for _, d := range names {
		sum, size, err := syncAndHash(w.abs(path.Join(dir, d.Name())))
		if err != nil {
			return nil, w.fail("read back", path.Join(dir, d.Name()), err)
		}
		files = append(files, FileEntry{Path: d.Name(), Size: size, SHA256: sum})
	}
	return files, nil
}

// Verdicts returns the joined verdict of every planned row, in the plan's order; a row without an attempt is not_run.
func (w *Writer) Verdicts() []evidence.Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]evidence.Verdict, 0, len(w.plan.Rows))
	for _, c := range w.plan.Rows {
		all = append(all, RowVerdict(c.ID, w.attempts[PlaceOf(c, 0)]))
	}
	return all
}

// Export writes junit.xml, summary.md or a file below report/. The name has slashes.
func (w *Writer) Export(name string, content []byte) error {
	limit, ok := Size(name)
	if !ok || name != JUnitFile && name != SummaryFile && !strings.HasPrefix(name, ReportDir+"/") {
		return fmt.Errorf("export %q: want %s, %s or a file below %s", name, JUnitFile, SummaryFile, ReportDir)
	}
	if int64(len(content)) > limit {
		return fmt.Errorf("export %q: %d bytes, want at most %d", name, len(content), limit)
	}
	if err := os.MkdirAll(filepath.Dir(w.abs(name)), 0o700); err != nil {
		return w.fail("create", name, err)
	}
	return w.write(name, content)
}

// Signing says who vouches. The zero value leaves the bundle unsigned.
type Signing struct {
	Key ed25519.PrivateKey
}

// Result is what a finished bundle is known by.
type Result struct {
	// Manifest is the sha256 of manifest.json. Signer is the key id, or [Unsigned].
	Manifest string
	Signer   string
	Files    int
	Bytes    int64
}

// Finish closes the run log, re-reads every file from the disk after it was synced, writes the statement when there is a key, and the
// manifest last. It refuses ([ErrUnfinished]) while a planned row has no verdict or a file is open, and after any failed write: such a
// bundle stays incomplete.
func (w *Writer) Finish(ctx context.Context, s Signing) (Result, error) {
	w.mu.Lock()
	failed, done := w.failed, w.done
	var missing []string
	for _, c := range w.plan.Rows {
		if place := PlaceOf(c, 0); len(w.attempts[place]) == 0 || w.open[place] {
			missing = append(missing, string(c.ID))
		}
	}
	w.mu.Unlock()
	switch {
	case done:
		return Result{}, fmt.Errorf("finish bundle: %w", ErrClosed)
	case failed != nil:
		return Result{}, fmt.Errorf("finish bundle: an earlier write failed: %w", failed)
	case len(missing) > 0:
		return Result{}, fmt.Errorf("finish bundle: %w: %d planned rows have no verdict, the first is %q", ErrUnfinished, len(missing), missing[0])
	}
	raw, err := os.ReadFile(w.abs(ProvenanceFile))
	if err != nil {
		return Result{}, fmt.Errorf("finish bundle: %w: no %s was written", ErrUnfinished, ProvenanceFile)
	}
	var p provenance.Provenance
	if err := json.Unmarshal(raw, &p); err != nil {
		return Result{}, fmt.Errorf("finish bundle: %s: %w", ProvenanceFile, err)
	}
	if err := w.entry(Entry{Event: EventFinish, Detail: fmt.Sprintf("%d rows", len(w.plan.Rows))}); err != nil {
		return Result{}, err
	}
	if err := w.closeLog(); err != nil {
		return Result{}, err
	}
	m := Manifest{Format: ManifestFormat, Plan: w.plan.Digest, Signer: Unsigned}
	if s.Key != nil {
		pub, ok := s.Key.Public().(ed25519.PublicKey)
		if !ok || len(s.Key) != ed25519.PrivateKeySize {
			return Result{}, errors.New("finish bundle: the key is no Ed25519 private key")
		}
		m.Signer = statement.KeyID(pub)
	}
	var bytes int64
	if m.Files, bytes, err = w.inventory(ctx); err != nil {
		return Result{}, err
	}
	manifest, err := canonical.Marshal(m)
	if err != nil {
		return Result{}, fmt.Errorf("finish bundle: manifest: %w", err)
	}
	manifest = append(manifest, '\n')
	if s.Key != nil {
		claims, err := ClaimsOf(w.plan, p, hexSum(manifest), m.digest(PlanFile))
		if err != nil {
			return Result{}, fmt.Errorf("finish bundle: %w", err)
		}
		envelope, err := statement.Sign(statement.New(claims), s.Key)
		if err != nil {
			return Result{}, fmt.Errorf("finish bundle: %w", err)
		}
		if err := w.write(StatementFile, envelope); err != nil {
			return Result{}, err
		}
	}
	if err := w.write(ManifestFile, manifest); err != nil {
		return Result{}, err
	}
	return Result{Manifest: hexSum(manifest), Signer: m.Signer, Files: len(m.Files), Bytes: bytes}, nil
}

func (m Manifest) digest(name string) string {
	for _, f := range m.Files {
		if f.Path == name {
			return f.SHA256
		}
	}
	return ""
}

// Close ends an unfinished bundle: it stays incomplete. After Finish it does nothing.
func (w *Writer) Close() error { return w.closeLog() }

func (w *Writer) closeLog() error {
	w.mu.Lock()
	if w.done {
		w.mu.Unlock()
		return nil
	}
	w.done = true
	w.mu.Unlock()
	err := w.log.Sync()
	if cerr := w.log.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return w.fail("close", LogFile, err)
	}
	return nil
}

// inventory syncs and hashes every file. A file that no bundle may hold (a view that is still open, too) is an error.
func (w *Writer) inventory(ctx context.Context) ([]FileEntry, int64, error) {
	files := []FileEntry{}
	var total int64
	err := filepath.WalkDir(w.dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return w.fail("read", ".", err)
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("finish bundle: %w", err)
		}
		rel, err := filepath.Rel(w.dir, file)
		if err != nil {
			return w.fail("read", ".", err)
		}
		name := filepath.ToSlash(rel)
		if d.IsDir() {
			return w.syncDir(name)
		}
		limit, ok := Size(name)
		if !ok || !d.Type().IsRegular() || name == ManifestFile || name == StatementFile {
			return fmt.Errorf("finish bundle: %w: %q is no file of a finished bundle", ErrUnfinished, name)
		}
		sum, size, err := syncAndHash(file)
		if err != nil {
			return w.fail("read back", name, err)
		}
		if size > limit {
			return fmt.Errorf("finish bundle: %q has %d bytes, want at most %d", name, size, limit)
		}
		total += size
		if files = append(files, FileEntry{Path: name, Size: size, SHA256: sum}); len(files) > MaxFiles {
			return fmt.Errorf("finish bundle: more than %d files", MaxFiles)
		}
		return nil
	})
	sort.Slice(files, func(i, j int) bool { return files[i].Path < files[j].Path })
	return files, total, err
}

func (w *Writer) syncDir(name string) error {
	if err := syncFolder(w.abs(name)); err != nil {
		return w.fail("sync", name, err)
	}
	return nil
}

// ClaimsOf returns what a statement about a bundle says, from the bundle's own parts.
func ClaimsOf(plan matrix.Plan, p provenance.Provenance, manifest, planFile string) (statement.Claims, error) {
	rows, err := RowsDigest(plan)
	if err != nil {
		return statement.Claims{}, err
	}
	return statement.Claims{Manifest: manifest, PlanFile: planFile, Plan: plan.Digest, Matrix: plan.MatrixDigest, EngineFile: plan.EngineFile,
		Rows: rows, HarnessCommit: p.Repository.Commit, HarnessDirty: p.Repository.State != provenance.StateClean, SubjectCommit: p.Engine.SubjectCommit,
		Engine: plan.Engine, Product: string(plan.Product), Environment: string(plan.Environment)}, nil
}

func sameJSON(a, b any) (bool, error) {
	x, err := canonical.Marshal(a)
	if err != nil {
		return false, err
	}
	y, err := canonical.Marshal(b)
	return bytes.Equal(x, y), err
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// partial is the name under which a file is written until it is whole.
func partial(file string) string {
	return filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".partial")
}

// writeWhole writes a file that is whole or absent, and never replaces one.
func writeWhole(file string, content []byte) error {
	f, err := os.OpenFile(partial(file), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := f.Write(content)
	return seal(f, file, int64(n), err)
}

// seal syncs, compares the size on the disk with what was written, closes and gives the file its name. On any error it removes the file.
func seal(f *os.File, file string, written int64, err error) error {
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil && info.Size() != written {
			err = fmt.Errorf("%d bytes were written, %d are there", written, info.Size())
		}
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		if _, exists := os.Lstat(file); exists == nil {
			err = fs.ErrExist
		} else {
			err = os.Rename(f.Name(), file)
		}
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncFolder(filepath.Dir(file))
}

func syncAndHash(file string) (sum string, size int64, err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, err
	}
	if size != info.Size() {
		return "", 0, fmt.Errorf("read %d bytes of %d", size, info.Size())
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}
