package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/explain"
)

// Bounds of one row's page: longer lists are cut, with a count.
const (
	maxFindings     = 60
	maxJournal      = 300
	maxObservations = 500
	maxCells        = 600 // characters of one payload
)

// row is the content of a row's page.
type row struct {
	Title, ID, Requirement, Aspect, Outcome, Decision string
	look
	Duty, Kind, Source, Needs string
	Previous, Next            *neighbour
	TookMS                    int64
	Attempts                  []attempt
	Contract                  []clauses
	Repeat                    string
	Number, Total             int
}

type neighbour struct{ ID, Page string }

// clauses are the sentences of one part of the contract.
type clauses struct {
	Name  string
	Texts []string
}

// attempt is one attempt at the row.
type attempt struct {
	Number  int
	Of      int
	Outcome string
	look
	Notes       []string
	Findings    []finding
	MoreFound   int
	First       *explain.Divergence
	Film        *film
	Stills      []still
	Steps       []step
	Arrange     []call
	Receipts    []explain.ReceiptCheck
	Line        *timeline
	Journal     []journalLine
	MoreJournal int
	Facts       []factGroup
	Seen        []seen
	MoreSeen    int
	Files       []file
}

type finding struct {
	Requirement, Reason, Step, Text, Whose string
	Observation                            int
	At                                     *place
}

// place is a moment in the film: seconds for people, and the link that opens the film there.
type place struct {
	Seconds float64
	Text    string
	Link    template.URL
}

type film struct {
	Link    template.URL
	Start   *place
	Note    string
	Seconds float64
	// Diverges says that Start is where the first divergence is; else it is where the row's own steps begin.
	Diverges bool
}

type still struct {
	Name string
	Link template.URL
}

type step struct {
	Name, Words, Phase, Outcome, Note, Took string
	At                                      *place
	Calls                                   []call
	// Sum is what came of the calls of a block, of which there may be hundreds.
	Sum     string
	Planned bool
}

type call struct {
	Observation                 int
	Operation, Answer, Page     string
	Reply, Window, From, Status string
	Refused                     bool
	Detail                      []fact
	Violations                  []string
	At                          *place
}

type journalLine struct {
	At                                *place
	When                              string
	Page, File, Type, Control, Value  string
	Trusted                           string
	Signed                            bool
	Origin, Reason                    string
	Effect                            bool
	Observation, Document, OrderInDoc int
}

type factGroup struct {
	Name  string
	Lines []factLine
}

type factLine struct {
	look
	Name, Value string
	Observation int
}

type seen struct {
	Seq                     int
	When, Kind, Phase, Step string
	Text                    string
	Cited                   bool
}

type file struct {
	Name string
	Size string
	Link template.URL
}

func rowPage(root *os.Root, in Input, i int, attempts []explain.Attempt, t times) row {
	c, v := in.Plan.Rows[i], in.Verdicts[i]
	r := row{Title: c.Title, ID: string(c.ID), Requirement: string(c.Requirement), Aspect: c.Aspect, Outcome: v.Outcome.String(), look: lookOf(v.Outcome), Duty: string(c.Duty),
		Kind: "delivery", Source: c.Source, TookMS: t.rows[c.ID], Repeat: explain.Repeat(in.Plan, c), Number: i + 1, Total: len(in.Plan.Rows), Decision: in.Ruling.Decision.String()}
	switch {
	case c.Twin:
		r.Kind = "a refusal: the capability is not claimed"
	case len(c.Expect.Refusal) > 0:
		r.Kind = "a refusal"
	}
	if c.Needs != nil {
		r.Needs = fmt.Sprintf("%s by %s, %s, %s", c.Needs.Action, c.Needs.Route, c.Needs.Delivery, c.Needs.State)
	}
	if i > 0 {
		r.Previous = &neighbour{string(in.Plan.Rows[i-1].ID), path.Base(PageOf(in.Plan.Rows[i-1]))}
	}
	if i+1 < len(in.Plan.Rows) {
		r.Next = &neighbour{string(in.Plan.Rows[i+1].ID), path.Base(PageOf(in.Plan.Rows[i+1]))}
	}
	names := map[explain.About]string{explain.AboutDesk: "The desk", explain.AboutStep: "What is done", explain.AboutExpect: "What must be seen",
		explain.AboutAlways: "What every row must show"}
	for _, cl := range explain.Clauses(c) {
		if n := len(r.Contract); n == 0 || r.Contract[n-1].Name != names[cl.About] {
			r.Contract = append(r.Contract, clauses{Name: names[cl.About]})
		}
		last := &r.Contract[len(r.Contract)-1]
		last.Texts = append(last.Texts, cl.Text)
	}
	for _, a := range attempts {
		r.Attempts = append(r.Attempts, attemptOf(root, in, a, len(attempts)))
	}
	return r
}

// teller turns the moments of one attempt into text and places.
type teller struct {
	a     explain.Attempt
	begin int64
	film  string
}

// when is the time since the row's begin.
func (t teller) when(ns int64) string {
	return strconv.FormatFloat(float64(ns-t.begin)/1e9, 'f', 2, 64) + " s"
}

// at is the place in the film, nil when the film does not cover the moment.
func (t teller) at(ns int64) *place {
	if t.a.Film == nil {
		return nil
	}
	s, ok := t.a.Film.At(ns)
	if !ok {
		return nil
	}
	return t.place(s)
}

func (t teller) place(seconds float64) *place {
	text := strconv.FormatFloat(seconds, 'f', 2, 64)
	return &place{seconds, text + " s", inBundle(t.film) + template.URL("#t="+text)}
}

// firstStep is where the row's own steps begin.
func (t teller) firstStep() *place {
	for _, o := range t.a.Observations {
		if o.Call != nil && !o.Call.Arrange {
			return t.at(o.Call.StartNS)
		}
	}
	return nil
}

func attemptOf(root *os.Root, in Input, a explain.Attempt, of int) attempt {
	e := explain.Explain(in.Plan, a)
	t := teller{a: a, film: path.Join(a.Dir, "film.mp4")}
	if len(a.Observations) > 0 {
		t.begin = a.Observations[0].MonoNS
	}
	out := attempt{Number: a.Number, Of: of, Outcome: a.Verdict.Outcome.String(), look: lookOf(a.Verdict.Outcome), Notes: e.Notes, First: e.Divergence, Receipts: e.Receipts}
	cited := map[int]bool{}
	for _, f := range a.Verdict.Findings {
		cited[f.Observation] = true
		if len(out.Findings) == maxFindings {
			out.MoreFound++
			continue
		}
		line := finding{Requirement: string(f.Requirement), Reason: string(f.Reason), Step: f.Step, Text: f.Text, Observation: f.Observation, Whose: "harness or environment"}
		if evidence.EngineAnswers(f.Reason) {
			line.Whose = "engine"
		}
		if one := explain.FirstDivergence(a.Contract, evidence.Verdict{Findings: []evidence.Finding{f}}, a.Observations); one != nil && one.MonoNS > 0 {
			line.At = t.at(one.MonoNS)
		}
		out.Findings = append(out.Findings, line)
	}
	if a.Film != nil {
		out.Film = &film{Link: inBundle(t.film), Seconds: a.Film.Seconds()}
		if m := e.Film; m != nil {
			out.Film.Start, out.Film.Note, out.Film.Diverges = t.place(m.Seconds), m.Note, true
		} else {
			out.Film.Start = t.firstStep()
		}
	}
	for _, name := range []string{"before.png", "after.png"} {
		if a.Files[name] > 0 {
			out.Stills = append(out.Stills, still{name[:len(name)-len(".png")], inBundle(path.Join(a.Dir, name))})
		}
	}
	out.steps(t)
	out.journal(t)
	out.facts(a)
	out.seen(t, cited)
	out.files(a)
	out.Line = timelineOf(root, in, t, out.Film)
	return out
}

// steps joins the planned steps with what was observed of them.
func (out *attempt) steps(t teller) {
	at, inBlocks := map[string]int{}, map[string][]evidence.Call{}
	for _, s := range t.a.Contract.Steps {
		phase := "prepare"
		if s.Background {
			phase = "background"
		}
		at[s.Name] = len(out.Steps)
		out.Steps = append(out.Steps, step{Name: s.Name, Words: explain.StepWords(s), Phase: phase, Outcome: "not reached", Planned: true})
	}
	for _, o := range t.a.Observations {
		i, known := at[o.Step]
		switch {
		case o.StepInfo != nil:
			if !known {
				i, at[o.Step] = len(out.Steps), len(out.Steps)
				out.Steps = append(out.Steps, step{Name: o.Step, Words: o.StepInfo.Verb, Phase: string(o.Phase)})
			}
			s := &out.Steps[i]
			s.Phase = string(o.Phase)
			s.Outcome, s.Note, s.Took, s.At = o.StepInfo.Outcome, o.StepInfo.Note, ms(o.StepInfo.EndNS-o.StepInfo.StartNS), t.at(o.StepInfo.StartNS)
		case o.Call != nil && o.Call.Block != "":
			inBlocks[o.Call.Block] = append(inBlocks[o.Call.Block], *o.Call)
		case o.Call != nil && known && !o.Call.Arrange:
			out.Steps[i].Calls = append(out.Steps[i].Calls, callOf(t, o))
		case o.Call != nil:
			out.Arrange = append(out.Arrange, callOf(t, o))
		}
	}
	for block, calls := range inBlocks {
		if i, known := at[block]; known {
			out.Steps[i].Sum = sumOf(calls)
		}
	}
}

// sumOf says what came of the calls of a block: how many were answered, and how many were refused with what.
func sumOf(calls []evidence.Call) string {
	ended, rounds := map[string]int{}, 0
	for _, c := range calls {
		how := string(c.Status)
		switch {
		case c.Refusal != nil:
			how = fmt.Sprintf("refused: %s (%s)", c.Refusal.Code, c.Refusal.Trigger)
		case c.Status != engine.StatusOK && c.Carrier != "":
			how = c.Carrier
		}
		ended[how]++
		rounds = max(rounds, c.Round)
	}
	var parts []string
	for _, how := range slices.Sorted(maps.Keys(ended)) {
		parts = append(parts, fmt.Sprintf("%d %s", ended[how], how))
	}
	return fmt.Sprintf("%d calls in %d rounds: %s", len(calls), rounds, strings.Join(parts, ", "))
}

func callOf(t teller, o evidence.Observation) call {
	c := o.Call
	out := call{Observation: o.Seq, Operation: string(c.Operation), Answer: explain.Answer(*c), Page: c.Page, Reply: ms(c.ReplyNS - c.StartNS), Window: ms(c.ClosedNS - c.StartNS),
		From: t.when(c.StartNS), Status: string(c.Status), Refused: c.Status == engine.StatusRefused, At: t.at(c.StartNS), Violations: bounded(c.Violations, 10)}
	if c.Refusal != nil {
		out.Detail = flat(c.Refusal.Detail)
	}
	return out
}

// flat lists the fields of a small value that are set, sorted by name.
func flat(v any) []fact {
	raw := map[string]any{}
	b, err := json.Marshal(v)
	if err != nil || json.Unmarshal(b, &raw) != nil {
		return nil
	}
	var out []fact
	for _, k := range slices.Sorted(keysOf(raw)) {
		out = append(out, fact{Name: k, Value: fmt.Sprint(raw[k])})
	}
	return out
}

// effects are the page events that an action may cause.
var effects = map[string]bool{"click": true, "input": true, "change": true, "load": true, "submit": true, "beforeinput": true, "mousedown": true, "mouseup": true,
	"keydown": true, "keyup": true, "drop": true, "dblclick": true, "contextmenu": true}

func (out *attempt) journal(t teller) {
	for _, o := range t.a.Observations {
		j := o.Journal
		if j == nil {
			continue
		}
		if len(out.Journal) == maxJournal {
			out.MoreJournal++
			continue
		}
		l := journalLine{At: t.at(o.MonoNS), When: t.when(o.MonoNS), Page: j.Page, File: j.File, Type: j.Type, Control: j.Control, Value: j.Value, Trusted: "no", Signed: j.Signed,
			Origin: j.Origin, Reason: j.Reason, Effect: effects[j.Type], Observation: o.Seq, Document: j.Document, OrderInDoc: j.Order}
		if j.Trusted {
			l.Trusted = "yes"
		}
		if j.ValueDigest != "" {
			l.Value = "secret, digest " + short(j.ValueDigest)
		}
		out.Journal = append(out.Journal, l)
	}
}

// facts gather what guards, controls, person, system, film and scans came to.
func (out *attempt) facts(a explain.Attempt) {
	groups := map[string]*factGroup{}
	order := []string{"Precondition", "Person", "Guards", "Controls", "System", "Declaration", "Film", "Scans", "Harness"}
	add := func(group, name string, ok bool, seq int, format string, args ...any) {
		g := groups[group]
		if g == nil {
			g = &factGroup{Name: group}
			groups[group] = g
		}
		l := look{"✓", "good"}
		if !ok {
			l = look{"✗", "bad"}
		}
		if len(g.Lines) < 60 {
			g.Lines = append(g.Lines, factLine{l, name, fmt.Sprintf(format, args...), seq})
		}
	}
	for _, o := range a.Observations {
		switch {
		case o.Precondition != nil:
			add("Precondition", o.Precondition.Name, o.Precondition.Met, o.Seq, "want %s, measured %s", o.Precondition.Want, o.Precondition.Got)
		case o.Person != nil:
			p := o.Person
			for _, stroke := range bounded(p.LostStrokes, 10) {
				add("Person", "lost", false, o.Seq, "%s", stroke)
			}
			add("Person", "input", p.Lost+p.Duplicated+p.Disordered == 0 && p.Injected > 0, o.Seq,
				"%d made, %d events received, %d lost, %d twice, %d out of order", p.Injected, p.Received, p.Lost, p.Duplicated, p.Disordered)
		case o.Guard != nil:
			text := explain.Count(o.Guard.Events, "event")
			if o.Guard.Dropped > 0 {
				text += fmt.Sprintf(", %d dropped", o.Guard.Dropped)
			}
			if o.Guard.Reason != "" {
				text += ", " + o.Guard.Reason
			}
			add("Guards", o.Guard.Channel, o.Guard.Alive && o.Guard.Dropped == 0, o.Seq, "%s", text)
		case o.Controls != nil:
			text := fmt.Sprintf("%s committed in %s, all seen", explain.Count(len(o.Controls.Committed), "kind"), ms(o.Controls.TookNS))
			if n := len(o.Controls.Missed); n > 0 {
				text = fmt.Sprintf("%d of %d kinds missed: %v", n, len(o.Controls.Committed), bounded(o.Controls.Missed, 20))
			}
			add("Controls", controlsWhen(o.Controls.When), len(o.Controls.Missed) == 0 && len(o.Controls.Committed) > 0, o.Seq, "%s", text)
		case o.System != nil:
			add("System", o.System.Fact, o.System.Holds, o.Seq, "%s", cmp.Or(o.System.Detail, strconv.Itoa(o.System.Count)))
		case o.Declaration != nil:
			text := "total, and equal to the support contract"
			if n := len(o.Declaration.Differences); n > 0 {
				text = fmt.Sprintf("%d differences: %v", n, bounded(o.Declaration.Differences, 5))
			}
			add("Declaration", "of the engine", o.Declaration.Total && len(o.Declaration.Differences) == 0, o.Seq, "%s", text)
		case o.Film != nil:
			f := o.Film
			add("Film", "whole", f.Present && f.Decodes && f.Monotonic && f.Frames == f.SideFrames, o.Seq, "%d of %d frames decode", f.Frames, f.SideFrames)
			add("Film", "stamped", f.CodesTried > 0 && f.CodesRead == f.CodesTried && f.CodesWrong == 0, o.Seq, "%d of %d codes read, %d wrong", f.CodesRead, f.CodesTried, f.CodesWrong)
			add("Film", "spans the row", f.CoversRow, o.Seq, "%s", ms(f.SpanNS))
			add("Film", "masks", f.MasksSolid, o.Seq, "%s of frames looked at", explain.Count(f.MaskedFrames, "masked area"))
			if f.Note != "" {
				add("Film", "note", false, o.Seq, "%s", f.Note)
			}
		case o.Scan != nil:
			add("Scans", o.Scan.What, o.Scan.ControlFound && len(o.Scan.Findings) == 0, o.Seq, "%s, %d bytes, planted control found: %t, %s",
				explain.Count(o.Scan.Files, "file"), o.Scan.Bytes, o.Scan.ControlFound, explain.Count(len(o.Scan.Findings), "leak"))
		case o.Fault != nil:
			add("Harness", "fault of the "+o.Fault.Whose, false, o.Seq, "%s", o.Fault.What)
		case o.Heartbeat != nil:
			add("Harness", "heartbeat", true, o.Seq, "longest gap %s", ms(o.Heartbeat.MaxGapNS))
		}
	}
	for _, name := range order {
		if groups[name] != nil {
			out.Facts = append(out.Facts, *groups[name])
		}
	}
}

// seen lists the observations in short: those that a finding cites always, the others as far as the bound goes.
func (out *attempt) seen(t teller, cited map[int]bool) {
	n := 0
	for _, o := range t.a.Observations {
		if !cited[o.Seq] {
			if n++; n > maxObservations {
				out.MoreSeen++
				continue
			}
		}
		text := ""
		if payload := payloadOf(o); payload != nil {
			b, err := json.Marshal(payload)
			if err == nil {
				text = limited(string(b), maxCells)
			}
		}
		out.Seen = append(out.Seen, seen{o.Seq, t.when(o.MonoNS), string(o.Kind), string(o.Phase), o.Step, text, cited[o.Seq]})
	}
}

// payloadOf returns an observation without what stands in columns of its own.
func payloadOf(o evidence.Observation) any {
	for _, p := range []any{o.Begin, o.End, o.StepInfo, o.Call, o.Journal, o.Desk, o.Controls, o.Guard, o.Person, o.Precondition, o.System, o.Scan, o.Film, o.Fault,
		o.Heartbeat, o.Declaration} {
		if b, err := json.Marshal(p); err == nil && string(b) != "null" {
			return p
		}
	}
	return nil
}

func (out *attempt) files(a explain.Attempt) {
	for _, name := range slices.Sorted(keysOf(a.Files)) {
		out.Files = append(out.Files, file{name, size(a.Files[name]), inBundle(path.Join(a.Dir, name))})
	}
}

func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
