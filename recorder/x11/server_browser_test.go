//go:build browser

package x11

import (
	"bufio"
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// dialServer starts a private X server with a cookie and connects to it.
func dialServer(t *testing.T) *Conn {
	t.Helper()
	g := NewWithT(t)
	auth := filepath.Join(t.TempDir(), "Xauthority")
	cookie := make([]byte, 16)
	_, err := rand.Read(cookie)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(auth, authority(AuthorityEntry{Family: familyWild, Name: cookieName, Data: cookie}), 0o600)).To(Succeed())
	r, w, err := os.Pipe()
	g.Expect(err).NotTo(HaveOccurred())
	cmd := exec.Command("Xvfb", "-displayfd", "3", "-auth", auth, "-screen", "0", "640x480x24", "-nolisten", "tcp", "-noreset")
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	g.Expect(cmd.Start()).To(Succeed())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	g.Expect(w.Close()).To(Succeed())
	g.Expect(r.SetReadDeadline(time.Now().Add(20 * time.Second))).To(Succeed())
	line, err := bufio.NewReader(r).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Close()).To(Succeed())
	display := ":" + strings.TrimSpace(line)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = Dial(ctx, display, "")
	g.Expect(err).To(MatchError(ErrSetup), "the server must ask for its cookie")
	c, err := Dial(ctx, display, auth)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// The calls agree with each other on a real server.
func TestCallsOnARealServer(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	c := dialServer(t)
	must := func(err error) { t.Helper(); g.Expect(err).NotTo(HaveOccurred()) }
	g.Expect([]uint16{c.Setup().Width, c.Setup().Height}).To(Equal([]uint16{640, 480}))

	w, err := c.CreateWindow(ctx, WindowOptions{X: 30, Y: 40, Width: 200, Height: 100})
	must(err)
	child, err := c.CreateWindow(ctx, WindowOptions{Parent: w, X: 5, Y: 6, Width: 10, Height: 10, InputOnly: true})
	must(err)
	must(c.Send(ctx, MapWindow(w), MapWindow(child), SetTitle(w, "title")))

	geometry, err := c.Geometry(ctx, w)
	must(err)
	g.Expect(geometry).To(Equal(Geometry{X: 30, Y: 40, Width: 200, Height: 100}))
	x, y, err := c.Translate(ctx, child, c.Root(), 1, 1)
	must(err)
	g.Expect([]int16{x, y}).To(Equal([]int16{36, 47}))
	top, err := c.TopLevel(ctx, child)
	must(err)
	g.Expect(top).To(Equal(w))
	tree, err := c.QueryTree(ctx, w)
	must(err)
	g.Expect(tree).To(Equal(Tree{Root: c.Root(), Parent: c.Root(), Children: []uint32{child}}))
	states, err := c.Children(ctx, w)
	must(err)
	g.Expect(states).To(HaveLen(1))
	g.Expect(states[0].Attributes).To(Equal(Attributes{InputOnly: true, Mapped: true, Viewable: true}))

	p, err := c.Property(ctx, w, AtomWMName, 100)
	must(err)
	g.Expect(string(p.Value)).To(Equal("title"))
	g.Expect(p.Type).To(Equal(AtomString))
	p, err = c.Property(ctx, w, AtomWMName, 2)
	must(err)
	g.Expect(string(p.Value)).To(Equal("titl"))
	g.Expect(p.After).To(Equal(uint32(1)))
	p, err = c.Property(ctx, w, AtomWMHints, 100)
	must(err)
	g.Expect(p.Type).To(BeZero())
	a, err := c.Atom(ctx, "_SOME_NAME")
	must(err)
	name, err := c.AtomName(ctx, a)
	must(err)
	g.Expect(name).To(Equal("_SOME_NAME"))

	must(c.Send(ctx, SetInputFocus(w), SetSelectionOwner(w, AtomPrimary), c.WarpPointer(50, 60)))
	focus, _, err := c.Focus(ctx)
	must(err)
	g.Expect(focus).To(Equal(w))
	owner, err := c.SelectionOwner(ctx, AtomPrimary)
	must(err)
	g.Expect(owner).To(Equal(w))
	at, err := c.Pointer(ctx)
	must(err)
	g.Expect(at).To(Equal(Pointer{X: 50, Y: 60, Child: w}))
	fake, err := c.FakeInput(ctx, MotionNotify, 0, 70, 80)
	must(err)
	must(c.Send(ctx, fake))
	at, err = c.Pointer(ctx)
	must(err)
	g.Expect([]int16{at.X, at.Y}).To(Equal([]int16{70, 80}))
	keysyms, modifiers, err := c.Keymap(ctx)
	must(err)
	g.Expect(len(keysyms)).To(BeNumerically(">", 248*4))
	g.Expect(modifiers).NotTo(BeEmpty())

	_, err = c.UseResource(ctx)
	must(err)
	pid, err := c.ClientPID(ctx, child)
	must(err)
	g.Expect(pid).To(Equal(os.Getpid()))
	clients, err := c.Clients(ctx)
	must(err)
	g.Expect(clients).To(ContainElement(c.Setup().ResourceBase))
	_, err = c.Extension(ctx, "NO-SUCH-THING")
	g.Expect(err).To(MatchError(ErrNoExtension))

	must(c.Send(ctx, DestroyWindow(w)))
	_, err = c.Geometry(ctx, w)
	g.Expect(IsGone(err)).To(BeTrue(), "%v", err)
}

// Raw input arrives at its full length, and a made event keeps its mark.
func TestEventsOnARealServer(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	c := dialServer(t)
	input, err := c.UseInput(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	devices, err := c.Devices(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	tests := map[uint16]bool{}
	for _, d := range devices {
		tests[d.ID] = d.IsTest()
	}
	raw := make(chan InputEvent2, 16)
	made := make(chan Event, 16)
	c.Handle(Handler{Event: func(e Event) {
		if i, ok := ParseInput2(input, e); ok {
			raw <- i
		} else if e.Code != MappingNotify { // the test keyboard becoming the current one
			made <- e
		}
	}})
	w, err := c.CreateWindow(ctx, WindowOptions{Width: 10, Height: 10})
	g.Expect(err).NotTo(HaveOccurred())
	fake, err := c.FakeInput(ctx, KeyPress, 38, 0, 0)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Send(ctx, c.SelectRawInput(input), fake, SendEvent(w, 0, 0, ClientMessageEvent(w, AtomString, 1, 2)))).To(Succeed())
	var key InputEvent2
	g.Eventually(raw, 5*time.Second).Should(Receive(&key))
	g.Expect(key.Type).To(Equal(uint16(XIRawKeyPress)))
	g.Expect(key.Detail).To(Equal(uint32(38)))
	g.Expect(tests[key.Source]).To(BeTrue(), "%+v of %+v", key, devices)
	var e Event
	g.Eventually(made, 5*time.Second).Should(Receive(&e))
	g.Expect(e.Code).To(Equal(byte(ClientMessage)))
	g.Expect(e.SendEvent).To(BeTrue())
}
