package stage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/suites/desk"
	"github.com/engine-acceptance/acceptance/suites/process"
)

// decoy is an ordinary program of the person beside the browser under test.
type decoy struct {
	product string
	proc    *process.Process
	window  *Window
}

// decoyBudget bounds the start of a decoy: a first start of Firefox was measured at 5.5 s.
const decoyBudget = 20 * time.Second

// SeatDecoy starts an ordinary program of the person, with the identity of the engine's side so that nothing but its kind speaks against
// it, and waits for its window, where it has one.
func (s *Stage) SeatDecoy(ctx context.Context, product string) error {
	home := filepath.Join(s.DecoyHome(), product)
	if err := s.makeDirs(s.DecoyHome(), home); err != nil {
		return err
	}
	known, ok := programs[product]
	if !ok {
		return fmt.Errorf("no program is known by the name %s", product)
	}
	path, args, err := known.ready(s, home)
	if err != nil {
		return err
	}
	p, err := s.Desk.Start(ctx, desk.Browser, process.Spec{Path: path, Args: args, Dir: home, Env: homed(s.Desk.Env(desk.Browser), home)})
	if err != nil {
		return err
	}
	d := &decoy{product: product, proc: p}
	s.decoys = append(s.decoys, d)
	if known.windowless {
		now, err := p.Identity().Now()
		if err != nil {
			return fmt.Errorf("%s ended at once: %w", product, p.Ended())
		}
		d.window = &Window{Owner: now}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, decoyBudget)
	defer cancel()
	for {
		tree, err := process.Tree(p.Identity().PID)
		if err != nil {
			return err
		}
		now, err := p.Identity().Now()
		if err != nil {
			return fmt.Errorf("%s ended at once: %w", product, p.Ended())
		}
		windows, err := s.WindowsOf(ctx, append(tree, process.Entry{Identity: now}))
		if err != nil {
			return fmt.Errorf("wait for the window of %s: %w", product, err)
		}
		if len(windows) > 0 {
			d.window = windows[0]
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s opened no window: %w", product, ctx.Err())
		case <-p.Done():
			return fmt.Errorf("%s ended before it opened a window: %w", product, p.Ended())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// DecoyHome is the home of the person's own programs, apart from the engine's, so that what they write is told from what the engine writes.
func (s *Stage) DecoyHome() string { return filepath.Join(s.Desk.Home(), "person") }

// makeDirs makes private directories and hands them to the identity of the engine's side.
func (s *Stage) makeDirs(dirs ...string) error {
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return s.give(dirs...)
}

// give hands files to the identity of the engine's side.
func (s *Stage) give(paths ...string) error {
	u := s.Desk.User()
	if u == nil {
		return nil
	}
	for _, p := range paths {
		if err := os.Chown(p, u.UID, u.GID); err != nil {
			return err
		}
	}
	return nil
}

// homed is an environment with another home, without directories that point into the old one, and with temporary files below the home, where
// what a program leaves when it is killed goes with the rest.
func homed(env []string, home string) []string {
	out := []string{"HOME=" + home, "TMPDIR=" + home}
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "TMPDIR":
			continue
		}
		out = append(out, v)
	}
	return out
}

// DecoyWindow is the window of a running decoy. A decoy without a window has the id 0.
func (s *Stage) DecoyWindow(product string) (*Window, error) {
	i := slices.IndexFunc(s.decoys, func(d *decoy) bool { return d.product == product })
	if i < 0 {
		return nil, fmt.Errorf("no %s runs on this desk", product)
	}
	return s.decoys[i].window, nil
}

// DecoyAlive reports whether a decoy still is the process that was started.
func (s *Stage) DecoyAlive(product string) bool {
	i := slices.IndexFunc(s.decoys, func(d *decoy) bool { return d.product == product })
	return i >= 0 && s.decoys[i].proc.Identity().Alive()
}
