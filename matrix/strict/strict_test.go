package strict_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/matrix/strict"
)

func TestNearest(t *testing.T) {
	for _, c := range []struct {
		got   string
		known []string
		want  string
	}{
		{"tpye", []string{"type", "click"}, "type"},
		{"Covered", []string{"covered", "covers"}, "covered"},
		{"buget", []string{"budget", "bind"}, "budget"},
		{"xyz", []string{"type", "click"}, ""},
		{"", []string{"type"}, ""},
		{"M555", []string{"M5", "M155", "B5"}, "M155"},
		{strings.Repeat("a", 5000), []string{"a"}, ""},
		{"type", nil, ""},
	} {
		NewWithT(t).Expect(strict.Nearest(c.got, c.known)).To(Equal(c.want), c.got)
	}
}

func TestHint_of_a_short_list_names_all(t *testing.T) {
	g := NewWithT(t)
	g.Expect(strict.Hint("zzz", []string{"a1", "b2"})).To(Equal("; known: a1, b2"))
	g.Expect(strict.Hint("zzz", nil)).To(BeEmpty())
}

func read(t *testing.T, text string) (strict.Node, *strict.Problems) {
	t.Helper()
	var p strict.Problems
	n, ok := strict.Read("f.yaml", []byte(text), &p)
	if !ok {
		t.Fatal(p.Err())
	}
	return n, &p
}

func TestNode_reads_what_is_there(t *testing.T) {
	g := NewWithT(t)
	n, p := read(t, "text: 'no'\nnumber: 7\nflag: true\ntime: 1m30s\nwords: [a, b]\nword: a\nnested: {list: [1, two, false, ~, \"3\"]}\n")
	o := n.Object("text", "number", "flag", "time", "words", "word", "nested", "absent")
	g.Expect(o.Get("text").String()).To(Equal("no"))
	g.Expect(o.Get("number").Int(1, 9)).To(Equal(7))
	g.Expect(o.Get("flag").Bool()).To(BeTrue())
	g.Expect(o.Get("time").Duration(time.Hour)).To(Equal(90 * time.Second))
	g.Expect(o.Get("words").Words("a", "b")).To(Equal([]string{"a", "b"}))
	g.Expect(o.Get("word").Words("a", "b")).To(Equal([]string{"a"}))
	g.Expect(o.Get("nested").Plain()).To(Equal(map[string]any{"list": []any{1, "two", false, nil, "3"}}))
	g.Expect(p.Err()).NotTo(HaveOccurred())
}

// A field that is not there reads as its zero value and is no problem; one that is needed is reported once.
func TestNode_absent(t *testing.T) {
	g := NewWithT(t)
	n, p := read(t, "a: 1\n")
	o := n.Object("a", "b")
	b := o.Get("b")
	g.Expect(b.Exists()).To(BeFalse())
	g.Expect(b.String() == "" && b.Int(1, 2) == 0 && !b.Bool() && b.Duration(time.Second) == 0 && b.List() == nil && b.Plain() == nil).To(BeTrue())
	g.Expect(b.Object("x").Get("x").Exists()).To(BeFalse())
	g.Expect(p.Err()).NotTo(HaveOccurred())
	o.Need("b")
	o.Need("b")
	g.Expect(p.All()).To(Equal([]strict.Problem{{File: "f.yaml", Line: 1, Message: "b is missing"}}))
}

func TestNode_variables(t *testing.T) {
	g := NewWithT(t)
	n, p := read(t, "a: \"tab ${n}\"\nb: ${n}\nc: ${flag}\nd: ${none}\n")
	o := n.With(map[string]string{"n": "2", "flag": "true"}).Object("a", "b", "c", "d")
	g.Expect(o.Get("a").String()).To(Equal("tab 2"))
	g.Expect(o.Get("b").Int(1, 3)).To(Equal(2))
	g.Expect(o.Get("c").Bool()).To(BeTrue())
	g.Expect(p.Err()).NotTo(HaveOccurred())
	_ = o.Get("d").String()
	g.Expect(p.Err()).To(MatchError(`f.yaml:4: d: unknown variable ${none}; known: flag, n`))
}

func TestPlain_refuses_numbers_that_readers_read_differently(t *testing.T) {
	for _, text := range []string{"1.5", "0x10", "0o7", "012", "1_000", "12345678901234567890", "2026-01-01", "yes", ".inf", "1e3"} {
		n, p := read(t, "a: "+text+"\n")
		n.Plain()
		NewWithT(t).Expect(p.Err()).To(HaveOccurred(), text)
	}
}

func TestError_unwraps_to_its_problems(t *testing.T) {
	g := NewWithT(t)
	var p strict.Problems
	g.Expect(p.Err()).NotTo(HaveOccurred())
	p.Add("b.yaml", 2, "x", "second")
	p.Add("a.yaml", 9, "", "first")
	err := p.Err()
	g.Expect(err).To(MatchError("a.yaml:9: first\nb.yaml:2: x: second"))
	var one strict.Problem
	g.Expect(errors.As(err, &one)).To(BeTrue())
	g.Expect(one.File).To(Equal("a.yaml"))
}

// FuzzRead: any bytes end in one document that is clean but for keys that are there twice, or in problems that have a place, and reading all of a
// document ends.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"a: 1\n", "- [b, {c: d}]\n", "a: &x 1\nb: *x\n", "? {a: b}\n: c\n", "a: |\n  text\n", "\xef\xbb\xbfa: 1", "a: !!binary x\n", "%YAML 1.2\n---\na: 1\n...\n",
		strings.Repeat("[", 100), "a:\t1\n", "<<: {a: 1}\n", "a: 1\na: 2\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var p strict.Problems
		n, ok := strict.Read("f.yaml", text, &p)
		others := 0
		for _, problem := range p.All() {
			if !strings.Contains(problem.Message, "occurs twice, first on line") {
				others++
			}
		}
		if ok != (others == 0) {
			t.Fatalf("readable %t with %v", ok, p.Err())
		}
		for _, problem := range p.All() {
			if problem.Line < 1 || problem.Line > strings.Count(string(text), "\n")+2 {
				t.Fatalf("a problem outside of the file: %v", problem)
			}
		}
		if ok {
			n.Plain()
		}
	})
}
