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

// Geometry of the timeline, in units of its view box.
const (
	lineLabel  = 120
	lineWidth  = 1200
	laneHeight = 30
	lineTop    = 22
	lineBottom = 24
	buckets    = 360
)

// maxDesktop bounds the lines of the desk's event log that are drawn.
const maxDesktop = 400_000

// timeline is the desk on one line of time: who did what, beside the engine's calls.
type timeline struct {
	Width, Height, Bottom int
	Lanes                 []lane
	Phases                []span
	Ticks                 []tick
	// First is where the first divergence stands, nil without one. FilmX0 and FilmX1 bound the film.
	First          *mark
	FilmX0, FilmX1 float64
	HasFilm        bool
	FilmSeconds    float64
	Note           string
	// Charged says how many changes of the desk are charged, in words; empty for none.
	Charged string
	charged int
}

type lane struct {
	Name, Doc string
	Y, Text   int
	Spans     []span
	Marks     []mark
	Count     int
}

type span struct {
	X, W  float64
	Class string
	Label string
	Title string
	Link  template.URL
	Sec   string
}

type mark struct {
	X     float64
	Class string
	Title string
	Link  template.URL
	Sec   string
	H     float64
}

type tick struct {
	X    float64
	Text string
}

// laneNames in order of drawing.
var laneNames = []struct{ name, doc string }{
	{"person", "keys and buttons of the person"},
	{"engine", "calls: the solid part until the reply, the light part until the window of time was closed"},
	{"browser", "requests that the browser made of the window system"},
	{"window manager", "requests of the window manager"},
	{"controls", "rounds in which the harness breaks the desk on purpose, to see that its guards are awake"},
	{"page", "events that the pages reported"},
	{"desk changed", "changes of the desk that the judge looks at"},
}

const (
	lanePerson = iota
	laneEngine
	laneBrowser
	laneManager
	laneControls
	lanePage
	laneDesk
)

// scale turns moments into places.
type scale struct {
	from, to int64
	t        teller
}

func (s scale) x(ns int64) float64 {
	ns = min(max(ns, s.from), s.to)
	return lineLabel + float64(ns-s.from)/float64(max(1, s.to-s.from))*(lineWidth-lineLabel-10)
}

func (s scale) in(ns int64) bool { return ns >= s.from && ns <= s.to }

func (s scale) link(ns int64) (template.URL, string) {
	if p := s.t.at(ns); p != nil {
		return p.Link, strconv.FormatFloat(p.Seconds, 'f', 2, 64)
	}
	return "", ""
}

func timelineOf(root *os.Root, in Input, t teller, first *explain.Divergence) *timeline {
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
	line := &timeline{Width: lineWidth, Height: lineTop + len(laneNames)*laneHeight + lineBottom, Bottom: lineTop + len(laneNames)*laneHeight}
	for i, l := range laneNames {
		line.Lanes = append(line.Lanes, lane{Name: l.name, Doc: l.doc, Y: lineTop + i*laneHeight, Text: lineTop + i*laneHeight + laneHeight/2 + 4})
	}
	if f := t.a.Film; f != nil {
		line.HasFilm, line.FilmX0, line.FilmX1, line.FilmSeconds = true, s.x(f.Start()), s.x(f.End()), f.Seconds()
	}
	line.observed(s, obs)
	line.logged(root, in, s)
	line.phases(s, obs)
	line.scale(s)
	if line.charged > 0 {
		line.Charged = explain.Count(line.charged, "change") + " of the desk charged"
	}
	if first != nil {
		link, sec := s.link(first.MonoNS)
		line.First = &mark{X: s.x(first.MonoNS), Title: fmt.Sprintf("first divergence, %s: %s %s", t.when(first.MonoNS), visible(string(first.Requirement)), visible(string(first.Reason))), Link: link, Sec: sec}
	}
	return line
}

// observed draws calls, control rounds, page events and changes of the desk.
func (l *timeline) observed(s scale, obs []evidence.Observation) {
	for _, o := range obs {
		switch {
		case o.Call != nil:
			l.call(s, o)
		case o.Controls != nil:
			from := o.MonoNS - o.Controls.TookNS
			class := "ctl"
			if len(o.Controls.Missed) > 0 {
				class = "charged"
			}
			link, sec := s.link(from)
			l.span(laneControls, span{X: s.x(from), W: max(3, s.x(o.MonoNS)-s.x(from)), Class: class, Link: link, Sec: sec,
				Title: fmt.Sprintf("%s, controls %s: %s committed, %d missed", s.t.when(from), visible(controlsWhen(o.Controls.When)), explain.Count(len(o.Controls.Committed), "kind"), len(o.Controls.Missed))})
		case o.Journal != nil && s.in(o.MonoNS):
			class := "event"
			if effects[o.Journal.Type] {
				class = "effect"
			}
			link, sec := s.link(o.MonoNS)
			title := fmt.Sprintf("%s, page %s: %s", s.t.when(o.MonoNS), visible(o.Journal.Page), visible(o.Journal.Type))
			if o.Journal.Control != "" {
				title += " on " + cut(80, o.Journal.Control)
			}
			l.mark(lanePage, mark{X: s.x(o.MonoNS), Class: class, Title: title, Link: link, Sec: sec})
		case o.Desk != nil && s.in(o.Desk.EventNS):
			d := o.Desk
			class, who := "allowed", "in the prepare phase"
			if charged(o) {
				class, who = "charged", "charged"
				l.charged++
			} else if o.Phase == evidence.PhaseBackground {
				who = "not charged"
			}
			link, sec := s.link(d.EventNS)
			l.mark(laneDesk, mark{X: s.x(d.EventNS), Class: class, Link: link, Sec: sec,
				Title: fmt.Sprintf("%s, %s by %s on the %s window (%s), %s", s.t.when(d.EventNS), visible(string(d.Reason)), visible(string(d.Actor)), visible(d.Window), visible(string(d.Requirement)), who)})
		}
	}
}

// charged mirrors what the judge charges: in the background phase everything but the person, ourselves and the window manager's requests.
func charged(o evidence.Observation) bool {
	d := o.Desk
	if o.Phase != evidence.PhaseBackground {
		return false
	}
	switch d.Actor {
	case evidence.ActorPerson, evidence.ActorControls, evidence.ActorHarness, evidence.ActorStranger:
		return false
	case evidence.ActorWindowManager:
		return d.Request == ""
	}
	return true
}

func (l *timeline) call(s scale, o evidence.Observation) {
	c := o.Call
	link, sec := s.link(c.StartNS)
	title := fmt.Sprintf("%s, %s in step %s: %s; window of time %s", s.t.when(c.StartNS), visible(string(c.Operation)), cut(60, o.Step), cut(160, explain.Answer(*c)), ms(c.ClosedNS-c.StartNS))
	class := "call"
	if c.Refusal != nil || c.Carrier != "" {
		class = "refused"
	}
	x, reply, closed := s.x(c.StartNS), s.x(max(c.StartNS, c.ReplyNS)), s.x(max(c.StartNS, c.ClosedNS))
	l.span(laneEngine, span{X: x, W: max(2, closed-x), Class: class + " open", Title: title, Link: link, Sec: sec})
	solid := span{X: x, W: max(2, reply-x), Class: class, Title: title, Link: link, Sec: sec}
	name := strings.TrimPrefix(string(c.Operation), "browser_")
	if closed-x > float64(8*len(name)) && len(name) < 24 {
		solid.Label = name
	}
	l.span(laneEngine, solid)
}

// maxDrawn bounds what is drawn in one lane.
const maxDrawn = 1500

func (l *timeline) span(i int, s span) {
	if l.Lanes[i].Count++; len(l.Lanes[i].Spans) < maxDrawn {
		l.Lanes[i].Spans = append(l.Lanes[i].Spans, s)
	}
}

func (l *timeline) mark(i int, m mark) {
	if l.Lanes[i].Count++; len(l.Lanes[i].Marks) < maxDrawn {
		l.Lanes[i].Marks = append(l.Lanes[i].Marks, m)
	}
}

// deskEvent is what is read of a line of desktop.jsonl.
type deskEvent struct {
	MonoNS  int64  `json:"mono_ns"`
	Kind    string `json:"kind"`
	PID     int    `json:"pid"`
	Exe     string `json:"exe"`
	Request string `json:"request"`
	Release bool   `json:"release"`
}

// logged draws the desk's own event log: what person, browser and window manager did, bucket by bucket.
func (l *timeline) logged(root *os.Root, in Input, s scale) {
	browsers := map[string]bool{}
	for _, b := range in.Provenance.Browsers {
		browsers[b.Executable] = true
	}
	manager := strings.ToLower(in.Provenance.System.Display["window_manager"])
	type bucket map[string]int
	found := [3]map[int]bucket{lanePerson: {}, laneBrowser: {}}
	managers := map[int]bucket{}
	n := 0
	cutOff, err := explain.EachLine(root, path.Join(s.t.a.Dir, "desktop.jsonl"), func(raw []byte) bool {
		var e deskEvent
		if n++; n > maxDesktop {
			return false
		}
		if json.Unmarshal(raw, &e) != nil || !s.in(e.MonoNS) || e.Exe == "" {
			return true
		}
		var into map[int]bucket
		what := e.Kind
		switch {
		case (e.Kind == "device_key" || e.Kind == "device_button") && !browsers[e.Exe] && !l.inControls(s.x(e.MonoNS)):
			into, what = found[lanePerson], strings.TrimPrefix(e.Kind, "device_")
			if e.Release {
				what += " up"
			} else {
				what += " down"
			}
		case manager != "" && strings.HasPrefix(manager, strings.ToLower(e.Exe)) && isRequest(e.Kind):
			into = managers
		case browsers[e.Exe] && isRequest(e.Kind):
			into = found[laneBrowser]
		default:
			return true
		}
		i := int((s.x(e.MonoNS) - lineLabel) / (lineWidth - lineLabel) * buckets)
		if into[i] == nil {
			into[i] = bucket{}
		}
		into[i][visible(what)]++
		return true
	})
	switch {
	case err != nil:
		l.Note = "The desk's event log could not be read: lanes of person, browser and window manager are empty."
	case cutOff:
		l.Note = "The desk's event log is longer than is drawn."
	}
	for lane, all := range map[int]map[int]bucket{lanePerson: found[lanePerson], laneBrowser: found[laneBrowser], laneManager: managers} {
		for _, i := range slices.Sorted(keysOf(all)) {
			l.bucket(s, lane, i, all[i])
		}
	}
}

func (l *timeline) bucket(s scale, lane, i int, all map[string]int) {
	width := float64(lineWidth-lineLabel) / buckets
	x := lineLabel + (float64(i)+0.5)*width
	at := s.from + int64((x-lineLabel)/(lineWidth-lineLabel-10)*float64(s.to-s.from))
	total := 0
	var parts []string
	for _, k := range slices.Sorted(keysOf(all)) {
		total += all[k]
		parts = append(parts, fmt.Sprintf("%d %s", all[k], k))
	}
	link, sec := s.link(at)
	l.mark(lane, mark{X: x, Class: strings.ReplaceAll(laneNames[lane].name, " ", "-"), Title: fmt.Sprintf("%s, %s: %s", s.t.when(at), laneNames[lane].name, strings.Join(bounded(parts, 8), ", ")),
		Link: link, Sec: sec, H: float64(min(20, 7+2*total))})
	l.Lanes[lane].Count += total - 1
}

func isRequest(kind string) bool {
	return strings.HasPrefix(kind, "req_") || strings.HasPrefix(kind, "send_")
}

// inControls says whether a place lies in a round of controls, which use the same test device as the person.
func (l *timeline) inControls(x float64) bool {
	return slices.ContainsFunc(l.Lanes[laneControls].Spans, func(s span) bool { return x >= s.X-1 && x <= s.X+s.W+1 })
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
			if shade.W > 70 {
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
