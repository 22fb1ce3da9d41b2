package ledger_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/evidence/ledger"
)

func entry(commit string, n int) ledger.Entry {
	digest := strings.Repeat("0", 60) + strconv.Itoa(1000+n)
	return ledger.Entry{Commit: commit, Subject: "s", Manifest: digest, Plan: digest, ExitCode: n % 2, Wall: "2026-01-02T03:04:05Z"}
}

// J3: the counter of each commit has no gaps, also when runs end at the same time.
func TestCountersHaveNoGaps(t *testing.T) {
	g := gomega.NewWithT(t)
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			if _, err := ledger.Append(t.Context(), path, entry("commit-"+strconv.Itoa(i%2), i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	l, err := ledger.Read(path)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(l.Problems).To(gomega.BeEmpty())
	for _, commit := range []string{"commit-0", "commit-1"} {
		runs := l.Runs(commit, "s")
		g.Expect(runs).To(gomega.HaveLen(6))
		for i, r := range runs {
			g.Expect(r.Counter).To(gomega.Equal(i + 1))
		}
	}
	_, err = ledger.Append(t.Context(), path, entry("commit-0", 3))
	g.Expect(err).To(gomega.MatchError(ledger.ErrRecorded))
}

func TestEditedLedgerIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	for i := range 4 {
		if _, err := ledger.Append(t.Context(), path, entry("c", i)); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(raw, []byte("\n"))
	for name, bad := range map[string][]byte{
		"red_run_taken_out": bytes.Join([][]byte{lines[0], lines[2], lines[3]}, nil),
		"red_run_turned":    bytes.Replace(raw, []byte(`"exit_code":1`), []byte(`"exit_code":0`), 1),
		"swapped":           bytes.Join([][]byte{lines[1], lines[0], lines[2], lines[3]}, nil),
		"cut":               raw[:len(raw)-5],
		"twice":             append(bytes.Clone(raw), lines[3]...),
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			g.Expect(os.WriteFile(path, bad, 0o600)).To(gomega.Succeed())
			l, err := ledger.Read(path)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(l.Problems).NotTo(gomega.BeEmpty())
			_, err = ledger.Append(t.Context(), path, entry("c", 9))
			g.Expect(err).To(gomega.MatchError(ledger.ErrBroken))
		})
	}
}

func TestBadEntriesAndFiles(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := t.TempDir()
	for _, edit := range []func(*ledger.Entry){
		func(e *ledger.Entry) { e.Commit = "" }, func(e *ledger.Entry) { e.ExitCode = 2 }, func(e *ledger.Entry) { e.Wall = "today" }, func(e *ledger.Entry) { e.Manifest = "" },
	} {
		e := entry("c", 1)
		edit(&e)
		_, err := ledger.Append(t.Context(), filepath.Join(dir, "l"), e)
		g.Expect(err).To(gomega.HaveOccurred())
	}
	_, err := ledger.Read(filepath.Join(dir, "none"))
	g.Expect(err).To(gomega.MatchError(os.ErrNotExist))
	g.Expect(os.Symlink(filepath.Join(dir, "l"), filepath.Join(dir, "link"))).To(gomega.Succeed())
	_, err = ledger.Append(t.Context(), filepath.Join(dir, "link"), entry("c", 1))
	g.Expect(err).To(gomega.HaveOccurred())
}
