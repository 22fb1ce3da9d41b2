package provenance

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// ownBinary describes the running executable. Its digest is taken from the file it was started from.
func ownBinary(ctx context.Context, path string) (Binary, error) {
	var b Binary
	var err error
	if b.SHA256, b.Size, err = hashFile(ctx, path); err != nil {
		return b, err
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b, errors.New("it has no build information")
	}
	b.fill(info)
	return b, nil
}

func (b *Binary) fill(info *debug.BuildInfo) {
	b.Go, b.Main = bounded(info.GoVersion), bounded(info.Main.Path)
	b.Commit, b.Modified = vcs(info)
	b.Modules = map[string]string{}
	for _, m := range info.Deps {
		version := m.Version + " " + m.Sum
		if m.Replace != nil {
			// A replacement by a folder has no sum: what was linked is not known by digest.
			version = "replaced " + m.Replace.Version + " " + m.Replace.Sum
		}
		b.Modules[bounded(m.Path)] = bounded(strings.TrimSpace(version))
	}
}

func vcs(info *debug.BuildInfo) (commit string, modified bool) {
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = bounded(s.Value)
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	return commit, modified
}

func engineArtifact(ctx context.Context, in EngineInput, self string, harness Binary, scrub *scrubber) (Engine, error) {
	e := Engine{Name: scrub.word(in.Name), Artifact: "external", Argv: scrub.argv(in.Argv), SubjectCommit: bounded(in.ClaimedCommit), Basis: BasisClaimed}
	if in.ClaimedCommit == "" {
		e.Basis = BasisNone
	}
	path := in.Path
	if path == "" {
		path = self
	} else if found, err := exec.LookPath(path); err == nil {
		path = found
	}
	real, err := realPath(path)
	if err != nil {
		return e, err
	}
	if e.SHA256, _, err = hashFile(ctx, real); err != nil {
		return e, err
	}
	if e.SHA256 == harness.SHA256 {
		e.Artifact = "harness"
	}
	info, err := buildinfo.ReadFile(real)
	if err != nil {
		return e, nil // no Go program: what its owner says is all there is, and it is printed as claimed
	}
	commit, modified := vcs(info)
	e.Dirty = modified
	if commit != "" && !modified {
		if in.ClaimedCommit != "" && in.ClaimedCommit != commit {
			e.Basis = BasisBuildInformation
			e.SubjectCommit = commit
			return e, fmt.Errorf("commit %.64q was claimed, its build information says %s", in.ClaimedCommit, commit)
		}
		e.SubjectCommit, e.Basis = commit, BasisBuildInformation
	}
	return e, nil
}

func browser(ctx context.Context, in BrowserInput, timeout time.Duration, scrub *scrubber) (Browser, error) {
	b := Browser{Product: in.Product, Kind: "binary", Version: scrub.text(in.Version), VersionFrom: "package", Argv: scrub.argv(in.Argv)}
	var path string
	var err error
	switch {
	case in.PID > 0:
		// The link names the file that the kernel runs, whatever a script said before it.
		path = fmt.Sprintf("/proc/%d/exe", in.PID)
		name, err := os.Readlink(path)
		if err != nil {
			return b, err
		}
		b.Executable = bounded(filepath.Base(strings.TrimSuffix(name, " (deleted)")))
	case in.Path != "":
		if path, err = exec.LookPath(in.Path); err != nil {
			return b, err
		}
		if path, err = realPath(path); err != nil {
			return b, err
		}
		b.Executable = bounded(filepath.Base(path))
	default:
		return b, errors.New("neither a path nor a process is known")
	}
	if b.SHA256, _, err = hashFile(ctx, path); err != nil {
		return b, err
	}
	if script(path) {
		b.Kind = "script"
	}
	if in.Version == "" {
		if in.Path != "" {
			path = in.Path
		}
		version, err := AskVersion(ctx, path, timeout, "--version")
		if err != nil {
			return b, err
		}
		b.Version, b.VersionFrom = scrub.text(version), "executable"
	}
	return b, nil
}

func script(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [2]byte
	_, err = io.ReadFull(f, head[:])
	return err == nil && string(head[:]) == "#!"
}

// AskVersion runs a program with the arguments that have it print its version, and returns the first line: with an allow-listed environment, in a
// home of its own (openbox writes a log and Chromium a cache, also for that), in its own process group, for at most timeout; 0 is 10 s.
func AskVersion(ctx context.Context, path string, timeout time.Duration, args ...string) (string, error) {
	if timeout <= 0 {
		timeout = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	home, err := os.MkdirTemp("", "acceptance-version-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(home)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_CACHE_HOME=" + home, "XDG_RUNTIME_DIR=" + home, "LANG=C.UTF-8", "PATH=" + os.Getenv("PATH")}
	cmd.Dir = home
	out := &head{max: 4 << 10}
	cmd.Stdout = out
	ownGroup(cmd)
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out.b)), "\n")
	if line == "" {
		return "", fmt.Errorf("%s printed nothing", strings.Join(args, " "))
	}
	return strings.TrimSpace(line), nil
}

// head keeps the first max bytes and swallows the rest.
type head struct {
	b   []byte
	max int
}

func (h *head) Write(p []byte) (int, error) {
	h.b = append(h.b, p[:min(len(p), h.max-len(h.b))]...)
	return len(p), nil
}
