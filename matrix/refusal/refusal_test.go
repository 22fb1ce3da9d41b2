package refusal

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
)

func load(t *testing.T) *Table {
	t.Helper()
	table, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestEveryCodeHasATriggerAndNoOtherCodeExists(t *testing.T) {
	g := gomega.NewWithT(t)
	table := load(t)
	seen := map[engine.Code]bool{}
	for _, id := range table.Triggers() {
		tr, ok := table.Trigger(id)
		g.Expect(ok).To(gomega.BeTrue())
		seen[tr.Code] = true
	}
	g.Expect(seen).To(gomega.HaveLen(len(engine.Codes)))
	for _, c := range engine.Codes {
		g.Expect(seen).To(gomega.HaveKey(c))
	}
}

func TestEveryDetailFieldOfTheContractIsKnown(t *testing.T) {
	g := gomega.NewWithT(t)
	typ := reflect.TypeFor[engine.Detail]()
	g.Expect(accessors).To(gomega.HaveLen(typ.NumField()))
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		g.Expect(accessors).To(gomega.HaveKey(name))
	}
}

func TestParseRefusesDrift(t *testing.T) {
	good := string(source)
	for name, edit := range map[string][2]string{
		"missing_code":            {"browser_tab_required:", "browser_tab_wanted:"},
		"list_value_dropped":      {"product: [chromium, ", "product: ["},
		"unknown_list":            {"lists:\n", "lists:\n  colour: [red]\n"},
		"unknown_field":           {"detail: [candidate_count]", "detail: [candidates]"},
		"duplicate_trigger":       {"id: wrong_target", "id: tab_gone"},
		"trigger_without_when":    {`{id: ref_retired, when: "newer snapshot, document changed, node gone or another, frame gone", `, `{id: ref_retired, `},
		"unknown_top_level_field": {"codes:\n", "colour: red\ncodes:\n"},
		"path_as_value":           {"[closed, renderer_crashed]", "[closed, /tmp/x]"},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			bad := strings.Replace(good, edit[0], edit[1], 1)
			g.Expect(bad).NotTo(gomega.Equal(good), "the edit must apply")
			_, err := Parse(strings.NewReader(bad))
			g.Expect(err).To(gomega.HaveOccurred())
		})
	}
	g := gomega.NewWithT(t)
	_, err := Parse(bytes.NewReader(bytes.Repeat([]byte("# long\n"), maxSource)))
	g.Expect(err).To(gomega.HaveOccurred())
}

func TestNewFillsTheCodeAndTheOnlyValue(t *testing.T) {
	g := gomega.NewWithT(t)
	r, err := load(t).New(engine.OpClick, "undeclared", engine.Detail{Action: engine.ActionClick, Route: engine.RouteKeyboard, State: engine.StateCovered})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(r.Code).To(gomega.Equal(engine.CodeActionUnavailable))
	g.Expect(r.Detail.Limitation).To(gomega.Equal("undeclared"))
}

func TestCheckRefusesWhatTheTableDoesNotAllow(t *testing.T) {
	table := load(t)
	stale := func(d engine.Detail) *engine.Refusal {
		return &engine.Refusal{Code: engine.CodeBindingStale, Operation: engine.OpClick, Trigger: "generation_changed", Detail: d}
	}
	g := gomega.NewWithT(t)
	g.Expect(table.Check(stale(engine.Detail{Reason: "window", Generation: "g-abc", NextAction: "prepare"}))).To(gomega.Succeed())
	for name, r := range map[string]*engine.Refusal{
		"nothing":           nil,
		"code":              {Code: engine.CodeRefStale, Operation: engine.OpClick, Trigger: "generation_changed", Detail: engine.Detail{Reason: "window"}},
		"operation":         {Code: engine.CodeBindingStale, Operation: "rm", Trigger: "generation_changed", Detail: engine.Detail{Reason: "window"}},
		"trigger":           {Code: engine.CodeBindingStale, Operation: engine.OpClick, Trigger: "because"},
		"missing_reason":    stale(engine.Detail{}),
		"reason":            stale(engine.Detail{Reason: "mood"}),
		"foreign_field":     stale(engine.Detail{Reason: "window", Limitation: "covered"}),
		"foreign_count":     stale(engine.Detail{Reason: "window", CandidateCount: 2}),
		"pid":               stale(engine.Detail{Reason: "window", Generation: "g-12345"}),
		"path":              stale(engine.Detail{Reason: "window", NextAction: "/home/x"}),
		"url":               stale(engine.Detail{Reason: "window", NextAction: "http://x"}),
		"long":              stale(engine.Detail{Reason: "window", Generation: strings.Repeat("g", 65)}),
		"negative":          {Code: engine.CodeTabRequired, Operation: engine.OpClick, Trigger: "tab_required", Detail: engine.Detail{CandidateCount: -1}},
		"route_fields_gone": {Code: engine.CodeRouteUnavailable, Operation: engine.OpPrepare, Trigger: "environment", Detail: engine.Detail{Limitation: "no_display"}},
		"action_word":       {Code: engine.CodeActionUnavailable, Operation: engine.OpClick, Trigger: "undeclared", Detail: engine.Detail{Limitation: "undeclared", Action: "dance"}},
	} {
		t.Run(name, func(t *testing.T) { gomega.NewWithT(t).Expect(table.Check(r)).NotTo(gomega.Succeed()) })
	}
	_, err := table.New(engine.OpClick, "because", engine.Detail{})
	g.Expect(err).To(gomega.HaveOccurred())
}

// FuzzCheck holds that no refusal makes Check panic, and that what it lets through is bounded.
func FuzzCheck(f *testing.F) {
	table, err := Load()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"code":"browser_binding_stale","operation":"browser_click","trigger":"generation_changed","detail":{"reason":"window"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r engine.Refusal
		if json.Unmarshal(data, &r) != nil || table.Check(&r) != nil {
			return
		}
		for _, a := range accessors {
			if a.text == nil {
				continue
			}
			if v := a.text(&r.Detail); len(v) > engine.MaxDetailValue || strings.ContainsAny(v, "/:?%@ ") {
				t.Fatalf("let %q through", v)
			}
		}
	})
}
