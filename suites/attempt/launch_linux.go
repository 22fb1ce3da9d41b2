package attempt

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/suites/process"
	"github.com/engine-acceptance/acceptance/suites/stage"
)

// beforeState is what a launch is compared with.
type beforeState struct {
	dirs    map[string]fs.FileMode
	windows []*stage.Window
	tree    []process.Entry
	browser process.Identity
}

func (a *Attempt) beforeLaunch(ctx context.Context) (*beforeState, error) {
	b := &beforeState{dirs: directories(a.Stage.Desk.Home(), profileDepth, a.persons), browser: a.browser}
	var err error
	if b.tree, err = a.Stage.Host.Tree(); err != nil {
		return nil, a.fault("harness", "list the engine's processes: %v", err)
	}
	if b.windows, err = a.Stage.WindowsOf(ctx, b.tree); err != nil {
		return nil, a.fault("harness", "list windows: %v", err)
	}
	return b, nil
}

// afterLaunch observes the facts of a launch: process, window, profile, sandbox, listeners. Nothing here is the engine's word.
func (a *Attempt) afterLaunch(ctx context.Context, session string, before *beforeState, r *engine.Result) error {
	tree, err := a.Stage.Host.Tree()
	if err != nil {
		return a.fault("harness", "list the engine's processes: %v", err)
	}
	all, err := a.Stage.WindowsOf(ctx, tree)
	if err != nil {
		return a.fault("harness", "list the browser's windows: %v", err)
	}
	var fresh []*stage.Window
	for _, w := range all {
		// The server hands ids out again: a window is the same only with the same owner.
		if !slices.ContainsFunc(before.windows, func(old *stage.Window) bool { return old.ID == w.ID && old.Owner == w.Owner }) {
			fresh = append(fresh, w)
		}
	}
	own := a.Stage.Host.Identity().Executable
	started := slices.ContainsFunc(tree, func(e process.Entry) bool {
		if len(fresh) > 0 && e.Identity != fresh[0].Owner {
			return false // whoever shows the window is the browser
		}
		return e.Executable != own && !slices.ContainsFunc(before.tree, func(old process.Entry) bool { return old.PID == e.PID })
	})
	a.Fact(evidence.FactLaunched, started, len(tree), "")
	if before.browser.PID != 0 {
		a.Fact(evidence.FactRestarted, len(fresh) > 0 && !before.browser.Alive(), 1, "")
	}
	a.Fact(evidence.FactWindowOpened, len(fresh) > 0, len(fresh), "")
	if r == nil || r.Status != engine.StatusOK {
		return nil
	}
	if len(fresh) == 0 {
		// Nothing further can be done in the row; that the engine serves what has no window is for the judge.
		dir, _ := profileOf(a.Stage.Desk.Home(), before.dirs, tree)
		a.Fact(evidence.FactProfileOwn, dir != "", 1, "")
		return ErrStopped
	}
	above, err := a.Stage.AboveAnother(ctx, fresh)
	if err != nil {
		return a.fault("harness", "read the order of the windows: %v", err)
	}
	a.Fact(evidence.FactWindowAbove, above, len(fresh), "")
	browser := subtree(tree, fresh[0].Owner.PID)
	dir, files := profileOf(a.Stage.Desk.Home(), before.dirs, browser)
	a.Fact(evidence.FactProfileOwn, dir != "", 1, "")
	if dir != "" {
		info, err := os.Lstat(dir)
		a.Fact(evidence.FactProfileMode, err == nil && info.IsDir() && info.Mode().Perm() == 0o700, 1, "")
		a.Fact(evidence.FactProfileUsed, files > 0, files, "")
		a.profiles = append(a.profiles, dir)
		if home := a.browserHome(fresh[0].Owner.PID); home != "" {
			a.homes = append(a.homes, home)
		}
		a.rememberIdentifiers(dir)
	}
	filtered, unswitched, ordinary := sandboxed(browser)
	a.Fact(evidence.FactSandboxOn, filtered && unswitched && ordinary, len(browser), fmt.Sprintf("filtered %t, no switch against it %t, ordinary uid %t", filtered, unswitched, ordinary))
	held, err := listenersOf(tree)
	if err != nil {
		return a.fault("harness", "list listeners: %v", err)
	}
	if a.Contract.Expect.Identifiers != "" {
		ports := portsOf(held, browser)
		a.ports = append(a.ports, ports...)
		if err := a.listenToBrowser(ports); err != nil {
			return err
		}
	}
	exposed := 0
	for _, l := range held {
		if !l.addr.Addr().IsLoopback() {
			exposed++
		}
	}
	a.Fact(evidence.FactLoopbackOnly, exposed == 0, len(held), fmt.Sprintf("%d exposed", exposed))
	if a.steps {
		a.launch++
	}
	a.launches[session] = &launched{fresh[0].Owner, dir, a.launch, fresh}
	a.adopt(append(slices.DeleteFunc(slices.Clone(a.windows), func(w *stage.Window) bool { return !w.Owner.Alive() }), fresh...))
	a.browser = fresh[0].Owner
	if err := a.watchTargets(ctx); err != nil {
		return a.fault("harness", "watch the browser's window: %v", err)
	}
	return nil
}

// subtree is the part of a tree below a process, with it.
func subtree(tree []process.Entry, root int) []process.Entry {
	in := map[int]bool{root: true}
	var out []process.Entry
	for range 2 { // parents come before children, but for what was handed to another parent
		out = out[:0]
		for _, e := range tree {
			if in[e.PID] || in[e.Parent] {
				in[e.PID] = true
				out = append(out, e)
			}
		}
	}
	return out
}

// goneBudget is how long processes and profile may take to go after the end of a session has been reported.
const goneBudget = 3 * time.Second

// launched is a browser that a session has.
type launched struct {
	browser process.Identity
	profile string
	// number is the launch among those of the row's steps, 0 for the arrangement's.
	number  int
	windows []*stage.Window
}

// EndSession ends a session and observes what is left of the browser that it had.
func (a *Attempt) EndSession(ctx context.Context, session string) (*engine.Result, error) {
	tree, err := a.Stage.Host.Tree()
	if err != nil {
		return nil, a.fault("harness", "list the engine's processes: %v", err)
	}
	had, launchedHere := a.launches[session]
	var browsers []process.Identity
	if launchedHere {
		browsers = []process.Identity{had.browser}
		for _, e := range subtree(tree, had.browser.PID) {
			if e.PID != had.browser.PID {
				browsers = append(browsers, e.Identity)
			}
		}
	}
	r, err := a.Call(ctx, engine.OpSessionEnd, map[string]any{"session": session}, Aim{})
	if err != nil {
		return r, err
	}
	if launchedHere {
		a.observeGone(browsers, had.profile)
		delete(a.launches, session)
		a.windows = slices.DeleteFunc(slices.Clone(a.windows), func(w *stage.Window) bool { return w.Owner == had.browser })
		if had.browser == a.browser {
			a.browser = process.Identity{}
			if len(a.windows) > 0 {
				a.browser = a.windows[0].Owner
			}
		}
		a.aim()
	}
	return r, nil
}

// observeGone waits for a browser's processes and its profile to be gone, and says whether they are.
func (a *Attempt) observeGone(browsers []process.Identity, profile string) {
	var dirs []string
	if profile != "" {
		dirs = []string{profile}
	}
	left, there := awaitGone(browsers, dirs)
	a.Fact(evidence.FactProcessesGone, len(left) == 0, len(left), "")
	a.Fact(evidence.FactProfileGone, there == 0, 0, "")
}

// unchanged waits until a second after a refusal, which came at repliedNS, and says whether the system is as before (R2).
func (a *Attempt) unchanged(ctx context.Context, before *system, repliedNS int64) error {
	select {
	case <-time.After(time.Second - time.Duration(stage.Mono()-repliedNS)):
	case <-ctx.Done():
		return a.fault("harness", "wait after a refusal: %v", ctx.Err())
	}
	now, err := a.look(ctx)
	if err != nil {
		return a.fault("harness", "look at the system after a refusal: %v", err)
	}
	diff := before.differs(now)
	a.Fact(evidence.FactUnchanged, diff == "", 0, diff)
	return a.collect(ctx)
}
