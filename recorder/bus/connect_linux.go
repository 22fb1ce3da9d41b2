package bus

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// ConnectAs connects to a unix socket so that the kernel tells the other side the given uid (SO_PEERCRED, taken at connect(2)). For another uid
// than ours one thread has it as its effective one while it connects, which only root may.
func ConnectAs(socket string, uid int) (net.Conn, error) {
	if uid == os.Geteuid() {
		return net.Dial("unix", socket)
	}
	type result struct {
		c   net.Conn
		err error
	}
	answer := make(chan result, 1)
	var try func(more int)
	try = func(more int) {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() && more > 0 {
			// A change of credentials clears a thread's death signal, and the main thread has the one that ends us with our parent. Held here, it cannot
			// be the next one's.
			done := make(chan struct{})
			go func() { defer close(done); try(more - 1) }()
			<-done
			runtime.UnlockOSThread()
			return
		}
		c, err := connectOnThisThread(socket, uid)
		answer <- result{c, err}
		if errors.Is(err, errIdentity) {
			select {} // a thread that is not itself any more must never run anything again
		}
		runtime.UnlockOSThread()
	}
	go try(1)
	r := <-answer
	return r.c, r.err
}

var errIdentity = errors.New("our own identity could not be taken back")

func connectOnThisThread(socket string, uid int) (net.Conn, error) {
	ours := os.Geteuid()
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		return nil, err
	}
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(s), "bus")
	defer f.Close()
	// Raw, for this thread alone; the package's own functions change all threads.
	keep := ^uintptr(0)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(uid), keep); errno != 0 {
		return nil, fmt.Errorf("take uid %d: %w", uid, errno)
	}
	connectErr := unix.Connect(s, &unix.SockaddrUnix{Name: socket})
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(ours), keep); errno != 0 {
		return nil, errors.Join(errIdentity, errno, connectErr)
	}
	// The kernel forbids dumps of a process whose credentials changed, and with them what else needs such a right.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(dumpable), 0, 0, 0); err != nil {
		return nil, errors.Join(err, connectErr)
	}
	if connectErr != nil {
		return nil, connectErr
	}
	return net.FileConn(f)
}
