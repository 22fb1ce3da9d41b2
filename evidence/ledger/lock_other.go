//go:build !unix

package ledger

import (
	"context"
	"errors"
	"os"
)

// lock refuses where no lock between processes is built: two writers could give the same counter.
func lock(context.Context, *os.File) error {
	return errors.New("a ledger can only be written on a system with flock")
}
