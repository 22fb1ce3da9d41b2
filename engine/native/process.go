package native

import (
	"context"

	"github.com/engine-acceptance/acceptance/engine"
)

// Description is what the operating system says about a process, enough to tell a browser product by. It is read from the process table
// alone: no window, socket or other process is touched.
type Description struct {
	engine.Process
	// Name is the kernel's short name of the process.
	Name string
	// Libraries are the base names of the files mapped into the process, at most 4,096.
	Libraries []string
}

// Identify reads pid, start time and executable. It refuses with trigger not_a_browser: own_process, foreign_user, no_such_process.
func Identify(pid int) (engine.Process, error) { return identify(pid) }

// Same proves that p still is the process it was; otherwise it refuses with trigger generation_changed, reason process.
func Same(p engine.Process) error { return same(p) }

// Describe identifies a process and says what it is made of. Errors are as for [Identify].
func Describe(_ context.Context, pid int) (Description, error) { return describe(pid) }

// Tree lists the living descendants of p, parents first. p itself is not in the list.
func Tree(p engine.Process) []engine.Process { return tree(p) }

// Naming lists this user's processes whose arguments hold word, which must be unguessable for the answer to mean anything.
func Naming(word string) []engine.Process { return naming(word) }

// End kills p and waits until it is gone or ctx is over. A process that is not p any more is left alone, and that is no error.
func End(ctx context.Context, p engine.Process) error { return end(ctx, p) }

// EndTree ends p and then what was below it.
func EndTree(ctx context.Context, p engine.Process) error {
	below := Tree(p)
	err := End(ctx, p)
	for _, child := range below {
		if e := End(ctx, child); err == nil {
			err = e
		}
	}
	return err
}
