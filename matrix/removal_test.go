package matrix_test

import (
	"io/fs"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/matrix"
)

var expectPath = regexp.MustCompile(`^(rows\[[0-9]+\])\.expect\.([a-z]+)(?:\[[0-9]+\])?(?:\.([a-z_]+))?`)

// Every expectation of every row file is taken out, one at a time: each time there is a problem of that row that says what is missing.
func TestRemovals_each_is_missed(t *testing.T) {
	g := NewWithT(t)
	all, err := matrix.Removals(matrix.Embedded(), table)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(all)).To(BeNumerically(">", 500))
	files := map[string]bool{}
	for _, x := range all {
		files[x.File] = true
		at := expectPath.FindStringSubmatch(x.Path)
		g.Expect(at).NotTo(BeNil(), x.Path)
		named := false
		for _, p := range x.Problems {
			text := p.Path + ": " + p.Message
			// The row is named by its place and, where that is not the expectation's own, by its id; what is missing by kind or by field.
			named = named || p.File == x.File && strings.HasPrefix(p.Path, at[1]) && (p.Path != at[1]+".expect" || strings.Contains(p.Message, x.Row)) &&
				(strings.Contains(text, at[2]) || at[3] != "" && strings.Contains(text, at[3]))
		}
		if !named {
			t.Errorf("%s:%d: %s of %s is taken out, and what is said is %v", x.File, x.Line, x.Path, x.Row, x.Problems)
		}
	}
	rows, err := fs.Glob(matrix.Embedded(), "rows/*/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range rows {
		text := embedded(t, name)
		g.Expect(files[name]).To(Equal(strings.Contains(text, "expect:")), "%s: was anything taken out of it", name)
	}
}

// The same, by hand: one line of text is cut out of a file as it lies on the disk, and the matrix is loaded as ever. Which lines is drawn.
func TestLoad_misses_a_line_that_was_cut(t *testing.T) {
	g := NewWithT(t)
	names, err := fs.Glob(matrix.Embedded(), "rows/*/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	entry := regexp.MustCompile(`(?m)^ {8}- \{(?:page|of|before): .*\}\n|^      (?:elsewhere|probes|forged|profile): .*\n`)
	draw := rand.New(rand.NewPCG(20, 26))
	cut := 0
	for cut < 20 {
		name := names[draw.IntN(len(names))]
		text := embedded(t, name)
		lines := entry.FindAllStringIndex(text, -1)
		if len(lines) == 0 {
			continue
		}
		at := lines[draw.IntN(len(lines))]
		cut++
		got := problems(t, map[string]string{name: text[:at[0]] + text[at[1]:]})
		g.Expect(got).To(ContainSubstring(name+":"), "%s without %s", name, text[at[0]:at[1]])
	}
}

// What nothing asks for is a problem of the row that has it; the receipt of a row about something else is such a thing.
func TestLint_reports_what_nothing_asks_for(t *testing.T) {
	g := NewWithT(t)
	_, err := matrix.Lint(with(t, map[string]string{rowFile: good}), table, nil)
	g.Expect(err).To(MatchError(ContainSubstring("rows/mutation/type.yaml:16: rows[0].expect.receipt: type-one: nothing misses it when it is taken out")))
	asked := strings.Replace(embedded(t, "requirements.yaml"), "  - id: M15\n", "  - id: M15\n    receipts: [type]\n", 1)
	report, err := matrix.Lint(with(t, map[string]string{rowFile: good, "requirements.yaml": asked}), table, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(report.Expectations).To(Equal(10))
	_, err = matrix.Lint(fstest.MapFS{}, table, nil)
	g.Expect(err).To(HaveOccurred())
}
