//go:build linux

package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

// The test binary plays the children of its own tests.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "child" {
		os.Exit(m.Run())
	}
	switch os.Args[2] {
	case "deathsignal":
		var sig int32
		if err := unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(ptr(&sig)), 0, 0, 0); err != nil {
			fmt.Println(err)
		}
		fmt.Println(sig, os.Getuid(), os.Getgid(), len(must(os.Getgroups())), strings.Join(os.Environ(), ","))
	case "parent": // starts a child, says its pid, waits to be killed
		p, err := Start(context.Background(), Spec{Path: "/bin/sleep", Args: []string{"300"}})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.Identity().PID)
		select {}
	case "stray": // leaves an orphan in its session and another in a session of its own, then waits
		for _, own := range []bool{false, true} {
			c := exec.Command("/bin/sh", "-c", "sleep 300 & echo $!")
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: own}
			out, err := c.StdoutPipe()
			if err == nil {
				err = c.Start()
			}
			if err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			line, _ := bufio.NewReader(out).ReadString('\n')
			_, _ = c.Process.Wait()
			fmt.Print(line)
		}
		select {}
	case "deaf":
		fmt.Println("ready")
		c := make(chan os.Signal, 1)
		notify(c)
		select {}
	case "say":
		fmt.Print(strings.Repeat("x", 100), "end")
		os.Exit(3)
	}
	os.Exit(0)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func child(name string) Spec {
	return Spec{Path: must(os.Executable()), Args: []string{"child", name}, Stdout: Pipe}
}

func line(p *Process) string {
	s, _ := bufio.NewReader(p.Stdout()).ReadString('\n')
	return strings.TrimSpace(s)
}

func TestStart_gives_a_child_its_own_session_an_exact_environment_and_a_death_signal(t *testing.T) {
	g := NewWithT(t)
	s := child("deathsignal")
	s.Env = []string{"ONLY=this"}
	want := fmt.Sprintf("9 %d %d %d ONLY=this", os.Getuid(), os.Getgid(), len(must(os.Getgroups())))
	if os.Getuid() == 0 {
		// The drop of the uid clears a death signal that was set before it.
		s.User = &User{UID: 61777, GID: 61778}
		s.Path = copySelf(t)
		want = "9 61777 61778 0 ONLY=this"
	}
	p, err := Start(t.Context(), s)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(line(p)).To(Equal(want))
	<-p.Done()
	g.Expect(p.Err()).NotTo(HaveOccurred())
	g.Expect(p.Identity().Alive()).To(BeFalse())
	g.Expect(p.Stop(t.Context(), 0)).To(Succeed())
}

// copySelf puts this program where another uid may run it.
func copySelf(t *testing.T) string {
	b := must(os.ReadFile("/proc/self/exe"))
	f := must(os.CreateTemp("", "self"))
	t.Cleanup(func() { os.Remove(f.Name()) })
	must(f.Write(b))
	if err := errors.Join(f.Chmod(0o755), f.Close()); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

func TestChildren_die_with_their_parent(t *testing.T) {
	g := NewWithT(t)
	p, err := Start(t.Context(), child("parent"))
	g.Expect(err).NotTo(HaveOccurred())
	grandchild, err := Observe(must(strconv.Atoi(line(p))))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Identity().Kill(syscall.SIGKILL)).To(Succeed())
	g.Eventually(grandchild.Alive).WithTimeout(2 * time.Second).Should(BeFalse())
	g.Expect(p.Stop(t.Context(), 0)).To(Succeed())
}

func TestStop_ends_the_session_and_a_claim_what_left_it(t *testing.T) {
	g := NewWithT(t)
	home := t.TempDir()
	s := child("stray")
	s.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + home}
	p, err := Start(t.Context(), s)
	g.Expect(err).NotTo(HaveOccurred())
	r := bufio.NewReader(p.Stdout())
	var strays []Identity
	for range 2 {
		l, err := r.ReadString('\n')
		g.Expect(err).NotTo(HaveOccurred())
		pid := must(strconv.Atoi(strings.TrimSpace(l)))
		before, err := Observe(pid)
		g.Expect(err).NotTo(HaveOccurred())
		// The shell says the number before its child has become the program; Now follows that.
		g.Eventually(before.Now).Should(HaveField("Executable", HaveSuffix("sleep")))
		strays = append(strays, must(before.Now()))
	}
	g.Expect(p.Stop(t.Context(), time.Second)).To(Succeed())
	g.Expect(strays[0].Alive()).To(BeFalse(), "an orphan in the session of its parent")
	g.Expect(strays[1].Alive()).To(BeTrue(), "an orphan in its own session is not found by Stop")
	claim := Claim{Homes: []string{home}}
	g.Expect(claim.End(t.Context(), 0)).To(Succeed())
	g.Expect(strays[1].Alive()).To(BeFalse())
	g.Expect(claim.Find()).To(BeEmpty())
}

func TestStop_kills_what_does_not_listen(t *testing.T) {
	g := NewWithT(t)
	p, err := Start(t.Context(), child("deaf"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(line(p)).To(Equal("ready"))
	g.Expect(p.Stop(t.Context(), 50*time.Millisecond)).To(Succeed())
	g.Expect(p.Identity().Alive()).To(BeFalse())
	g.Expect(p.Stop(t.Context(), 0)).To(Succeed(), "twice")
}

func TestKill_spares_another_process_with_the_same_pid(t *testing.T) {
	g := NewWithT(t)
	p, err := Start(t.Context(), Spec{Path: "/bin/sleep", Args: []string{"300"}})
	g.Expect(err).NotTo(HaveOccurred())
	defer p.Stop(context.Background(), 0)
	id := p.Identity()
	for name, other := range map[string]Identity{
		"other start":      {id.PID, id.Start + 1, id.Executable},
		"other executable": {id.PID, id.Start, "/usr/bin/other"},
	} {
		g.Expect(other.Alive()).To(BeFalse(), name)
		g.Expect(other.Kill(syscall.SIGKILL)).To(MatchError(ErrGone), name)
	}
	g.Expect(id.Alive()).To(BeTrue())
	g.Expect(Identity{PID: 1, Start: 1}.Kill(syscall.SIGKILL)).To(MatchError(ErrGone))
}

func TestStart_explains_a_failure(t *testing.T) {
	g := NewWithT(t)
	_, err := Start(t.Context(), Spec{Path: "/no/such/program"})
	var se *StartError
	g.Expect(errors.As(err, &se)).To(BeTrue())
	g.Expect(err).To(MatchError(os.ErrNotExist))

	s := child("say")
	s.Stdout, s.TailBytes = Tail, 10
	p, err := Start(t.Context(), s)
	g.Expect(err).NotTo(HaveOccurred())
	<-p.Done()
	var ee *ExitError
	g.Expect(errors.As(p.Err(), &ee)).To(BeTrue())
	g.Expect(ee.State).To(Equal("exit status 3"))
	g.Expect(ee.Tail).To(Equal("xxxxxxxend"), "bounded")
	g.Expect(p.Signal(syscall.SIGTERM)).To(MatchError(ErrGone))
}

func TestTree_lists_descendants(t *testing.T) {
	g := NewWithT(t)
	p, err := Start(t.Context(), child("parent"))
	g.Expect(err).NotTo(HaveOccurred())
	defer p.Stop(context.Background(), 0)
	pid := must(strconv.Atoi(line(p)))
	tree, err := Tree(os.Getpid())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(identities(tree)).To(ContainElements(HaveField("PID", pid), HaveField("PID", p.Identity().PID)))
}

func TestParseStat(t *testing.T) {
	tail := " S 7 8 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 1 2"
	for name, c := range map[string]struct {
		in string
		ok bool
	}{
		"plain":                        {"12 (sh)" + tail, true},
		"brackets and spaces in name":  {"12 (a) S 1 (b)" + tail, true},
		"empty":                        {"", false},
		"no name":                      {"12 sh" + tail, false},
		"cut short":                    {"12 (sh) S 7 8", false},
		"start time that is no number": {"12 (sh) S 7 8 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 x 1 2", false},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			g := NewWithT(t)
			e, err := parseStat([]byte(c.in))
			g.Expect(err == nil).To(Equal(c.ok))
			if c.ok {
				g.Expect(e).To(Equal(Entry{Identity: Identity{PID: 12, Start: 4242}, Parent: 7, Group: 8, Session: 9, State: 'S'}))
			}
		})
	}
}
