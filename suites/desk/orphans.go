package desk

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/engine-acceptance/acceptance/suites/process"
)

// lockName is the file in a seat that its worker holds locked, and that names the home beside it.
const lockName = "lock"

// takeSeat marks the seat as alive: the kernel gives the lock up when the worker ends, in any way.
func (d *Desk) takeSeat() error {
	f, err := os.CreateTemp(d.seat, "lock-")
	if err != nil {
		return err
	}
	if err := lock(f); err != nil {
		f.Close()
		return fmt.Errorf("lock the seat: %w", err)
	}
	d.lock = f
	if _, err := f.WriteString(filepath.Base(d.home)); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(d.seat, lockName)) // from here on it may be looked at
}

// sweepOrphans ends and removes the desks in dir whose worker and keeper were both killed. A seat whose
// lock is held, or that is another user's, is left alone.
func sweepOrphans(ctx context.Context, dir string) {
	seats, err := filepath.Glob(filepath.Join(dir, "seat-*"))
	if err != nil {
		return
	}
	for _, seat := range seats {
		sweepOrphan(ctx, dir, seat)
	}
}

func sweepOrphan(ctx context.Context, dir, seat string) {
	info, err := os.Lstat(seat)
	if err != nil || !info.IsDir() || !ownedByUs(info) {
		return
	}
	f, err := os.OpenFile(filepath.Join(seat, lockName), os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if lock(f) != nil {
		return
	}
	b := make([]byte, 256)
	n, err := f.Read(b)
	if err != nil {
		return
	}
	name := string(b[:n])
	if !strings.HasPrefix(name, "home-") || strings.ContainsRune(name, '/') {
		return
	}
	home := filepath.Join(dir, name)
	// What cannot be removed stays for the next one to try; it is no reason not to open a desk.
	_ = process.Claim{Homes: []string{home, seat}}.End(ctx, 0)
	if removeAll(home) == nil {
		_ = removeAll(seat)
	}
}
