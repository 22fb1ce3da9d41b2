package matrix_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/matrix/canonical"
)

var chromiumX11 = matrix.PlanRequest{Engine: "chromium", Product: engine.ProductChromium, Environment: "x11"}

func plan(t testing.TB, m *matrix.Matrix, selection ...string) *matrix.Plan {
	t.Helper()
	req := chromiumX11
	req.Select = selection
	p, err := m.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func row(t testing.TB, p *matrix.Plan, id matrix.RowID) matrix.Contract {
	t.Helper()
	at := slices.IndexFunc(p.Rows, func(c matrix.Contract) bool { return c.ID == id })
	if at < 0 {
		t.Fatalf("no row %s", id)
	}
	return p.Rows[at]
}

func TestPlan_is_the_same_bytes_every_time(t *testing.T) {
	g := NewWithT(t)
	a, b := plan(t, load(t)), plan(t, load(t))
	g.Expect(a.Digest).To(MatchRegexp(`^[0-9a-f]{64}$`))
	g.Expect(a.Digest).To(Equal(b.Digest))
	left, err := canonical.Marshal(a)
	g.Expect(err).NotTo(HaveOccurred())
	right, err := canonical.Marshal(b)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(left)).To(Equal(string(right)))
	g.Expect(a.Subset).To(BeFalse())
	g.Expect(a.Left).To(BeEmpty())
	g.Expect(a.Format).To(Equal(matrix.PlanFormat))
	g.Expect(slices.IsSortedFunc(a.Rows, func(x, y matrix.Contract) int { return strings.Compare(string(x.ID), string(y.ID)) })).To(BeTrue())
}

// A plan that went through a file and back keeps its digest; a plan in which anything was changed does not.
func TestPlan_digest_survives_a_file_and_notices_a_change(t *testing.T) {
	g := NewWithT(t)
	p := plan(t, load(t))
	b, err := json.Marshal(p)
	g.Expect(err).NotTo(HaveOccurred())
	var back matrix.Plan
	g.Expect(json.Unmarshal(b, &back)).To(Succeed())
	g.Expect(back.CheckDigest()).To(Succeed())
	for name, change := range map[string]func(*matrix.Plan){
		"row left out":     func(p *matrix.Plan) { p.Rows = p.Rows[1:] },
		"budget":           func(p *matrix.Plan) { p.Rows[0].Budget++ },
		"expectation":      func(p *matrix.Plan) { p.Rows[0].Expect.Elsewhere = "" },
		"subset hidden":    func(p *matrix.Plan) { p.Subset = !p.Subset },
		"declared":         func(p *matrix.Plan) { p.Declared[0].Declared = !p.Declared[0].Declared },
		"core requirement": func(p *matrix.Plan) { p.CoreHold = p.CoreHold[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var other matrix.Plan
			g.Expect(json.Unmarshal(b, &other)).To(Succeed())
			change(&other)
			g.Expect(other.CheckDigest()).NotTo(Succeed())
		})
	}
}

// The plan of one row is kept as a file, so that a change of its form is seen as a change of its form.
func TestPlan_golden_contract(t *testing.T) {
	g := NewWithT(t)
	m, err := matrix.Load(with(t, map[string]string{rowFile: good}), table)
	g.Expect(err).NotTo(HaveOccurred())
	c := row(t, plan(t, m), "type-one")
	digest, err := canonical.Digest(c)
	g.Expect(err).NotTo(HaveOccurred())
	b, err := json.MarshalIndent(c, "", "  ")
	g.Expect(err).NotTo(HaveOccurred())
	got := fmt.Sprintf("%s\n\nsha256 of its canonical JSON: %s\n", b, digest)
	const golden = "testdata/contract.golden"
	if *update {
		g.Expect(os.WriteFile(golden, []byte(got), 0o644)).To(Succeed())
	}
	want, err := os.ReadFile(golden)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal(string(want)))
	g.Expect(c.Budget).To(Equal(5 * time.Second))
}

func TestPlan_twin_of_a_click_that_would_raise(t *testing.T) {
	g := NewWithT(t)
	p := plan(t, load(t))
	for _, state := range []string{"covered", "partly_covered", "visible_tab"} {
		c := row(t, p, matrix.RowID("click-trusted[state="+state+"]"))
		g.Expect(c.Twin).To(BeTrue())
		g.Expect(c.Expect).To(Equal(matrix.Expect{Elsewhere: "silent", Refusal: []matrix.RefusalExpect{{Of: "act", Code: engine.CodeInputTrustUnavailable,
			Trigger: "would_touch_desk", Detail: map[string]string{"requested_route": "trusted_input", "limitation": "would_raise"}}}}))
		g.Expect(c.Steps).To(HaveLen(3))
	}
	c := row(t, p, "click-trusted[state=inactive_tab]")
	g.Expect(c.Twin).To(BeFalse())
	g.Expect(c.Expect.Effect).To(HaveLen(2))
}

func TestPlan_twin_of_an_undeclared_action(t *testing.T) {
	g := NewWithT(t)
	c := row(t, plan(t, load(t)), "undeclared-upload")
	g.Expect(c.Twin).To(BeTrue())
	g.Expect(c.Expect.Refusal).To(Equal([]matrix.RefusalExpect{{Of: "asked", Code: engine.CodeActionUnavailable, Trigger: "undeclared",
		Detail: map[string]string{"action": "upload", "limitation": "undeclared"}}}))
}

// What comes after the refused step is cut, except for the ends of sessions; what was expected of steps that stay, stays.
func TestPlan_twin_keeps_what_was_expected_before(t *testing.T) {
	g := NewWithT(t)
	text := strings.NewReplacer("route: trusted_input, delivery", "route: dom_event, delivery", `text: "Ada", name: act}`, `text: "Ada", route: dom_event, name: act}
      - navigate: {tab: w/tab 1, page: other.html}
      - end_session: {}`, "effect: [{page", "effect: [{page: w/tab 1, loaded: other.html}, {page", "elsewhere: silent", `elsewhere: silent
      bind: [{of: bind-1, quality: exact, tabs: 2}]
      snapshot: [{of: snapshot-2, has: [{role: textbox, name: Full name}]}]`).Replace(good)
	m, err := matrix.Load(with(t, map[string]string{rowFile: text}), table)
	g.Expect(err).NotTo(HaveOccurred())
	c := row(t, plan(t, m), "type-one")
	g.Expect(c.Twin).To(BeTrue())
	var verbs []string
	for _, s := range c.Steps {
		verbs = append(verbs, s.Verb)
	}
	g.Expect(verbs).To(Equal([]string{"bind", "snapshot", "type", "end_session"}))
	g.Expect(c.Expect.Effect).To(BeEmpty())
	g.Expect(c.Expect.Receipt).To(BeEmpty())
	g.Expect(c.Expect.Bind).To(HaveLen(1))
	g.Expect(c.Expect.Snapshot).To(HaveLen(1))
	g.Expect(c.Expect.Elsewhere).To(Equal("silent"))
}

// An engine that declares what a refusal row needs has no such row; one that does not claim a feature has no row of it.
func TestPlan_rows_of_declared_features(t *testing.T) {
	g := NewWithT(t)
	m := load(t)
	full := plan(t, m)
	for _, c := range full.Rows {
		g.Expect(string(c.ID)).NotTo(HavePrefix("type-keystrokes"), "keystrokes is not claimed")
		if c.Requirement == "R3" {
			g.Expect(c.Twin).To(BeTrue())
		}
	}
	engineFile := strings.NewReplacer("{action: [click, type], route: trusted_input, delivery: background, state: inactive_tab, declared: true}",
		"{action: [click, type], route: trusted_input, delivery: background, state: [inactive_tab, covered], declared: true}").Replace(embedded(t, "engines/chromium.yaml"))
	other, err := matrix.Load(with(t, map[string]string{"engines/chromium.yaml": engineFile, "rows/refusal/undeclared.yaml": embedded(t, "rows/refusal/undeclared.yaml")}), table)
	g.Expect(err).NotTo(HaveOccurred())
	var ids []matrix.RowID
	for _, c := range plan(t, other).Rows {
		ids = append(ids, c.ID)
	}
	g.Expect(ids).To(Equal([]matrix.RowID{"undeclared-click[state=partly_covered]", "undeclared-click[state=visible_tab]", "undeclared-upload"}))
}

func embedded(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPlan_selection(t *testing.T) {
	m := load(t)
	for _, c := range []struct {
		name   string
		choose []string
		want   []matrix.RowID
	}{
		{"an id with its axes", []string{"type-unicode[state=covered]"}, []matrix.RowID{"type-unicode[state=covered]"}},
		{"a stem", []string{"type-unicode"}, []matrix.RowID{"type-unicode[state=covered]", "type-unicode[state=inactive_tab]"}},
		{"a requirement", []string{"B3"}, []matrix.RowID{"several-windows"}},
		{"a glob", []string{"film-*"}, []matrix.RowID{"film-plays", "film-says-which"}},
		{"a glob over axes", []string{"type-*[state=partly?covered]"}, []matrix.RowID{"type-insert[state=partly_covered]"}},
		{"two patterns", []string{"B3", "several-*"}, []matrix.RowID{"several-windows"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			p := plan(t, m, c.choose...)
			var got []matrix.RowID
			for _, r := range p.Rows {
				got = append(got, r.ID)
			}
			g.Expect(got).To(Equal(c.want))
			g.Expect(p.Subset).To(BeTrue())
			g.Expect(len(p.Left) + len(p.Rows)).To(Equal(len(plan(t, m).Rows)))
			g.Expect(p.Digest).NotTo(Equal(plan(t, m).Digest))
		})
	}
	t.Run("all", func(t *testing.T) {
		g := NewWithT(t)
		p := plan(t, m, "*")
		g.Expect(p.Subset).To(BeFalse())
		g.Expect(p.Digest).To(Equal(plan(t, m).Digest))
	})
	t.Run("nothing", func(t *testing.T) {
		g := NewWithT(t)
		req := chromiumX11
		req.Select = []string{"type-unicod", "film-plays"}
		_, err := m.Plan(req)
		g.Expect(err).To(MatchError(matrix.ErrNothingSelected))
		g.Expect(err).To(MatchError(ContainSubstring(`"type-unicod"; nearest: type-unicode`)))
	})
}

func TestPlan_unknown_request(t *testing.T) {
	m := load(t)
	for _, c := range []struct {
		req  matrix.PlanRequest
		want string
	}{
		{matrix.PlanRequest{Engine: "chromum", Product: "chromium", Environment: "x11"}, `unknown engine "chromum"; did you mean "chromium"?`},
		{matrix.PlanRequest{Engine: "chromium", Product: "firefox", Environment: "x11"}, `engine chromium claims no product "firefox"`},
		{matrix.PlanRequest{Engine: "chromium", Product: "chromium", Environment: "x12"}, `unknown environment "x12"; did you mean "x11"?`},
		{matrix.PlanRequest{Engine: "chromium", Product: "chromium", Environment: "wayland-sway"}, `engine chromium claims no environment "wayland-sway"`},
		{matrix.PlanRequest{Engine: "chromium", Product: "chromium", Environment: "headless"}, `no row is for chromium in headless`},
	} {
		_, err := m.Plan(c.req)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.want)))
	}
}

// Core requirements without rows are named; a twin is no delivery, and an aspect that core asks for needs a row of its own.
func TestPlan_core_missing(t *testing.T) {
	g := NewWithT(t)
	p := plan(t, load(t))
	rows := map[matrix.RequirementID]bool{}
	for _, row := range p.Rows {
		rows[row.Requirement] = true
	}
	for _, id := range append(slices.Clone(p.CoreDeliver), p.CoreHold...) {
		if !rows[id] {
			g.Expect(p.CoreMissing).To(ContainElement(id), "%s is core and has no row", id)
		}
	}
	for _, id := range []matrix.RequirementID{"S1", "S12", "B1", "M1", "M2", "M3", "M4", "M5", "M15", "G17", "D1", "R3"} {
		g.Expect(p.CoreMissing).NotTo(ContainElement(id))
	}
	g.Expect(p.CoreAny).To(Equal([][]matrix.RequirementID{{"M3", "M4"}}))
	g.Expect(p.CoreDeliver).To(Equal([]matrix.RequirementID{"S1", "S11", "S12", "B1", "B2", "B3", "B6", "B17", "M1", "M2", "G17", "M5", "M15", "B16"}))
	g.Expect(p.CoreHold).To(HaveLen(64))

	only := func(aspect string) *matrix.Plan {
		text := strings.Replace(good, "requirement: M15", "requirement: M5\n    aspect: "+aspect, 1)
		m, err := matrix.Load(with(t, map[string]string{rowFile: text}), table)
		g.Expect(err).NotTo(HaveOccurred())
		return plan(t, m)
	}
	g.Expect(only("insert").CoreMissing).To(ContainElement(matrix.RequirementID("M5")), "replace and clear have no row")
}

// Background runs from a session's first bind to its end; a launch is prepare again.
func TestPlan_background_phase(t *testing.T) {
	g := NewWithT(t)
	p := plan(t, load(t))
	marks := func(id matrix.RowID) string {
		var b strings.Builder
		for _, s := range row(t, p, id).Steps {
			b.WriteString(map[bool]string{true: "#", false: "."}[s.Background])
		}
		return b.String()
	}
	g.Expect(marks("type-insert[state=covered]")).To(Equal("###"))
	g.Expect(marks("profile-isolated-new")).To(Equal(".....##"))
	g.Expect(marks("cut-then-rebind")).To(Equal("#######"))
	g.Expect(marks("session-end-revokes")).To(Equal("....########"))
}

func TestPlan_carries_the_engine_file(t *testing.T) {
	g := NewWithT(t)
	p := plan(t, load(t))
	g.Expect(p.Declared).To(HaveLen(len(engine.AllCapabilities())))
	g.Expect(p.Budgets).To(HaveKeyWithValue("refusal_without_wire", 50*time.Millisecond))
	g.Expect(p.Ceiling).To(Equal("supported"))
	g.Expect(p.EngineFile).To(MatchRegexp(`^[0-9a-f]{64}$`))
	g.Expect(p.MatrixDigest).To(Equal(load(t).Digest()))
	g.Expect(p.Features).To(ContainElement("trusted-click"))
	g.Expect(p.FeatureMissing).To(BeEmpty())
	m, err := matrix.Load(with(t, map[string]string{rowFile: good}), table)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plan(t, m).FeatureMissing).To(Equal([]string{"trusted-click", "dom-click", "partly-covered", "inactive-tab", "reconnect"}))
}

func TestPolicy(t *testing.T) {
	g := NewWithT(t)
	m := load(t)
	release, err := m.Policy("release")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(release.Accept).To(Equal([]string{"supported"}))
	g.Expect(release.Signer.Required).To(BeTrue())
	g.Expect(release.MaxAge).To(Equal(14 * 24 * time.Hour))
	g.Expect(release.Uncovered).To(Equal("refuse"))
	_, err = m.Policy("relase")
	g.Expect(err).To(MatchError(`unknown policy "relase"; did you mean "release"?`))
}
