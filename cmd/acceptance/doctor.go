package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/engine/cdp"
	"github.com/engine-acceptance/acceptance/evidence/provenance"
)

// need is one thing that a run needs of the machine.
type need struct {
	Name    string `json:"name"`
	Found   string `json:"found,omitempty"`
	Problem string `json:"problem,omitempty"`
	Fix     string `json:"fix,omitempty"`
}

// needs are what a run on a private X display needs.
func needs(ctx context.Context) []need {
	return []need{
		program(ctx, "X server", "xvfb", "Xvfb"), program(ctx, "window manager", "openbox", "openbox", "--version"), program(ctx, "session bus", "dbus", "dbus-daemon", "--version"), accessibility(),
		program(ctx, "film encoder", "ffmpeg", "ffmpeg", "-version"), program(ctx, "version control", "git", "git", "--version"), chromium(ctx), firefox(), scratch(),
	}
}

// preflight are the needs that are not met.
func preflight(ctx context.Context) []need {
	var missing []need
	for _, n := range needs(ctx) {
		if n.Problem != "" {
			missing = append(missing, n)
		}
	}
	return missing
}

func install(pkg string) string { return "install it: apt-get install " + pkg + ", or make deps" }

// program looks for a program and asks for its version.
func program(ctx context.Context, name, pkg, command string, version ...string) need {
	path, err := exec.LookPath(command)
	if err != nil {
		return need{Name: name, Problem: command + " is not installed", Fix: install(pkg)}
	}
	if len(version) == 0 {
		return need{Name: name, Found: path}
	}
	found, err := provenance.AskVersion(ctx, path, 10*time.Second, version...)
	if err != nil {
		return need{Name: name, Problem: fmt.Sprintf("%s %v", command, err), Fix: install(pkg)}
	}
	return need{Name: name, Found: found}
}

// accessibility is the service that the session bus starts an accessibility bus with: what is done to the person's applications over it must be seen.
func accessibility() need {
	const path = "/usr/share/dbus-1/services/org.a11y.Bus.service"
	if _, err := os.Stat(path); err != nil {
		return need{Name: "accessibility bus", Problem: "org.a11y.Bus is not installed", Fix: install("at-spi2-core")}
	}
	return need{Name: "accessibility bus", Found: path}
}

func chromium(ctx context.Context) need {
	for _, path := range cdp.Binaries {
		if _, err := os.Stat(path); err == nil {
			n := program(ctx, "chromium", "chromium", path, "--version")
			n.Name = "browser: chromium"
			return n
		}
	}
	return need{Name: "browser: chromium", Problem: "none of " + strings.Join(cdp.Binaries, ", ") + " is there", Fix: install("chromium")}
}

// firefox is needed as the person's ordinary browser, which an engine must refuse to attach to.
func firefox() need {
	for _, path := range []string{"/usr/lib/firefox-esr/firefox-esr", "/usr/lib/firefox/firefox"} {
		if _, err := os.Stat(path); err == nil {
			return need{Name: "decoy: firefox", Found: path}
		}
	}
	return need{Name: "decoy: firefox", Problem: "no ordinary Firefox is there to be refused", Fix: install("firefox-esr")}
}

// scratch looks for a memory-backed place for profiles and films.
func scratch() need {
	for _, dir := range []string{"/dev/shm", os.Getenv("XDG_RUNTIME_DIR"), os.TempDir()} {
		if dir == "" {
			continue
		}
		probe, err := os.MkdirTemp(dir, "acceptance-doctor-")
		if err != nil {
			continue
		}
		if err := os.Remove(probe); err == nil {
			return need{Name: "scratch", Found: dir}
		}
	}
	return need{Name: "scratch", Problem: "no folder for profiles and films can be written", Fix: "make /dev/shm writable, or set XDG_RUNTIME_DIR to a folder of your own"}
}

// doctorCommand says what is there and what is missing.
func doctorCommand(ctx context.Context, args []string, std streams) int {
	f := newFlags("doctor", std)
	asJSON := f.is("json", "print the result as JSON")
	if !f.parse(args, 0, 0) {
		return exitUsage
	}
	all, code := needs(ctx), exitOK
	for _, n := range all {
		if n.Problem != "" {
			code = exitUsage
		}
	}
	if *asJSON {
		if err := writeJSON(std.out, all); err != nil {
			std.say("write the result: %v", err)
			return exitCannotJudge
		}
		return code
	}
	for _, n := range all {
		if n.Problem == "" {
			fmt.Fprintf(std.out, "ok       %-20s %s\n", n.Name, n.Found)
			continue
		}
		fmt.Fprintf(std.out, "missing  %-20s %s; %s\n", n.Name, n.Problem, n.Fix)
	}
	return code
}
