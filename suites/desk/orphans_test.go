//go:build linux

package desk

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestSweep_removes_only_desks_without_a_worker(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	open := func() *Desk {
		d := &Desk{cfg: Config{Memory: dir}, done: make(chan struct{})}
		g.Expect(d.directories(t.Context())).To(Succeed())
		return d
	}
	dead, alive := open(), open()
	beside := func(d *Desk, prefix string) string {
		dir, err := d.Directory(prefix, 0o755)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)).To(Succeed())
		return dir
	}
	deadDirs, aliveDir := []string{beside(dead, "bin-"), beside(dead, "scratch-")}, beside(alive, "bin-")
	_, err := alive.Directory("home-", 0o755)
	g.Expect(err).To(HaveOccurred())
	// A lock that was written to by somebody else names what is not a desk's.
	foreign := filepath.Join(dir, "papers")
	g.Expect(os.Mkdir(foreign, 0o700)).To(Succeed())
	_, err = dead.lock.WriteString("\npapers\nbin-/../papers\n\n.")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(dead.lock.Close()).To(Succeed()) // what the kernel does when the worker is killed
	strange := filepath.Join(dir, "seat-of-another-kind")
	g.Expect(os.Mkdir(strange, 0o700)).To(Succeed())
	escape := filepath.Join(dir, "seat-escape")
	g.Expect(os.Mkdir(escape, 0o700)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(escape, lockName), []byte("home-/../../"+filepath.Base(alive.home)), 0o600)).To(Succeed())

	next := open()
	g.Expect(dead.home).NotTo(BeADirectory())
	g.Expect(dead.seat).NotTo(BeADirectory())
	for _, d := range deadDirs {
		g.Expect(d).NotTo(BeADirectory())
	}
	for _, d := range []string{alive.home, alive.seat, aliveDir, next.home, next.seat, strange, escape, foreign} {
		g.Expect(d).To(BeADirectory())
	}
	for _, d := range []*Desk{alive, next} {
		g.Expect(d.Close(t.Context())).To(Succeed())
		g.Expect(d.home).NotTo(BeADirectory())
		g.Expect(d.seat).NotTo(BeADirectory())
	}
	g.Expect(aliveDir).NotTo(BeADirectory())
}
