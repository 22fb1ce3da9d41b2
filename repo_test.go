// Package acceptance_test holds what concerns the tree as a whole: who may import whom, and that data, code, pages and documentation agree.
package acceptance_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/engine/mutant"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/kills"
	"github.com/engine-acceptance/acceptance/fixtures"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/matrix/refusal"
	"github.com/engine-acceptance/acceptance/recorder/desktop"
	"github.com/engine-acceptance/acceptance/suites/steps"
)

const module = "github.com/engine-acceptance/acceptance"

// source is one Go file of the tree, whatever its build constraints say.
type source struct {
	name string // path from the root, with slashes
	dir  string // its folder, and so its package, "." for the root
	test bool
	file *ast.File
}

// files lists every file of the tree but what was built and what belongs to git.
func files(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "out"}, name):
			return fs.SkipDir
		case d.Type().IsRegular() && d.Name() != ".git" && filepath.Ext(name) != ".prof" && filepath.Ext(name) != ".test":
			names = append(names, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// sources parses every Go file.
func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	set := token.NewFileSet()
	for _, name := range files(t) {
		if path.Ext(name) != ".go" || strings.Contains(name, "/testdata/") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, source{name, path.Dir(name), strings.HasSuffix(name, "_test.go"), f})
	}
	if len(out) < 100 {
		t.Fatalf("found %d Go files: this is not the root of the tree", len(out))
	}
	return out
}

// imports lists what a file imports; packages of ours are named from the root.
func (s source) imports(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, spec := range s.file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		out = append(out, p)
	}
	return out
}

// ours turns an import path into a package of the tree.
func ours(p string) (string, bool) {
	if p == module {
		return ".", true
	}
	return strings.CutPrefix(p, module+"/")
}

// within says whether a package is one of the named ones or lies below one.
func within(pkg string, tops ...string) bool {
	return slices.ContainsFunc(tops, func(top string) bool { return pkg == top || strings.HasPrefix(pkg, top+"/") })
}

// only says which of our packages a part of the tree may import, beside itself. What is not named here is free below cmd and suites.
var only = []struct {
	part  string
	exact bool // the package alone, without those below it
	may   []string
	why   string
}{
	{"engine", true, nil, "the contract is what strangers implement: it must be readable and importable alone"},
	{"engine/cdp", false, []string{"engine"}, "an adapter knows its wire and the contract: not the core, not the window system, not another adapter"},
	{"engine/bidi", false, []string{"engine"}, "an adapter knows its wire and the contract: not the core, not the window system, not another adapter"},
	{"engine/webdriver", false, []string{"engine"}, "an adapter knows its wire and the contract: not the core, not the window system, not another adapter"},
	{"engine/native", false, []string{"engine"}, "the native proof is separate from every protocol, and shares no code with the guard that watches it"},
	{"engine/mcp", false, []string{"engine"}, "the carrier knows the contract, and no engine"},
	{"engine/mutant", false, []string{"engine"}, "a mutant stands on the contract's seams, so that it says nothing about how the healthy engine is made"},
	{"engine/core", false, []string{"engine", "engine/native", "matrix/refusal"}, "the core is neutral to protocols: adapters reach it as values"},
	{"engine/enginetest", false, []string{"engine", "matrix/refusal"}, "the kit judges any engine by its contract alone"},
	{"matrix", false, []string{"engine", "fixtures/pages"}, "rows and contracts speak the vocabulary of the engine contract and of the pages' own declarations, and of nothing that runs"},
	{"evidence", false, []string{"engine", "matrix", "redaction"}, "an auditor's verify must not need desk, recorder or browser"},
	{"recorder", false, []string{"redaction"}, "the guard watches whatever happens: it knows no row and no engine"},
	{"redaction", false, nil, "what keeps secrets from the disk must be small enough to be read whole"},
	{"fixtures", false, nil, "the pages' witness must not know who drives the pages"},
}

func TestArrows_between_our_packages(t *testing.T) {
	g := NewWithT(t)
	used := map[string]bool{}
	for _, s := range sources(t) {
		for _, imported := range s.imports(t) {
			pkg, ok := ours(imported)
			if !ok || pkg == s.dir {
				continue
			}
			g.Expect(within(pkg, "cmd")).To(BeFalse(), "%s imports %s: commands are wiring, nothing stands on them", s.name, pkg)
			if s.dir == "." {
				continue // this test looks at everything
			}
			if within(pkg, "suites") {
				g.Expect(within(s.dir, "suites", "cmd/acceptance")).To(BeTrue(), "%s imports %s: arrows never point upward, to what runs rows", s.name, pkg)
			}
			if within(pkg, "engine/mutant") {
				g.Expect(s.dir).To(Equal("cmd/acceptance"), "%s imports %s: a mutant is reachable from the command `mutants` alone", s.name, pkg)
			}
			if within(s.dir, "suites") && within(pkg, "engine") {
				g.Expect(pkg).To(BeElementOf("engine", "engine/mcp"), "%s imports %s: the engine under test is never in the judge's process", s.name, pkg)
			}
			for _, rule := range only {
				if !(s.dir == rule.part || !rule.exact && within(s.dir, rule.part)) {
					continue
				}
				used[rule.part] = true
				allowed := within(pkg, rule.part) && !rule.exact
				for _, may := range rule.may {
					// engine stands for the contract alone; the other parts for all that lies below them.
					allowed = allowed || pkg == may || may != "engine" && within(pkg, may)
				}
				// A package's own tests may use the kit and what the kit needs.
				allowed = allowed || s.test && within(rule.part, "engine") && within(pkg, "engine/enginetest", "engine/core")
				g.Expect(allowed).To(BeTrue(), "%s imports %s: %s", s.name, pkg, rule.why)
			}
		}
	}
	for _, part := range []string{"engine/cdp", "engine/native", "engine/core", "engine/mutant", "matrix", "evidence", "recorder"} {
		g.Expect(used).To(HaveKey(part), "no import of %s was looked at: the rule is blind", part)
	}
}

// kept are libraries that stay where they are.
var kept = []struct {
	library string
	where   []string // packages that may import it; a name that ends in .go is a file
	tests   bool     // tests may, too
	why     string
}{
	{"github.com/onsi/ginkgo/v2", []string{"suites"}, true, "rows are specs, and nothing else is"},
	{"github.com/onsi/gomega", []string{"suites", "engine/enginetest"}, true, "assertions belong to suites, to tests and to the kit that tests call"},
	{"github.com/chromedp", []string{"engine/cdp"}, true, "one package speaks the DevTools protocol; tests of pages may look with a second pair of eyes"},
	{"github.com/jezek/xgb", []string{"engine/native", "engine/mutant", "recorder", "suites/person/inject_other.go"}, true, "the event log and the desk have raw clients of their own"},
	{"github.com/modelcontextprotocol/go-sdk", []string{"engine/mcp"}, false, "one package carries calls"},
	{"github.com/santhosh-tekuri/jsonschema/v6", []string{"engine/mcp", "matrix", "evidence"}, true, "schemas are checked where data enters"},
	{"testing", []string{"engine/enginetest"}, true, "nothing that ships imports the test runner"},
	{"unsafe", []string{"suites/process", "recorder", "engine/native", "fixtures", "suites/attempt"}, true, "memory is reached around only where the kernel asks for it"},
}

func TestArrows_to_libraries(t *testing.T) {
	g := NewWithT(t)
	place := map[string][]string{}
	for _, s := range sources(t) {
		for _, imported := range s.imports(t) {
			if imported == "github.com/go-vgo/robotgo" || imported == "github.com/kbinani/screenshot" || imported == "C" {
				place[imported] = append(place[imported], s.name)
			}
			for _, rule := range kept {
				if within(imported, rule.library) {
					g.Expect(within(s.dir, rule.where...) || s.test && rule.tests || slices.Contains(rule.where, s.name)).To(BeTrue(),
						"%s imports %s: %s", s.name, imported, rule.why)
				}
			}
			if _, own := ours(imported); !own && !s.test && within(s.dir, "redaction", "fixtures") {
				g.Expect(strings.Contains(strings.Split(imported, "/")[0], ".")).To(BeFalse(), "%s imports %s: this part uses the standard library only", s.name, imported)
			}
			if within(s.dir, "recorder/x11", "recorder/desktop") {
				g.Expect(within(imported, "github.com/jezek/xgb")).To(BeFalse(), "%s imports %s: the guard shares no code with the engine's native proof", s.name, imported)
			}
		}
		for _, spec := range s.file.Imports {
			if spec.Name != nil && spec.Name.Name == "." {
				p, _ := strconv.Unquote(spec.Path.Value)
				g.Expect(within(p, "github.com/onsi") && (s.test || within(s.dir, "suites"))).To(BeTrue(), "%s: dot imports are for ginkgo and gomega, in suites and tests", s.name)
			}
			if spec.Name != nil && spec.Name.Name == "_" {
				p, _ := strconv.Unquote(spec.Path.Value)
				g.Expect(within(p, "embed", "image/png", "image/jpeg")).To(BeTrue(), "%s imports %s for its side effects: nothing registers itself here", s.name, p)
			}
		}
	}
	g.Expect(place["github.com/go-vgo/robotgo"]).To(HaveLen(1), "one file knows robotgo, so that everything else builds without cgo")
	g.Expect(place["github.com/kbinani/screenshot"]).To(HaveLen(1), "one file knows screenshot, so that it can be replaced")
	g.Expect(place["C"]).To(BeEmpty(), "no file of ours needs cgo: verify is a static program")
}

func TestPackages_have_one_comment_and_a_name_of_their_own(t *testing.T) {
	g := NewWithT(t)
	comments, names := map[string][]string{}, map[string]string{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		names[s.dir] = s.file.Name.Name
		if s.file.Doc != nil {
			comments[s.dir] = append(comments[s.dir], s.name)
			begin := "Package " + s.file.Name.Name + " "
			if s.file.Name.Name == "main" {
				begin = "Command " + path.Base(s.dir) + " "
			}
			g.Expect(s.file.Doc.Text()).To(HavePrefix(begin), s.name)
		}
	}
	for dir, name := range names {
		g.Expect(comments[dir]).To(HaveLen(1), "%s wants one package comment", dir)
		g.Expect(name).NotTo(BeElementOf("util", "utils", "common", "helper", "helpers", "types", "misc", "base", "shared"), dir)
		if name != "main" {
			g.Expect(name).To(Equal(path.Base(dir)), "the package is half of the name, so it is the folder's")
		}
	}
}

// systems and architectures are what Go reads as a constraint at the end of a file's name.
var systems = strings.Fields(`aix android darwin dragonfly freebsd hurd illumos ios js linux nacl netbsd openbsd plan9 solaris wasip1 windows zos
	386 amd64 amd64p32 arm arm64 arm64be armbe loong64 mips mips64 mips64le mips64p32 mips64p32le mipsle ppc ppc64 ppc64le riscv riscv64 s390 s390x sparc sparc64 wasm`)

func TestFileNames_are_no_constraints_by_accident(t *testing.T) {
	g := NewWithT(t)
	for _, s := range sources(t) {
		words := strings.Split(strings.TrimSuffix(strings.TrimSuffix(path.Base(s.name), ".go"), "_test"), "_")
		last := words[len(words)-1]
		if len(words) == 1 || !slices.Contains(systems, last) || last == "linux" {
			continue // the product is built for Linux: there the ending is meant
		}
		said := slices.ContainsFunc(s.file.Comments, func(c *ast.CommentGroup) bool {
			return slices.ContainsFunc(c.List, func(l *ast.Comment) bool {
				return strings.HasPrefix(l.Text, "//go:build ") && strings.Contains(l.Text, last)
			})
		})
		g.Expect(said).To(BeTrue(), "%s is built on %s only: rename it, or say //go:build %s", s.name, last, last)
	}
	for _, s := range sources(t) {
		browser := slices.ContainsFunc(s.file.Comments, func(c *ast.CommentGroup) bool {
			return c.Pos() < s.file.Package && strings.Contains(c.List[0].Text, "browser") && strings.HasPrefix(c.List[0].Text, "//go:build ")
		})
		g.Expect(browser).To(Equal(strings.HasSuffix(s.name, "_browser_test.go")), "%s: tests that need a display or a browser, and only they, carry the tag browser and the ending", s.name)
	}
	for _, name := range files(t) {
		if !strings.HasPrefix(name, "fixtures/pages/") {
			continue
		}
		words := strings.FieldsFunc(strings.TrimSuffix(path.Base(name), path.Ext(name)), func(r rune) bool { return r == '_' || r == '-' })
		if len(words) > 1 {
			g.Expect(slices.Contains(systems, words[len(words)-1])).To(BeFalse(), "%s: a stem becomes part of Go file names", name)
		}
	}
}

func TestPublicNames_have_a_comment(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && receiverIsExported(d) {
					t.Errorf("%s: func %s has no comment", s.name, d.Name.Name)
				}
			case *ast.GenDecl:
				group := d.Doc != nil
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if spec.Name.IsExported() && !group && spec.Doc == nil && spec.Comment == nil {
							t.Errorf("%s: type %s has no comment", s.name, spec.Name.Name)
						}
					case *ast.ValueSpec:
						for _, n := range spec.Names {
							if n.IsExported() && !group && spec.Doc == nil && spec.Comment == nil {
								t.Errorf("%s: %s has no comment", s.name, n.Name)
							}
						}
					}
				}
			}
		}
	}
}

// receiverIsExported is true for functions, and for methods of types that others can name.
func receiverIsExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	x := d.Recv.List[0].Type
	for {
		switch y := x.(type) {
		case *ast.StarExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.Ident:
			return y.IsExported()
		default:
			return false
		}
	}
}

// embedded loads the matrix that the binary is built with.
func embedded(t *testing.T) *matrix.Matrix {
	t.Helper()
	table, err := refusal.Load()
	if err != nil {
		t.Fatal(err)
	}
	m, err := matrix.Load(matrix.Embedded(), table)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var pageName = regexp.MustCompile(`\b[a-z][a-z0-9-]*\.html\b`)

// A page that a row or another page names is there, and every page says what a faithful snapshot of it holds.
func TestPages_and_rows_match(t *testing.T) {
	g := NewWithT(t)
	server, err := fixtures.Start(t.Context(), fixtures.Config{})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(server.Close(t.Context())).To(Succeed()) }()

	named := 0
	for _, name := range files(t) {
		inPages := strings.HasPrefix(name, "fixtures/pages/") && path.Ext(name) == ".html"
		if !strings.HasPrefix(name, "matrix/rows/") && !strings.HasPrefix(name, "matrix/testdata/docs/rows/") && !inPages {
			continue
		}
		b, err := os.ReadFile(name)
		g.Expect(err).NotTo(HaveOccurred())
		for _, page := range pageName.FindAllString(string(b), -1) {
			g.Expect(fixtures.Pages()).To(ContainElement(page), "%s names a page that is not in fixtures/pages", name)
			named++
		}
	}
	g.Expect(named).To(BeNumerically(">", 50))
	for _, page := range fixtures.Pages() {
		_, err := server.Truth(page)
		g.Expect(err).NotTo(HaveOccurred(), page)
	}
}

// The rows' requirements are checked when the matrix loads; here it is held that a claim's rows are in the claim's folder, and that every
// engine and policy that is named anywhere is there.
func TestRequirements_that_are_named_exist(t *testing.T) {
	g := NewWithT(t)
	m := embedded(t)
	g.Expect(len(m.Rows())).To(BeNumerically(">", 0))
	for _, row := range m.Rows() {
		r, ok := m.Requirement(row.Requirement)
		g.Expect(ok).To(BeTrue(), "%s proves %s", row.ID, row.Requirement)
		g.Expect(row.Source).To(ContainSubstring("/"+string(r.Claim)+"/"), "%s lies in the folder of another claim", row.ID)
	}
	id := regexp.MustCompile(`\b[SBGMDRPVJ][0-9]{1,2}\b`)
	for _, name := range files(t) {
		if path.Ext(name) != ".md" {
			continue
		}
		b, err := os.ReadFile(name)
		g.Expect(err).NotTo(HaveOccurred())
		for _, n := range id.FindAllString(string(b), -1) {
			_, ok := m.Requirement(matrix.RequirementID(n))
			g.Expect(ok || n == "M20").To(BeTrue(), "%s names %s, and there is no such requirement", name, n) // M20 is the example of docs/rows.md
		}
	}
}

// A mutant that names no row, no requirement or no reason that there is would be killed by nothing, or for nothing.
func TestMutants_name_what_exists(t *testing.T) {
	g := NewWithT(t)
	m := embedded(t)
	seen := map[string]bool{}
	for _, x := range mutant.All() {
		g.Expect(seen[x.Name]).To(BeFalse(), "%s is there twice", x.Name)
		seen[x.Name] = true
		g.Expect(x.Text).NotTo(BeEmpty(), x.Name)
		g.Expect(x.Kills).NotTo(BeEmpty(), "%s declares what it is killed for", x.Name)
		for _, k := range x.Kills {
			_, ok := m.Requirement(matrix.RequirementID(k.Requirement))
			g.Expect(ok).To(BeTrue(), "%s: requirement %s", x.Name, k.Requirement)
			g.Expect(evidence.Reasons()).To(ContainElement(evidence.Reason(k.Reason)), x.Name)
		}
		for _, pattern := range x.Rows {
			met := slices.ContainsFunc(m.Rows(), func(r matrix.Row) bool {
				for _, s := range []string{string(r.ID), r.Stem, string(r.Requirement)} {
					if ok, err := path.Match(pattern, s); err == nil && ok {
						return true
					}
				}
				return false
			})
			g.Expect(met).To(BeTrue(), "%s: no row is met by %q", x.Name, pattern)
		}
	}
	g.Expect(len(seen)).To(BeNumerically(">", 10))
}

// withoutMutant are the engine-duty requirements that rows prove and that no mutant is killed for yet: checks that were never seen failing. The list
// may only shrink, and a release policy refuses the kill table as long as it is not empty (J6).
var withoutMutant = []string{"B1", "B17", "B9", "G17", "M1", "M14", "M15", "R1", "R6", "S12"}

// Every engine-duty requirement that has rows has a mutant that declares to be killed for it; those that still lack one are named above, and no others.
func TestRequirements_with_rows_have_a_mutant(t *testing.T) {
	g := NewWithT(t)
	plan, err := embedded(t).Plan(matrix.PlanRequest{Engine: "chromium", Product: engine.ProductChromium, Environment: "x11"})
	g.Expect(err).NotTo(HaveOccurred())
	declared := map[matrix.RequirementID]bool{}
	for _, x := range mutant.All() {
		for _, k := range x.Kills {
			if !x.Coward {
				declared[matrix.RequirementID(k.Requirement)] = true
			}
		}
	}
	bare := kills.Bare(*plan, declared)
	for _, id := range bare {
		g.Expect(withoutMutant).To(ContainElement(id), "rows prove %s, and no mutant is killed for it: write one in engine/mutant", id)
	}
	for _, id := range withoutMutant {
		g.Expect(bare).To(ContainElement(id), "%s has a mutant: take it off the list", id)
	}
}

// The cowards of the profiles are the program's, each declares what its decision must rest on, and that is core.
func TestCowards_rest_on_core(t *testing.T) {
	g := NewWithT(t)
	profiles := embedded(t).Profiles()
	core := slices.Clone(profiles.Hold)
	each, anyOf := profiles.CoreDeliver()
	core = slices.Concat(append([][]matrix.RequirementID{core, each}, anyOf...)...)
	var cowards []string
	for _, x := range mutant.All() {
		if !x.Coward {
			continue
		}
		cowards = append(cowards, x.Name)
		g.Expect(x.Rows).To(Equal([]string{"*"}), "%s must run every row", x.Name)
		for _, k := range x.Kills {
			g.Expect(core).To(ContainElement(matrix.RequirementID(k.Requirement)), "%s rests on %s, which is not core", x.Name, k.Requirement)
		}
	}
	g.Expect(cowards).To(ConsistOf(profiles.Cowards))
}

// One verb of the language, one function that does it.
func TestVerbs_and_steps_match(t *testing.T) {
	g := NewWithT(t)
	var language, done []string
	for _, v := range matrix.Verbs {
		language = append(language, v.Name)
	}
	for name, do := range steps.Verbs {
		g.Expect(do).NotTo(BeNil(), name)
		done = append(done, name)
	}
	g.Expect(done).To(ConsistOf(language))
}

var (
	fence   = regexp.MustCompile("(?ms)^(<!-- (?:example|excerpt|shape): [^>]*-->\n)?```([a-z]*)\n(.*?)^```$")
	excerpt = regexp.MustCompile(`^<!-- excerpt: (\S+) -->`)
	link    = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	target  = regexp.MustCompile("`make ([a-z-]+)")
)

// Whatever a page of documentation shows of a file is in that file, byte for byte; examples of rows are held by the tests of package matrix.
func TestDocs_excerpts_and_links_are_true(t *testing.T) {
	g := NewWithT(t)
	makefile, err := os.ReadFile("Makefile")
	g.Expect(err).NotTo(HaveOccurred())
	shown := 0
	for _, name := range files(t) {
		if path.Ext(name) != ".md" {
			continue
		}
		b, err := os.ReadFile(name)
		g.Expect(err).NotTo(HaveOccurred())
		for _, m := range fence.FindAllStringSubmatch(string(b), -1) {
			if of := excerpt.FindStringSubmatch(m[1]); of != nil {
				file, err := os.ReadFile(of[1])
				g.Expect(err).NotTo(HaveOccurred(), name)
				g.Expect(string(file)).To(ContainSubstring(m[3]), "%s shows what is not in %s", name, of[1])
				shown++
				continue
			}
			if m[2] == "yaml" || m[2] == "go" {
				g.Expect(m[1]).NotTo(BeEmpty(), "%s shows %s that no test holds:\n%s", name, m[2], m[3])
			}
		}
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			_, err := os.Stat(path.Join(path.Dir(name), m[1]))
			g.Expect(err).NotTo(HaveOccurred(), "%s links to %s", name, m[1])
		}
		for _, m := range target.FindAllStringSubmatch(string(b), -1) {
			g.Expect(string(makefile)).To(ContainSubstring("\n"+m[1]+":"), "%s says make %s", name, m[1])
		}
	}
	g.Expect(shown).To(BeNumerically(">", 0))
}

// The tree speaks of the project alone, and puts nothing off.
func TestText_is_finished_and_names_no_machine(t *testing.T) {
	machine := regexp.MustCompile(`(?:^|[\s"'=(` + "`" + `:])/(?:work|root|home/[a-z]{2,})/[A-Za-z0-9.]`)
	putOff := regexp.MustCompile(`\b(?:TO` + `DO|FIX` + `ME|X` + `XX)\b|(?i:\bfor n` + `ow\b|\bplace` + `holder|\bdum` + `my\b|\bnot imple` + `mented\b|\blorem ips` + `um\b)`)
	for _, name := range files(t) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(b, 0) >= 0 || name == "go.sum" || strings.Contains(name, "testdata/fuzz/") {
			continue
		}
		for i, line := range strings.Split(string(b), "\n") {
			if machine.MatchString(line) {
				t.Errorf("%s:%d names a path of one machine: %s", name, i+1, line)
			}
			if found := putOff.FindString(line); found != "" {
				t.Errorf("%s:%d says %q", name, i+1, found)
			}
		}
	}
}

// The guard and the judge share no code, so each has its own list of what breaks the desk: they must be the same.
func TestDesk_reasons_of_guard_and_judge_agree(t *testing.T) {
	g := NewWithT(t)
	guard := map[evidence.Reason]matrix.RequirementID{}
	for reason, requirement := range desktop.Requirements() {
		if requirement == "" {
			g.Expect(evidence.Reason(reason)).To(Equal(evidence.ReadDisclosed), "what breaks nothing is disclosed, or not there")
			continue
		}
		guard[evidence.Reason(reason)] = matrix.RequirementID(requirement)
	}
	g.Expect(guard).To(Equal(evidence.DeskReasons()))
	g.Expect(len(guard)).To(BeNumerically(">", 20))
	for reason := range guard {
		g.Expect(evidence.EngineAnswers(reason)).To(BeTrue(), string(reason))
	}
}
