package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/bundle"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/matrix/canonical"
)

func row(id, stem string) matrix.Contract {
	value := "Ada"
	return matrix.Contract{ID: matrix.RowID(id), Stem: stem, Requirement: "M5", Duty: matrix.DutyEngine, Title: "typed text arrives", Product: engine.ProductChromium,
		Environment: "x11", Launch: matrix.LaunchFresh, Desk: matrix.DeskPlan{Person: matrix.PersonCovers},
		Steps:  []matrix.Step{{Name: "act", Verb: "type", Args: map[string]any{"text": "Ada"}, Background: true}},
		Expect: matrix.Expect{Effect: []matrix.EffectExpect{{Page: "w/tab 1", Control: "full-name", Value: &value}}, Elsewhere: "silent"}, Budget: 5 * time.Second,
		Source: "rows/mutation/type.yaml:1"}
}

// call is a type call from 100 to 200, whose receipt edit changes.
func call(edit func(*engine.Receipt)) evidence.Observation {
	r := &engine.Receipt{Operation: engine.OpType, Action: engine.ActionType, Effect: engine.EffectConfirmed, Route: engine.RouteTrustedInput, Trust: engine.TrustTrustedInput,
		Delivery: engine.DeliveryBackground, RequestedCount: 3, DeliveredCount: 3}
	if edit != nil {
		edit(r)
	}
	return evidence.Observation{Seq: 2, MonoNS: 200, Phase: evidence.PhaseBackground, Step: "act", Kind: evidence.KindCall, Call: &evidence.Call{Operation: engine.OpType, Page: "w/tab 1",
		Chars: 3, StartNS: 100, ReplyNS: 150, ClosedNS: 200, Status: engine.StatusOK, Receipt: r}}
}

func input(trusted bool) evidence.Observation {
	return evidence.Observation{Seq: 1, MonoNS: 140, Phase: evidence.PhaseBackground, Kind: evidence.KindJournal, Journal: &evidence.Journal{Page: "w/tab 1", Type: "input",
		Control: "full-name", Value: "Ada", Trusted: trusted, Signed: true, Origin: "browser"}}
}

// rewritten is what a page reports that puts another text in the place of what was typed.
func rewritten() evidence.Observation {
	o := input(true)
	o.Journal.Value = "ADA!"
	return o
}

func theft(reason evidence.Reason, actor evidence.Actor) evidence.Observation {
	return evidence.Observation{Seq: 3, MonoNS: 145, Phase: evidence.PhaseBackground, Kind: evidence.KindDesk, Desk: &evidence.Desk{EventNS: 145, Requirement: "D1", Reason: reason, Actor: actor}}
}

func TestCompareReceipt(t *testing.T) {
	for _, tc := range []struct {
		name, field string
		obs         []evidence.Observation
		edit        func(*engine.Receipt)
		want        Agreement
	}{
		{"effect_seen", "effect", []evidence.Observation{input(true)}, nil, Agrees},
		{"effect_claimed_and_not_seen", "effect", nil, nil, Differ},
		{"effect_hidden", "effect", []evidence.Observation{input(true)}, func(r *engine.Receipt) { r.Effect = engine.EffectUnverifiable }, Differ},
		{"page_rewrote_what_was_typed", "effect", []evidence.Observation{rewritten()}, func(r *engine.Receipt) { r.Effect = engine.EffectUnverifiable }, Agrees},
		{"page_rewrote_and_yet_confirmed", "effect", []evidence.Observation{rewritten()}, nil, Agrees},
		{"trust_seen", "trust", []evidence.Observation{input(true)}, nil, Agrees},
		{"trust_is_a_lie", "trust", []evidence.Observation{input(false)}, nil, Differ},
		{"trust_without_events", "trust", nil, nil, Unmeasured},
		{"operation_of_another_call", "operation", nil, func(r *engine.Receipt) { r.Operation = engine.OpClick }, Differ},
		{"count_of_another_text", "requested_count", nil, func(r *engine.Receipt) { r.RequestedCount = 4 }, Differ},
		{"delivered_all", "delivered_count", []evidence.Observation{input(true)}, nil, Agrees},
		{"confirmed_and_short", "delivered_count", []evidence.Observation{input(true)}, func(r *engine.Receipt) { r.DeliveredCount = 2 }, Differ},
		{"desk_touched", "delivery", []evidence.Observation{theft(evidence.ReasonFocusLeft, evidence.ActorBrowser)}, nil, Differ},
		{"desk_touched_by_the_person", "delivery", []evidence.Observation{theft(evidence.ReasonFocusLeft, evidence.ActorPerson)}, nil, Agrees},
		{"side_effect_hidden", "foregrounded_window", []evidence.Observation{theft(evidence.ReasonFocusLeft, evidence.ActorEngine)}, nil, Differ},
		{"side_effect_invented", "took_clipboard", nil, func(r *engine.Receipt) { r.SideEffects.TookClipboard = true }, Differ},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			o := call(tc.edit)
			check, ok := CompareReceipt(row("a", "a"), append(tc.obs, o), o)
			g.Expect(ok).To(gomega.BeTrue())
			var got Agreement
			for _, f := range check.Fields {
				if f.Name == tc.field {
					got = f.Agreement
				}
			}
			g.Expect(got).To(gomega.Equal(tc.want))
		})
	}
	_, ok := CompareReceipt(row("a", "a"), nil, input(true))
	gomega.NewWithT(t).Expect(ok).To(gomega.BeFalse())
}

func TestClock(t *testing.T) {
	g := gomega.NewWithT(t)
	c := Clock{FPS: 10, Captured: []int64{1e9, 1.1e9, 1.2e9, 1.2e9, 1.4e9}}
	for _, tc := range []struct {
		at   int64
		want float64
		ok   bool
	}{{1e9, 0, true}, {1.05e9, 0.1, true}, {1.2e9, 0.2, true}, {1.3e9, 0.4, true}, {1.4e9, 0.4, true}, {1.5e9, 0.4, false}, {0.95e9, 0, true}, {0.1e9, 0, false}} {
		s, ok := c.At(tc.at)
		g.Expect(s).To(gomega.BeNumerically("~", tc.want, 1e-9), "at %d", tc.at)
		g.Expect(ok).To(gomega.Equal(tc.ok), "at %d", tc.at)
	}
	g.Expect(c.Seconds()).To(gomega.BeNumerically("~", 0.5))
}

// The first divergence is the first in time, not in the order of findings.
func TestFirstDivergence(t *testing.T) {
	g := gomega.NewWithT(t)
	obs := []evidence.Observation{{Seq: 1, MonoNS: 0, Kind: evidence.KindBegin}, call(nil), theft(evidence.ReasonFocusLeft, evidence.ActorBrowser),
		{Seq: 4, MonoNS: 300, Kind: evidence.KindStep, Step: "act", StepInfo: &evidence.StepInfo{EndNS: 120}}, {Seq: 5, MonoNS: 900, Kind: evidence.KindEnd}}
	c := row("a", "a")
	d := FirstDivergence(c, evidence.Verdict{Findings: []evidence.Finding{
		{Requirement: "B23", Reason: evidence.ReasonIdentifierLeaked, Observation: 5, Text: "later"},
		{Requirement: "D1", Reason: evidence.ReasonFocusLeft, Observation: 3, Text: "focus went"}}}, obs)
	g.Expect(d.Reason).To(gomega.Equal(evidence.ReasonFocusLeft))
	g.Expect(d.MonoNS).To(gomega.Equal(int64(145)))
	g.Expect(d.Expected).To(gomega.ContainSubstring("nobody but the person"))
	// What is missing stands at the end of its step.
	d = FirstDivergence(c, evidence.Verdict{Findings: []evidence.Finding{{Requirement: "M5", Reason: evidence.ReasonEffectMissing, Observation: 5, Step: "act", Text: "nothing"}}}, obs)
	g.Expect(d.MonoNS).To(gomega.Equal(int64(120)))
	g.Expect(d.Expected).To(gomega.ContainSubstring("full-name of w/tab 1 holds “Ada” at the end"))
	g.Expect(FirstDivergence(c, evidence.Verdict{Outcome: evidence.Pass}, obs)).To(gomega.BeNil())
	// A number that is no observation of the row is bounded, never followed.
	g.Expect(FirstDivergence(c, evidence.Verdict{Findings: []evidence.Finding{{Observation: 1 << 40}}}, obs).MonoNS).To(gomega.Equal(int64(900)))
}

// Every reason of the closed list has a sentence that says what was expected.
func TestExpected_is_total(t *testing.T) {
	g := gomega.NewWithT(t)
	for _, r := range evidence.Reasons() {
		g.Expect(expected(row("a", "a"), evidence.Finding{Requirement: "M5", Reason: r, Step: "act"})).NotTo(gomega.BeEmpty(), string(r))
	}
}

func TestFind(t *testing.T) {
	plan := matrix.Plan{Rows: []matrix.Contract{row("type-unicode[state=covered]", "type-unicode"), row("type-unicode[state=inactive_tab]", "type-unicode"), row("click-trusted", "click-trusted")}}
	for _, tc := range []struct{ name, want, problem string }{
		{"click-trusted", "click-trusted", ""},
		{"click*", "click-trusted", ""},
		{"type-unicode[state=covered]", "type-unicode[state=covered]", ""},
		{"*covered]", "type-unicode[state=covered]", ""},
		{"type-unicode", "", "meets 2 rows, name one of type-unicode[state=covered], type-unicode[state=inactive_tab]"},
		{"click-trustet", "", "nearest: click-trusted"},
		{"unicode", "", "nearest: type-unicode"},
		{"zzzzzzzzzzzzzz", "", "the plan begins with"},
		{strings.Repeat("*a", 300), "", "too long"},
		{strings.Repeat("*?", 150), "", "is not in the plan"},
	} {
		t.Run(tc.name[:min(20, len(tc.name))], func(t *testing.T) {
			g := gomega.NewWithT(t)
			c, err := find(plan, tc.name)
			if tc.problem != "" {
				g.Expect(err).To(gomega.MatchError(ErrNoRow))
				g.Expect(err.Error()).To(gomega.ContainSubstring(tc.problem))
				return
			}
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(string(c.ID)).To(gomega.Equal(tc.want))
		})
	}
}

// write makes a folder with a plan of one row, whose observations are given as text.
func write(t *testing.T, c matrix.Contract, observations string) string {
	t.Helper()
	g := gomega.NewWithT(t)
	dir := t.TempDir()
	raw, err := canonical.Marshal(matrix.Plan{Format: matrix.PlanFormat, Engine: "chromium", Rows: []matrix.Contract{c}})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(dir, bundle.PlanFile), append(raw, '\n'), 0o600)).To(gomega.Succeed())
	place, err := bundle.PlaceOf(c, 1).Path()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	if observations != "" {
		g.Expect(os.MkdirAll(filepath.Join(dir, place), 0o700)).To(gomega.Succeed())
		g.Expect(os.WriteFile(filepath.Join(dir, place, bundle.ObservationsFile), []byte(observations), 0o600)).To(gomega.Succeed())
	}
	return dir
}

// A cut, a broken or an absent row is explained as such, never as a pass.
func TestRow_not_whole(t *testing.T) {
	for name, tc := range map[string]struct{ observations, note string }{
		"never_begun":  {"", "was never begun"},
		"cut_line":     {"{\"seq\":1", "not whole"},
		"cut_row":      {`{"seq":1,"mono_ns":0,"kind":"begin","phase":"prepare","begin":{"row":"a","attempt":1,"plan_digest":""}}` + "\n", "run was cut"},
		"hostile_kind": {`{"seq":1,"mono_ns":0,"kind":"\u001b[2J","phase":"prepare"}` + "\n", "not whole"},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			e, err := Row(context.Background(), write(t, row("a", "a"), tc.observations), "a")
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(e.Verdict.Outcome).NotTo(gomega.Equal(evidence.Pass))
			var b bytes.Buffer
			g.Expect(e.WriteText(&b)).To(gomega.Succeed())
			g.Expect(b.String()).To(gomega.ContainSubstring(tc.note))
			g.Expect(b.String()).To(gomega.ContainSubstring("acceptance run --engine chromium --rows a"))
			g.Expect(b.String()).NotTo(gomega.ContainSubstring("\x1b"))
		})
	}
	_, err := Row(context.Background(), t.TempDir(), "a")
	gomega.NewWithT(t).Expect(err).To(gomega.HaveOccurred())
}

// A file that is a link or a pipe is not followed.
func TestAttempts_links_are_not_followed(t *testing.T) {
	g := gomega.NewWithT(t)
	c := row("a", "a")
	dir := write(t, c, "{}\n")
	place, err := bundle.PlaceOf(c, 1).Path()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	file := filepath.Join(dir, place, bundle.ObservationsFile)
	g.Expect(os.Remove(file)).To(gomega.Succeed())
	g.Expect(os.Symlink("/etc/passwd", file)).To(gomega.Succeed())
	root, err := os.OpenRoot(dir)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer root.Close()
	attempts, err := Attempts(context.Background(), root, c)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(attempts).To(gomega.HaveLen(1))
	g.Expect(attempts[0].Problem).To(gomega.Equal("not a regular file"))
}

func TestRepeat_is_one_shell_word_each(t *testing.T) {
	g := gomega.NewWithT(t)
	c := row("it's[a=b]; rm -rf", "x")
	g.Expect(Repeat(matrix.Plan{Engine: "chromium"}, c)).To(gomega.Equal(`acceptance run --engine chromium --rows 'it'\''s[a=b]; rm -rf'`))
}

func TestWriteText_escapes_what_a_terminal_obeys(t *testing.T) {
	g := gomega.NewWithT(t)
	e := Explanation{Row: "a\x1b]0;x\x07\u202e\n", Title: "b\rc", Verdict: evidence.Verdict{Outcome: evidence.Fail, Findings: []evidence.Finding{{Text: "\x1b[2J\xff"}}}}
	var b bytes.Buffer
	g.Expect(e.WriteText(&b)).To(gomega.Succeed())
	g.Expect(strings.ContainsAny(b.String(), "\x1b\x07\r\u202e")).To(gomega.BeFalse())
	g.Expect(utf8.ValidString(b.String())).To(gomega.BeTrue())
	g.Expect(b.String()).To(gomega.ContainSubstring(`\u{1b}[2J\u{fffd}`))
}

// What the judge lets pass, an explanation does not call different: over every published vector, a receipt differs in its effect exactly where the
// judge says so, and in a row that passes nothing differs at all.
func TestCompareReceipt_follows_the_judge(t *testing.T) {
	g := gomega.NewWithT(t)
	files, err := filepath.Glob(filepath.Join("..", "testdata", "vectors", "*.json"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	looked, differed := 0, 0
	for _, file := range files {
		var v struct {
			Contract     matrix.Contract
			Observations []evidence.Observation
		}
		raw, err := os.ReadFile(file)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(json.Unmarshal(raw, &v)).To(gomega.Succeed(), file)
		verdict := evidence.Judge(v.Contract, v.Observations)
		for _, o := range v.Observations {
			if o.Call == nil || verdict.Outcome != evidence.Pass && verdict.Outcome != evidence.Fail {
				continue
			}
			check, ok := CompareReceipt(v.Contract, v.Observations, o)
			if !ok {
				continue
			}
			looked++
			charged := slices.ContainsFunc(verdict.Findings, func(f evidence.Finding) bool {
				return f.Requirement == "M17" && f.Observation == o.Seq && (f.Reason == evidence.ReasonReceiptUntrue || f.Reason == evidence.ReasonEffectUnconfirmed)
			})
			for _, f := range check.Fields {
				if f.Agreement != Differ {
					continue
				}
				differed++
				g.Expect(verdict.Outcome).NotTo(gomega.Equal(evidence.Pass), "%s: %s is said to differ in a row that passes", file, f.Name)
				if f.Name == "effect" {
					g.Expect(charged).To(gomega.BeTrue(), "%s: the effect is said to differ, and the judge does not say so", file)
				}
			}
		}
	}
	g.Expect(looked).To(gomega.BeNumerically(">", 20))
	g.Expect(differed).To(gomega.BeNumerically(">", 3))
}
