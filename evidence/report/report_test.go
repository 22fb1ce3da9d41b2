package report

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/bundle"
	"github.com/engine-acceptance/acceptance/evidence/provenance"
	"github.com/engine-acceptance/acceptance/evidence/verify"
	"github.com/engine-acceptance/acceptance/matrix"
)

var update = flag.Bool("update", false, "write the golden pages anew")

// hostile is what pages and engines may send to whoever reads the report: markup, a terminal's escape, text that runs backwards, half of a
// surrogate pair as JSON writes it, and a byte that is no UTF-8.
const hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\x1b[31m\u202egnp.exe\x00javascript:alert(1)"

const t0 = int64(1_000_000_000_000)

func contract(id, stem string) matrix.Contract {
	value := "Ada ☂"
	return matrix.Contract{ID: matrix.RowID(id), Stem: stem, Requirement: "M5", Duty: matrix.DutyEngine, Title: "text typed into a covered window arrives once",
		Product: engine.ProductChromium, Environment: "x11", Launch: matrix.LaunchFresh,
		Needs: &engine.Capability{Action: engine.ActionType, Route: engine.RouteTrustedInput, Delivery: engine.DeliveryBackground, State: engine.StateCovered},
		Desk:  matrix.DeskPlan{Person: matrix.PersonCovers, Windows: []matrix.WindowPlan{{Opened: "launch", Tabs: []matrix.TabPlan{{Page: "form.html", Visible: true}}}}},
		Steps: []matrix.Step{{Name: "bind-1", Verb: "bind", Args: map[string]any{"window": float64(1), "as": "w"}, Background: true},
			{Name: "act", Verb: "type", Args: map[string]any{"into": "s/textbox \"Full name\"", "text": value}, Background: true}},
		Expect: matrix.Expect{Effect: []matrix.EffectExpect{{Page: "w/tab 1", Control: "full-name", Value: &value}}, Elsewhere: "silent",
			Receipt: []matrix.ReceiptExpect{{Of: "act", Effect: []engine.Effect{engine.EffectConfirmed}, Trust: engine.TrustTrustedInput}}},
		Budget: 5 * time.Second, Source: "rows/mutation/type.yaml:3"}
}

// controlKinds are those that every row needs.
var controlKinds = []string{"focus_left", "stacking_changed", "pointer_warped", "pointer_grabbed", "input_leaked", "input_forged", "window_above_person", "clipboard_taken",
	"primary_taken", "keyboard_grabbed", "hotkey_grabbed", "server_grabbed", "cover_changed", "pointer_moved", "urgency_raised", "opacity_changed",
	"bus_action", "accessibility_action", "window_read"}

// observed are the sound observations of a row; edit changes them before they are numbered.
func observed(c matrix.Contract, plan string, edit func([]evidence.Observation) []evidence.Observation) []evidence.Observation {
	at := func(ms int64) int64 { return t0 + ms*1e6 }
	receipt := &engine.Receipt{Operation: engine.OpType, Action: engine.ActionType, Effect: engine.EffectConfirmed, Route: engine.RouteTrustedInput,
		Trust: engine.TrustTrustedInput, Delivery: engine.DeliveryBackground, RequestedCount: 5, DeliveredCount: 5, Generation: "g1"}
	prep, back, clean := evidence.PhasePrepare, evidence.PhaseBackground, evidence.PhaseCleanup
	obs := []evidence.Observation{
		{MonoNS: at(0), Phase: prep, Kind: evidence.KindBegin, Begin: &evidence.Begin{Row: c.ID, Attempt: 1, Plan: plan}},
		{MonoNS: at(200), Phase: prep, Step: "before", Kind: evidence.KindControls, Controls: &evidence.Controls{When: "desk", Committed: []string{"keymap_changed", "master_added", "workspace_changed",
			"output_changed"}, TookNS: 9e8}},
		{MonoNS: at(200), Phase: prep, Step: "before", Kind: evidence.KindControls, Controls: &evidence.Controls{When: "before", Committed: controlKinds, TookNS: 7e6}},
		{MonoNS: at(250), Phase: prep, Step: "arrange", Kind: evidence.KindDeclaration, Declaration: &evidence.Declaration{Total: true}},
		{MonoNS: at(260), Phase: prep, Step: "act", Kind: evidence.KindPrecondition, Precondition: &evidence.Precondition{Name: "state", Want: "covered", Got: "covered 1.000", Met: true}},
		{MonoNS: at(500), Phase: back, Step: "bind-1", Kind: evidence.KindCall, Call: &evidence.Call{Operation: engine.OpState, ArgsDigest: "d", StartNS: at(300), ReplyNS: at(320),
			ClosedNS: at(500), Status: engine.StatusOK, Bind: &evidence.BindResult{Quality: engine.QualityExact, Posture: engine.PostureIsolatedNew, MutationAllowed: true, Generation: "g1", Active: []string{"true"}}}},
		{MonoNS: at(501), Phase: back, Step: "bind-1", Kind: evidence.KindStep, StepInfo: &evidence.StepInfo{Verb: "bind", StartNS: at(299), EndNS: at(501), Outcome: "done"}},
		{MonoNS: at(650), Phase: back, Step: "act", Kind: evidence.KindJournal, Journal: &evidence.Journal{Page: "w/tab 1", File: "form.html", Document: 1, Order: 1, Type: "input",
			Control: "full-name", Value: "Ada ☂", Trusted: true, Signed: true, Origin: "browser"}},
		{MonoNS: at(900), Phase: back, Step: "act", Kind: evidence.KindCall, Call: &evidence.Call{Operation: engine.OpType, ArgsDigest: "d", Page: "w/tab 1", Chars: 5, StartNS: at(600),
			ReplyNS: at(700), ClosedNS: at(900), Status: engine.StatusOK, Receipt: receipt}},
		{MonoNS: at(901), Phase: back, Step: "act", Kind: evidence.KindStep, StepInfo: &evidence.StepInfo{Verb: "type", StartNS: at(599), EndNS: at(901), Outcome: "done"}},
		{MonoNS: at(950), Phase: back, Kind: evidence.KindPerson, Person: &evidence.Person{Injected: 20, Received: 20}},
		{MonoNS: at(1100), Phase: clean, Step: "after", Kind: evidence.KindControls, Controls: &evidence.Controls{When: "after", Committed: controlKinds, TookNS: 7e6}},
	}
	for _, ch := range []string{"core", "input", "record", "selection", "output", "properties", "bus", "accessibility", "sentinel", "profiles", "listeners"} {
		obs = append(obs, evidence.Observation{MonoNS: at(1110), Phase: clean, Kind: evidence.KindGuard, Guard: &evidence.Guard{Channel: ch, Alive: true, Events: 10}})
	}
	obs = append(obs,
		evidence.Observation{MonoNS: at(1200), Phase: clean, Kind: evidence.KindFilm, Film: &evidence.Film{Present: true, Decodes: true, Frames: 18, SideFrames: 18, Monotonic: true,
			CodesTried: 3, CodesRead: 3, MasksSolid: true, SpanNS: 1.2e9, CoversRow: true}},
		evidence.Observation{MonoNS: at(1210), Phase: clean, Kind: evidence.KindScan, Scan: &evidence.Scan{What: "engine_raw", Files: 2, Bytes: 100, ControlFound: true}},
		evidence.Observation{MonoNS: at(1212), Phase: clean, Kind: evidence.KindSystem, System: &evidence.System{Fact: evidence.FactPersonProfiles, Holds: true}},
		evidence.Observation{MonoNS: at(1213), Phase: clean, Kind: evidence.KindSystem, System: &evidence.System{Fact: evidence.FactLoopbackOnly, Holds: true}},
		evidence.Observation{MonoNS: at(1213), Phase: clean, Kind: evidence.KindSystem, System: &evidence.System{Fact: evidence.FactEngineLives, Holds: true}},
		evidence.Observation{MonoNS: at(1215), Phase: clean, Kind: evidence.KindScan, Scan: &evidence.Scan{What: "engine_files", Files: 1, Bytes: 10, ControlFound: true}},
		evidence.Observation{MonoNS: at(1220), Phase: clean, Kind: evidence.KindScan, Scan: &evidence.Scan{What: "bundle", Files: 9, Bytes: 1000, ControlFound: true}},
		evidence.Observation{MonoNS: at(1230), Phase: clean, Kind: evidence.KindHeartbeat, Heartbeat: &evidence.Heartbeat{MaxGapNS: 1e6}})
	if edit != nil {
		obs = edit(obs)
	}
	obs = append(obs, evidence.Observation{MonoNS: at(1240), Phase: clean, Kind: evidence.KindEnd, End: &evidence.End{Observations: len(obs) + 1}})
	for i := range obs {
		obs[i].Seq = i + 1
	}
	return obs
}

// stolen adds a change of the desk that the browser made while a call was in flight.
func stolen(obs []evidence.Observation) []evidence.Observation {
	theft := evidence.Observation{MonoNS: t0 + 660e6, Phase: evidence.PhaseBackground, Step: "act", Kind: evidence.KindDesk, Desk: &evidence.Desk{EventNS: t0 + 660e6, Requirement: "D1",
		Reason: evidence.ReasonFocusLeft, Actor: evidence.ActorBrowser, Request: "SetInputFocus", Channel: "record", Window: "person", InFlight: true}}
	return append(append(append([]evidence.Observation{}, obs[:8]...), theft), obs[8:]...)
}

// lies puts hostile text wherever an engine, a page or a desk can write.
func lies(obs []evidence.Observation) []evidence.Observation {
	obs = stolen(obs)
	for i := range obs {
		switch o := &obs[i]; {
		case o.Journal != nil:
			o.Journal.Control, o.Journal.Value, o.Journal.Page, o.Journal.Type = hostile, hostile, hostile, hostile
		case o.Desk != nil:
			o.Desk.Window, o.Desk.Request, o.Desk.Detail = hostile, hostile, hostile
		case o.Call != nil && o.Call.Receipt != nil:
			o.Call.Receipt.Generation, o.Call.Receipt.Effect, o.Call.Violations = hostile, hostile, []string{hostile}
		case o.Call != nil:
			o.Call.Carrier = hostile
		case o.Guard != nil:
			o.Guard.Reason = hostile
		case o.StepInfo != nil:
			o.StepInfo.Note = hostile
		}
	}
	return obs
}

// pack writes a small finished bundle with its report and returns its folder and the report's input.
func pack(t *testing.T) (string, Input) {
	t.Helper()
	g := gomega.NewWithT(t)
	ctx := context.Background()
	good, bad, evil, cut := contract("type-unicode[state=covered]", "type-unicode"), contract("type-steals", "type-steals"), contract("evil", "evil"), contract("bound", "bound")
	evil.Title, evil.Steps[1].Args["text"] = hostile, hostile
	evil.Expect.Effect[0].Control = hostile
	cut.Requirement, cut.Title, cut.Twin = "B1", "one window is bound exactly", true
	plan := matrix.Plan{Format: matrix.PlanFormat, Engine: "chromium", EngineFile: strings.Repeat("e", 64), MatrixDigest: strings.Repeat("a", 64), Product: engine.ProductChromium,
		Environment: "x11", Rows: []matrix.Contract{good, bad, evil, cut}, CoreDeliver: []matrix.RequirementID{"B1", "M5"}, CoreHold: []matrix.RequirementID{"D1", "S9"},
		CoreAny: [][]matrix.RequirementID{{"M3", "M4"}}, CoreMissing: []matrix.RequirementID{"S9", "M3", "M4"}, Ceiling: "supported", Features: []string{"trusted-click"},
		Declared: []engine.Claim{{Capability: *good.Needs, Declared: true}, {Capability: engine.Capability{Action: engine.ActionClick, Route: engine.RouteTrustedInput,
			Delivery: engine.DeliveryBackground, State: engine.StateCovered}, Limitation: "would_raise"}}, Limits: []string{hostile},
		Budgets: map[string]time.Duration{"bind": 5 * time.Second}, Requirements: []matrix.PlanRequirement{
			{ID: "M5", Claim: matrix.ClaimMutation, Duty: matrix.DutyEngine, Must: "text arrives once, code point for code point"},
			{ID: "S9", Claim: matrix.ClaimSetup, Duty: matrix.DutyEngine, Must: hostile},
			{ID: "V1", Claim: matrix.ClaimEvidence, Duty: matrix.DutyHarness, Must: "one film a row"}}}
	var err error
	plan.Digest, err = bundle.PlanDigest(plan)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	dir := filepath.Join(t.TempDir(), "bundle")
	clock := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	w, err := bundle.Create(ctx, dir, plan, bundle.WithClock(func() time.Time { clock = clock.Add(700 * time.Millisecond); return clock }))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	prov := provenance.Provenance{Format: provenance.Format, Problems: []string{}, Harness: provenance.Binary{SHA256: strings.Repeat("b", 64), Modules: map[string]string{}},
		Repository: provenance.Repository{State: provenance.StateClean, Commit: strings.Repeat("c", 40), Parents: []string{}, Dirt: []provenance.Dirt{}},
		Engine:     provenance.Engine{Name: "chromium", Artifact: "harness", SHA256: strings.Repeat("b", 64), Argv: []string{"engine"}, Basis: provenance.BasisNone},
		Browsers:   []provenance.Browser{{Product: engine.ProductChromium, Executable: "chromium", Kind: "binary", SHA256: strings.Repeat("d", 64), Version: "Chromium 156", Argv: []string{}}},
		System: provenance.System{OS: "linux", Release: "Debian 12", Arch: "amd64", Sandbox: "on", Separate: true, Environment: []string{},
			Display: map[string]string{"server": "X 21", "window_manager": "Openbox 3.6.1", "screen": "1280x800x24"}}}
	g.Expect(w.Provenance(prov)).To(gomega.Succeed())
	for _, row := range []struct {
		c    matrix.Contract
		edit func([]evidence.Observation) []evidence.Observation
	}{{good, nil}, {bad, stolen}, {evil, lies}, {cut, nil}} {
		r, err := w.Row(row.c, 1)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		obs := observed(row.c, plan.Digest, row.edit)
		for _, o := range obs {
			g.Expect(r.Observe(o)).To(gomega.Succeed())
		}
		g.Expect(r.Add("desktop.jsonl", strings.NewReader(desktopLog()))).To(gomega.Succeed())
		if row.c.ID != cut.ID {
			g.Expect(r.Add("film.mp4", strings.NewReader("film"))).To(gomega.Succeed())
			g.Expect(r.Add("frames.jsonl", strings.NewReader(frames()))).To(gomega.Succeed())
			g.Expect(r.Add("after.png", strings.NewReader("png"))).To(gomega.Succeed())
		}
		g.Expect(r.Finish(evidence.Judge(row.c, obs))).To(gomega.Succeed())
	}
	in := Input{Plan: plan, Provenance: prov, Verdicts: w.Verdicts(), Signer: bundle.Unsigned}
	in.Ruling = evidence.Decide(plan, in.Verdicts, evidence.Standing{Verified: true, Clean: true, Limits: []string{hostile}})
	g.Expect(Write(ctx, w, in)).To(gomega.Succeed())
	_, err = w.Finish(ctx, bundle.Signing{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	return dir, in
}

// desktopLog is a desk where the person types, the browser takes the focus, a stranger with a hostile name asks for the pointer, and a line has no actor.
func desktopLog() string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, `{"seq":%d,"mono_ns":%d,"channel":"record","kind":"device_key","role":"none","pid":11,"exe":"acceptance","release":%t,"actor":"person"}`+"\n", i, t0+300e6+int64(i)*20e6, i%2 == 1)
	}
	fmt.Fprintf(&b, `{"seq":41,"mono_ns":%d,"kind":"req_focus","pid":12,"exe":"chromium","request":"SetInputFocus","actor":"browser"}`+"\n", t0+655e6)
	fmt.Fprintf(&b, `{"seq":42,"mono_ns":%d,"kind":"req_\ud800</title>\u001b","pid":13,"exe":"openbox","actor":"window_manager"}`+"\n", t0+670e6)
	evil, _ := json.Marshal(hostile)
	fmt.Fprintf(&b, `{"seq":43,"mono_ns":%d,"kind":"req_warp","pid":14,"exe":%s,"request":%s,"actor":"stranger"}`+"\n", t0+680e6, evil, evil)
	fmt.Fprintf(&b, `{"seq":44,"mono_ns":%d,"kind":"req_warp","pid":15,"exe":"x","actor":%s}`+"\n", t0+690e6, evil)
	fmt.Fprintf(&b, `{"seq":45,"mono_ns":%d,"kind":"req_warp","pid":16,"exe":"nobody"}`+"\n", t0+700e6)
	b.WriteString("not json\n")
	return b.String()
}

func frames() string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"format":"acceptance-frames/1","fps":15,"t0_mono_ns":%d}`+"\n", t0)
	for i := range 18 {
		fmt.Fprintf(&b, `{"n":%d,"cap_mono_ns":%d}`+"\n", i, t0+int64(i)*1e9/15)
	}
	return b.String()
}

// files reads every file of the report by its path inside the bundle.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(filepath.Join(dir, bundle.ReportDir), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		all[filepath.ToSlash(rel)] = string(b)
		return err
	})
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
	return all
}

// The report is a part of the bundle: it is in the manifest, and verify accepts it.
func TestWrite_bundle_with_report_verifies(t *testing.T) {
	g := gomega.NewWithT(t)
	dir, in := pack(t)
	r, err := verify.Verify(context.Background(), dir, verify.Options{Judge: evidence.Judge})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(r.Problems).To(gomega.BeEmpty())
	g.Expect(r.Status).To(gomega.Equal(verify.OK))
	raw, err := os.ReadFile(filepath.Join(dir, bundle.ManifestFile))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	for name := range files(t, dir) {
		g.Expect(string(raw)).To(gomega.ContainSubstring(`"` + name + `"`))
		_, allowed := bundle.Size(name)
		g.Expect(allowed).To(gomega.BeTrue(), name)
	}
	g.Expect(in.Verdicts[0].Outcome).To(gomega.Equal(evidence.Pass))
	g.Expect(in.Verdicts[1].Outcome).To(gomega.Equal(evidence.Fail))
}

// A reader can make the report again from the finished bundle: same bytes.
func TestRender_again_gives_the_same_bytes(t *testing.T) {
	g := gomega.NewWithT(t)
	dir, in := pack(t)
	was := files(t, dir)
	again := map[string]string{}
	g.Expect(Render(context.Background(), dir, in, func(name string, b []byte) error { again[name] = string(b); return nil })).To(gomega.Succeed())
	g.Expect(again).To(gomega.HaveLen(len(was)))
	for name, content := range was {
		g.Expect(again[name] == content).To(gomega.BeTrue(), name)
	}
}

// A page that was changed, taken away or added is named, although the manifest may agree with it.
func TestDifferences(t *testing.T) {
	g := gomega.NewWithT(t)
	ctx := context.Background()
	dir, in := pack(t)
	g.Expect(Differences(ctx, dir, in)).To(gomega.BeEmpty())
	index := filepath.Join(dir, filepath.FromSlash(IndexFile))
	raw, err := os.ReadFile(index)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(os.WriteFile(index, bytes.Replace(raw, []byte("✗ not supported"), []byte("✓ supported    "), 1), 0o600)).To(gomega.Succeed())
	g.Expect(os.Remove(filepath.Join(dir, filepath.FromSlash(StyleFile)))).To(gomega.Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, bundle.ReportDir, "extra.html"), nil, 0o600)).To(gomega.Succeed())
	g.Expect(Differences(ctx, dir, in)).To(gomega.Equal([]string{"report/extra.html", IndexFile, StyleFile}))
}

// Golden pages leave out what follows the types of other packages alone: the JSON of payloads, and the sizes of files.
var (
	payload = regexp.MustCompile(`(<td class="mono">)\{[^<]*</td>`)
	sizes   = regexp.MustCompile(`(<span class="soft">)[0-9.]+ k?B</span>`)
)

func TestWrite_golden_pages(t *testing.T) {
	g := gomega.NewWithT(t)
	dir, _ := pack(t)
	for name, content := range files(t, dir) {
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		golden := filepath.Join("testdata", path.Base(name)+".golden")
		content = payload.ReplaceAllString(sizes.ReplaceAllString(content, `$1</span>`), `$1</td>`)
		if *update {
			g.Expect(os.MkdirAll("testdata", 0o755)).To(gomega.Succeed())
			g.Expect(os.WriteFile(golden, []byte(content), 0o644)).To(gomega.Succeed())
		}
		want, err := os.ReadFile(golden)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		if !bytes.Equal(want, []byte(content)) {
			t.Errorf("%s differs from %s at byte %d; look at it, then run with -update", name, golden, difference(string(want), content))
		}
	}
}

func difference(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// Whatever engines, pages and rows are called: no markup of theirs, no control character, no text direction mark, no broken UTF-8 reaches a page.
func TestWrite_hostile_text_is_escaped(t *testing.T) {
	g := gomega.NewWithT(t)
	dir, _ := pack(t)
	for name, content := range files(t, dir) {
		g.Expect(utf8.ValidString(content)).To(gomega.BeTrue(), name)
		g.Expect(content).NotTo(gomega.ContainSubstring("<script>alert"), name)
		g.Expect(content).NotTo(gomega.ContainSubstring("<img src=x"), name)
		g.Expect(content).NotTo(gomega.ContainSubstring("</title>\x1b"), name)
		g.Expect(regexp.MustCompile(`(href|src)="\s*javascript:`).MatchString(content)).To(gomega.BeFalse(), name)
		for _, r := range content {
			if r < 0x20 && r != '\n' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r == 0xfffd {
				t.Fatalf("%s holds %U", name, r)
			}
		}
		if strings.HasSuffix(name, ".html") {
			g.Expect(strings.Count(content, "<script")).To(gomega.Equal(1), name)
		}
	}
	evil := files(t, dir)["report/rows/chromium.x11.evil.html"]
	g.Expect(evil).To(gomega.ContainSubstring(`&lt;script&gt;alert(1)`))
	g.Expect(evil).To(gomega.ContainSubstring(`\u{1b}`))
	g.Expect(evil).To(gomega.ContainSubstring(`\u{202e}`))
	g.Expect(evil).To(gomega.ContainSubstring(`\u{fffd}`))
}

// No page loads or links anything beyond the bundle, and none names a folder of a machine.
func TestWrite_nothing_external(t *testing.T) {
	g := gomega.NewWithT(t)
	dir, _ := pack(t)
	external := regexp.MustCompile(`(?i)\b(?:https?|wss?|ftp):|(?:href|src|action|url\()\s*=?\s*["']?\s*(?://|/|file:|data:)|@import|<(?:iframe|object|embed|link rel="(?:preconnect|dns))`)
	for name, content := range files(t, dir) {
		g.Expect(external.FindString(content)).To(gomega.BeEmpty(), name)
		g.Expect(content).NotTo(gomega.ContainSubstring(filepath.Dir(dir)), name)
	}
}

// Every link leads to a file of the bundle, or to a place on the page that exists.
func TestWrite_links_resolve_inside_the_bundle(t *testing.T) {
	g := gomega.NewWithT(t)
	dir, _ := pack(t)
	link := regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	checked := 0
	for name, content := range files(t, dir) {
		for _, m := range link.FindAllStringSubmatch(content, -1) {
			u, err := url.Parse(strings.ReplaceAll(m[1], "&amp;", "&"))
			g.Expect(err).NotTo(gomega.HaveOccurred())
			if u.Path == "" {
				g.Expect(content).To(gomega.ContainSubstring(`id="`+u.Fragment+`"`), "%s: %s", name, m[1])
				checked++
				continue
			}
			target := path.Join(path.Dir(name), u.Path)
			g.Expect(strings.HasPrefix(target, "..")).To(gomega.BeFalse(), "%s: %s", name, m[1])
			_, err = os.Stat(filepath.Join(dir, filepath.FromSlash(target)))
			g.Expect(err).NotTo(gomega.HaveOccurred(), "%s: %s", name, m[1])
			checked++
		}
	}
	g.Expect(checked).To(gomega.BeNumerically(">", 60))
}

// Without JavaScript a page says everything: nothing is hidden by default but the filter and the film's play head, and the script writes no text
// that the page does not hold.
func TestWrite_readable_without_script(t *testing.T) {
	g := gomega.NewWithT(t)
	dir, in := pack(t)
	all := files(t, dir)
	page := regexp.MustCompile(`(?s)<script>.*</script>`).ReplaceAllString(all[IndexFile], "")
	for _, c := range in.Plan.Rows {
		g.Expect(page).To(gomega.ContainSubstring(path.Base(PageOf(c))))
	}
	g.Expect(page).To(gomega.ContainSubstring("not supported"))
	g.Expect(page).To(gomega.ContainSubstring("type-steals: D1 focus_left"))
	g.Expect(page).To(gomega.ContainSubstring("3 core requirements have no row: S9, M3, M4"))
	g.Expect(page).NotTo(gomega.MatchRegexp(`class="[^"]*\bhide\b`))
	style := all[StyleFile]
	g.Expect(strings.Count(style, ".filter{display:none")).To(gomega.Equal(1))
	script, err := assets.ReadFile("assets/report.js")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	for _, word := range []string{"innerHTML", "outerHTML", "insertAdjacent", "document.write", "createElement", "fetch(", "eval", "XMLHttpRequest", "import("} {
		g.Expect(string(script)).NotTo(gomega.ContainSubstring(word))
	}
	// What it writes is text that stands in the page, as text.
	g.Expect(regexp.MustCompile(`\.textContent = [^;]*`).FindAllString(string(script), -1)).To(gomega.Equal([]string{`.textContent = hot ? hot.a.getAttribute("aria-label") : quiet`}))
	g.Expect(regexp.MustCompile(`(?i)<[^>]* on[a-z]+=`).FindString(page)).To(gomega.BeEmpty())
}

// One line a requirement: its sentence, what core asks, the verdict of its rows and the way to them; also for what has no row, and for what the
// plan names no sentence of.
func TestWrite_index_lists_every_requirement(t *testing.T) {
	g := gomega.NewWithT(t)
	dir, in := pack(t)
	page := files(t, dir)[IndexFile]
	line := func(id string) string {
		_, after, found := strings.Cut(page, `<tr id="req-`+id+`">`)
		g.Expect(found).To(gomega.BeTrue(), id)
		line, _, _ := strings.Cut(after, "</tr>")
		return line
	}
	m5 := line("M5")
	g.Expect(m5).To(gomega.ContainSubstring("text arrives once, code point for code point"))
	g.Expect(m5).To(gomega.ContainSubstring("core: deliver"))
	g.Expect(m5).To(gomega.ContainSubstring("2 of 3 rows fail"))
	g.Expect(m5).To(gomega.ContainSubstring("<details open>"))
	for _, c := range in.Plan.Rows[:3] {
		g.Expect(m5).To(gomega.ContainSubstring(path.Base(PageOf(c))))
	}
	g.Expect(line("S9")).To(gomega.ContainSubstring("no row proves it"))
	g.Expect(line("S9")).To(gomega.ContainSubstring("core: hold"))
	g.Expect(line("D1")).To(gomega.ContainSubstring("left out of this run"))
	g.Expect(line("V1")).To(gomega.ContainSubstring("the harness answers"))
	g.Expect(line("V1")).To(gomega.ContainSubstring("no row here"))
	g.Expect(line("B1")).To(gomega.ContainSubstring("<summary>1</summary>"))
	for _, id := range []string{"M3", "M4"} {
		g.Expect(line(id)).To(gomega.ContainSubstring("core: one of"))
	}
}

// The desk on one line of time: who did what stands in the lane of whoever did it, with process and time; calls have begin, reply and end; the
// controls are named; what is charged stands out and is charged by the judge, not by the drawing.
func TestWrite_timeline_tells_who_did_what(t *testing.T) {
	g := gomega.NewWithT(t)
	dir, in := pack(t)
	page := files(t, dir)[PageOf(in.Plan.Rows[1])]
	lane := func(name string) string {
		_, after, found := strings.Cut(page, `aria-label="`+name+`">`)
		g.Expect(found).To(gomega.BeTrue(), name)
		lane, _, _ := strings.Cut(after, "</g>")
		return lane
	}
	g.Expect(strings.Count(lane("person"), "<a ")).To(gomega.Equal(40))
	g.Expect(lane("person")).To(gomega.ContainSubstring("0.30 s, person, acceptance (pid 11): 1 key down"))
	g.Expect(lane("browser")).To(gomega.ContainSubstring("chromium (pid 12): 1 SetInputFocus"))
	g.Expect(lane("window manager")).To(gomega.ContainSubstring("openbox (pid 13)"))
	g.Expect(lane("others")).To(gomega.ContainSubstring("(pid 14)"))
	g.Expect(page).NotTo(gomega.ContainSubstring("pid 15"), "an actor that is none of the list")
	g.Expect(page).NotTo(gomega.ContainSubstring("pid 16"))
	g.Expect(page).To(gomega.ContainSubstring("say not whose they are"))
	g.Expect(page).NotTo(gomega.ContainSubstring(`aria-label="engine">`), "its own process asked for nothing")
	g.Expect(lane("engine call")).To(gomega.ContainSubstring("reply after 100.0 ms, window of time closed after 300.0 ms"))
	g.Expect(lane("engine call")).To(gomega.ContainSubstring(`<rect class="call open"`))
	g.Expect(strings.Count(lane("controls"), "<a ")).To(gomega.BeNumerically(">=", 2))
	g.Expect(lane("controls")).To(gomega.ContainSubstring(" kinds committed in 7.0 ms, each was seen (focus_left, "))
	g.Expect(lane("desk changed")).To(gomega.ContainSubstring(`<line class="charged"`))
	g.Expect(lane("findings")).To(gomega.ContainSubstring("finding D1 focus_left"))
	good := files(t, dir)[PageOf(in.Plan.Rows[0])]
	g.Expect(good).NotTo(gomega.ContainSubstring(`<line class="charged"`))
	g.Expect(good).To(gomega.ContainSubstring("no change of the desk charged"))
}

// Calls that overlap stand in rows of their own, in any number.
func TestTimeline_overlapping_calls(t *testing.T) {
	g := gomega.NewWithT(t)
	l := &timeline{cited: map[int]bool{}}
	for i := range laneTable {
		l.Lanes = append(l.Lanes, lane{index: i})
	}
	s := scale{from: 0, to: 1000}
	for i := range int64(maxCallRows + 3) {
		l.call(s, evidence.Observation{Call: &evidence.Call{StartNS: 10 * i, ReplyNS: 500, ClosedNS: 600}})
	}
	l.call(s, evidence.Observation{Call: &evidence.Call{StartNS: 700, ReplyNS: 710}}) // its window of time was never closed
	rows := map[int]int{}
	for _, one := range l.Lanes[laneCall].Spans {
		rows[one.Y/callHeight]++
	}
	g.Expect(rows).To(gomega.HaveLen(maxCallRows))
	g.Expect(rows[0]).To(gomega.Equal(2), "the last call stands in the first row again")
	last := l.Lanes[laneCall].Spans[maxCallRows+3]
	g.Expect(last.W).To(gomega.BeNumerically("~", 1, 0.01))
	l.stack()
	g.Expect(l.Lanes[laneCall].H).To(gomega.Equal(maxCallRows*callHeight + laneHeight - callHeight))
	for i, one := range l.Lanes[1:] {
		g.Expect(one.Y).To(gomega.Equal(l.Lanes[i].Y + l.Lanes[i].H))
	}
}

// What a reader looks for on a row's page, in its own words.
func TestWrite_row_page_tells_the_divergence(t *testing.T) {
	g := gomega.NewWithT(t)
	dir, in := pack(t)
	page := files(t, dir)[PageOf(in.Plan.Rows[1])]
	g.Expect(page).To(gomega.ContainSubstring("First divergence"))
	g.Expect(page).To(gomega.ContainSubstring(`film.mp4#t=0.67"`)) // 660 ms: frame 10 of 15 a second
	g.Expect(page).To(gomega.ContainSubstring("focus_left by browser"))
	g.Expect(page).To(gomega.ContainSubstring("1 change of the desk charged"))
	g.Expect(page).To(gomega.ContainSubstring("delivery"))
	g.Expect(page).To(gomega.ContainSubstring("✗ differs"))
	g.Expect(page).To(gomega.ContainSubstring("20 made, 20 events received"))
}

func TestPageOf(t *testing.T) {
	g := gomega.NewWithT(t)
	seen := map[string]bool{}
	for _, id := range []string{"a", "A", "a_b", "a-b", "a[b=c]", "a%5bb", "ä", ".a", strings.Repeat("[", 199), strings.Repeat("[", 198) + "]"} {
		name := PageOf(matrix.Contract{ID: matrix.RowID(id), Product: "chromium", Environment: "x11"})
		_, allowed := bundle.Size(name)
		g.Expect(allowed).To(gomega.BeTrue(), name)
		g.Expect(seen[strings.ToLower(name)]).To(gomega.BeFalse(), name)
		seen[strings.ToLower(name)] = true
	}
}

// Lists of a hostile or a long row are cut, with a count, and the page stays small.
func TestRender_long_lists_are_cut(t *testing.T) {
	g := gomega.NewWithT(t)
	dir, in := pack(t)
	place, err := bundle.PlaceOf(in.Plan.Rows[0], 1).Path()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	var b bytes.Buffer
	obs := observed(in.Plan.Rows[0], in.Plan.Digest, func(obs []evidence.Observation) []evidence.Observation {
		for range 5000 {
			o := obs[7]
			j := *o.Journal
			j.Value = strings.Repeat("x", 2000)
			o.Journal = &j
			obs = append(obs, o)
		}
		return obs
	})
	for _, o := range obs {
		raw, err := json.Marshal(o)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		b.Write(append(raw, '\n'))
	}
	g.Expect(os.WriteFile(filepath.Join(dir, filepath.FromSlash(place), bundle.ObservationsFile), b.Bytes(), 0o600)).To(gomega.Succeed())
	var page string
	g.Expect(Render(context.Background(), dir, in, func(name string, content []byte) error {
		if name == PageOf(in.Plan.Rows[0]) {
			page = string(content)
		}
		return nil
	})).To(gomega.Succeed())
	g.Expect(page).To(gomega.ContainSubstring("and 4701 more events"))
	g.Expect(len(page)).To(gomega.BeNumerically("<", 3<<20))
}

// A row that was never begun, one whose files are broken, and a missing view make no error: the page says so.
func TestRender_broken_rows(t *testing.T) {
	g := gomega.NewWithT(t)
	dir, in := pack(t)
	place := func(i int) string {
		p, err := bundle.PlaceOf(in.Plan.Rows[i], 1).Path()
		g.Expect(err).NotTo(gomega.HaveOccurred())
		return filepath.Join(dir, filepath.FromSlash(p))
	}
	g.Expect(os.RemoveAll(filepath.Dir(place(0)))).To(gomega.Succeed())
	g.Expect(os.WriteFile(filepath.Join(place(1), bundle.ObservationsFile), []byte("{\"seq\":"), 0o600)).To(gomega.Succeed())
	g.Expect(os.Remove(filepath.Join(place(2), "desktop.jsonl"))).To(gomega.Succeed())
	g.Expect(os.Symlink("/etc/passwd", filepath.Join(place(2), "desktop.jsonl"))).To(gomega.Succeed())
	all := map[string]string{}
	g.Expect(Render(context.Background(), dir, in, func(name string, b []byte) error { all[name] = string(b); return nil })).To(gomega.Succeed())
	g.Expect(all[PageOf(in.Plan.Rows[0])]).To(gomega.ContainSubstring("The row was never begun"))
	g.Expect(all[PageOf(in.Plan.Rows[1])]).To(gomega.ContainSubstring("not whole"))
	g.Expect(all[PageOf(in.Plan.Rows[2])]).To(gomega.ContainSubstring("could not be read"))
}
