package mcp_test

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
)

var update = flag.Bool("update", false, "write the published schema anew")

// TestResultSchemaIsPublished keeps the schema that readers of a bundle and owners of other engines use in step with the contract.
func TestResultSchemaIsPublished(t *testing.T) {
	g := gomega.NewWithT(t)
	schema, err := jsonschema.For[engine.Result](nil)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	now, err := json.MarshalIndent(schema, "", "  ")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	now = append(now, '\n')
	const path = "schema/result.json"
	if *update {
		g.Expect(os.WriteFile(path, now, 0o644)).To(gomega.Succeed())
	}
	kept, err := os.ReadFile(path)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(string(kept)).To(gomega.Equal(string(now)), "run go test ./engine/mcp -update")

	// The schema must be able to fail: a receipt without its effect is refused.
	resolved, err := schema.Resolve(nil)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(resolved.Validate(map[string]any{"status": "ok", "receipt": map[string]any{"operation": "browser_click"}})).NotTo(gomega.Succeed())
	g.Expect(resolved.Validate(map[string]any{"status": "ok", "surprise": 1})).NotTo(gomega.Succeed())
}
