//go:build unix

package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockBudget is how long Append waits for another writer.
const lockBudget = 10 * time.Second

// lock takes the file's lock, which its close gives back.
func lock(ctx context.Context, f *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, lockBudget)
	defer cancel()
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("another writer holds it: %w", ctx.Err())
		case <-retry.C:
		}
	}
}
