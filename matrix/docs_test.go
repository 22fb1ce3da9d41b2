package matrix_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/matrix/strict"
)

const (
	docsPage   = "../docs/rows.md"
	docsFolder = "testdata/docs/"
)

// verbTable writes the verbs as the documentation shows them.
func verbTable() string {
	var b strings.Builder
	b.WriteString("<!-- verbs: go test ./matrix -update -->\n| verb | fields | what it does |\n|---|---|---|\n")
	for _, v := range matrix.Verbs {
		var fields []string
		for _, f := range v.Fields {
			name := "`" + f.Name + "`"
			if f.Required {
				name = "**" + name + "**"
			}
			fields = append(fields, name)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", v.Name, strings.Join(fields, " "), v.Doc)
	}
	b.WriteString("<!-- end of verbs -->\n")
	return b.String()
}

var (
	verbBlock    = regexp.MustCompile(`(?s)VERBS\n|<!-- verbs: .*?<!-- end of verbs -->\n`)
	exampleBlock = regexp.MustCompile("(?s)<!-- example: ([a-z/.]+) -->\n```[a-z]+\n(.*?)```\n")
)

func TestDocs_verbs_are_those_of_the_code(t *testing.T) {
	g := NewWithT(t)
	page := embedded(t, docsPage)
	if *update {
		page = verbBlock.ReplaceAllLiteralString(page, verbTable())
		g.Expect(os.WriteFile(docsPage, []byte(page), 0o644)).To(Succeed())
	}
	g.Expect(page).To(ContainSubstring(verbTable()), "run go test ./matrix -update")
}

// Every example of the page is a file, byte for byte, and every file does what the page says of it.
func TestDocs_examples_are_files_that_load(t *testing.T) {
	g := NewWithT(t)
	found := map[string]string{}
	for _, m := range exampleBlock.FindAllStringSubmatch(embedded(t, docsPage), -1) {
		found[m[1]] = m[2]
		g.Expect(m[2]).To(Equal(embedded(t, docsFolder+m[1])), m[1])
	}
	g.Expect(found).To(HaveLen(5))

	m, err := matrix.Load(with(t, map[string]string{
		"rows/mutation/discount.yaml": found["rows/mutation/discount.yaml"],
		"rows/mutation/email.yaml":    found["rows/mutation/email.yaml"],
		"requirements.yaml":           embedded(t, "requirements.yaml") + found["requirement.yaml"],
		"engines/quiet.yaml":          found["engines/quiet.yaml"],
	}), table)
	g.Expect(err).NotTo(HaveOccurred())
	var ids []string
	for _, r := range m.Rows() {
		ids = append(ids, string(r.ID))
	}
	g.Expect(ids).To(Equal([]string{"discount-stays", "email-arrives[state=covered]", "email-arrives[state=inactive_tab]", "email-arrives[state=visible_tab]"}))
	_, ok := m.Requirement("M20")
	g.Expect(ok).To(BeTrue())
	quiet, err := m.EngineFile("quiet")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(engine.Declaration{Claims: quiet.Claims}.Total()).To(Succeed())
	plan, err := m.Plan(matrix.PlanRequest{Engine: "quiet", Product: engine.ProductChromium, Environment: "x11"})
	g.Expect(err).NotTo(HaveOccurred())
	twins := 0
	for _, c := range plan.Rows {
		if c.Twin {
			twins++
		}
	}
	g.Expect(twins).To(Equal(1), "the inactive tab, which it does not declare, becomes a refusal")

	_, err = matrix.Load(with(t, map[string]string{"rows/mutation/mistake.yaml": embedded(t, docsFolder+"bad/mistake.yaml")}), table)
	var e *strict.Error
	g.Expect(errors.As(err, &e)).To(BeTrue())
	g.Expect(err.Error() + "\n").To(Equal(found["mistake.txt"]))
}
