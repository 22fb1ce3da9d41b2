package strict

import (
	"fmt"
	"sort"
	"strings"
)

// maxProblems bounds what one load reports; a hostile file cannot make the report larger than itself.
const maxProblems = 200

// Problem is one thing that is wrong with a file. Line counts from 1.
type Problem struct {
	File    string
	Line    int
	Path    string
	Message string
}

// Error reads file:line: path: message; the path is left out when the problem is the file's as a whole.
func (p Problem) Error() string {
	if p.Path == "" {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
	}
	return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Path, p.Message)
}

// Problems collects what is wrong. The zero value is empty and ready.
type Problems struct {
	list []Problem
	seen map[Problem]bool
	more int
	// calls counts every Add, repeated problems included.
	calls int
}

// Add reports one problem. The same problem at the same place is kept once, for a part of a file may be read several times.
func (p *Problems) Add(file string, line int, path, format string, args ...any) {
	p.calls++
	problem := Problem{File: file, Line: max(line, 1), Path: path, Message: fmt.Sprintf(format, args...)}
	if p.seen[problem] {
		return
	}
	if len(p.list) >= maxProblems {
		p.more++
		return
	}
	if p.seen == nil {
		p.seen = map[Problem]bool{}
	}
	p.seen[problem] = true
	p.list = append(p.list, problem)
}

// Len counts the problems.
func (p *Problems) Len() int { return len(p.list) + p.more }

// All returns the problems, sorted by file and line. The caller owns the slice.
func (p *Problems) All() []Problem {
	all := append([]Problem(nil), p.list...)
	sort.SliceStable(all, func(i, j int) bool {
		if all[i].File != all[j].File {
			return all[i].File < all[j].File
		}
		return all[i].Line < all[j].Line
	})
	return all
}

// Err returns nil when nothing is wrong, else a [*Error] with every problem.
func (p *Problems) Err() error {
	if p.Len() == 0 {
		return nil
	}
	return &Error{Problems: p.All(), More: p.more}
}

// Error is every problem of a load. More counts those beyond the bound of what one load reports.
type Error struct {
	Problems []Problem
	More     int
}

// Error prints one problem a line.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.Error())
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\n%d more problems", e.More)
	}
	return b.String()
}

// Unwrap gives errors.As access to each [Problem].
func (e *Error) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}
