// Package worker is the process that carries rows out on one desk: it opens the stage, runs one Ginkgo suite over its shard of the plan,
// and tells the coordinator on standard output, one JSON line an event, what happens. It has no say in a decision: the coordinator judges
// the observations again from the bytes.
package worker

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/bundle"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/redaction"
	"github.com/engine-acceptance/acceptance/suites"
	"github.com/engine-acceptance/acceptance/suites/attempt"
	"github.com/engine-acceptance/acceptance/suites/desk"
	"github.com/engine-acceptance/acceptance/suites/host"
	"github.com/engine-acceptance/acceptance/suites/stage"
	"github.com/engine-acceptance/acceptance/suites/steps"
)

// Job is what a worker is told, as one JSON line on its standard input; it opens its desk at once, and carries rows out after [Go]. When that
// stream ends the worker stops.
type Job struct {
	Rows    []matrix.Contract `json:"rows"`
	Claimed stage.Claimed     `json:"claimed"`
	Plan    string            `json:"plan_digest"`
	Bundle  string            `json:"bundle"`
	Attempt int               `json:"attempt"`
	Run     string            `json:"run"`
	Commit  string            `json:"commit"`
	Engine  host.Command      `json:"engine"`
	Binary  string            `json:"binary"`
	// Kind is the desk of every row of the job.
	Kind matrix.DeskKind `json:"kind"`
	// WithoutFilm leaves the film out, for make bench alone: see [attempt.Options].
	WithoutFilm bool `json:"without_film,omitempty"`
}

// Go is the line that a worker waits for on its standard input when its desk is open.
const Go = "go\n"

// Event is one line of a worker's standard output.
type Event struct {
	// Kind is stage, begin, row, or done.
	Kind    string           `json:"kind"`
	Row     matrix.RowID     `json:"row,omitempty"`
	Outcome evidence.Outcome `json:"outcome"`
	// TookMS is what the row cost; see [worker.took].
	TookMS  int64              `json:"took_ms,omitempty"`
	Finding []evidence.Finding `json:"findings,omitempty"`
	Desk    *desk.Facts        `json:"desk,omitempty"`
	Person  string             `json:"person,omitempty"`
	Browser string             `json:"browser,omitempty"`
	Error   string             `json:"error,omitempty"`
}

// canaryChannels are the channels that a row can plant a canary in.
var canaryChannels = []redaction.Channel{"typed", "password", "title", "query", "fragment", "cookie", "storage", "header", "dialog", "console", "file", "field"}

// maxJob bounds the job, in bytes.
const maxJob = 64 << 20

// Main is the role: it reads one job, carries it out, and returns 0 when the stage stood, whatever the rows' verdicts, else 3.
func Main(ctx context.Context, _ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	in := bufio.NewReader(io.LimitReader(stdin, maxJob))
	line, err := in.ReadBytes('\n')
	if err != nil {
		fmt.Fprintf(stderr, "worker: read the job: %v\n", err)
		return 2
	}
	var job Job
	if err := json.Unmarshal(line, &job); err != nil {
		fmt.Fprintf(stderr, "worker: read the job: %v\n", err)
		return 2
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	told := make(chan struct{})
	go func() {
		if line, err := in.ReadString('\n'); err == nil && line == Go {
			close(told)
			_, _ = io.Copy(io.Discard, stdin) // the coordinator's end of the pipe closes when it is gone
		}
		cancel()
	}()
	events, err := apart(stdout)
	if err != nil {
		fmt.Fprintf(stderr, "worker: keep its events apart: %v\n", err)
		return 3
	}
	w := &worker{job: job, told: told, out: json.NewEncoder(events)}
	if err := w.run(ctx); err != nil {
		w.say(Event{Kind: "done", Error: err.Error()})
		return 3
	}
	w.say(Event{Kind: "done"})
	return 0
}

type worker struct {
	job      Job
	told     <-chan struct{} // closed when the rows may begin
	mu       sync.Mutex
	out      *json.Encoder
	stage    *stage.Stage
	canaries []redaction.Canary
	rules    *redaction.Rules
	scratch  string
	// verdict is when the last verdict was there. Rows are closed one after the other.
	verdict time.Time
}

func (w *worker) say(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.out.Encode(e) // a coordinator that is gone closes our standard input as well
}

// stageBudget bounds the opening of the stage.
const stageBudget = time.Minute

// closeBudget bounds its end.
const closeBudget = 20 * time.Second

func (w *worker) run(ctx context.Context) (err error) {
	if w.canaries, err = redaction.NewCanaries(rand.Reader, canaryChannels); err != nil {
		return fmt.Errorf("make canaries: %w", err)
	}
	var secrets []redaction.Secret
	for _, c := range w.canaries {
		secrets = append(secrets, c.Secret())
	}
	if w.rules, err = redaction.NewRules(secrets, redaction.Options{}); err != nil {
		return fmt.Errorf("compile redaction rules: %w", err)
	}
	open, cancel := context.WithTimeout(ctx, stageBudget)
	defer cancel()
	w.stage, err = stage.Open(open, stage.Config{Binary: w.job.Binary, Engine: w.job.Engine, Variant: desk.Variant(w.job.Kind), Claimed: w.job.Claimed})
	if err != nil && w.job.Kind != "" && w.job.Kind != matrix.DeskOpenbox && ctx.Err() == nil {
		// Without the reference desk nothing can be judged; a desk of another kind that cannot be had is an environment that its rows lack.
		select {
		case <-w.told:
			return w.without(ctx, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err != nil {
		return fmt.Errorf("open the stage: %w", err)
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeBudget)
		defer cancel()
		err = errors.Join(err, w.stage.Close(end))
	}()
	if w.scratch, err = w.stage.Scratch(); err != nil {
		return fmt.Errorf("make a scratch directory: %w", err)
	}
	facts := w.stage.Desk.Facts()
	w.say(Event{Kind: "stage", Desk: &facts, Person: w.stage.Person.Injector()})
	select {
	case <-w.told:
	case <-w.stage.Desk.Lost():
		return w.stage.Desk.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
	rows, cut := context.WithCancel(ctx)
	defer cut()
	go func() {
		select {
		case <-w.stage.Desk.Lost():
			cut()
		case <-rows.Done():
		}
	}()
	suites.Run(rows, w.job.Rows, w.perform)
	return errors.Join(w.stage.Desk.Err(), ctx.Err())
}

// without writes rows down whose desk cannot be had, with the cause.
func (w *worker) without(ctx context.Context, cause error) error {
	for _, c := range w.job.Rows {
		began := time.Now()
		w.say(Event{Kind: "begin", Row: c.ID})
		out, err := bundle.OpenRow(ctx, w.job.Bundle, c, w.job.Attempt)
		if err != nil {
			return fmt.Errorf("open row %s in the bundle: %w", c.ID, err)
		}
		obs, err := attempt.Unmet(c, out, attempt.Options{PlanDigest: w.job.Plan, Number: w.job.Attempt, Rules: w.rules}, fmt.Errorf("a desk of the kind %s: %w", c.Desk.Kind, cause))
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}
		v := evidence.Judge(c, obs)
		w.say(Event{Kind: "row", Row: c.ID, Outcome: v.Outcome, Finding: v.Findings, TookMS: time.Since(began).Milliseconds()})
	}
	return nil
}

// perform carries one row out; what it returns closes the row's evidence and judges it.
func (w *worker) perform(ctx context.Context, c matrix.Contract) suites.Finish {
	began := time.Now()
	w.say(Event{Kind: "begin", Row: c.ID})
	judge := w.row(ctx, c)
	return func() evidence.Verdict {
		v, err := judge()
		e := Event{Kind: "row", Row: c.ID, Outcome: v.Outcome, Finding: v.Findings, TookMS: w.took(began).Milliseconds()}
		if err != nil {
			e.Error = err.Error()
		}
		w.say(e)
		return v
	}
}

// took is what a row costs: the time since it began, or since the verdict on the row before it where that came later. The costs of a worker's
// rows add up to its time.
func (w *worker) took(began time.Time) time.Duration {
	if began.Before(w.verdict) {
		began = w.verdict
	}
	w.verdict = time.Now()
	return w.verdict.Sub(began)
}

// row has the desk until it returns.
func (w *worker) row(ctx context.Context, c matrix.Contract) func() (evidence.Verdict, error) {
	none := evidence.Verdict{Row: c.ID, JudgeVersion: evidence.JudgeVersion}
	out, err := bundle.OpenRow(ctx, w.job.Bundle, c, w.job.Attempt)
	if err != nil {
		return func() (evidence.Verdict, error) { return none, fmt.Errorf("open row %s in the bundle: %w", c.ID, err) }
	}
	a, err := attempt.Begin(ctx, w.stage, c, out, attempt.Options{PlanDigest: w.job.Plan, Number: w.job.Attempt, Canaries: w.canaries, Rules: w.rules,
		Run: w.job.Run, Commit: w.job.Commit, Scratch: w.scratch, WithoutFilm: w.job.WithoutFilm, Dir: filepath.Join(w.job.Bundle, filepath.FromSlash(out.Path()))})
	if err == nil {
		a.Run(ctx, steps.Verbs)
	}
	unhurried := context.WithoutCancel(ctx)
	end, cancel := context.WithTimeout(unhurried, closeBudget)
	defer cancel()
	a.End(end)
	// A desk that lost a part says nothing about an engine: browsers end with their session bus, say. No verdict, and no further row.
	lost := w.stage.Desk.Err()
	return func() (evidence.Verdict, error) {
		finish, cancel := context.WithTimeout(unhurried, closeBudget)
		defer cancel()
		obs, err := a.Finish(finish)
		if err := errors.Join(lost, err, out.Close()); err != nil {
			return none, err
		}
		return evidence.Judge(c, obs), nil
	}
}
