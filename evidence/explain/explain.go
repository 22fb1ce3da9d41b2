package explain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/bundle"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/matrix/strict"
)

// Format names the format and version of an [Explanation].
const Format = "acceptance.explanation/v1"

// ErrNoRow is returned when the name meets no row of the plan, or several.
var ErrNoRow = errors.New("no such row")

// maxCalls is how many calls before the divergence are told.
const maxCalls = 4

// Explanation is what is to be said about one row. Times are nanoseconds of CLOCK_MONOTONIC where a name ends in _ns.
type Explanation struct {
	Format      string               `json:"format"`
	Row         matrix.RowID         `json:"row"`
	Requirement matrix.RequirementID `json:"requirement"`
	Title       string               `json:"title"`
	Duty        matrix.Duty          `json:"duty"`
	Source      string               `json:"source"`
	// Attempt is the attempt that is explained, of Attempts; both are 0 for a row that was never begun.
	Attempt  int    `json:"attempt"`
	Attempts int    `json:"attempts"`
	Dir      string `json:"dir,omitempty"`
	// Contract is the row in words.
	Contract []Clause `json:"contract"`
	// Verdict is derived again; Written is what the bundle says.
	Verdict evidence.Verdict `json:"verdict"`
	Written string           `json:"written_outcome,omitempty"`
	// Divergence is the first finding in time; nil when the row passed.
	Divergence *Divergence `json:"first_divergence,omitempty"`
	Film       *Moment     `json:"film,omitempty"`
	// Calls are the last ones before the divergence, or the row's last ones.
	Calls    []CallLine     `json:"last_calls"`
	Receipts []ReceiptCheck `json:"receipts"`
	// Repeat is the command that carries just this row out.
	Repeat string   `json:"repeat"`
	Notes  []string `json:"notes,omitempty"`
}

// Divergence is the first place where what was seen is not what had to be seen.
type Divergence struct {
	evidence.Finding
	Kind     evidence.Kind  `json:"kind,omitempty"`
	Phase    evidence.Phase `json:"phase,omitempty"`
	Expected string         `json:"expected"`
	Seen     string         `json:"seen"`
	// MonoNS is the moment; AfterBeginMS counts from the row's begin, in milliseconds.
	MonoNS       int64   `json:"mono_ns"`
	AfterBeginMS float64 `json:"after_begin_ms"`
}

// Moment is a place in a film. Note says what the place stands for when the film does not cover the moment itself.
type Moment struct {
	// File is the path of the film inside the bundle.
	File    string  `json:"file"`
	Seconds float64 `json:"seconds"`
	Note    string  `json:"note,omitempty"`
}

// CallLine is one call in short.
type CallLine struct {
	Observation int              `json:"observation"`
	Step        string           `json:"step"`
	Operation   engine.Operation `json:"operation"`
	TookMS      float64          `json:"took_ms"`
	// Answer is what came back in a few words.
	Answer string `json:"answer"`
}

// Row explains one planned row of the bundle in dir. row is its id, its stem, or a pattern with * and ? that meets exactly one of them. The
// error is [ErrNoRow] with the nearest names, or that the bundle has no plan to look the row up in.
func Row(ctx context.Context, dir, row string) (*Explanation, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the bundle: %w", bare(err))
	}
	defer root.Close()
	var plan matrix.Plan
	if err := ReadDocument(root, bundle.PlanFile, &plan); err != nil {
		return nil, fmt.Errorf("read the bundle: %w", err)
	}
	c, err := find(plan, row)
	if err != nil {
		return nil, err
	}
	attempts, err := Attempts(ctx, root, c)
	if err != nil {
		return nil, err
	}
	a := Attempt{Contract: c, Verdict: evidence.Verdict{Row: c.ID}}
	// The last attempt that is no pass tells more than a pass after it.
	for _, one := range attempts {
		if a.Number == 0 || one.Verdict.Outcome != evidence.Pass || a.Verdict.Outcome == evidence.Pass {
			a = one
		}
	}
	e := Explain(plan, a)
	e.Attempts = len(attempts)
	return &e, nil
}

// find returns the one row that a name means.
func find(plan matrix.Plan, name string) (matrix.Contract, error) {
	if len(name) > 400 {
		return matrix.Contract{}, fmt.Errorf("%w: the name is too long", ErrNoRow)
	}
	pattern, err := regexp.Compile("(?s)^" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(name)) + "$")
	if err != nil {
		return matrix.Contract{}, fmt.Errorf("%w: %q", ErrNoRow, name)
	}
	var met []matrix.Contract
	for _, meets := range []func(matrix.Contract) bool{
		func(c matrix.Contract) bool { return string(c.ID) == name },
		func(c matrix.Contract) bool { return c.Stem == name },
		func(c matrix.Contract) bool { return pattern.MatchString(string(c.ID)) || pattern.MatchString(c.Stem) },
	} {
		for _, c := range plan.Rows {
			if meets(c) {
				met = append(met, c)
			}
		}
		if len(met) > 0 {
			break
		}
	}
	switch {
	case len(met) == 1:
		return met[0], nil
	case len(met) > 1:
		var ids []string
		for _, c := range met[:min(len(met), 8)] {
			ids = append(ids, string(c.ID))
		}
		more := ""
		if n := len(met) - len(ids); n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		return matrix.Contract{}, fmt.Errorf("%w: %q meets %d rows, name one of %s%s", ErrNoRow, name, len(met), strings.Join(ids, ", "), more)
	}
	return matrix.Contract{}, fmt.Errorf("%w: %q is not in the plan; %s", ErrNoRow, name, nearest(plan, name))
}

func nearest(plan matrix.Plan, name string) string {
	var known []string
	for _, c := range plan.Rows {
		known = append(known, string(c.ID))
		if !slices.Contains(known, c.Stem) {
			known = append(known, c.Stem)
		}
	}
	var near []string
	bare := strings.Trim(name, "*?")
	for _, k := range known {
		if len(near) < 3 && bare != "" && strings.Contains(k, bare) {
			near = append(near, k)
		}
	}
	for range 3 - len(near) {
		n := strict.Nearest(bare, known)
		if n == "" {
			break
		}
		near = append(near, n)
		known = slices.DeleteFunc(known, func(s string) bool { return s == n })
	}
	if len(near) > 0 {
		return "nearest: " + strings.Join(near, ", ")
	}
	var first []string
	for _, c := range plan.Rows[:min(len(plan.Rows), 5)] {
		first = append(first, string(c.ID))
	}
	if len(first) == 0 {
		return "the plan has no rows"
	}
	return "the plan begins with " + strings.Join(first, ", ")
}

// Explain explains one attempt. It is pure.
func Explain(plan matrix.Plan, a Attempt) Explanation {
	c := a.Contract
	e := Explanation{Format: Format, Row: c.ID, Requirement: c.Requirement, Title: c.Title, Duty: c.Duty, Source: c.Source, Attempt: a.Number, Attempts: a.Number,
		Dir: a.Dir, Contract: Clauses(c), Verdict: a.Verdict, Written: a.Written, Calls: []CallLine{}, Receipts: []ReceiptCheck{}, Repeat: Repeat(plan, c)}
	if a.Number == 0 {
		e.Notes = append(e.Notes, "the row was never begun: the run was cut before it")
		return e
	}
	if a.Problem != "" {
		e.Notes = append(e.Notes, "its observations are not whole: "+word(a.Problem))
	}
	if a.Written != "" && a.Written != a.Verdict.Outcome.String() {
		e.Notes = append(e.Notes, fmt.Sprintf("the bundle says %s and its observations say %s: the bundle was altered", a.Written, a.Verdict.Outcome))
	}
	if a.Written == "" {
		e.Notes = append(e.Notes, "the bundle has no verdict for it: the run was cut")
	}
	e.Divergence = FirstDivergence(c, a.Verdict, a.Observations)
	e.Film = a.moment(e.Divergence)
	e.Calls = lastCalls(a.Observations, e.Divergence)
	for _, o := range a.Observations {
		if r, ok := CompareReceipt(c, a.Observations, o); ok && (!o.Call.Arrange || r.Differs()) {
			e.Receipts = append(e.Receipts, r)
		}
	}
	return e
}

// Repeat is the command that carries one row out.
func Repeat(plan matrix.Plan, c matrix.Contract) string {
	return fmt.Sprintf("acceptance run --engine %s --rows %s", quoted(plan.Engine), quoted(string(c.ID)))
}

// quoted is s as a word of a POSIX shell.
func quoted(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// FirstDivergence returns the finding that can be seen first. A finding about something that is missing stands at the end of the step that it
// belongs to; what is found after the row stands at its end.
func FirstDivergence(c matrix.Contract, v evidence.Verdict, obs []evidence.Observation) *Divergence {
	var first *Divergence
	var begin int64
	if len(obs) > 0 {
		begin = obs[0].MonoNS
	}
	for _, f := range v.Findings {
		d := Divergence{Finding: f, Expected: expected(c, f), Seen: f.Text}
		if f.Observation >= 1 && f.Observation <= len(obs) {
			o := obs[f.Observation-1]
			d.Kind, d.Phase, d.MonoNS = o.Kind, o.Phase, momentOf(o)
		} else if n := len(obs); n > 0 {
			d.MonoNS = obs[n-1].MonoNS
		}
		if d.Kind == evidence.KindEnd {
			for _, o := range obs {
				if o.StepInfo != nil && o.Step == f.Step {
					d.MonoNS = o.StepInfo.EndNS
				}
			}
		}
		d.AfterBeginMS = float64(d.MonoNS-begin) / 1e6
		if first == nil || d.MonoNS < first.MonoNS {
			first = &d
		}
	}
	return first
}

// momentOf is when an observation's own event was: an event of the desk is read after it happened, a call shows from its reply.
func momentOf(o evidence.Observation) int64 {
	switch {
	case o.Desk != nil && o.Desk.EventNS > 0:
		return o.Desk.EventNS
	case o.Call != nil && o.Call.ReplyNS > 0:
		return o.Call.ReplyNS
	}
	return o.MonoNS
}

// Moment is the place of a divergence in the film; nil without a film or divergence.
func (a Attempt) moment(d *Divergence) *Moment {
	if a.Film == nil || d == nil {
		return nil
	}
	m := &Moment{File: a.Dir + "/film.mp4"}
	var ok bool
	m.Seconds, ok = a.Film.At(d.MonoNS)
	switch {
	case d.Kind == evidence.KindScan || d.Kind == evidence.KindFilm || d.Kind == evidence.KindGuard || d.Kind == evidence.KindHeartbeat:
		m.Note = "found after the row and is no single moment of the film"
		if i := slices.IndexFunc(a.Observations, func(o evidence.Observation) bool { return o.Phase == evidence.PhaseBackground }); i >= 0 {
			m.Seconds, _ = a.Film.At(a.Observations[i].MonoNS)
			m.Note += ", which opens where the background phase begins"
		}
	case !ok:
		m.Note = "at a moment that the film does not cover: this is its nearest end"
	}
	return m
}

func lastCalls(obs []evidence.Observation, d *Divergence) []CallLine {
	calls := []CallLine{}
	for _, o := range obs {
		if o.Call == nil || d != nil && o.Call.StartNS > d.MonoNS {
			continue
		}
		calls = append(calls, CallLine{o.Seq, o.Step, o.Call.Operation, float64(o.Call.ReplyNS-o.Call.StartNS) / 1e6, Answer(*o.Call)})
	}
	return calls[max(0, len(calls)-maxCalls):]
}

// Answer says in a few words what a call returned.
func Answer(c evidence.Call) string {
	switch {
	case c.Carrier != "":
		return "no result: " + word(c.Carrier)
	case c.Refusal != nil:
		return fmt.Sprintf("refused: %s (%s)", c.Refusal.Code, word(c.Refusal.Trigger))
	case c.Receipt != nil:
		return fmt.Sprintf("%s: effect %s, trust %s, %d of %d delivered", c.Status, c.Receipt.Effect, c.Receipt.Trust, c.Receipt.DeliveredCount, c.Receipt.RequestedCount)
	case c.Bind != nil:
		return fmt.Sprintf("%s: bound %s, %s", c.Status, c.Bind.Quality, Count(len(c.Bind.Active), "tab"))
	case c.Snapshot != nil:
		return fmt.Sprintf("%s: %d nodes listed (%s)", c.Status, len(c.Snapshot.Nodes), c.Snapshot.Provenance)
	}
	return string(c.Status)
}
