// Package campaign is the coordinator of a run: it writes the plan, has a worker carry the rows out, judges every row again from the bytes
// on disk, and finishes the bundle. It has no display and no browser, and it believes no verdict but the judge's.
package campaign

import (
	"bufio"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/bundle"
	"github.com/engine-acceptance/acceptance/evidence/provenance"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/host"
	"github.com/engine-acceptance/acceptance/suites/process"
	"github.com/engine-acceptance/acceptance/suites/stage"
	"github.com/engine-acceptance/acceptance/suites/worker"
)

// Config is one run: one plan on one engine.
type Config struct {
	Plan matrix.Plan
	// Dir is where the bundle goes; it must not hold anything.
	Dir string
	// Engine is the program under test, EngineName the name of its engine file.
	Engine     host.Command
	EngineName string
	// Binary is our own program; it plays the worker and the roles of the desk.
	Binary string
	// Repository is a folder of the harness's working tree.
	Repository string
	// Browsers are the browsers that the run uses, for provenance.
	Browsers []provenance.BrowserInput
	// Key signs the bundle; nil leaves it unsigned.
	Key ed25519.PrivateKey
	// Workers is how many desks are used at once; 0 means [DefaultWorkers].
	Workers int
	// WithoutFilm leaves every film out, so that make bench can say what a film costs. No row of such a run can pass: film_missing.
	WithoutFilm bool
	// Progress is told what happens, in order, on one goroutine; nil tells nobody.
	Progress func(worker.Event)
	// Log takes what worker and Ginkgo say; nil drops it.
	Log io.Writer
	// Exports writes the pages that people read into the bundle, before it is closed.
	Exports func(context.Context, *bundle.Writer, Result) error
}

// Result is what a run came to.
type Result struct {
	Plan       matrix.Plan
	Provenance provenance.Provenance
	Verdicts   []evidence.Verdict
	Ruling     evidence.Ruling
	Took       time.Duration
	RowMS      map[matrix.RowID]int64
	// Finished is false when the bundle could not be closed; it then verifies as incomplete.
	Finished bool
	Files    int
	Bytes    int64
	Signer   string
}

// DefaultWorkers is how many desks a run opens: two rows at once were measured at half a core together, so that two cores are not starved.
const DefaultWorkers = 2

// NoCommit is what films show in the place of a commit where there is no repository.
const NoCommit = "none"

// ErrWorker says that the worker ended before every row was carried out.
var ErrWorker = errors.New("the worker ended early")

// Run carries the plan out. The error says why the bundle is not complete; a row that failed is no error.
func Run(ctx context.Context, cfg Config) (Result, error) {
	began := time.Now()
	r := Result{Plan: cfg.Plan, RowMS: map[matrix.RowID]int64{}}
	w, err := bundle.Create(ctx, cfg.Dir, cfg.Plan)
	if err != nil {
		return r, err
	}
	repo, err := provenance.Repo(ctx, or(cfg.Repository, "."))
	if err != nil {
		return r, fmt.Errorf("read the working tree: %w", err)
	}
	c := &conductor{cfg: cfg, w: w, r: &r, rows: map[matrix.RowID]matrix.Contract{}, collected: make(chan collected, 1)}
	for _, row := range cfg.Plan.Rows {
		c.rows[row.ID] = row
	}
	// Digests of programs take a second of a core, which is idle while the desk is built.
	collecting, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		p, err := provenance.Collect(collecting, c.input())
		c.collected <- collected{p, err}
	}()
	if err := c.conduct(ctx, or(repo.Commit, NoCommit)); err != nil {
		return r, err
	}
	r.Verdicts = w.Verdicts()
	r.Ruling = evidence.Decide(cfg.Plan, r.Verdicts, StandingOf(r.Provenance))
	r.Took = time.Since(began)
	if cfg.Exports != nil {
		if err := cfg.Exports(ctx, w, r); err != nil {
			return r, fmt.Errorf("write the report: %w", err)
		}
	}
	done, err := w.Finish(ctx, bundle.Signing{Key: cfg.Key})
	if err != nil {
		return r, err
	}
	r.Finished, r.Files, r.Bytes, r.Signer = true, done.Files, done.Bytes, done.Signer
	return r, nil
}

// StandingOf reads from provenance what a decision needs to know. The bundle counts as verified while it is being written: gate asks
// verify again.
func StandingOf(p provenance.Provenance) evidence.Standing {
	s := evidence.Standing{Verified: true, Clean: p.Repository.State == provenance.StateClean && !p.Engine.Dirty}
	if !p.System.Separate {
		s.Limits = append(s.Limits, "engine and browsers share the harness's uid: that the engine cannot write the bundle is not enforced (J12)")
	}
	if p.System.Sandbox != "on" {
		s.Limits = append(s.Limits, "the browser's sandbox posture is "+p.System.Sandbox+" (J11)")
	}
	return s
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// conductor holds one run together.
type conductor struct {
	cfg  Config
	w    *bundle.Writer
	r    *Result
	rows map[matrix.RowID]matrix.Contract

	// mu orders the events of several workers: bundle, result and progress are touched under it only.
	mu        sync.Mutex
	proved    bool
	logging   sync.Mutex
	collected chan collected // holds one
}

// collected is provenance but for the desk.
type collected struct {
	p   provenance.Provenance
	err error
}

// maxLine bounds one line of a worker, in bytes.
const maxLine = 16 << 20

func (c *conductor) conduct(ctx context.Context, commit string) error {
	run := make([]byte, 6)
	if _, err := rand.Read(run); err != nil {
		return err
	}
	n := c.cfg.Workers
	if n == 0 {
		n = DefaultWorkers
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := lanes(c.cfg.Plan.Rows, n)
	results := make(chan error, len(parts))
	for _, lane := range parts {
		go func() {
			err := c.lane(ctx, lane, hex.EncodeToString(run), commit)
			if err != nil {
				cancel() // a bundle that lacks rows is no bundle: the other workers need not go on
			}
			results <- err
		}()
	}
	var errs []error
	for range parts {
		if err := <-results; err != nil && !(len(errs) > 0 && errors.Is(err, context.Canceled)) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// shard is what one worker carries out: rows of one kind of desk, for a worker has one desk.
type shard struct {
	kind matrix.DeskKind
	rows []matrix.Contract
}

// What rows cost, in tenths of a second, as measured on two cores: another desk, with its server, the person's programs, the engine and a browser; a
// row in a shared browser; one with a browser of its own; a call among the many of a block, and one among those that a step repeats.
const (
	stageCost    = 80
	sharedCost   = 25
	ownCost      = 55
	blockCost    = 0.3
	repeatedCost = 1.5
)

// fewCalls is up to how many calls a step may make without counting for more than others.
const fewCalls = 10

// cost is about what a row takes, in tenths of a second.
func cost(r matrix.Contract) int {
	sum := float64(ownCost)
	if r.Launch == matrix.LaunchShared {
		sum = sharedCost
	}
	for _, s := range r.Steps {
		calls := matrix.Calls(s.First)
		for _, lane := range s.Lanes {
			calls += matrix.Calls(lane)
		}
		sum += blockCost * float64(calls*s.Int("times"))
		if n := s.Calls(); n > fewCalls {
			sum += repeatedCost * float64(n)
		}
	}
	return int(sum)
}

// lanes splits rows over at most n lanes, in each of which one worker follows another. Rows of the kind of desk that most rows have are dealt
// out over all lanes, each other kind goes to one, so that every lane has about as much to do.
func lanes(rows []matrix.Contract, n int) [][]shard {
	n = min(n, len(rows))
	kinds := map[matrix.DeskKind][]matrix.Contract{}
	for _, r := range rows {
		kinds[r.Desk.Kind] = append(kinds[r.Desk.Kind], r)
	}
	var most matrix.DeskKind
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if most == "" || len(kinds[kind]) > len(kinds[most]) {
			most = kind
		}
	}
	weight := make([]int, n)
	lightest := func() int {
		least := 0
		for i := range weight {
			if weight[i] < weight[least] {
				least = i
			}
		}
		return least
	}
	out := make([][]shard, n)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if kind == most {
			continue
		}
		i := lightest()
		out[i] = append(out[i], shard{kind, kinds[kind]})
		weight[i] += stageCost
		for _, r := range kinds[kind] {
			weight[i] += cost(r)
		}
	}
	// The longest are dealt out first, for what is dealt out last evens the lanes out. Within a lane the rows keep their order.
	order := make([]int, len(kinds[most]))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(cost(kinds[most][b]), cost(kinds[most][a])) })
	common := make([][]int, n)
	for _, at := range order {
		i := lightest()
		common[i], weight[i] = append(common[i], at), weight[i]+cost(kinds[most][at])
	}
	for i, mine := range common {
		if len(mine) == 0 {
			continue
		}
		slices.Sort(mine)
		s := shard{kind: most}
		for _, at := range mine {
			s.rows = append(s.rows, kinds[most][at])
		}
		out[i] = slices.Insert(out[i], 0, s)
	}
	return slices.DeleteFunc(out, func(s []shard) bool { return len(s) == 0 })
}

// lane has one worker after another carry out its rows. While a worker has its last row, the next one opens its desk already, and while it closes
// its desk, the next one begins: most of both is waiting for programs.
func (c *conductor) lane(ctx context.Context, shards []shard, run, commit string) (err error) {
	started := make([]*hand, len(shards))
	defer func() {
		for _, h := range started {
			if h != nil {
				err = errors.Join(err, h.discard(ctx))
			}
		}
	}()
	for i, s := range shards {
		if started[i] == nil {
			if started[i], err = c.start(ctx, s, run, commit); err != nil {
				return err
			}
		}
		begun, judged := 0, 0
		err = c.work(ctx, started[i], func(kind string) {
			switch kind {
			case "begin":
				if begun++; begun == len(s.rows) && i+1 < len(shards) {
					started[i+1], _ = c.start(ctx, shards[i+1], run, commit) // what keeps it from starting is told when it is its turn
				}
			case "row":
				if judged++; judged == len(s.rows) && i+1 < len(shards) && started[i+1] != nil {
					_ = started[i+1].tell() // likewise
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// hand is a worker that was told its job.
type hand struct {
	p      *process.Process
	logged chan struct{}
	told   bool        // that its rows may begin
	free   func() bool // takes it out of what ends with the run
}

// tell has a worker begin with its rows.
func (h *hand) tell() error {
	if h.told {
		return nil
	}
	h.told = true
	if _, err := h.p.Stdin().Write([]byte(worker.Go)); err != nil {
		return fmt.Errorf("%w: %w", ErrWorker, err)
	}
	return nil
}

// start starts a worker, which opens its desk and waits to be told to go on.
func (c *conductor) start(ctx context.Context, s shard, run, commit string) (*hand, error) {
	job, err := json.Marshal(worker.Job{Rows: s.rows, Kind: s.kind, Claimed: stage.Claimed{Table: c.cfg.Plan.Declared, Postures: c.cfg.Plan.Postures, Reconnect: c.cfg.Plan.Reconnect},
		Plan: c.cfg.Plan.Digest, Bundle: absolute(c.cfg.Dir), Attempt: 1, Run: run, Commit: commit, Engine: c.cfg.Engine, Binary: c.cfg.Binary, WithoutFilm: c.cfg.WithoutFilm})
	if err != nil {
		return nil, err
	}
	p, err := process.Start(ctx, process.Spec{Path: c.cfg.Binary, Args: []string{"role", "worker"}, Env: workerEnv(), Dir: absolute("."),
		Stdin: process.Pipe, Stdout: process.Pipe, Stderr: process.Pipe})
	if err != nil {
		return nil, fmt.Errorf("start the worker: %w", err)
	}
	h := &hand{p: p, logged: make(chan struct{})}
	h.free = context.AfterFunc(ctx, func() { _ = p.Stop(context.WithoutCancel(ctx), stopGrace) })
	go func() {
		defer close(h.logged)
		_, _ = io.Copy(&lockedWriter{mu: &c.logging, w: c.cfg.Log}, p.Stderr())
	}()
	if _, err := p.Stdin().Write(append(job, '\n')); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrWorker, err), h.discard(ctx))
	}
	return h, nil
}

// discard ends a worker that has no use any more, unless it has ended.
func (h *hand) discard(ctx context.Context) error {
	h.free()
	select {
	case <-h.p.Done():
		return nil
	default:
		return h.p.Stop(context.WithoutCancel(ctx), stopGrace)
	}
}

// work has one worker carry out its rows. said is called with the kind of each of its events.
func (c *conductor) work(ctx context.Context, h *hand, said func(kind string)) error {
	p := h.p
	if err := h.tell(); err != nil {
		return err
	}
	failed, done := c.follow(ctx, p.Stdout(), said)
	if failed != nil {
		return errors.Join(failed, p.Stop(context.WithoutCancel(ctx), stopGrace))
	}
	select {
	case <-p.Done():
	case <-time.After(30 * time.Second):
		return errors.Join(fmt.Errorf("%w: it did not end after its last row", ErrWorker), p.Stop(context.WithoutCancel(ctx), time.Second))
	}
	<-h.logged
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !done {
		return fmt.Errorf("%w: %w", ErrWorker, p.Ended())
	}
	return nil
}

// stopGrace is how long a worker may take to end its desk after it was told to stop.
const stopGrace = 15 * time.Second

// lockedWriter lets several workers write to one log; a nil writer drops.
type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

// Write implements [io.Writer].
func (l *lockedWriter) Write(b []byte) (int, error) {
	if l.w == nil {
		return len(b), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// follow reads the worker's events until its last one.
func (c *conductor) follow(ctx context.Context, out io.Reader, said func(kind string)) (failed error, done bool) {
	in := bufio.NewScanner(out)
	in.Buffer(make([]byte, 64<<10), maxLine)
	for in.Scan() {
		var e worker.Event
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			return fmt.Errorf("%w: it said something that is no event: %w", ErrWorker, err), false
		}
		ended, err := c.event(ctx, e)
		if err != nil {
			return err, false
		}
		said(e.Kind)
		done = done || ended
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrWorker, err), false
	}
	return nil, done
}

// event takes one event of one worker.
func (c *conductor) event(ctx context.Context, e worker.Event) (done bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e.Kind {
	case "stage":
		if err := c.provenance(ctx, e); err != nil {
			return false, err
		}
	case "begin":
		if err := c.w.Begin(c.rows[e.Row], 1); err != nil {
			return false, err
		}
	case "row":
		v, err := c.judge(e)
		if err != nil {
			return false, err
		}
		e.Outcome, e.Finding = v.Outcome, v.Findings
		c.r.RowMS[e.Row] = e.TookMS
	case "done":
		if e.Error != "" {
			return false, fmt.Errorf("%w: %s", ErrWorker, e.Error)
		}
		done = true
	}
	if c.cfg.Progress != nil {
		c.cfg.Progress(e)
	}
	return done, nil
}

// judge judges a row again, from the bytes on disk. The worker's own verdict only has to agree.
func (c *conductor) judge(e worker.Event) (evidence.Verdict, error) {
	row, planned := c.rows[e.Row]
	if !planned {
		return evidence.Verdict{}, fmt.Errorf("%w: it carried out row %q, which is not planned", ErrWorker, e.Row)
	}
	if e.Error != "" {
		return evidence.Verdict{}, fmt.Errorf("%w: row %s: %s", ErrWorker, e.Row, e.Error)
	}
	name, err := bundle.PlaceOf(row, 1).Path()
	if err != nil {
		return evidence.Verdict{}, err
	}
	f, err := os.Open(filepath.Join(c.w.Dir(), filepath.FromSlash(name), bundle.ObservationsFile))
	if err != nil {
		return evidence.Verdict{}, fmt.Errorf("row %s left no observations: %w", e.Row, err)
	}
	obs, err := bundle.ReadObservations(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return evidence.Verdict{}, fmt.Errorf("observations of row %s: %w", e.Row, err)
	}
	v := evidence.Judge(row, obs)
	if v.Outcome != e.Outcome {
		return v, fmt.Errorf("row %s: the worker saw %s and its observations on disk say %s", e.Row, e.Outcome, v.Outcome)
	}
	return v, c.w.Verdict(row, 1, v)
}

// input is what is known of a run before its desk stands.
func (c *conductor) input() provenance.Input {
	in := provenance.Input{Repository: or(c.cfg.Repository, "."), Browsers: c.cfg.Browsers, EngineUID: -1, BrowserUID: -1, SandboxPosture: "on",
		Engine: provenance.EngineInput{Name: c.cfg.EngineName, Argv: append([]string{"engine"}, c.cfg.Engine.Args...)},
		Roles:  map[string]string{c.cfg.Binary: "harness"}}
	if c.cfg.Engine.Path != c.cfg.Binary {
		in.Engine.Path = c.cfg.Engine.Path
	}
	return in
}

// provenance is written when the stage stands: what the desk measured of itself belongs to it.
func (c *conductor) provenance(ctx context.Context, e worker.Event) error {
	if e.Desk == nil {
		return fmt.Errorf("%w: its stage has no desk", ErrWorker)
	}
	if c.proved {
		return nil // the desks of a run differ in display number and uid, and in kind, which each row names and proves
	}
	c.proved = true
	var got collected
	select {
	case got = <-c.collected:
	case <-ctx.Done():
		return ctx.Err()
	}
	if got.err != nil {
		return got.err
	}
	d := e.Desk
	in := c.input()
	in.EngineUID, in.BrowserUID = d.UID, d.UID
	in.Display = map[string]string{"server": d.ServerVendor + " " + d.ServerVersion, "screen": strconv.Itoa(d.WidthPx) + "x" + strconv.Itoa(d.HeightPx) + "x" + strconv.Itoa(d.Depth),
		"window_manager": d.ManagerName + " " + d.ManagerVersion, "window_manager_config": d.ManagerConfig, "window_manager_config_digest": d.ManagerConfigDigest,
		"desks": c.kinds(), "uid_posture": string(d.Posture), "homes": d.Homes, "person_injects_with": e.Person}
	got.p.On(in)
	c.r.Provenance = got.p
	return c.w.Provenance(got.p)
}

// kinds names the kinds of desk that the plan asks for.
func (c *conductor) kinds() string {
	seen := map[string]bool{}
	for _, r := range c.cfg.Plan.Rows {
		seen[string(r.Desk.Kind)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(seen)), ", ")
}

// workerEnv is the worker's whole environment.
func workerEnv() []string {
	var out []string
	for _, name := range []string{"PATH", "HOME", "LANG", "TMPDIR", "XDG_RUNTIME_DIR"} {
		if v, ok := os.LookupEnv(name); ok {
			out = append(out, name+"="+v)
		}
	}
	return out
}

func absolute(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	return abs
}
