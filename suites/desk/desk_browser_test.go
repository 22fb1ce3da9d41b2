//go:build browser

package desk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/suites/controls"
	"github.com/engine-acceptance/acceptance/suites/desk"
	"github.com/engine-acceptance/acceptance/suites/keeper"
	"github.com/engine-acceptance/acceptance/suites/person"
	"github.com/engine-acceptance/acceptance/suites/process"
	"github.com/engine-acceptance/acceptance/suites/sentinel"
)

// The test binary plays the roles: "role keeper", and "role worker", which opens a desk with a
// stubborn browser-like tree and waits to be killed.
func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1] != "role" {
		os.Exit(m.Run())
	}
	switch role := os.Args[2]; role {
	case "keeper", "sentinel", "bystander", "person", "controls":
		main := map[string]func(context.Context, []string, io.Reader, io.Writer, io.Writer) int{
			"keeper": keeper.Main, "sentinel": sentinel.Main, "bystander": sentinel.Main, "person": person.Main, "controls": controls.Main,
		}[role]
		os.Exit(main(context.Background(), os.Args[3:], os.Stdin, os.Stdout, os.Stderr))
	case "worker":
		if err := worker(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// traces are where a test looks for what a desk left.
type traces struct {
	Keeper    process.Identity
	Display   string
	Socket    string // what the display's socket is, so that another server's is not taken for it
	Homes     []string
	UID       int
	Processes []process.Identity
	Facts     desk.Facts
}

func worker() error {
	ctx := context.Background()
	k, err := keeper.Start(ctx, keeper.Options{Grace: 300 * time.Millisecond})
	if err != nil {
		return err
	}
	d, err := desk.Open(ctx, desk.Config{Keeper: k})
	if err != nil {
		return err
	}
	tr, err := populate(ctx, d)
	if err != nil {
		return err
	}
	tr.Keeper = k.Identity()
	if err := json.NewEncoder(os.Stdout).Encode(tr); err != nil {
		return err
	}
	if len(os.Args) > 3 { // "close": the worker ends well when it is told to
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		err := errors.Join(d.Close(ctx), k.Close(ctx))
		fmt.Println("closed", err)
		return nil
	}
	select {}
}

// populate starts, as the engine would, a process that has a child in another session, an orphan of
// its own and one that ignores SIGTERM, and leaves a file in the home.
func populate(ctx context.Context, d *desk.Desk) (traces, error) {
	const script = `trap '' TERM; echo x >"$HOME/file"; setsid sleep 300 & sleep 300 & (setsid sleep 300 &) ; echo ready; while :; do sleep 1; done`
	p, err := d.Start(ctx, desk.Engine, process.Spec{Path: "/bin/sh", Args: []string{"-c", script}, Stdout: process.Pipe})
	if err != nil {
		return traces{}, err
	}
	if _, err := bufio.NewReader(p.Stdout()).ReadString('\n'); err != nil {
		return traces{}, err
	}
	tr := traces{Display: d.Display(), Socket: socketOf(d.Display()), UID: d.Facts().UID, Facts: d.Facts(), Homes: []string{d.Home(), filepath.Dir(d.Xauthority())}}
	// The orphan's shell may be about to exec; wait until the tree is what the script says.
	for range 1000 {
		all, err := process.Claim{Homes: tr.Homes}.Find()
		if err != nil {
			return tr, err
		}
		tr.Processes = nil
		sleeps := 0
		for _, e := range all {
			tr.Processes = append(tr.Processes, e.Identity)
			if strings.HasSuffix(e.Executable, "sleep") {
				sleeps++
			}
		}
		if sleeps >= 4 {
			return tr, nil
		}
		select {
		case <-ctx.Done():
			return tr, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	return tr, fmt.Errorf("the engine's tree did not grow: %v", tr.Processes)
}

func socketOf(display string) string {
	info, err := os.Lstat("/tmp/.X11-unix/X" + strings.TrimPrefix(display, ":"))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(info.Sys().(*syscall.Stat_t).Ino, info.ModTime().UnixNano())
}

// left lists what is still there of a desk.
func (tr traces) left() []string {
	var out []string
	found, err := process.Claim{Homes: tr.Homes, UIDs: []int{tr.UID}, Roots: tr.Processes}.Find()
	if err != nil {
		out = append(out, err.Error())
	}
	for _, e := range found {
		out = append(out, "process "+e.Identity.String())
	}
	if tr.Socket == socketOf(tr.Display) {
		out = append(out, "socket of "+tr.Display)
	}
	for _, p := range tr.Homes {
		if _, err := os.Lstat(p); err == nil {
			out = append(out, p)
		}
	}
	if tr.Keeper.PID != 0 && tr.Keeper.Alive() {
		out = append(out, "keeper")
	}
	return out
}

func self(t *testing.T) string {
	p, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// startWorker starts the role "worker" of the program at path, as another uid when user is given.
func startWorker(g Gomega, t *testing.T, path string, user *process.User, args ...string) (*process.Process, *bufio.Reader, traces) {
	p, err := process.Start(t.Context(), process.Spec{Path: path, Args: append([]string{"role", "worker"}, args...), Env: []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=/tmp"},
		User: user, Stdin: process.Pipe, Stdout: process.Pipe})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { p.Stop(context.Background(), 0) })
	r := bufio.NewReader(p.Stdout())
	line, err := r.ReadBytes('\n')
	g.Expect(err).NotTo(HaveOccurred(), "%s", p.Tail())
	var tr traces
	g.Expect(json.Unmarshal(line, &tr)).To(Succeed())
	g.Expect(len(tr.Processes)).To(BeNumerically(">=", 8))
	return p, r, tr
}

func TestDesks_in_parallel_are_apart_and_leave_nothing(t *testing.T) {
	g := NewWithT(t)
	const n = 5
	var wg sync.WaitGroup
	all := make([]traces, n)
	errs := make([]error, n)
	desks := make([]*desk.Desk, n)
	for i := range n {
		wg.Go(func() {
			if desks[i], errs[i] = desk.Open(t.Context(), desk.Config{}); errs[i] == nil {
				all[i], errs[i] = populate(t.Context(), desks[i])
			}
		})
	}
	wg.Wait()
	g.Expect(errors.Join(errs...)).To(Succeed())
	seen := map[string]bool{}
	for i, d := range desks {
		f := d.Facts()
		g.Expect(seen).NotTo(HaveKey(f.Display))
		seen[f.Display] = true
		g.Expect(f.ManagerName).To(Equal("Openbox"))
		g.Expect(f.ManagerVersion).NotTo(BeEmpty())
		g.Expect(f.ManagerConfigDigest).To(HavePrefix("sha256:"))
		g.Expect(f.ServerVersion).To(MatchRegexp(`^\d+\.\d+\.\d+$`))
		g.Expect([]int{f.WidthPx, f.HeightPx, f.Depth}).To(Equal([]int{1280, 800, 24}))
		if os.Getuid() == 0 {
			g.Expect(f.Posture).To(Equal(desk.Dropped))
			uid := fmt.Sprint(f.UID)
			g.Expect(seen).NotTo(HaveKey(uid), "every desk has its own uid")
			seen[uid] = true
		}
		g.Expect(all[i].left()).NotTo(BeEmpty())
	}
	t.Logf("%+v", desks[0].Facts())

	// One server dies: its desk is lost and says so; the others live on.
	g.Expect(exec.Command("kill", "-9", fmt.Sprint(serverPID(g, t, desks[0]))).Run()).To(Succeed())
	g.Eventually(desks[0].Lost()).Should(BeClosed())
	var lost *desk.LostError
	g.Expect(errors.As(desks[0].Err(), &lost)).To(BeTrue())
	for _, d := range desks[1:] {
		g.Expect(serverPID(g, t, d)).NotTo(BeZero())
		g.Expect(d.Err()).NotTo(HaveOccurred())
	}
	for i, d := range desks {
		wg.Go(func() { errs[i] = d.Close(context.Background()) })
	}
	wg.Wait()
	g.Expect(errors.Join(errs...)).To(Succeed())
	for _, tr := range all {
		g.Expect(tr.left()).To(BeEmpty())
	}
	g.Expect(desks[0].Close(t.Context())).To(Succeed(), "twice")
	_, err := desks[0].StartRole(t.Context(), "person")
	g.Expect(err).To(MatchError(desk.ErrClosed))
}

func serverPID(g Gomega, t *testing.T, d *desk.Desk) int {
	c, err := d.Dial(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	defer c.Close()
	return c.ServerPID
}

func TestKilled_worker_leaves_nothing(t *testing.T) {
	g := NewWithT(t)
	p, _, tr := startWorker(g, t, self(t), nil)
	g.Expect(p.Signal(syscall.SIGKILL)).To(Succeed())
	began := time.Now()
	g.Eventually(tr.left).WithTimeout(5 * time.Second).WithPolling(20 * time.Millisecond).Should(BeEmpty())
	t.Logf("clean after %v", time.Since(began))
}

func TestKilled_keeper_takes_only_the_net(t *testing.T) {
	g := NewWithT(t)
	p, r, tr := startWorker(g, t, self(t), nil, "close")
	g.Expect(tr.Keeper.Kill(syscall.SIGKILL)).To(Succeed())
	fmt.Fprintln(p.Stdin())
	line, err := r.ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred(), "%s", p.Tail())
	g.Expect(line).To(Equal("closed <nil>\n"))
	g.Expect(tr.left()).To(BeEmpty())
}

func TestOrdinary_user_has_a_desk_too(t *testing.T) {
	g := NewWithT(t)
	if os.Getuid() != 0 {
		_, err := desk.Open(t.Context(), desk.Config{User: &process.User{UID: os.Getuid() + 1, GID: 1}})
		var ie *desk.IdentityError
		g.Expect(errors.As(err, &ie)).To(BeTrue(), "%v", err)
		return // every other test of this file is this one
	}
	b, err := os.ReadFile("/proc/self/exe")
	g.Expect(err).NotTo(HaveOccurred())
	dir, err := os.MkdirTemp("/tmp", "desk")
	g.Expect(err).NotTo(HaveOccurred())
	defer os.RemoveAll(dir)
	g.Expect(os.Chmod(dir, 0o755)).To(Succeed())
	copied := filepath.Join(dir, "desk.test")
	g.Expect(os.WriteFile(copied, b, 0o755)).To(Succeed())
	user := &process.User{UID: 61500, GID: 61500}

	p, r, tr := startWorker(g, t, copied, user, "close")
	g.Expect(tr.Facts.Posture).To(Equal(desk.Shared))
	g.Expect(tr.UID).To(Equal(61500))
	fmt.Fprintln(p.Stdin())
	line, err := r.ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred(), "%s", p.Tail())
	g.Expect(line).To(Equal("closed <nil>\n"))
	<-p.Done()
	g.Expect(tr.left()).To(BeEmpty())

	p, _, tr = startWorker(g, t, copied, user)
	g.Expect(p.Signal(syscall.SIGKILL)).To(Succeed())
	g.Eventually(tr.left).WithTimeout(5 * time.Second).WithPolling(20 * time.Millisecond).Should(BeEmpty())
}

func TestEnvironment_is_allow_listed_and_silent(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("SECRET_TOKEN", "must not travel")
	d, err := desk.Open(t.Context(), desk.Config{})
	g.Expect(err).NotTo(HaveOccurred())
	defer d.Close(context.Background())
	p, err := d.Start(t.Context(), desk.Browser, process.Spec{Path: "/usr/bin/env", Stdout: process.Pipe})
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	s := bufio.NewScanner(p.Stdout())
	for s.Scan() {
		name, value, _ := strings.Cut(s.Text(), "=")
		names = append(names, name)
		if name != "PATH" {
			g.Expect(strings.ToLower(value)).NotTo(Or(ContainSubstring("accept"), ContainSubstring("test"), ContainSubstring("desk")), name)
		}
	}
	g.Expect(names).To(ConsistOf("PATH", "LANG", "SHELL", "USER", "LOGNAME", "HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
		"XDG_RUNTIME_DIR", "XDG_SESSION_TYPE", "DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS"))
	info, err := os.Stat(d.Home())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o700)))

	// The engine's side reaches display and bus with what it was given, and not without the cookie.
	probe := func(env ...string) error {
		p, err := d.Start(t.Context(), desk.Engine, process.Spec{Path: "/bin/sh", Args: []string{"-c", env[0]}})
		g.Expect(err).NotTo(HaveOccurred())
		<-p.Done()
		return p.Err()
	}
	g.Expect(probe("xprop -root _NET_SUPPORTING_WM_CHECK")).To(Succeed())
	g.Expect(probe("XAUTHORITY=/dev/null xprop -root _NET_SUPPORTING_WM_CHECK")).NotTo(Succeed())
	g.Expect(d.Err()).NotTo(HaveOccurred())
	g.Expect(probe("dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.ListNames")).To(Succeed())
}

func TestOpen_names_what_is_missing(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	for _, program := range []string{"Xvfb", "openbox", "dbus-daemon"} {
		t.Setenv("PATH", dir)
		_, err := desk.Open(t.Context(), desk.Config{})
		var missing *desk.MissingProgramError
		g.Expect(errors.As(err, &missing)).To(BeTrue(), "%v", err)
		g.Expect(missing.Program).To(Equal(program))
		g.Expect(err.Error()).To(ContainSubstring("apt-get install"))
		g.Expect(os.Symlink("/bin/false", filepath.Join(dir, program))).To(Succeed())
	}
	_, err := desk.Open(t.Context(), desk.Config{})
	var ready *desk.ReadinessError
	g.Expect(errors.As(err, &ready)).To(BeTrue(), "%v", err)
	g.Expect(ready.Part).To(Equal("X server"))
}

func TestVariants(t *testing.T) {
	for _, v := range []desk.Variant{desk.Above, desk.Composited} {
		t.Run(string(v), func(t *testing.T) {
			g := NewWithT(t)
			d, err := desk.Open(t.Context(), desk.Config{Variant: v, Width: 1024, Height: 768})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(d.Facts().WidthPx).To(Equal(1024))
			g.Expect(d.Close(context.Background())).To(Succeed())
		})
	}
	g := NewWithT(t)
	_, err := desk.Open(t.Context(), desk.Config{Variant: "kwin"})
	g.Expect(err).To(HaveOccurred())
}

// What a variant promises is what the server tells.
func TestOutputs_are_as_many_as_the_variant_says(t *testing.T) {
	for v, want := range map[desk.Variant]int{desk.Stock: 1, desk.TwoOutputs: 2} {
		g := NewWithT(t)
		s := seat(g, t, desk.Config{Variant: v})
		g.Expect(s.Facts().Outputs).To(Equal(want), string(v))
		n, err := desk.Outputs(t.Context(), s.x)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(n).To(Equal(want), string(v))
	}
}
