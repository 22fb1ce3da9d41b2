// Package junit writes what others read instead of a bundle: JUnit XML for CI systems and a Markdown summary for people. Both are made from
// the plan and the verdicts alone, row for row and in the plan's order, so that verify can make them again and compare bytes.
//
// Nothing that is not a pass looks like one: a fail or flaky row is a failure, a reviewed not_applicable is skipped, and everything else,
// not_run too, is an error. Text of engines and pages is hostile: what XML cannot hold is written visibly.
package junit

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/matrix"
)

// MaxText is the longest text of one finding that is written, in bytes; longer ones are cut, visibly.
const MaxText = 4 << 10

// Counts are the rows of a plan by outcome.
type Counts map[evidence.Outcome]int

// Count counts verdicts by outcome.
func Count(verdicts []evidence.Verdict) Counts {
	c := Counts{}
	for _, v := range verdicts {
		c[v.Outcome]++
	}
	return c
}

// String lists the counts in the order of outcomes: "3 pass, 1 fail".
func (c Counts) String() string {
	outcomes := make([]evidence.Outcome, 0, len(c))
	for o := range c {
		outcomes = append(outcomes, o)
	}
	sort.Slice(outcomes, func(i, j int) bool { return outcomes[i] < outcomes[j] })
	parts := make([]string, 0, len(c))
	for _, o := range outcomes {
		parts = append(parts, fmt.Sprintf("%d %s", c[o], o))
	}
	if len(parts) == 0 {
		return "no rows"
	}
	return strings.Join(parts, ", ")
}

// XML returns the JUnit file: one suite for the plan, one case a row. Verdicts must be one for each planned row, in the plan's order.
func XML(plan matrix.Plan, verdicts []evidence.Verdict) ([]byte, error) {
	if err := match(plan, verdicts); err != nil {
		return nil, err
	}
	var failures, failed, skipped int
	var cases bytes.Buffer
	for i, c := range plan.Rows {
		v := verdicts[i]
		fmt.Fprintf(&cases, "    <testcase name=%s classname=%s>\n", attr(string(c.ID)),
			attr(fmt.Sprintf("%s.%s.%s", c.Product, c.Environment, c.Requirement)))
		switch v.Outcome {
		case evidence.Pass:
		case evidence.Fail, evidence.Flaky:
			failures++
			element(&cases, "failure", v)
		case evidence.NotApplicable:
			skipped++
			element(&cases, "skipped", v)
		default:
			failed++
			element(&cases, "error", v)
		}
		cases.WriteString("    </testcase>\n")
	}
	var b bytes.Buffer
	b.WriteString(xml.Header)
	name := attr(fmt.Sprintf("%s on %s in %s", plan.Engine, plan.Product, plan.Environment))
	counts := fmt.Sprintf(`tests="%d" failures="%d" errors="%d" skipped="%d"`, len(plan.Rows), failures, failed, skipped)
	fmt.Fprintf(&b, "<testsuites name=\"acceptance\" %s>\n  <testsuite name=%s %s>\n", counts, name, counts)
	fmt.Fprintf(&b, "    <properties>\n      <property name=\"plan_digest\" value=%s></property>\n    </properties>\n", attr(plan.Digest))
	b.Write(cases.Bytes())
	b.WriteString("  </testsuite>\n</testsuites>\n")
	return b.Bytes(), nil
}

func element(b *bytes.Buffer, name string, v evidence.Verdict) {
	kind, message := v.Outcome.String(), v.Outcome.String()
	var text strings.Builder
	for i, f := range v.Findings {
		if i == 0 {
			kind, message = string(f.Reason), f.Text
		}
		fmt.Fprintf(&text, "%s %s", f.Requirement, f.Reason)
		if f.Step != "" {
			fmt.Fprintf(&text, " in step %s", f.Step)
		}
		if f.Observation > 0 {
			fmt.Fprintf(&text, " (observation %d)", f.Observation)
		}
		fmt.Fprintf(&text, ": %s\n", limit(f.Text))
	}
	fmt.Fprintf(b, "      <%s type=%s message=%s>", name, attr(kind), attr(limit(message)))
	escape(b, text.String())
	fmt.Fprintf(b, "</%s>\n", name)
}

func attr(s string) string {
	var b bytes.Buffer
	b.WriteByte('"')
	escape(&b, s)
	b.WriteByte('"')
	return b.String()
}

// escape writes s as XML text that is also right inside an attribute. A bytes.Buffer does not fail.
func escape(b *bytes.Buffer, s string) { _ = xml.EscapeText(b, []byte(visible(s))) }

// visible replaces what XML 1.0 has no way to hold, even escaped, by \u{..}: control characters, U+FFFE, U+FFFF, and by \x{..} bytes that
// are not UTF-8, which is how a lone surrogate arrives.
func visible(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			fmt.Fprintf(&b, `\x{%02x}`, s[i])
		case r == '\t', r == '\n', r >= 0x20 && r < 0x7f, r >= 0xa0 && r <= 0xfffd, r >= 0x10000:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u{%02x}`, r)
		}
		i += n
	}
	return b.String()
}

func limit(s string) string {
	if len(s) <= MaxText {
		return s
	}
	n := MaxText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s ... (%d bytes more)", s[:n], len(s)-n)
}

// Summary returns summary.md: the decision's own text, then [Table].
func Summary(plan matrix.Plan, verdicts []evidence.Verdict, decision string) ([]byte, error) {
	table, err := Table(plan, verdicts)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Acceptance of %s on %s in %s\n\n", markdown(plan.Engine), markdown(string(plan.Product)), markdown(string(plan.Environment)))
	if decision = strings.TrimSpace(visible(decision)); decision != "" {
		b.WriteString(decision + "\n\n")
	}
	b.Write(table)
	return b.Bytes(), nil
}

// Table returns the part of summary.md that follows from plan and verdicts alone: counts, and every row that is no pass.
func Table(plan matrix.Plan, verdicts []evidence.Verdict) ([]byte, error) {
	if err := match(plan, verdicts); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "## Rows\n\n%d rows: %s.\n\nPlan `%s`", len(plan.Rows), Count(verdicts), markdown(plan.Digest))
	if plan.Subset {
		fmt.Fprintf(&b, ", a subset: %d rows were left out", len(plan.Left))
	}
	b.WriteString(".\n")
	head := "\n| row | requirement | outcome | reason | what was seen |\n|---|---|---|---|---|\n"
	for i, c := range plan.Rows {
		v := verdicts[i]
		if v.Outcome == evidence.Pass {
			continue
		}
		b.WriteString(head)
		head = ""
		reason, text := "", ""
		if len(v.Findings) > 0 {
			reason, text = string(v.Findings[0].Reason), limit(v.Findings[0].Text)
			if more := len(v.Findings) - 1; more > 0 {
				text += fmt.Sprintf(" (and %d more findings)", more)
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", markdown(string(c.ID)), markdown(string(c.Requirement)), v.Outcome, markdown(reason), markdown(text))
	}
	return b.Bytes(), nil
}

var markdownEscapes = strings.NewReplacer("\\", "\\\\", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "<", "&lt;", ">", "&gt;",
	"&", "&amp;", "\n", " ", "\t", " ", "!", "\\!", "#", "\\#", "~", "\\~")

// markdown makes s one line of literal text.
func markdown(s string) string { return markdownEscapes.Replace(visible(s)) }

func match(plan matrix.Plan, verdicts []evidence.Verdict) error {
	if len(verdicts) != len(plan.Rows) {
		return fmt.Errorf("export: %d verdicts for %d planned rows", len(verdicts), len(plan.Rows))
	}
	for i, c := range plan.Rows {
		if verdicts[i].Row != c.ID {
			return fmt.Errorf("export: verdict %d is on row %q, want %q", i, verdicts[i].Row, c.ID)
		}
	}
	return nil
}
