// Package provenance says exactly what took part in a run: the harness's commit and its working tree, re-hashed by our own code; the
// harness binary; the engine's artifact and the commit it is said or proved to come from; the browsers; the system.
//
//	p, err := provenance.Collect(ctx, provenance.Input{Repository: ".", Browsers: ...})
//	if !p.Acceptable() { ... }     // dirty, or no repository: may run, can never be accepted
//
// git is used to read objects and the index, never believed about them: every commit, tree and file is hashed here, and what git was told
// to overlook (assume-unchanged, skip-worktree, exclude files, replace refs) is looked at anyway.
//
// Nothing in a [Provenance] holds an absolute path, a host name, a user name, a port or the value of an environment variable.
package provenance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/engine-acceptance/acceptance/engine"
)

// Format names the format and version of a [Provenance].
const Format = "acceptance.provenance/v1"

// maxExecutable bounds what is hashed as one executable.
const maxExecutable = 4 << 30

// maxWord bounds every free word of a provenance, in bytes.
const maxWord = 256

// Input says what to look at. Zero values are left out of the result, loudly where a run needs them: see [Provenance.Problems].
type Input struct {
	// Repository is any folder inside the harness's working tree. "" means the current folder.
	Repository string
	// Engine is the engine under test.
	Engine EngineInput
	// Browsers are the browsers that the run uses.
	Browsers []BrowserInput
	// Roles replaces absolute paths in arguments: path to role word, for example the profile folder to "profile".
	Roles map[string]string
	// Display holds facts about display and window manager that the caller measured: word to word ("server": "Xvfb 21.1.7",
	// "window_manager": "openbox", "window_manager_config_sha256": ...).
	Display map[string]string
	// SandboxPosture says in one word how browsers are confined: "on", "on_dropped_uid", ...
	SandboxPosture string
	// EngineUID and BrowserUID are the uids of engine and browsers; negative where unknown.
	EngineUID, BrowserUID int
	// VersionTimeout bounds each `--version` call; 0 means 10 s.
	VersionTimeout time.Duration
}

// EngineInput is the engine under test as the harness starts it.
type EngineInput struct {
	// Name is the engine file's name. Path is the executable; "" means the harness binary itself.
	Name string
	Path string
	Argv []string
	// ClaimedCommit is the commit that its owner names; it is printed as claimed unless build information proves one.
	ClaimedCommit string
}

// BrowserInput is one browser. Path is the command; PID, when not 0, is a running process of it whose real executable is hashed.
type BrowserInput struct {
	Product engine.Product
	Path    string
	PID     int
	Argv    []string
	// Version is what package data says; "" asks the executable with --version.
	Version string
}

// Provenance is the content of provenance.json. Digests are sha256 in lower-case hex, times do not occur.
type Provenance struct {
	Format     string     `json:"format"`
	Repository Repository `json:"repository"`
	Harness    Binary     `json:"harness"`
	Engine     Engine     `json:"engine"`
	Browsers   []Browser  `json:"browsers"`
	System     System     `json:"system"`
	// Problems are facts that could not be collected. A release policy wants none.
	Problems []string `json:"problems"`
}

// Binary is one Go executable. Commit and Modified are build information; Commit is "" when the build had none.
type Binary struct {
	SHA256   string `json:"sha256"`
	Size     int64  `json:"size"`
	Go       string `json:"go"`
	Main     string `json:"main"`
	Commit   string `json:"vcs_revision"`
	Modified bool   `json:"vcs_modified"`
	// MatchesRepository is true when Commit is the repository's and neither was modified.
	MatchesRepository bool `json:"matches_repository"`
	// Modules maps the path of each linked module to its version and sum.
	Modules map[string]string `json:"modules"`
}

// Basis says what a subject commit rests on.
type Basis string

// The closed list of bases.
const (
	// BasisBuildInformation: the artifact's own build information names the commit, unmodified.
	BasisBuildInformation Basis = "build_information"
	// BasisClaimed: somebody said so.
	BasisClaimed Basis = "claimed"
	// BasisNone: nobody said anything.
	BasisNone Basis = "none"
)

// Engine is the engine under test. Artifact is a role ("harness" or "external"), never a path.
type Engine struct {
	Name     string   `json:"name"`
	Artifact string   `json:"artifact"`
	SHA256   string   `json:"sha256"`
	Argv     []string `json:"argv"`
	// SubjectCommit is the commit that the artifact comes from, Basis why we say so. Dirty is true when build information says that
	// the tree was modified.
	SubjectCommit string `json:"subject_commit"`
	Basis         Basis  `json:"basis"`
	Dirty         bool   `json:"dirty"`
}

// Browser is one browser. Kind is "binary" or "script"; a script's digest is not that of the program which it starts.
type Browser struct {
	Product engine.Product `json:"product"`
	// Executable is the base name of the real executable.
	Executable string `json:"executable"`
	Kind       string `json:"kind"`
	SHA256     string `json:"sha256"`
	Version    string `json:"version"`
	// VersionFrom is "executable" or "package".
	VersionFrom string   `json:"version_from"`
	Argv        []string `json:"argv"`
}

// System is the machine, without anything that names it.
type System struct {
	OS       string `json:"os"`
	Release  string `json:"release"`
	Kernel   string `json:"kernel"`
	Arch     string `json:"arch"`
	CPUs     int    `json:"cpus"`
	UID      int    `json:"uid"`
	Engine   int    `json:"engine_uid"`
	Browser  int    `json:"browser_uid"`
	Sandbox  string `json:"sandbox_posture"`
	Separate bool   `json:"engine_has_other_uid"`
	// Display holds the caller's facts about display and window manager.
	Display map[string]string `json:"display"`
	// Environment lists the names of [EnvironmentNames] that are set, never values and never other names.
	Environment []string `json:"environment"`
}

// EnvironmentNames are the variables whose presence may change what a run does, and the only names that are ever written.
var EnvironmentNames = []string{"CI", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "GITHUB_ACTIONS", "GODEBUG", "GOFLAGS", "GOWORK", "HOME", "LANG",
	"LC_ALL", "LD_LIBRARY_PATH", "LD_PRELOAD", "LIBGL_ALWAYS_SOFTWARE", "MOZ_HEADLESS", "PATH", "SSLKEYLOGFILE", "TMPDIR", "TZ",
	"WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "XDG_SESSION_TYPE"}

// Acceptable says that the harness's tree is a clean, re-hashed commit, that the harness binary was built from it, and that the engine's
// artifact is not known to be dirty: what a release policy asks before anything else.
func (p Provenance) Acceptable() bool {
	return p.Repository.State == StateClean && p.Harness.MatchesRepository && !p.Engine.Dirty && len(p.Problems) == 0
}

// Collect gathers everything. What cannot be collected is named in Problems; the error is for a context that ended or an executable of
// our own that cannot be read.
func Collect(ctx context.Context, in Input) (Provenance, error) {
	p := Provenance{Format: Format, Browsers: []Browser{}, Problems: []string{}}
	scrub := newScrubber(in.Roles)
	dir := in.Repository
	if dir == "" {
		dir = "."
	}
	repo, err := Repo(ctx, dir)
	if err != nil {
		return Provenance{}, fmt.Errorf("collect provenance: %w", err)
	}
	p.Repository = repo

	self, err := os.Executable()
	if err != nil {
		return Provenance{}, fmt.Errorf("collect provenance: own executable: %w", err)
	}
	if p.Harness, err = ownBinary(ctx, self); err != nil {
		return Provenance{}, fmt.Errorf("collect provenance: own executable: %w", scrub.err(err))
	}
	p.Harness.MatchesRepository = repo.State == StateClean && p.Harness.Commit == repo.Commit && !p.Harness.Modified

	if p.Engine, err = engineArtifact(ctx, in.Engine, self, p.Harness, scrub); err != nil {
		p.Problems = append(p.Problems, scrub.text(fmt.Sprintf("engine artifact: %v", err)))
	}
	for _, b := range in.Browsers {
		got, err := browser(ctx, b, in.VersionTimeout, scrub)
		if err != nil {
			p.Problems = append(p.Problems, scrub.text(fmt.Sprintf("browser %s: %v", b.Product, err)))
		}
		p.Browsers = append(p.Browsers, got)
	}
	sort.Slice(p.Browsers, func(i, j int) bool { return p.Browsers[i].Product < p.Browsers[j].Product })
	p.System = system(in, scrub)
	if err := ctx.Err(); err != nil {
		return Provenance{}, fmt.Errorf("collect provenance: %w", err)
	}
	return p, nil
}

// On fills in what is only known once the desk stands: uids, posture and display. All else stays as it was collected.
func (p *Provenance) On(in Input) { p.System = system(in, newScrubber(in.Roles)) }

func system(in Input, scrub *scrubber) System {
	s := System{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), UID: os.Getuid(), Engine: in.EngineUID, Browser: in.BrowserUID,
		Sandbox: scrub.word(in.SandboxPosture), Display: map[string]string{}, Environment: []string{}}
	s.Separate = in.EngineUID >= 0 && in.EngineUID != s.UID
	s.Release, s.Kernel = release()
	for k, v := range in.Display {
		s.Display[scrub.word(k)] = scrub.text(v)
	}
	for _, name := range EnvironmentNames {
		if _, ok := os.LookupEnv(name); ok {
			s.Environment = append(s.Environment, name)
		}
	}
	return s
}

// osRelease reads PRETTY_NAME of an os-release file.
func osRelease(raw string) string {
	for line := range strings.Lines(raw) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return bounded(strings.Trim(v, `"'`))
		}
	}
	return "unknown"
}

// hashFile returns the sha256 and size of a regular file.
func hashFile(ctx context.Context, path string) (string, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxExecutable {
		return "", 0, fmt.Errorf("not a regular file of at most %d bytes", int64(maxExecutable))
	}
	h := sha256.New()
	n, err := io.Copy(h, &contextReader{ctx, f})
	if err != nil {
		return "", 0, err
	}
	if n != info.Size() {
		return "", 0, fmt.Errorf("read %d bytes of %d: the file changed", n, info.Size())
	}
	return hex.EncodeToString(h.Sum(nil)), n, nil
}

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}

// bounded cuts s to maxWord bytes of printable text.
func bounded(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
	for len(s) > maxWord {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}

// realPath follows links to the file that would run.
func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}
