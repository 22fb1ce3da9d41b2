package core

import (
	"bufio"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/engine/enginetest"
	"github.com/engine-acceptance/acceptance/engine/native"
)

// The roles that the test binary plays in processes of its own.
const (
	roleVar    = "CORE_TEST_ROLE"
	roleGuard  = "guardian"
	roleEngine = "engine"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == roleGuard {
		os.Exit(GuardianMain(context.Background(), os.Stdin))
	}
	if os.Getenv(roleVar) == roleEngine {
		os.Exit(engineProcess(os.Getenv("CORE_TEST_ROOT")))
	}
	os.Exit(m.Run())
}

// realAdapter launches a real process, which stands for the browser and names its profile in its arguments, below a fake protocol.
type realAdapter struct{ engine.Adapter }

type realBrowser struct {
	engine.Browser
	p engine.Process
}

func (b realBrowser) Process() engine.Process  { return b.p }
func (b realBrowser) Endpoint() netip.AddrPort { return netip.AddrPort{} }

// Launch leaves the process out of our process group and without a death signal: only the guardian can end it.
func (a realAdapter) Launch(ctx context.Context, spec engine.LaunchSpec) (engine.Browser, error) {
	b, err := a.Adapter.Launch(ctx, spec)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("tail", "-f", "/dev/null", "--pid=1", filepath.Join(spec.ProfileDir, "lock"))
	if err := os.WriteFile(filepath.Join(spec.ProfileDir, "lock"), nil, 0o600); err != nil {
		return nil, err
	}
	cmd.Env = spec.Env
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = cmd.Wait() }()
	p, err := native.Identify(cmd.Process.Pid)
	return realBrowser{b, p}, err
}

// realNative knows the real process; the windows are those of the fake.
type realNative struct {
	engine.NativePlatform
}

func (n realNative) SameProcess(_ context.Context, p engine.Process) error { return native.Same(p) }

func (n realNative) Windows(context.Context, engine.Process) ([]engine.NativeWindow, error) {
	return []engine.NativeWindow{{ID: 5, Bounds: engine.Rect{X: 40, Y: 60, W: 900, H: 700}, Mapped: true}}, nil
}

// engineProcess starts a browser through an engine and says so, then waits to be killed.
func engineProcess(root string) int {
	fake := enginetest.NewFake()
	e, err := New(Config{Adapter: realAdapter{fake.Adapter()}, Native: realNative{NativePlatform: fake.Native()}, ProfileRoot: root, Env: []string{"PATH=" + os.Getenv("PATH")},
		Guardian: []string{os.Args[0], roleGuard}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	s, _ := e.Call(context.Background(), engine.OpSessionStart, nil)
	res, _ := e.Call(context.Background(), engine.OpPrepare, []byte(fmt.Sprintf(`{"session":%q,"allow_launch":true,"profile":{"kind":"isolated_new"}}`, s.Session.ID)))
	if res.Prepared == nil {
		fmt.Println("refused", res.Refusal)
		return 1
	}
	fmt.Println("up", res.Prepared.PID)
	if os.Getenv("CORE_TEST_CLEAN") != "" {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			fmt.Println(err)
			return 1
		}
		return 0
	}
	<-make(chan struct{})
	return 0
}

// TestAKilledEngineLeavesNothing is S11, without any help of a death signal.
func TestAKilledEngineLeavesNothing(t *testing.T) {
	for _, c := range []string{"killed", "killed_with_its_group", "closed"} {
		t.Run(c, func(t *testing.T) {
			g := gomega.NewWithT(t)
			root := filepath.Join(t.TempDir(), "profiles")
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), roleVar+"="+roleEngine, "CORE_TEST_ROOT="+root)
			if c == "closed" {
				cmd.Env = append(cmd.Env, "CORE_TEST_CLEAN=1")
			}
			ownGroup(cmd)
			out, err := cmd.StdoutPipe()
			g.Expect(err).NotTo(gomega.HaveOccurred())
			cmd.Stderr = os.Stderr
			g.Expect(cmd.Start()).To(gomega.Succeed())
			line, _ := bufio.NewReader(out).ReadString('\n')
			var pid int
			if _, err := fmt.Sscanf(line, "up %d", &pid); err != nil {
				_ = cmd.Process.Kill()
				t.Fatalf("engine said %q", line)
			}
			switch c {
			case "killed":
				g.Expect(cmd.Process.Kill()).To(gomega.Succeed())
			case "killed_with_its_group":
				g.Expect(killGroup(cmd)).To(gomega.Succeed())
			}
			_ = cmd.Wait()
			g.Eventually(func() int { return entries(root) }, "10s").Should(gomega.BeZero())
			g.Expect(native.Naming(root)).To(gomega.BeEmpty())
			g.Expect(alive(pid)).To(gomega.BeFalse())
			g.Eventually(func() int { return guardians(t, root) }, "10s").Should(gomega.BeZero())
		})
	}
}

func alive(pid int) bool {
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(state), ") Z ")
}

// guardians counts guardians of this test binary that still run.
func guardians(t *testing.T, root string) int {
	t.Helper()
	n := 0
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range list {
		args, err := os.ReadFile(file)
		if err == nil && string(args) == os.Args[0]+"\x00"+roleGuard+"\x00" {
			n++
		}
	}
	return n
}

func TestTheGuardianTouchesOnlyWhatIsOurs(t *testing.T) {
	g := gomega.NewWithT(t)
	root := t.TempDir()
	precious := filepath.Join(root, "precious")
	g.Expect(os.Mkdir(precious, 0o700)).To(gomega.Succeed())
	link := filepath.Join(root, mint(profilePrefix))
	g.Expect(os.Symlink(precious, link)).To(gomega.Succeed())
	open := filepath.Join(root, mint(profilePrefix))
	g.Expect(os.Mkdir(open, 0o755)).To(gomega.Succeed())
	mine, err := newProfile(root)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	kept, err := newProfile(root)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	var in strings.Builder
	for _, dir := range []string{precious, link, open, "profile-relative", root + "/../" + filepath.Base(root), string(mine), string(kept)} {
		fmt.Fprintf(&in, "{\"op\":\"profile\",\"profile\":%q}\n", dir)
	}
	fmt.Fprintf(&in, "not json\n{\"op\":\"forget\",\"profile\":%q}\n", kept)
	g.Expect(GuardianMain(t.Context(), strings.NewReader(in.String()))).To(gomega.BeZero())
	for _, dir := range []string{precious, link, open, string(kept)} {
		g.Expect(exists(dir)).To(gomega.BeTrue(), dir)
	}
	g.Expect(exists(string(mine))).To(gomega.BeFalse())
}
