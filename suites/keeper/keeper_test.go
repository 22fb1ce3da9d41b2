//go:build linux

package keeper

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/suites/process"
	"github.com/engine-acceptance/acceptance/suites/talk"
)

// The test binary plays the keeper.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "role" && os.Args[2] == "keeper" {
		os.Exit(Main(context.Background(), os.Args[3:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func start(g Gomega, t *testing.T, grace time.Duration) *Keeper {
	k, err := Start(t.Context(), Options{Grace: grace})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { k.Close(context.Background()) })
	return k
}

// stubborn is a process in its own session with HOME at home that ignores SIGTERM, with an orphan
// outside its session.
func stubborn(g Gomega, t *testing.T, home string) *process.Process {
	p, err := process.Start(t.Context(), process.Spec{Path: "/bin/sh", Args: []string{"-c", "trap '' TERM; (setsid sleep 300 &); echo ready; while :; do sleep 1; done"},
		Env: []string{"PATH=/usr/bin:/bin", "HOME=" + home}, Stdout: process.Pipe})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { p.Stop(context.Background(), 0) })
	_, err = bufio.NewReader(p.Stdout()).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	return p
}

func TestKeeper_cleans_when_the_worker_has_gone(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	home, outside := filepath.Join(root, "home"), filepath.Join(root, "outside")
	socket, replaced := filepath.Join(root, "socket"), filepath.Join(root, "replaced")
	for _, d := range []string{home, outside} {
		g.Expect(os.Mkdir(d, 0o700)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(d, "file"), []byte("x"), 0o600)).To(Succeed())
	}
	g.Expect(os.Symlink(outside, filepath.Join(home, "link"))).To(Succeed())
	for _, f := range []string{socket, replaced} {
		g.Expect(os.WriteFile(f, nil, 0o600)).To(Succeed())
	}
	k := start(g, t, 50*time.Millisecond)
	kept, other := stubborn(g, t, home), stubborn(g, t, outside)
	g.Expect(errors.Join(k.Process(kept.Identity()), k.Home(home), k.Directory(home), k.File(socket), k.File(replaced))).To(Succeed())
	g.Expect(os.Remove(replaced)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(root, "filler"), nil, 0o600)).To(Succeed()) // may take the number of the old one
	g.Expect(os.WriteFile(replaced, nil, 0o600)).To(Succeed())

	g.Expect(k.p.Stdin().Close()).To(Succeed()) // what the kernel does when the worker is killed
	g.Eventually(k.Lost()).WithTimeout(5 * time.Second).Should(BeClosed())
	g.Expect(k.p.Err()).NotTo(HaveOccurred(), k.p.Tail())
	g.Expect(process.Claim{Roots: []process.Identity{kept.Identity()}, Homes: []string{home}}.Find()).To(BeEmpty())
	g.Expect(home).NotTo(BeADirectory())
	g.Expect(socket).NotTo(BeAnExistingFile())
	g.Expect(replaced).To(BeAnExistingFile(), "another file of that name is not its")
	g.Expect(filepath.Join(outside, "file")).To(BeAnExistingFile(), "links are not followed")
	g.Expect(other.Identity().Alive()).To(BeTrue())
	g.Expect(process.Claim{Homes: []string{outside}}.End(t.Context(), 0)).To(Succeed())
}

func TestKeeper_that_got_a_goodbye_touches_nothing(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	k := start(g, t, 0)
	p := stubborn(g, t, dir)
	g.Expect(errors.Join(k.Process(p.Identity()), k.Directory(dir), k.Home(dir))).To(Succeed())
	g.Expect(k.Close(t.Context())).To(Succeed())
	g.Expect(k.Lost()).To(BeClosed())
	g.Expect(p.Identity().Alive()).To(BeTrue())
	g.Expect(dir).To(BeADirectory())
	g.Expect(k.Close(t.Context())).To(Succeed(), "twice")
	g.Expect(process.Claim{Homes: []string{dir}}.End(t.Context(), 0)).To(Succeed())
}

func TestKeeper_spares_a_process_that_only_has_the_number(t *testing.T) {
	g := NewWithT(t)
	k := start(g, t, 10*time.Millisecond)
	p := stubborn(g, t, t.TempDir())
	id := p.Identity()
	id.Start--
	g.Expect(k.Process(id)).To(Succeed())
	g.Expect(k.p.Stdin().Close()).To(Succeed())
	g.Eventually(k.Lost()).WithTimeout(5 * time.Second).Should(BeClosed())
	g.Expect(p.Identity().Alive()).To(BeTrue())
	g.Expect(process.Claim{Roots: []process.Identity{p.Identity()}}.End(t.Context(), 0)).To(Succeed())
}

func TestKeeper_ignores_the_signals_of_a_terminal(t *testing.T) {
	g := NewWithT(t)
	k := start(g, t, 0)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		g.Expect(k.p.Signal(s)).To(Succeed())
		g.Expect(k.Home("/dev/shm/home-1")).To(Succeed())
	}
}

func TestKeeper_refuses_what_is_not_a_desk_s(t *testing.T) {
	g := NewWithT(t)
	k := start(g, t, 0)
	file := filepath.Join(t.TempDir(), "file")
	g.Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
	for name, err := range map[string]error{
		"root":          k.Directory("/"),
		"one level":     k.Directory("/tmp"),
		"relative":      k.Directory("tmp/x"),
		"not clean":     k.Directory("/tmp/../etc"),
		"missing":       k.Directory(file + "-missing"),
		"a file":        k.Directory(file),
		"a directory":   k.File(filepath.Dir(file)),
		"root's uid":    k.User(0),
		"own uid":       k.User(os.Getuid()),
		"init":          k.Process(process.Identity{PID: 1, Start: 1}),
		"itself":        k.Process(k.Identity()),
		"no start time": k.Process(process.Identity{PID: 4242}),
	} {
		var refused *talk.RemoteError
		g.Expect(errors.As(err, &refused)).To(BeTrue(), "%s: %v", name, err)
	}
}

func TestMain_refuses_wrong_arguments(t *testing.T) {
	g := NewWithT(t)
	var out strings.Builder
	for _, args := range [][]string{{"--grace", "-1s"}, {"--grace", "2h"}, {"--nope"}, {"stray"}} {
		g.Expect(Main(t.Context(), args, strings.NewReader(""), &out, &out)).To(Equal(2), "%v", args)
	}
}
