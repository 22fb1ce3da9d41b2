package worker

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// apart gives the coordinator's stream a descriptor of its own and points standard output at standard error: Ginkgo's reporter keeps the
// descriptor of standard output from the program's start, so replacing os.Stdout does not reach it.
func apart(stdout io.Writer) (io.Writer, error) {
	f, ok := stdout.(*os.File)
	if !ok {
		return stdout, nil
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	if err := unix.Dup3(int(os.Stderr.Fd()), int(f.Fd()), 0); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "events"), nil
}
