package refusal

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"gopkg.in/yaml.v3"

	"github.com/engine-acceptance/acceptance/engine"
)

//go:embed refusals.yaml
var source []byte

// maxSource bounds the table file in bytes.
const maxSource = 1 << 16

// Table is the loaded vocabulary. It is immutable and safe for concurrent use.
type Table struct {
	triggers map[string]Trigger
	ids      []string
	lists    map[string][]string
}

// Trigger is one entry of the table.
type Trigger struct {
	ID   string
	Code engine.Code
	// When says in words what the trigger stands for.
	When string
	// Fields are the names of the detail fields that the trigger may carry, sorted.
	Fields []string
	// Closed holds, for each field with a closed list, its values. A field in Closed must be set.
	Closed map[string][]string
}

type document struct {
	Lists map[string][]string  `yaml:"lists"`
	Codes map[string]codeEntry `yaml:"codes"`
}

type codeEntry struct {
	Detail   []string               `yaml:"detail"`
	Triggers []map[string]yaml.Node `yaml:"triggers"`
}

// Load reads the embedded table.
func Load() (*Table, error) { return Parse(bytes.NewReader(source)) }

// Parse reads a table strictly and reports every problem at once. The input is bounded to 64 KiB.
func Parse(r io.Reader) (*Table, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxSource+1))
	if err != nil {
		return nil, fmt.Errorf("read refusal table: %w", err)
	}
	if len(data) > maxSource {
		return nil, fmt.Errorf("refusal table is larger than %d bytes", maxSource)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var doc document
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("refusal table: %w", err)
	}
	if err := dec.Decode(new(document)); !errors.Is(err, io.EOF) {
		return nil, errors.New("refusal table: more than one document")
	}
	t := &Table{triggers: map[string]Trigger{}, lists: doc.Lists}
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("refusal table: "+format, args...))
	}
	for _, c := range engine.Codes {
		if _, ok := doc.Codes[string(c)]; !ok {
			bad("codes: %s is missing", c)
		}
	}
	for name, values := range doc.Lists {
		want, ok := listed[name]
		if !ok {
			bad("lists.%s: unknown list", name)
		} else if !slices.Equal(values, want) {
			bad("lists.%s: got %v, want %v", name, values, want)
		}
	}
	for name := range listed {
		if _, ok := doc.Lists[name]; !ok {
			bad("lists.%s is missing", name)
		}
	}
	names := make([]string, 0, len(doc.Codes))
	for name := range doc.Codes {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		entry := doc.Codes[name]
		if !slices.Contains(engine.Codes, engine.Code(name)) {
			bad("codes.%s: unknown code", name)
		}
		if len(entry.Triggers) == 0 {
			bad("codes.%s: no trigger", name)
		}
		for i, raw := range entry.Triggers {
			trigger, err := parseTrigger(engine.Code(name), entry.Detail, raw, doc.Lists)
			if err != nil {
				bad("codes.%s.triggers[%d]: %w", name, i, err)
				continue
			}
			if old, ok := t.triggers[trigger.ID]; ok {
				bad("codes.%s.triggers[%d]: %s already belongs to %s", name, i, trigger.ID, old.Code)
			}
			t.triggers[trigger.ID] = trigger
			t.ids = append(t.ids, trigger.ID)
		}
	}
	sort.Strings(t.ids)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return t, nil
}

func parseTrigger(code engine.Code, shared []string, raw map[string]yaml.Node, lists map[string][]string) (Trigger, error) {
	tr := Trigger{Code: code, Closed: map[string][]string{}}
	fields := append([]string(nil), shared...)
	keys := make([]string, 0, len(raw))
	for k := range raw {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, key := range keys {
		node := raw[key]
		switch key {
		case "id", "when":
			var s string
			if err := node.Decode(&s); err != nil || s == "" {
				return tr, fmt.Errorf("%s: want a word", key)
			}
			if key == "id" {
				tr.ID = s
			} else {
				tr.When = s
			}
		case "detail", "detail_extra":
			var more []string
			if err := node.Decode(&more); err != nil {
				return tr, fmt.Errorf("%s: %w", key, err)
			}
			fields = append(fields, more...)
		default:
			var values []string
			if err := node.Decode(&values); err != nil || len(values) == 0 {
				return tr, fmt.Errorf("%s: want a list of values", key)
			}
			for _, v := range values {
				if err := word(v); err != nil {
					return tr, fmt.Errorf("%s: %w", key, err)
				}
			}
			fields = append(fields, key)
			tr.Closed[key] = values
		}
	}
	if tr.ID == "" || tr.When == "" {
		return tr, errors.New("id and when are required")
	}
	slices.Sort(fields)
	tr.Fields = slices.Compact(fields)
	for _, f := range tr.Fields {
		if _, ok := accessors[f]; !ok {
			return tr, fmt.Errorf("unknown detail field %q", f)
		}
		if values, ok := lists[f]; ok {
			tr.Closed[f] = values
		}
	}
	return tr, nil
}

// Triggers lists the ids of all triggers, sorted.
func (t *Table) Triggers() []string { return slices.Clone(t.ids) }

// Trigger looks one trigger up.
func (t *Table) Trigger(id string) (Trigger, bool) {
	tr, ok := t.triggers[id]
	return tr, ok
}

// Code is the code that a trigger gives; false for a trigger that the table lacks.
func (t *Table) Code(trigger string) (engine.Code, bool) {
	tr, ok := t.triggers[trigger]
	return tr.Code, ok
}

// Fields are the detail fields that a refusal of the trigger carries: those with a closed list of values, and the others, sorted.
func (t *Table) Fields(trigger string) (closed, open []string) {
	tr := t.triggers[trigger]
	for _, f := range tr.Fields {
		if _, ok := tr.Closed[f]; ok {
			closed = append(closed, f)
		} else {
			open = append(open, f)
		}
	}
	return closed, open
}
