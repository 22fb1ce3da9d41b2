package matrix_test

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/engine-acceptance/acceptance/matrix"
)

var update = flag.Bool("update", false, "write golden files anew")

const schemaFile = "schema/rows.schema.json"

func TestSchema_file_is_in_step_with_the_verbs(t *testing.T) {
	g := NewWithT(t)
	if *update {
		g.Expect(os.WriteFile(schemaFile, matrix.Schema(), 0o644)).To(Succeed())
	}
	kept, err := os.ReadFile(schemaFile)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(kept)).To(Equal(string(matrix.Schema())), "run go test ./matrix -update")
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(matrix.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(matrix.SchemaID, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(matrix.SchemaID)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func decoded(t *testing.T, b []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSchema_accepts_every_row_file_of_the_matrix(t *testing.T) {
	g := NewWithT(t)
	s := compiled(t)
	files, err := fs.Glob(matrix.Embedded(), "rows/*/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(files)).To(BeNumerically(">", 20))
	for _, f := range files {
		b, err := fs.ReadFile(matrix.Embedded(), f)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.Validate(decoded(t, b))).To(Succeed(), f)
	}
}

func TestSchema_refuses_what_an_editor_should_underline(t *testing.T) {
	s := compiled(t)
	for name, change := range map[string][2]string{
		"unknown verb":     {"- type: {into", "- typo: {into"},
		"unknown field":    {"budget: 5s", "budget: 5s\n    budgets: 5s"},
		"bare duration":    {"budget: 5s", "budget: 5"},
		"unknown launch":   {"launch: shared", "launch: share"},
		"missing steps":    {"steps:", "stepz:"},
		"unknown state":    {"state: covered", "state: coverd"},
		"two verbs a step": {"- bind: {window: 1, as: w}", "- bind: {window: 1, as: w}\n        wait: {quiet: 1s}"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := bytes.Replace([]byte(good), []byte(change[0]), []byte(change[1]), 1)
			g.Expect(string(text)).NotTo(Equal(good))
			g.Expect(s.Validate(decoded(t, []byte(good)))).To(Succeed())
			g.Expect(s.Validate(decoded(t, text))).NotTo(Succeed())
		})
	}
}
