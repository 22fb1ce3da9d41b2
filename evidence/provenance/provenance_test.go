package provenance_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence/provenance"
)

type tree struct {
	t   *testing.T
	dir string
}

func (r tree) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_AUTHOR_DATE=2020-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2020-01-01T00:00:00Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r tree) write(name, content string) {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r tree) do(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func repository(t *testing.T, format string) tree {
	t.Helper()
	r := tree{t, t.TempDir()}
	r.git("init", "-q", "-b", "main", "--object-format="+format)
	r.write("main.go", "package main\n")
	r.write("pkg/pages/a.html", "<p>a</p>\n")
	r.write("pkg/a.go", "package pkg\n")
	// git sorts "pkg.txt" before "pkg/": the re-hash must as well.
	r.write("pkg.txt", "x\n")
	r.write("run.sh", "#!/bin/sh\n")
	r.write(".gitignore", "*.gen.go\n*.gen.html\n/out/\n")
	r.do(os.Chmod(filepath.Join(r.dir, "run.sh"), 0o755))
	r.do(os.Symlink("main.go", filepath.Join(r.dir, "link")))
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "first")
	return r
}

func TestCleanTreeRehashes(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			g := gomega.NewWithT(t)
			r := repository(t, format)
			r.write("out/bundle/plan.json", "{}") // ignored output, not used by a build
			got, err := provenance.Repo(t.Context(), filepath.Join(r.dir, "pkg"))
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(got.Dirt).To(gomega.BeEmpty())
			g.Expect(got.State).To(gomega.Equal(provenance.StateClean))
			g.Expect(got.Commit).To(gomega.Equal(r.git("rev-parse", "HEAD")))
			g.Expect(got.Tree).To(gomega.Equal(r.git("rev-parse", "HEAD^{tree}")))
			g.Expect(got.Rehashed).To(gomega.Equal(got.Tree))
			g.Expect(got.Files).To(gomega.Equal(7))
			g.Expect(got.ObjectFormat).To(gomega.Equal(format))
		})
	}
}

// V6: every way in which a tree can differ from its commit, each with its own name.
func TestDirtOfEveryKind(t *testing.T) {
	for name, c := range map[string]struct {
		kind provenance.DirtKind
		path string
		do   func(r tree)
	}{
		"staged_change":    {provenance.DirtStaged, "main.go", func(r tree) { r.write("main.go", "package other\n"); r.git("add", "main.go") }},
		"staged_and_back":  {provenance.DirtStaged, "main.go", func(r tree) { r.write("main.go", "x"); r.git("add", "main.go"); r.write("main.go", "package main\n") }},
		"staged_new":       {provenance.DirtStaged, "new.go", func(r tree) { r.write("new.go", "package main\n"); r.git("add", "new.go") }},
		"intent_to_add":    {provenance.DirtStaged, "new.go", func(r tree) { r.write("new.go", "package main\n"); r.git("add", "-N", "new.go") }},
		"staged_removal":   {provenance.DirtStaged, "main.go", func(r tree) { r.git("rm", "-q", "--cached", "main.go") }},
		"staged_mode":      {provenance.DirtStaged, "main.go", func(r tree) { r.git("update-index", "--chmod=+x", "main.go") }},
		"unstaged_content": {provenance.DirtContent, "pkg/a.go", func(r tree) { r.write("pkg/a.go", "package pkh\n") }},
		"unstaged_mode":    {provenance.DirtMode, "main.go", func(r tree) { r.do(os.Chmod(filepath.Join(r.dir, "main.go"), 0o755)) }},
		"unstaged_mode_filemode_off": {provenance.DirtMode, "run.sh", func(r tree) {
			r.git("config", "core.fileMode", "false")
			r.do(os.Chmod(filepath.Join(r.dir, "run.sh"), 0o644))
		}},
		"unstaged_missing": {provenance.DirtMissing, "pkg/a.go", func(r tree) { r.do(os.Remove(filepath.Join(r.dir, "pkg/a.go"))) }},
		"file_became_link": {provenance.DirtType, "pkg.txt", func(r tree) {
			r.do(os.Remove(filepath.Join(r.dir, "pkg.txt")))
			r.do(os.Symlink("main.go", filepath.Join(r.dir, "pkg.txt")))
		}},
		"link_moved": {provenance.DirtContent, "link", func(r tree) {
			r.do(os.Remove(filepath.Join(r.dir, "link")))
			r.do(os.Symlink("run.sh", filepath.Join(r.dir, "link")))
		}},
		"folder_became_link": {provenance.DirtUntracked, "pkg", func(r tree) {
			other := filepath.Join(r.t.TempDir(), "pkg")
			r.do(os.Rename(filepath.Join(r.dir, "pkg"), other))
			r.do(os.Symlink(other, filepath.Join(r.dir, "pkg")))
		}},
		"same_size_and_time": {provenance.DirtContent, "main.go", func(r tree) {
			file := filepath.Join(r.dir, "main.go")
			info, err := os.Stat(file)
			r.do(err)
			r.write("main.go", "package niam\n")
			r.do(os.Chtimes(file, info.ModTime(), info.ModTime()))
		}},
		"line_ends": {provenance.DirtContent, "main.go", func(r tree) {
			r.git("config", "core.autocrlf", "true")
			r.write("main.go", "package main\r\n")
		}},
		"untracked":             {provenance.DirtUntracked, "pkg/b.go", func(r tree) { r.write("pkg/b.go", "package pkg\n") }},
		"untracked_repository":  {provenance.DirtUntracked, "nested/.git", func(r tree) { r.git("init", "-q", "nested") }},
		"ignored_source":        {provenance.DirtIgnoredUsed, "pkg/b.gen.go", func(r tree) { r.write("pkg/b.gen.go", "package pkg\n") }},
		"ignored_embedded":      {provenance.DirtIgnoredUsed, "pkg/pages/b.gen.html", func(r tree) { r.write("pkg/pages/b.gen.html", "b") }},
		"ignored_by_local_rule": {provenance.DirtIgnoredUsed, "pkg/c.go", func(r tree) { r.write(".git/info/exclude", "c.go\n"); r.write("pkg/c.go", "package pkg\n") }},
		"ignored_workspace":     {provenance.DirtIgnoredUsed, "go.work", func(r tree) { r.write(".git/info/exclude", "go.work\n"); r.write("go.work", "go 1.26\n") }},
		"assume_unchanged": {provenance.DirtIndexTrick, "main.go", func(r tree) {
			r.git("update-index", "--assume-unchanged", "main.go")
			r.write("main.go", "package hidden\n")
		}},
		"skip_worktree": {provenance.DirtIndexTrick, "main.go", func(r tree) {
			r.git("update-index", "--skip-worktree", "main.go")
			r.write("main.go", "package hidden\n")
		}},
		"assume_unchanged_content": {provenance.DirtContent, "main.go", func(r tree) {
			r.git("update-index", "--assume-unchanged", "main.go")
			r.write("main.go", "package hidden\n")
		}},
		"replaced_commit_content": {provenance.DirtContent, "main.go", func(r tree) {
			// A replace ref makes plain git show another tree under the same commit id.
			head := r.git("rev-parse", "HEAD")
			r.write("main.go", "package replaced\n")
			r.git("commit", "-q", "-a", "-m", "other")
			other := r.git("rev-parse", "HEAD")
			r.git("reset", "-q", "--hard", head)
			r.git("replace", head, other)
			r.git("reset", "-q", "--hard", "HEAD")
		}},
		"unmerged": {provenance.DirtUnmerged, "main.go", func(r tree) {
			r.git("checkout", "-q", "-b", "side")
			r.write("main.go", "package side\n")
			r.git("commit", "-q", "-a", "-m", "side")
			r.git("checkout", "-q", "main")
			r.write("main.go", "package mine\n")
			r.git("commit", "-q", "-a", "-m", "mine")
			cmd := exec.Command("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "merge", "-q", "side")
			cmd.Dir = r.dir
			if cmd.Run() == nil {
				r.t.Fatal("the merge had no conflict")
			}
		}},
		"submodule_dirty":  {provenance.DirtSubmodule, "sub/main.go", func(r tree) { withSubmodule(r); r.write("sub/main.go", "package dirty\n") }},
		"submodule_absent": {provenance.DirtSubmodule, "sub", func(r tree) { withSubmodule(r); r.do(os.RemoveAll(filepath.Join(r.dir, "sub"))) }},
		"submodule_elsewhere": {provenance.DirtSubmodule, "sub", func(r tree) {
			withSubmodule(r)
			sub := tree{r.t, filepath.Join(r.dir, "sub")}
			sub.write("main.go", "package moved\n")
			sub.git("commit", "-q", "-a", "-m", "moved")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := repository(t, "sha1")
			c.do(r)
			got, err := provenance.Repo(t.Context(), r.dir)
			if err != nil {
				t.Fatal(err)
			}
			if got.State != provenance.StateDirty {
				t.Fatalf("state %s, want dirty", got.State)
			}
			for _, d := range got.Dirt {
				if d.Kind == c.kind && d.Path == c.path {
					return
				}
			}
			t.Fatalf("got %+v, want %s of %s", got.Dirt, c.kind, c.path)
		})
	}
}

func withSubmodule(r tree) {
	r.t.Helper()
	sub := repository(r.t, "sha1")
	r.git("submodule", "add", "-q", sub.dir, "sub")
	r.git("commit", "-q", "-m", "submodule")
	got, err := provenance.Repo(r.t.Context(), r.dir)
	if err != nil || got.State != provenance.StateClean {
		r.t.Fatalf("a clean submodule: %+v, %v", got, err)
	}
}

func TestMergeCommitNamesBothParents(t *testing.T) {
	g := gomega.NewWithT(t)
	r := repository(t, "sha1")
	r.git("checkout", "-q", "-b", "side")
	r.write("side.go", "package main\n")
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "side")
	r.git("checkout", "-q", "main")
	r.git("merge", "-q", "--no-ff", "-m", "merge", "side")
	got, err := provenance.Repo(t.Context(), r.dir)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(got.State).To(gomega.Equal(provenance.StateClean))
	g.Expect(got.Parents).To(gomega.Equal(strings.Fields(r.git("rev-parse", "HEAD^1", "HEAD^2"))))
}

func TestCorruptObjectIsAnError(t *testing.T) {
	r := repository(t, "sha1")
	oid := r.git("rev-parse", "HEAD^{tree}")
	other := r.git("rev-parse", "HEAD:pkg")
	object := func(oid string) string { return filepath.Join(r.dir, ".git/objects", oid[:2], oid[2:]) }
	raw, err := os.ReadFile(object(other))
	r.do(err)
	r.do(os.Chmod(object(oid), 0o644))
	r.do(os.WriteFile(object(oid), raw, 0o644))
	got, err := provenance.Repo(t.Context(), r.dir)
	if err == nil && got.State != provenance.StateDirty {
		t.Fatalf("a tree object with other bytes was accepted: %+v", got)
	}
}

func TestNoRepository(t *testing.T) {
	g := gomega.NewWithT(t)
	got, err := provenance.Repo(t.Context(), t.TempDir())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(got.State).To(gomega.Equal(provenance.StateNone))
	g.Expect(got.Message).NotTo(gomega.BeEmpty())
}

// The fake browser is a script: its digest is that of the script, and it says so.
func script(t *testing.T, body string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "browser")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCollectHoldsNothingOfThisMachine(t *testing.T) {
	g := gomega.NewWithT(t)
	r := repository(t, "sha1")
	exe := script(t, "echo Browser 1.2.3 from $HOME\n")
	profile := t.TempDir()
	p, err := provenance.Collect(t.Context(), provenance.Input{
		Repository: r.dir,
		Roles:      map[string]string{profile: "profile", exe: "browser"},
		Engine:     provenance.EngineInput{Name: "cdp", Argv: []string{"acceptance", "engine", "serve", "cdp"}, ClaimedCommit: "abc"},
		Browsers: []provenance.BrowserInput{{Product: engine.ProductChromium, Path: exe, Argv: []string{exe, "--user-data-dir=" + profile + "/x",
			"--remote-debugging-port=9222", "--log=/var/log/x.log", "ws://127.0.0.1:9222/devtools/browser/abc", "~/secret", "--flag"}}},
		Display:   map[string]string{"server": "Xvfb 21.1", "config": r.dir + "/rc.xml"},
		EngineUID: 61234, BrowserUID: 61234,
	})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	b := p.Browsers[0]
	g.Expect(b.Kind).To(gomega.Equal("script"))
	g.Expect(b.Version).To(gomega.HavePrefix("Browser 1.2.3 from {path}"))
	g.Expect(b.SHA256).To(gomega.HaveLen(64))
	g.Expect(b.Argv).To(gomega.Equal([]string{"{browser}", "--user-data-dir={profile}/x", "--remote-debugging-port={port}", "--log={path}", "{endpoint}",
		"{path}", "--flag"}))
	g.Expect(p.Engine.Artifact).To(gomega.Equal("harness"))
	g.Expect(p.Engine.Basis).To(gomega.Equal(provenance.BasisClaimed))
	g.Expect(p.Harness.SHA256).To(gomega.Equal(p.Engine.SHA256))
	g.Expect(p.Harness.Go).To(gomega.HavePrefix("go1."))
	g.Expect(p.Problems).To(gomega.BeEmpty())
	g.Expect(p.Acceptable()).To(gomega.BeFalse(), "a test binary has no commit")

	raw, err := json.Marshal(p)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	for _, secret := range []string{r.dir, profile, filepath.Dir(exe), os.TempDir() + "/", "9222", os.Getenv("PATH")} {
		g.Expect(string(raw)).NotTo(gomega.ContainSubstring(secret))
	}
	if host, err := os.Hostname(); err == nil && len(host) > 2 {
		g.Expect(string(raw)).NotTo(gomega.ContainSubstring(host))
	}
	if u, err := user.Current(); err == nil {
		g.Expect(string(raw)).NotTo(gomega.ContainSubstring("/" + u.Username))
	}
}

func TestVersionIsBounded(t *testing.T) {
	g := gomega.NewWithT(t)
	begin := time.Now()
	for name, body := range map[string]string{"hangs": "sleep 60 & sleep 60\n", "fails": "exit 3\n", "silent": "exit 0\n"} {
		p, err := provenance.Collect(t.Context(), provenance.Input{Repository: t.TempDir(), VersionTimeout: 300 * time.Millisecond,
			Browsers: []provenance.BrowserInput{{Product: engine.ProductFirefox, Path: script(t, body)}}})
		g.Expect(err).NotTo(gomega.HaveOccurred(), name)
		g.Expect(p.Problems).To(gomega.HaveLen(1), name)
		g.Expect(p.Acceptable()).To(gomega.BeFalse(), name)
	}
	g.Expect(time.Since(begin)).To(gomega.BeNumerically("<", 20*time.Second))
	p, err := provenance.Collect(t.Context(), provenance.Input{Repository: t.TempDir(),
		Browsers: []provenance.BrowserInput{{Product: engine.ProductFirefox, Path: script(t, "yes | head -c 10000000\n")}}})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(p.Browsers[0].Version).To(gomega.Equal("y"))
}

func TestRunningBrowserIsHashedByItsProcess(t *testing.T) {
	g := gomega.NewWithT(t)
	p, err := provenance.Collect(t.Context(), provenance.Input{Repository: t.TempDir(),
		Browsers: []provenance.BrowserInput{{Product: engine.ProductChromium, PID: os.Getpid(), Version: "1"}}})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(p.Problems).To(gomega.BeEmpty())
	g.Expect(p.Browsers[0].SHA256).To(gomega.Equal(p.Harness.SHA256))
	g.Expect(p.Browsers[0].VersionFrom).To(gomega.Equal("package"))
}

func TestCollectEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := provenance.Collect(ctx, provenance.Input{Repository: repository(t, "sha1").dir}); err == nil {
		t.Fatal("an ended context gave a provenance")
	}
}
