package core

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/engine/native"
)

// profilePrefix starts the name of every profile directory; random letters follow, so that a process that names it is ours.
const profilePrefix = "profile-"

// removeBudget bounds the removal of a profile: a dying browser writes a little longer.
const removeBudget = 5 * time.Second

// profile is the directory of one driver-owned browser: data is its profile, home its HOME and XDG directories.
type profile string

func newProfile(root string) (profile, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", err
	}
	p := profile(filepath.Join(root, mint(profilePrefix)))
	for _, dir := range []string{string(p), p.data(), p.home()} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			_ = os.RemoveAll(string(p))
			return "", err
		}
	}
	return p, nil
}

func (p profile) data() string { return filepath.Join(string(p), "data") }
func (p profile) home() string { return filepath.Join(string(p), "home") }
func (p profile) name() string { return filepath.Base(string(p)) }

// environment is base with HOME and the XDG directories beside the profile, so that the person's own are never opened.
func (p profile) environment(base []string) []string {
	own := map[string]string{"HOME": p.home(), "XDG_CONFIG_HOME": filepath.Join(p.home(), "config"), "XDG_CACHE_HOME": filepath.Join(p.home(), "cache"),
		"XDG_DATA_HOME": filepath.Join(p.home(), "data"), "XDG_STATE_HOME": filepath.Join(p.home(), "state")}
	var out []string
	for _, kv := range base {
		name, _, _ := strings.Cut(kv, "=")
		if _, ok := own[name]; !ok {
			out = append(out, kv)
		}
	}
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"} {
		out = append(out, name+"="+own[name])
	}
	return out
}

// remove deletes the directory, trying again while something still writes into it.
func (p profile) remove(ctx context.Context) error {
	if !strings.HasPrefix(p.name(), profilePrefix) || len(p.name()) < len(profilePrefix)+32 {
		return errors.New("not a profile of this engine")
	}
	ctx, cancel := context.WithTimeout(ctx, removeBudget)
	defer cancel()
	for _, dir := range p.strays() {
		_ = os.RemoveAll(dir) // a browser that is still ending removes it itself
	}
	for {
		err := os.RemoveAll(string(p))
		if err == nil && !exists(string(p)) {
			return nil
		}
		if pause(ctx, 20*time.Millisecond) != nil {
			return fmt.Errorf("remove a profile: still there after %v", removeBudget)
		}
	}
}

// browserTemp is where a browser makes temporary files: TMPDIR is not passed on, for a long one would leave no room for the name of a socket.
const browserTemp = "/tmp"

// strays are the directories that a browser makes beside the one for temporary files because socket paths are short, and that it leaves when
// it is killed. The profile links to what lies in them: Chromium's SingletonSocket points into org.chromium.Chromium.XXXXXX.
func (p profile) strays() []string {
	var out []string
	entries, _ := os.ReadDir(p.data())
	for _, entry := range entries[:min(len(entries), 256)] {
		to, err := os.Readlink(filepath.Join(p.data(), entry.Name()))
		if err != nil || !filepath.IsAbs(to) {
			continue
		}
		dir := filepath.Dir(filepath.Clean(to))
		info, err := os.Lstat(dir)
		if err == nil && info.IsDir() && info.Mode().Perm() == 0o700 && filepath.Dir(dir) == browserTemp &&
			strings.HasPrefix(strings.TrimPrefix(filepath.Base(dir), "."), "org.chromium.") {
			out = append(out, dir)
		}
	}
	return out
}

// shutdown ends the browser by connection, then by identity, and removes its profile. It is done once; every caller gets the same answer.
func (e *Engine) shutdown(p *process) error {
	p.shut.Do(func() {
		below := native.Tree(p.id)
		ctx, cancel := context.WithTimeout(context.Background(), e.cfg.Budgets.End/2)
		_ = p.browser.Close(ctx) // what it left is ended below
		cancel()
		p.shutErr = e.discard(p.profile, below, p.id)
		e.declareLost(p)
	})
	return p.shutErr
}

// discard ends every process of a profile that still is what it was, and removes the profile.
func (e *Engine) discard(dir profile, below []engine.Process, id engine.Process) error {
	ctx, cancel := context.WithTimeout(context.Background(), e.cfg.Budgets.End)
	defer cancel()
	err := endAll(ctx, dir, below, id)
	if e := dir.remove(ctx); err == nil {
		err = e
	}
	if err == nil {
		e.guardian.forget(dir)
	}
	return err
}

func endAll(ctx context.Context, dir profile, below []engine.Process, id engine.Process) error {
	var err error
	if id.PID != 0 {
		err = native.EndTree(ctx, id)
	}
	for _, p := range append(below, native.Naming(dir.name())...) {
		if e := native.End(ctx, p); err == nil {
			err = e
		}
	}
	return err
}
