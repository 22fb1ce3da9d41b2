package provenance

import (
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// release returns the distribution's name and the kernel's release, without the host name that uname also holds.
func release() (name, kernel string) {
	raw, err := os.ReadFile("/etc/os-release")
	if err != nil {
		raw, _ = os.ReadFile("/usr/lib/os-release")
	}
	var u unix.Utsname
	kernel = "unknown"
	if unix.Uname(&u) == nil {
		kernel = bounded(unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:]))
	}
	return osRelease(string(raw[:min(len(raw), 16<<10)])), strings.TrimSpace(kernel)
}

// ownGroup makes the child lead a process group that dies with us and is ended whole.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
