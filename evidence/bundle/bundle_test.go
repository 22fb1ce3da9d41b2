package bundle_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/bundle"
	"github.com/engine-acceptance/acceptance/evidence/provenance"
	"github.com/engine-acceptance/acceptance/matrix"
)

func plan(t testing.TB, ids ...matrix.RowID) matrix.Plan {
	t.Helper()
	p := matrix.Plan{Format: matrix.PlanFormat, Engine: "cdp", Product: "chromium", Environment: "x11"}
	for _, id := range ids {
		p.Rows = append(p.Rows, matrix.Contract{ID: id, Requirement: "M5", Product: "chromium", Environment: "x11", Budget: 5 * time.Second})
	}
	var err error
	if p.Digest, err = bundle.PlanDigest(p); err != nil {
		t.Fatal(err)
	}
	return p
}

var fault = evidence.Observation{Kind: evidence.KindFault, Phase: evidence.PhasePrepare, Fault: &evidence.Fault{Whose: "harness", What: "x"}}

func TestPathOfIsReversibleAndSafe(t *testing.T) {
	seen := map[string]matrix.RowID{}
	for _, id := range []matrix.RowID{"a", "A", "type-unicode[route=trusted_input,state=covered]", "a/b", "a%2fb", "..", ".", ".a", "a.", "a b", "é", "e\u0301", "☂",
		"con:x", `a\b`, "a*?", "$(x)", "'q'", "rows"} {
		got, err := bundle.PathOf(id)
		if err != nil {
			t.Errorf("%q: %v", id, err)
			continue
		}
		if strings.ContainsAny(got, "/\\ *?$'\"<>|:") || got[0] == '.' || got[0] == '-' || got != strings.ToLower(got) {
			t.Errorf("%q gives the name %q", id, got)
		}
		if other, taken := seen[strings.ToLower(got)]; taken {
			t.Errorf("%q and %q share the name %q", id, other, got)
		}
		seen[strings.ToLower(got)] = id
		if back, err := bundle.RowIDOf(got); err != nil || back != id {
			t.Errorf("%q comes back as %q, %v", id, back, err)
		}
	}
	for _, id := range []matrix.RowID{"", "-rf", "a\x00b", "a\nb", "\xff", matrix.RowID(strings.Repeat("x", 201)), matrix.RowID(strings.Repeat("☂", 30))} {
		if got, err := bundle.PathOf(id); err == nil {
			t.Errorf("%q was given the name %q, want a refusal", id, got)
		}
	}
	for _, name := range []string{"%41%", "%zz", "%61", "A", "%2F", "a b", ""} {
		if id, err := bundle.RowIDOf(name); err == nil {
			t.Errorf("%q was read as %q; it is never written so", name, id)
		}
	}
}

func TestSizeKnowsEveryNameAndNoOther(t *testing.T) {
	row := "rows/chromium/x11/a/attempt-1/"
	for _, name := range []string{"plan.json", "report/index.html", "report/a/b.css", row + "row.json", row + "film.mp4"} {
		if _, ok := bundle.Size(name); !ok {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{"", ".", "x", "report", "report/", "report/../plan.json", "report/.x", "report//x", "/plan.json", "rows/chromium/x11/a/attempt-0/row.json",
		"rows/chromium/x11/a/attempt-01/row.json", "rows/chromium/x11/a/attempt-100/row.json", "rows/chromium/x11/../attempt-1/row.json", row + "other", row + "x/row.json", "rows/C/x11/a/attempt-1/row.json"} {
		if _, ok := bundle.Size(name); ok {
			t.Errorf("%q is allowed", name)
		}
	}
}

func TestNoBundleIsOverwritten(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := filepath.Join(t.TempDir(), "o'b  é 日本 #1")
	p := plan(t, "a")
	w, err := bundle.Create(t.Context(), dir, p)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(w.Close()).To(gomega.Succeed())
	before, err := os.ReadFile(filepath.Join(dir, "plan.json"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = bundle.Create(t.Context(), dir, plan(t, "b"))
	g.Expect(err).To(gomega.MatchError(bundle.ErrExists))
	after, err := os.ReadFile(filepath.Join(dir, "plan.json"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(after).To(gomega.Equal(before))
	file := filepath.Join(t.TempDir(), "file")
	g.Expect(os.WriteFile(file, nil, 0o600)).To(gomega.Succeed())
	_, err = bundle.Create(t.Context(), file, p)
	g.Expect(err).To(gomega.MatchError(bundle.ErrExists))
	link := filepath.Join(t.TempDir(), "link")
	g.Expect(os.Symlink(t.TempDir(), link)).To(gomega.Succeed())
	_, err = bundle.Create(t.Context(), link, p)
	g.Expect(err).To(gomega.MatchError(bundle.ErrExists))
}

func TestBadPlansAreRefused(t *testing.T) {
	for name, edit := range map[string]func(*matrix.Plan){
		"digest":  func(p *matrix.Plan) { p.Digest = strings.Repeat("0", 64) },
		"twice":   func(p *matrix.Plan) { p.Rows = append(p.Rows, p.Rows[0]); p.Digest, _ = bundle.PlanDigest(*p) },
		"hostile": func(p *matrix.Plan) { p.Rows[0].ID = "a\x00"; p.Digest, _ = bundle.PlanDigest(*p) },
		"format":  func(p *matrix.Plan) { p.Format = "other"; p.Digest, _ = bundle.PlanDigest(*p) },
	} {
		p := plan(t, "a")
		edit(&p)
		dir := filepath.Join(t.TempDir(), "b")
		if _, err := bundle.Create(t.Context(), dir, p); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("%s: a folder was left", name)
		}
	}
}

// J12: nobody but the harness's uid may write, or read, the bundle.
func TestModes(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := t.TempDir()
	g.Expect(os.Chmod(dir, 0o777)).To(gomega.Succeed())
	p := plan(t, "a")
	w, err := bundle.Create(t.Context(), dir, p)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	row, err := w.Row(p.Rows[0], 1)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(row.Add("engine.log", strings.NewReader("x"))).To(gomega.Succeed())
	g.Expect(row.Finish(evidence.Verdict{Row: "a"})).To(gomega.Succeed())
	err = filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			err = fmt.Errorf("%s has mode %v", p, info.Mode())
		}
		return err
	})
	g.Expect(err).NotTo(gomega.HaveOccurred())
}

func TestOrderIsKept(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := filepath.Join(t.TempDir(), "b")
	p := plan(t, "a", "b")
	w, err := bundle.Create(t.Context(), dir, p)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	finish := func() error { _, err := w.Finish(t.Context(), bundle.Signing{}); return err }

	_, err = w.Row(matrix.Contract{ID: "c", Product: "chromium", Environment: "x11"}, 1)
	g.Expect(err).To(gomega.HaveOccurred(), "not planned")
	loose := p.Rows[0]
	loose.Budget *= 2
	_, err = w.Row(loose, 1)
	g.Expect(err).To(gomega.HaveOccurred(), "another contract")
	_, err = w.Row(p.Rows[0], 2)
	g.Expect(err).To(gomega.HaveOccurred(), "attempt 2 before 1")

	row, err := w.Row(p.Rows[0], 1)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = w.Row(p.Rows[0], 1)
	g.Expect(err).To(gomega.HaveOccurred(), "twice at once")
	g.Expect(row.Observe(evidence.Observation{Kind: "other", Phase: evidence.PhasePrepare})).NotTo(gomega.Succeed())
	g.Expect(row.Observe(evidence.Observation{Kind: evidence.KindFault, Phase: evidence.PhasePrepare})).NotTo(gomega.Succeed(), "no payload")
	g.Expect(row.Observe(fault)).To(gomega.Succeed())
	g.Expect(row.Count()).To(gomega.Equal(1))
	_, err = row.File("../plan.json")
	g.Expect(err).To(gomega.HaveOccurred())
	film, err := row.File("film.mp4")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = row.File("film.mp4")
	g.Expect(err).To(gomega.MatchError(bundle.ErrClosed))
	g.Expect(row.Finish(evidence.Verdict{Row: "a"})).To(gomega.MatchError(bundle.ErrUnfinished), "a view is open")
	g.Expect(film.Abort()).To(gomega.Succeed())
	g.Expect(row.Add("film.mp4", strings.NewReader("again"))).To(gomega.Succeed())
	g.Expect(row.Finish(evidence.Verdict{Row: "a", Outcome: evidence.Fail})).To(gomega.Succeed())
	g.Expect(row.Observe(fault)).To(gomega.MatchError(bundle.ErrClosed))
	g.Expect(finish()).To(gomega.MatchError(bundle.ErrUnfinished), "row b has no verdict")

	// Row b is written by a worker, which knows the folder only.
	g.Expect(w.Begin(p.Rows[1], 1)).To(gomega.Succeed())
	_, err = bundle.OpenRow(t.Context(), dir, loose, 1)
	g.Expect(err).To(gomega.HaveOccurred())
	worker, err := bundle.OpenRow(t.Context(), dir, p.Rows[1], 1)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(worker.Observe(fault)).To(gomega.Succeed())
	g.Expect(worker.Close()).To(gomega.Succeed())
	g.Expect(finish()).To(gomega.MatchError(bundle.ErrUnfinished), "row b has no verdict yet")
	g.Expect(w.Verdict(p.Rows[1], 1, evidence.Verdict{Row: "a"})).NotTo(gomega.Succeed(), "the verdict names another row")
	g.Expect(w.Verdict(p.Rows[1], 1, evidence.Verdict{Row: "b", Outcome: evidence.Pass})).To(gomega.Succeed())
	g.Expect(finish()).To(gomega.MatchError(bundle.ErrUnfinished), "no provenance")
	g.Expect(w.Provenance(provenance.Provenance{Format: provenance.Format})).To(gomega.Succeed())
	g.Expect(w.Export("../x", nil)).NotTo(gomega.Succeed())
	g.Expect(finish()).To(gomega.Succeed())
	g.Expect(finish()).To(gomega.MatchError(bundle.ErrClosed))
	g.Expect(w.Verdicts()).To(gomega.HaveLen(2))
}

func TestAttemptsThatDifferAreFlaky(t *testing.T) {
	g := gomega.NewWithT(t)
	v := func(o evidence.Outcome) evidence.Verdict {
		return evidence.Verdict{Row: "a", Outcome: o, Findings: []evidence.Finding{{Text: o.String()}}}
	}
	g.Expect(bundle.RowVerdict("a", nil).Outcome).To(gomega.Equal(evidence.NotRun))
	g.Expect(bundle.RowVerdict("a", []evidence.Verdict{v(evidence.Fail), v(evidence.Pass)}).Outcome).To(gomega.Equal(evidence.Flaky))
	g.Expect(bundle.RowVerdict("a", []evidence.Verdict{v(evidence.Fail), v(evidence.Fail)}).Outcome).To(gomega.Equal(evidence.Fail))
	g.Expect(bundle.RowVerdict("a", []evidence.Verdict{v(evidence.Pass), v(evidence.Fail), v(evidence.Pass)}).Findings).To(gomega.HaveLen(3))
}

func TestViewWrittenByName(t *testing.T) {
	g := gomega.NewWithT(t)
	p := plan(t, "a")
	dir := filepath.Join(t.TempDir(), "b")
	w, err := bundle.Create(t.Context(), dir, p)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	row, err := w.Row(p.Rows[0], 1)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	film, err := row.File("film.mp4")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(os.WriteFile(film.Name(), []byte("by another program"), 0o600)).To(gomega.Succeed())
	g.Expect(film.Close()).To(gomega.Succeed())
	raw, err := os.ReadFile(filepath.Join(dir, row.Path(), "film.mp4"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(string(raw)).To(gomega.Equal("by another program"))
}

func line(t testing.TB, o evidence.Observation) []byte {
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return append(raw, '\n')
}

func TestLongObservations(t *testing.T) {
	g := gomega.NewWithT(t)
	o := fault
	o.Seq = 1
	o.Fault = &evidence.Fault{What: strings.Repeat("x", 200<<10)}
	two := o
	two.Seq = 2
	raw := append(line(t, o), line(t, two)...)
	all, err := bundle.ReadObservations(bytes.NewReader(raw))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(all).To(gomega.HaveLen(2))
	_, err = bundle.ReadObservations(bytes.NewReader(raw[:len(raw)-1]))
	var malformed *bundle.MalformedError
	g.Expect(errors.As(err, &malformed)).To(gomega.BeTrue())
	g.Expect(malformed.Cut).To(gomega.BeTrue())
	o.Fault.What = strings.Repeat("x", bundle.MaxLine)
	_, err = bundle.ReadObservations(bytes.NewReader(line(t, o)))
	g.Expect(errors.As(err, &malformed)).To(gomega.BeTrue())
	g.Expect(malformed.Cut).To(gomega.BeFalse())
}

func FuzzReadObservations(f *testing.F) {
	o := fault
	o.Seq = 1
	f.Add(line(f, o))
	f.Add([]byte(`{"seq":1,"mono_ns":0,"kind":"step","phase":"prepare","step_info":{"verb":"","start_ns":0,"end_ns":0,"outcome":""}}` + "\n"))
	f.Add([]byte(`{"seq":1,"Kind":"fault"}` + "\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		all, err := bundle.ReadObservations(bytes.NewReader(raw))
		if err != nil {
			return
		}
		var again []byte
		for i, o := range all {
			if o.Seq != i+1 {
				t.Fatalf("observation %d has seq %d", i, o.Seq)
			}
			again = append(again, line(t, o)...)
		}
		if !bytes.Equal(again, raw) {
			t.Fatalf("accepted %q, which would be written as %q", raw, again)
		}
	})
}

func FuzzDecodeDocument(f *testing.F) {
	f.Add([]byte(`{"files":[{"path":"plan.json","sha256":"00","size":1}],"format":"acceptance.manifest/v1","plan_digest":"","signer":"unsigned"}` + "\n"))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var m bundle.Manifest
		if err := bundle.DecodeDocument(raw, &m); err == nil && !json.Valid(raw) {
			t.Fatalf("accepted what is no JSON: %q", raw)
		}
		var p matrix.Plan
		_ = bundle.DecodeDocument(raw, &p)
		var v bundle.VerdictDocument
		_ = bundle.DecodeDocument(raw, &v)
	})
}

func FuzzSplitRow(f *testing.F) {
	f.Add("rows/chromium/x11/a[b=c]/attempt-1/row.json")
	f.Add("rows/%41/x11/%2e%2e/attempt-99/film.mp4")
	f.Fuzz(func(t *testing.T, name string) {
		place, file, err := bundle.SplitRow(name)
		if err != nil {
			return
		}
		if dir, err := place.Path(); err != nil || dir+"/"+file != name {
			t.Fatalf("%q is read as %+v and written as %q, %v", name, place, dir, err)
		}
	})
}
