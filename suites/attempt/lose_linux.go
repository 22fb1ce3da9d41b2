package attempt

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/suites/process"
	"github.com/engine-acceptance/acceptance/suites/stage"
)

// browserTree lists the processes of the browser that the row's first window belongs to, the browser itself first.
func (a *Attempt) browserTree() ([]process.Entry, error) {
	tree, err := a.Stage.Host.Tree()
	if err != nil {
		return nil, a.fault("harness", "list the engine's processes: %v", err)
	}
	all := subtree(tree, a.browser.PID)
	slices.SortStableFunc(all, func(x, y process.Entry) int {
		switch a.browser.PID {
		case x.PID:
			return -1
		case y.PID:
			return 1
		}
		return 0
	})
	if len(all) == 0 || all[0].PID != a.browser.PID {
		return nil, a.fault("harness", "the row's browser is not there")
	}
	return all, nil
}

// KillBrowser kills the browser with SIGKILL, as the kernel does when memory is short (contract G3, G12).
func (a *Attempt) KillBrowser(ctx context.Context) error {
	all, err := a.browserTree()
	if err != nil {
		return err
	}
	return a.harnessActs(ctx, func() error {
		if err := all[0].Kill(syscall.SIGKILL); err != nil {
			return a.fault("harness", "kill the browser: %v", err)
		}
		left, _ := awaitGone([]process.Identity{all[0].Identity}, nil)
		a.Fact(evidence.FactBrowserKilled, len(left) == 0, 1, "")
		if err := a.awaitUnmanaged(ctx); err != nil {
			return err
		}
		a.windows = nil
		a.aim()
		return a.cover(ctx)
	})
}

// awaitUnmanaged waits until the window manager has let go of the row's windows. A process counts as gone before the last of its threads has closed its
// connections; the windows go with those, and a refusal that came meanwhile would be charged with their going.
func (a *Attempt) awaitUnmanaged(ctx context.Context) error {
	for end := time.Now().Add(killBudget); ; time.Sleep(5 * time.Millisecond) {
		managed, err := a.Stage.ManagedWindows(ctx)
		if err != nil {
			return a.fault("harness", "list the managed windows: %v", err)
		}
		if !slices.ContainsFunc(a.windows, func(w *stage.Window) bool { return slices.Contains(managed, w.ID) }) {
			return nil
		}
		if time.Now().After(end) {
			return a.fault("environment", "the windows of a killed browser are still managed after %v", killBudget)
		}
	}
}

// KillRenderers kills every renderer process of the browser: the pages of all its tabs crash.
func (a *Attempt) KillRenderers(ctx context.Context) error {
	all, err := a.browserTree()
	if err != nil {
		return err
	}
	var renderers []process.Identity
	for _, e := range all {
		if argv, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", e.PID)); err == nil && bytes.Contains(argv, []byte("--type=renderer")) {
			renderers = append(renderers, e.Identity)
		}
	}
	for _, r := range renderers {
		if err := r.Kill(syscall.SIGKILL); err != nil && r.Alive() {
			return a.fault("harness", "kill a renderer: %v", err)
		}
	}
	left, _ := awaitGone(renderers, nil)
	a.Fact(evidence.FactRenderersKilled, len(renderers) > 0 && len(left) == 0, len(renderers), "")
	return a.closeWindow(ctx)
}

// Freeze stops the browser's own process with SIGSTOP: it lives and answers nothing. It is thawed at the row's end at the latest.
func (a *Attempt) Freeze(ctx context.Context) error {
	all, err := a.browserTree()
	if err != nil {
		return err
	}
	if err := all[0].Kill(syscall.SIGSTOP); err != nil {
		return a.fault("harness", "stop the browser: %v", err)
	}
	a.frozen = all[0].Identity
	a.Fact(evidence.FactFrozen, a.frozen.Alive() && a.awaitStopped(true), 1, "")
	return a.closeWindow(ctx)
}

// dialledFor is how long the callers of a lost connection are given to ask for new ones, all of them, once the first was asked for.
const dialledFor = 400 * time.Millisecond

// ThawDialled waits until the engine asks the frozen browser for a new connection, counts how many it asks for, and lets the browser go on
// (contract G11). The kernel keeps what a frozen browser has not accepted: each connection is there, however soon it is given up.
func (a *Attempt) ThawDialled(ctx context.Context) error {
	if a.frozen.PID == 0 {
		return fmt.Errorf("nothing is frozen")
	}
	ctx, cancel := context.WithTimeout(ctx, killBudget)
	defer cancel()
	asked := 0
	var failed error
	if await(ctx, func() bool { asked, failed = a.queued(); return failed != nil || asked > 0 }) == nil {
		time.Sleep(dialledFor)
		asked, failed = a.queued()
	}
	if failed != nil {
		return a.fault("harness", "count the connections that wait for the browser: %v", failed)
	}
	a.Fact(evidence.FactOneConnection, asked <= 1, asked, "")
	if err := a.frozen.Kill(syscall.SIGCONT); err != nil {
		return a.fault("harness", "let the browser go on: %v", err)
	}
	a.Fact(evidence.FactThawed, a.awaitStopped(false), 1, "")
	a.frozen = process.Identity{}
	return nil
}

// queued counts the connections to the frozen browser that it has not accepted.
func (a *Attempt) queued() (int, error) {
	held, err := listenersOf([]process.Entry{{Identity: a.frozen}})
	if err != nil {
		return 0, err
	}
	table, err := tcpTable()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, line := range table {
		if line.inode == "0" && (line.state == tcpEstablished || line.state == tcpCloseWait) &&
			slices.ContainsFunc(held, func(l listener) bool { return l.addr.Port() == line.local.Port() }) {
			n++
		}
	}
	return n, nil
}

// Thaw lets a frozen browser go on.
func (a *Attempt) Thaw(ctx context.Context) error {
	if a.frozen.PID == 0 {
		return fmt.Errorf("nothing is frozen")
	}
	if err := a.frozen.Kill(syscall.SIGCONT); err != nil {
		return a.fault("harness", "let the browser go on: %v", err)
	}
	a.Fact(evidence.FactThawed, a.awaitStopped(false), 1, "")
	a.frozen = process.Identity{}
	return a.closeWindow(ctx)
}

// awaitStopped waits until the kernel says that the frozen process is stopped, or is not.
func (a *Attempt) awaitStopped(want bool) bool {
	for end := time.Now().Add(killBudget); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.frozen.PID))
		if err != nil {
			return false
		}
		// The state follows the name, which stands in parentheses and may hold some itself.
		rest := stat[bytes.LastIndexByte(stat, ')')+1:]
		if bytes.HasPrefix(rest, []byte(" T")) == want {
			return true
		}
	}
	return false
}

// thawLast lets a browser go on that a row left frozen, so that it can be ended like any other.
func (a *Attempt) thawLast() {
	if a.frozen.PID != 0 {
		_ = a.frozen.Kill(syscall.SIGCONT)
		a.frozen = process.Identity{}
	}
}

// StartEngine starts the engine again after it was killed.
func (a *Attempt) StartEngine(ctx context.Context) error {
	if a.Stage.Host.Identity().Alive() {
		return fmt.Errorf("the engine runs: kill it first")
	}
	old := a.Stage.Host.Identity()
	if err := a.Stage.StartEngine(ctx); err != nil {
		return a.fault("harness", "start the engine again: %v", err)
	}
	a.engineKilled = false
	now := a.Stage.Host.Identity()
	a.Fact(evidence.FactEngineAgain, now.Alive() && now != old, 1, "")
	return a.closeWindow(ctx)
}
