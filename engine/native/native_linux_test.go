package native

import (
	"context"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
)

func TestUnavailableRefusesEverything(t *testing.T) {
	g := gomega.NewWithT(t)
	p, err := Open(t.Context(), "")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, e1 := p.Identify(t.Context(), 1)
	_, e2 := p.Window(t.Context(), 1, engine.Process{})
	_, e3 := p.Windows(t.Context(), engine.Process{})
	_, e4 := p.Observe(t.Context())
	for _, err := range []error{e1, e2, e3, e4, p.SameProcess(t.Context(), engine.Process{}), p.OwnsEndpoint(t.Context(), engine.Process{}, netip.AddrPort{})} {
		g.Expect(engine.AsRefusal(err)).To(gomega.HaveField("Detail.Limitation", "no_display"))
	}
	g.Expect(p.Close()).To(gomega.Succeed())
}

// child starts a process of another program, which dies with the test.
func child(t *testing.T) (*exec.Cmd, engine.Process) {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p, err := Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, p
}

func TestIdentity(t *testing.T) {
	g := gomega.NewWithT(t)
	cmd, p := child(t)
	g.Expect(Same(p)).To(gomega.Succeed())
	// B14: the same pid with another start time or executable is another process, and is not signalled.
	for _, other := range []engine.Process{{PID: p.PID, Start: p.Start + 1, Exe: p.Exe}, {PID: p.PID, Start: p.Start, Exe: "/bin/true"}, {PID: p.PID}} {
		g.Expect(engine.AsRefusal(Same(other))).To(gomega.HaveField("Detail.Reason", "process"))
		g.Expect(End(t.Context(), other)).To(gomega.Succeed())
		g.Expect(Same(p)).To(gomega.Succeed())
	}
	for pid, want := range map[int]string{os.Getpid(): "own_process", 0: "no_such_process", -1: "no_such_process", 1 << 30: "no_such_process"} {
		_, err := Identify(pid)
		g.Expect(engine.AsRefusal(err)).To(gomega.HaveField("Detail.Limitation", want))
	}
	g.Eventually(func() []string { // the loader is still at work right after the start
		d, err := Describe(t.Context(), p.PID)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(d.Name).To(gomega.Equal("sleep"))
		return d.Libraries
	}, "5s").Should(gomega.ContainElement(gomega.HavePrefix("libc.so")))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	g.Expect(EndTree(ctx, p)).To(gomega.Succeed())
	_, err := Identify(p.PID) // not reaped yet, and gone all the same
	g.Expect(engine.AsRefusal(err)).To(gomega.HaveField("Detail.Limitation", "no_such_process"))
	_ = cmd
}

func TestEndpointOwner(t *testing.T) {
	g := gomega.NewWithT(t)
	_, other := child(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer l.Close()
	s, err := readStat(os.Getpid())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	exe, err := os.Executable()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	me := engine.Process{PID: os.Getpid(), Start: s.start, Exe: exe}
	addr := netip.MustParseAddrPort(l.Addr().String())
	var e endpoints
	reason := func(err error) string {
		g.Expect(err).To(gomega.HaveOccurred())
		return engine.AsRefusal(err).Detail.Reason
	}
	for range 2 { // the second time from memory
		g.Expect(e.owns(me, addr)).To(gomega.Succeed())
	}
	g.Expect(reason(e.owns(other, addr))).To(gomega.Equal("owner"))
	g.Expect(reason(e.owns(me, netip.MustParseAddrPort("192.0.2.1:80")))).To(gomega.Equal("not_loopback"))
	g.Expect(reason(e.owns(me, netip.AddrPort{}))).To(gomega.Equal("not_loopback"))
	wild, err := net.Listen("tcp4", "0.0.0.0:0")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer wild.Close()
	open := netip.AddrPortFrom(addr.Addr(), netip.MustParseAddrPort(wild.Addr().String()).Port())
	g.Expect(reason(e.owns(me, open))).To(gomega.Equal("not_loopback"), "everybody could reach it")
	g.Expect(reason(e.owns(other, open))).To(gomega.Equal("owner"), "it is not its own anyway")
	six, err := net.Listen("tcp6", "[::1]:0")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer six.Close()
	g.Expect(e.owns(me, netip.MustParseAddrPort(six.Addr().String()))).To(gomega.Succeed())
	l.Close()
	g.Expect(reason(e.owns(me, addr))).To(gomega.Equal("owner"), "nobody listens any more")
}

func TestCover(t *testing.T) {
	target := engine.Rect{X: 10, Y: 10, W: 100, H: 100}
	for _, c := range []struct {
		name string
		over []engine.Rect
		want engine.State
	}{
		{"nothing_above", nil, engine.StateVisibleTab},
		{"beside", []engine.Rect{{X: 110, Y: 10, W: 50, H: 50}}, engine.StateVisibleTab},
		{"corner", []engine.Rect{{X: 100, Y: 100, W: 50, H: 50}}, engine.StatePartlyCovered},
		{"whole", []engine.Rect{{X: 0, Y: 0, W: 200, H: 200}}, engine.StateCovered},
		{"two_halves", []engine.Rect{{X: 0, Y: 0, W: 60, H: 200}, {X: 60, Y: 0, W: 60, H: 200}}, engine.StateCovered},
		{"a_slit_stays", []engine.Rect{{X: 0, Y: 0, W: 60, H: 200}, {X: 61, Y: 0, W: 60, H: 200}}, engine.StatePartlyCovered},
	} {
		t.Run(c.name, func(t *testing.T) { gomega.NewWithT(t).Expect(coverOf(target, c.over)).To(gomega.Equal(c.want)) })
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("7 (a) b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 1234 0"))
	f.Add([]byte("7 () "))
	f.Fuzz(func(t *testing.T, data []byte) { _, _ = parseStat(data) })
}

func FuzzParseDiag(f *testing.F) {
	f.Add(make([]byte, 88))
	f.Fuzz(func(t *testing.T, data []byte) {
		if out, _, _ := parseDiag(data); len(out) > len(data) {
			t.Fatal("more sockets than bytes")
		}
		parseTable(string(data))
	})
}
