package matrix_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/matrix/strict"
)

// good is a row file without a fault; the tests below put one fault at a time into it.
const good = `format: acceptance.rows/v1
rows:
  - id: type-one
    requirement: M15
    title: text arrives once
    needs: {action: type, route: trusted_input, delivery: background, state: covered}
    launch: shared
    desk: {windows: [{tabs: [{page: form.html, visible: true}, {page: other.html}]}], person: covers}
    steps:
      - bind: {window: 1, as: w}
      - snapshot: {tab: w/tab 1, as: s}
      - type: {into: 's/textbox "Full name"', text: "Ada", name: act}
    expect:
      effect: [{page: w/tab 1, control: full-name, value: "Ada"}]
      elsewhere: silent
      receipt: [{of: act, effect: [confirmed, unverifiable], route: trusted_input, trust: trusted_input}]
    budget: 5s
`

// with returns the embedded matrix without its rows, with other files laid over it.
func with(t testing.TB, files map[string]string) fs.FS {
	t.Helper()
	fsys := fstest.MapFS{}
	err := fs.WalkDir(matrix.Embedded(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(path, "rows/") {
			return err
		}
		b, err := fs.ReadFile(matrix.Embedded(), path)
		fsys[path] = &fstest.MapFile{Data: b}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range files {
		fsys[path] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

const rowFile = "rows/mutation/type.yaml"

func problems(t testing.TB, files map[string]string) string {
	t.Helper()
	_, err := matrix.Load(with(t, files), table)
	if err == nil {
		return ""
	}
	var e *strict.Error
	if !errors.As(err, &e) {
		t.Fatalf("not a list of problems: %v", err)
	}
	return err.Error()
}

func TestLoad_accepts_the_row_that_the_faults_are_put_into(t *testing.T) {
	NewWithT(t).Expect(problems(t, map[string]string{rowFile: good})).To(BeEmpty())
}

// Every kind of bad input that YAML lets through, or that a hand lets slip: one fault, the place and the words that it is reported with.
func TestLoad_bad_row_file(t *testing.T) {
	for _, c := range []struct {
		name, from, to string
		want           string
	}{
		// YAML itself.
		{"bool for text", `text: "Ada"`, "text: no", `type.yaml:12: rows[0].steps[2].type.text: no reads as a boolean, want text; write it as "no"`},
		{"y for text", "title: text arrives once", "title: y", `type.yaml:5: rows[0].title: y reads as a boolean, want text; write it as "y"`},
		{"version for text", `text: "Ada"`, "text: 1.10", `type.yaml:12: rows[0].steps[2].type.text: 1.10 reads as a number, want text; write it as "1.10"`},
		{"octal for text", `text: "Ada"`, "text: 0755", `type.yaml:12: rows[0].steps[2].type.text: 0755 reads as a number, want text; write it as "0755"`},
		{"clock for text", `text: "Ada"`, "text: 12:30", `type.yaml:12: rows[0].steps[2].type.text: 12:30 reads as a number, want text; write it as "12:30"`},
		{"date for text", `text: "Ada"`, "text: 2026-11-30", `type.yaml:12: rows[0].steps[2].type.text: 2026-11-30 reads as a date, want text; write it as "2026-11-30"`},
		{"null for text", "title: text arrives once", "title: ~", `type.yaml:5: rows[0].title: got nothing, want text; write "" for empty text`},
		{"nothing for text", "title: text arrives once", "title:", `type.yaml:5: rows[0].title: got nothing, want text; write "" for empty text`},
		{"key y", "    budget: 5s", "    budget: 5s\n    y: 1", `type.yaml:18: rows[0]: unknown field "y"`},
		{"key that is true", "    budget: 5s", "    budget: 5s\n    true: 1", `type.yaml:18: rows[0]: the key true reads as a boolean; quote it or use a word`},
		{"key that is a number", "    budget: 5s", "    budget: 5s\n    7: 1", `type.yaml:18: rows[0]: the key 7 reads as a number; quote it or use a word`},
		{"key that is a list", "    budget: 5s", "    budget: 5s\n    ? [a, b]\n    : 1", `type.yaml:18: rows[0]: a key must be a word`},
		{"axis that is a boolean", "    launch: shared", "    axes: {y: [a, b]}\n    launch: shared", `type.yaml:7: rows[0].axes: the key y reads as a boolean; quote it`},
		{"key twice", "    budget: 5s", "    budget: 5s\n    budget: 90s", `type.yaml:18: rows[0]: the key "budget" occurs twice, first on line 17`},
		{"key twice, and another fault", "    budget: 5s", "    budget: 5s\n    budget: 90s\n    lanch: shared", `type.yaml:19: rows[0]: unknown field "lanch"; did you mean "launch"?`},
		{"key twice deep inside", "{window: 1, as: w}", "{window: 1, as: w, window: 2}", `type.yaml:10: rows[0].steps[0].bind: the key "window" occurs twice, first on line 10`},
		{"anchor", "launch: shared", "launch: &l shared", `type.yaml:7: rows[0].launch: anchor &l: anchors and aliases are not read; write the value out`},
		{"alias", "    launch: shared", "    launch: &l shared\n    only: *l", `type.yaml:8: rows[0].only: alias *l: anchors and aliases are not read; write the value out`},
		{"merge key", "    budget: 5s", "    budget: 5s\n    <<: {budget: 90s}", `type.yaml:18: rows[0]: merge key <<: merges are not read; write the fields out`},
		{"explicit tag", "launch: shared", "launch: !!str shared", `type.yaml:7: rows[0].launch: explicit tag !!str: tags are not read`},
		{"binary tag", `text: "Ada"`, "text: !!binary QWRh", `type.yaml:12: rows[0].steps[2].type.text: explicit tag !!binary: tags are not read`},
		{"tab", "launch: shared", "launch:\tshared", `type.yaml:7: tab character; indent with spaces, and write \t inside double quotes`},
		{"NUL", "launch: shared", "launch: sha\x00red", `type.yaml:7: NUL byte`},
		{"not UTF-8", `"Ada"`, "\"A\xffa\"", `type.yaml:12: bytes that are not UTF-8`},
		{"carriage return", "launch: shared", "launch: shared\r", `type.yaml:7: carriage return; end lines with a line feed alone`},
		{"hidden direction", `"Ada"`, "\"A\u202ea\"", `type.yaml:12: hidden direction or order mark; write it as \u.... inside double quotes`},
		{"byte order mark", "format: acc", "\ufeffformat: acc", `type.yaml:1: begins with a byte order mark; save as plain UTF-8`},
		{"second document", "    budget: 5s\n", "    budget: 5s\n---\nformat: acceptance.rows/v1\n", `type.yaml:18: a second document begins after ---; one file holds one document`},
		{"open bracket", "steps:\n      - bind: {window: 1, as: w}", "steps:\n      - bind: {window: 1, as: w", `type.yaml:10: did not find expected ',' or '}'`},
		{"variable without quotes", "state: covered}", "state: ${state}}", `type.yaml:6: did not find expected ',' or '}'; write "${...}" in quotes inside { } and [ ]`},
		// Fields and words.
		{"unknown field", "    budget: 5s", "    budget: 5s\n    buget: 5s", `type.yaml:18: rows[0]: unknown field "buget"; did you mean "budget"?`},
		{"misspelt requirement", "requirement: M15", "requirement: M155", `type.yaml:4: rows[0].requirement: unknown requirement "M155"; did you mean "M15"?`},
		{"requirement missing", "    requirement: M15\n", "", `type.yaml:3: rows[0]: requirement is missing`},
		{"requirement of another claim", "requirement: M15", "requirement: D1",
			`type.yaml:4: rows[0].requirement: D1 is a requirement of the claim desk; its rows belong in rows/desk, not in rows/mutation`},
		{"aspect missing", "requirement: M15", "requirement: M5", `type.yaml:3: rows[0]: aspect is missing: M5 has insert, keystrokes, replace, clear, unicode, controls`},
		{"aspect unknown", "requirement: M15", "requirement: M5\n    aspect: inset", `type.yaml:5: rows[0].aspect: unknown value "inset"; did you mean "insert"?`},
		{"title missing", "    title: text arrives once\n", "", `type.yaml:3: rows[0]: title is missing`},
		{"title empty", "title: text arrives once", `title: " "`, `type.yaml:5: rows[0].title: is empty`},
		{"budget missing", "    budget: 5s\n", "", `type.yaml:3: rows[0]: budget is missing`},
		{"budget without unit", "budget: 5s", "budget: 5", `type.yaml:17: rows[0].budget: got 5, want a duration such as "5s"`},
		{"budget of words", "budget: 5s", "budget: soon", `type.yaml:17: rows[0].budget: got "soon", want a duration such as "5s"`},
		{"budget too large", "budget: 5s", "budget: 121s", `type.yaml:17: rows[0].budget: got 121s, want more than 0s and at most 2m0s`},
		{"budget below zero", "budget: 5s", "budget: -5s", `type.yaml:17: rows[0].budget: got -5s, want more than 0s and at most 2m0s`},
		{"launch unknown", "launch: shared", "launch: shred", `type.yaml:7: rows[0].launch: unknown value "shred"; did you mean "shared"?`},
		{"state unknown", "state: covered}", "state: coverd}", `type.yaml:6: rows[0].needs.state: unknown value "coverd"; did you mean "covered"?`},
		{"id with capitals", "id: type-one", "id: Type-one", `type.yaml:3: rows[0].id: the id "Type-one" must be 3 to 64 characters`},
		{"id of a build constraint", "id: type-one", "id: type-one_windows", `type.yaml:3: rows[0].id: the id ends in _windows, which Go reads as a build constraint`},
		{"id of inject_js", "id: type-one", "id: type-inject_js", `type.yaml:3: rows[0].id: the id ends in _js, which Go reads as a build constraint`},
		{"id of another file", "id: type-one", "id: click-one", `type.yaml:3: rows[0].id: the id "click-one" must be the file's name or begin with "type-"`},
		{"format unknown", "format: acceptance.rows/v1", "format: acceptance.rows/v2", `type.yaml:1: format: unknown value "acceptance.rows/v2"; did you mean "acceptance.rows/v1"?`},
		{"rows empty", good[strings.Index(good, "rows:"):], "rows: []\n", `type.yaml:2: rows: no rows`},
		{"rows is text", good[strings.Index(good, "rows:"):], "rows: all\n", `type.yaml:2: rows: got "all", want a list`},
		// Desk.
		{"page is a path", "page: other.html", "page: ../other.html", `type.yaml:8: rows[0].desk.windows[0].tabs[1].page: "../other.html" is no fixture page`},
		{"two visible tabs", "{page: other.html}", "{page: other.html, visible: true}", `tabs[1].visible: tab 1 is visible already; a window shows one tab`},
		{"no tabs", "[{page: form.html, visible: true}, {page: other.html}]", "[]", `type.yaml:8: rows[0].desk.windows[0].tabs: 0 tabs, want 1 to 16`},
		{"visible is yes", "visible: true", "visible: yes", `visible: got "yes", want true or false`},
		{"person unknown", "person: covers", "person: cover", `type.yaml:8: rows[0].desk.person: unknown value "cover"; did you mean "covers"?`},
		{"desk in launch none", "launch: shared", "launch: none", `rows[0].desk.windows: launch none: nothing is arranged, the row's steps open every window`},
		{"no session in launch none", "launch: shared", "launch: none", `rows[0].steps[0].bind: session is missing: with launch none a row has no session of its own`},
		{"first window by the person", "{tabs: [{page: form", "{opened: person, tabs: [{page: form", `opened: the first window is opened by the launch, and only the first`},
		// Steps.
		{"unknown verb", "- type: {into", "- tpye: {into", `type.yaml:12: rows[0].steps[2]: unknown verb "tpye"; did you mean "type"?`},
		{"unknown field of a verb", "as: w}", "as: w, win: 2}", `type.yaml:10: rows[0].steps[0].bind: unknown field "win"`},
		{"field missing", "{window: 1, as: w}", "{as: w}", `type.yaml:10: rows[0].steps[0].bind: window is missing`},
		{"window of the desk", "{window: 1, as: w}", "{window: 2, as: w}", `type.yaml:10: rows[0].steps[0].bind.window: window 2: the desk has 1`},
		{"window is text", "{window: 1, as: w}", "{window: one, as: w}", `type.yaml:10: rows[0].steps[0].bind.window: got "one", want a whole number`},
		{"window is a float", "{window: 1, as: w}", "{window: 1.0, as: w}", `type.yaml:10: rows[0].steps[0].bind.window: got "1.0", want a whole number`},
		{"tab of the desk", "tab: w/tab 1", "tab: w/tab 3", `type.yaml:11: rows[0].steps[1].snapshot.tab: tab 3: window 1 of the desk has 2`},
		{"name before it is bound", "tab: w/tab 1, as: s", "tab: v/tab 1, as: s", `type.yaml:11: rows[0].steps[1].snapshot.tab: no bound window is named "v" yet`},
		{"snapshot before it is taken", "into: 's/textbox", "into: 'snap/textbox", `type.yaml:12: rows[0].steps[2].type.into: no snapshot is named "snap" yet; known: s`},
		{"window for a tab", "tab: w/tab 1, as: s", "tab: w, as: s", `no tab is named "w" yet; w is a window, name its tab: "w/tab 1"`},
		{"malformed node", `'s/textbox "Full name"'`, `'s/textbox Full name'`, `is no node reference; want s/role "name", in single quotes`},
		{"malformed tab", "tab: w/tab 1", "tab: w/1", `type.yaml:11: rows[0].steps[1].snapshot.tab: "w/1" is no tab reference`},
		{"name for two things", "as: s}", "as: w}", `type.yaml:11: rows[0].steps[1].snapshot.as: "w" names a target already`},
		{"step name twice", "{window: 1, as: w}", "{window: 1, as: w, name: act}", `type.yaml:12: rows[0].steps[2].type: the name "act" was given to step 1 already`},
		{"two verbs in a step", "- bind: {window: 1, as: w}", "- bind: {window: 1, as: w}\n        wait: {quiet: 1s}", `type.yaml:10: rows[0].steps[0]: a step is one verb with its fields, got 2 keys`},
		{"step without verb", "- bind: {window: 1, as: w}", "- bind", `type.yaml:10: rows[0].steps[0]: got "bind", want a mapping of fields`},
		{"no steps", good[strings.Index(good, "steps:"):strings.Index(good, "    expect:")], "steps: []\n", `type.yaml:9: rows[0].steps: no steps`},
		{"unknown variable kind", `text: "Ada"`, `text: "{{canery x}}"`, `type.yaml:12: rows[0].steps[2].type.text: unknown variable {{canery}}; did you mean "canary"?`},
		{"open variable", `text: "Ada"`, `text: "{{canary x"`, `type.yaml:12: rows[0].steps[2].type.text: {{ and }} do not match`},
		{"page variable of a path", `text: "Ada"`, `text: "{{page ../x}}"`, `wants a name of the form`},
		{"unknown axis variable", `text: "Ada"`, `text: "${state}"`, `type.yaml:12: rows[0].steps[2].type.text: unknown variable ${state}`},
		{"wait without unit", "- bind:", "- wait: {quiet: 150}\n      - bind:", `type.yaml:10: rows[0].steps[0].wait.quiet: got 150, want a duration such as "150s"`},
		{"page and url", "- type:", "- navigate: {tab: w/tab 1, page: form.html, url: x}\n      - type:", `type.yaml:12: rows[0].steps[2].navigate: want exactly one of page, url`},
		{"attach without decoy", "- bind:", "- attach: {product: firefox, window: real}\n      - bind:", `attach.product: the desk seats no firefox; add it to desk.decoys`},
		// Needs against desk and steps.
		{"needs nobody exercises", "action: type, route", "action: click, route", `type.yaml:6: rows[0].needs: no step does click by trusted_input, which the row says it needs`},
		{"inactive tab that is shown", "state: covered}", "state: inactive_tab}", `type.yaml:6: rows[0].needs: state inactive_tab, but act acts on a tab that its window shows`},
		{"covered tab that is not shown", "tab: w/tab 1, as", "tab: w/tab 2, as", `type.yaml:6: rows[0].needs: state covered, but act acts on a tab that its window does not show`},
		{"covered beside", "person: covers", "person: beside", `type.yaml:6: rows[0].needs: state covered wants desk.person covers, got beside`},
		{"only without needs", "    needs: {action: type, route: trusted_input, delivery: background, state: covered}", "    only: declared", `type.yaml:6: rows[0].only: without needs there is nothing that could be declared`},
		// Expectations.
		{"expect missing", good[strings.Index(good, "    expect:"):strings.Index(good, "    budget:")], "", `type.yaml:3: rows[0]: expect is missing`},
		{"expect empty", good[strings.Index(good, "expect:"):strings.Index(good, "    budget:")], "expect: {}\n", `type.yaml:13: rows[0].expect: expects nothing`},
		{"effect taken out", "      effect: [{page: w/tab 1, control: full-name, value: \"Ada\"}]\n", "", `type.yaml:14: rows[0].expect: type-one: no effect is expected of act, and no refusal: want {page: w/tab 1, control: full-name, value: ...}`},
		{"effect in another tab", "[{page: w/tab 1, control", "[{page: w/tab 2, control", `type.yaml:14: rows[0].expect: type-one: no effect is expected of act, and no refusal`},
		{"elsewhere taken out", "      elsewhere: silent\n", "", `type.yaml:14: rows[0].expect: type-one: elsewhere is missing: what happens in other places is judged, too`},
		{"receipt taken out", "      receipt: [{of: act, effect: [confirmed, unverifiable], route: trusted_input, trust: trusted_input}]\n", "", `type.yaml:12: rows[0].steps[2].type.name: nothing is expected of the step "act"; leave its name out`},
		{"unknown step", "of: act", "of: acts", `type.yaml:16: rows[0].expect.receipt[0].of: no step is named "acts"; did you mean "act"?`},
		{"unknown effect word", "effect: [confirmed,", "effect: [confirmd,", `type.yaml:16: rows[0].expect.receipt[0].effect[0]: unknown value "confirmd"; did you mean "confirmed"?`},
		{"effect word twice", "effect: [confirmed,", "effect: [confirmed, confirmed,", `type.yaml:16: rows[0].expect.receipt[0].effect[1]: "confirmed" occurs twice`},
		{"unknown side effect", "trust: trusted_input}]", "side_effects: {raised_windows: false}}]", `side_effects: unknown field "raised_windows"; did you mean "raised_window"?`},
		{"effect without control", "control: full-name, ", "", `type.yaml:14: rows[0].expect.effect[0]: control is missing: whose value`},
		{"effect that asks nothing", `control: full-name, value: "Ada"`, "control: full-name", `type.yaml:14: rows[0].expect.effect[0]: want either value or event of a control, or loaded`},
		{"receipt that asks nothing", "{of: act, effect: [confirmed, unverifiable], route: trusted_input, trust: trusted_input}", "{of: act}", `type.yaml:16: rows[0].expect.receipt[0]: asks nothing of the receipt`},
		{"elsewhere unknown", "elsewhere: silent", "elsewhere: quiet", `type.yaml:15: rows[0].expect.elsewhere: unknown value "quiet"; known: silent`},
		{"unknown trigger", "elsewhere: silent", "refusal: [{of: act, trigger: ref_retird}]", `type.yaml:15: rows[0].expect.refusal[0].trigger: unknown trigger "ref_retird"; did you mean "ref_retired"?`},
		{"unknown detail", "elsewhere: silent", "refusal: [{of: act, trigger: ref_retired, detail: {reson: x}}]", `detail: unknown field "reson"; did you mean "reason"?`},
		{"bind of a click", "elsewhere: silent", "bind: [{of: act, quality: exact}]", `type.yaml:15: rows[0].expect.bind[0].of: the step "act" is a type, want bind`},
		{"active as a boolean", "elsewhere: silent", "bind: [{of: bind-1, quality: exact, active: true}]", `active: true reads as a boolean, want text; write it as "true"`},
		{"forged without report", "elsewhere: silent", "forged: named", `type.yaml:15: rows[0].expect.forged: no step posts a forged report`},
		{"snapshot that asks nothing", "elsewhere: silent", "snapshot: [{of: snapshot-2}]", `type.yaml:15: rows[0].expect.snapshot[0]: asks nothing of the snapshot`},
		{"detail taken out", "elsewhere: silent", "refusal: [{of: act, trigger: ref_retired}]", `type.yaml:15: rows[0].expect.refusal[0]: type-one: detail of the refusal of act does not state reason, which ref_retired carries`},
		// Pages.
		{"page that is not there", "page: other.html", "page: othr.html", `type.yaml:8: rows[0].desk.windows[0].tabs[1].page: there is no fixture page "othr.html"; did you mean "other.html"?`},
		{"variable of a page that is not there", `text: "Ada"`, `text: "{{page forms.html}}"`, `type.yaml:12: rows[0].steps[2].type.text: there is no fixture page "forms.html"; did you mean "form.html"?`},
		{"control that is not there", "control: full-name", "control: fullname", `type.yaml:14: rows[0].expect.effect[0].control: form.html has no control "fullname"; did you mean "full-name"?`},
		{"node that is not there", `textbox "Full name"`, `textbox "Ful name"`, `type.yaml:12: rows[0].steps[2]: the page form.html has no textbox "Ful name"; did you mean`},
		{"event of nobody", `control: full-name, value: "Ada"`, "event: input, trusted: true", `type.yaml:14: rows[0].expect.effect[0]: control is missing: who saw the input`},
		{"event of unknown trust", `value: "Ada"`, `value: "Ada", event: input`, `type.yaml:14: rows[0].expect.effect[0]: trusted is missing: whether a hand made the input, or a script`},
		{"load that was not seen", "- type:", "- navigate: {tab: w/tab 2, page: form.html}\n      - type:", `type-one: no effect is expected of navigate-3, and no refusal: want {page: w/tab 2, loaded: form.html}`},
		{"click that was not seen", "- type:", "- click: {on: 's/button \"Save\"', route: dom_event}\n      - type:", `no effect is expected of click-3, and no refusal: want {page: w/tab 1, control: save, event: click, trusted: false}`},
		{"consequence that was not seen", "- type:", "- click: {on: 's/button \"Save\"', route: keyboard}\n      - type:", `no effect is expected of click-3, and no refusal: want {page: w/tab 1, control: saved, value: ...}, for that is what form.html says its save does`},
		{"clicks that are not counted", good[strings.Index(good, "- type"):strings.Index(good, "      elsewhere")], `- click: {on: 's/button "Save"', route: keyboard}
      - click: {on: 's/button "Save"', route: keyboard}
    expect:
      effect: [{page: w/tab 1, control: save, event: click, trusted: true}, {page: w/tab 1, control: saved, value: saved 2 times}]
`, `type.yaml:15: rows[0].expect.effect[0]: type-one: the effect's count is 1, and the row's steps bring it about 2 times: want {page: w/tab 1, control: save, event: click, count: 2, trusted: true}`},
		{"click that cannot be trusted", good[strings.Index(good, "- type"):strings.Index(good, "      elsewhere")], `- click: {on: 's/button "Save"', route: dom_event}
    expect:
      effect: [{page: w/tab 1, control: save, event: click, trusted: true}, {page: w/tab 1, control: saved, value: saved 1 time}]
`, `type.yaml:14: rows[0].expect.effect[0].trusted: type-one: by the route of click-3 the page sees trusted: false`},
		{"silence alone", good[strings.Index(good, "      - snapshot"):strings.Index(good, "    budget")], "      - wait: {quiet: 1s}\n    expect: {elsewhere: silent}\n", `type-one: silence alone proves nothing: expect an effect, a refusal, a bind or a snapshot, too`},
		{"list that nobody uses", "- type:", "- snapshot: {tab: w/tab 1, as: idle}\n      - type:", `type-one: nothing uses what snapshot-3 lists, and nothing is expected of it: a snapshot, or a refusal`},
		{"tab whose closing nobody looks at", "- type:", "- close_tab: {tab: w/tab 2}\n      - type:", `type-one: no receipt is expected of close_tab-3: want receipt: {of: close_tab-3, effect: confirmed, side_effects: {closed_context: ..., closed_window: ...}}`},
		{"receipt without trust", ", trust: trusted_input}]", "}]", `type.yaml:16: rows[0].expect.receipt[0]: type-one: trust is missing in the receipt of act: want effect: [confirmed, unverifiable], route: trusted_input, trust: trusted_input`},
		// Axes.
		{"dead exclusion", "    launch: shared", "    axes: {x: [a, b]}\n    exclude: [{x: c}]\n    launch: shared", `type.yaml:8: rows[0].exclude[0]: excludes nothing: no combination has these values`},
		{"all excluded", "    launch: shared", "    axes: {x: [a]}\n    exclude: [{x: a}]\n    launch: shared", `type.yaml:3: rows[0]: every combination is excluded`},
		{"axis of exclude", "    launch: shared", "    axes: {speed: [a, b]}\n    exclude: [{sped: a}]\n    launch: shared", `rows[0].exclude[0].sped: unknown axis "sped"; did you mean "speed"?`},
		{"value twice", "    launch: shared", "    axes: {x: [a, a]}\n    launch: shared", `type.yaml:7: rows[0].axes.x[1]: the value "a" occurs twice`},
		{"value of bad characters", "    launch: shared", "    axes: {x: [\"a]b\"]}\n    launch: shared", `type.yaml:7: rows[0].axes.x[0]: the value "a]b" must be of a-z, 0-9, - and _`},
		{"include twice", "    launch: shared", "    axes: {x: [a]}\n    include: [{x: a}]\n    launch: shared", `rows[0].include[0]: includes a combination that is there already`},
		{"too many combinations", "    launch: shared", "    axes: {a: [" + list(30) + "], b: [" + list(30) + "]}\n    launch: shared", `rows[0].axes: more than 256 combinations`},
		{"fault in one combination", "    launch: shared", "    axes: {l: [shared, shred]}\n    launch: \"${l}\"", `type.yaml:8: rows[0].launch: unknown value "shred"; did you mean "shared"?`},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(strings.Count(good, c.from)).To(BeNumerically(">=", 1), "the fault's place is not in the good row")
			got := problems(t, map[string]string{rowFile: strings.Replace(good, c.from, c.to, 1)})
			g.Expect(got).To(ContainSubstring(c.want))
			for _, line := range strings.Split(got, "\n") {
				g.Expect(line).To(MatchRegexp(`^rows/mutation/type\.yaml:[1-9][0-9]*: `))
			}
		})
	}
}

func list(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = "v" + string(rune('a'+i/26)) + string(rune('a'+i%26))
	}
	return strings.Join(words, ", ")
}

// Five faults in three files: all of them are reported, each with its file.
func TestLoad_reports_every_problem_at_once(t *testing.T) {
	g := NewWithT(t)
	got := problems(t, map[string]string{
		rowFile:                   strings.NewReplacer("launch: shared", "launch: shred", "budget: 5s", "budget: 5").Replace(good),
		"rows/mutation/click.yml": "",
		"rows/desk/type.yaml":     strings.Replace(good, "requirement: M15", "requirement: D1", 1),
		"rows/mutaton/a.yaml":     good,
	})
	for _, want := range []string{
		"rows/mutation/type.yaml:7: rows[0].launch: unknown value",
		"rows/mutation/type.yaml:17: rows[0].budget: got 5",
		"rows/mutation/click.yml:1: not read; a data file is named *.yaml",
		`rows/mutation/type.yaml:3: rows[0].id: the id "type-one" was used before, at rows/desk/type.yaml:3`,
		`rows/mutaton:1: not read; rows live in folders named after their claim; did you mean "mutation"?`,
	} {
		g.Expect(got).To(ContainSubstring(want))
	}
	g.Expect(strings.Split(got, "\n")).To(HaveLen(5))
}

func TestLoad_hostile_files_are_bounded(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := range 8 {
		prev, next := string(rune('a'+i)), string(rune('b'+i))
		bomb += next + ": &" + next + " [*" + strings.Repeat(prev+",*", 8) + prev + "]\n"
	}
	for name, c := range map[string][2]string{
		"alias bomb":   {bomb, "type.yaml:1: a: anchor &a: anchors and aliases are not read; write the value out"},
		"too large":    {good + strings.Repeat("#", 1<<20), "type.yaml:1: the file has more than 1048576 bytes"},
		"too deep":     {"a: " + strings.Repeat("[", 40) + strings.Repeat("]", 40), "nested deeper than 32 levels"},
		"far too deep": {strings.Repeat("[", 200_000), "type.yaml:1:"},
		"empty":        {"", "type.yaml:1: the file is empty"},
		"only comment": {"# nothing\n", "type.yaml:1: the file is empty"},
		"null":         {"~\n", "type.yaml:1: the file is empty"},
		"a list":       {"- a\n- b\n", "type.yaml:1: got a list, want a mapping of fields"},
		"text":         {"rows\n", `type.yaml:1: got "rows", want a mapping of fields`},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(problems(t, map[string]string{rowFile: c[0]})).To(ContainSubstring(c[1]))
		})
	}
}

// A report of a hostile file is bounded, and says how much it left out.
func TestLoad_report_is_bounded(t *testing.T) {
	g := NewWithT(t)
	var b strings.Builder
	b.WriteString("format: acceptance.rows/v1\nrows:\n")
	for range 5000 {
		b.WriteString("  - {}\n")
	}
	got := problems(t, map[string]string{rowFile: b.String()})
	lines := strings.Split(got, "\n")
	g.Expect(lines).To(HaveLen(201))
	g.Expect(lines[200]).To(MatchRegexp(`^[0-9]+ more problems$`))
}

func TestLoad_missing_parts_are_named(t *testing.T) {
	g := NewWithT(t)
	_, err := matrix.Load(fstest.MapFS{}, table)
	g.Expect(err).To(MatchError(And(ContainSubstring("requirements.yaml:1: the file is missing"), ContainSubstring("profiles.yaml:1: the file is missing"),
		ContainSubstring("environments.yaml:1: the file is missing"), ContainSubstring("rows:1: the folder is missing"))))
	_, err = matrix.Load(matrix.Embedded(), nil)
	g.Expect(err).To(HaveOccurred())
}

// Faults of the other data files.
func TestLoad_bad_data_file(t *testing.T) {
	read := func(name string) string {
		b, err := fs.ReadFile(matrix.Embedded(), name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, c := range []struct{ name, file, from, to, want string }{
		{"requirement twice", "requirements.yaml", "  - id: S2\n", "  - id: S1\n", "requirements[1].id: S1 occurs twice"},
		{"requirement of a wrong letter", "requirements.yaml", "  - id: S2\n", "  - id: Q2\n", `requirements[1].id: "Q2" is no requirement id`},
		{"requirement in a wrong claim", "requirements.yaml", "claim: setup", "claim: desk", "S1 begins with another letter than the requirements of the claim desk"},
		{"unknown code", "requirements.yaml", "codes: [browser_route_unavailable]", "codes: [browser_route_unavailble]", `did you mean "browser_route_unavailable"?`},
		{"requirement of a profile", "profiles.yaml", "      - S11\n", "      - S111\n", `core.deliver.lifecycle[1]: unknown value "S111"`},
		{"core requirement twice", "profiles.yaml", "hold: [S3,", "hold: [S1, S3,", "core.hold[0]: S1 is in deliver.lifecycle already"},
		{"exception of a delivery", "profiles.yaml", `B8: {webkit`, `B1: {webkit`, "core.not_applicable.B1: B1 is in deliver.bind: what core must deliver applies to every engine"},
		{"ceiling of a lane", "environments.yaml", "lane: refusal, ceiling: none", "lane: refusal, ceiling: supported", "ceiling none belongs to refusal lanes"},
		{"table not total", "engines/chromium.yaml", `  - {action: "*", route: "*"`, `  - {action: click, route: "*"`, "capabilities: not total:"},
		{"rule never reached", "engines/chromium.yaml", `limitation: undeclared}`, "limitation: undeclared}\n  - {action: click, route: keyboard, delivery: background, state: covered, declared: true}",
			"capabilities[7]: never reached: earlier rules meet all that it matches"},
		{"declared and limited", "engines/chromium.yaml", `state: "*", limitation: undeclared}`, `state: "*", limitation: undeclared, declared: true}`, "capabilities[6]: want either declared: true or a limitation"},
		{"unknown limitation", "engines/chromium.yaml", `limitation: undeclared}`, `limitation: undeclard}`, `did you mean "undeclared"?`},
		{"engine in another file", "engines/chromium.yaml", "engine: chromium\n", "engine: chrome\n", `engine: the engine "chrome" lives in a file of its own name, not in chromium.yaml`},
		{"version without quotes", "engines/chromium.yaml", `from: "130"`, `from: 130`, `products[0].from: 130 reads as a number, want text; write it as "130"`},
		{"core exception", "engines/chromium.yaml", "not_applicable: {}", `not_applicable: {B8: "tabs"}`, "not_applicable.B8: B8 is core, and profiles.yaml lists no reviewed exception of it for chromium"},
		{"reconnect without feature", "engines/chromium.yaml", "reconnect: true", "reconnect: false", "features: the feature reconnect is claimed exactly when reconnect is true"},
		{"environment of an engine", "engines/chromium.yaml", "[x11, x11-user]", "[x11, x11-usr]", `environments[1]: unknown value "x11-usr"; did you mean "x11-user"?`},
		{"budget of an engine", "engines/chromium.yaml", "refusal_without_wire: 50ms", "refusal_without_wire: 50", `got 50, want a duration such as "50s"`},
		{"decision of a policy", "policies/release.yaml", "accept: [supported]", "accept: [suported]", `accept[0]: unknown value "suported"; did you mean "supported"?`},
		{"policy without signer", "policies/release.yaml", "signer: {required: true}\n", "", "signer is missing"},
		{"deviation in core", "policies/release.yaml", "deviations: []", `deviations: [{requirement: D1, row: x, owner: o, issue: i, reason: r, expires: "2027-01-31"}]`, "D1 is core; core has no deviations"},
		{"deviation without end", "policies/release.yaml", "deviations: []", `deviations: [{requirement: M8, row: x, owner: o, issue: i, reason: r}]`, "deviations[0]: expires is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			text := read(c.file)
			g.Expect(text).To(ContainSubstring(c.from))
			got := problems(t, map[string]string{rowFile: good, c.file: strings.Replace(text, c.from, c.to, 1)})
			g.Expect(got).To(ContainSubstring(c.want))
			g.Expect(got).To(ContainSubstring(c.file + ":"))
		})
	}
}
