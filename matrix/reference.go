package matrix

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// TabRef is a parsed tab reference. Either Target and Tab are set ("w/tab 2": the second tab of the window bound as w), or Name (a tab
// that open_tab named).
type TabRef struct {
	Target string
	// Tab counts from 1.
	Tab  int
	Name string
}

// String returns the form that rows use.
func (t TabRef) String() string {
	if t.Name != "" {
		return t.Name
	}
	return fmt.Sprintf("%s/tab %d", t.Target, t.Tab)
}

// NodeRef is a parsed node reference: s/textbox "Full name" is the textbox of that name in the snapshot s.
type NodeRef struct {
	Snapshot string
	Role     string
	Name     string
}

// String returns the form that rows use.
func (n NodeRef) String() string { return n.Snapshot + "/" + n.Role + " " + strconv.Quote(n.Name) }

var (
	nameForm = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)
	tabForm  = regexp.MustCompile(`^([a-z][a-z0-9_-]{0,31})/tab ([1-9][0-9]{0,2})$`)
	nodeForm = regexp.MustCompile(`^([a-z][a-z0-9_-]{0,31})/([a-z]{1,32}) (".*")$`)
	// tabPageForm is a page of the desk, with what its own query says, "swap.html?every=40".
	tabPageForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,48}\.html(\?[a-z0-9-]+=[A-Za-z0-9._-]+(&[a-z0-9-]+=[A-Za-z0-9._-]+)*)?$`)
	pageForm    = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,48}\.html$`)
	// controlForm is the shape of a data-control name of a fixture page.
	controlForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,48}$`)
)

// ParseTabRef reads "w/tab 2", or the name of an opened tab.
func ParseTabRef(s string) (TabRef, error) {
	if m := tabForm.FindStringSubmatch(s); m != nil {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			return TabRef{}, err
		}
		return TabRef{Target: m[1], Tab: n}, nil
	}
	if nameForm.MatchString(s) {
		return TabRef{Name: s}, nil
	}
	return TabRef{}, fmt.Errorf("%q is no tab reference; want \"w/tab 1\" or the name of an opened tab", bounded(s))
}

// ParseNodeRef reads s/textbox "Full name". The name is quoted as in Go and JSON.
func ParseNodeRef(s string) (NodeRef, error) {
	m := nodeForm.FindStringSubmatch(s)
	if m == nil {
		return NodeRef{}, fmt.Errorf("%q is no node reference; want s/role \"name\", in single quotes", bounded(s))
	}
	name, err := strconv.Unquote(m[3])
	if err != nil || !utf8.ValidString(name) {
		return NodeRef{}, fmt.Errorf("%q is no node reference: the name is not well quoted", bounded(s))
	}
	return NodeRef{Snapshot: m[1], Role: m[2], Name: name}, nil
}

// Variable is one {{kind name}} in a step's text. The worker replaces it; the plan keeps it as written.
type Variable struct {
	Kind string
	Name string
}

// variableKinds is the closed list: kind to the shape of its name (nil: none).
var variableKinds = map[string]*regexp.Regexp{
	// canary: a secret of the run; its value is never in the plan, and observations hold a keyed digest.
	"canary": regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`),
	// page: the address of a fixture page.
	"page": pageForm,
	// decoy: the product of the row's decoy.
	"decoy": regexp.MustCompile(`^$`),
	// round: the number of the round of the block around it, from 1.
	"round": regexp.MustCompile(`^$`),
}

// VariableKinds lists the kinds of variables, sorted.
func VariableKinds() []string { return []string{"canary", "decoy", "page", "round"} }

// Variables finds the {{variables}} of a text. An unknown kind, a bad name or unbalanced braces is an error.
func Variables(s string) ([]Variable, error) {
	var found []Variable
	for rest := s; ; {
		open := strings.Index(rest, "{{")
		if open < 0 {
			if strings.Contains(rest, "}}") {
				return nil, fmt.Errorf("}} without {{")
			}
			return found, nil
		}
		end := strings.Index(rest[open:], "}}")
		if end < 0 || strings.Contains(rest[:open], "}}") {
			return nil, fmt.Errorf("{{ and }} do not match")
		}
		kind, name, _ := strings.Cut(rest[open+2:open+end], " ")
		form, ok := variableKinds[kind]
		if !ok {
			return nil, unknownVariable(kind)
		}
		if !form.MatchString(name) {
			return nil, fmt.Errorf("{{%s}} wants a name of the form %s, got %q", kind, form, bounded(name))
		}
		found = append(found, Variable{Kind: kind, Name: name})
		rest = rest[open+end+2:]
	}
}

// bounded keeps a message short.
func bounded(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
