package core

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/engine/native"
)

// word is one line that the engine tells its guardian.
type word struct {
	// Op is profile (a profile directory exists), process (a browser runs on it) or forget (both are gone).
	Op      string         `json:"op"`
	Profile string         `json:"profile"`
	Process engine.Process `json:"process,omitzero"`
}

// Bounds of the guardian: bytes of one line, profiles at once, time to clean up after the engine.
const (
	maxWord        = 16 << 10
	maxGuarded     = 1024
	guardianBudget = 10 * time.Second
)

// guardian is the engine's end of the pipe. Its zero value with no argv guards nothing.
type guardian struct {
	argv []string

	mu    sync.Mutex
	cmd   *exec.Cmd
	pipe  io.WriteCloser
	exit  chan struct{}
	words map[profile]word
}

// watch tells of a profile before a browser is started on it.
func (g *guardian) watch(dir profile) error { return g.tell(word{Op: "profile", Profile: string(dir)}) }

// process tells which browser runs on a profile.
func (g *guardian) process(dir profile, p engine.Process) error {
	return g.tell(word{Op: "process", Profile: string(dir), Process: p})
}

// forget tells that nothing of a profile is left. A guardian that is gone does not need to know, and one that has nothing more to guard
// is let go: a launch that failed leaves no process.
func (g *guardian) forget(dir profile) {
	_ = g.tell(word{Op: "forget", Profile: string(dir)})
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.words) == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), graceReturn)
		defer cancel()
		_ = g.end(ctx)
	}
}

func (g *guardian) tell(w word) error {
	if len(g.argv) == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.words == nil {
		g.words = map[profile]word{}
	}
	if w.Op == "forget" {
		delete(g.words, profile(w.Profile))
	} else {
		g.words[profile(w.Profile)] = w
	}
	if g.pipe != nil && g.send(w) == nil {
		return nil
	}
	if w.Op == "forget" && len(g.words) == 0 {
		return nil
	}
	if err := g.start(); err != nil {
		return err
	}
	// A guardian that died was told things that its successor must know.
	for _, w := range g.words {
		if err := g.send(w); err != nil {
			return err
		}
	}
	return nil
}

func (g *guardian) send(w word) error {
	line, err := json.Marshal(w)
	if err != nil {
		return err
	}
	select {
	case <-g.exit:
		return errors.New("guardian is gone")
	default:
	}
	_, err = g.pipe.Write(append(line, '\n'))
	return err
}

// start runs the guardian in a session of its own, so that signals to the engine's group or terminal do not reach it.
func (g *guardian) start() error {
	if g.pipe != nil {
		g.pipe.Close()
	}
	cmd := exec.Command(g.argv[0], g.argv[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Dir = "/"
	detach(cmd)
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	g.cmd, g.pipe, g.exit = cmd, pipe, make(chan struct{})
	go func(exit chan struct{}) {
		_ = cmd.Wait()
		close(exit)
	}(g.exit)
	return nil
}

// close lets the guardian go and waits for it.
func (g *guardian) close(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.end(ctx)
}

// end is close with the lock held.
func (g *guardian) end(ctx context.Context) error {
	if g.pipe == nil {
		return nil
	}
	g.pipe.Close()
	g.pipe = nil
	select {
	case <-g.exit:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// GuardianMain is the body of the hidden command that Config.Guardian names. It reads what the engine tells on stdin and, when the pipe ends,
// which it does in every way in which an engine can end, it ends the browsers that still are what they were, ends whatever names a
// profile of theirs, and removes the profiles. It returns the exit code: 0 when nothing is left, 1 otherwise. Ctx ends it early.
func GuardianMain(ctx context.Context, stdin io.Reader) int {
	guarded := map[profile]engine.Process{}
	lines := make(chan word)
	go func() {
		defer close(lines)
		in := bufio.NewScanner(stdin)
		in.Buffer(nil, maxWord)
		for in.Scan() {
			var w word
			if json.Unmarshal(in.Bytes(), &w) == nil {
				select {
				case lines <- w:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	for open := true; open; {
		select {
		case w, ok := <-lines:
			if !ok {
				open = false
				break
			}
			dir := profile(w.Profile)
			switch {
			case !guardable(dir):
			case w.Op == "forget":
				delete(guarded, dir)
			case (w.Op == "profile" || w.Op == "process") && len(guarded) < maxGuarded:
				guarded[dir] = w.Process
			}
		case <-ctx.Done():
			open = false
		}
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), guardianBudget)
	defer cancel()
	code := 0
	for dir, id := range guarded {
		if endAll(clean, dir, nil, id) != nil {
			code = 1
		}
		// A browser that was being started when the engine died may have come up since.
		for len(native.Naming(dir.name())) > 0 && clean.Err() == nil {
			_ = endAll(clean, dir, nil, engine.Process{})
		}
		if dir.remove(clean) != nil {
			code = 1
		}
	}
	return code
}

// guardable says whether a directory is one that the guardian may remove: named as ours, a real directory, private.
func guardable(dir profile) bool {
	if !filepath.IsAbs(string(dir)) || filepath.Clean(string(dir)) != string(dir) || !strings.HasPrefix(dir.name(), profilePrefix) {
		return false
	}
	info, err := os.Lstat(string(dir))
	if errors.Is(err, os.ErrNotExist) {
		return true // forgotten, or gone already
	}
	return err == nil && info.IsDir() && info.Mode().Perm() == 0o700
}
