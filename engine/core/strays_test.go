package core

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// A browser that was killed leaves the directory of its socket in /tmp, wherever the engine's own temporary files are; it goes with the profile. What only looks
// alike stays.
func TestProfile_removes_the_directory_of_the_socket(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("TMPDIR", t.TempDir())
	p, err := newProfile(t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	folder := func(pattern string) string {
		dir, err := os.MkdirTemp("/tmp", pattern)
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		g.Expect(os.WriteFile(filepath.Join(dir, "SingletonSocket"), nil, 0o600)).To(Succeed())
		return dir
	}
	left, other := folder("org.chromium.Chromium."), folder("somebody-")
	g.Expect(os.Symlink(filepath.Join(left, "SingletonSocket"), filepath.Join(p.data(), "SingletonSocket"))).To(Succeed())
	g.Expect(os.Symlink(filepath.Join(other, "SingletonSocket"), filepath.Join(p.data(), "Other"))).To(Succeed())
	g.Expect(p.remove(t.Context())).To(Succeed())
	g.Expect(exists(left)).To(BeFalse())
	g.Expect(exists(other)).To(BeTrue())
	g.Expect(exists(string(p))).To(BeFalse())
}
