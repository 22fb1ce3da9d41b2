package bundle

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sync"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/matrix/canonical"
)

// RowWriter writes one attempt at one row. Observe is safe for concurrent use.
type RowWriter struct {
	writer   *Writer // nil in a worker process
	contract matrix.Contract
	attempt  int
	dir      string // on this machine
	name     string // inside the bundle

	mu     sync.Mutex
	file   *os.File
	seq    int
	open   map[string]bool
	failed error
	closed bool
}

// OpenRow begins one attempt in a bundle that another process of the harness made with [Create]: for a worker. The maker calls
// [Writer.Begin] before and [Writer.Verdict] after. Contract and digest are compared with the bundle's plan.
func OpenRow(ctx context.Context, dir string, c matrix.Contract, attempt int) (*RowWriter, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open row %q: %w", c.ID, err)
	}
	raw, err := readBounded(filepath.Join(dir, PlanFile), MaxDocument)
	if err != nil {
		return nil, fmt.Errorf("open row %q: %w", c.ID, err)
	}
	var plan matrix.Plan
	if err := json.Unmarshal(raw, &plan); err != nil {
		return nil, fmt.Errorf("open row %q: %s: %w", c.ID, PlanFile, err)
	}
	for _, p := range plan.Rows {
		if PlaceOf(p, 0) == PlaceOf(c, 0) {
			if same, err := sameJSON(p, c); err != nil || !same {
				return nil, errors.Join(fmt.Errorf("open row %q: its contract is not the planned one", c.ID), err)
			}
			return openRow(dir, plan.Digest, c, attempt)
		}
	}
	return nil, fmt.Errorf("open row %q: it is not in the plan", c.ID)
}

func openRow(root, planDigest string, c matrix.Contract, attempt int) (*RowWriter, error) {
	name, err := PlaceOf(c, attempt).Path()
	if err != nil {
		return nil, err
	}
	r := &RowWriter{contract: c, attempt: attempt, name: name, dir: filepath.Join(root, filepath.FromSlash(name)), open: map[string]bool{}}
	if err := os.MkdirAll(filepath.Dir(r.dir), 0o700); err != nil {
		return nil, r.fail("create", "", err)
	}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return nil, r.fail("create", "", err)
	}
	raw, err := canonical.Marshal(RowDocument{Format: RowFormat, Plan: planDigest, Attempt: attempt, Contract: c})
	if err != nil {
		return nil, fmt.Errorf("row %q: %w", c.ID, err)
	}
	if err := writeWhole(filepath.Join(r.dir, RowFile), append(raw, '\n')); err != nil {
		return nil, r.fail("write", RowFile, err)
	}
	if r.file, err = os.OpenFile(filepath.Join(r.dir, ObservationsFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600); err != nil {
		return nil, r.fail("create", ObservationsFile, err)
	}
	return r, nil
}

func (r *RowWriter) fail(op, name string, err error) error {
	err = &WriteError{op, path.Join(r.name, name), pathless(err)}
	r.mu.Lock()
	if r.failed == nil {
		r.failed = err
	}
	r.mu.Unlock()
	if r.writer != nil {
		return r.writer.fail(op, name, err)
	}
	return err
}

// Path returns the row's folder inside the bundle, with slashes.
func (r *RowWriter) Path() string { return r.name }

// Observe numbers o and appends it at once: it is with the kernel when Observe returns, so that killing us loses nothing. Seq of o is
// ignored. An observation without exactly the payload of its kind is refused.
func (r *RowWriter) Observe(o evidence.Observation) error {
	r.mu.Lock()
	if r.closed || r.failed != nil {
		err := r.failed
		r.mu.Unlock()
		return errors.Join(fmt.Errorf("observe in row %q: %w", r.contract.ID, ErrClosed), err)
	}
	o.Seq = r.seq + 1
	err := checkPayload(o)
	var line []byte
	if err == nil {
		line, err = json.Marshal(o)
	}
	if err == nil && len(line) > MaxLine {
		err = fmt.Errorf("observation of %d bytes, want at most %d", len(line), MaxLine)
	}
	if err != nil {
		r.mu.Unlock()
		return fmt.Errorf("observe in row %q: %w", r.contract.ID, err)
	}
	if _, err = r.file.Write(append(line, '\n')); err == nil {
		r.seq++
	}
	r.mu.Unlock()
	if err != nil {
		return r.fail("append", ObservationsFile, err)
	}
	return nil
}

// Count returns how many observations were written; the last one's Seq.
func (r *RowWriter) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seq
}

// File begins a view: a name of [Views], once. The caller closes it; until then the row cannot be closed.
func (r *RowWriter) File(name string) (*View, error) {
	limit, ok := Views[name]
	if !ok {
		return nil, fmt.Errorf("row %q: %q is no view", r.contract.ID, name)
	}
	r.mu.Lock()
	_, again := r.open[name]
	if !again && !r.closed {
		r.open[name] = true
	}
	closed := r.closed
	r.mu.Unlock()
	if again || closed {
		return nil, fmt.Errorf("row %q: view %q: %w", r.contract.ID, name, ErrClosed)
	}
	file := filepath.Join(r.dir, name)
	f, err := os.OpenFile(partial(file), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, r.fail("create", name, err)
	}
	return &View{row: r, name: name, file: file, f: f, limit: limit}, nil
}

// Add writes a whole view from what another part of the harness recorded elsewhere.
func (r *RowWriter) Add(name string, from io.Reader) error {
	v, err := r.File(name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(v, from); err != nil {
		return errors.Join(err, v.Abort())
	}
	return v.Close()
}

// Close ends the observations. Every view must be closed before. It does not write a verdict: see [Writer.Verdict].
func (r *RowWriter) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return fmt.Errorf("close row %q: %w", r.contract.ID, ErrClosed)
	}
	for name, open := range r.open {
		if open {
			r.mu.Unlock()
			return fmt.Errorf("close row %q: %w: view %q is open", r.contract.ID, ErrUnfinished, name)
		}
	}
	r.closed = true
	failed := r.failed
	r.mu.Unlock()
	err := r.file.Sync()
	if cerr := r.file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return r.fail("close", ObservationsFile, err)
	}
	return failed
}

// Finish is Close and the writer's Verdict in one: for a row that was begun with [Writer.Row].
func (r *RowWriter) Finish(v evidence.Verdict) error {
	if r.writer == nil {
		return fmt.Errorf("finish row %q: a worker closes its rows, the bundle's maker writes the verdict", r.contract.ID)
	}
	if err := r.Close(); err != nil {
		return err
	}
	return r.writer.Verdict(r.contract, r.attempt, v)
}

// Observations reads back, from the disk, what was observed: what the judge is given. It is strict in the way of [ReadObservations].
func (r *RowWriter) Observations() ([]evidence.Observation, error) {
	f, err := os.Open(filepath.Join(r.dir, ObservationsFile))
	if err != nil {
		return nil, pathless(err)
	}
	defer f.Close()
	return ReadObservations(f)
}

// View is one file of a row while it is written. Close gives it its name; until then it has another, see Name.
type View struct {
	row   *RowWriter
	name  string
	file  string
	f     *os.File
	n     int64
	limit int64
	done  bool
	err   error
}

// Write appends. Beyond the view's limit of [Views] it fails.
func (v *View) Write(p []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	if v.n+int64(len(p)) > v.limit {
		v.err = v.row.fail("write", v.name, fmt.Errorf("more than %d bytes", v.limit))
		return 0, v.err
	}
	n, err := v.f.Write(p)
	v.n += int64(n)
	if err != nil {
		v.err = v.row.fail("write", v.name, err)
		return n, v.err
	}
	return n, nil
}

// Name is the file's temporary path on this machine, for a program that writes by name. Such a program must write to this very file
// (not replace it), and be over before [View.Close].
func (v *View) Name() string { return v.f.Name() }

// Close syncs the file and gives it its name. Closing twice is an error.
func (v *View) Close() error {
	if v.done {
		return fmt.Errorf("view %q: %w", v.name, ErrClosed)
	}
	v.done = true
	if v.err != nil {
		return errors.Join(v.err, v.f.Close(), os.Remove(v.f.Name()))
	}
	size := v.n
	if size == 0 {
		// Perhaps written by name.
		info, err := v.f.Stat()
		if err != nil {
			return v.row.fail("close", v.name, err)
		}
		if size = info.Size(); size > v.limit {
			return v.row.fail("close", v.name, fmt.Errorf("%d bytes, want at most %d", size, v.limit))
		}
	}
	if err := seal(v.f, v.file, size, nil); err != nil {
		return v.row.fail("close", v.name, err)
	}
	v.free(false)
	return nil
}

// Abort removes the file: the view is absent, and may be begun again.
func (v *View) Abort() error {
	if v.done {
		return nil
	}
	v.done = true
	v.free(true)
	return errors.Join(v.f.Close(), os.Remove(v.f.Name()))
}

func (v *View) free(again bool) {
	v.row.mu.Lock()
	defer v.row.mu.Unlock()
	if again {
		delete(v.row.open, v.name)
	} else {
		v.row.open[v.name] = false
	}
}

// MalformedError is an observation file that the judge may not be given. Line counts from 1.
type MalformedError struct {
	Line int
	What string
	// Cut is true when the file ends inside its last line: its writer was killed.
	Cut bool
}

// Error reads line and cause.
func (e *MalformedError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.What) }

// MaxObservations is how many observations one row may have.
const MaxObservations = 1_000_000

// ReadObservations reads observations.jsonl strictly: every line is exactly what [RowWriter.Observe] would write for it (no unknown,
// missing, repeated or differently cased field), numbered from 1 without gaps, with a known kind and the payload that belongs to it and
// no other. The error is a [*MalformedError] or that of r.
func ReadObservations(r io.Reader) ([]evidence.Observation, error) {
	var all []evidence.Observation
	br := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	for {
		raw, err := br.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if long = append(long, raw...); len(long) > MaxLine {
				return all, &MalformedError{Line: len(all) + 1, What: fmt.Sprintf("longer than %d bytes", MaxLine)}
			}
			continue
		}
		if long != nil {
			long = append(long, raw...)
			raw = long
		}
		if errors.Is(err, io.EOF) {
			if len(raw) > 0 {
				return all, &MalformedError{Line: len(all) + 1, What: "the last line has no end", Cut: true}
			}
			return all, nil
		}
		if err != nil {
			return all, err
		}
		if len(raw)-1 > MaxLine {
			return all, &MalformedError{Line: len(all) + 1, What: fmt.Sprintf("longer than %d bytes", MaxLine)}
		}
		o, err := parseObservation(raw[:len(raw)-1])
		if err == nil && o.Seq != len(all)+1 {
			err = fmt.Errorf("seq is %d, want %d", o.Seq, len(all)+1)
		}
		if err == nil && len(all) == MaxObservations {
			err = fmt.Errorf("more than %d observations", MaxObservations)
		}
		if err != nil {
			return all, &MalformedError{Line: len(all) + 1, What: err.Error()}
		}
		all = append(all, o)
		long = nil
	}
}
