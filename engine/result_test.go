package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
)

func TestParseResult(t *testing.T) {
	receipt := engine.Receipt{Operation: engine.OpClick, Effect: engine.EffectConfirmed, Route: engine.RouteKeyboard, Trust: engine.TrustTrustedInput,
		Delivery: engine.DeliveryBackground, Generation: "g", BrowserInitiated: []string{}}
	sound, err := json.Marshal(engine.Result{Status: engine.StatusOK, Receipt: &receipt})
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
	for name, c := range map[string]struct {
		raw  string
		want string // a part of the first problem; empty: none
	}{
		"sound_receipt":             {string(sound), ""},
		"sound_refusal":             {`{"status":"refused","refusal":{"code":"browser_ref_stale","operation":"browser_click","trigger":"ref_retired","detail":{"reason":"node"}}}`, ""},
		"no_status":                 {`{}`, "status"},
		"unknown_status":            {`{"status":"fine"}`, "status"},
		"unknown_field":             {`{"status":"ok","extra":1}`, "unknown field"},
		"refused_without_refusal":   {`{"status":"refused"}`, "without a refusal"},
		"ok_with_refusal":           {`{"status":"ok","refusal":{"code":"browser_ref_stale","operation":"x","trigger":"y","detail":{}}}`, "beside it"},
		"code_of_its_own":           {`{"status":"refused","refusal":{"code":"browser_tired","operation":"x","trigger":"y","detail":{}}}`, "not one of the sixteen"},
		"refusal_with_receipt":      {strings.Replace(string(sound), `"status":"ok"`, `"status":"refused","refusal":{"code":"browser_ref_stale","operation":"x","trigger":"y","detail":{}}`, 1), "payload"},
		"effect_of_its_own":         {strings.Replace(string(sound), `"confirmed"`, `"done"`, 1), "receipt.effect"},
		"flag_left_out":             {strings.Replace(string(sound), `"moved_pointer":false,`, ``, 1), "moved_pointer is missing"},
		"field_left_out":            {strings.Replace(string(sound), `"focus_emulated":false,`, ``, 1), "focus_emulated is missing"},
		"side_effects_as_a_list":    {strings.Replace(string(sound), `"side_effects":{`, `"side_effects":[],"x":{`, 1), "side_effects"},
		"not_an_object":             {`[1]`, "cannot unmarshal"},
		"not_json":                  {`{"status"`, "unexpected"},
		"larger_than_the_limit":     {`{"status":"` + strings.Repeat("x", engine.MaxResult) + `"}`, "at most"},
		"deeper_than_anybody_needs": {`{"status":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			_, problems := engine.ParseResult([]byte(c.raw))
			switch {
			case c.want != "":
				g.Expect(problems).To(gomega.ContainElement(gomega.ContainSubstring(c.want)))
			case name == "deeper_than_anybody_needs":
				g.Expect(problems).NotTo(gomega.BeEmpty())
			default:
				g.Expect(problems).To(gomega.BeEmpty())
			}
		})
	}
}

// FuzzParseResult holds that no bytes of an engine end us, and that what is called sound can be written and read again.
func FuzzParseResult(f *testing.F) {
	f.Add([]byte(`{"status":"refused","refusal":{"code":"browser_ref_stale","operation":"browser_click","trigger":"ref_retired","detail":{"reason":"node"}}}`))
	f.Add([]byte(`{"status":"ok","receipt":{"side_effects":null}}`))
	f.Add([]byte("{\"status\":\"ok\",\"tab\":{\"tab_id\":\"\xff\"}}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, problems := engine.ParseResult(raw)
		if len(problems) > 0 {
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("a sound result cannot be written: %v", err)
		}
		if _, problems := engine.ParseResult(again); len(problems) > 0 {
			t.Fatalf("a sound result is unsound when it is read again: %v", problems)
		}
	})
}

func TestDeclarationTotal(t *testing.T) {
	g := gomega.NewWithT(t)
	whole := engine.Declaration{}
	for _, c := range engine.AllCapabilities() {
		whole.Claims = append(whole.Claims, engine.Claim{Capability: c, Limitation: "undeclared"})
	}
	g.Expect(whole.Total()).To(gomega.Succeed())
	hole := whole
	hole.Claims = whole.Claims[1:]
	g.Expect(hole.Total()).NotTo(gomega.Succeed(), "a hole")
	both := whole
	both.Claims = append([]engine.Claim{}, whole.Claims...)
	both.Claims[3].Declared = true
	g.Expect(both.Total()).NotTo(gomega.Succeed(), "declared with a limitation")
	swapped := whole
	swapped.Claims = append([]engine.Claim{}, whole.Claims...)
	swapped.Claims[0], swapped.Claims[1] = swapped.Claims[1], swapped.Claims[0]
	g.Expect(swapped.Total()).NotTo(gomega.Succeed(), "out of order")
}
