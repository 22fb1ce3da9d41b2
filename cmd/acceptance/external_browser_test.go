//go:build browser

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
)

// stranger writes the file of an engine from elsewhere beside the programs that the tests run, where an ordinary uid may execute what lies there.
func stranger(t *testing.T, name, command, mapping string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "matrix", "testdata", "external", "acme.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("engine: acme", "engine: "+name, "[./acme-engine, --stdio]", command, "mapping: names.yaml", mapping).Replace(string(raw))
	file := filepath.Join(filepath.Dir(built), name+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// An engine from elsewhere is a command that speaks the engine's tools over MCP: our own program as such a command, and one whose tools and fields have
// other names, pass the rows that our engine passes, and the bundle names them as external.
func TestRun_engine_from_elsewhere(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := filepath.Dir(built)
	renamed := filepath.Join(dir, "acme-engine")
	out, err := exec.Command("go", "build", "-o", renamed, "./testdata/renamed").CombinedOutput()
	g.Expect(err).NotTo(gomega.HaveOccurred(), string(out))
	names, err := os.ReadFile(filepath.Join("..", "..", "matrix", "testdata", "external", "names.yaml"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(dir, "names.yaml"), names, 0o600)).To(gomega.Succeed())
	for name, c := range map[string]struct{ command, mapping, rows string }{
		"plainly": {"[./" + filepath.Base(built) + ", engine, serve, chromium]", "", "type-insert[state=covered]"},
		"acme":    {"[./acme-engine, " + built + ", engine, serve, chromium]", "mapping: names.yaml", "type-insert[state=covered],click-keyboard[state=covered]"},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			bundle := filepath.Join(t.TempDir(), "bundle")
			a := begin(t, nil, "run", "--engine", stranger(t, name, c.command, c.mapping), "--rows", c.rows, "--out", bundle)
			g.Expect(a.end()).To(gomega.Equal(exitOK), a.err.String()+a.out.String())
			// An engine from elsewhere is started where it lies, so that no copy of it is among what is seen.
			g.Eventually(a.left, goneBudget, 100*time.Millisecond).Should(gomega.BeEmpty())
			g.Expect(call(t, static, "verify", bundle).code).To(gomega.Equal(exitOK))
			raw, err := os.ReadFile(filepath.Join(bundle, "provenance.json"))
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(string(raw)).To(gomega.ContainSubstring(`"name":"` + name + `"`))
			if name == "acme" {
				g.Expect(string(raw)).To(gomega.ContainSubstring(`"artifact":"external"`))
				g.Expect(string(raw)).To(gomega.ContainSubstring(digestOf(t, renamed)))
			}
		})
	}
	// The same engine without its mapping has no such tools, and that is the engine's file's fault, not a pass.
	t.Run("without_its_mapping", func(t *testing.T) {
		g := gomega.NewWithT(t)
		a := begin(t, nil, "run", "--engine", stranger(t, "unmapped", "[./acme-engine, "+built+", engine, serve, chromium]", ""), "--rows", "type-insert[state=covered]",
			"--out", filepath.Join(t.TempDir(), "bundle"))
		g.Expect(a.end()).NotTo(gomega.Equal(exitOK), a.err.String()+a.out.String())
	})
}
