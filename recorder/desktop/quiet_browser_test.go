//go:build browser

package desktop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/recorder/bus"
)

// A page that never rests: a drawing at every frame, a moving box, a title that counts.
const animatedPage = `<!doctype html><title>moving</title><style>@keyframes m{to{margin-left:300px}}
div{width:80px;height:80px;background:#36c;animation:m 1s infinite alternate}</style><div></div><canvas width=300 height=200></canvas>
<script>let n=0;const x=document.querySelector('canvas').getContext('2d');
(function f(){x.fillStyle='hsl('+(n++%360)+' 60% 50%)';x.fillRect(n%300,n%200,20,20);if(n%60==0)document.title='moving '+n;requestAnimationFrame(f)})()</script>`

// plainBrowsers are the three browsers as a person starts them.
var plainBrowsers = []struct {
	name  string
	paths []string
	args  func(profile, page string) []string
}{
	{"chromium", []string{"/usr/bin/chromium"}, func(profile, page string) []string {
		return []string{"--user-data-dir=" + profile, "--no-first-run", "--no-default-browser-check", "--window-position=250,200", "--window-size=700,500", page}
	}},
	{"firefox", []string{"/usr/lib/firefox-esr/firefox-esr", "/usr/bin/firefox-esr"}, func(profile, page string) []string {
		return []string{"--no-remote", "--new-instance", "--profile", profile, page}
	}},
	{"webkitgtk", []string{"/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser", "/usr/lib/x86_64-linux-gnu/webkit2gtk-4.0/MiniBrowser"}, func(_, page string) []string {
		return []string{page}
	}},
}

// startPlainBrowser starts a browser on the animated page, in the session of the desk's bus where it has one, and waits until its window is there.
func (s *scene) startPlainBrowser(t testing.TB, name string) {
	t.Helper()
	g := NewWithT(t)
	ctx := t.Context()
	for _, b := range plainBrowsers {
		if b.name != name {
			continue
		}
		path := ""
		for _, p := range b.paths {
			if _, err := os.Stat(p); err == nil {
				path = p
				break
			}
		}
		if path == "" {
			t.Skipf("%s is not installed: looked for %v", name, b.paths)
		}
		home, err := os.MkdirTemp("/dev/shm", "home-")
		if err != nil {
			home, err = os.MkdirTemp("", "home-")
		}
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = os.RemoveAll(home) })
		page, authority, profile := filepath.Join(home, "page.html"), filepath.Join(home, "Xauthority"), filepath.Join(home, "profile")
		cookie, err := os.ReadFile(s.authority)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(page, []byte(animatedPage), 0o644)).To(Succeed())
		g.Expect(os.WriteFile(authority, cookie, 0o600)).To(Succeed())
		for _, dir := range []string{profile, filepath.Join(home, "run")} {
			g.Expect(os.Mkdir(dir, 0o700)).To(Succeed())
		}
		quiet := `user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("browser.aboutwelcome.enabled", false);
`
		g.Expect(os.WriteFile(filepath.Join(profile, "user.js"), []byte(quiet), 0o644)).To(Succeed())
		cmd := exec.Command(path, b.args(profile, "file://"+page)...)
		cmd.Dir = home
		session := s.bus
		if session == "" {
			session = "unix:path=" + filepath.Join(home, "run", "none")
		}
		cmd.Env = []string{"DISPLAY=" + s.display, "XAUTHORITY=" + authority, "HOME=" + home, "XDG_RUNTIME_DIR=" + filepath.Join(home, "run"),
			"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "DBUS_SESSION_BUS_ADDRESS=" + session}
		startProcess(t, cmd, func(a *syscall.SysProcAttr) {
			uid := personUID()
			if uid == os.Getuid() {
				return
			}
			g.Expect(filepath.WalkDir(home, func(p string, _ os.DirEntry, err error) error {
				if err != nil {
					return err
				}
				return os.Lchown(p, uid, uid)
			})).To(Succeed())
			a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
		})
		s.browserPID = cmd.Process.Pid
		// Its helpers end with it; what does not is ended by its group.
		t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		list, err := s.conn.Atom(ctx, "_NET_CLIENT_LIST")
		g.Expect(err).NotTo(HaveOccurred())
		var window uint32
		g.Eventually(func() bool {
			p, err := s.conn.Property(ctx, s.conn.Root(), list, 4096)
			if err != nil {
				return false
			}
			for _, w := range p.Words() {
				if w != s.person && w != s.target && w != s.bystander {
					window = w
				}
			}
			return window != 0
		}, 30*time.Second, 50*time.Millisecond).Should(BeTrue(), "no window of %s came", name)
		g.Expect(s.log.Watch(ctx, window, Target)).To(Succeed())
		s.settleBrowser(t)
		return
	}
	t.Fatalf("no browser %q", name)
}

// settleBrowser gives the desk back to the person until what a start brings with it is over: a second and a half without a violation.
func (s *scene) settleBrowser(t testing.TB) {
	t.Helper()
	g := NewWithT(t)
	ctx := t.Context()
	until := time.Now().Add(30 * time.Second)
	for {
		s.restore(t)
		from, err := s.log.Barrier(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		time.Sleep(1500 * time.Millisecond)
		to, err := s.log.Barrier(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		if len(s.alarms(from, to)) == 0 {
			return
		}
		g.Expect(time.Now().Before(until)).To(BeTrue(), "the browser's start does not come to rest")
	}
}

// alarms are the violations between two marks that somebody would be charged with: requests of the window manager are nobody's, and what the
// services of the session say over its bus is not the browser's.
func (s *scene) alarms(from, to Mark) []Event {
	var out []Event
	for _, ev := range s.log.Between(from, to) {
		if requirement, _ := Violation(ev); requirement == "" || ev.PID == s.wm && ev.Request != "" {
			continue
		}
		if ev.Kind.IsMessage() && !s.ofBrowser(ev.PID) {
			continue
		}
		out = append(out, ev)
	}
	return out
}

// ofBrowser reports whether a process is the browser that was started, or a child of it. One that is gone, or that the bus did not name, may have been.
func (s *scene) ofBrowser(pid int) bool {
	for pid > 1 && pid != s.browserPID {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return true
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if pid, err = strconv.Atoi(fields[1]); err != nil {
			return true
		}
	}
	return pid == 0 || pid == s.browserPID
}

// quietWindows is how many windows of time each browser is left alone for: a few in every test, the 500 of the promise in the long loops
// (ACCEPTANCE_QUIET_WINDOWS=500, make soak).
func quietWindows(t testing.TB) int {
	t.Helper()
	n := 30
	if v := os.Getenv("ACCEPTANCE_QUIET_WINDOWS"); v != "" {
		var err error
		n, err = strconv.Atoi(v)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}
	return n
}

// A browser that only shows its page, however lively, breaks nothing: no false alarm in any window of time.
func TestQuietBrowsersRaiseNoAlarm(t *testing.T) {
	for _, b := range plainBrowsers {
		t.Run(b.name, func(t *testing.T) {
			g := NewWithT(t)
			ctx := t.Context()
			s := startScene(t, func(s *scene, cfg *Config) {
				s.startBusOf(t, personUID())
				cfg.Bus, cfg.BusUID = s.bus, personUID()
			})
			s.startPlainBrowser(t, b.name)
			n, alarms, drawn := quietWindows(t), 0, uint64(0)
			for i := range n {
				from, err := s.log.Barrier(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				time.Sleep(300 * time.Millisecond)
				to, err := s.log.Barrier(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				if found := s.alarms(from, to); len(found) > 0 {
					alarms++
					t.Logf("window %d: %+v", i, found[0])
				}
				drawn += uint64(to - from)
				s.log.Release(to)
			}
			t.Logf("%s: %d windows of time, %d with an alarm, %d events logged", b.name, n, alarms, drawn)
			g.Expect(alarms).To(BeZero())
			// The guard was awake all the time: it sees the next one.
			from, err := s.log.Barrier(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.conn.Send(ctx, s.conn.WarpPointer(390, 330), s.conn.WarpPointer(350, 300))).To(Succeed())
			g.Expect(s.conn.Sync(ctx)).To(Succeed())
			to, err := s.log.Barrier(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.alarms(from, to)).To(ContainElement(HaveField("Kind", ReqWarp)))
			speaker, err := bus.Dial(ctx, s.bus, personUID())
			g.Expect(err).NotTo(HaveOccurred())
			defer speaker.Close()
			_, err = speaker.AskProgram(ctx, accessName, accessPath, accessName, "Rearrange")
			g.Expect(err).To(HaveOccurred(), "no service does that")
			to, err = s.log.Barrier(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.log.Between(from, to)).To(ContainElement(And(HaveField("Kind", BusAction), HaveField("PID", os.Getpid()))))
			for _, h := range s.log.Health() {
				g.Expect(h.Alive).To(BeTrue(), h.Channel.String())
				g.Expect(h.Errors).To(BeZero(), h.Channel.String())
				if h.Channel == Bus || h.Channel == Accessibility {
					t.Logf("%s: %s: %d messages", b.name, h.Channel, h.Events)
				}
			}
		})
	}
}
