package matrix

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/engine-acceptance/acceptance/matrix/strict"
)

// Removal is one expectation that was taken out of a row file, and the problems that the file has without it.
type Removal struct {
	// Row is the id of the row, and Path the place of the expectation, for example "rows[0].expect.effect[1].trusted".
	Row, Path string
	File      string
	Line      int
	// Problems are what is said without it; empty when nothing misses it.
	Problems []strict.Problem
}

// Removals takes every expectation out of every row of a matrix that loads, one at a time: each entry of a list, and each field. What a list or
// mapping holds alone is taken out with it. known are the fixture pages.
func Removals(fsys fs.FS, triggers Triggers) ([]Removal, error) {
	known, err := embeddedPages()
	if err != nil {
		return nil, err
	}
	m, r, err := load(fsys, triggers, known)
	if err != nil {
		return nil, err
	}
	return removals(fsys, m, r)
}

func removals(fsys fs.FS, m *Matrix, r *reader) ([]Removal, error) {
	var all []Removal
	for _, f := range m.files {
		claim, ok := strings.CutPrefix(path.Dir(f.Path), "rows/")
		if !ok {
			continue
		}
		data, err := fs.ReadFile(fsys, f.Path)
		if err != nil {
			return nil, err
		}
		found, err := removalsOf(f.Path, data, Claim(claim), r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// removalsOf takes the expectations out of one file.
func removalsOf(name string, data []byte, claim Claim, r *reader) ([]Removal, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, err
	}
	read := func() ([]strict.Problem, error) {
		text, err := yaml.Marshal(&root)
		if err != nil {
			return nil, err
		}
		var problems strict.Problems
		again := *r
		again.stems, again.rows = map[string]string{}, nil
		if top, ok := strict.Read(name, text, &problems); ok {
			again.file(top, claim, strings.TrimSuffix(path.Base(name), ".yaml"))
		}
		return problems.All(), nil
	}
	switch whole, err := read(); {
	case err != nil:
		return nil, err
	case len(whole) > 0:
		return nil, fmt.Errorf("written again, the file has a problem that it had not: %w", whole[0])
	}
	var all []Removal
	rows := valueAt(root.Content[0], "rows")
	every := rows.Content
	for i, row := range every {
		expect := valueAt(row, "expect")
		if expect == nil {
			continue
		}
		id := valueAt(row, "id").Value
		rows.Content = every[i : i+1] // the others say nothing about this one
		err := each(expect, fmt.Sprintf("rows[%d].expect", i), func(at string, line int) error {
			found, err := read()
			// Who takes an expectation out takes the name of its step out, too.
			found = slices.DeleteFunc(found, func(p strict.Problem) bool { return strings.HasPrefix(p.Message, namedForNothing) })
			for k := range found {
				found[k].Path = strings.Replace(found[k].Path, "rows[0]", fmt.Sprintf("rows[%d]", i), 1)
			}
			all = append(all, Removal{Row: id, Path: at, File: name, Line: line, Problems: found})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// valueAt finds the value of a key; nil when it is not there.
func valueAt(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// each takes every entry and every field below a node out, calls without, and puts it back. A list of words is one value: fewer of them ask
// for more, not for less.
func each(n *yaml.Node, at string, without func(at string, line int) error) error {
	step := 1
	if n.Kind == yaml.MappingNode {
		step = 2
	}
	whole := n.Content
	defer func() { n.Content = whole }()
	for i := 0; i < len(whole); i += step {
		value, where := whole[i+step-1], fmt.Sprintf("%s[%d]", at, i)
		if step == 2 {
			where = at + "." + whole[i].Value
		}
		words := value.Kind == yaml.SequenceNode && !slices.ContainsFunc(value.Content, func(c *yaml.Node) bool { return c.Kind != yaml.ScalarNode })
		if value.Kind != yaml.ScalarNode && !words {
			if err := each(value, where, without); err != nil {
				return err
			}
		}
		if len(whole) == step {
			continue // alone, it goes with what holds it
		}
		n.Content = slices.Concat(whole[:i:i], whole[i+step:])
		if err := without(where, value.Line); err != nil {
			return err
		}
		n.Content = whole
	}
	return nil
}
