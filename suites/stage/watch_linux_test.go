package stage

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
)

// Each way of touching a profile is seen, and the control is told from a second opening of the same file.
func TestWatch_sees_every_touch_of_the_persons_profiles(t *testing.T) {
	for name, touch := range map[string]func(file, control string) error{
		"read":  func(file, _ string) error { _, err := os.ReadFile(file); return err },
		"list":  func(file, _ string) error { _, err := os.ReadDir(filepath.Dir(file)); return err },
		"write": func(file, _ string) error { return os.WriteFile(file, []byte("x"), 0o600) },
		"hard_link": func(file, _ string) error {
			return os.Link(file, filepath.Join(filepath.Dir(file), "..", "..", "..", "linked"))
		},
		"rights":           func(file, _ string) error { return os.Chmod(file, 0o644) },
		"rename":           func(file, _ string) error { return os.Rename(file, file+".old") },
		"new_file":         func(file, _ string) error { return os.WriteFile(file+".new", nil, 0o600) },
		"the_control_file": func(_, control string) error { _, err := os.ReadFile(control); return err },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			home := t.TempDir()
			for _, p := range personProfiles {
				for _, file := range p.files {
					path := filepath.Join(home, p.dir, file)
					g.Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
					g.Expect(os.WriteFile(path, []byte("the person's own"), 0o600)).To(Succeed())
				}
			}
			w, err := watchProfiles(home)
			g.Expect(err).NotTo(HaveOccurred())
			defer func() { g.Expect(w.Close()).To(Succeed()) }()
			report := func() WatchReport {
				r, err := w.Report(t.Context(), home)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(r.Lost).NotTo(HaveOccurred())
				g.Expect(r.Products).To(Equal(r.Of))
				return r
			}
			g.Expect(report().Touched).To(BeEmpty())
			g.Expect(touch(filepath.Join(home, ".config/chromium/Default/Cookies"), filepath.Join(home, ".config/chromium/Default/Favicons"))).To(Succeed())
			g.Expect(report().Touched).To(ContainElement(HavePrefix("chromium: ")))
			g.Expect(report().Touched).To(BeEmpty())
		})
	}
}

func TestOpenListeners_are_told_with_address_and_owner(t *testing.T) {
	g := NewWithT(t)
	inodes := map[string]uint32{}
	for _, address := range []string{"0.0.0.0:0", "[::]:0", "127.0.0.1:0", "[::1]:0"} {
		network := "tcp4"
		if address[0] == '[' {
			network = "tcp6"
		}
		l, err := net.Listen(network, address)
		g.Expect(err).NotTo(HaveOccurred())
		defer l.Close()
		f, err := l.(*net.TCPListener).File()
		g.Expect(err).NotTo(HaveOccurred())
		defer f.Close()
		link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
		g.Expect(err).NotTo(HaveOccurred())
		var inode uint32
		_, err = fmt.Sscanf(link, "socket:[%d]", &inode)
		g.Expect(err).NotTo(HaveOccurred())
		inodes[address] = inode
	}
	found, err := openListeners()
	g.Expect(err).NotTo(HaveOccurred())
	has := func(address string) bool {
		return slices.ContainsFunc(found, func(o openListener) bool {
			return o.inode == inodes[address] && o.uid == os.Getuid() && o.address.Port() > 0
		})
	}
	g.Expect(has("0.0.0.0:0")).To(BeTrue())
	g.Expect(has("[::]:0")).To(BeTrue())
	g.Expect(has("127.0.0.1:0")).To(BeTrue())
	g.Expect(has("[::1]:0")).To(BeTrue())
	for _, o := range found {
		if o.inode == inodes["0.0.0.0:0"] || o.inode == inodes["[::]:0"] {
			g.Expect(o.address.Addr().Unmap().IsUnspecified()).To(BeTrue(), o.address.String())
		} else if o.inode == inodes["127.0.0.1:0"] || o.inode == inodes["[::1]:0"] {
			g.Expect(o.address.Addr().Unmap().IsLoopback()).To(BeTrue(), o.address.String())
		}
	}
}

func BenchmarkOpenListeners(b *testing.B) {
	for b.Loop() {
		if _, err := openListeners(); err != nil {
			b.Fatal(err)
		}
	}
}
