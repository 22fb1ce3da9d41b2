package explain

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/matrix"
)

// About says which part of a contract a clause belongs to.
type About string

// The closed list of parts.
const (
	AboutDesk   About = "desk"
	AboutStep   About = "step"
	AboutExpect About = "expect"
	AboutAlways About = "always"
)

// Clause is one sentence of a contract. Of names the step that it is about, empty when it is about none.
type Clause struct {
	About About  `json:"about"`
	Of    string `json:"of,omitempty"`
	Text  string `json:"text"`
}

// maxWord is the longest value that is written into a sentence, in characters.
const maxWord = 200

// Clauses puts a contract into words: how the desk is arranged, what is done, and what must be seen, what every row must show included.
func Clauses(c matrix.Contract) []Clause {
	out := deskClauses(c)
	for i, s := range c.Steps {
		phase := "while the desk is arranged"
		if s.Background {
			phase = "in the background"
		}
		out = append(out, Clause{AboutStep, s.Name, fmt.Sprintf("%d. %s, %s", i+1, StepWords(s), phase)})
	}
	out = append(out, expectClauses(c)...)
	for _, text := range always {
		out = append(out, Clause{AboutAlways, "", text})
	}
	return out
}

// always is what the judge asks of every row.
var always = []string{
	"from the first bind to the session's end nobody but the person changes focus, stacking, pointer, input, clipboard or keymap",
	"every input of the person arrives once, in order and in time, and no other reaches the windows of the person",
	"every field of a receipt agrees with what was seen; a refusal has a code of the closed list and changes nothing",
	"what a page does to the desk by itself stands in the next receipt, and nothing stands there that no page did",
	"no canary and no identifier of the browser stands in what the engine wrote, and no canary in the bundle",
	"every guard channel stays alive and sees every control before and after the row",
	"one whole film covers the row",
}

func deskClauses(c matrix.Contract) []Clause {
	var out []Clause
	add := func(format string, args ...any) {
		out = append(out, Clause{AboutDesk, "", fmt.Sprintf(format, args...)})
	}
	switch c.Launch {
	case matrix.LaunchFresh:
		add("a browser of its own is launched")
	case matrix.LaunchShared:
		add("the browser may be shared with other rows")
	default:
		add("no browser is launched beforehand")
	}
	if c.Desk.Kind != "" && c.Desk.Kind != matrix.DeskOpenbox {
		add("the desk is of the kind %s", c.Desk.Kind)
	}
	for i, w := range c.Desk.Windows {
		var tabs []string
		for _, t := range w.Tabs {
			name := t.Page
			if t.Visible {
				name += " (shown)"
			}
			tabs = append(tabs, name)
		}
		add("window %d, opened by %s, with %s", i+1, word(w.Opened), strings.Join(tabs, ", "))
		if w.Hidden != "" {
			add("window %d is hidden: %s", i+1, w.Hidden)
		}
	}
	if len(c.Desk.Decoys) > 0 {
		add("beside it the person runs %s", strings.Join(c.Desk.Decoys, ", "))
	}
	if c.Desk.Machine != "" {
		add("the machine that the engine finds: %s", word(c.Desk.Machine))
	}
	switch c.Desk.Person {
	case matrix.PersonCovers:
		add("the person's window covers the browser, and the person types")
	case matrix.PersonPartlyCovers:
		add("the person's window covers a part of the browser, and the person types")
	case matrix.PersonBeside:
		add("the person's window lies beside the browser, and the person types")
	}
	if n := c.Needs; n != nil {
		add("exercised: %s by %s, %s, %s", n.Action, n.Route, n.Delivery, n.State)
	}
	return out
}

// StepWords says what a step does: its verb and its arguments in order of their names.
func StepWords(s matrix.Step) string {
	if s.IsBlock() {
		return blockWords(s)
	}
	parts := []string{s.Verb}
	for _, k := range slices.Sorted(maps.Keys(s.Args)) {
		parts = append(parts, k+" "+value(s.Args[k]))
	}
	return strings.Join(parts, " ")
}

func value(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case nil:
		return "null"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return word(string(b))
}

// quote puts text between typographic quotes, for a reader: nothing inside is escaped.
func quote(s string) string { return "“" + word(s) + "”" }

// word bounds a value in characters.
func word(s string) string {
	if r := []rune(s); len(r) > maxWord {
		return string(r[:maxWord]) + fmt.Sprintf("... (%d characters more)", len(r)-maxWord)
	}
	return s
}

func expectClauses(c matrix.Contract) []Clause {
	var out []Clause
	add := func(of, format string, args ...any) {
		out = append(out, Clause{AboutExpect, of, fmt.Sprintf(format, args...)})
	}
	if c.Twin {
		add("", "the engine file does not declare this capability: the engine must refuse it")
	}
	for _, e := range c.Expect.Effect {
		add("", "%s", effectWords(e))
	}
	if c.Expect.Elsewhere == "silent" {
		add("", "no other control and no other page sees anything")
	}
	for _, r := range c.Expect.Receipt {
		var asks []string
		if len(r.Effect) > 0 {
			asks = append(asks, "effect "+joined(r.Effect, " or "))
		}
		if r.Trust != "" {
			asks = append(asks, "trust "+string(r.Trust))
		}
		if r.Route != "" {
			asks = append(asks, "route "+string(r.Route))
		}
		for _, name := range slices.Sorted(maps.Keys(r.SideEffects)) {
			asks = append(asks, fmt.Sprintf("%s %t", name, r.SideEffects[name]))
		}
		if r.ValueBefore != nil {
			asks = append(asks, "that "+quote(*r.ValueBefore)+" was replaced")
		}
		if r.Within > 0 {
			asks = append(asks, fmt.Sprintf("and comes within %v", r.Within))
		}
		add(r.Of, "the receipt of %s says %s", r.Of, strings.Join(asks, ", "))
	}
	for _, r := range c.Expect.Blocks {
		add(r.Of, "%s", blockExpectWords(r))
	}
	for _, r := range c.Expect.Refusal {
		text := fmt.Sprintf("%s is refused with %s (%s)", r.Of, r.Code, r.Trigger)
		for _, k := range slices.Sorted(maps.Keys(r.Detail)) {
			text += fmt.Sprintf(", %s %s", k, word(r.Detail[k]))
		}
		if r.Within > 0 {
			text += fmt.Sprintf(", within %v", r.Within)
		}
		add(r.Of, "%s, and nothing changes", text)
	}
	for _, b := range c.Expect.Bind {
		text := fmt.Sprintf("%s binds with quality %s", b.Of, b.Quality)
		if b.Tabs > 0 {
			text += ", " + Count(b.Tabs, "tab")
		}
		if b.Active != "" {
			text += ", active " + b.Active
		}
		if b.Within > 0 {
			text += fmt.Sprintf(", within %v", b.Within)
		}
		add(b.Of, "%s", text)
	}
	for _, s := range c.Expect.Snapshot {
		for _, n := range s.Has {
			add(s.Of, "%s lists %s %s once%s", s.Of, n.Role, quote(n.Name), frame(n))
		}
		for _, n := range s.Lacks {
			add(s.Of, "%s leaves %s %s out%s", s.Of, n.Role, quote(n.Name), frame(n))
		}
		if len(s.Either) > 0 {
			var lists []string
			for _, list := range s.Either {
				var nodes []string
				for _, n := range list {
					nodes = append(nodes, n.Role+" "+quote(n.Name))
				}
				lists = append(lists, strings.Join(nodes, " and "))
			}
			add(s.Of, "every snapshot of %s is of one document: either %s", s.Of, strings.Join(lists, ", or "))
		}
	}
	if p := c.Expect.Profile; p != nil {
		add(p.Of, "%s runs on a profile of its own (%s, mode 0700), and nothing is left of it", p.Of, p.Posture)
	}
	if c.Expect.Probes == "none" {
		add("", "the engine makes no request of the window system and no connection")
	}
	for _, g := range c.Expect.Generation {
		add(g.After, "%s is of another generation than %s", g.After, g.Before)
	}
	for _, r := range c.Expect.Rounds {
		add(r.Of, "of the calls of %s at least %d are delivered, and the others refused with %s", r.Of, r.Delivered, strings.Join(r.Refused, " or "))
	}
	if c.Expect.Identifiers != "" {
		add("", "nothing that the browser issued, heard on the wire, occurs in what the engine says")
	}
	if c.Expect.Forged != "" {
		add("", "a forged report of a page is seen and named")
	}
	if c.Budget > 0 {
		add("", "each call answers within %v", c.Budget.Round(time.Millisecond))
	}
	return out
}

// frame says which frame a node must be of, where the row asks.
func frame(n matrix.RoleName) string {
	if n.Frame == "" {
		return ""
	}
	return ", in frame " + word(n.Frame)
}

func effectWords(e matrix.EffectExpect) string {
	where := e.Page
	if e.Control != "" {
		where = fmt.Sprintf("%s of %s", e.Control, e.Page)
	}
	var parts []string
	if e.Loaded != "" {
		parts = append(parts, fmt.Sprintf("%s loads %s, once", where, e.Loaded))
	}
	if e.Value != nil {
		parts = append(parts, fmt.Sprintf("%s holds %s at the end", where, quote(*e.Value)))
	}
	if e.Event != "" {
		times := "once"
		if e.Count > 1 {
			times = fmt.Sprintf("%d times", e.Count)
		} else if e.AtLeast > 0 {
			times = fmt.Sprintf("at least %d times", e.AtLeast)
		}
		parts = append(parts, fmt.Sprintf("%s sees %s %s", where, e.Event, times))
	}
	if len(parts) == 0 {
		parts = append(parts, where+" reports an effect")
	}
	text := strings.Join(parts, ", and ")
	if e.Trusted != nil {
		text += fmt.Sprintf(", isTrusted %t", *e.Trusted)
	}
	return text
}

func joined[T ~string](all []T, sep string) string {
	var words []string
	for _, w := range all {
		words = append(words, string(w))
	}
	return strings.Join(words, sep)
}

// expected is the sentence that a finding breaks: a clause of the row where one is about it, else what every row must show.
func expected(c matrix.Contract, f evidence.Finding) string {
	r := string(f.Reason)
	pick := func(keep func(Clause) bool) string {
		var texts []string
		for _, cl := range expectClauses(c) {
			if keep(cl) {
				texts = append(texts, cl.Text)
			}
		}
		return strings.Join(texts, "; ")
	}
	text := ""
	switch {
	case strings.HasPrefix(r, "effect_") || f.Reason == evidence.ReasonTrustWrong:
		text = pick(func(cl Clause) bool { return cl.Of == "" && !strings.HasPrefix(cl.Text, "each call") })
	case f.Reason == evidence.ReasonReceiptUntrue || f.Reason == evidence.ReasonReceiptMalformed || f.Reason == evidence.ReasonReceiptMissing,
		f.Reason == evidence.ReasonUndeclaredEffect, f.Reason == evidence.ReasonOverdeclared:
		return always[2]
	case f.Reason == evidence.ReasonIdentifierLeaked, f.Reason == evidence.ReasonEngineLeaked, f.Reason == evidence.ReasonBundleLeaked, f.Reason == evidence.ReasonScanBlind:
		return always[3]
	case f.Reason == evidence.ReasonGuardLost, f.Reason == evidence.ReasonControlMissed:
		return always[4]
	case strings.HasPrefix(r, "film_"), f.Reason == evidence.ReasonMaskBroken:
		return always[5]
	case strings.HasPrefix(r, "person_input"):
		return always[1]
	case strings.HasPrefix(string(f.Requirement), "D"):
		return always[0]
	case f.Reason == evidence.ReasonBudgetMissed, f.Reason == evidence.ReasonClockStarved:
		return fmt.Sprintf("each call answers within %v", c.Budget)
	case f.Reason == evidence.ReasonPreconditionUnmet:
		if c.Needs != nil {
			return fmt.Sprintf("the row rests on a measured state: %s", stateWords(c.Needs.State))
		}
		return "the row's precondition holds before its action"
	case f.Reason == evidence.ReasonHarnessFault, f.Reason == evidence.ReasonEnvironmentFault, f.Reason == evidence.ReasonTooFewSeen, f.Reason == evidence.ReasonRowCut,
		f.Reason == evidence.ReasonObservationsBad:
		return "harness and environment do their own part, and every oracle is heard"
	default:
		if f.Step != "" {
			text = pick(func(cl Clause) bool { return cl.Of == f.Step })
		}
	}
	if text == "" {
		text = c.Title
	}
	return text
}

func stateWords(s engine.State) string {
	switch s {
	case engine.StateCovered:
		return "the visible tab of a window that is covered fully"
	case engine.StatePartlyCovered:
		return "the visible tab of a window that is covered in part"
	case engine.StateMinimised:
		return "a tab of a minimised window"
	case engine.StateInactiveTab:
		return "a tab that its window does not show"
	case engine.StateVisibleTab:
		return "the visible tab of a window that nothing covers and that does not hold the focus"
	}
	return string(s)
}

// Count reads "1 row", "2 rows".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
