// Package keeper makes sure that nothing of a desk stays behind, whatever happens to the worker.
//
// A keeper is a process of its own that the worker starts first. The worker tells it of each process,
// uid, home, directory and file; when the worker's pipe closes without a goodbye (a crash, SIGKILL),
// the keeper waits a grace, ends what still lives, removes what it was told of and exits. After a
// goodbye it exits at once. It holds no other resource and nothing waits for it.
//
//	k, err := keeper.Start(ctx, keeper.Options{})
//	d, err := desk.Open(ctx, desk.Config{Keeper: k})
//	...
//	err = d.Close(ctx)
//	err = k.Close(ctx) // goodbye
//
// The worker's own cleaning never depends on the keeper: killed, it takes only the safety net with it.
package keeper

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/engine-acceptance/acceptance/suites/process"
	"github.com/engine-acceptance/acceptance/suites/talk"
)

// DefaultGrace is how long processes get to notice the worker's end by themselves: the kernel's death
// signals take effect at once, browsers need some hundred ms to empty their profiles.
const DefaultGrace = time.Second

// maxKept bounds what one keeper remembers, of each kind.
const maxKept = 16384

// PathError says that a path must not be given to a keeper.
type PathError struct{ Path, Reason string }

// Error implements error.
func (e *PathError) Error() string { return fmt.Sprintf("keep %q: %s", e.Path, e.Reason) }

// Options of a keeper.
type Options struct {
	// Grace between the worker's end and the first signal; 0 is DefaultGrace.
	Grace time.Duration
	// Command plays the role when the role's arguments are appended; nil is this program with the
	// arguments "role", "keeper".
	Command []string
}

// Keeper is the worker's side. Its methods are safe for use by several goroutines. It satisfies
// desk.Registrar.
type Keeper struct {
	p      *process.Process
	caller *talk.Caller
	once   sync.Once
	err    error
}

// Start starts a keeper that outlives this process. Errors: *process.StartError, or the keeper's own.
func Start(ctx context.Context, o Options) (*Keeper, error) {
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	if o.Command == nil {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		o.Command = []string{self, "role", "keeper"}
	}
	args := append(slices.Clone(o.Command[1:]), "--grace", o.Grace.String())
	p, err := process.Start(ctx, process.Spec{Path: o.Command[0], Args: args, Env: []string{"PATH=/usr/bin:/bin"}, Stdin: process.Pipe, Stdout: process.Pipe, Outlives: true})
	if err != nil {
		return nil, err
	}
	k := &Keeper{p: p, caller: talk.NewCaller(p.Stdin(), p.Stdout(), nil)}
	if err := k.caller.Ask(ctx, "hello", nil, nil); err != nil {
		return nil, errors.Join(fmt.Errorf("keeper did not answer: %w", err), p.Stop(ctx, 0))
	}
	return k, nil
}

// Identity names the keeper's process.
func (k *Keeper) Identity() process.Identity { return k.p.Identity() }

// Lost is closed when the keeper has ended.
func (k *Keeper) Lost() <-chan struct{} { return k.p.Done() }

func (k *Keeper) ask(op string, args any) error {
	return k.caller.Ask(context.Background(), op, args, nil) // bounded by talk.DefaultBudget
}

// Process registers a process, and with it its descendants and its session.
func (k *Keeper) Process(id process.Identity) error { return k.ask("process", id) }

// User registers a uid that exists for this desk only: everything that runs with it is ended. 0 and
// the keeper's own uid are refused.
func (k *Keeper) User(uid int) error { return k.ask("user", uid) }

// Home registers a value of HOME that exists for this desk only: everything that was started with
// it is ended.
func (k *Keeper) Home(path string) error { return k.ask("home", path) }

// Directory registers an existing directory for removal with all that is in it. Links in it are removed,
// not followed; another directory of that name later is left alone. *talk.RemoteError when the
// path is not clean, absolute and at least two levels deep.
func (k *Keeper) Directory(path string) error { return k.ask("directory", path) }

// File registers an existing file or socket for removal; another one of that name later is left alone.
func (k *Keeper) File(path string) error { return k.ask("file", path) }

// Close says goodbye: the keeper forgets everything and exits. It may be called twice.
func (k *Keeper) Close(ctx context.Context) error {
	k.once.Do(func() {
		err := k.caller.Ask(ctx, "goodbye", nil, nil)
		if errors.Is(err, talk.ErrClosed) || errors.Is(err, syscall.EPIPE) {
			err = nil // it was gone already; there is nothing to forget
		}
		k.err = errors.Join(err, k.p.Stop(ctx, time.Second))
	})
	return k.err
}

// Main is the role: it keeps what it is told on stdin until stdin ends. Exit codes: 0 all clean, 1 something
// is left (named on stderr), 2 wrong arguments.
func Main(_ context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("keeper", flag.ContinueOnError)
	fs.SetOutput(stderr)
	grace := fs.Duration("grace", DefaultGrace, "time between the worker's end and the first signal")
	if fs.Parse(args) != nil || fs.NArg() > 0 || *grace < 0 || *grace > time.Minute {
		fmt.Fprintln(stderr, "keeper: want --grace DURATION, at most 1m")
		return 2
	}
	// Whoever ends the worker by a signal to many must not end its keeper; the keeper ends with its pipe.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	// The worker's context is of no use here: the work begins when the worker has gone.
	ctx := context.Background()
	var kept ledger
	out := talk.NewWriter(stdout)
	for q := range talk.Requests(ctx, stdin) {
		if q.Op == "goodbye" {
			_ = out.Answer(q, nil, nil)
			return 0
		}
		_ = out.Answer(q, nil, kept.add(q))
	}
	if err := kept.clean(ctx, *grace); err != nil {
		fmt.Fprintln(stderr, "keeper:", err)
		return 1
	}
	return 0
}

type path struct {
	name string
	made fs.FileInfo
	tree bool
}

type ledger struct {
	claim process.Claim
	paths []path
}

func (l *ledger) add(q talk.Request) error {
	if max(len(l.claim.Roots), len(l.claim.Homes), len(l.claim.UIDs), len(l.paths)) >= maxKept {
		return fmt.Errorf("more than %d things to keep", maxKept)
	}
	switch q.Op {
	case "hello":
		return nil
	case "process":
		var id process.Identity
		if err := q.Decode(&id); err != nil {
			return err
		}
		if id.PID <= 1 || id.PID == os.Getpid() || id.Start == 0 {
			return fmt.Errorf("%v is no process to end", id)
		}
		l.claim.Roots = append(l.claim.Roots, id)
	case "user":
		var uid int
		if err := q.Decode(&uid); err != nil {
			return err
		}
		if uid <= 0 || uid == os.Getuid() {
			return fmt.Errorf("uid %d does not belong to one desk", uid)
		}
		l.claim.UIDs = append(l.claim.UIDs, uid)
	case "home", "directory", "file":
		var name string
		if err := q.Decode(&name); err != nil {
			return err
		}
		if err := checkPath(name); err != nil {
			return err
		}
		if q.Op == "home" {
			l.claim.Homes = append(l.claim.Homes, name)
			return nil
		}
		made, err := os.Lstat(name)
		if err != nil {
			return err
		}
		if made.IsDir() != (q.Op == "directory") {
			return &PathError{name, "is not a " + q.Op}
		}
		l.paths = append(l.paths, path{name, made, q.Op == "directory"})
	default:
		return fmt.Errorf("unknown operation %q", q.Op)
	}
	return nil
}

func checkPath(name string) error {
	switch {
	case !filepath.IsAbs(name) || filepath.Clean(name) != name:
		return &PathError{name, "is not absolute and clean"}
	case strings.Count(name, "/") < 2:
		return &PathError{name, "is less than two levels deep"}
	case name == os.Getenv("HOME"):
		return &PathError{name, "is a person's home"}
	}
	return nil
}

// clean waits until the claimed processes are gone by themselves or the grace is over, ends the rest, and
// removes the paths.
func (l *ledger) clean(ctx context.Context, grace time.Duration) error {
	waited, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	l.await(waited)
	errs := []error{l.claim.End(ctx, 500*time.Millisecond)}
	for _, p := range slices.Backward(l.paths) {
		errs = append(errs, p.remove())
	}
	return errors.Join(errs...)
}

func (l *ledger) await(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if found, err := l.claim.Find(); err == nil && len(found) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p path) remove() error {
	var err error
	for range 5 {
		now, lerr := os.Lstat(p.name)
		if lerr != nil || !os.SameFile(now, p.made) || !p.tree && !now.ModTime().Equal(p.made.ModTime()) {
			return nil // gone, or another's; inode numbers are used again, so a file's time counts too
		}
		if p.tree {
			err = os.RemoveAll(p.name)
		} else {
			err = os.Remove(p.name)
		}
		if err == nil {
			return nil
		}
	}
	return err
}
