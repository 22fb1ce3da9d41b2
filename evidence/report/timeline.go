package report

import (
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/explain"
)

// Geometry of the timeline. Heights are pixels; places across are percent of the plot's width, so that it fits any screen.
const (
	laneHeight = 26
	callHeight = 18 // of one row of calls: calls that overlap stand in rows of their own
	lineTop    = 40 // findings, and names of phases
	lineBottom = 24 // seconds
	buckets    = 400
)

// Bounds of what is drawn: of the lines of the desk's event log that are read, of the marks of one lane, of rows of calls, of findings.
const (
	maxDesktop  = 400_000
	maxDrawn    = 1500
	maxCallRows = 6
	maxFlags    = 40
)

// timeline is the desk on one line of time: who did what, beside the engine's calls.
type timeline struct {
	Height, Top, Bottom int
	Lanes               []lane
	Phases              []span
	Ticks               []tick
	// Flags are findings at their moments. The first of them is the first divergence.
	Flags []mark
	// FilmX0 and FilmX1 bound the film; Now is where it opens.
	FilmX0, FilmX1, Now float64
	HasFilm             bool
	FilmSeconds         float64
	Note                string
	// Charged says how many changes of the desk are charged, in words; empty for none.
	Charged string
	charged int
	cited   map[int]bool // observations that findings rest on
}

type lane struct {
	Name, Doc string
	Y, H      int
	Spans     []span
	Marks     []mark
	Count     int
	index     int
	busy      []float64 // of calls: where each row ends
}

// span lasts. Of a call, W1 is its part until the reply.
type span struct {
	X, W, W1 float64
	Y, H     int
	Class    string
	Label    string
	Title    string
	Link     template.URL
	Sec      string
}

// mark is a moment. One with a height is a bar, the others have a sign of their class.
type mark struct {
	X     float64
	Y, H  int
	Class string
	Label string
	Title string
	Link  template.URL
	Sec   string
}

type tick struct {
	X    float64
	Text string
}

// Lanes in order of drawing.
const (
	laneStep = iota
	laneCall
	laneDesk
	lanePerson
	laneEngine
	laneBrowser
	laneManager
	laneOthers
	lanePage
	laneControls
)

// laneTable names them. A lane that is optional is left out when it is empty; the others say by being empty that nothing was there.
var laneTable = []struct {
	name, doc, class string
	optional         bool
}{
	laneStep:     {"step", "steps of the row", "step", false},
	laneCall:     {"engine call", "calls of the engine: the solid part until the reply, the light part until the window of time was closed", "call", false},
	laneDesk:     {"desk changed", "changes of the desk that the judge looks at: ✗ charged, ○ not charged", "desk", false},
	lanePerson:   {"person", "keys, buttons and motion of the person, as the window system delivered them", "person", false},
	laneEngine:   {"engine", "requests that the engine's own process made of the window system", "engine", true},
	laneBrowser:  {"browser", "requests that the browser made of the window system", "browser", false},
	laneManager:  {"window manager", "requests of the window manager", "manager", false},
	laneOthers:   {"others", "requests of processes that belong to nobody here", "others", true},
	lanePage:     {"page", "events that the pages reported: ● may be an effect of an action, · is none", "page", false},
	laneControls: {"controls", "rounds in which the harness breaks the desk on purpose, to see that its guards are awake", "control", false},
}

// laneOf says whose requests stand in which lane; those of the harness and of its controls stand in none: a round of controls is one span.
var laneOf = map[evidence.Actor]int{evidence.ActorPerson: lanePerson, evidence.ActorEngine: laneEngine, evidence.ActorBrowser: laneBrowser,
	evidence.ActorWindowManager: laneManager, evidence.ActorStranger: laneOthers, evidence.ActorUnknown: laneOthers}

// scale turns moments into places.
type scale struct {
	from, to int64
	t        teller
}

func (s scale) x(ns int64) float64 {
	ns = min(max(ns, s.from), s.to)
	return float64(ns-s.from) / float64(max(1, s.to-s.from)) * 100
}

func (s scale) in(ns int64) bool { return ns >= s.from && ns <= s.to }

func (s scale) link(ns int64) (template.URL, string) {
	if p := s.t.at(ns); p != nil {
		return p.Link, strconv.FormatFloat(p.Seconds, 'f', 2, 64)
	}
	return "", ""
}

func timelineOf(root *os.Root, in Input, t teller, f *film) *timeline {
	obs := t.a.Observations
	if len(obs) < 2 {
		return nil
	}
	s := scale{from: obs[0].MonoNS, to: obs[len(obs)-1].MonoNS, t: t}
	if t.a.Film != nil {
		s.from, s.to = min(s.from, t.a.Film.Start()), max(s.from+1, t.a.Film.End())
		for _, o := range obs {
			if o.StepInfo != nil {
				s.to = max(s.to, o.StepInfo.EndNS)
			}
		}
	}
	line := &timeline{cited: map[int]bool{}}
	for _, f := range t.a.Verdict.Findings {
		line.cited[f.Observation] = true
	}
	for i, l := range laneTable {
		line.Lanes = append(line.Lanes, lane{Name: l.name, Doc: l.doc, index: i})
	}
	if c := t.a.Film; c != nil {
		line.HasFilm, line.FilmX0, line.FilmX1, line.FilmSeconds = true, s.x(c.Start()), s.x(c.End()), c.Seconds()
		line.Now = line.FilmX0
		if f != nil && f.Start != nil && line.FilmSeconds > 0 {
			line.Now += (line.FilmX1 - line.FilmX0) * min(1, f.Start.Seconds/line.FilmSeconds)
		}
	}
	line.observed(s, obs)
	line.logged(root, in, s)
	line.flags(s)
	line.phases(s, obs)
	line.scale(s)
	line.stack()
	if line.charged > 0 {
		line.Charged = explain.Count(line.charged, "change") + " of the desk charged"
	}
	return line
}

// stack places the lanes below one another.
func (l *timeline) stack() {
	l.Lanes = slices.DeleteFunc(l.Lanes, func(one lane) bool { return one.Count == 0 && laneTable[one.index].optional })
	y := lineTop
	for i := range l.Lanes {
		one := &l.Lanes[i]
		one.Y, one.H = y, max(laneHeight, len(one.busy)*callHeight+laneHeight-callHeight)
		y += one.H
	}
	l.Top, l.Bottom, l.Height = lineTop, y, y+lineBottom
}

// observed draws steps, calls, control rounds, page events and changes of the desk.
func (l *timeline) observed(s scale, obs []evidence.Observation) {
	for _, o := range obs {
		switch {
		case o.StepInfo != nil:
			l.step(s, o)
		case o.Call != nil:
			l.call(s, o)
		case o.Controls != nil:
			l.controls(s, o)
		case o.Journal != nil && s.in(o.MonoNS):
			class := "event"
			if effects[o.Journal.Type] {
				class = "effect"
			}
			if l.cited[o.Seq] || !o.Journal.Signed {
				class = "charged"
			}
			title := fmt.Sprintf("%s, page %s: %s", s.t.when(o.MonoNS), visible(o.Journal.Page), visible(o.Journal.Type))
			if o.Journal.Control != "" {
				title += " on " + cut(80, o.Journal.Control)
			}
			if o.Journal.Trusted {
				title += ", trusted"
			}
			if o.Journal.Reason != "" {
				title += ", not the page's own: " + visible(o.Journal.Reason)
			}
			l.mark(s, lanePage, o.MonoNS, mark{Class: class, Title: title})
		case o.Desk != nil && s.in(o.Desk.EventNS):
			l.change(s, o)
		}
	}
}

func (l *timeline) step(s scale, o evidence.Observation) {
	i := o.StepInfo
	title := fmt.Sprintf("%s, step %s: %s, %s in %s", s.t.when(i.StartNS), cut(60, o.Step), cut(60, i.Verb), visible(i.Outcome), ms(i.EndNS-i.StartNS))
	l.span(s, laneStep, i.StartNS, i.EndNS, span{Class: "step", Label: o.Step, Title: title})
}

func (l *timeline) call(s scale, o evidence.Observation) {
	c := o.Call
	reply, closed := max(c.StartNS, c.ReplyNS), max(c.StartNS, c.ReplyNS, c.ClosedNS)
	title := fmt.Sprintf("%s, engine %s in step %s: %s; reply after %s, window of time closed after %s", s.t.when(c.StartNS), visible(string(c.Operation)), cut(60, o.Step),
		cut(160, explain.Answer(*c)), ms(reply-c.StartNS), ms(closed-c.StartNS))
	class := "call"
	switch {
	case l.cited[o.Seq]:
		class = "charged"
	case c.Refusal != nil:
		class = "refused"
	}
	lane := &l.Lanes[laneCall]
	x, end := s.x(c.StartNS), s.x(closed)
	row := slices.IndexFunc(lane.busy, func(until float64) bool { return until <= x })
	switch {
	case row >= 0:
		lane.busy[row] = end
	case len(lane.busy) < maxCallRows:
		row = len(lane.busy)
		lane.busy = append(lane.busy, end)
	default:
		row = maxCallRows - 1
	}
	l.span(s, laneCall, c.StartNS, closed, span{Y: row * callHeight, W1: max(0.15, s.x(reply)-x), Class: class, Label: strings.TrimPrefix(string(c.Operation), "browser_"), Title: title})
}

func (l *timeline) controls(s scale, o evidence.Observation) {
	c := o.Controls
	class, found := "control", "each was seen"
	if n := len(c.Missed); n > 0 {
		class, found = "charged", fmt.Sprintf("%d missed: %s", n, cut(300, strings.Join(bounded(c.Missed, 20), ", ")))
	}
	l.span(s, laneControls, o.MonoNS-c.TookNS, o.MonoNS, span{Class: class, Label: c.When, Title: fmt.Sprintf("%s, controls %s: %s committed in %s, %s (%s)",
		s.t.when(o.MonoNS-c.TookNS), visible(controlsWhen(c.When)), explain.Count(len(c.Committed), "kind"), ms(c.TookNS), found, cut(400, strings.Join(bounded(c.Committed, 40), ", ")))})
}

func (l *timeline) change(s scale, o evidence.Observation) {
	d := o.Desk
	class, charge := "allowed", "not charged: the prepare phase"
	if l.cited[o.Seq] {
		class, charge = "charged", "charged"
		l.charged++
	} else if o.Phase != evidence.PhasePrepare {
		class, charge = "allowed", "not charged"
	}
	what := visible(string(d.Reason))
	if d.Request != "" {
		what += " by the request " + cut(60, d.Request)
	}
	who := visible(string(d.Actor))
	if d.PID != 0 {
		who += fmt.Sprintf(" (pid %d %s)", d.PID, visible(cut(40, d.Exe)))
	}
	l.mark(s, laneDesk, d.EventNS, mark{Class: class, Title: fmt.Sprintf("%s, %s: %s on the %s window (%s, %s), %s", s.t.when(d.EventNS), who, what,
		visible(d.Window), visible(string(d.Requirement)), cut(120, d.Detail), charge)})
}

// span puts what lasted into a lane.
func (l *timeline) span(s scale, i int, from, to int64, one span) {
	lane := &l.Lanes[i]
	if lane.Count++; len(lane.Spans) >= maxDrawn {
		return
	}
	one.X = s.x(from)
	one.W = max(0.15, s.x(max(from, to))-one.X)
	one.H = callHeight
	one.Link, one.Sec = s.link(from)
	// At 1000 pixels, which wide screens give it, a character of a label takes 0.7 of the hundred.
	if name := cut(40, one.Label); float64(len([]rune(name)))*0.7+0.6 <= one.W {
		one.Label = name
	} else {
		one.Label = ""
	}
	lane.Spans = append(lane.Spans, one)
}

// mark puts a moment into a lane.
func (l *timeline) mark(s scale, i int, at int64, one mark) {
	lane := &l.Lanes[i]
	if lane.Count++; len(lane.Marks) >= maxDrawn {
		return
	}
	one.X = s.x(at)
	one.Link, one.Sec = s.link(at)
	lane.Marks = append(lane.Marks, one)
}

// flags puts the findings over the lanes, in order of time.
func (l *timeline) flags(s scale) {
	type found struct {
		at  int64
		f   evidence.Finding
		bad bool
	}
	var all []found
	for _, f := range s.t.a.Verdict.Findings {
		if one := explain.FirstDivergence(s.t.a.Contract, evidence.Verdict{Findings: []evidence.Finding{f}}, s.t.a.Observations); one != nil && one.MonoNS > 0 {
			all = append(all, found{one.MonoNS, f, evidence.EngineAnswers(f.Reason)})
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return int(min(1, max(-1, a.at-b.at))) })
	for _, one := range all[:min(len(all), maxFlags)] {
		class := "open"
		if one.bad {
			class = "bad"
		}
		name := fmt.Sprintf("%s %s", visible(string(one.f.Requirement)), visible(string(one.f.Reason)))
		m := mark{X: s.x(one.at), Class: class, Title: fmt.Sprintf("%s, finding %s: %s", s.t.when(one.at), name, cut(300, one.f.Text))}
		if len(l.Flags) == 0 {
			m.Label = name
		}
		m.Link, m.Sec = s.link(one.at)
		l.Flags = append(l.Flags, m)
	}
}

// deskEvent is what is read of a line of desktop.jsonl.
type deskEvent struct {
	MonoNS  int64          `json:"mono_ns"`
	Kind    string         `json:"kind"`
	PID     int            `json:"pid"`
	Exe     string         `json:"exe"`
	Request string         `json:"request"`
	Release bool           `json:"release"`
	Actor   evidence.Actor `json:"actor"`
}

// lane says where an event stands and what it is; false for what stands nowhere: what windows and the harness itself told.
func (e deskEvent) lane() (lane int, what string, ok bool) {
	lane, ok = laneOf[e.Actor]
	input, isInput := strings.CutPrefix(e.Kind, "device_")
	switch {
	case !ok:
		return 0, "", false
	case lane == lanePerson && isInput:
		switch {
		case input == "motion":
			return lane, input, true
		case e.Release:
			return lane, input + " up", true
		}
		return lane, input + " down", true
	case lane == lanePerson || !strings.HasPrefix(e.Kind, "req_") && !strings.HasPrefix(e.Kind, "send_"):
		return 0, "", false
	case lane == laneOthers && e.PID == 0 && e.Exe == "":
		return 0, "", false // the server named nobody
	}
	if e.Request != "" {
		return lane, e.Request, true
	}
	return lane, e.Kind, true
}

// logged draws the desk's own event log: what each process did, bucket by bucket.
func (l *timeline) logged(root *os.Root, in Input, s scale) {
	type bucket map[string]map[string]int // process -> what -> how often
	found := make([]map[int]bucket, len(laneTable))
	n, unnamed := 0, 0
	cutOff, err := explain.EachLine(root, path.Join(s.t.a.Dir, "desktop.jsonl"), func(raw []byte) bool {
		var e deskEvent
		if n++; n > maxDesktop {
			return false
		}
		if json.Unmarshal(raw, &e) != nil || !s.in(e.MonoNS) {
			return true
		}
		if e.Actor == "" {
			unnamed++
			return true
		}
		lane, what, ok := e.lane()
		if !ok {
			return true
		}
		who := visible(e.Exe)
		if e.PID != 0 {
			who += fmt.Sprintf(" (pid %d)", e.PID)
		}
		i := min(buckets-1, int(s.x(e.MonoNS)/100*buckets))
		if found[lane] == nil {
			found[lane] = map[int]bucket{}
		}
		if found[lane][i] == nil {
			found[lane][i] = bucket{}
		}
		if found[lane][i][who] == nil {
			found[lane][i][who] = map[string]int{}
		}
		found[lane][i][who][cut(60, what)]++
		return true
	})
	switch {
	case err != nil:
		l.Note = "The desk's event log could not be read: lanes of person, browser and window manager are empty."
	case cutOff:
		l.Note = "The desk's event log is longer than is drawn."
	case unnamed > 0:
		l.Note = fmt.Sprintf("%s of the desk's event log say not whose they are, and are not drawn.", explain.Count(unnamed, "line"))
	}
	for lane, all := range found {
		for _, i := range slices.Sorted(keysOf(all)) {
			l.bucket(s, lane, i, all[i])
		}
	}
}

func (l *timeline) bucket(s scale, lane, i int, all map[string]map[string]int) {
	at := s.from + int64((float64(i)+0.5)/buckets*float64(s.to-s.from))
	total := 0
	var who []string
	for _, process := range slices.Sorted(keysOf(all)) {
		var parts []string
		for _, what := range slices.Sorted(keysOf(all[process])) {
			n := all[process][what]
			total += n
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
		who = append(who, process+": "+strings.Join(bounded(parts, 8), ", "))
	}
	l.mark(s, lane, at, mark{Class: laneTable[lane].class, Title: fmt.Sprintf("%s, %s, %s", s.t.when(at), laneTable[lane].name, strings.Join(bounded(who, 4), "; ")),
		H: min(laneHeight-6, 6+2*total)})
	l.Lanes[lane].Count += total - 1
}

// phases shades prepare, background and clean-up.
func (l *timeline) phases(s scale, obs []evidence.Observation) {
	bounds := map[evidence.Phase]int64{}
	for _, o := range obs {
		at := o.MonoNS
		if o.Call != nil && o.Call.StartNS > 0 {
			at = o.Call.StartNS
		}
		if _, there := bounds[o.Phase]; !there {
			bounds[o.Phase] = at
		}
	}
	from := s.from
	names := []evidence.Phase{evidence.PhasePrepare, evidence.PhaseBackground, evidence.PhaseCleanup}
	for i, p := range names {
		end := s.to
		for _, next := range names[i+1:] {
			if at, there := bounds[next]; there {
				end = min(end, max(from, at))
				break
			}
		}
		if _, there := bounds[p]; there && end > from {
			shade := span{X: s.x(from), W: s.x(end) - s.x(from), Class: string(p)}
			if shade.W > 8 {
				shade.Label = string(p)
			}
			l.Phases = append(l.Phases, shade)
			from = end
		}
	}
}

func (l *timeline) scale(s scale) {
	zero := s.t.begin
	if f := s.t.a.Film; f != nil {
		zero = f.Start()
	}
	every := int64(1e9)
	for (s.to-zero)/every > 12 {
		every *= 2
	}
	for at := zero; at <= s.to; at += every {
		l.Ticks = append(l.Ticks, tick{s.x(at), strconv.FormatInt((at-zero)/1e9, 10) + " s"})
	}
}

// controlsWhen says when a round of controls was.
func controlsWhen(when string) string {
	if when == "desk" {
		return "once on the desk"
	}
	return when + " the row"
}
