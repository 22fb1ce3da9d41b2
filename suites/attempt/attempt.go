// Package attempt carries one row out once, and writes down what was seen.
//
// An attempt arranges the desk, proves its baseline, performs the row's steps through the engine, closes each window of time on every
// oracle, and leaves [evidence.Observation] values behind. It never says pass or fail: package evidence does, from those values alone.
//
//	a, err := attempt.Begin(ctx, stage, contract, out, options)
//	a.Run(ctx, steps.Verbs)
//	a.End(ctx)
//	observations, err := a.Finish(ctx)
//
// The harness's own faults are observations too (kind fault), so that an attempt that could not be carried out is told from an engine that
// failed.
package attempt

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/fixtures"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/recorder/desktop"
	"github.com/engine-acceptance/acceptance/redaction"
	"github.com/engine-acceptance/acceptance/suites/process"
	"github.com/engine-acceptance/acceptance/suites/stage"
)

// Quiet is how long the desk must be still before a window of time is closed (design section 6: focus theft was seen up to 5 ms after a
// click's reply; 150 ms leaves room for a loaded machine).
const Quiet = 150 * time.Millisecond

// Out is where an attempt writes: the row's part of a bundle (bundle.RowWriter is one).
type Out interface {
	// Observe appends one observation; it is with the kernel when it returns.
	Observe(evidence.Observation) error
	// Add writes a whole view of the row from what was recorded elsewhere.
	Add(name string, from io.Reader) error
}

// Do is what a verb does. A refusal by the engine is no error; an error is the harness's own fault and ends the row.
type Do func(ctx context.Context, a *Attempt, s matrix.Step) error

// ErrStopped ends a row early for a cause that its observations already show: a refusal that later steps rest on.
var ErrStopped = errors.New("the row cannot go on")

// Attempt is one attempt at one row. It is used by one goroutine, but for the calls of a group of steps and the lanes of a race.
type Attempt struct {
	Stage    *stage.Stage
	Contract matrix.Contract
	Plan     string
	Number   int

	out   Out
	text  *views
	rules *redaction.Rules

	mu       sync.Mutex
	seq      int
	kept     []evidence.Observation
	writeErr error

	// phase is the desk's phase; steps is true once the arrangement is over, so that page events count as the row's own.
	phase evidence.Phase
	steps bool
	// step is the name of the step being carried out, or the last one; next is the step that follows it, or nil.
	step     string
	next     *matrix.Step
	inFlight bool

	deskMark    desktop.Mark
	probes      *Probes // while the engine may not ask anything of the X server
	journalMark fixtures.Mark
	health      []desktop.ChannelHealth

	pages    *fixtures.Row
	tabOf    map[fixtures.DocumentID]string
	lastGone string
	docs     map[string][]fixtures.DocumentID
	canaries []redaction.Canary

	// nameMu guards the maps of names, which the steps of a group and the lanes of a race read and fill at once.
	nameMu    sync.Mutex
	verbs     map[string]Do
	session   string
	sessions  map[string]string
	targets   map[string]*Target
	tabs      map[string]*Tab
	snapshots map[string]*Snapshot
	// windows are all windows of living browsers, desk those of the arrangement.
	windows []*stage.Window
	desk    []*stage.Window
	// hidden are windows that the arrangement hid.
	hidden  []*stage.Window
	browser process.Identity
	// frozen is the browser that a step stopped.
	frozen process.Identity
	// engineKilled is true from when a step killed the engine until one starts it again.
	engineKilled bool
	posture      engine.Posture
	profiles     []string
	// homes are the HOME directories of the row's browsers.
	homes     []string
	listening *stage.Listeners
	launches  map[string]*launched
	issued    []string
	// ports are those that the row's browsers listen on, and taps what listens to their answers, in rows that expect of the engine that it hides them.
	ports []uint16
	taps  []tapped
	// impostors are what listens or shows itself in the place of a browser.
	impostors []*impostor
	// launch counts the launches that the row's steps made.
	launch  int
	film    *film
	scratch string
	dir     string
	run     string
	commit  string
	ended   bool
	// excused counts overruns of the records of requests during launch and arrangement.
	excused map[desktop.Channel]uint64
	reads   map[string]bool // what was read of the person's desk, by step, actor, request and window
	// tap is what the engine wrote during the row, tapOverrun that it was more than the tap keeps, gapNS the longest gap of the harness's own
	// heartbeat: taken at the row's end, before the next row begins.
	tap        map[string][]byte
	tapOverrun bool
	gapNS      int64
}

// Options of an attempt.
type Options struct {
	PlanDigest string
	Number     int
	Canaries   []redaction.Canary
	Rules      *redaction.Rules
	// Run and Commit stand in the code of each frame, beside row and time.
	Run, Commit string
	// Scratch is a directory of the harness's own, in memory where there is one, for films until they are whole.
	Scratch string
	// Dir is the row's folder in the bundle, for the scan.
	Dir string
	// WithoutFilm starts no film, so that its cost can be measured. Such an attempt has no film to observe, and the judge says film_missing:
	// it cannot pass.
	WithoutFilm bool
}

// Begin opens an attempt: the film rolls, the guards are proven alive by a round of controls, the person begins to work.
func Begin(ctx context.Context, s *stage.Stage, c matrix.Contract, out Out, o Options) (*Attempt, error) {
	a := &Attempt{Stage: s, Contract: c, Plan: o.PlanDigest, Number: o.Number, out: out, rules: o.Rules, phase: evidence.PhasePrepare, scratch: o.Scratch, dir: o.Dir, run: o.Run, commit: o.Commit,
		tabOf: map[fixtures.DocumentID]string{}, docs: map[string][]fixtures.DocumentID{}, canaries: o.Canaries,
		reads: map[string]bool{}, sessions: map[string]string{}, excused: map[desktop.Channel]uint64{}, launches: map[string]*launched{}, targets: map[string]*Target{}, tabs: map[string]*Tab{}, snapshots: map[string]*Snapshot{}}
	a.text = newViews(o.Rules)
	a.observe(evidence.Observation{Kind: evidence.KindBegin, Begin: &evidence.Begin{Row: c.ID, Attempt: o.Number, Plan: o.PlanDigest}})
	var err error
	if c.Desk.Machine != "" {
		if err = s.StartEngineOn(ctx, c.Desk.Machine); err != nil {
			return a, a.fault("environment", "start the engine: %v", err)
		}
	} else if c.Expect.Probes == "none" {
		// An engine that has an X connection already could be silent on it: it must start with none.
		if err = s.StartEngine(ctx); err != nil {
			return a, a.fault("harness", "start the engine anew: %v", err)
		}
	}
	s.Host.Take()
	if a.pages, err = s.Pages.Row(fixtures.RowID(fmt.Sprintf("%s#%d", c.ID, o.Number))); err != nil {
		return a, a.fault("harness", "fixture server: %v", err)
	}
	for _, canary := range o.Canaries {
		if err := a.pages.Set("canary-"+string(canary.Channel), canary.Value); err != nil {
			return a, a.fault("harness", "fixture server: %v", err)
		}
	}
	a.journalMark = s.Pages.Journal().Mark()
	a.health = s.Log.Health()
	s.Heart.Reset()
	a.listening = s.WatchListeners()
	if !o.WithoutFilm {
		if err := a.startFilm(ctx); err != nil {
			return a, a.fault("harness", "start the film: %v", err)
		}
	}
	if err := s.TakeBack(ctx); err != nil {
		return a, a.fault("environment", "the person's window does not get the focus: %v", err)
	}
	if err := a.controls(ctx, "before"); err != nil {
		return a, a.fault("harness", "controls: %v", err)
	}
	if err := s.PersonBegins(ctx); err != nil {
		return a, a.fault("harness", "the person: %v", err)
	}
	return a, a.writeErr
}

// observe numbers, stamps and writes one observation.
func (a *Attempt) observe(o evidence.Observation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seq++
	o.Seq = a.seq
	if o.MonoNS == 0 {
		o.MonoNS = stage.Mono()
	}
	if o.Phase == "" {
		o.Phase = a.phase
	}
	if o.Step == "" {
		o.Step = a.step
	}
	if o.Kind == evidence.KindEnd {
		o.End.Observations = a.seq
	}
	o = a.clean(o)
	a.kept = append(a.kept, o)
	if err := a.out.Observe(o); err != nil && a.writeErr == nil {
		a.writeErr = fmt.Errorf("write observation %d of %s: %w", o.Seq, a.Contract.ID, err)
	}
}

// clean passes an observation through the rules, whole, so that no text of it escapes them because a field was forgotten.
func (a *Attempt) clean(o evidence.Observation) evidence.Observation {
	raw, err := json.Marshal(o)
	if err != nil {
		return o // the writer refuses it, and says why
	}
	redacted := a.rules.Bytes(raw)
	if bytes.Equal(raw, redacted) {
		return o
	}
	var out evidence.Observation
	if json.Unmarshal(redacted, &out) != nil {
		return evidence.Observation{Seq: o.Seq, MonoNS: o.MonoNS, Phase: o.Phase, Kind: evidence.KindFault, Fault: &evidence.Fault{Whose: "harness", What: "an observation could not be redacted whole"}}
	}
	return out
}

// Seen returns what was observed so far.
func (a *Attempt) Seen() []evidence.Observation {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kept
}

// Fact observes one fact about the system.
func (a *Attempt) Fact(name string, holds bool, n int, detail string) {
	a.observe(evidence.Observation{Kind: evidence.KindSystem, System: &evidence.System{Fact: name, Holds: holds, Count: n, Detail: detail}})
}

// fault observes a fault that is not the engine's and ends the row.
func (a *Attempt) fault(whose, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	a.observe(evidence.Observation{Kind: evidence.KindFault, Fault: &evidence.Fault{Whose: whose, What: string(a.rules.Bytes([]byte(err.Error())))}})
	return fmt.Errorf("%w: %w", ErrStopped, err)
}

// Run carries the row's steps out, in order. It returns nil when the row went as far as it could; what happened is in the observations.
func (a *Attempt) Run(ctx context.Context, verbs map[string]Do) {
	if err := a.arrange(ctx); err != nil {
		return
	}
	a.still(ctx, "before.png")
	a.excuseOverruns()
	a.desk = slices.Clone(a.windows)
	a.steps, a.verbs = true, verbs
	for rest := a.Contract.Steps; len(rest) > 0; {
		steps := rest[:matrix.Group(rest)]
		rest = rest[len(steps):]
		for _, s := range steps {
			a.step = s.Name
			if err := a.precondition(ctx, s); err != nil {
				return
			}
		}
		s := steps[0]
		a.next = nil
		if len(rest) > 0 {
			a.next = &rest[0]
		}
		if len(steps) > 1 || s.Calls() > 1 {
			if err := a.runGroup(ctx, steps, verbs); err != nil {
				return
			}
			continue
		}
		start := stage.Mono()
		do, known := verbs[s.Verb]
		err := fmt.Errorf("no verb %q", s.Verb)
		if known {
			err = do(ctx, a, s)
		}
		info := &evidence.StepInfo{Verb: s.Verb, StartNS: start, EndNS: stage.Mono(), Outcome: "done"}
		if err != nil && !errors.Is(err, ErrStopped) {
			info.Outcome, info.Note = "failed", string(a.rules.Bytes([]byte(err.Error())))
		}
		a.observe(evidence.Observation{Kind: evidence.KindStep, StepInfo: info})
		if err != nil {
			return
		}
	}
}

// digest is the sha256 of b in hex.
func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
