package explain

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// WriteText writes the explanation for people: one screen for most rows. Control characters and other unprintable text are written as escapes.
func (e *Explanation) WriteText(w io.Writer) error {
	var b bytes.Buffer
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s%s\n", label, plain(fmt.Sprintf(format, args...)))
	}
	line("row", "%s", e.Row)
	line("proves", "%s: %s", e.Requirement, e.Title)
	line("verdict", "%s (derived again from the observations, by version %s of the judge)", strings.ToUpper(e.Verdict.Outcome.String()), orNone(e.Verdict.JudgeVersion))
	if e.Attempts > 1 {
		line("attempt", "%d of %d", e.Attempt, e.Attempts)
	}
	for _, n := range e.Notes {
		line("note", "%s", n)
	}
	label := "findings"
	for i, f := range e.Verdict.Findings {
		if i == 10 {
			line("", "and %d more", len(e.Verdict.Findings)-i)
			break
		}
		line(label, "%s %s, step %s, observation %d: %s", f.Requirement, f.Reason, orNone(f.Step), f.Observation, f.Text)
		label = ""
	}
	e.contract(line)
	if d := e.Divergence; d != nil {
		b.WriteByte('\n')
		line("first", "observation %d (%s), step %s, %.0f ms after the row began", d.Observation, orNone(string(d.Kind)), orNone(d.Step), d.AfterBeginMS)
		line("expected", "%s", d.Expected)
		line("seen", "%s", d.Seen)
	}
	if f := e.Film; f != nil {
		line("film", "%s at %.2f s", f.File, f.Seconds)
		if f.Note != "" {
			line("", "%s", f.Note)
		}
	}
	label = "calls"
	for _, c := range e.Calls {
		line(label, "%s in %s, %.0f ms: %s", c.Operation, orNone(c.Step), c.TookMS, c.Answer)
		label = ""
	}
	for _, r := range e.Receipts {
		line("receipt", "of %s in %s (observation %d)", r.Operation, orNone(r.Step), r.Observation)
		for _, f := range r.Fields {
			mark := map[Agreement]string{Agrees: "=", Differ: "!", Unmeasured: " "}[f.Agreement]
			line("", "%s %-22s says %-16s seen: %s", mark, f.Name, f.Says, f.Seen)
		}
	}
	b.WriteByte('\n')
	line("repeat", "%s", e.Repeat)
	_, err := w.Write(b.Bytes())
	return err
}

func (e *Explanation) contract(line func(string, string, ...any)) {
	line("", "")
	labels := map[About]string{AboutDesk: "desk", AboutStep: "steps", AboutExpect: "must show"}
	last := About("")
	for _, c := range e.Contract {
		if c.About == AboutAlways {
			continue
		}
		label := ""
		if c.About != last {
			label, last = labels[c.About], c.About
		}
		line(label, "%s", c.Text)
	}
	line("", "and what every row must show: an untouched desk, true receipts, no leak, a whole film")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// plain escapes what a terminal would obey.
func plain(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\ufffd' || !unicode.IsGraphic(r) {
			fmt.Fprintf(&b, "\\u{%x}", r)
			continue
		}
		b.WriteRune(r)
	}
	return strings.TrimRight(b.String(), " ")
}
