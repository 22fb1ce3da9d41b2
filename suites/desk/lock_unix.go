//go:build unix

package desk

import (
	"os"
	"syscall"
)

// lock takes an exclusive lock on an open file without waiting; it ends with the last descriptor, and
// children do not get one.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

func ownedByUs(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid()
}
