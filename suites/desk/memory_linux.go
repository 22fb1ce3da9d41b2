package desk

import "golang.org/x/sys/unix"

// inMemory reports whether a directory is on a memory-backed file system (tmpfs or ramfs, statfs(2)).
func inMemory(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && (s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC)
}
