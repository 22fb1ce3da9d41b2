package matrix_test

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/matrix"
)

// A step reads the same from memory and from a plan file.
func TestStep_accessors_survive_json(t *testing.T) {
	text := `format: acceptance.rows/v1
rows:
  - id: type-one
    requirement: M15
    title: t
    launch: shared
    desk: {windows: [{tabs: [{page: form.html}]}]}
    steps:
      - bind: {window: 1, as: w}
      - snapshot: {tab: w/tab 1, as: s, max_nodes: 100}
      - type: {into: 's/textbox "Password"', text: "{{canary a}}", replace: true}
      - wait: {quiet: 150ms}
      - call: {operation: browser_click, args: {ref: 5, list: [a, true, ~]}, name: asked}
    expect:
      effect: [{page: w/tab 1, control: password, event: input, trusted: true}]
      elsewhere: silent
      refusal: [{of: asked, trigger: argument, detail: {limitation: invalid_argument}}]
    budget: 5s
`
	m, err := matrix.Load(with(t, map[string]string{rowFile: text}), table)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	inMemory := m.Rows()[0].Steps
	b, err := json.Marshal(inMemory)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var fromFile []matrix.Step
	NewWithT(t).Expect(json.Unmarshal(b, &fromFile)).To(Succeed())
	for _, steps := range [][]matrix.Step{inMemory, fromFile} {
		g := NewWithT(t)
		g.Expect(steps[0].Int("window")).To(Equal(1))
		g.Expect(steps[0].Has("session")).To(BeFalse())
		g.Expect(steps[1].Tab("tab")).To(Equal(matrix.TabRef{Target: "w", Tab: 1}))
		g.Expect(steps[1].Int("max_nodes")).To(Equal(100))
		g.Expect(steps[2].Node("into")).To(Equal(matrix.NodeRef{Snapshot: "s", Role: "textbox", Name: "Password"}))
		g.Expect(steps[2].Text("text")).To(Equal("{{canary a}}"))
		g.Expect(steps[2].Bool("replace")).To(BeTrue())
		g.Expect(steps[3].Duration("quiet")).To(Equal(150 * time.Millisecond))
		g.Expect(steps[4].Raw("args")).To(HaveKeyWithValue("ref", BeNumerically("==", 5)))
		g.Expect(steps[4].Text("absent")).To(BeEmpty())
	}
}

func TestParseNodeRef_reads_a_quoted_name(t *testing.T) {
	g := NewWithT(t)
	got, err := matrix.ParseNodeRef(`s/textbox "Say \"hi\""`)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal(matrix.NodeRef{Snapshot: "s", Role: "textbox", Name: `Say "hi"`}))
	g.Expect(got.String()).To(Equal(`s/textbox "Say \"hi\""`))
}

func TestVariables(t *testing.T) {
	g := NewWithT(t)
	got, err := matrix.Variables("{{page form.html}}?q={{canary query}} of {{decoy}}")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal([]matrix.Variable{{Kind: "page", Name: "form.html"}, {Kind: "canary", Name: "query"}, {Kind: "decoy"}}))
	for _, bad := range []string{"{{", "}}", "}} {{canary a}}", "{{canary}}", "{{canary A}}", "{{canary a b}}", "{{page /etc/passwd}}", "{{shell x}}", "{{decoy x}}", "{{}}"} {
		_, err := matrix.Variables(bad)
		g.Expect(err).To(HaveOccurred(), bad)
	}
}

func TestReferences_print_as_they_are_read(t *testing.T) {
	g := NewWithT(t)
	for _, s := range []string{"w/tab 1", "window_2/tab 12", "opened"} {
		ref, err := matrix.ParseTabRef(s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ref.String()).To(Equal(s))
	}
	for _, s := range []string{`s/button "Save"`, `snap-1/textbox ""`, `s/link "a \"b\" \\ c"`} {
		ref, err := matrix.ParseNodeRef(s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ref.String()).To(Equal(s))
	}
	for _, s := range []string{"", "W/tab 1", "w/tab 0", "w/tab 1000", "w/ tab 1", "w/tab 1 "} {
		_, err := matrix.ParseTabRef(s)
		g.Expect(err).To(HaveOccurred(), s)
	}
	for _, s := range []string{"", `s/button`, `s/button Save`, `s/but ton "x"`, `/button "x"`, `s/button "a"b"`} {
		_, err := matrix.ParseNodeRef(s)
		g.Expect(err).To(HaveOccurred(), s)
	}
}
