//go:build unix

package bundle_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/evidence/bundle"
	"github.com/engine-acceptance/acceptance/evidence/provenance"
)

// K43: on a disk that takes no more, the write says so, nothing half looks whole, and the bundle never finishes. A child with a limit on the
// size of files stands in for the disk: its kernel refuses the write in the middle, as a full disk does.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv("BUNDLE_FULL_DISK"); dir != "" {
		full(t, dir)
		return
	}
	g := gomega.NewWithT(t)
	dir := filepath.Join(t.TempDir(), "b")
	cmd := exec.Command("/bin/sh", "-c", `ulimit -f 64 && exec "$0" -test.run '^TestFullDisk$'`, os.Args[0])
	cmd.Env = append(os.Environ(), "BUNDLE_FULL_DISK="+dir)
	out, err := cmd.CombinedOutput()
	g.Expect(err).NotTo(gomega.HaveOccurred(), string(out))
	for _, name := range []string{"manifest.json", "rows/chromium/x11/a/attempt-1/film.mp4"} {
		_, err := os.Lstat(filepath.Join(dir, name))
		g.Expect(err).To(gomega.MatchError(os.ErrNotExist), name)
	}
}

func full(t *testing.T, dir string) {
	g := gomega.NewWithT(t)
	signal.Ignore(syscall.SIGXFSZ) // a write beyond the limit is an error then, not the end of the process
	p := plan(t, "a")
	w, err := bundle.Create(t.Context(), dir, p)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(w.Provenance(provenance.Provenance{Format: provenance.Format})).To(gomega.Succeed())
	row, err := w.Row(p.Rows[0], 1)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	err = row.Add("film.mp4", bytes.NewReader(make([]byte, 1<<20)))
	g.Expect(err).To(gomega.MatchError(bundle.ErrWrite))
	var we *bundle.WriteError
	g.Expect(errors.As(err, &we)).To(gomega.BeTrue())
	g.Expect(err.Error()).To(gomega.ContainSubstring("evidence_write_failed"))
	g.Expect(err.Error()).NotTo(gomega.ContainSubstring(dir))
	_ = row.Finish(evidence.Verdict{Row: "a", Outcome: evidence.Pass})
	_, err = w.Finish(t.Context(), bundle.Signing{})
	g.Expect(err).To(gomega.MatchError(bundle.ErrWrite))
}
