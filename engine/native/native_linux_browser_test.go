//go:build browser && linux

package native

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
)

// clientMode is the variable that turns the test binary into a window client: a person's or a foreign application in a process of its own.
const clientMode = "NATIVE_TEST_CLIENT"

// clientPlan says what window the client opens. Claim is what it writes into _NET_WM_PID; 0 writes its own pid, -1 nothing.
type clientPlan struct {
	Bounds engine.Rect
	Title  string
	Claim  int
}

func TestMain(m *testing.M) {
	if raw := os.Getenv(clientMode); raw != "" {
		if err := client(raw); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// client opens one window and obeys lines on stdin (move X Y W H, raise, lower, focus, iconify, unmap) until stdin ends.
func client(raw string) error {
	var plan clientPlan
	if err := json.Unmarshal([]byte(raw), &plan); err != nil {
		return err
	}
	x, err := xgb.NewConn()
	if err != nil {
		return err
	}
	screen := xproto.Setup(x).DefaultScreen(x)
	id, err := xproto.NewWindowId(x)
	if err != nil {
		return err
	}
	b := plan.Bounds
	if err := xproto.CreateWindowChecked(x, screen.RootDepth, id, screen.Root, int16(b.X), int16(b.Y), uint16(b.W), uint16(b.H), 0,
		xproto.WindowClassInputOutput, screen.RootVisual, xproto.CwEventMask, []uint32{xproto.EventMaskStructureNotify}).Check(); err != nil {
		return err
	}
	atom := func(name string) xproto.Atom {
		r, err := xproto.InternAtom(x, false, uint16(len(name)), name).Reply()
		if err != nil {
			return 0
		}
		return r.Atom
	}
	if plan.Claim >= 0 {
		pid := plan.Claim
		if pid == 0 {
			pid = os.Getpid()
		}
		value := make([]byte, 4)
		xgb.Put32(value, uint32(pid))
		xproto.ChangeProperty(x, xproto.PropModeReplace, id, atom("_NET_WM_PID"), xproto.AtomCardinal, 32, 1, value)
	}
	xproto.ChangeProperty(x, xproto.PropModeReplace, id, xproto.AtomWmName, xproto.AtomString, 8, uint32(len(plan.Title)), []byte(plan.Title))
	hints := make([]byte, 72)
	xgb.Put32(hints, 1) // USPosition: the window manager keeps the place
	xproto.ChangeProperty(x, xproto.PropModeReplace, id, xproto.AtomWmNormalHints, xproto.AtomWmSizeHints, 32, 18, hints)
	if err := xproto.MapWindowChecked(x, id).Check(); err != nil {
		return err
	}
	message := func(kind string, data ...uint32) {
		ev := xproto.ClientMessageEvent{Format: 32, Window: id, Type: atom(kind), Data: xproto.ClientMessageDataUnionData32New(append(data, make([]uint32, 5-len(data))...))}
		xproto.SendEvent(x, false, screen.Root, xproto.EventMaskSubstructureRedirect|xproto.EventMaskSubstructureNotify, string(ev.Bytes()))
	}
	fmt.Println(uint32(id))
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		f := strings.Fields(in.Text())
		n := make([]uint32, len(f))
		for i, s := range f {
			v, _ := strconv.Atoi(s)
			n[i] = uint32(v)
		}
		switch f[0] {
		case "move":
			xproto.ConfigureWindow(x, id, xproto.ConfigWindowX|xproto.ConfigWindowY|xproto.ConfigWindowWidth|xproto.ConfigWindowHeight, n[1:5])
		case "raise":
			xproto.ConfigureWindow(x, id, xproto.ConfigWindowStackMode, []uint32{xproto.StackModeAbove})
		case "lower":
			xproto.ConfigureWindow(x, id, xproto.ConfigWindowStackMode, []uint32{xproto.StackModeBelow})
		case "activate":
			message("_NET_ACTIVE_WINDOW", 2)
		case "iconify":
			message("WM_CHANGE_STATE", 3)
		}
		if _, err := xproto.GetInputFocus(x).Reply(); err != nil {
			return err
		}
		fmt.Println("done")
	}
	return nil
}

// spawn starts a child that dies with the test.
func spawn(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// desk starts an X server and a window manager.
func desk(t *testing.T, args ...string) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command("Xvfb", append([]string{"-displayfd", "3", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset"}, args...)...)
	cmd.ExtraFiles = []*os.File{w}
	spawn(t, cmd)
	w.Close()
	_ = r.SetReadDeadline(time.Now().Add(10 * time.Second))
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	display := ":" + strings.TrimSpace(line)
	wm := exec.Command("openbox")
	wm.Env = append(os.Environ(), "DISPLAY="+display, "HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
	spawn(t, wm)
	silence()
	x, err := xgb.NewConnDisplay(display)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	root := xproto.Setup(x).DefaultScreen(x).Root
	// Openbox announces itself early and drops windows that are mapped before it lists its clients.
	name := "_NET_CLIENT_LIST"
	atom, err := xproto.InternAtom(x, false, uint16(len(name)), name).Reply()
	if err != nil {
		t.Fatal(err)
	}
	gomega.NewWithT(t).Eventually(func() bool {
		r, err := xproto.GetProperty(x, false, root, atom.Atom, xproto.AtomWindow, 0, 1).Reply()
		return err == nil && r.Type == xproto.AtomWindow
	}, "10s", "10ms").Should(gomega.BeTrue())
	return display
}

type application struct {
	id   uint32
	proc engine.Process
	in   io.Writer
	out  *bufio.Reader
	t    *testing.T
}

func (a application) do(line string) {
	a.t.Helper()
	fmt.Fprintln(a.in, line)
	if got, err := a.out.ReadString('\n'); err != nil || got != "done\n" {
		a.t.Fatalf("client: %q %v", got, err)
	}
}

func open(t *testing.T, display string, plan clientPlan) application {
	t.Helper()
	raw, _ := json.Marshal(plan)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "DISPLAY="+display, clientMode+"="+string(raw))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	spawn(t, cmd)
	reader := bufio.NewReader(out)
	line, err := reader.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.ParseUint(strings.TrimSpace(line), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	s, err := readStat(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := executable(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return application{uint32(id), engine.Process{PID: cmd.Process.Pid, Start: s.start, Exe: exe}, in, reader, t}
}

func TestX11(t *testing.T) {
	g := gomega.NewWithT(t)
	display := desk(t)
	ctx := t.Context()
	p, err := Open(ctx, display)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer p.Close()
	at := engine.Rect{X: 200, Y: 150, W: 400, H: 300}
	mine := open(t, display, clientPlan{Bounds: at, Title: "same"})
	listed := func(a application) func() []uint32 {
		return func() []uint32 {
			ws, err := p.Windows(ctx, a.proc)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			var ids []uint32
			for _, w := range ws {
				ids = append(ids, w.ID)
			}
			return ids
		}
	}
	g.Eventually(listed(mine), "5s").Should(gomega.Equal([]uint32{mine.id}))

	t.Run("geometry_is_the_client_rectangle", func(t *testing.T) {
		g := gomega.NewWithT(t)
		g.Eventually(func() engine.NativeWindow {
			w, err := p.Window(ctx, mine.id, mine.proc)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			return w
		}, "5s").Should(gomega.And(
			gomega.HaveField("Mapped", true), gomega.HaveField("OwnerPID", mine.proc.PID),
			gomega.HaveField("Bounds.W", 400), gomega.HaveField("Bounds.H", 300)))
	})
	// B12: a client that wears another's pid, title and rectangle is not that process's window, and its own process does not get it either.
	t.Run("a_foreign_client_in_disguise_is_refused", func(t *testing.T) {
		g := gomega.NewWithT(t)
		foreign := open(t, display, clientPlan{Bounds: at, Title: "same", Claim: mine.proc.PID})
		g.Eventually(func() error { _, err := p.Window(ctx, foreign.id, mine.proc); return err }, "5s").Should(gomega.HaveOccurred())
		_, err := p.Window(ctx, foreign.id, mine.proc)
		g.Expect(engine.AsRefusal(err)).To(gomega.And(gomega.HaveField("Trigger", "wrong_target"), gomega.HaveField("Detail.Reason", "window_owner")))
		_, err = p.Window(ctx, foreign.id, foreign.proc)
		g.Expect(engine.AsRefusal(err)).To(gomega.HaveField("Trigger", "wrong_target"), "the claim contradicts the server")
		g.Expect(listed(mine)()).To(gomega.Equal([]uint32{mine.id}))
	})
	t.Run("a_window_that_claims_nothing_is_its_owner's", func(t *testing.T) {
		g := gomega.NewWithT(t)
		quiet := open(t, display, clientPlan{Bounds: engine.Rect{X: 10, Y: 10, W: 50, H: 50}, Claim: -1})
		_, err := p.Window(ctx, quiet.id, quiet.proc)
		g.Expect(err).NotTo(gomega.HaveOccurred())
	})
	t.Run("a_window_that_is_gone_is_stale", func(t *testing.T) {
		g := gomega.NewWithT(t)
		for _, id := range []uint32{0x7fffff1, 0xffffffff} {
			_, err := p.Window(ctx, id, mine.proc)
			g.Expect(engine.AsRefusal(err)).To(gomega.HaveField("Detail.Reason", "window"))
		}
	})
	t.Run("effects_on_the_desk_are_seen_with_no_time_between_do_and_undo", func(t *testing.T) {
		g := gomega.NewWithT(t)
		person := open(t, display, clientPlan{Bounds: engine.Rect{X: 0, Y: 0, W: 1280, H: 800}, Title: "person"})
		g.Eventually(listed(person), "5s").Should(gomega.HaveLen(1))
		during := func(f func()) engine.DeskEffects {
			o, err := p.Observe(ctx)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			f()
			fx, err := o.Stop(ctx, mine.proc)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			return fx
		}
		// The window manager acts after the request, at the latest while the next round is watched.
		seen := func(f func(), want func(engine.DeskEffects) bool) {
			t.Helper()
			g.Eventually(func() bool { return want(during(f)) }, "3s", "20ms").Should(gomega.BeTrue())
		}
		mine.do("lower")
		g.Eventually(func() engine.DeskEffects { return during(func() {}) }).Should(gomega.BeZero())
		seen(func() { mine.do("raise"); mine.do("lower") }, func(fx engine.DeskEffects) bool { return fx.Raised })
		person.do("activate")
		g.Eventually(func() engine.DeskEffects { return during(func() {}) }).Should(gomega.BeZero())
		seen(func() { mine.do("activate"); person.do("activate") }, func(fx engine.DeskEffects) bool { return fx.Foregrounded })
		g.Eventually(func() engine.DeskEffects { return during(func() {}) }).Should(gomega.BeZero())
		g.Expect(during(func() { person.do("raise") })).To(gomega.BeZero(), "what the person's window does is not charged to the browser")

		cover := func() engine.State {
			s, err := p.(engine.Occluder).Cover(ctx, mine.id)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			return s
		}
		// Which of the two the window manager raised last, of all that was asked above, is its own affair.
		g.Eventually(func() engine.State { person.do("activate"); return cover() }, "3s", "100ms").Should(gomega.Equal(engine.StateCovered))
		person.do("move 0 0 300 300")
		g.Eventually(cover, "3s").ShouldNot(gomega.Equal(engine.StateCovered))
	})
	t.Run("minimised", func(t *testing.T) {
		g := gomega.NewWithT(t)
		mine.do("iconify")
		g.Eventually(func() engine.NativeWindow {
			w, err := p.Window(ctx, mine.id, mine.proc)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			return w
		}, "5s").Should(gomega.And(gomega.HaveField("Minimised", true), gomega.HaveField("Mapped", false)))
	})
}

func TestDisplaysThatProveNothingAreRefused(t *testing.T) {
	g := gomega.NewWithT(t)
	limitation := func(display string) string {
		p, err := Open(t.Context(), display)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		defer p.Close()
		_, err = p.Observe(t.Context())
		g.Expect(err).To(gomega.HaveOccurred())
		return engine.AsRefusal(err).Detail.Limitation
	}
	g.Expect(limitation("")).To(gomega.Equal("no_display"))
	g.Expect(limitation(":65000")).To(gomega.Equal("no_display"))
	g.Expect(limitation(desk(t, "-extension", "X-Resource"))).To(gomega.Equal("owner_unprovable"))
}

func TestALostServerIsRefusedAndNotWaitedFor(t *testing.T) {
	g := gomega.NewWithT(t)
	server, err := net.Listen("unix", t.TempDir()+"/silent:0")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer server.Close() // accepts nothing: the handshake never ends
	p, err := Open(t.Context(), server.Addr().String())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	started := time.Now()
	_, err = p.Window(ctx, 1, engine.Process{PID: 1})
	g.Expect(engine.AsRefusal(err).Code).To(gomega.Equal(engine.CodeRouteUnavailable))
	g.Expect(time.Since(started)).To(gomega.BeNumerically("<", time.Second))
}

func BenchmarkProofX11(b *testing.B) {
	display := os.Getenv("NATIVE_BENCH_DISPLAY")
	if display == "" {
		b.Skip("NATIVE_BENCH_DISPLAY names no display with a window of this process")
	}
	x, err := xgb.NewConnDisplay(display)
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	screen := xproto.Setup(x).DefaultScreen(x)
	id, _ := xproto.NewWindowId(x)
	xproto.CreateWindow(x, screen.RootDepth, id, screen.Root, 0, 0, 100, 100, 0, xproto.WindowClassInputOutput, screen.RootVisual, 0, nil)
	if err := xproto.MapWindowChecked(x, id).Check(); err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	s, _ := readStat(os.Getpid())
	exe, _ := executable(os.Getpid())
	me := engine.Process{PID: os.Getpid(), Start: s.start, Exe: exe}
	p, _ := Open(b.Context(), display)
	defer p.Close()
	addr := netip.MustParseAddrPort(l.Addr().String())
	for b.Loop() {
		if err := p.SameProcess(b.Context(), me); err != nil {
			b.Fatal(err)
		}
		if err := p.OwnsEndpoint(b.Context(), me, addr); err != nil {
			b.Fatal(err)
		}
		if _, err := p.Window(b.Context(), uint32(id), me); err != nil {
			b.Fatal(err)
		}
	}
}
