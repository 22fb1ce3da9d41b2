//go:build browser

package cdp

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// testUID runs the tests when root starts them, for Chromium keeps its sandbox on for an ordinary uid only.
const testUID = 61234

// asUser is what TestMain does first when the tests need a browser.
func init() {
	asUser = func() (int, bool) {
		if os.Geteuid() != 0 {
			return 0, false
		}
		code, err := rerun()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		return code, true
	}
}

// rerun runs this test binary once more as testUID, with a home of its own.
func rerun() (int, error) {
	home, err := os.MkdirTemp("", "cdp-browser-test-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(home)
	self := filepath.Join(home, "test")
	if err := copyFile(self, "/proc/self/exe"); err != nil {
		return 0, err
	}
	if err := os.Chown(home, testUID, testUID); err != nil {
		return 0, err
	}
	// The log of opened files lies where only root may write.
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(a string) bool { return strings.HasPrefix(a, "-test.testlogfile") })
	cmd := exec.Command(self, args...)
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=/usr/bin:/bin", "LANG=C.UTF-8"}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: testUID, Gid: testUID}, Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

func copyFile(to, from string) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, r); err != nil {
		return err
	}
	return w.Close()
}
