package waiver_test

import (
	"bytes"
	"crypto/ed25519"
	_ "embed"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/engine-acceptance/acceptance/evidence/statement"
	"github.com/engine-acceptance/acceptance/evidence/waiver"
	"github.com/engine-acceptance/acceptance/matrix/canonical"
)

//go:embed testdata/waiver.yaml
var written string

func TestParse(t *testing.T) {
	g := gomega.NewWithT(t)
	w, err := waiver.Parse("waiver.yaml", []byte(written))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(w.Losses).To(gomega.Equal([]waiver.Loss{{Kind: "row", Name: "drag[state=covered]", How: "lost"}}))
	g.Expect(w.Until()).To(gomega.Equal(time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)))
	bad := strings.NewReplacer("owner: ada\n", "ownr: ada\n", strings.Repeat("a", 64), "x", "2027-01-31", "soon", "kind: row", "kind: raw").Replace(written)
	_, err = waiver.Parse("waiver.yaml", []byte(bad))
	for _, want := range []string{"waiver.yaml:4: ", "owner", `did you mean "row"`, "sha256 of the baseline's manifest", `such as "2027-01-31"`} {
		g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(want)))
	}
	_, err = waiver.Parse("waiver.yaml", []byte(written[:strings.Index(written, "losses")]+"losses: []\n"))
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("waives nothing")))
	_, err = waiver.Parse("waiver.yaml", []byte(written+`  - {kind: row, name: "drag[state=covered]", how: lost}`+"\n"))
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("occurs twice")))
}

func TestOpen(t *testing.T) {
	g := gomega.NewWithT(t)
	pub, key, err := ed25519.GenerateKey(nil)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	other, _, err := ed25519.GenerateKey(nil)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	w, err := waiver.Parse("waiver.yaml", []byte(written))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	sealed, err := w.Seal(key)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	got, signer, checked, err := waiver.Open(sealed, pub)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(got).To(gomega.Equal(w))
	g.Expect(signer).To(gomega.Equal(statement.KeyID(pub)))
	g.Expect(checked).To(gomega.BeTrue())
	_, _, checked, err = waiver.Open(sealed, nil)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(checked).To(gomega.BeFalse())
	_, _, _, err = waiver.Open(sealed, other)
	g.Expect(err).To(gomega.HaveOccurred())
	_, _, _, err = waiver.Open([]byte(written), pub)
	g.Expect(err).To(gomega.MatchError(waiver.ErrUnsigned))
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		if _, _, _, err := waiver.Open(bad, pub); err == nil {
			t.Fatalf("byte %d (%q) changed: accepted", i, sealed[i])
		}
	}
	// Whatever a signer signs, a document that says too little is none.
	for _, change := range []func(*waiver.Waiver){
		func(w *waiver.Waiver) { w.Format = "acceptance.waiver/v0" }, func(w *waiver.Waiver) { w.Baseline = "" }, func(w *waiver.Waiver) { w.Owner = "" },
		func(w *waiver.Waiver) { w.Reason = "" }, func(w *waiver.Waiver) { w.Expires = "never" }, func(w *waiver.Waiver) { w.Losses = nil },
	} {
		bad := w
		change(&bad)
		_, err := bad.Seal(key)
		g.Expect(err).To(gomega.HaveOccurred())
		raw, err := canonical.Marshal(bad)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		envelope, err := statement.Seal(waiver.PayloadType, raw, key)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		_, _, _, err = waiver.Open(envelope, pub)
		g.Expect(err).To(gomega.HaveOccurred(), string(raw))
	}
}

// The published schema takes what the program writes, and refuses what it refuses.
func TestSchemaIsPublished(t *testing.T) {
	g := gomega.NewWithT(t)
	raw, err := os.ReadFile("schema.json")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	c := jsonschema.NewCompiler()
	g.Expect(c.AddResource("schema.json", doc)).To(gomega.Succeed())
	schema, err := c.Compile("schema.json")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	w, err := waiver.Parse("waiver.yaml", []byte(written))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	valid := func(change func(map[string]any)) error {
		b, err := json.Marshal(w)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		m := map[string]any{}
		g.Expect(json.Unmarshal(b, &m)).To(gomega.Succeed())
		change(m)
		return schema.Validate(m)
	}
	g.Expect(valid(func(map[string]any) {})).To(gomega.Succeed())
	for _, kind := range waiver.Kinds {
		g.Expect(valid(func(m map[string]any) { m["losses"].([]any)[0].(map[string]any)["kind"] = kind })).To(gomega.Succeed(), kind)
	}
	g.Expect(valid(func(m map[string]any) { m["more"] = 1 })).NotTo(gomega.Succeed())
	g.Expect(valid(func(m map[string]any) { delete(m, "owner") })).NotTo(gomega.Succeed())
	g.Expect(valid(func(m map[string]any) { m["expires"] = "soon" })).NotTo(gomega.Succeed())
	g.Expect(valid(func(m map[string]any) { m["losses"] = []any{} })).NotTo(gomega.Succeed())
	g.Expect(valid(func(m map[string]any) { m["losses"].([]any)[0].(map[string]any)["kind"] = "hope" })).NotTo(gomega.Succeed())
}
