//go:build unix

package verify

import "syscall"

// nonblock keeps the opening of a FIFO, put in the place of a file, from waiting for a writer.
const nonblock = syscall.O_NONBLOCK
