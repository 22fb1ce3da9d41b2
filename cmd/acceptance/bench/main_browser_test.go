//go:build browser

package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// ordinaryUID measures when root starts the benchmarks, for Chromium keeps its sandbox on for an ordinary uid only.
const ordinaryUID = 61235

func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		os.Exit(m.Run())
	}
	code, err := asOrdinaryUser()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// asOrdinaryUser runs this test binary once more with an ordinary uid and a home of its own.
func asOrdinaryUser() (code int, err error) {
	home, err := os.MkdirTemp("", "acceptance-bench-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	self := filepath.Join(home, "bench")
	if err := copyProgram(self); err != nil {
		return 1, err
	}
	if err := os.Chown(home, ordinaryUID, ordinaryUID); err != nil {
		return 1, err
	}
	// The log of opened files lies where only root may write.
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(a string) bool { return strings.HasPrefix(a, "-test.testlogfile") })
	cmd := exec.Command(self, args...)
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryUID, Gid: ordinaryUID}, Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return 1, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

func copyProgram(to string) error {
	r, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}
