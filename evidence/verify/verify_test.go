//go:build unix

package verify_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/bundle"
	"github.com/engine-acceptance/acceptance/evidence/junit"
	"github.com/engine-acceptance/acceptance/evidence/provenance"
	"github.com/engine-acceptance/acceptance/evidence/statement"
	"github.com/engine-acceptance/acceptance/evidence/verify"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/matrix/canonical"
)

// judgeJournal passes a row in which the journal saw something after its begin: enough of a judge to tell observations apart.
func judgeJournal(c matrix.Contract, all []evidence.Observation) evidence.Verdict {
	v := evidence.Verdict{Row: c.ID, JudgeVersion: "journal/1"}
	for _, o := range all {
		if o.Journal != nil {
			v.Outcome = evidence.Pass
		}
	}
	if v.Outcome != evidence.Pass {
		v.Outcome = evidence.Fail
		v.Findings = []evidence.Finding{{Requirement: c.Requirement, Reason: evidence.ReasonEffectMissing, Text: "nothing was journalled ]]>"}}
	}
	return v
}

func plan(t testing.TB) matrix.Plan {
	t.Helper()
	p := matrix.Plan{Format: matrix.PlanFormat, Engine: "cdp", EngineFile: strings.Repeat("e", 64), MatrixDigest: strings.Repeat("f", 64),
		Product: "chromium", Environment: "x11", Ceiling: "supported", Budgets: map[string]time.Duration{"bind": 5 * time.Second}}
	for _, id := range []matrix.RowID{"click[state=covered]", "type-unicode", "Odd name/☂"} {
		p.Rows = append(p.Rows, matrix.Contract{ID: id, Stem: "s", Requirement: "M5", Duty: matrix.DutyEngine, Title: "t <&>", Product: "chromium",
			Environment: "x11", Launch: matrix.LaunchShared, Budget: 5 * time.Second, Source: "mutation/type.yaml:3",
			Steps: []matrix.Step{{Name: "click-1", Verb: "click", Args: map[string]any{"on": "button", "times": 1}}}})
	}
	digest, err := bundle.PlanDigest(p)
	if err != nil {
		t.Fatal(err)
	}
	p.Digest = digest
	return p
}

func clock() func() time.Time {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time { at = at.Add(time.Millisecond); return at }
}

// written writes a real bundle: three rows, one of them with two attempts, one failing.
func written(t testing.TB, dir string, key ed25519.PrivateKey, filmBytes int) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	p := plan(t)
	w, err := bundle.Create(t.Context(), dir, p, bundle.WithClock(clock()))
	must(err)
	must(w.Provenance(provenance.Provenance{Format: provenance.Format, Repository: provenance.Repository{State: provenance.StateClean, Commit: "c0ffee"}}))
	attempt := func(c matrix.Contract, n int, seen bool) {
		row, err := w.Row(c, n)
		must(err)
		observe := func(o evidence.Observation) {
			o.Phase = evidence.PhaseBackground
			must(row.Observe(o))
		}
		observe(evidence.Observation{Kind: evidence.KindBegin, Begin: &evidence.Begin{Row: c.ID, Attempt: n, Plan: p.Digest}})
		if seen {
			observe(evidence.Observation{Kind: evidence.KindJournal, MonoNS: 5, Journal: &evidence.Journal{Page: "w/tab 1", Type: "click", Trusted: true, Value: "☂ <\u2028>"}})
			observe(evidence.Observation{Kind: evidence.KindFilm, Film: &evidence.Film{Present: true, BlackRatio: 0.25}})
		}
		observe(evidence.Observation{Kind: evidence.KindEnd, End: &evidence.End{Observations: row.Count()}})
		names := make([]string, 0, len(bundle.Views))
		for name := range bundle.Views {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			if c.ID != p.Rows[0].ID && name != "journal.jsonl" && name != "film.mp4" {
				continue // one row with every view is enough
			}
			content := fmt.Sprintf("%s of %s, attempt %d\nsecond line\n", name, c.ID, n)
			if name == "film.mp4" {
				content += strings.Repeat("film", filmBytes/4)
			}
			must(row.Add(name, strings.NewReader(content)))
		}
		all, err := row.Observations()
		must(err)
		must(row.Finish(judgeJournal(c, all)))
	}
	attempt(p.Rows[0], 1, true)
	attempt(p.Rows[1], 1, false)
	attempt(p.Rows[1], 2, true)
	attempt(p.Rows[2], 1, false)
	must(w.Note("a note"))
	xml, err := junit.XML(p, w.Verdicts())
	must(err)
	must(w.Export(bundle.JUnitFile, xml))
	summary, err := junit.Summary(p, w.Verdicts(), "Decision: not_supported")
	must(err)
	must(w.Export(bundle.SummaryFile, summary))
	must(w.Export("report/index.html", []byte("<!doctype html>\n")))
	must(w.Export("report/rows/a.html", []byte("<p>\n")))
	_, err = w.Finish(t.Context(), bundle.Signing{Key: key})
	must(err)
}

func newKey() (ed25519.PrivateKey, ed25519.PublicKey) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	return key, key.Public().(ed25519.PublicKey)
}

func verified(t testing.TB, dir string, o verify.Options) verify.Report {
	t.Helper()
	if o.Judge == nil {
		o.Judge = judgeJournal
	}
	r, err := verify.Verify(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWholeBundleVerifies(t *testing.T) {
	for _, signed := range []bool{true, false} {
		t.Run(fmt.Sprintf("signed_%t", signed), func(t *testing.T) {
			g := gomega.NewWithT(t)
			dir := filepath.Join(t.TempDir(), "b")
			key, pub := newKey()
			if !signed {
				key, pub = nil, nil
			}
			written(t, dir, key, 0)
			r := verified(t, dir, verify.Options{Key: pub, Commit: "c0ffee"})
			g.Expect(r.Problems).To(gomega.BeEmpty())
			g.Expect(r.Status).To(gomega.Equal(verify.OK))
			g.Expect(r.Status.ExitCode()).To(gomega.Equal(0))
			g.Expect(r.SignatureChecked).To(gomega.Equal(signed))
			var outcomes []evidence.Outcome
			for _, row := range r.Rows {
				outcomes = append(outcomes, row.Outcome)
			}
			g.Expect(outcomes).To(gomega.Equal([]evidence.Outcome{evidence.Pass, evidence.Flaky, evidence.Fail}))
			said := strings.Join(r.NotRederived, "\n")
			g.Expect(said).To(gomega.ContainSubstring("film decoded"))
			g.Expect(strings.Contains(said, "unsigned")).To(gomega.Equal(!signed))
		})
	}
}

func TestSameInputSameBytes(t *testing.T) {
	g := gomega.NewWithT(t)
	key, _ := newKey()
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	written(t, a, key, 0)
	written(t, b, key, 0)
	for _, name := range append(files(t, a), bundle.ManifestFile) {
		g.Expect(read(t, a, name)).To(gomega.Equal(read(t, b, name)), name)
	}
}

func files(t testing.TB, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, p)
			names = append(names, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func read(t testing.TB, dir, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// tamper is one change of a bundle and the file that verify must name.
type tamper struct {
	name string
	file string // "" means: any problem will do
	do   func(dir string) error
}

// corpus lists every tampering with the bundle in dir: bytes, lines, names, links, files.
func corpus(t testing.TB, dir string) []tamper {
	var all []tamper
	names := files(t, dir)
	add := func(kind, file string, do func(dir string) error) {
		all = append(all, tamper{kind + " " + file, file, do})
	}
	content := func(kind, file string, change func([]byte) []byte) {
		before := read(t, dir, file)
		if after := change(bytes.Clone(before)); !bytes.Equal(after, before) {
			add(kind, file, func(dir string) error { return replace(filepath.Join(dir, file), after) })
		}
	}
	for i, file := range names {
		raw := read(t, dir, file)
		for _, at := range []int{0, 1, len(raw) / 4, len(raw) / 2, len(raw) * 3 / 4, len(raw) - 2, len(raw) - 1} {
			content(fmt.Sprintf("flip_%d", at), file, func(b []byte) []byte { b[at] ^= 1; return b })
			content(fmt.Sprintf("case_%d", at), file, func(b []byte) []byte { b[at] ^= 0x20; return b })
			content(fmt.Sprintf("insert_%d", at), file, func(b []byte) []byte { return append(b[:at], append([]byte{'x'}, b[at:]...)...) })
			content(fmt.Sprintf("delete_%d", at), file, func(b []byte) []byte { return append(b[:at], b[at+1:]...) })
			content(fmt.Sprintf("truncate_%d", at), file, func(b []byte) []byte { return b[:at] })
		}
		content("append_newline", file, func(b []byte) []byte { return append(b, '\n') })
		content("prepend_space", file, func(b []byte) []byte { return append([]byte{' '}, b...) })
		lines := bytes.SplitAfter(raw, []byte("\n"))
		lines = lines[:len(lines)-1]
		if n := len(lines); n > 1 {
			swapped := append([][]byte{lines[1], lines[0]}, lines[2:]...)
			content("reorder_lines", file, func([]byte) []byte { return bytes.Join(swapped, nil) })
			content("drop_first_line", file, func([]byte) []byte { return bytes.Join(lines[1:], nil) })
			content("drop_last_line", file, func([]byte) []byte { return bytes.Join(lines[:n-1], nil) })
			content("repeat_line", file, func(b []byte) []byte { return append(b, lines[n-1]...) })
		}
		abs := func(dir, name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
		add("remove", file, func(dir string) error { return os.Remove(abs(dir, file)) })
		add("rename", file, func(dir string) error { return os.Rename(abs(dir, file), abs(dir, file)+".old") })
		add("symlink", file, func(dir string) error {
			moved := abs(dir, file) + ".moved"
			return errors.Join(os.Rename(abs(dir, file), moved), os.Symlink(moved, abs(dir, file)))
		})
		add("symlink_outside", file, func(dir string) error {
			moved := outside(dir, i)
			return errors.Join(os.Rename(abs(dir, file), moved), os.Symlink(moved, abs(dir, file)))
		})
		add("folder", file, func(dir string) error { return errors.Join(os.Remove(abs(dir, file)), os.Mkdir(abs(dir, file), 0o700)) })
		add("fifo", file, func(dir string) error {
			return errors.Join(os.Remove(abs(dir, file)), syscall.Mkfifo(abs(dir, file), 0o600))
		})
		add("empty", file, func(dir string) error { return os.Truncate(abs(dir, file), 0) })
		add("huge", file, func(dir string) error { return os.Truncate(abs(dir, file), 3<<30) })
		other := names[(i+1)%len(names)]
		if !bytes.Equal(raw, read(t, dir, other)) && other != bundle.ManifestFile {
			add("swap", file, func(dir string) error {
				return errors.Join(os.Rename(abs(dir, file), abs(dir, file)+"~"), os.Rename(abs(dir, other), abs(dir, file)), os.Rename(abs(dir, file)+"~", abs(dir, other)))
			})
		}
	}
	row := "rows/chromium/x11/type-unicode"
	for _, extra := range []string{"extra.txt", ".hidden", "report/.x", "report/more.html", "rows/x", "manifest.json.bak", row + "/attempt-1/notes.txt", row + "/attempt-1/.film.mp4.partial",
		row + "/attempt-3/row.json", "rows/chromium/x11/unplanned/attempt-1/observations.jsonl", "rows/firefox/x11/type-unicode/attempt-1/row.json", "log.jsonl ", "PLAN.JSON"} {
		add("add", extra, func(dir string) error {
			file := filepath.Join(dir, extra)
			return errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("x"), 0o600))
		})
	}
	for _, folder := range []string{"empty", "rows/chromium/x11/none", row + "/attempt-3", "report/x"} {
		add("add_folder", folder, func(dir string) error { return os.MkdirAll(filepath.Join(dir, folder), 0o700) })
	}
	add("hide_folder_behind_link", row, func(dir string) error {
		moved := outside(dir, len(names))
		return errors.Join(os.Rename(filepath.Join(dir, row), moved), os.Symlink(moved, filepath.Join(dir, row)))
	})
	add("remove_row", row, func(dir string) error { return os.RemoveAll(filepath.Join(dir, row)) })
	add("remove_attempt", row+"/attempt-1", func(dir string) error { return os.RemoveAll(filepath.Join(dir, row, "attempt-1")) })
	add("rename_row", "rows/chromium/x11/other", func(dir string) error {
		return os.Rename(filepath.Join(dir, row), filepath.Join(dir, "rows/chromium/x11/other"))
	})
	add("swap_rows", row, func(dir string) error {
		a, b := filepath.Join(dir, row), filepath.Join(dir, "rows/chromium/x11/click[state=covered]")
		return errors.Join(os.Rename(a, a+"~"), os.Rename(b, a), os.Rename(a+"~", b))
	})
	add("duplicate_row", "rows/chromium/x11/copy", func(dir string) error {
		return os.CopyFS(filepath.Join(dir, "rows/chromium/x11/copy"), os.DirFS(filepath.Join(dir, row)))
	})
	add("duplicate_attempt", row+"/attempt-3", func(dir string) error {
		return os.CopyFS(filepath.Join(dir, row, "attempt-3"), os.DirFS(filepath.Join(dir, row, "attempt-2")))
	})
	return all
}

// outside is a path beside the bundle that no other case uses.
func outside(dir string, i int) string {
	return filepath.Join(filepath.Dir(dir), fmt.Sprintf("outside-%d", i))
}

// replace writes a new file in the place of one. Truncating the old one would make some file systems wait for the disk.
func replace(file string, content []byte) error {
	return errors.Join(os.Remove(file), os.WriteFile(file, content, 0o600))
}

// restorer returns a function that makes a folder equal to clean again, touching only what differs.
func restorer(t *testing.T, clean string) func(dir string) {
	want := map[string][]byte{}
	folders := map[string]bool{".": true}
	for _, name := range files(t, clean) {
		want[name] = read(t, clean, name)
		for d := filepath.Dir(name); d != "."; d = filepath.Dir(d) {
			folders[d] = true
		}
	}
	return func(dir string) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(dir, p)
			content, known := want[filepath.ToSlash(rel)]
			switch {
			case d.IsDir() && folders[rel]:
			case d.IsDir():
				if err := os.RemoveAll(p); err != nil {
					return err
				}
				return filepath.SkipDir
			case !known || !d.Type().IsRegular():
				return os.Remove(p)
			default:
				info, err := d.Info()
				if err == nil && info.Size() == int64(len(content)) && bytes.Equal(read(t, dir, rel), content) {
					return nil
				}
				return errors.Join(err, replace(p, content))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range want {
			p := filepath.Join(dir, name)
			if _, err := os.Lstat(p); err != nil {
				if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o700), os.WriteFile(p, content, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// V9: any change of any byte, link, name or order fails, and says where.
func TestTamperCorpus(t *testing.T) {
	key, pub := newKey()
	top := t.TempDir()
	clean := filepath.Join(top, "clean")
	written(t, clean, key, 0)
	cases := corpus(t, clean)
	t.Logf("%d ways to tamper", len(cases))
	if len(cases) < 1500 {
		t.Fatalf("the corpus has %d cases, want at least 1500", len(cases))
	}
	work := filepath.Join(top, "work")
	dir := filepath.Join(work, "b")
	restore := restorer(t, clean)
	for _, c := range cases {
		restore(dir)
		if err := c.do(dir); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		r := verified(t, dir, verify.Options{Key: pub})
		if r.Status == verify.OK || r.Status.ExitCode() == 0 {
			t.Fatalf("%s: verifies", c.name)
		}
		named := false
		for _, p := range r.Problems {
			// A changed entry of the manifest shows as a difference between the entry and its file.
			named = named || strings.HasPrefix(p.File, c.file) || strings.HasPrefix(c.file, p.File+"/") || c.file == bundle.ManifestFile
		}
		if !named {
			t.Errorf("%s: no problem names the file: %v", c.name, r.Problems)
		}
		if r.Status == verify.Incomplete && !strings.HasSuffix(c.name, " "+bundle.ManifestFile) {
			t.Errorf("%s: incomplete, want altered: %v", c.name, r.Problems)
		}
	}
}

// A run that was killed leaves a prefix of what it wrote, in the order in which it wrote it.
func TestKilledAnywhereIsIncomplete(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := filepath.Join(t.TempDir(), "b")
	p := plan(t)
	w, err := bundle.Create(t.Context(), dir, p)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	check := func(when string) {
		t.Helper()
		r := verified(t, dir, verify.Options{})
		if r.Status != verify.Incomplete || r.Status.ExitCode() != 3 {
			t.Fatalf("%s: %s, want incomplete: %v", when, r.Status, r.Problems)
		}
	}
	check("created")
	g.Expect(w.Provenance(provenance.Provenance{Format: provenance.Format})).To(gomega.Succeed())
	check("provenance")
	for _, c := range p.Rows {
		row, err := w.Row(c, 1)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		check("row begun")
		g.Expect(row.Observe(evidence.Observation{Kind: evidence.KindFault, Phase: evidence.PhasePrepare, Fault: &evidence.Fault{Whose: "harness"}})).To(gomega.Succeed())
		check("observed")
		film, err := row.File("film.mp4")
		g.Expect(err).NotTo(gomega.HaveOccurred())
		_, err = io.WriteString(film, "half a fi")
		g.Expect(err).NotTo(gomega.HaveOccurred())
		check("film half written")
		g.Expect(film.Close()).To(gomega.Succeed())
		check("film")
		g.Expect(row.Finish(judgeJournal(c, nil))).To(gomega.Succeed())
		check("row finished")
	}
	_, err = w.Finish(t.Context(), bundle.Signing{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(verified(t, dir, verify.Options{}).Status).To(gomega.Equal(verify.OK))

	// The statement is there, the manifest is not yet.
	g.Expect(os.Rename(filepath.Join(dir, "manifest.json"), filepath.Join(dir, ".manifest.json.partial"))).To(gomega.Succeed())
	check("before the manifest")
	g.Expect(os.Remove(filepath.Join(dir, ".manifest.json.partial"))).To(gomega.Succeed())
	// A plan that was changed is no cut run.
	raw := read(t, dir, "plan.json")
	g.Expect(os.WriteFile(filepath.Join(dir, "plan.json"), bytes.Replace(raw, []byte("M5"), []byte("M6"), 1), 0o600)).To(gomega.Succeed())
	g.Expect(verified(t, dir, verify.Options{}).Status).To(gomega.Equal(verify.Altered))
}

// reseal is the work of a careful forger: it makes the manifest agree with the files again.
func reseal(t *testing.T, dir string, signer string) {
	t.Helper()
	var m bundle.Manifest
	if err := bundle.DecodeDocument(read(t, dir, bundle.ManifestFile), &m); err != nil {
		t.Fatal(err)
	}
	m.Files = nil
	for _, name := range files(t, dir) {
		if name == bundle.ManifestFile || name == bundle.StatementFile {
			continue
		}
		raw := read(t, dir, name)
		sum := sha256.Sum256(raw)
		m.Files = append(m.Files, bundle.FileEntry{Path: name, Size: int64(len(raw)), SHA256: hex.EncodeToString(sum[:])})
	}
	sort.Slice(m.Files, func(i, j int) bool { return m.Files[i].Path < m.Files[j].Path })
	if signer != "" {
		m.Signer = signer
	}
	raw, err := canonical.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, bundle.ManifestFile), append(raw, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}

// V8, V10: a forger who makes all digests agree is still found out by the judge, the plan, the chain and the exports; and one who also
// keeps those, by the signature.
func TestConsistentForgeries(t *testing.T) {
	key, pub := newKey()
	top := t.TempDir()
	written(t, filepath.Join(top, "unsigned"), nil, 0)
	written(t, filepath.Join(top, "signed"), key, 0)
	fresh := func(t *testing.T, which string) string {
		dir := filepath.Join(t.TempDir(), "b")
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(top, which))); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	row := "rows/chromium/x11/type-unicode/attempt-1/"
	edit := func(file, from, to string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			raw := read(t, dir, file)
			changed := bytes.Replace(raw, []byte(from), []byte(to), 1)
			if bytes.Equal(raw, changed) {
				t.Fatalf("%s has no %q:\n%s", file, from, raw)
			}
			if err := os.WriteFile(filepath.Join(dir, file), changed, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	copied := func(from, to string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(filepath.Join(dir, from))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		check, file string
		status      verify.Status
		do          func(*testing.T, string)
	}{
		"verdict_turned":         {"verdict", row + "verdict.json", verify.Altered, edit(row+"verdict.json", `"outcome":"fail"`, `"outcome":"pass"`)},
		"verdict_unknown":        {"document", row + "verdict.json", verify.Altered, edit(row+"verdict.json", `"outcome":"fail"`, `"outcome":"fine"`)},
		"verdict_text":           {"verdict", row + "verdict.json", verify.Altered, edit(row+"verdict.json", `nothing`, `something`)},
		"other_judge":            {"verdict", row + "verdict.json", verify.Altered, edit(row+"verdict.json", `journal/1`, `journal/2`)},
		"observation_invented":   {"verdict", row + "verdict.json", verify.Altered, edit(row+"observations.jsonl", `"kind":"end","phase":"background","end":{"observations":1}`, `"kind":"journal","phase":"background","journal":{"page":"","file":"","document":0,"order":0,"type":"","trusted":false,"signed":false,"origin":""}`)},
		"observation_dropped":    {"observations", row + "observations.jsonl", verify.Altered, edit(row+"observations.jsonl", `{"seq":1`, `{"seq":2`)},
		"observation_unknown":    {"observations", row + "observations.jsonl", verify.Altered, edit(row+"observations.jsonl", `"kind":"begin"`, `"kind":"other"`)},
		"observation_field":      {"observations", row + "observations.jsonl", verify.Altered, edit(row+"observations.jsonl", `{"seq":1,`, `{"seq":1,"x":1,`)},
		"observation_case":       {"observations", row + "observations.jsonl", verify.Altered, edit(row+"observations.jsonl", `{"seq":1,`, `{"Seq":1,`)},
		"observation_twice":      {"observations", row + "observations.jsonl", verify.Altered, edit(row+"observations.jsonl", `{"seq":1,`, `{"seq":1,"seq":1,`)},
		"observation_no_payload": {"observations", row + "observations.jsonl", verify.Altered, edit(row+"observations.jsonl", `,"end":{"observations":1}`, ``)},
		"observation_phase":      {"observations", row + "observations.jsonl", verify.Altered, edit(row+"observations.jsonl", `"phase":"background"`, `"phase":"later"`)},
		"observations_of_other_attempt": {"observations", row + "observations.jsonl", verify.Altered, func(t *testing.T, dir string) {
			if err := os.Rename(filepath.Join(dir, "rows/chromium/x11/type-unicode/attempt-2/observations.jsonl"), filepath.Join(dir, row+"observations.jsonl")); err != nil {
				t.Fatal(err)
			}
		}},
		"contract_loosened":   {"row", row + "row.json", verify.Altered, edit(row+"row.json", `5000000000`, `9000000000`)},
		"attempt_renumbered":  {"row", row + "row.json", verify.Altered, edit(row+"row.json", `"attempt":1`, `"attempt":2`)},
		"plan_loosened":       {"plan", "plan.json", verify.Altered, edit("plan.json", `5000000000`, `9000000000`)},
		"plan_field":          {"document", "plan.json", verify.Altered, edit("plan.json", `{`, `{"a":1,`)},
		"row_missing":         {"row", "rows/chromium/x11/type-unicode", verify.Incomplete, remove("rows/chromium/x11/type-unicode")},
		"row_extra":           {"row", "rows/chromium/x11/more/attempt-1", verify.Altered, copied("rows/chromium/x11/type-unicode", "rows/chromium/x11/more")},
		"attempt_hidden":      {"row", "rows/chromium/x11/type-unicode/attempt-1", verify.Altered, remove("rows/chromium/x11/type-unicode/attempt-1")},
		"last_attempt_hidden": {"log", "log.jsonl", verify.Altered, remove("rows/chromium/x11/type-unicode/attempt-2")},
		"attempt_invented":    {"log", "log.jsonl", verify.Altered, copied("rows/chromium/x11/type-unicode/attempt-2", "rows/chromium/x11/type-unicode/attempt-3")},
		"log_outcome":         {"log", "log.jsonl", verify.Altered, edit("log.jsonl", `"outcome":"fail"`, `"outcome":"pass"`)},
		"log_cut": {"log", "log.jsonl", verify.Altered, func(t *testing.T, dir string) {
			raw := read(t, dir, "log.jsonl")
			raw = raw[:bytes.LastIndexByte(raw[:len(raw)-1], '\n')+1]
			if err := os.WriteFile(filepath.Join(dir, "log.jsonl"), raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		"verdict_missing":    {"row", row + "verdict.json", verify.Incomplete, remove(row + "verdict.json")},
		"junit_turned":       {"export", "junit.xml", verify.Altered, edit("junit.xml", `failures="2"`, `failures="0"`)},
		"summary_turned":     {"export", "summary.md", verify.Altered, edit("summary.md", `1 fail`, `0 fail`)},
		"provenance_field":   {"document", "provenance.json", verify.Altered, edit("provenance.json", `"state":"clean"`, `"state":"clean","x":0`)},
		"provenance_commit":  {"statement", "provenance.json", verify.Altered, edit("provenance.json", `c0ffee`, `decade`)},
		"provenance_missing": {"manifest", "manifest.json", verify.Altered, remove("provenance.json")},
	} {
		t.Run(name, func(t *testing.T) {
			dir := fresh(t, "unsigned")
			c.do(t, dir)
			reseal(t, dir, "")
			r := verified(t, dir, verify.Options{Commit: "c0ffee"})
			if r.Status == verify.OK {
				t.Fatal("verifies")
			}
			if c.status == verify.Altered && r.Status != verify.Altered {
				t.Errorf("status %s, want %s: %v", r.Status, c.status, r.Problems)
			}
			named := false
			for _, p := range r.Problems {
				named = named || p.File == c.file && p.Check == c.check
			}
			if !named {
				t.Fatalf("no problem of check %s names %s: %v", c.check, c.file, r.Problems)
			}

			// The same forgery of a signed bundle fails on the statement as well.
			signed := fresh(t, "signed")
			c.do(t, signed)
			reseal(t, signed, "")
			r = verified(t, signed, verify.Options{Key: pub})
			onStatement := false
			for _, p := range r.Problems {
				onStatement = onStatement || p.File == bundle.StatementFile && strings.Contains(p.Got, "manifest_sha256") || p.File == bundle.PlanFile
			}
			if r.Status != verify.Altered || !onStatement {
				t.Fatalf("signed: %s, %v", r.Status, r.Problems)
			}
		})
	}
}

// K58: the signer is right and vouches for something else.
func TestStatements(t *testing.T) {
	key, pub := newKey()
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	dir := filepath.Join(t.TempDir(), "b")
	written(t, dir, key, 0)
	original := read(t, dir, bundle.StatementFile)
	claims := func(t *testing.T, dir string, edit func(*statement.Claims)) []byte {
		s, err := statement.Open(read(t, dir, bundle.StatementFile), pub)
		if err != nil {
			t.Fatal(err)
		}
		edit(&s.Predicate)
		env, err := statement.Sign(statement.New(s.Predicate), key)
		if err != nil {
			t.Fatal(err)
		}
		return env
	}
	for name, c := range map[string]struct {
		claim string
		make  func(t *testing.T, dir string) []byte
	}{
		"rows": {"rows_sha256", func(t *testing.T, d string) []byte { return claims(t, d, func(c *statement.Claims) { c.Rows = "0" }) }},
		"commit": {"harness_commit", func(t *testing.T, d string) []byte {
			return claims(t, d, func(c *statement.Claims) { c.HarnessCommit = "0" })
		}},
		"dirty": {"harness_dirty", func(t *testing.T, d string) []byte {
			return claims(t, d, func(c *statement.Claims) { c.HarnessDirty = true })
		}},
		"matrix": {"matrix_sha256", func(t *testing.T, d string) []byte { return claims(t, d, func(c *statement.Claims) { c.Matrix = "0" }) }},
		"manifest": {"manifest_sha256", func(t *testing.T, d string) []byte {
			return claims(t, d, func(c *statement.Claims) { c.Manifest = "0" })
		}},
		"plan": {"plan_digest", func(t *testing.T, d string) []byte { return claims(t, d, func(c *statement.Claims) { c.Plan = "0" }) }},
		"type": {"_type", func(t *testing.T, d string) []byte {
			env, err := statement.Seal(statement.PayloadType, []byte(`{"_type":"x"}`), key)
			if err != nil {
				t.Fatal(err)
			}
			return env
		}},
		"invalid_json": {"json", func(t *testing.T, d string) []byte {
			env, err := statement.Seal(statement.PayloadType, []byte(`{`), key)
			if err != nil {
				t.Fatal(err)
			}
			return env
		}},
		"other_signer": {"signer", func(t *testing.T, d string) []byte {
			s, err := statement.Open(read(t, d, bundle.StatementFile), pub)
			if err != nil {
				t.Fatal(err)
			}
			env, err := statement.Sign(s, other)
			if err != nil {
				t.Fatal(err)
			}
			return env
		}},
	} {
		t.Run(name, func(t *testing.T) {
			defer os.WriteFile(filepath.Join(dir, bundle.StatementFile), original, 0o600)
			if err := os.WriteFile(filepath.Join(dir, bundle.StatementFile), c.make(t, dir), 0o600); err != nil {
				t.Fatal(err)
			}
			r := verified(t, dir, verify.Options{Key: pub})
			if r.Status != verify.Altered || r.Problems[0].File != bundle.StatementFile || !strings.HasPrefix(r.Problems[0].Got, c.claim+" ") || r.SignatureChecked && c.claim == "signer" {
				t.Fatalf("want claim %s named: %v", c.claim, r.Problems)
			}
		})
	}
	t.Run("taken_away", func(t *testing.T) {
		g := gomega.NewWithT(t)
		dir := filepath.Join(t.TempDir(), "b")
		written(t, dir, key, 0)
		g.Expect(os.Remove(filepath.Join(dir, bundle.StatementFile))).To(gomega.Succeed())
		g.Expect(verified(t, dir, verify.Options{}).Status).To(gomega.Equal(verify.Altered))
		reseal(t, dir, bundle.Unsigned)
		g.Expect(verified(t, dir, verify.Options{}).Status).To(gomega.Equal(verify.OK), "an honest unsigned bundle, for who asks for no signer")
		g.Expect(verified(t, dir, verify.Options{Key: pub}).Status).To(gomega.Equal(verify.Altered))
	})
}

func TestUsage(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := filepath.Join(t.TempDir(), "b")
	written(t, dir, nil, 0)
	for name, c := range map[string]struct {
		dir string
		o   verify.Options
	}{
		"no_judge":  {dir, verify.Options{}},
		"no_folder": {filepath.Join(dir, "none"), verify.Options{Judge: judgeJournal}},
		"empty":     {t.TempDir(), verify.Options{Judge: judgeJournal}},
		"a_file":    {filepath.Join(dir, "plan.json"), verify.Options{Judge: judgeJournal}},
		"bad_key":   {dir, verify.Options{Judge: judgeJournal, Key: ed25519.PublicKey("short")}},
	} {
		r, err := verify.Verify(t.Context(), c.dir, c.o)
		g.Expect(err).To(gomega.MatchError(verify.ErrUsage), name)
		g.Expect(r.Status.ExitCode()).To(gomega.Equal(2), name)
	}
	g.Expect(verify.Status("").ExitCode()).To(gomega.Equal(3), "the zero status is no success")
}

// Of a run that was cut, every row that ended is still looked at: any byte of it that changed is named, a verdict that does not follow is found, and
// what was being written when it was cut is left alone.
func TestCutRunIsCheckedAsFarAsItWent(t *testing.T) {
	const ended = "rows/chromium/x11/click[state=covered]/attempt-1/"
	cut := func(t *testing.T) string {
		dir := filepath.Join(t.TempDir(), "b")
		written(t, dir, nil, 0)
		for _, name := range []string{bundle.ManifestFile, bundle.JUnitFile, bundle.SummaryFile, "report"} {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		// The last row was cut inside its observations: the log ends in the middle of the line after its begin.
		log := read(t, dir, bundle.LogFile)
		at := bytes.LastIndex(log, []byte(`"row_end"`))
		if err := os.WriteFile(filepath.Join(dir, bundle.LogFile), log[:at], 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	last := func(dir string) string {
		var found string
		for _, name := range files(t, dir) {
			if strings.HasSuffix(name, bundle.ObservationsFile) && !strings.Contains(name, "click") && !strings.Contains(name, "unicode") {
				found = name
			}
		}
		return found
	}
	g := gomega.NewWithT(t)
	dir := cut(t)
	r := verified(t, dir, verify.Options{})
	g.Expect(r.Status).To(gomega.Equal(verify.Incomplete), "%v", r.Problems)
	var outcomes []evidence.Outcome
	for _, row := range r.Rows {
		outcomes = append(outcomes, row.Outcome)
	}
	g.Expect(outcomes).To(gomega.Equal([]evidence.Outcome{evidence.Pass, evidence.Flaky, evidence.NotRun}))
	g.Expect(fmt.Sprint(r.Problems)).To(gomega.ContainSubstring("got 2, which were checked"))

	half := last(dir)
	g.Expect(half).NotTo(gomega.BeEmpty())
	raw := read(t, dir, half)
	g.Expect(os.WriteFile(filepath.Join(dir, filepath.FromSlash(half)), raw[:len(raw)/2], 0o600)).To(gomega.Succeed())
	g.Expect(verified(t, dir, verify.Options{}).Status).To(gomega.Equal(verify.Incomplete), "a half-written row is what a cut run leaves")

	for _, name := range files(t, cut(t)) {
		if !strings.HasPrefix(name, ended) {
			continue
		}
		dir := cut(t)
		raw := read(t, dir, name)
		raw[len(raw)/2] ^= 1
		g.Expect(os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), raw, 0o600)).To(gomega.Succeed())
		r := verified(t, dir, verify.Options{})
		g.Expect(r.Status).To(gomega.Equal(verify.Altered), name)
		g.Expect(fmt.Sprint(r.Problems)).To(gomega.ContainSubstring(name))

		dir = cut(t)
		g.Expect(os.Remove(filepath.Join(dir, filepath.FromSlash(name)))).To(gomega.Succeed())
		g.Expect(verified(t, dir, verify.Options{}).Status).To(gomega.Equal(verify.Altered), "%s removed", name)
	}
	dir = cut(t)
	g.Expect(os.WriteFile(filepath.Join(dir, filepath.FromSlash(ended), "telemetry2.jsonl"), nil, 0o600)).To(gomega.Succeed())
	g.Expect(verified(t, dir, verify.Options{}).Status).To(gomega.Equal(verify.Altered), "a file of an unknown name")
}

func TestPanickingJudgeIsAProblem(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := filepath.Join(t.TempDir(), "b")
	written(t, dir, nil, 0)
	r := verified(t, dir, verify.Options{Judge: func(matrix.Contract, []evidence.Observation) evidence.Verdict { panic("hostile") }})
	g.Expect(r.Status).To(gomega.Equal(verify.Altered))
}

func TestDeep(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := filepath.Join(t.TempDir(), "b")
	written(t, dir, nil, 0)
	seen := 0
	deep := func(_ context.Context, row verify.DeepRow) ([]verify.Problem, error) {
		f, err := row.Open("film.mp4")
		if err != nil {
			return nil, err
		}
		defer f.Close()
		raw, err := io.ReadAll(f)
		if len(raw) > 0 {
			seen++
		}
		return nil, err
	}
	r := verified(t, dir, verify.Options{Deep: deep, DeepTools: []string{"decoder sha256:00"}, Workers: 1})
	g.Expect(r.Status).To(gomega.Equal(verify.OK))
	g.Expect(seen).To(gomega.Equal(4))
	g.Expect(strings.Join(r.NotRederived, "\n")).To(gomega.ContainSubstring("decoder sha256:00"))
	r = verified(t, dir, verify.Options{Deep: func(context.Context, verify.DeepRow) ([]verify.Problem, error) { return nil, errors.New("no decoder") }})
	g.Expect(r.Status).To(gomega.Equal(verify.Incomplete))
	r = verified(t, dir, verify.Options{Deep: func(_ context.Context, row verify.DeepRow) ([]verify.Problem, error) {
		return []verify.Problem{{File: row.Dir + "/film.mp4", Want: "12 codes", Got: "11"}}, nil
	}})
	g.Expect(r.Status).To(gomega.Equal(verify.Altered))
}
