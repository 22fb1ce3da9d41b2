package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

const (
	// MaxBytes is the greatest size of one file.
	MaxBytes = 1 << 20
	// MaxDepth is the deepest nesting of mappings and lists.
	MaxDepth = 32
)

// Read parses one file. The answer is false when the file is not one YAML document that can be read on; then problems say why, and the node must
// not be used. A file with a key that is there twice is read on, for the other problems that it has: it is good only when problems has none.
func Read(file string, data []byte, problems *Problems) (Node, bool) {
	before := problems.Len()
	if len(data) > MaxBytes {
		problems.Add(file, 1, "", "the file has %d bytes, at most %d are read", len(data), MaxBytes)
		return Node{}, false
	}
	checkBytes(file, data, problems)
	if problems.Len() > before {
		return Node{}, false
	}
	root, err := parse(data)
	if err != nil {
		line, message := place(err, data)
		problems.Add(file, line, "", "%s", message)
		return Node{}, false
	}
	if root == nil {
		problems.Add(file, 1, "", "the file is empty")
		return Node{}, false
	}
	top := root
	if root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
		top = root.Content[0]
	}
	t := tree{file: file, problems: problems}
	t.check(top, "", 1)
	if problems.Len()-t.repeated > before {
		return Node{}, false
	}
	// A key that is there twice is reported; the first is read all the same, so that what else is wrong is told at once.
	return Node{yaml: top, file: file, problems: problems}, true
}

// errSecond is a second document in one file.
var errSecond = errors.New("a second document begins after ---; one file holds one document")

// parse guards the parser: a panic of it on hostile bytes is an error of the file.
func parse(data []byte) (root *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, fmt.Errorf("not readable as YAML: %v", r)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var first yaml.Node
	switch err := dec.Decode(&first); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, err
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, err
	default:
		return nil, errSecond
	}
	if first.Kind == 0 || len(first.Content) == 1 && first.Content[0].Kind == yaml.ScalarNode && first.Content[0].Tag == "!!null" {
		return nil, nil
	}
	return &first, nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// parserMessage are the messages of the library's parser, as opposed to its scanner.
var parserMessage = regexp.MustCompile(`^did not find expected (<|'-'|key|node content|',')`)

// place finds the line of a parser's error and rewords it.
func place(err error, data []byte) (int, string) {
	if errors.Is(err, errSecond) {
		at := 1
		for i, line := range strings.Split(string(data), "\n") {
			if i > 0 && strings.HasPrefix(line, "---") {
				at = i + 1
			}
		}
		return at, err.Error()
	}
	m := yamlLine.FindStringSubmatch(strings.SplitN(err.Error(), "\n", 2)[0])
	if m == nil {
		return 1, err.Error()
	}
	line, _ := strconv.Atoi(m[1])
	message := m[2]
	if parserMessage.MatchString(message) {
		line++ // the library counts these from 0, and those of its scanner from 1
	}
	lines := strings.Split(string(data), "\n")
	for _, at := range []int{line, line - 1, line + 1} {
		if at >= 1 && at <= len(lines) && strings.Contains(lines[at-1], "${") && strings.Contains(message, "expected") {
			return at, message + `; write "${...}" in quotes inside { } and [ ]`
		}
	}
	return max(line, 1), message
}

// checkBytes reports what must not occur anywhere in a file, with the line of the first of each kind.
func checkBytes(file string, data []byte, problems *Problems) {
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		problems.Add(file, 1, "", "begins with a byte order mark; save as plain UTF-8")
		data = data[3:]
	}
	seen := map[string]bool{}
	report := func(line int, what string) {
		if !seen[what] {
			seen[what] = true
			problems.Add(file, line, "", "%s", what)
		}
	}
	line := 1
	for at := 0; at < len(data); {
		r, n := utf8.DecodeRune(data[at:])
		at += n
		switch {
		case r == '\n':
			line++
		case r == '\t':
			report(line, `tab character; indent with spaces, and write \t inside double quotes`)
		case r == '\r':
			report(line, "carriage return; end lines with a line feed alone")
		case r == 0:
			report(line, "NUL byte")
		case r == utf8.RuneError && n == 1:
			report(line, "bytes that are not UTF-8")
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			report(line, `control character; write it as \x.. inside double quotes`)
		case r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0xfeff:
			report(line, `hidden direction or order mark; write it as \u.... inside double quotes`)
		}
	}
}

// tree refuses what is legal YAML and means trouble.
type tree struct {
	file     string
	problems *Problems
	repeated int // keys that are there twice
}

func (t *tree) bad(line int, path, format string, args ...any) {
	t.problems.Add(t.file, line, path, format, args...)
}

func (t *tree) check(n *yaml.Node, path string, depth int) {
	if depth > MaxDepth {
		t.bad(n.Line, path, "nested deeper than %d levels", MaxDepth)
		return
	}
	if n.Kind == yaml.AliasNode {
		t.bad(n.Line, path, "alias *%s: anchors and aliases are not read; write the value out", n.Value)
		return
	}
	if n.Anchor != "" {
		t.bad(n.Line, path, "anchor &%s: anchors and aliases are not read; write the value out", n.Anchor)
	}
	if n.Style&yaml.TaggedStyle != 0 {
		t.bad(n.Line, path, "explicit tag %s: tags are not read", n.Tag)
	}
	switch n.Kind {
	case yaml.MappingNode:
		first := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if key.Kind != yaml.ScalarNode {
				t.bad(key.Line, path, "a key must be a word")
				if key.Kind == yaml.AliasNode || key.Anchor != "" {
					t.check(key, path, depth+1)
				}
				continue
			}
			at := join(path, key.Value)
			switch {
			case key.Tag == "!!merge" || key.Value == "<<":
				t.bad(key.Line, path, "merge key <<: merges are not read; write the fields out")
			case key.Anchor != "" || key.Style&yaml.TaggedStyle != 0:
				t.check(key, at, depth+1)
			default:
				// Words such as on and y are judged where fields are known, see [Node.Object].
				if what := otherType(key); what != "" && key.Tag != "!!str" {
					t.bad(key.Line, path, "the key %s reads as %s; quote it or use a word", key.Value, what)
				}
			}
			if line, twice := first[key.Value]; twice {
				t.repeated++
				t.bad(key.Line, path, "the key %q occurs twice, first on line %d", clip(key.Value), line)
			} else {
				first[key.Value] = key.Line
			}
			t.check(value, at, depth+1)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			t.check(item, fmt.Sprintf("%s[%d]", path, i), depth+1)
		}
	}
}

var (
	looseBool   = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false)$`)
	sexagesimal = regexp.MustCompile(`^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$`)
	looseNumber = regexp.MustCompile(`^[-+]?(0[xob]?[0-9a-fA-F_]+|[0-9][0-9_]*)$`)
)

// otherType says what a plain scalar may be read as by this or another YAML reader, other than as text; "" for text and for anything
// in quotes.
func otherType(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return ""
	}
	switch {
	case looseBool.MatchString(n.Value):
		return "a boolean"
	case n.Tag == "!!null":
		return "null"
	case n.Tag == "!!int" || n.Tag == "!!float" || sexagesimal.MatchString(n.Value) || looseNumber.MatchString(n.Value):
		return "a number"
	case n.Tag == "!!timestamp":
		return "a date"
	}
	return ""
}

func join(path, key string) string {
	key = clip(key)
	if path == "" {
		return key
	}
	return path + "." + key
}

// clip bounds what a message repeats of a file.
func clip(s string) string {
	const most = 60
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
