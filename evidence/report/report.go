package report

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/bundle"
	"github.com/engine-acceptance/acceptance/evidence/explain"
	"github.com/engine-acceptance/acceptance/evidence/provenance"
	"github.com/engine-acceptance/acceptance/matrix"
)

// Names of the report's files inside a bundle.
const (
	IndexFile = bundle.ReportDir + "/index.html"
	StyleFile = bundle.ReportDir + "/style.css"
	rowsDir   = bundle.ReportDir + "/rows"
)

// Validity is how long a decision may be quoted when no policy says less: the max_age of the release policy. It is counted from the run's start.
const Validity = 14 * 24 * time.Hour

// Input is everything that a report is made from beside the rows' files.
type Input struct {
	Plan       matrix.Plan
	Provenance provenance.Provenance
	// Verdicts hold one verdict for each planned row, in the plan's order.
	Verdicts []evidence.Verdict
	Ruling   evidence.Ruling
	// Signer is the key id that signs the bundle, or [bundle.Unsigned].
	Signer string
}

// Write makes the report of the bundle that is being written and puts it into it. The rows' files must be there already.
func Write(ctx context.Context, w *bundle.Writer, in Input) error {
	return Render(ctx, w.Dir(), in, w.Export)
}

// Render makes the report of the bundle in dir and hands every file to put, with its path inside the bundle; the index comes last. The same
// bundle and input give the same files with the same bytes, so a reader can make a report again and compare.
func Render(ctx context.Context, dir string, in Input, put func(name string, content []byte) error) error {
	if len(in.Verdicts) != len(in.Plan.Rows) {
		return fmt.Errorf("write the report: %d verdicts for %d planned rows", len(in.Verdicts), len(in.Plan.Rows))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("write the report: the bundle cannot be opened: %w", err)
	}
	defer root.Close()
	style, err := assets.ReadFile("assets/style.css")
	if err != nil {
		return err
	}
	if err := put(StyleFile, style); err != nil {
		return err
	}
	times := readTimes(root)
	rows := make([]indexRow, 0, len(in.Plan.Rows))
	for i, c := range in.Plan.Rows {
		attempts, err := explain.Attempts(ctx, root, c)
		if err != nil {
			return err
		}
		page := rowPage(root, in, i, attempts, times)
		content, err := render("row.html", page)
		if err != nil {
			return fmt.Errorf("write the report: row %q: %w", c.ID, err)
		}
		name := PageOf(c)
		if err := put(name, content); err != nil {
			return err
		}
		rows = append(rows, indexRowOf(c, in.Verdicts[i], strings.TrimPrefix(name, bundle.ReportDir+"/"), times, attempts))
	}
	content, err := render("index.html", indexPage(in, rows, times))
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return put(IndexFile, content)
}

// Differences makes the report of a finished bundle again and names the files that are not what this program makes: they were made by another
// version of it, or altered. Files of the report that this program would not write are named as well.
func Differences(ctx context.Context, dir string, in Input) ([]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("compare the report: the bundle cannot be opened: %w", err)
	}
	defer root.Close()
	var out []string
	made := map[string]bool{}
	err = Render(ctx, dir, in, func(name string, content []byte) error {
		made[name] = true
		info, err := root.Lstat(name)
		if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(content)) {
			out = append(out, name)
			return nil
		}
		have, err := root.ReadFile(name)
		if err != nil || !bytes.Equal(have, content) {
			out = append(out, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(root.FS(), bundle.ReportDir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !made[name] {
			out = append(out, name)
		}
		return ctx.Err()
	})
	slices.Sort(out)
	return out, err
}

// PageOf returns the path of a row's page inside a bundle. Two rows never share a page.
func PageOf(c matrix.Contract) string {
	full := string(c.Product) + "." + string(c.Environment) + "." + string(c.ID)
	var b strings.Builder
	for i := range len(full) {
		switch c := full[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	name := b.String()
	if most := bundle.MaxName - len(".html"); len(name) > most {
		sum := sha256.Sum256([]byte(full))
		name = name[:100] + "_." + hex.EncodeToString(sum[:])
	}
	return path.Join(rowsDir, name+".html")
}

//go:embed assets
var assets embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"t": visible, "cut": cut, "sec": sec, "num": num, "pct": func(x float64) string { return num(x) + "%" },
	"sum": func(a, b float64) float64 { return a + b }, "sub": func(a, b int) int { return a - b },
	// Places of a thing in a lane that begins at y: a span in its row, a bar that stands at the bottom, a sign in the middle.
	"span": func(y, row int) int { return y + 4 + row }, "bar": func(y, lane, h int) int { return y + lane - 2 - h }, "mid": func(y, lane int) int { return y + lane/2 },
	"policy": func() string { return policy }, "script": func() template.JS { return script },
}).ParseFS(assets, "assets/*.html"))

// script is the only JavaScript of a page, and policy allows it and nothing else: the rest of a page is data.
var script, policy = func() (template.JS, string) {
	b, err := assets.ReadFile("assets/report.js")
	if err != nil {
		panic(err) // it is embedded: the program was built without a part of it
	}
	sum := sha256.Sum256(b)
	return template.JS(b), "default-src 'none'; img-src 'self' file:; media-src 'self' file:; style-src 'self' file: 'unsafe-inline'; script-src 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}()

func render(name string, data any) ([]byte, error) {
	var b bytes.Buffer
	err := pages.ExecuteTemplate(&b, name, data)
	return b.Bytes(), err
}

// maxText is the longest text that stands in a page at one place, in characters.
const maxText = 1200

// visible makes text of a bundle safe to look at: what a terminal, a reader of bidirectional text or a parser would obey is written as an
// escape, and long text is cut with a count.
func visible(v any) string { return limited(v, maxText) }

// cut is visible with a bound of its own.
func cut(n int, v any) string { return limited(v, n) }

func limited(v any, most int) string {
	s := fmt.Sprint(v)
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > most {
			continue
		}
		if r == '\ufffd' || !unicode.IsGraphic(r) && r != '\u200d' {
			fmt.Fprintf(&b, `\u{%x}`, r)
			continue
		}
		b.WriteRune(r)
	}
	if n > most {
		fmt.Fprintf(&b, " ... (%d characters more)", n-most)
	}
	return b.String()
}

// num writes a number of a drawing with two decimals.
func num(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// ms writes nanoseconds as milliseconds, sec milliseconds as seconds.
func ms(ns int64) string {
	return strconv.FormatFloat(float64(ns)/1e6, 'f', 1, 64) + " ms"
}

func sec(milli int64) string { return strconv.FormatFloat(float64(milli)/1000, 'f', 1, 64) + " s" }

// inBundle is the link from a row's page to a file of the bundle.
func inBundle(name string) template.URL {
	var parts []string
	for p := range strings.SplitSeq(name, "/") {
		parts = append(parts, url.PathEscape(p))
	}
	return template.URL("../../" + strings.Join(parts, "/"))
}

// times are what the run log says about when.
type times struct {
	start time.Time
	rows  map[matrix.RowID]int64 // milliseconds from the first begin to the last end
}

// readTimes reads the run log. A log that cannot be read gives no times; that it was altered is for verify to say.
func readTimes(root *os.Root) times {
	t := times{rows: map[matrix.RowID]int64{}}
	begun := map[matrix.RowID]time.Time{}
	_, _ = explain.EachLine(root, bundle.LogFile, func(line []byte) bool {
		var l struct {
			Entry bundle.Entry `json:"entry"`
		}
		if json.Unmarshal(line, &l) != nil {
			return false
		}
		at, err := time.Parse(time.RFC3339Nano, l.Entry.Wall)
		if err != nil {
			return true
		}
		switch l.Entry.Event {
		case bundle.EventStart:
			t.start = at
		case bundle.EventRowBegin:
			if begun[l.Entry.Row].IsZero() {
				begun[l.Entry.Row] = at
			}
		case bundle.EventRowEnd:
			if from := begun[l.Entry.Row]; !from.IsZero() {
				t.rows[l.Entry.Row] = at.Sub(from).Milliseconds()
			}
		}
		return true
	})
	return t
}

// look is how an outcome is shown: a sign and a class of the style sheet beside its word, so that no meaning hangs on a colour.
type look struct{ Sign, Class string }

func lookOf(o evidence.Outcome) look {
	switch o {
	case evidence.Pass:
		return look{"✓", "good"}
	case evidence.Fail, evidence.Flaky, evidence.NotOffered:
		return look{"✗", "bad"}
	case evidence.NotApplicable:
		return look{"–", "mute"}
	}
	return look{"?", "open"}
}
