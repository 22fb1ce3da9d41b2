package matrix_test

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/matrix/strict"
)

// An engine from elsewhere is planned like every other, and changes nothing else of the matrix.
func TestWithEngine(t *testing.T) {
	g := NewWithT(t)
	m, err := matrix.Load(matrix.Embedded(), table)
	g.Expect(err).NotTo(HaveOccurred())
	raw := embedded(t, "testdata/external/acme.yaml")
	more, file, err := m.WithEngine("somewhere/acme.yaml", []byte(raw))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(file.Command).To(Equal([]string{"./acme-engine", "--stdio"}))
	g.Expect(file.Mapping).To(Equal("names.yaml"))
	g.Expect(more.Digest()).To(Equal(m.Digest()))
	_, err = m.EngineFile("acme")
	g.Expect(err).To(HaveOccurred(), "the matrix itself is not changed")
	plan, err := more.Plan(matrix.PlanRequest{Engine: "acme", Product: engine.ProductChromium, Environment: "x11"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plan.EngineFile).To(Equal(file.SHA256))
	ours, err := m.Plan(matrix.PlanRequest{Engine: "chromium", Product: engine.ProductChromium, Environment: "x11"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(plan.Rows)).To(Equal(len(ours.Rows)), "the same claims, the same rows")

	for name, c := range map[string]struct{ file, from, to, says string }{
		"no_command":          {"acme.yaml", "command: [./acme-engine, --stdio]\n", "", "command is missing"},
		"empty_command":       {"acme.yaml", "[./acme-engine, --stdio]", "[]", "names no program"},
		"unknown_field":       {"acme.yaml", "mapping:", "maping:", `did you mean "mapping"`},
		"another_name":        {"other.yaml", "", "", "lives in a file of its own name"},
		"name_of_ours":        {"chromium.yaml", "engine: acme", "engine: chromium", "has an engine \"chromium\" of its own"},
		"unknown_environment": {"acme.yaml", "[x11, x11-user]", "[x12]", "x11"},
	} {
		_, _, err := m.WithEngine(c.file, []byte(strings.Replace(raw, c.from, c.to, 1)))
		var e *strict.Error
		g.Expect(errors.As(err, &e)).To(BeTrue(), name)
		g.Expect(err).To(MatchError(ContainSubstring(c.says)), name)
	}
	// A file of the matrix cannot name a command: what is built in starts what is built in.
	_, err = matrix.Load(with(t, map[string]string{"engines/acme.yaml": raw}), table)
	g.Expect(err).To(MatchError(ContainSubstring("command")))
}

func TestReadMapping(t *testing.T) {
	g := NewWithT(t)
	raw := embedded(t, "testdata/external/names.yaml")
	m, err := matrix.ReadMapping("names.yaml", []byte(raw))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Tools).To(Equal(map[engine.Operation]string{engine.OpClick: "page_click", engine.OpType: "page_type"}))
	g.Expect(m.Arguments).To(Equal(map[string]string{"ref": "element", "input_route": "via"}))
	g.Expect(m.Results).To(Equal(map[string]string{"element": "ref", "outcome": "status"}))
	bad := strings.NewReplacer("browser_click:", "browser_clik:", "  ref: element", "  reff: element", "outcome: status", "outcome: statuss", "mapping/v1", "mapping/v2").Replace(raw)
	_, err = matrix.ReadMapping("names.yaml", []byte(bad))
	for _, want := range []string{`did you mean "browser_click"`, `did you mean "ref"`, `did you mean "status"`, "acceptance.mapping/v1"} {
		g.Expect(err).To(MatchError(ContainSubstring(want)))
	}
	_, err = matrix.ReadMapping("names.yaml", []byte(strings.Replace(raw, "page_type", "page_click", 1)))
	g.Expect(err).To(MatchError(ContainSubstring(`"page_click" occurs twice`)))
}
