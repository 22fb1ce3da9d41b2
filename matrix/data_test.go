package matrix_test

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
)

func load(t testing.TB) *matrix.Matrix {
	t.Helper()
	m, err := matrix.Load(matrix.Embedded(), table)
	if err != nil {
		t.Fatalf("the embedded matrix:\n%v", err)
	}
	return m
}

func TestEmbedded_matrix_loads_and_covers_what_its_rows_name(t *testing.T) {
	g := NewWithT(t)
	report, err := matrix.Lint(matrix.Embedded(), table, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(report.Requirements).To(Equal(135))
	g.Expect(report.Rows).To(BeNumerically(">=", 60))
	for _, id := range []matrix.RequirementID{"S1", "S4", "S10", "S12", "B1", "B2", "B3", "B5", "B9", "B17", "G1", "G5", "G6", "G7", "G17", "M1", "M2", "M3", "M4", "M5",
		"M15", "M17", "M18", "D1", "D2", "D3", "D4", "D7", "R2", "R3", "R6", "P1", "P10", "V1", "V2"} {
		g.Expect(report.Uncovered).NotTo(ContainElement(id))
	}
	covered := map[matrix.RequirementID]bool{}
	for _, row := range load(t).Rows() {
		covered[row.Requirement] = true
	}
	for _, id := range report.Uncovered {
		g.Expect(covered).NotTo(HaveKey(id), "what has no row yet is named, and nothing else")
	}
	g.Expect(len(covered) + len(report.Uncovered)).To(Equal(report.Requirements))
}

// Every requirement of the contract is there, with its claim and its duty: the kept list was written from the contract, not from the file. A
// requirement that is added here is added there by hand; R4 is not used.
func TestRequirements_are_those_of_the_contract(t *testing.T) {
	g := NewWithT(t)
	var have []string
	m := load(t)
	for _, r := range m.Requirements() {
		have = append(have, fmt.Sprintf("%s %s %s", r.ID, r.Claim, r.Duty))
		g.Expect(r.Must).NotTo(HaveSuffix("."), "%s", r.ID)
		for _, text := range []string{r.Must, r.Reason, r.Source} {
			g.Expect(text).NotTo(BeEmpty(), "%s", r.ID)
		}
	}
	kept := strings.Split(strings.TrimSpace(embedded(t, "testdata/requirements.golden")), "\n")
	g.Expect(kept).To(HaveLen(135))
	g.Expect(have).To(ConsistOf(kept))
	_, used := m.Requirement("R4")
	g.Expect(used).To(BeFalse())
}

func TestEmbedded_row_files_point_editors_at_the_schema(t *testing.T) {
	g := NewWithT(t)
	err := fs.WalkDir(matrix.Embedded(), "rows", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(matrix.Embedded(), path)
		g.Expect(string(b)).To(HavePrefix("# yaml-language-server: $schema=../../schema/rows.schema.json\n"), path)
		return err
	})
	g.Expect(err).NotTo(HaveOccurred())
}

// The table of the Chromium engine, said again in the words of its support contract.
func TestChromium_table_is_total_and_says_what_it_should(t *testing.T) {
	g := NewWithT(t)
	e, err := load(t).EngineFile("chromium")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(engine.Declaration{Claims: e.Claims}.Total()).To(Succeed())
	shown := []engine.State{engine.StateCovered, engine.StatePartlyCovered, engine.StateVisibleTab}
	count := 0
	for _, c := range e.Claims {
		if c.Declared {
			count++
			g.Expect(c.Delivery).To(Equal(engine.DeliveryBackground))
			g.Expect(c.State).NotTo(Equal(engine.StateMinimised))
		}
	}
	g.Expect(count).To(Equal(4*4 + 1 + 2*4 + 4))
	for _, s := range shown {
		c := e.Lookup(engine.Capability{Action: engine.ActionClick, Route: engine.RouteTrustedInput, Delivery: engine.DeliveryBackground, State: s})
		g.Expect(c.Declared).To(BeFalse())
		g.Expect(c.Limitation).To(Equal("would_raise"))
	}
	c := e.Lookup(engine.Capability{Action: engine.ActionClick, Route: engine.RouteTrustedInput, Delivery: engine.DeliveryBackground, State: engine.StateInactiveTab})
	g.Expect(c.Declared).To(BeTrue())
}

// One name leads from row to file: the file's stem begins every id in it.
func TestRows_say_where_they_come_from(t *testing.T) {
	g := NewWithT(t)
	for _, row := range load(t).Rows() {
		file, line, ok := strings.Cut(row.Source, ":")
		g.Expect(ok).To(BeTrue())
		g.Expect(line).To(MatchRegexp(`^[0-9]+$`))
		_, err := os.Stat(file)
		g.Expect(err).NotTo(HaveOccurred(), "%s", row.ID)
		g.Expect(row.Expect.Elsewhere == "" && len(row.Expect.Effect) > 0).To(BeFalse(), "%s has an effect and does not ask for silence elsewhere", row.ID)
	}
}
