package strict

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Node is one place in a file. The zero Node stands for a field that is not there: it reads as the zero value and reports nothing, so
// that callers need no branch for it.
type Node struct {
	yaml     *yaml.Node
	file     string
	path     string
	problems *Problems
	vars     map[string]string
}

// Exists says whether the field is there.
func (n Node) Exists() bool { return n.yaml != nil }

// File, Line and Path say where the node is; Line counts from 1.
func (n Node) File() string { return n.file }

// Line returns the line of the node, 0 for a node that is not there.
func (n Node) Line() int {
	if n.yaml == nil {
		return 0
	}
	return n.yaml.Line
}

// Path returns the field path, for example "rows[2].desk.person".
func (n Node) Path() string { return n.path }

// Bad reports a problem at the node.
func (n Node) Bad(format string, args ...any) {
	if n.problems != nil {
		n.problems.Add(n.file, n.Line(), n.path, format, args...)
	}
}

// With returns the node with ${name} variables that are replaced in every scalar below it.
func (n Node) With(vars map[string]string) Node {
	n.vars = vars
	return n
}

func (n Node) child(y *yaml.Node, path string) Node {
	return Node{yaml: y, file: n.file, path: path, problems: n.problems, vars: n.vars}
}

func kindName(y *yaml.Node) string {
	switch {
	case y.Kind == yaml.MappingNode:
		return "a mapping"
	case y.Kind == yaml.SequenceNode:
		return "a list"
	case y.Tag == "!!null" && y.Style == 0:
		return "nothing"
	default:
		return strconv.Quote(clip(y.Value))
	}
}

// IsList, IsObject and IsScalar tell the shapes apart.
func (n Node) IsList() bool { return n.yaml != nil && n.yaml.Kind == yaml.SequenceNode }

// IsObject is true for a mapping.
func (n Node) IsObject() bool { return n.yaml != nil && n.yaml.Kind == yaml.MappingNode }

// IsScalar is true for a single value.
func (n Node) IsScalar() bool { return n.yaml != nil && n.yaml.Kind == yaml.ScalarNode }

// Object is a mapping with a closed list of fields.
type Object struct {
	node   Node
	fields map[string]Node
	order  []string
}

// Object reads the node as a mapping; every key that is not allowed is reported with the nearest one that is.
func (n Node) Object(allowed ...string) Object {
	o := n.mapping()
	for _, key := range o.order {
		if !slices.Contains(allowed, key) {
			n.problems.Add(n.file, n.key(key).Line, n.path, "unknown field %q%s", clip(key), Hint(key, allowed))
		}
	}
	return o
}

// Map reads the node as a mapping with any keys; one that some readers take for a boolean must be quoted.
func (n Node) Map() Object {
	o := n.mapping()
	for _, key := range o.order {
		if y := n.key(key); otherType(y) != "" {
			n.problems.Add(n.file, y.Line, n.path, "the key %s reads as %s; quote it", key, otherType(y))
		}
	}
	return o
}

// key finds the YAML node of a key.
func (n Node) key(key string) *yaml.Node {
	for i := 0; i+1 < len(n.yaml.Content); i += 2 {
		if n.yaml.Content[i].Value == key {
			return n.yaml.Content[i]
		}
	}
	return n.yaml
}

func (n Node) mapping() Object {
	o := Object{node: n, fields: map[string]Node{}}
	if n.yaml == nil {
		return o
	}
	if n.yaml.Kind != yaml.MappingNode {
		n.Bad("got %s, want a mapping of fields", kindName(n.yaml))
		return o
	}
	for i := 0; i+1 < len(n.yaml.Content); i += 2 {
		key := n.yaml.Content[i].Value
		if _, twice := o.fields[key]; twice {
			continue // reported when the file was read
		}
		o.fields[key] = n.child(n.yaml.Content[i+1], join(n.path, key))
		o.order = append(o.order, key)
	}
	return o
}

// Keys lists the keys in file order.
func (o Object) Keys() []string { return o.order }

// Node is the mapping itself.
func (o Object) Node() Node { return o.node }

// Get returns a field, or the zero Node.
func (o Object) Get(key string) Node { return o.fields[key] }

// Need returns a field and reports it when it is not there.
func (o Object) Need(key string) Node {
	f, ok := o.fields[key]
	if !ok && o.node.yaml != nil && o.node.yaml.Kind == yaml.MappingNode {
		o.node.Bad("%s is missing", key)
	}
	return f
}

// List returns the items of a list; anything else but a missing field is reported.
func (n Node) List() []Node {
	if n.yaml == nil {
		return nil
	}
	if n.yaml.Kind != yaml.SequenceNode {
		n.Bad("got %s, want a list", kindName(n.yaml))
		return nil
	}
	items := make([]Node, len(n.yaml.Content))
	for i, y := range n.yaml.Content {
		items[i] = n.child(y, fmt.Sprintf("%s[%d]", n.path, i))
	}
	return items
}

var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// value returns the scalar with its variables replaced, and whether the whole scalar was one variable.
func (n Node) value() (text string, whole bool) {
	text = n.yaml.Value
	if !strings.Contains(text, "${") {
		return text, false
	}
	whole = variable.FindString(text) == text
	return variable.ReplaceAllStringFunc(text, func(m string) string {
		name := m[2 : len(m)-1]
		v, ok := n.vars[name]
		if !ok {
			known := make([]string, 0, len(n.vars))
			for k := range n.vars {
				known = append(known, k)
			}
			slices.Sort(known)
			n.Bad("unknown variable ${%s}%s", clip(name), Hint(name, known))
		}
		return v
	}), whole
}

// scalar reports anything but a scalar.
func (n Node) scalar(want string) bool {
	if n.yaml == nil {
		return false
	}
	if n.yaml.Kind != yaml.ScalarNode {
		n.Bad("got %s, want %s", kindName(n.yaml), want)
		return false
	}
	return true
}

// String reads text. A plain scalar that YAML readers take for something else must be quoted.
func (n Node) String() string {
	if !n.scalar("text") {
		return ""
	}
	if what := otherType(n.yaml); what != "" {
		if what == "null" {
			n.Bad("got nothing, want text; write \"\" for empty text")
		} else {
			n.Bad("%s reads as %s, want text; write it as %q", n.yaml.Value, what, n.yaml.Value)
		}
		return ""
	}
	text, _ := n.value()
	return text
}

// Text reads text that must not be empty.
func (n Node) Text() string {
	before := n.reported()
	s := n.String()
	if n.yaml != nil && strings.TrimSpace(s) == "" && n.reported() == before {
		n.Bad("is empty")
	}
	return s
}

func (n Node) reported() int {
	if n.problems == nil {
		return 0
	}
	return n.problems.calls
}

// Enum reads one word of a closed list.
func (n Node) Enum(words ...string) string {
	before := n.reported()
	s := n.String()
	if n.yaml == nil || n.reported() > before {
		return ""
	}
	if !slices.Contains(words, s) {
		n.Bad("unknown value %q%s", clip(s), Hint(s, words))
		return ""
	}
	return s
}

// Int reads a whole number within bounds, both inclusive.
func (n Node) Int(low, high int) int {
	if !n.scalar("a number") {
		return 0
	}
	text, whole := n.value()
	v, err := strconv.Atoi(text)
	if err != nil || !whole && n.yaml.Tag != "!!int" || strconv.Itoa(v) != text {
		n.Bad("got %s, want a whole number", kindName(n.yaml))
		return 0
	}
	if v < low || v > high {
		n.Bad("got %d, want %d to %d", v, low, high)
		return 0
	}
	return v
}

// Bool reads true or false, nothing else.
func (n Node) Bool() bool {
	if !n.scalar("true or false") {
		return false
	}
	text, whole := n.value()
	if text != "true" && text != "false" || !whole && n.yaml.Tag != "!!bool" {
		n.Bad("got %s, want true or false", kindName(n.yaml))
		return false
	}
	return text == "true"
}

// Duration reads a duration with its unit, above zero and at most high.
func (n Node) Duration(high time.Duration) time.Duration {
	if !n.scalar("a duration such as \"5s\"") {
		return 0
	}
	text, _ := n.value()
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		n.Bad("got %s, want a duration such as \"%ss\"", text, text)
		return 0
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		n.Bad("got %q, want a duration such as \"5s\"", clip(text))
	case d <= 0 || d > high:
		n.Bad("got %s, want more than 0s and at most %s", text, high)
	default:
		return d
	}
	return 0
}

// Words reads a list of words of a closed list, or a single word as a list of one; a word twice is reported.
func (n Node) Words(words ...string) []string {
	if n.IsScalar() {
		if w := n.Enum(words...); w != "" {
			return []string{w}
		}
		return nil
	}
	var got []string
	for _, item := range n.List() {
		w := item.Enum(words...)
		if w == "" {
			continue
		}
		if slices.Contains(got, w) {
			item.Bad("%q occurs twice", w)
			continue
		}
		got = append(got, w)
	}
	return got
}

// Plain returns the node as plain values: map[string]any, []any, string, int, bool, nil. Scalars keep the type that they are written in;
// what other readers read differently is reported.
func (n Node) Plain() any {
	if n.yaml == nil {
		return nil
	}
	switch n.yaml.Kind {
	case yaml.MappingNode:
		o := n.Map()
		m := make(map[string]any, len(o.order))
		for _, key := range o.order {
			m[key] = o.fields[key].Plain()
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.yaml.Content))
		for _, item := range n.List() {
			list = append(list, item.Plain())
		}
		return list
	}
	text, whole := n.value()
	if whole || n.yaml.Style != 0 {
		return text
	}
	switch {
	case n.yaml.Tag == "!!null":
		return nil
	case n.yaml.Tag == "!!bool" && (text == "true" || text == "false"):
		return text == "true"
	case n.yaml.Tag == "!!int":
		if v, err := strconv.Atoi(text); err == nil && strconv.Itoa(v) == text && v > -(1<<53) && v < 1<<53 {
			return v
		}
		n.Bad("%s is not a plain whole number below 2^53; quote it", text)
		return nil
	}
	if what := otherType(n.yaml); what != "" {
		n.Bad("%s reads as %s; quote it", text, what)
		return nil
	}
	return text
}
