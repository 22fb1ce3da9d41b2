package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// MaxResult is the greatest size of one result, in bytes. A larger one is malformed.
const MaxResult = 8 << 20

// ParseResult reads a result that an engine sent. The engine is not trusted: an unknown field, a word outside its closed list, a missing
// field of a receipt, a refusal beside a payload are each named in problems. The result holds what could be read; it is meaningful only
// where problems is empty.
func ParseResult(raw []byte) (r Result, problems []string) {
	if len(raw) > MaxResult {
		return Result{}, []string{fmt.Sprintf("result of %d bytes, at most %d are read", len(raw), MaxResult)}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		// Keep what a lenient reader makes of it: a judge wants to say what the engine meant, too.
		r = Result{}
		if lenient := json.Unmarshal(raw, &r); lenient != nil {
			return Result{}, []string{bounded(lenient.Error())}
		}
		problems = append(problems, bounded(err.Error()))
	}
	switch r.Status {
	case StatusOK:
		if r.Refusal != nil {
			problems = append(problems, "status ok with a refusal beside it")
		}
	case StatusRefused:
		switch {
		case r.Refusal == nil:
			problems = append(problems, "status refused without a refusal")
		case !slices.Contains(Codes, r.Refusal.Code):
			problems = append(problems, fmt.Sprintf("refusal code %q is not one of the sixteen", bounded(string(r.Refusal.Code))))
		}
		if r.Receipt != nil || r.Target != nil || r.Snapshot != nil || r.Prepared != nil || r.Tab != nil {
			problems = append(problems, "a refusal with a payload beside it")
		}
	default:
		problems = append(problems, fmt.Sprintf("status %q", bounded(string(r.Status))))
	}
	if r.Receipt != nil {
		problems = append(problems, receiptProblems(raw, *r.Receipt)...)
	}
	return r, problems
}

// receiptProblems checks that every published field is there and every word is of its closed list.
func receiptProblems(raw []byte, r Receipt) []string {
	var problems []string
	word := func(field, got string, ok bool) {
		if !ok {
			problems = append(problems, fmt.Sprintf("receipt.%s is %q, which is not in the closed list", field, bounded(got)))
		}
	}
	word("operation", string(r.Operation), slices.Contains(Operations, r.Operation))
	word("effect", string(r.Effect), slices.Contains([]Effect{EffectConfirmed, EffectPartial, EffectUnverifiable, EffectSuspectedNoop, EffectUnknown}, r.Effect))
	word("route", string(r.Route), slices.Contains(Routes, r.Route))
	word("trust", string(r.Trust), slices.Contains([]Trust{TrustTrustedInput, TrustDOMEvent, TrustNone}, r.Trust))
	word("delivery", string(r.Delivery), slices.Contains(Deliveries, r.Delivery))
	for _, w := range r.BrowserInitiated {
		word("browser_initiated", w, slices.Contains(Initiated, w))
	}
	var tree struct {
		Receipt map[string]json.RawMessage `json:"receipt"`
	}
	if err := json.Unmarshal(raw, &tree); err != nil {
		return append(problems, bounded(err.Error()))
	}
	problems = append(problems, missing("receipt", tree.Receipt, reflect.TypeFor[Receipt]())...)
	var flags map[string]json.RawMessage
	if err := json.Unmarshal(tree.Receipt["side_effects"], &flags); err != nil {
		return append(problems, "receipt.side_effects is no object")
	}
	return append(problems, missing("receipt.side_effects", flags, reflect.TypeFor[SideEffects]())...)
}

// missing names the fields of t that are always present and are not in got.
func missing(path string, got map[string]json.RawMessage, t reflect.Type) []string {
	var problems []string
	for i := range t.NumField() {
		name, opts, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if _, there := got[name]; !there && opts == "" {
			problems = append(problems, fmt.Sprintf("%s.%s is missing", path, name))
		}
	}
	return problems
}

// bounded cuts hostile text to a length that can be printed.
func bounded(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
