package provenance

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var errNoRepository = errors.New("no git repository")

// Budgets of one git call.
const (
	gitTimeout   = 2 * time.Minute
	maxGitOutput = 256 << 20
	maxObject    = 64 << 20
)

// git runs git in one working tree. It only reads.
type git struct {
	exe, root, format string
}

// openGit finds the working tree around dir. It returns errNoRepository where there is none.
func openGit(ctx context.Context, dir string) (*git, error) {
	root, err := realPath(dir)
	if err != nil {
		return nil, errors.New("the repository's folder cannot be opened")
	}
	for at := root; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			root = at
			break
		}
		if at == filepath.Dir(at) {
			return nil, errNoRepository
		}
	}
	exe, err := exec.LookPath("git")
	if err != nil {
		return nil, ErrNoGit
	}
	g := &git{exe: exe, root: root}
	if g.format, err = g.line(ctx, "rev-parse", "--show-object-format"); err != nil {
		return nil, err
	}
	if g.format != "sha1" && g.format != "sha256" {
		return nil, fmt.Errorf("git: object format %.32q is unknown", g.format)
	}
	return g, nil
}

func (g *git) command(ctx context.Context, args ...string) *exec.Cmd {
	// fsmonitor and hooks are programs that a repository could name; attributes name filters.
	full := append([]string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull,
		"-c", "core.attributesFile=" + os.DevNull, "-c", "core.untrackedCache=false", "--no-pager"}, args...)
	cmd := exec.CommandContext(ctx, g.exe, full...)
	cmd.Dir = g.root
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.DevNull, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE=" + os.DevNull, "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1"}
	// The tree may belong to another uid than ours; that is no danger to a git that runs no program of the repository.
	cmd.Env = append(cmd.Env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	ownGroup(cmd)
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

func (g *git) output(ctx context.Context, args ...string) ([]byte, error) {
	return g.run(ctx, nil, args...)
}

func (g *git) run(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	cmd := g.command(ctx, args...)
	cmd.Stdin = stdin
	var out limited
	errs := &head{max: 1 << 10}
	cmd.Stdout, cmd.Stderr = &out, errs
	if err := cmd.Run(); err != nil {
		said := strings.ReplaceAll(strings.TrimSpace(string(errs.b)), g.root, "{repository}")
		return out.Bytes(), fmt.Errorf("git %s: %w: %s", args[0], err, bounded(said))
	}
	return out.Bytes(), nil
}

func (g *git) line(ctx context.Context, args ...string) (string, error) {
	out, err := g.output(ctx, args...)
	return strings.TrimSpace(string(out)), err
}

// ignored asks git which of names its rules ignore. check-ignore ends with 1 when none is.
func (g *git) ignored(ctx context.Context, names []string) (map[string]bool, error) {
	set := map[string]bool{}
	if len(names) == 0 {
		return set, nil
	}
	out, err := g.run(ctx, strings.NewReader(strings.Join(names, "\x00")+"\x00"), "check-ignore", "-z", "--stdin", "--no-index")
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		return nil, err
	}
	for name := range strings.SplitSeq(string(out), "\x00") {
		if name != "" {
			set[name] = true
		}
	}
	return set, nil
}

// limited is a buffer that refuses to grow beyond maxGitOutput.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxGitOutput {
		return 0, fmt.Errorf("more than %d bytes of output", maxGitOutput)
	}
	return l.Buffer.Write(p)
}

// batch is one `git cat-file --batch`.
type batch struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	end context.CancelFunc
}

func (g *git) batch(ctx context.Context) (*batch, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	cmd := g.command(ctx, "cat-file", "--batch")
	in, err := cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	return &batch{cmd, in, bufio.NewReader(out), cancel}, nil
}

// read returns the content of one object of the kind.
func (b *batch) read(oid, kind string) ([]byte, error) {
	if _, err := io.WriteString(b.in, oid+"\n"); err != nil {
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	head, err := b.out.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	f := strings.Fields(head)
	if len(f) != 3 || f[0] != oid || f[1] != kind {
		return nil, fmt.Errorf("git cat-file: object %s: want a %s, got %.120q", oid, kind, strings.TrimSpace(head))
	}
	size, err := strconv.Atoi(f[2])
	if err != nil || size < 0 || size > maxObject {
		return nil, fmt.Errorf("git cat-file: object %s: size %.20q, want at most %d", oid, f[2], maxObject)
	}
	raw := make([]byte, size+1)
	if _, err := io.ReadFull(b.out, raw); err != nil {
		return nil, fmt.Errorf("git cat-file: object %s: %w", oid, err)
	}
	return raw[:size], nil
}

// close ends the child. It was only read from, so how it ends says nothing.
func (b *batch) close() {
	b.in.Close()
	b.end()
	_ = b.cmd.Wait()
}

// isNotDir is true when a parent of a path is a file.
func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
