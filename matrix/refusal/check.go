package refusal

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/engine-acceptance/acceptance/engine"
)

// listed holds the closed lists that package engine knows as types, by field name.
var listed = map[string][]string{
	"engine_family": words(engine.FamilyChromium, engine.FamilyGecko, engine.FamilyWebKit, engine.FamilyUnknown),
	"product": words(engine.ProductChromium, engine.ProductChrome, engine.ProductEdge, engine.ProductFirefox, engine.ProductSafari,
		engine.ProductMiniBrowser, engine.ProductEpiphany, engine.ProductOther, engine.ProductNone),
	"required_protocol": words(engine.ProtocolCDP, engine.ProtocolBiDi, engine.ProtocolAutomation, engine.ProtocolUnknown),
}

// typed holds the lists of fields that may stay empty but hold one of the words of package engine when they are set.
var typed = map[string][]string{
	"requested_route":   words(engine.Routes...),
	"alternative_route": words(engine.Routes...),
	"route":             words(engine.Routes...),
	"action":            words(engine.Actions...),
	"state":             words(engine.States...),
}

func words[T ~string](values ...T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// accessor reads and fills one field of a detail. Counts are read as numbers; text is nil for them.
type accessor struct {
	text  func(*engine.Detail) string
	set   func(*engine.Detail, string)
	count func(*engine.Detail) int
}

func text[T ~string](field func(*engine.Detail) *T) accessor {
	return accessor{
		text: func(d *engine.Detail) string { return string(*field(d)) },
		set:  func(d *engine.Detail, v string) { *field(d) = T(v) },
	}
}

func count(field func(*engine.Detail) *int) accessor {
	return accessor{count: func(d *engine.Detail) int { return *field(d) }}
}

var accessors = map[string]accessor{
	"engine_family":     text(func(d *engine.Detail) *engine.Family { return &d.EngineFamily }),
	"product":           text(func(d *engine.Detail) *engine.Product { return &d.Product }),
	"required_protocol": text(func(d *engine.Detail) *engine.Protocol { return &d.RequiredProtocol }),
	"limitation":        text(func(d *engine.Detail) *string { return &d.Limitation }),
	"reason":            text(func(d *engine.Detail) *string { return &d.Reason }),
	"next_action":       text(func(d *engine.Detail) *string { return &d.NextAction }),
	"person_step":       text(func(d *engine.Detail) *string { return &d.PersonStep }),
	"field":             text(func(d *engine.Detail) *string { return &d.Field }),
	"generation":        text(func(d *engine.Detail) *string { return &d.Generation }),
	"candidate_count":   count(func(d *engine.Detail) *int { return &d.CandidateCount }),
	"attempts":          count(func(d *engine.Detail) *int { return &d.Attempts }),
	"requested_route":   text(func(d *engine.Detail) *engine.Route { return &d.RequestedRoute }),
	"alternative_route": text(func(d *engine.Detail) *engine.Route { return &d.AlternativeRoute }),
	"requested_chars":   count(func(d *engine.Detail) *int { return &d.RequestedChars }),
	"delivered_chars":   count(func(d *engine.Detail) *int { return &d.DeliveredChars }),
	"action":            text(func(d *engine.Detail) *engine.Action { return &d.Action }),
	"route":             text(func(d *engine.Detail) *engine.Route { return &d.Route }),
	"state":             text(func(d *engine.Detail) *engine.State { return &d.State }),
}

// maxCount bounds every count of a detail.
const maxCount = 1 << 30

// New makes the refusal of op for a trigger. It fills the code, and each closed field that has one value only. It returns an error when
// [Table.Check] would refuse the result.
func (t *Table) New(op engine.Operation, trigger string, detail engine.Detail) (*engine.Refusal, error) {
	tr, ok := t.triggers[trigger]
	if !ok {
		return nil, fmt.Errorf("refusal of %s: unknown trigger %q", op, trigger)
	}
	for field, values := range tr.Closed {
		if a := accessors[field]; len(values) == 1 && a.text != nil && a.text(&detail) == "" {
			a.set(&detail, values[0])
		}
	}
	r := &engine.Refusal{Code: tr.Code, Operation: op, Trigger: trigger, Detail: detail}
	if err := t.Check(r); err != nil {
		return nil, err
	}
	return r, nil
}

// Check returns every way in which a refusal departs from the table, or nil: the operation, the code that the trigger gives, fields that the
// trigger does not carry, values outside their closed lists, values that are too long or look like a number, path, URL or title.
func (t *Table) Check(r *engine.Refusal) error {
	if r == nil {
		return errors.New("refusal is missing")
	}
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf("refusal: "+format, args...)) }
	if !slices.Contains(engine.Operations, r.Operation) {
		bad("operation %s is not a public tool", quoted(string(r.Operation)))
	}
	tr, ok := t.triggers[r.Trigger]
	if !ok {
		bad("trigger %s is not in the table", quoted(r.Trigger))
		return errors.Join(problems...)
	}
	if r.Code != tr.Code {
		bad("code %s, want %s for trigger %s", quoted(string(r.Code)), tr.Code, tr.ID)
	}
	detail := r.Detail
	for name, a := range accessors {
		carried := slices.Contains(tr.Fields, name)
		if a.count != nil {
			switch n := a.count(&detail); {
			case n != 0 && !carried:
				bad("detail.%s is not carried by trigger %s", name, tr.ID)
			case n < 0 || n > maxCount:
				bad("detail.%s is %d, want 0 to %d", name, n, maxCount)
			}
			continue
		}
		v := a.text(&detail)
		closed, isClosed := tr.Closed[name]
		switch {
		case v == "" && isClosed:
			bad("detail.%s is missing, want one of %v", name, closed)
		case v == "":
		case !carried:
			bad("detail.%s is not carried by trigger %s", name, tr.ID)
		case isClosed && !slices.Contains(closed, v):
			bad("detail.%s is %s, want one of %v", name, quoted(v), closed)
		case typed[name] != nil && !slices.Contains(typed[name], v):
			bad("detail.%s is %s, want one of %v", name, quoted(v), typed[name])
		default:
			if err := word(v); err != nil {
				bad("detail.%s: %w", name, err)
			}
		}
	}
	return errors.Join(problems...)
}

// quoted prints at most 64 bytes of a value that may be hostile.
func quoted(v string) string {
	if len(v) > engine.MaxDetailValue {
		v = v[:engine.MaxDetailValue]
	}
	return fmt.Sprintf("%q", v)
}

// word says whether v may stand in a detail: at most [engine.MaxDetailValue] bytes of letters, digits, '_', '-', '.', '[' and ']', starting
// with a letter, with no run of three digits (a pid or a port).
func word(v string) error {
	if len(v) > engine.MaxDetailValue {
		return fmt.Errorf("value of %d bytes, want at most %d", len(v), engine.MaxDetailValue)
	}
	digits := 0
	for i := 0; i < len(v); i++ {
		c := v[i]
		switch {
		case c >= '0' && c <= '9':
			digits++
			if digits == 3 {
				return fmt.Errorf("value %s holds a number", quoted(v))
			}
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', strings.IndexByte("_-.[]", c) >= 0:
			digits = 0
		default:
			return fmt.Errorf("value %s is not a bounded word", quoted(v))
		}
		if i == 0 && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') {
			return fmt.Errorf("value %s does not start with a letter", quoted(v))
		}
	}
	return nil
}
