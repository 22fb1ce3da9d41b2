package desk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/engine-acceptance/acceptance/suites/process"
)

// lockName is the file in a seat that its worker holds locked, and that names what belongs to the desk beside it: first the home, then, one a
// line, what [Desk.Directory] made.
const lockName = "lock"

// prefixes are those of the directories that a lock may name beside the home.
var prefixes = []string{"bin-", "scratch-"}

// maxLock bounds what is read of a lock, in bytes.
const maxLock = 16 << 10

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
	b, err := io.ReadAll(io.LimitReader(f, maxLock))
	if err != nil {
		return
	}
	names := strings.Split(string(b), "\n")
	if !strings.HasPrefix(names[0], "home-") || strings.ContainsRune(names[0], '/') {
		return
	}
	home := filepath.Join(dir, names[0])
	// What cannot be removed stays for the next one to try; it is no reason not to open a desk.
	_ = process.Claim{Homes: []string{home, seat}}.End(ctx, 0)
	left := removeAll(home)
	for _, name := range names[1:] {
		left = errors.Join(left, removeBeside(dir, name))
	}
	if left == nil {
		_ = removeAll(seat)
	}
}

// removeBeside removes a directory that a lock names, where the name is one that [Desk.Directory] gives and the directory is ours.
func removeBeside(dir, name string) error {
	if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) || strings.ContainsRune(name, '/') {
		return nil
	}
	path := filepath.Join(dir, name)
	if info, err := os.Lstat(path); err != nil || !info.IsDir() || !ownedByUs(info) {
		return nil
	}
	return removeAll(path)
}

// Directory makes a directory of ours beside the homes, in memory where they are. The prefix is "bin-" for what the engine's side may execute or
// "scratch-" for temporary files. It goes with the desk, with the keeper, or when the next desk finds that both were killed.
func (d *Desk) Directory(prefix string, mode os.FileMode) (string, error) {
	if !slices.Contains(prefixes, prefix) {
		return "", fmt.Errorf("directory %q: want one of %q", prefix, prefixes)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return "", ErrClosed
	}
	dir, err := os.MkdirTemp(filepath.Dir(d.home), prefix)
	if err != nil {
		return "", err
	}
	d.beside = append(d.beside, dir)
	_, noted := d.lock.WriteString("\n" + filepath.Base(dir))
	return dir, errors.Join(noted, os.Chmod(dir, mode), d.keep(func(k Registrar) error { return k.Directory(dir) }))
}
