package attempt

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/suites/process"
)

// killBudget is how long the kernel may take to end a killed process.
const killBudget = 2 * time.Second

// KillEngine kills the engine's own process with SIGKILL and observes what is left of what it had started (contract S11). Nothing of ours
// ends anything before that: the keeper waits for the end of the worker, and what is left on the desk goes when the next engine is started,
// after the row's last observation.
func (a *Attempt) KillEngine(ctx context.Context) error {
	tree, err := a.Stage.Host.Tree()
	if err != nil || len(tree) == 0 {
		return a.fault("harness", "list the engine's processes: %v", err)
	}
	var started []process.Identity
	for _, e := range tree[1:] {
		started = append(started, e.Identity)
	}
	var profiles []string
	for _, l := range a.launches {
		if l.profile != "" {
			profiles = append(profiles, l.profile)
		}
	}
	a.engineKilled = true
	if err := tree[0].Kill(syscall.SIGKILL); err != nil {
		return a.fault("harness", "kill the engine: %v", err)
	}
	select {
	case <-a.Stage.Host.Gone():
	case <-time.After(killBudget):
		return a.fault("environment", "the engine lives %v after it was killed", killBudget)
	}
	a.Fact(evidence.FactEngineKilled, len(started) > 0 && len(profiles) > 0, len(started), "")
	left, there := awaitGone(started, profiles)
	a.Fact(evidence.FactKilledProcesses, len(left) == 0, len(left), programs(left))
	a.Fact(evidence.FactKilledProfiles, there == 0, there, "")
	clear(a.launches)
	a.windows, a.browser = nil, process.Identity{}
	a.aim()
	return a.closeWindow(ctx)
}

// awaitGone waits, at most [goneBudget], until processes and directories are gone, and says what is left.
func awaitGone(started []process.Identity, dirs []string) (left []process.Identity, there int) {
	end := time.Now().Add(goneBudget)
	for {
		left = slices.DeleteFunc(slices.Clone(started), func(p process.Identity) bool { return !p.Alive() })
		there = 0
		for _, dir := range dirs {
			if _, err := os.Lstat(dir); err == nil {
				there++
			}
		}
		if len(left) == 0 && there == 0 || time.Now().After(end) {
			return left, there
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// programs names the first processes of a list by their executables' base names.
func programs(list []process.Identity) string {
	const most = 3
	var names []string
	for _, p := range list[:min(len(list), most)] {
		names = append(names, filepath.Base(p.Executable))
	}
	return strings.Join(names, ", ")
}
