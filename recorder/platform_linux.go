package recorder

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// monotonic returns CLOCK_MONOTONIC in nanoseconds: the clock that the X server stamps events with.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // the kernel always has this clock
	}
	return ts.Nano()
}

func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// widenPipe asks for a pipe of 1 MiB, for fewer wake-ups; a refusal costs only those.
func widenPipe(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		c.Control(func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20) })
	}
}

// checkAttr has no death signal: that would follow a thread which a short look-up does not keep. A decoder whose reader is gone ends by itself.
func checkAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
