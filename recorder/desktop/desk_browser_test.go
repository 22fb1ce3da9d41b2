//go:build browser

package desktop

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/recorder/x11"
)

func TestMain(m *testing.M) {
	if os.Getenv(violatorEnv) != "" {
		os.Exit(violatorMain(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// desk is a private X server with a window manager, for these tests alone.
type desk struct {
	display, authority string
	dir                string
	wm                 int // process of the window manager
	server             *exec.Cmd
	bus                string // address of the session bus, when there is one
	busPID             int
}

func startProcess(t testing.TB, cmd *exec.Cmd, as ...func(*syscall.SysProcAttr)) {
	t.Helper()
	g := NewWithT(t)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	for _, f := range as {
		f(cmd.SysProcAttr)
	}
	g.Expect(cmd.Start()).To(Succeed())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // may have ended
		done := make(chan struct{})
		go func() { _ = cmd.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(2 * time.Second):
			_ = cmd.Process.Kill()
			<-done
		}
	})
}

// writeAuthority writes an authority file with one cookie for every local display.
func writeAuthority(t testing.TB, path string) {
	t.Helper()
	g := NewWithT(t)
	cookie := make([]byte, 16)
	_, err := rand.Read(cookie)
	g.Expect(err).NotTo(HaveOccurred())
	b := binary.BigEndian.AppendUint16(nil, 65535)
	for _, s := range []string{"", "", "MIT-MAGIC-COOKIE-1", string(cookie)} {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
	}
	g.Expect(os.WriteFile(path, b, 0o600)).To(Succeed())
}

func startDesk(t testing.TB, serverArgs ...string) *desk {
	t.Helper()
	g := NewWithT(t)
	d := &desk{dir: t.TempDir()}
	d.authority = filepath.Join(d.dir, "Xauthority")
	writeAuthority(t, d.authority)
	r, w, err := os.Pipe()
	g.Expect(err).NotTo(HaveOccurred())
	args := append([]string{"-displayfd", "3", "-auth", d.authority, "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset"}, serverArgs...)
	d.server = exec.Command("Xvfb", args...)
	d.server.ExtraFiles = []*os.File{w}
	startProcess(t, d.server)
	g.Expect(w.Close()).To(Succeed())
	g.Expect(r.SetReadDeadline(time.Now().Add(20 * time.Second))).To(Succeed())
	line, err := bufio.NewReader(r).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Close()).To(Succeed())
	d.display = ":" + strings.TrimSpace(line)
	return d
}

func (d *desk) env() []string {
	return []string{"DISPLAY=" + d.display, "XAUTHORITY=" + d.authority, "HOME=" + d.dir, "PATH=" + os.Getenv("PATH")}
}

func (d *desk) dial(t testing.TB) *x11.Conn {
	t.Helper()
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := x11.Dial(ctx, d.display, d.authority)
	g.Expect(err).NotTo(HaveOccurred())
	c.Handle(x11.Handler{Error: func(e *x11.XError) { t.Error(e) }})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// manage starts openbox with its stock configuration and waits until it manages the desk.
func (d *desk) manage(t testing.TB) {
	t.Helper()
	g := NewWithT(t)
	cmd := exec.Command("openbox", "--sm-disable")
	cmd.Env = d.env()
	startProcess(t, cmd)
	d.wm = cmd.Process.Pid
	c := d.dial(t)
	ctx := t.Context()
	g.Eventually(func() int {
		a, err := c.Atom(ctx, "_NET_SUPPORTING_WM_CHECK")
		if err != nil {
			return 0
		}
		p, err := c.Property(ctx, c.Root(), a, 4)
		if err != nil {
			return 0
		}
		return len(p.Words())
	}, 20*time.Second, 10*time.Millisecond).Should(Equal(1))
}

// scene is a desk with a log, a person who holds the focus, a target that is partly covered, and a bystander.
type scene struct {
	*desk
	log                       *Log
	conn                      *x11.Conn // the person's client
	person, target, bystander uint32
	browserPID                int // of the plain browser, 0 before it is started
}

func openWindow(t testing.TB, c *x11.Conn, title string, x, y int16, w, h uint16) uint32 {
	t.Helper()
	g := NewWithT(t)
	ctx := t.Context()
	id, err := c.CreateWindow(ctx, x11.WindowOptions{X: x, Y: y, Width: w, Height: h, Background: 0x336699,
		Events: x11.MaskKeyPress | x11.MaskButtonPress | x11.MaskPointerMotion})
	g.Expect(err).NotTo(HaveOccurred())
	hints := make([]byte, 72)
	hints[0] = 3 // the place and size are the user's
	g.Expect(c.Send(ctx, x11.SetTitle(id, title), x11.ChangeProperty(id, x11.AtomNormalHint, x11.AtomSizeHints, 32, hints))).To(Succeed())
	// openbox loses map requests that come while it starts, also after it has announced itself: ask again.
	g.Eventually(func() bool {
		if err := c.Send(ctx, x11.MapWindow(id)); err != nil {
			return false
		}
		a, err := c.Attributes(ctx, id)
		return err == nil && a.Viewable
	}, 10*time.Second, 50*time.Millisecond).Should(BeTrue())
	return id
}

func startScene(t testing.TB, with ...func(*scene, *Config)) *scene {
	t.Helper()
	g := NewWithT(t)
	s := &scene{desk: startDesk(t)}
	s.manage(t)
	ctx := t.Context()
	cfg := Config{Display: s.display, XAuthority: s.authority, CallBudget: 20 * time.Second, SettleBudget: 20 * time.Second, Exempt: []int{s.wm}}
	for _, f := range with {
		f(s, &cfg)
	}
	log, err := Start(ctx, cfg)
	g.Expect(err).NotTo(HaveOccurred())
	s.log = log
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = log.Stop(ctx) // a test that ends the server has its own word about it
	})
	other := s.dial(t)
	s.target = openWindow(t, other, "target", 300, 250, 500, 400)
	s.bystander = openWindow(t, s.dial(t), "bystander", 900, 500, 200, 200)
	s.conn = s.dial(t)
	s.person = openWindow(t, s.conn, "person", 100, 100, 500, 400)
	g.Expect(log.Watch(ctx, s.target, Target)).To(Succeed())
	g.Expect(log.Watch(ctx, s.bystander, Bystander)).To(Succeed())
	g.Expect(log.Watch(ctx, s.person, Person)).To(Succeed())
	s.restore(t)
	return s
}

// caughtUp waits until the window manager has handled all that came before: hundreds of changes of the keyboard map keep it busy for seconds, and an
// effect that it has yet to bring about is not one that the log missed.
func (s *scene) caughtUp(t testing.TB) {
	t.Helper()
	g := NewWithT(t)
	ctx := t.Context()
	ask, err := s.conn.Atom(ctx, "_NET_REQUEST_FRAME_EXTENTS")
	g.Expect(err).NotTo(HaveOccurred())
	extents, err := s.conn.Atom(ctx, "_NET_FRAME_EXTENTS")
	g.Expect(err).NotTo(HaveOccurred())
	asks, err := s.conn.CreateWindow(ctx, x11.WindowOptions{Width: 1, Height: 1})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.conn.Send(ctx, s.conn.RootMessage(asks, ask))).To(Succeed())
	g.Eventually(func() (int, error) {
		p, err := s.conn.Property(ctx, asks, extents, 16)
		return len(p.Words()), err
	}, 30*time.Second, 5*time.Millisecond).Should(Equal(4))
	g.Expect(s.conn.Send(ctx, x11.DestroyWindow(asks))).To(Succeed())
}

// restore gives the person the focus and the top, and the pointer its place, and waits for the desk to rest.
func (s *scene) restore(t testing.TB) {
	t.Helper()
	g := NewWithT(t)
	ctx := t.Context()
	s.caughtUp(t)
	active, err := s.conn.Atom(ctx, "_NET_ACTIVE_WINDOW")
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() uint32 {
		_ = s.conn.Send(ctx, s.conn.RootMessage(s.person, active, 2, 0, 0), s.conn.WarpPointer(350, 300))
		w, _, err := s.conn.Focus(ctx)
		if err != nil {
			return 0
		}
		return w
	}, 10*time.Second, 20*time.Millisecond).Should(Equal(s.person))
	_, err = s.log.Settle(ctx, 100*time.Millisecond)
	g.Expect(err).NotTo(HaveOccurred())
}

// violator is the child that disturbs the desk.
type violator struct {
	cmd *exec.Cmd
	in  *bufio.Writer
	out *bufio.Reader
}

func (s *scene) violator(t testing.TB) *violator {
	t.Helper()
	v := s.startViolator(t)
	NewWithT(t).Expect(v.do(fmt.Sprintf("init %d %d", s.person, s.target))).To(Succeed())
	return v
}

func (d *desk) startViolator(t testing.TB) *violator {
	t.Helper()
	g := NewWithT(t)
	exe, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	cmd := exec.Command(exe)
	cmd.Env = append(d.env(), violatorEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	g.Expect(err).NotTo(HaveOccurred())
	out, err := cmd.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	startProcess(t, cmd)
	return &violator{cmd: cmd, in: bufio.NewWriter(in), out: bufio.NewReader(out)}
}

// do sends one command and waits until the child has done it, and the server too.
func (v *violator) do(command string) error {
	if _, err := fmt.Fprintln(v.in, command); err != nil {
		return err
	}
	if err := v.in.Flush(); err != nil {
		return err
	}
	line, err := v.out.ReadString('\n')
	if err != nil {
		return err
	}
	if line = strings.TrimSpace(line); line != "ok" {
		return fmt.Errorf("violator: %s", line)
	}
	return nil
}

func (v *violator) pid() int { return v.cmd.Process.Pid }
