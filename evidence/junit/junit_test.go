package junit_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/junit"
	"github.com/engine-acceptance/acceptance/matrix"
)

// hostile has ESC, NUL, the end of a CDATA section, a lone surrogate (as the bytes that it arrives in), markup and U+FFFE.
const hostile = "red \x1b[31m nul \x00 cdata ]]> lone \xed\xa0\x80 <b attr=\"'\"> & \ufffe | `code` \u0085 end"

func planned(outcomes ...evidence.Outcome) (matrix.Plan, []evidence.Verdict) {
	p := matrix.Plan{Engine: "cdp", Product: "chromium", Environment: "x11", Digest: "d"}
	var vs []evidence.Verdict
	for i, o := range outcomes {
		id := matrix.RowID("row-" + string(rune('a'+i)))
		p.Rows = append(p.Rows, matrix.Contract{ID: id, Requirement: "M5", Product: "chromium", Environment: "x11"})
		v := evidence.Verdict{Row: id, Outcome: o}
		if o != evidence.Pass {
			v.Findings = []evidence.Finding{{Requirement: "M5", Reason: evidence.ReasonEffectMissing, Observation: 3, Step: "type-1", Text: hostile}}
		}
		vs = append(vs, v)
	}
	return p, vs
}

var every = []evidence.Outcome{evidence.NotRun, evidence.Pass, evidence.Fail, evidence.NotExercised, evidence.InvalidGuard, evidence.EnvironmentUnmet,
	evidence.HarnessError, evidence.NotOffered, evidence.NotApplicable, evidence.Flaky}

type suites struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"`
	Skipped  int `xml:"skipped,attr"`
	Suite    struct {
		Cases []struct {
			Name    string  `xml:"name,attr"`
			Failure *detail `xml:"failure"`
			Error   *detail `xml:"error"`
			Skipped *detail `xml:"skipped"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

type detail struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// K56: the output parses, whatever the text, and the failure is still there.
func TestXMLOfHostileText(t *testing.T) {
	g := gomega.NewWithT(t)
	raw, err := junit.XML(planned(every...))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	dec := xml.NewDecoder(bytes.NewReader(raw))
	for {
		if _, err := dec.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("does not parse: %v\n%s", err, raw)
		}
	}
	var got suites
	g.Expect(xml.Unmarshal(raw, &got)).To(gomega.Succeed())
	g.Expect(got.Tests).To(gomega.Equal(10))
	g.Expect(got.Failures).To(gomega.Equal(2))
	g.Expect(got.Skipped).To(gomega.Equal(1))
	g.Expect(got.Errors).To(gomega.Equal(6))
	green := 0
	for i, c := range got.Suite.Cases {
		if c.Failure == nil && c.Error == nil && c.Skipped == nil {
			green++
			g.Expect(every[i]).To(gomega.Equal(evidence.Pass))
		}
	}
	g.Expect(green).To(gomega.Equal(1))
	failure := got.Suite.Cases[2].Failure
	g.Expect(failure.Type).To(gomega.Equal("effect_missing"))
	for _, text := range []string{failure.Message, failure.Text} {
		g.Expect(text).To(gomega.ContainSubstring(`red \u{1b}[31m nul \u{00} cdata ]]> lone \x{ed}\x{a0}\x{80} <b attr="'"> &`))
		g.Expect(text).To(gomega.ContainSubstring("end"))
	}
	g.Expect(bytes.ContainsAny(raw, "\x00\x1b")).To(gomega.BeFalse())
	g.Expect(string(raw)).NotTo(gomega.ContainSubstring("]]>"))
}

func TestSummaryCountsWhatTheXMLCounts(t *testing.T) {
	g := gomega.NewWithT(t)
	plan, verdicts := planned(every...)
	raw, err := junit.Summary(plan, verdicts, "not_supported: row-c\x1b")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	s := string(raw)
	g.Expect(s).To(gomega.ContainSubstring("10 rows: 1 not_run, 1 pass, 1 fail, 1 not_exercised"))
	g.Expect(s).To(gomega.ContainSubstring(`not_supported: row-c\u{1b}`))
	g.Expect(strings.Count(s, "\n| row-")).To(gomega.Equal(9), s)
	for line := range strings.Lines(s) {
		if strings.HasPrefix(line, "| row-") {
			g.Expect(strings.Count(line, "|")-strings.Count(line, `\|`)).To(gomega.Equal(6), line)
			g.Expect(line).NotTo(gomega.ContainSubstring("<b"))
		}
	}
	table, err := junit.Table(plan, verdicts)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(bytes.HasSuffix(raw, table)).To(gomega.BeTrue())
}

func TestVerdictsMustBeThoseOfThePlan(t *testing.T) {
	g := gomega.NewWithT(t)
	plan, verdicts := planned(evidence.Pass, evidence.Fail)
	for _, bad := range [][]evidence.Verdict{nil, verdicts[:1], {verdicts[1], verdicts[0]}, {verdicts[0], verdicts[0]}, append(verdicts, verdicts[0])} {
		_, err := junit.XML(plan, bad)
		g.Expect(err).To(gomega.HaveOccurred())
		_, err = junit.Summary(plan, bad, "")
		g.Expect(err).To(gomega.HaveOccurred())
	}
}

func FuzzXML(f *testing.F) {
	f.Add(hostile)
	f.Add("]]>")
	f.Fuzz(func(t *testing.T, text string) {
		plan, verdicts := planned(evidence.Fail)
		verdicts[0].Findings[0].Text = text
		raw, err := junit.XML(plan, verdicts)
		if err != nil {
			t.Fatal(err)
		}
		var got suites
		if err := xml.Unmarshal(raw, &got); err != nil || got.Failures != 1 || got.Suite.Cases[0].Failure == nil {
			t.Fatalf("%v\n%s", err, raw)
		}
	})
}
