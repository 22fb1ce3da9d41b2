package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"sort"
	"strings"
	"sync"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/bundle"
	"github.com/engine-acceptance/acceptance/evidence/chain"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/matrix/canonical"
)

// found is a regular file as the walk saw it; want is its digest in the manifest.
type found struct {
	info fs.FileInfo
	size int64
	want string
}

// maxFolders bounds the walk, with the bound on files.
const maxFolders = 4 * bundle.MaxFiles

// walk lists every regular file with an allowed name and size, and reports everything else. It follows no link.
func (v *verifier) walk(ctx context.Context) error {
	v.found = map[string]found{}
	v.exports = map[string][]byte{}
	v.trusted = map[string]int{}
	folders := map[string]bool{}
	tooMany := errors.New("too many")
	err := fs.WalkDir(v.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err != nil {
			v.altered(name, "path", "readable", reason(err))
			return nil
		}
		if d.IsDir() {
			if folders[name] = true; len(folders) > maxFolders || strings.Count(name, "/") > 16 {
				return tooMany
			}
			return nil
		}
		info, err := d.Info()
		switch {
		case err != nil:
			v.altered(name, "path", "readable", reason(err))
		case !info.Mode().IsRegular():
			v.altered(name, "path", "a regular file", "mode "+info.Mode().Type().String())
		default:
			limit, ok := bundle.Size(name)
			if !ok {
				v.unknown(name)
				return nil
			}
			if info.Size() > limit {
				v.altered(name, "path", fmt.Sprintf("at most %d bytes", limit), fmt.Sprintf("%d bytes", info.Size()))
				return nil
			}
			if v.found[name] = (found{info: info, size: info.Size()}); len(v.found) > bundle.MaxFiles {
				return tooMany
			}
		}
		return nil
	})
	if errors.Is(err, tooMany) {
		v.altered(".", "path", fmt.Sprintf("at most %d files", bundle.MaxFiles), "more, or folders too deep")
		return nil
	}
	if err != nil {
		return err
	}
	for name := range v.found {
		for dir := path.Dir(name); folders[dir]; dir = path.Dir(dir) {
			delete(folders, dir)
		}
	}
	delete(folders, ".")
	_, finished := v.found[bundle.ManifestFile]
	for name := range folders {
		if finished {
			v.altered(name, "path", "no folder without files", "a folder without files")
		}
	}
	return nil
}

// unknown reports a file with a name that no bundle has. A name that the writer gives to unfinished files is what a cut run leaves.
func (v *verifier) unknown(name string) {
	base := path.Base(name)
	if whole, ok := strings.CutSuffix(base, ".partial"); ok && strings.HasPrefix(whole, ".") {
		if _, ok := bundle.Size(path.Join(path.Dir(name), whole[1:])); ok {
			if _, err := v.root.Lstat(bundle.ManifestFile); err != nil {
				v.begun = true
				v.problem(Incomplete, name, "path", "finished", "unfinished")
				return
			}
		}
	}
	v.altered(name, "path", "a name of a bundle", "an unknown name")
}

// reason is an error without the path, which the problem already names.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// open opens a file that the walk saw, and makes sure that it is still the same one: a link or another file in its place is refused.
func (v *verifier) open(name string) (*os.File, error) {
	want, ok := v.found[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	f, err := v.root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || !os.SameFile(info, want.info) || info.Size() != want.size) {
		err = errors.New("it changed while it was verified")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// bounded reads not one byte more than the walk saw.
type bounded struct {
	f    *os.File
	h    hash.Hash
	left int64
	ctx  context.Context
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.ctx != nil {
		if err := b.ctx.Err(); err != nil {
			return 0, err
		}
	}
	n, err := b.f.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errors.New("it grew while it was verified")
	}
	b.h.Write(p[:n])
	return n, err
}

// sum reads the rest and returns the digest of the whole.
func (b *bounded) sum(buf []byte) (string, error) {
	for {
		_, err := b.Read(buf)
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", err
		}
	}
	if b.left != 0 {
		return "", errors.New("it shrank while it was verified")
	}
	return hex.EncodeToString(b.h.Sum(nil)), nil
}

// read returns the content and digest of a small file and compares it with the manifest. False means that a problem was reported, or that
// the file is absent (which the comparison with the manifest reports).
func (v *verifier) read(name string) ([]byte, string, bool) {
	f, err := v.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", false
	}
	if err != nil {
		v.altered(name, "path", "readable", reason(err))
		return nil, "", false
	}
	defer f.Close()
	raw := make([]byte, v.found[name].size)
	if _, err := io.ReadFull(f, raw); err != nil {
		v.altered(name, "path", "readable", reason(err))
		return nil, "", false
	}
	s := sha256.Sum256(raw)
	sum := hex.EncodeToString(s[:])
	v.compare(name, sum)
	return raw, sum, true
}

func (v *verifier) compare(name, sum string) {
	v.mu.Lock()
	v.sums[name] = sum
	v.mu.Unlock()
	if want := v.found[name].want; want != "" && want != sum {
		v.altered(name, "digest", "sha256 "+want, "sha256 "+sum)
	}
}

// files reads every file once: rows as a whole, everything else by digest.
func (v *verifier) files(ctx context.Context) error {
	type task struct {
		place bundle.Place
		state *rowState
		files []string
	}
	byDir := map[string]*task{}
	var tasks []*task
	for place, state := range v.rows {
		t := &task{place: place, state: state}
		byDir[state.dir] = t
		tasks = append(tasks, t)
	}
	other := &task{}
	tasks = append(tasks, other)
	for name, f := range v.found {
		v.report.Bytes += f.size
		switch name {
		case bundle.ManifestFile, bundle.StatementFile, bundle.PlanFile, bundle.ProvenanceFile, bundle.LogFile:
			continue // read by their own checks
		}
		if t := byDir[path.Dir(name)]; t != nil {
			t.files = append(t.files, path.Base(name))
		} else {
			other.files = append(other.files, name)
		}
	}
	contracts := map[bundle.Place]matrix.Contract{}
	for _, c := range v.plan.Rows {
		contracts[bundle.PlaceOf(c, 0)] = c
	}
	workers := v.options.Workers
	if workers < 1 || workers > 2 {
		workers = 2
	}
	queue := make(chan *task)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			buf := make([]byte, 256<<10)
			for t := range queue {
				sort.Strings(t.files)
				if t.state == nil {
					v.plain(ctx, t.files, buf)
					continue
				}
				place := t.place
				place.Attempt = 0
				c, planned := contracts[place]
				v.row(ctx, t.place, t.state, c, planned, t.files, buf)
			}
		})
	}
	for _, t := range tasks {
		queue <- t
	}
	close(queue)
	wg.Wait()
	return ctx.Err()
}

// plain compares files by digest alone, and keeps the exports.
func (v *verifier) plain(ctx context.Context, names []string, buf []byte) {
	for _, name := range names {
		if name == bundle.JUnitFile || name == bundle.SummaryFile {
			if raw, _, ok := v.read(name); ok {
				v.exports[name] = raw
			}
			continue
		}
		v.digest(ctx, name, buf)
	}
}

func (v *verifier) digest(ctx context.Context, name string, buf []byte) {
	f, err := v.open(name)
	if err != nil {
		v.altered(name, "path", "readable", reason(err))
		return
	}
	defer f.Close()
	sum, err := (&bounded{f: f, h: sha256.New(), left: v.found[name].size, ctx: ctx}).sum(buf)
	if err != nil {
		v.altered(name, "path", "readable", reason(err))
		return
	}
	v.compare(name, sum)
}

// row checks one attempt: its documents, its observations, and its verdict, which is derived again.
func (v *verifier) row(ctx context.Context, place bundle.Place, state *rowState, c matrix.Contract, planned bool, files []string, buf []byte) {
	if state.unended {
		return
	}
	have := map[string]bool{}
	for _, name := range files {
		have[name] = true
		switch name {
		case bundle.RowFile, bundle.ObservationsFile, bundle.VerdictFile:
		default:
			v.digest(ctx, path.Join(state.dir, name), buf)
		}
	}
	for _, name := range []string{bundle.RowFile, bundle.ObservationsFile, bundle.VerdictFile} {
		if !have[name] {
			v.problem(Incomplete, path.Join(state.dir, name), "row", "present", "absent")
		}
	}
	if have[bundle.RowFile] {
		v.rowDocument(path.Join(state.dir, bundle.RowFile), place, c, planned)
	}
	var written *evidence.Verdict
	verdictFile := path.Join(state.dir, bundle.VerdictFile)
	if have[bundle.VerdictFile] {
		if raw, _, ok := v.read(verdictFile); ok {
			var d bundle.VerdictDocument
			if err := bundle.DecodeDocument(raw, &d); err != nil {
				v.altered(verdictFile, "document", "canonical JSON of a verdict", err.Error())
			} else if d.Format != bundle.VerdictFormat {
				v.altered(verdictFile, "document", "format "+bundle.VerdictFormat, d.Format)
			} else {
				written = &d.Verdict
				state.written = d.Verdict.Outcome.String()
			}
		}
	}
	if !have[bundle.ObservationsFile] {
		return
	}
	observations, ok := v.observations(ctx, path.Join(state.dir, bundle.ObservationsFile), buf)
	if !ok || !planned {
		return
	}
	v.begins(path.Join(state.dir, bundle.ObservationsFile), place, observations)
	v.arm(observations)
	derived, err := judge(v.options.Judge, c, observations)
	if err != nil {
		v.altered(verdictFile, "verdict", "a judge that answers", err.Error())
		return
	}
	state.derived, state.judged = derived, true
	if written != nil {
		v.sameVerdict(verdictFile, derived, *written)
	}
	if v.options.Deep != nil {
		v.deep(ctx, DeepRow{Contract: c, Attempt: place.Attempt, Dir: state.dir, Observations: observations, Open: func(name string) (io.ReadCloser, error) {
			return v.open(path.Join(state.dir, name))
		}})
	}
}

func (v *verifier) deep(ctx context.Context, row DeepRow) {
	problems, err := v.options.Deep(ctx, row)
	for _, p := range problems {
		v.altered(p.File, "deep", p.Want, p.Got)
	}
	if err != nil {
		v.problem(Incomplete, row.Dir, "deep", "repeated", reason(err))
	}
}

func (v *verifier) rowDocument(file string, place bundle.Place, c matrix.Contract, planned bool) {
	raw, _, ok := v.read(file)
	if !ok {
		return
	}
	var d bundle.RowDocument
	if err := bundle.DecodeDocument(raw, &d); err != nil {
		v.altered(file, "document", "canonical JSON of a row", err.Error())
		return
	}
	if d.Format != bundle.RowFormat {
		v.altered(file, "document", "format "+bundle.RowFormat, d.Format)
	}
	if d.Attempt != place.Attempt {
		v.altered(file, "row", fmt.Sprintf("attempt %d", place.Attempt), fmt.Sprintf("attempt %d", d.Attempt))
	}
	if !planned {
		return
	}
	if d.Plan != v.plan.Digest {
		v.altered(file, "row", "plan digest "+v.plan.Digest, d.Plan)
	}
	want, err1 := canonical.Marshal(c)
	got, err2 := canonical.Marshal(d.Contract)
	if err1 != nil || err2 != nil || !bytes.Equal(want, got) {
		v.altered(file, "row", fmt.Sprintf("the planned contract of %q", c.ID), fmt.Sprintf("another contract, of %q", d.Contract.ID))
	}
}

func (v *verifier) observations(ctx context.Context, file string, buf []byte) ([]evidence.Observation, bool) {
	f, err := v.open(file)
	if err != nil {
		v.altered(file, "path", "readable", reason(err))
		return nil, false
	}
	defer f.Close()
	b := &bounded{f: f, h: sha256.New(), left: v.found[file].size, ctx: ctx}
	all, perr := bundle.ReadObservations(b)
	sum, err := b.sum(buf)
	if err != nil {
		v.altered(file, "path", "readable", reason(err))
		return nil, false
	}
	v.compare(file, sum)
	if perr != nil {
		v.altered(file, "observations", "lines as they are written, numbered without gaps", perr.Error())
		return nil, false
	}
	v.mu.Lock()
	for _, o := range all {
		v.trusted[string(o.Kind)]++
	}
	v.mu.Unlock()
	return all, true
}

// begins checks that observations which say whose they are, are where they belong.
func (v *verifier) begins(file string, place bundle.Place, all []evidence.Observation) {
	for _, o := range all {
		if b := o.Begin; b != nil && (b.Row != place.Row || b.Attempt != place.Attempt || b.Plan != v.plan.Digest) {
			v.altered(file, "observations", fmt.Sprintf("row %q, attempt %d, plan %s", place.Row, place.Attempt, v.plan.Digest),
				fmt.Sprintf("row %q, attempt %d, plan %s in observation %d", b.Row, b.Attempt, b.Plan, o.Seq))
		}
	}
}

func (v *verifier) sameVerdict(file string, derived, written evidence.Verdict) {
	want, err1 := canonical.Marshal(derived)
	got, err2 := canonical.Marshal(written)
	if err1 == nil && err2 == nil && bytes.Equal(want, got) {
		return
	}
	if derived.JudgeVersion != written.JudgeVersion {
		v.altered(file, "verdict", "judge version "+derived.JudgeVersion, "judge version "+written.JudgeVersion)
		return
	}
	v.altered(file, "verdict", string(want), string(got))
}

// judge runs the judge. Observations are hostile, and the judge is handed in: its panic is an error.
func judge(f JudgeFunc, c matrix.Contract, all []evidence.Observation) (v evidence.Verdict, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the judge panicked: %v", p)
		}
	}()
	return f(c, all), nil
}

// endedRows are the attempts that the log of a cut run says have ended. A log that does not hold together is reported when it is read for good.
func (v *verifier) endedRows() map[bundle.Place]bool {
	ended := map[bundle.Place]bool{}
	f, err := v.open(bundle.LogFile)
	if err != nil {
		return ended
	}
	defer f.Close()
	places := v.planned()
	_, _, _ = chain.Read(io.LimitReader(f, v.found[bundle.LogFile].size), v.planRaw, func(line chain.Line) error {
		var e bundle.Entry
		if json.Unmarshal(line.Entry, &e) == nil && e.Event == bundle.EventRowEnd {
			if place, planned := places[string(e.Row)]; planned {
				place.Attempt = e.Attempt
				ended[place] = true
			}
		}
		return nil
	})
	return ended
}

// planned maps each row of the plan to its place, without an attempt.
func (v *verifier) planned() map[string]bundle.Place {
	places := map[string]bundle.Place{}
	for _, c := range v.plan.Rows {
		places[string(c.ID)] = bundle.PlaceOf(c, 0)
	}
	return places
}

// readLog follows the chain and compares its begins and ends with the attempts that are there, and the files that it names with those that were read.
func (v *verifier) readLog() {
	file := bundle.LogFile
	f, err := v.open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return // reported against the manifest
	}
	if err != nil {
		v.altered(file, "path", "readable", reason(err))
		return
	}
	defer f.Close()
	b := &bounded{f: f, h: sha256.New(), left: v.found[file].size}
	l := &logState{v: v, open: map[bundle.Place]bool{}, ended: map[bundle.Place]bool{}, places: v.planned()}
	_, _, cerr := chain.Read(b, v.planRaw, l.line)
	sum, err := b.sum(make([]byte, 64<<10))
	if err != nil {
		v.altered(file, "path", "readable", reason(err))
		return
	}
	v.compare(file, sum)
	if v.cut && (cerr == nil || errors.Is(cerr, chain.ErrCut)) {
		return // it ends where the run was cut
	}
	if cerr != nil {
		v.altered(file, "log", "an unbroken chain from the plan on", cerr.Error())
		return
	}
	if l.last != bundle.EventFinish {
		v.altered(file, "log", "finish as the last entry", string(l.last))
	}
	for place := range v.rows {
		if !l.ended[place] {
			v.altered(file, "log", fmt.Sprintf("begin and end of row %q, attempt %d", place.Row, place.Attempt), "none")
		}
	}
}

type logState struct {
	v      *verifier
	n      int
	last   bundle.Event
	open   map[bundle.Place]bool
	ended  map[bundle.Place]bool
	places map[string]bundle.Place
}

func (l *logState) line(line chain.Line) error {
	var e bundle.Entry
	dec := json.NewDecoder(bytes.NewReader(line.Entry))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return fmt.Errorf("entry %d: %w", line.Seq, err)
	}
	again, err := json.Marshal(e)
	if err != nil || !bytes.Equal(again, line.Entry) {
		return fmt.Errorf("entry %d is not in the form that is written", line.Seq)
	}
	l.n++
	if (l.n == 1) != (e.Event == bundle.EventStart) || l.last == bundle.EventFinish {
		return fmt.Errorf("entry %d: event %.40q is not allowed here", line.Seq, e.Event)
	}
	l.last = e.Event
	switch e.Event {
	case bundle.EventStart:
		if e.Format != bundle.LogFormat || e.Detail != l.v.plan.Digest {
			return fmt.Errorf("entry %d: format %.40q and plan %.64q, want %s and %s", line.Seq, e.Format, e.Detail, bundle.LogFormat, l.v.plan.Digest)
		}
	case bundle.EventNote, bundle.EventFinish:
	case bundle.EventRowBegin, bundle.EventRowEnd:
		place, planned := l.places[string(e.Row)]
		place.Attempt = e.Attempt
		state := l.v.rows[place]
		begin := e.Event == bundle.EventRowBegin
		if !planned || state == nil || l.open[place] == begin || l.ended[place] {
			return fmt.Errorf("entry %d: %s of row %.120q, attempt %d, which is not there or is not due", line.Seq, e.Event, e.Row, e.Attempt)
		}
		if begin {
			l.open[place] = true
			return nil
		}
		delete(l.open, place)
		l.ended[place] = true
		if state.written != "" && e.Outcome != state.written {
			return fmt.Errorf("entry %d: row %.120q ended %.40q, its verdict is %s", line.Seq, e.Row, e.Outcome, state.written)
		}
		l.files(state.dir, e.Files)
	default:
		return fmt.Errorf("entry %d: event %.40q is unknown", line.Seq, e.Event)
	}
	return nil
}

// files compares what an attempt ended with and what is there.
func (l *logState) files(dir string, ended []bundle.FileEntry) {
	listed := map[string]bool{}
	for _, f := range ended {
		name := path.Join(dir, path.Base(f.Path))
		listed[name] = true
		switch sum, read := l.v.sums[name]; {
		case !read:
			if _, there := l.v.found[name]; !there {
				l.v.altered(name, "log", "present: its row ended with it", "absent")
			}
		case sum != f.SHA256:
			l.v.altered(name, "digest", "sha256 "+f.SHA256+", as its row ended", "sha256 "+sum)
		}
	}
	for name := range l.v.found {
		if path.Dir(name) == dir && !listed[name] {
			l.v.altered(name, "log", "absent: its row ended without it", "present")
		}
	}
}
