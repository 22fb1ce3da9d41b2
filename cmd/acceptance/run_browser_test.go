//go:build browser

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/evidence/kills"
	"github.com/engine-acceptance/acceptance/evidence/provenance"
	"github.com/engine-acceptance/acceptance/suites/process"
)

// A run of three rows, from the key to the gate, with the programs as they are shipped.
func TestRun_three_rows_signed_verified_and_explained(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := t.TempDir()
	keys, bundle := filepath.Join(dir, "keys"), filepath.Join(dir, "bundle")
	signer := filepath.Join(keys, "signer.pem")
	g.Expect(call(t, built, "key", keys).code).To(gomega.Equal(exitOK))

	a := begin(t, nil, "run", "--rows", "exact-one-window,type-insert[state=covered],type-insert[state=partly_covered]", "--out", bundle, "--key", filepath.Join(keys, "signing.pem"), "--json")
	g.Expect(a.end()).To(gomega.Equal(exitOK), a.err.String())
	a.leavesNothing()
	var s runSummary
	g.Expect(json.Unmarshal([]byte(a.out.String()), &s)).To(gomega.Succeed())
	g.Expect(s.Finished).To(gomega.BeTrue())
	g.Expect(s.Rows).To(gomega.HaveLen(3))
	g.Expect(a.err.String()).NotTo(gomega.ContainSubstring("\x1b"), "progress is plain where nobody looks at a terminal")
	g.Expect(a.err.String()).To(gomega.MatchRegexp(`(?m)^ +3/3  pass +\d+\.\d s  `))

	for _, name := range []string{"plan.json", "provenance.json", "log.jsonl", "manifest.json", "statement.intoto.jsonl", "junit.xml", "summary.md", "report/index.html"} {
		g.Expect(filepath.Join(bundle, name)).To(gomega.BeARegularFile())
	}
	row := filepath.Join(bundle, filepath.FromSlash(placeOf("exact-one-window")))
	for _, name := range []string{"row.json", "observations.jsonl", "journal.jsonl", "desktop.jsonl", "trajectory.jsonl", "protocol.jsonl", "before.png", "after.png", "film.mp4", "frames.jsonl", "verdict.json"} {
		g.Expect(filepath.Join(row, name)).To(gomega.BeARegularFile())
	}
	film, err := os.Stat(filepath.Join(row, "film.mp4"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(film.Size()).To(gomega.BeNumerically(">", 10_000), "bytes of film")

	checked := call(t, static, "verify", "--signer", signer, bundle)
	g.Expect(checked.code).To(gomega.Equal(exitOK), checked.out+checked.err)
	g.Expect(checked.out).To(gomega.ContainSubstring("checked"))
	asJSON := call(t, static, "verify", "--json", bundle)
	g.Expect(json.Valid([]byte(asJSON.out))).To(gomega.BeTrue())

	gated := call(t, static, "gate", "--policy", "release", "--signer", signer, bundle)
	g.Expect(gated.code).To(gomega.Equal(exitCannotJudge), gated.out)
	g.Expect(gated.out).To(gomega.And(gomega.ContainSubstring("release: UNDETERMINED"), gomega.MatchRegexp(`the run left out \d+ planned rows`), gomega.ContainSubstring("core requirement ")))
	g.Expect(json.Valid([]byte(call(t, static, "gate", "--json", bundle).out))).To(gomega.BeTrue())

	why := call(t, built, "why", bundle, "exact-one-window")
	g.Expect(why.code).To(gomega.Equal(exitOK), why.err)
	g.Expect(why.out).To(gomega.And(gomega.ContainSubstring("exact-one-window"), gomega.ContainSubstring("B1"), gomega.ContainSubstring("verdict   PASS")))
	where := call(t, built, "report", bundle)
	g.Expect(where.code).To(gomega.Equal(exitOK), where.out+where.err)
	g.Expect(where.out).To(gomega.ContainSubstring(filepath.Join(bundle, "report", "index.html")))

	t.Run("the_folder_is_not_written_twice", func(t *testing.T) {
		g := gomega.NewWithT(t)
		again := call(t, built, "run", "--rows", "exact-one-window", "--out", bundle)
		g.Expect(again.code).To(gomega.Equal(exitUsage))
		g.Expect(again.err).To(gomega.ContainSubstring("is not empty"))
		g.Expect(call(t, static, "verify", "--signer", signer, bundle).code).To(gomega.Equal(exitOK), "something was lost")
	})
	t.Run("a_stranger's_key_is_refused", func(t *testing.T) {
		g := gomega.NewWithT(t)
		other := filepath.Join(t.TempDir(), "other")
		g.Expect(call(t, built, "key", other).code).To(gomega.Equal(exitOK))
		g.Expect(call(t, static, "verify", "--signer", filepath.Join(other, "signer.pem"), bundle).code).To(gomega.Equal(exitRejected))
	})
	for _, name := range []string{
		"plan.json", "report/index.html", placeOf("exact-one-window") + "/film.mp4", placeOf("exact-one-window") + "/observations.jsonl",
		placeOf("type-insert[state=covered]") + "/desktop.jsonl",
	} {
		t.Run("one_bit_of_"+filepath.Base(name), func(t *testing.T) {
			g := gomega.NewWithT(t)
			path := filepath.Join(bundle, filepath.FromSlash(name))
			whole, err := os.ReadFile(path)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			spoilt := bytes.Clone(whole)
			spoilt[len(spoilt)/2] ^= 1
			g.Expect(os.WriteFile(path, spoilt, 0o600)).To(gomega.Succeed())
			altered := call(t, static, "verify", "--signer", signer, bundle)
			g.Expect(os.WriteFile(path, whole, 0o600)).To(gomega.Succeed())
			g.Expect(altered.code).To(gomega.Equal(exitRejected))
			g.Expect(altered.out).To(gomega.And(gomega.ContainSubstring("verify    altered"), gomega.ContainSubstring(name)))
		})
	}
}

// Whatever is killed in the middle of a row, the bundle is never green and nothing stays behind.
func TestRun_cut_in_the_middle_of_a_row(t *testing.T) {
	kill := func(pattern string) func(*acts, process.Identity) error {
		return func(a *acts, _ process.Identity) error {
			victim, found := a.find(pattern, "")
			if !found {
				return fmt.Errorf("no process of the run matches %s", pattern)
			}
			return victim.Kill(syscall.SIGKILL)
		}
	}
	signalRun := func(sig syscall.Signal) func(*acts, process.Identity) error {
		return func(a *acts, _ process.Identity) error { return a.cmd.Process.Signal(sig) }
	}
	for _, tc := range []struct {
		name string
		cut  func(a *acts, browser process.Identity) error
		// codes may be what run exits with; -1 is the end by a signal.
		codes []int
		says  string
		// whole is true where the run goes on, so that the bundle verifies.
		whole bool
	}{
		{"coordinator_killed", signalRun(syscall.SIGKILL), []int{-1}, "", false},
		{"interrupted", signalRun(syscall.SIGINT), []int{exitCannotJudge}, "", false},
		{"worker_killed", kill(` role worker$`), []int{exitCannotJudge}, "the worker ended early", false},
		{"engine_killed", kill(` engine serve chromium$`), []int{exitRejected, exitCannotJudge}, "engine_gone", true},
		{"x_server_killed", kill(`/Xvfb `), []int{exitCannotJudge}, "desk lost its ", false},
		{"person_killed", kill(` role person$`), []int{exitCannotJudge}, "", true},
		{"controls_killed", kill(` role controls( |$)`), []int{exitCannotJudge}, "", true},
		{"bus_killed", kill(`/dbus-daemon --session`), []int{exitCannotJudge}, "desk lost its session bus", false},
		{"browser_killed", func(_ *acts, browser process.Identity) error { return browser.Kill(syscall.SIGKILL) }, []int{exitRejected, exitCannotJudge}, "", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			bundle := filepath.Join(t.TempDir(), "bundle")
			a := begin(t, nil, "run", "--rows", "film-plays", "--out", bundle)
			browser := a.inStep(bundle, "film-plays", "type-3")
			g.Expect(tc.cut(a, browser)).To(gomega.Succeed())
			code := a.end()
			g.Expect(tc.codes).To(gomega.ContainElement(code), a.out.String()+a.err.String())
			g.Expect(a.err.String()).To(gomega.ContainSubstring(tc.says))
			g.Expect(a.out.String()).NotTo(gomega.ContainSubstring(": SUPPORTED"))
			a.leavesNothing()
			checked, gated := call(t, static, "verify", bundle), call(t, static, "gate", "--policy", "development", bundle)
			if tc.whole {
				g.Expect(checked.code).To(gomega.Equal(exitOK), checked.out)
				g.Expect(a.err.String()).NotTo(gomega.MatchRegexp(`1/1  pass`))
			} else {
				g.Expect(checked.code).To(gomega.Equal(exitCannotJudge), checked.out)
				g.Expect(checked.out).To(gomega.ContainSubstring("the run did not finish"))
			}
			g.Expect(gated.code).NotTo(gomega.Equal(exitOK), gated.out)
			t.Logf("run exited %d:\n%s", code, a.err)
		})
	}
}

// A defect of the engine is killed for what it declares, and the table says by which harness.
func TestMutants_one_is_killed_as_declared(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := filepath.Join(t.TempDir(), "mutants")
	a := begin(t, nil, "mutants", "--only", "swallows-a-character", "--out", dir, "--json")
	g.Expect(a.end()).To(gomega.Equal(exitOK), a.err.String())
	a.leavesNothing()
	raw, err := os.ReadFile(filepath.Join(dir, "kills.json"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	var printed kills.Table
	written, signer, _, err := kills.Read(raw, nil)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(signer).To(gomega.BeEmpty())
	g.Expect(json.Unmarshal([]byte(a.out.String()), &printed)).To(gomega.Succeed())
	g.Expect(printed).To(gomega.Equal(written))
	g.Expect(written.Harness).To(gomega.Equal(digestOf(t, built)))
	g.Expect(written.Mutants).To(gomega.HaveLen(1))
	m := written.Mutants[0]
	state, why := m.Judge()
	g.Expect(state).To(gomega.Equal(kills.Killed), why)
	g.Expect(m.Reported()).To(gomega.Equal(m.Declared))
	g.Expect(written.Healthy).To(gomega.HaveLen(len(m.Rows)), "the healthy engine runs the same rows")
	g.Expect(m.Decision).To(gomega.Equal("not_supported"))
	for name, manifest := range map[string]string{"swallows-a-character": m.Manifest, "healthy": written.HealthyManifest} {
		g.Expect(call(t, static, "verify", filepath.Join(dir, name)).code).To(gomega.Equal(exitOK))
		g.Expect(manifest).To(gomega.Equal(digestOf(t, filepath.Join(dir, name, "manifest.json"))))
	}
}

// One program that is missing is named with its package, before anything is made.
func TestRun_without_one_program_names_it(t *testing.T) {
	tools := map[string]string{"Xvfb": "xvfb", "openbox": "openbox", "ffmpeg": "ffmpeg", "dbus-daemon": "dbus"}
	for missing, pkg := range tools {
		t.Run(missing, func(t *testing.T) {
			g := gomega.NewWithT(t)
			path, dir := t.TempDir(), t.TempDir()
			for _, name := range []string{"Xvfb", "openbox", "ffmpeg", "dbus-daemon", "git"} {
				if name == missing {
					continue
				}
				real, err := exec.LookPath(name)
				g.Expect(err).NotTo(gomega.HaveOccurred())
				g.Expect(os.Symlink(real, filepath.Join(path, name))).To(gomega.Succeed())
			}
			a := begin(t, func(c *exec.Cmd) { c.Env = append(c.Env, "PATH="+path) }, "run", "--rows", "exact-one-window", "--out", filepath.Join(dir, "deep", "bundle"))
			g.Expect(a.end()).To(gomega.Equal(exitUsage), a.err.String())
			g.Expect(a.err.String()).To(gomega.ContainSubstring(missing + " is not installed; install it: apt-get install " + pkg))
			g.Expect(strings.Count(a.err.String(), "is not installed")).To(gomega.Equal(1))
			g.Expect(os.ReadDir(dir)).To(gomega.BeEmpty())
			g.Expect(a.left()).To(gomega.BeEmpty())
		})
	}
}

// On a disk that takes no more the run says so, and what is there verifies as incomplete.
func TestRun_on_a_full_disk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	g := gomega.NewWithT(t)
	// The mount is private to the shell and goes with it; the verdict of verify is therefore asked for inside.
	const script = `mount -t tmpfs -o size=1m tmpfs "$1" || exit 99
"$2" run --rows film-plays --out "$1/bundle"; echo "run exits $?"
"$3" verify "$1/bundle"; echo "verify exits $?"`
	disk := t.TempDir()
	a := begin(t, func(c *exec.Cmd) {
		c.Path = "/usr/bin/unshare"
		c.Args = []string{"unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", script, "sh", disk, built, static}
	})
	g.Expect(a.end()).To(gomega.Equal(exitOK), a.err.String())
	g.Expect(a.out.String()).To(gomega.And(gomega.ContainSubstring("run exits 3"), gomega.ContainSubstring("verify exits 3"), gomega.ContainSubstring("verify    incomplete")))
	g.Expect(a.err.String()).To(gomega.ContainSubstring("evidence_write_failed"))
	a.leavesNothing()
}

// Outside of a repository a run works, says that its source cannot be named, and decides nothing.
func TestRun_without_a_repository_decides_nothing(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := t.TempDir()
	a := begin(t, func(c *exec.Cmd) { c.Dir = dir }, "run", "--rows", "exact-one-window")
	g.Expect(a.end()).To(gomega.Equal(exitOK), a.err.String())
	a.leavesNothing()
	g.Expect(a.out.String()).To(gomega.ContainSubstring("UNDETERMINED"))
	bundles, err := filepath.Glob(filepath.Join(dir, "out", "*"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(bundles).To(gomega.HaveLen(1), "the default folder of a bundle")
	raw, err := os.ReadFile(filepath.Join(bundles[0], "provenance.json"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	var p provenance.Provenance
	g.Expect(json.Unmarshal(raw, &p)).To(gomega.Succeed())
	g.Expect(p.Repository.State).To(gomega.Equal(provenance.StateNone))
	g.Expect(p.Repository.Message).NotTo(gomega.BeEmpty())
	checked := call(t, static, "verify", bundles[0])
	g.Expect(checked.code).To(gomega.Equal(exitOK), checked.out)
	g.Expect(checked.out).To(gomega.ContainSubstring("unsigned"))
	gated := call(t, static, "gate", bundles[0])
	g.Expect(gated.code).To(gomega.Equal(exitCannotJudge))
	g.Expect(gated.out).To(gomega.ContainSubstring("UNDETERMINED"))
}

// An ordinary user can run it too; that engine and harness have one uid is then printed as a limit.
func TestRun_as_an_ordinary_user(t *testing.T) {
	g := gomega.NewWithT(t)
	home := t.TempDir()
	bundle := filepath.Join(home, "bundle")
	a := begin(t, func(c *exec.Cmd) {
		c.Dir = home
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8", "XDG_RUNTIME_DIR=" + filepath.Join(home, "run"), "TMPDIR=" + filepath.Join(home, "tmp")}
		for _, dir := range []string{"run", "tmp"} {
			g.Expect(os.Mkdir(filepath.Join(home, dir), 0o700)).To(gomega.Succeed())
		}
		if os.Getuid() != 0 {
			return
		}
		const uid = 61888
		g.Expect(os.Chmod(filepath.Dir(home), 0o755)).To(gomega.Succeed()) // made for the testing user alone
		for _, dir := range []string{home, filepath.Join(home, "run"), filepath.Join(home, "tmp")} {
			g.Expect(os.Chown(dir, uid, uid)).To(gomega.Succeed())
		}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}, "run", "--rows", "exact-one-window", "--out", bundle)
	g.Expect(a.end()).To(gomega.Equal(exitOK), a.err.String())
	g.Expect(a.err.String()).To(gomega.ContainSubstring("(shared-uid)"))
	g.Expect(a.out.String()).To(gomega.MatchRegexp(`limit +engine and browsers share the harness's uid`))
	g.Eventually(a.left, goneBudget).Should(gomega.BeEmpty())
	g.Expect(call(t, static, "verify", bundle).code).To(gomega.Equal(exitOK))
}
