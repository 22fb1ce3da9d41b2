package stage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/suites/desk"
	"github.com/engine-acceptance/acceptance/suites/host"
	"github.com/engine-acceptance/acceptance/suites/process"
)

// StartEngineOn starts the engine anew on a machine that is in a state of matrix.Machines, until the next [Stage.StartEngine]. Nothing of the
// engine is told: the state is what it finds. Browsers are replaced in a mount namespace that the engine alone has, environments by their
// variables, displays by another X server.
func (s *Stage) StartEngineOn(ctx context.Context, state string) error {
	cmd := s.command
	cmd.Env = s.Desk.Env(desk.Engine)
	var err error
	switch state {
	case "display_missing":
		cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, "DISPLAY=") || strings.HasPrefix(v, "XAUTHORITY=") })
	case "xres_missing":
		var display string
		if display, err = s.plainDisplay(ctx); err == nil {
			cmd.Env = append(slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, "DISPLAY=") || strings.HasPrefix(v, "XAUTHORITY=") }), "DISPLAY="+display)
		}
	case "paths_odd":
		cmd.Env, err = s.oddHome(cmd.Env)
	case "profiles_unwritable":
		home := quoted(s.Desk.Home())
		cmd, err = s.within(cmd, fmt.Sprintf("mount --bind %s %s && mount -o remount,bind,ro %s", home, home, home))
	default:
		cmd, err = s.replaced(cmd, state)
	}
	if err != nil {
		return fmt.Errorf("prepare the machine (%s): %w", state, err)
	}
	return s.startEngine(ctx, cmd)
}

// oddName is a directory's name with all that makes a careless program stumble: blanks, quotes, characters beyond ASCII.
const oddName = "o'b  \u00e9 \u65e5\u672c \"#1\""

// oddHome gives a home, and everything that lies in one, below a directory with an odd name.
func (s *Stage) oddHome(env []string) ([]string, error) {
	home := s.Desk.Home()
	odd := filepath.Join(home, oddName)
	if err := s.makeDirs(odd); err != nil {
		return nil, err
	}
	out := slices.Clone(env)
	for i, v := range out {
		name, value, _ := strings.Cut(v, "=")
		if name == "HOME" || strings.HasPrefix(name, "XDG_") && name != "XDG_RUNTIME_DIR" && strings.HasPrefix(value, home) {
			out[i] = name + "=" + odd + strings.TrimPrefix(value, home)
		}
	}
	return out, nil
}

// replaced puts a script into the place of every browser program that is installed. For what becomes a browser after all, the program's
// own directory is bound beside it first.
func (s *Stage) replaced(cmd host.Command, state string) (host.Command, error) {
	real, err := installed(chromiums)
	if err != nil {
		return cmd, err
	}
	dir, err := s.directory("bin-", 0o755)
	if err != nil {
		return cmd, err
	}
	beside := filepath.Join(dir, "program")
	if err := os.Mkdir(beside, 0o755); err != nil {
		return cmd, err
	}
	program := quoted(filepath.Join(beside, filepath.Base(real)))
	mode := os.FileMode(0o755)
	script := ""
	switch state {
	case "browser_missing":
		mode = 0o644 // there, and no program
	case "browser_exits":
		script = "echo 'cannot go on' >&2\nexit 3\n"
	case "browser_silent":
		script = "exec sleep 60\n"
	case "browser_headless":
		script = fmt.Sprintf("exec %s --headless=new \"$@\"\n", program)
	case "endpoint_stale", "endpoint_elsewhere":
		if s.Trap, err = newTrap(); err != nil {
			return cmd, err
		}
		script = "for a in \"$@\"; do case \"$a\" in --user-data-dir=*) d=\"${a#*=}\";; esac; done\n" +
			fmt.Sprintf("printf '%d\\n/devtools/browser/5b1f2a52-4c0e-4b7e-9a53-0d8f3c1f7a11' > \"$d/DevToolsActivePort\"\n", s.Trap.Port())
		if state == "endpoint_stale" {
			script += fmt.Sprintf("exec %s \"$@\"\n", program)
		} else {
			script += "exec sleep 60\n"
		}
	default:
		return cmd, fmt.Errorf("no machine is called %q", state)
	}
	file := filepath.Join(dir, "browser")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script), mode); err != nil {
		return cmd, err
	}
	if err := errors.Join(os.Chmod(file, mode), os.Chmod(beside, 0o755)); err != nil {
		return cmd, err
	}
	mounts := fmt.Sprintf("mount --bind %s %s", quoted(filepath.Dir(real)), quoted(beside))
	for _, path := range append(slices.Clone(chromiums), "/usr/bin/chromium", "/usr/bin/google-chrome") {
		if _, err := os.Stat(path); err == nil {
			mounts += fmt.Sprintf(" && mount --bind %s %s", quoted(file), quoted(path))
		}
	}
	return s.within(cmd, mounts)
}

// within has a command run in a mount namespace of its own, after what a shell script does there. The rights that it takes are dropped
// before the command runs.
func (s *Stage) within(cmd host.Command, script string) (host.Command, error) {
	for _, tool := range []string{"unshare", "setpriv", "mount"} {
		if _, err := exec.LookPath(tool); err != nil {
			return cmd, &desk.MissingProgramError{Program: tool, Package: "util-linux mount", Err: err}
		}
	}
	var args []string
	drop := "--ambient-caps -all --inh-caps -all"
	if u := s.Desk.User(); u != nil {
		cmd.User = &process.User{}
		drop = fmt.Sprintf("--reuid %d --regid %d --clear-groups", u.UID, u.GID)
	} else {
		args = []string{"--user", fmt.Sprintf("--map-user=%d", os.Getuid()), fmt.Sprintf("--map-group=%d", os.Getgid()), "--keep-caps"}
	}
	args = append(args, "--mount", "--propagation", "private", "/bin/sh", "-c", script+` && exec setpriv `+drop+` --pdeathsig KILL "$0" "$@"`, cmd.Path)
	cmd.Path, cmd.Args = "unshare", append(args, cmd.Args...)
	return cmd, nil
}

// quoted is a word of a shell script. Our own paths hold no quotes.
func quoted(path string) string { return "'" + path + "'" }

// serverBudget bounds the start of a second X server.
const serverBudget = 5 * time.Second

// plainDisplay starts an X server without X-Resource, beside the desk's. It ends with the row's decoys.
func (s *Stage) plainDisplay(ctx context.Context) (string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	p, err := s.Desk.Start(ctx, desk.Person, process.Spec{Path: "Xvfb", ExtraFiles: []*os.File{w},
		Args: []string{"-displayfd", "3", "-screen", "0", "640x480x24", "-extension", "X-Resource", "-nolisten", "tcp", "-noreset", "-ac"}})
	_ = w.Close()
	if err != nil {
		return "", err
	}
	s.decoys = append(s.decoys, &decoy{product: "display", proc: p})
	if err := r.SetReadDeadline(time.Now().Add(serverBudget)); err != nil {
		return "", err
	}
	number, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("a second X server says no display: %w", err)
	}
	return ":" + strings.TrimSpace(number), nil
}
