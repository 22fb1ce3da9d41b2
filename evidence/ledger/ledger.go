// Package ledger is the append-only list of complete runs: one line a run, hash-chained, with a counter for each commit that has no gaps. It is
// what keeps a run from being repeated until it is green: a policy that asks for complete runs compares what it was given with the ledger, and
// without a ledger such a policy is unmet.
//
//	e, err := ledger.Append(ctx, path, ledger.Entry{Commit: commit, Manifest: digest, ...})
//	l, err := ledger.Read(path)
//	runs := l.Runs(commit)
//
// A ledger cannot show by itself that its last lines were cut off: whoever gates keeps its head (see [Ledger.Head]), or compares the
// manifests of the bundles that exist with those that it lists.
package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/engine-acceptance/acceptance/evidence/chain"
)

// Format names the format and version of a ledger's entries; it is also the seed of the chain.
const Format = "acceptance.ledger/v1"

// MaxSize is the largest ledger that is read, in bytes.
const MaxSize = 256 << 20

// Entry is one complete run. All digests are sha256 in lower-case hex.
type Entry struct {
	Format string `json:"format"`
	// Commit is the harness's commit, Subject that of the engine; Counter counts runs with both, from 1.
	Commit  string `json:"harness_commit"`
	Subject string `json:"subject_commit"`
	Counter int    `json:"counter"`
	// Manifest is the digest of the bundle's manifest, Plan that of its plan.
	Manifest    string `json:"manifest_sha256"`
	Plan        string `json:"plan_digest"`
	Engine      string `json:"engine"`
	Product     string `json:"product"`
	Environment string `json:"environment"`
	// ExitCode is what the run ended with: 0, 1 or 3.
	ExitCode int `json:"exit_code"`
	// Wall is when it ended, UTC, RFC 3339.
	Wall string `json:"wall"`
}

// Problem is one thing that is wrong with a ledger. Line counts from 1.
type Problem struct {
	Line int    `json:"line"`
	What string `json:"what"`
}

// Ledger is a ledger as read. Entries are those up to the first problem of the chain.
type Ledger struct {
	Entries  []Entry
	Problems []Problem
	// Head is the digest of the last line that holds.
	Head string
}

// ErrBroken is returned by [Append] for a ledger with problems: nothing is added to what cannot be believed.
var ErrBroken = errors.New("the ledger has problems")

// ErrRecorded is returned by [Append] for a run whose manifest the ledger already lists.
var ErrRecorded = errors.New("the run is already in the ledger")

type run struct{ commit, subject string }

// Runs returns the complete runs at a harness commit and a subject commit, in order.
func (l Ledger) Runs(commit, subject string) []Entry {
	var runs []Entry
	for _, e := range l.Entries {
		if e.Commit == commit && e.Subject == subject {
			runs = append(runs, e)
		}
	}
	return runs
}

// Read reads a ledger. Problems of its content are in the ledger; the error is for a file that is not there, not regular, too large or
// not readable.
func Read(path string) (Ledger, error) {
	f, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return Ledger{}, fmt.Errorf("read ledger: %w", err)
	}
	defer f.Close()
	l, _, err := read(f)
	if err != nil {
		return Ledger{}, fmt.Errorf("read ledger: %w", err)
	}
	return l, nil
}

func read(r io.Reader) (Ledger, int, error) {
	var l Ledger
	counters := map[run]int{}
	manifests := map[string]bool{}
	head, n, err := chain.Read(r, Format, func(line chain.Line) error {
		e, err := parse(line.Entry)
		if err != nil {
			return &chain.BrokenError{Line: line.Seq, What: err.Error()}
		}
		key := run{e.Commit, e.Subject}
		counters[key]++
		if e.Counter != counters[key] {
			l.Problems = append(l.Problems, Problem{line.Seq, fmt.Sprintf("counter is %d, want %d", e.Counter, counters[key])})
		}
		if manifests[e.Manifest] {
			l.Problems = append(l.Problems, Problem{line.Seq, "the run is listed twice"})
		}
		manifests[e.Manifest] = true
		l.Entries = append(l.Entries, e)
		return nil
	})
	l.Head = head
	var broken *chain.BrokenError
	switch {
	case errors.As(err, &broken):
		l.Problems = append(l.Problems, Problem{broken.Line, broken.What})
	case errors.Is(err, chain.ErrCut):
		l.Problems = append(l.Problems, Problem{n + 1, err.Error()})
	case err != nil:
		return l, n, err
	}
	return l, n, nil
}

func parse(raw []byte) (Entry, error) {
	var e Entry
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return e, err
	}
	again, err := json.Marshal(e)
	if err != nil || !bytes.Equal(again, raw) {
		return e, errors.New("not in the form that is written")
	}
	return e, e.check()
}

func (e Entry) check() error {
	if e.Format != Format {
		return fmt.Errorf("format %.40q, want %s", e.Format, Format)
	}
	if e.Commit == "" || len(e.Manifest) != 64 || len(e.Plan) != 64 {
		return errors.New("a commit and the digests of manifest and plan are needed")
	}
	if e.ExitCode != 0 && e.ExitCode != 1 && e.ExitCode != 3 {
		return fmt.Errorf("exit code %d: a complete run ends with 0, 1 or 3", e.ExitCode)
	}
	if _, err := time.Parse(time.RFC3339, e.Wall); err != nil {
		return fmt.Errorf("wall %.40q is no time", e.Wall)
	}
	return nil
}

// Append adds a complete run, under a lock that other processes respect, and returns it with its counter. Format and Counter are filled
// in. A missing ledger is begun. The line is on the disk when Append returns.
func Append(ctx context.Context, path string, e Entry) (Entry, error) {
	fail := func(err error) (Entry, error) { return Entry{}, fmt.Errorf("append to ledger: %w", err) }
	f, err := openRegular(path, os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	if err := lock(ctx, f); err != nil {
		return fail(err)
	}
	l, n, err := read(f)
	if err != nil {
		return fail(err)
	}
	if len(l.Problems) > 0 {
		return fail(fmt.Errorf("%w: line %d: %s", ErrBroken, l.Problems[0].Line, l.Problems[0].What))
	}
	for _, have := range l.Entries {
		if have.Manifest == e.Manifest {
			return fail(ErrRecorded)
		}
	}
	e.Format, e.Counter = Format, len(l.Runs(e.Commit, e.Subject))+1
	if err := e.check(); err != nil {
		return fail(err)
	}
	if err := chain.Resume(f, l.Head, n).Append(e); err != nil {
		return fail(err)
	}
	if err := f.Sync(); err != nil {
		return fail(err)
	}
	return e, nil
}

func openRegular(path string, flag int) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	} else if err != nil && (flag&os.O_CREATE == 0 || !errors.Is(err, fs.ErrNotExist)) {
		return nil, err
	}
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() > MaxSize) {
		err = fmt.Errorf("want a regular file of at most %d bytes", MaxSize)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
