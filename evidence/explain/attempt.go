package explain

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sort"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/bundle"
	"github.com/engine-acceptance/acceptance/matrix"
)

// Bounds of what is read of one attempt. Longer views are read up to the bound, and say so.
const (
	maxViewLine  = 1 << 20
	maxViewBytes = 64 << 20
)

// Attempt is one attempt at a row as its files have it. Verdict is derived again from the observations; Written is the outcome that the bundle
// says, empty when it has none.
type Attempt struct {
	Contract matrix.Contract
	// Number counts from 1; it is 0 for a row that was never begun.
	Number int
	// Dir is the slash-separated folder of the attempt inside the bundle.
	Dir          string
	Observations []evidence.Observation
	Verdict      evidence.Verdict
	Written      string
	// Film is nil when the attempt has no film or no side file.
	Film *Clock
	// Files lists the attempt's files by name, with their sizes in bytes.
	Files map[string]int64
	// Problem says why the observations could not be read.
	Problem string
}

// Attempts reads every attempt at a row, in order. A row that was never begun has none. The error is that of ctx.
func Attempts(ctx context.Context, root *os.Root, c matrix.Contract) ([]Attempt, error) {
	var out []Attempt
	for n := 1; n <= bundle.MaxAttempts; n++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		dir, err := bundle.PlaceOf(c, n).Path()
		if err != nil {
			return out, nil // such a row cannot be in a bundle
		}
		info, err := root.Lstat(dir)
		if err != nil || !info.IsDir() {
			return out, nil // the attempts end here
		}
		out = append(out, readAttempt(root, c, n, dir))
	}
	return out, nil
}

func readAttempt(root *os.Root, c matrix.Contract, n int, dir string) Attempt {
	a := Attempt{Contract: c, Number: n, Dir: dir, Files: map[string]int64{}, Verdict: evidence.Verdict{Row: c.ID}}
	for name := range bundle.Views {
		a.size(root, name)
	}
	for _, name := range []string{bundle.RowFile, bundle.ObservationsFile, bundle.VerdictFile} {
		a.size(root, name)
	}
	f, err := openPlain(root, path.Join(dir, bundle.ObservationsFile))
	if err != nil {
		a.Problem = err.Error()
		return a
	}
	defer f.Close()
	a.Observations, err = bundle.ReadObservations(io.LimitReader(f, bundle.MaxObserved))
	if err != nil {
		a.Problem = err.Error()
	}
	a.Verdict = judged(c, a.Observations)
	a.Written = written(root, path.Join(dir, bundle.VerdictFile))
	if a.Files["film.mp4"] > 0 {
		a.Film = readClock(root, path.Join(dir, "frames.jsonl"))
	}
	return a
}

func (a *Attempt) size(root *os.Root, name string) {
	if info, err := root.Lstat(path.Join(a.Dir, name)); err == nil && info.Mode().IsRegular() {
		a.Files[name] = info.Size()
	}
}

// judged runs the judge; observations that make it panic are a row that nothing can be said about.
func judged(c matrix.Contract, obs []evidence.Observation) (v evidence.Verdict) {
	defer func() {
		if recover() != nil {
			v = evidence.Verdict{Row: c.ID, Outcome: evidence.HarnessError, JudgeVersion: evidence.JudgeVersion,
				Findings: []evidence.Finding{{Requirement: "J1", Reason: evidence.ReasonObservationsBad, Text: "the judge could not read these observations"}}}
		}
	}()
	return evidence.Judge(c, obs)
}

func written(root *os.Root, name string) string {
	var doc bundle.VerdictDocument
	raw, err := readPlain(root, name, bundle.MaxDocument)
	if err != nil || bundle.DecodeDocument(raw, &doc) != nil {
		return ""
	}
	return doc.Verdict.Outcome.String()
}

// openPlain opens a regular file inside the bundle.
func openPlain(root *os.Root, name string) (*os.File, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, bare(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := root.Open(name)
	return f, bare(err)
}

// bare takes the path out of an error: it may name a folder of the reader's machine.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func readPlain(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := openPlain(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("more than %d bytes", limit)
	}
	return raw, err
}

// ReadDocument reads one JSON document of a bundle into v.
func ReadDocument(root *os.Root, name string, v any) error {
	raw, err := readPlain(root, name, bundle.MaxDocument)
	if err == nil {
		err = bundle.DecodeDocument(raw, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// EachLine calls f with each line of a text view of a bundle, without its newline, until f returns false. Cut is true when lines were left
// out: the view is longer than is read, or holds a line that is too long.
func EachLine(root *os.Root, name string, f func([]byte) bool) (cut bool, err error) {
	file, err := openPlain(root, name)
	if err != nil {
		return false, err
	}
	defer file.Close()
	in := bufio.NewScanner(io.LimitReader(file, maxViewBytes))
	in.Buffer(make([]byte, 64<<10), maxViewLine)
	for in.Scan() {
		if !f(bytes.TrimRight(in.Bytes(), "\r")) {
			return true, nil
		}
	}
	info, err := file.Stat()
	return in.Err() != nil || err == nil && info.Size() > maxViewBytes, nil
}

// Clock turns moments of the run into places in a film.
type Clock struct {
	// FPS is the film's constant rate. Captured holds the CLOCK_MONOTONIC nanoseconds at which the picture of each frame was taken.
	FPS      int
	Captured []int64
}

// maxFrames bounds the frames of one film that are looked at: more than four hours at 15 a second.
const maxFrames = 1 << 18

func readClock(root *os.Root, name string) *Clock {
	c := &Clock{}
	_, err := EachLine(root, name, func(line []byte) bool {
		var l struct {
			FPS int   `json:"fps"`
			Cap int64 `json:"cap_mono_ns"`
		}
		if json.Unmarshal(line, &l) != nil {
			return false
		}
		if c.FPS == 0 {
			c.FPS = l.FPS
			return l.FPS > 0 && l.FPS <= 240
		}
		if n := len(c.Captured); n > 0 && l.Cap < c.Captured[n-1] {
			l.Cap = c.Captured[n-1]
		}
		c.Captured = append(c.Captured, l.Cap)
		return len(c.Captured) < maxFrames
	})
	if err != nil || c.FPS <= 0 || c.FPS > 240 || len(c.Captured) == 0 {
		return nil
	}
	return c
}

// At returns the place in the film, in seconds, of the first frame that was taken at or after a moment; ok is false when the film does not
// cover the moment, and the place is then its nearest end.
func (c *Clock) At(monoNS int64) (seconds float64, ok bool) {
	n := len(c.Captured)
	i := sort.Search(n, func(i int) bool { return c.Captured[i] >= monoNS })
	switch {
	case i == n:
		return float64(n-1) / float64(c.FPS), false
	case i == 0 && c.Captured[0]-monoNS > 1e9/int64(c.FPS):
		return 0, false
	}
	return float64(i) / float64(c.FPS), true
}

// Start and End are the moments of the first and the last frame. Seconds is the film's length.
func (c *Clock) Start() int64 { return c.Captured[0] }

// End is the moment of the last frame.
func (c *Clock) End() int64 { return c.Captured[len(c.Captured)-1] }

// Seconds is the length of the film.
func (c *Clock) Seconds() float64 { return float64(len(c.Captured)) / float64(c.FPS) }
