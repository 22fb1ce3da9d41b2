//go:build browser

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/process"
)

// The programs that these tests run, as they are shipped: built for its directory by TestMain.
var (
	built  string // with cgo where the machine has it
	static string // without cgo, for auditors
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "acceptance-built-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built, static = filepath.Join(dir, "acceptance"), filepath.Join(dir, "acceptance-verify")
	code := 1
	if err := errors.Join(os.Chmod(dir, 0o755), build(built), build(static, "CGO_ENABLED=0")); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func build(path string, env ...string) error {
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", filepath.Base(path), err, out)
	}
	return nil
}

// runBudget bounds one run of a few rows: on an idle machine of two cores it takes 10 s, beside other work five times that was seen.
const runBudget = 2 * time.Minute

// goneBudget is how long what was killed may take to leave nothing behind.
const goneBudget = 8 * time.Second

// acts is one running program, and everything that was seen of it: its processes, and what they have in memory-backed directories.
type acts struct {
	t        *testing.T
	cmd      *exec.Cmd
	tmp      string
	out, err *buffer
	ended    chan struct{}
	watched  chan struct{}

	mu      sync.Mutex
	seen    map[int]process.Identity
	command map[int]string
	paths   map[string]os.FileInfo
}

// buffer is a buffer for one writer and many readers.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String is what was written so far.
func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// begin starts the program with a temporary directory of its own. change, if any, may alter the command before it starts.
func begin(t *testing.T, change func(*exec.Cmd), args ...string) *acts {
	t.Helper()
	a := &acts{t: t, tmp: t.TempDir(), out: &buffer{}, err: &buffer{}, ended: make(chan struct{}), watched: make(chan struct{}),
		seen: map[int]process.Identity{}, command: map[int]string{}, paths: map[string]os.FileInfo{}}
	a.cmd = exec.Command(built, args...)
	a.cmd.Stdout, a.cmd.Stderr = a.out, a.err
	a.cmd.Env = append(os.Environ(), "TMPDIR="+a.tmp)
	a.cmd.WaitDelay = 5 * time.Second
	if change != nil {
		change(a.cmd)
	}
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go a.watch(a.cmd.Process.Pid)
	go func() {
		_ = a.cmd.Wait() // the exit code is read from the state
		close(a.ended)
	}()
	t.Cleanup(func() {
		_ = a.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-a.ended:
		case <-time.After(20 * time.Second):
			_ = a.cmd.Process.Kill()
			<-a.ended
		}
		<-a.watched
	})
	return a
}

// ours are the names under which a desk puts things into memory-backed and temporary directories.
var ours = regexp.MustCompile(`/(?:dev/shm|tmp|run)/(?:[^\s:=,\x00]*/)?(?:home|seat|bin|scratch)-[0-9]+`)

var display = regexp.MustCompile(`(?m)^DISPLAY=:(\d+)$`)

// watch looks at the process tree until it is gone, and notes what belongs to it: of a young process at each look, for it may become another
// program, and then once a second, for to look at all of all took half of a core.
func (a *acts) watch(root int) {
	defer close(a.watched)
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	type looks struct {
		n    int
		last time.Time
	}
	looked := map[process.Identity]looks{}
	for {
		tree, err := process.Tree(root)
		if err == nil {
			for _, e := range tree {
				l := looked[e.Identity]
				if l.n < 5 || time.Since(l.last) > time.Second {
					a.note(e.Identity)
					looked[e.Identity] = looks{l.n + 1, time.Now()}
				}
			}
		}
		select {
		case <-a.ended:
			return
		case <-tick.C:
		}
	}
}

func (a *acts) note(id process.Identity) {
	proc := filepath.Join("/proc", strconv.Itoa(id.PID))
	cmdline, _ := os.ReadFile(filepath.Join(proc, "cmdline")) // it may have ended meanwhile
	environ, _ := os.ReadFile(filepath.Join(proc, "environ"))
	text := strings.ReplaceAll(string(cmdline)+"\x00"+string(environ)+"\x00"+id.Executable, "\x00", "\n")
	fds, _ := os.ReadDir(filepath.Join(proc, "fd"))
	for _, fd := range fds {
		if to, err := os.Readlink(filepath.Join(proc, "fd", fd.Name())); err == nil {
			text += "\n" + to
		}
	}
	found := ours.FindAllString(text, -1)
	if m := display.FindStringSubmatch(text); m != nil && strings.Contains(text, "XAUTHORITY=/dev/shm/") {
		found = append(found, "/tmp/.X11-unix/X"+m[1], "/tmp/.X"+m[1]+"-lock")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen[id.PID] = id
	a.command[id.PID] = strings.TrimSpace(strings.ReplaceAll(string(cmdline), "\x00", " "))
	for _, path := range found {
		if _, known := a.paths[path]; known {
			continue
		}
		if info, err := os.Lstat(path); err == nil {
			a.paths[path] = info
		}
	}
}

// find returns a living process of the tree whose command line matches.
func (a *acts) find(pattern, without string) (process.Identity, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for pid, command := range a.command {
		if regexp.MustCompile(pattern).MatchString(command) && (without == "" || !strings.Contains(command, without)) && a.seen[pid].Alive() {
			return a.seen[pid], true
		}
	}
	return process.Identity{}, false
}

// left lists what is still there of what was seen.
func (a *acts) left() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out, homes []string
	for pid, id := range a.seen {
		if id.Alive() {
			out = append(out, fmt.Sprintf("%v: %s", id, a.command[pid]))
		}
	}
	for path, made := range a.paths {
		// Numbers of inodes are used again: another desk's socket may have ours, so its time counts too.
		if now, err := os.Lstat(path); err == nil && os.SameFile(now, made) && (made.IsDir() || now.ModTime().Equal(made.ModTime())) {
			out = append(out, path)
		}
		if base := filepath.Base(path); strings.HasPrefix(base, "home-") || strings.HasPrefix(base, "seat-") {
			homes = append(homes, path)
		}
	}
	strays, err := process.Claim{Homes: homes}.Find()
	if err != nil {
		out = append(out, err.Error())
	}
	for _, s := range strays {
		out = append(out, "stray "+s.String())
	}
	entries, err := os.ReadDir(a.tmp)
	if err != nil {
		out = append(out, err.Error())
	}
	for _, e := range entries {
		out = append(out, filepath.Join(a.tmp, e.Name()))
	}
	return out
}

// leavesNothing expects that all that was seen goes, and that enough was seen for this to say something.
func (a *acts) leavesNothing() {
	a.t.Helper()
	g := gomega.NewWithT(a.t)
	a.mu.Lock()
	kinds := map[string]int{}
	for path := range a.paths {
		kind, _, _ := strings.Cut(filepath.Base(path), "-")
		kinds[kind]++
	}
	processes := len(a.seen)
	a.mu.Unlock()
	g.Expect(kinds).To(gomega.And(gomega.HaveKey("home"), gomega.HaveKey("seat")), "the watcher saw too little")
	g.Expect(processes).To(gomega.BeNumerically(">", 8), "the watcher saw too little")
	if os.Getuid() == 0 {
		g.Expect(kinds).To(gomega.HaveKey("bin"), "the watcher saw too little")
	}
	g.Eventually(a.left, goneBudget, 100*time.Millisecond).Should(gomega.BeEmpty())
}

// end waits for a run of a few rows and returns its exit code.
func (a *acts) end() int {
	a.t.Helper()
	return a.endWithin(runBudget)
}

// endWithin waits for the program and returns its exit code.
func (a *acts) endWithin(budget time.Duration) int {
	a.t.Helper()
	select {
	case <-a.ended:
	case <-time.After(budget):
		a.t.Fatalf("it did not end in %v; it said:\n%s\n%s", budget, a.out, a.err)
	}
	return a.cmd.ProcessState.ExitCode()
}

// placeOf is where a bundle has a row that ran as we do: as an ordinary user the environment is another one.
func placeOf(row string) string {
	here := environmentOf(&matrix.EngineFile{Environments: []matrix.EnvironmentID{"x11", "x11-user"}})
	return path.Join("rows", "chromium", string(here), row, "attempt-1")
}

// inStep waits until the observations of a row speak of a step, which is when that step is over, and a browser of the engine runs.
func (a *acts) inStep(bundle, row, step string) (browser process.Identity) {
	a.t.Helper()
	observations := filepath.Join(bundle, filepath.FromSlash(placeOf(row)), "observations.jsonl")
	gomega.NewWithT(a.t).Eventually(func(g gomega.Gomega) {
		select {
		case <-a.ended:
			gomega.StopTrying("the run ended: " + a.err.String()).Now()
		default:
		}
		seen, err := os.ReadFile(observations)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(string(seen)).To(gomega.ContainSubstring(strconv.Quote(step)))
		var found bool
		browser, found = a.find(`^/usr/lib/chromium/chromium .*--remote-debugging`, "--type=")
		g.Expect(found).To(gomega.BeTrue())
	}, runBudget, 20*time.Millisecond).Should(gomega.Succeed())
	return browser
}

// result is what one program came to that ran to its end.
type result struct {
	code     int
	out, err string
}

// call runs a program to its end.
func call(t *testing.T, path string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runBudget)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, 5*time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %s %v: %v", path, args, err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// digestOf is the sha256 of a file.
func digestOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))
}
