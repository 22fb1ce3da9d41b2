package cdp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/engine-acceptance/acceptance/engine"
)

// child is the browser's main process. It has a process group of its own and is killed by the kernel when we die.
type child struct {
	pid  int
	cmd  *exec.Cmd
	done chan struct{}
	// drained is closed when nobody can write output any more.
	drained chan struct{}
}

// startChild starts a program. The goroutine that starts it keeps its thread until the program ends, for the death signal follows the
// thread and not the process.
func startChild(binary string, args, env []string, dir string, output io.Writer) (*child, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, args...)
	cmd.Env, cmd.Dir = env, dir
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c := &child{cmd: cmd, done: make(chan struct{}), drained: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
			close(c.done)
		}
	}()
	err = <-started
	w.Close()
	if err != nil {
		r.Close()
		return nil, err
	}
	go func() {
		io.Copy(output, r)
		r.Close()
		close(c.drained)
	}()
	c.pid = cmd.Process.Pid
	return c, nil
}

// state describes how the process ended. It is valid after done is closed.
func (c *child) state() string { return c.cmd.ProcessState.String() }

// kill ends the main process. It is safe after the process ended, for os.Process knows that it was waited for.
func (c *child) kill() { c.cmd.Process.Kill() }

// family lists the processes of the browser: its descendants, its process group, and what names its profile in its arguments, such as the
// crash handler, which has neither.
func (c *child) family(profile string) []engine.Process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	parent, group := map[int]int{}, map[int]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if f, err := stat(pid); err == nil {
			parent[pid], _ = strconv.Atoi(f[1])
			group[pid], _ = strconv.Atoi(f[2])
		}
	}
	var list []engine.Process
	for pid := range parent {
		ours := group[pid] == c.pid
		for p, depth := pid, 0; p > 1 && !ours && depth < 64; p, depth = parent[p], depth+1 {
			ours = p == c.pid
		}
		if !ours && pid != os.Getpid() {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			for arg := range bytes.SplitSeq(line, []byte{0}) {
				ours = ours || string(arg) == "--user-data-dir="+profile || string(arg) == "--database="+profile+"/Crash Reports"
			}
		}
		if !ours {
			continue
		}
		if p, err := identify(pid); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// identify reads a process; a zombie is none.
func identify(pid int) (engine.Process, error) {
	f, err := stat(pid)
	if err != nil {
		return engine.Process{}, err
	}
	if f[0] == "Z" || f[0] == "X" {
		return engine.Process{}, os.ErrProcessDone
	}
	start, err := strconv.ParseUint(f[19], 10, 64)
	if err != nil {
		return engine.Process{}, err
	}
	// The executable of a sandboxed helper is not ours to read.
	exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return engine.Process{PID: pid, Start: start, Exe: exe}, nil
}

// stat returns the fields of /proc/PID/stat from the third on, at least twenty.
func stat(pid int) ([]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 20 {
		return nil, errors.New("short stat")
	}
	return f, nil
}

func alive(pid int) bool {
	_, err := identify(pid)
	return err == nil
}

// signalProcess kills a process that is proved to be the one that was seen: the descriptor is taken first, so that the pid cannot be
// another's between proof and signal.
func signalProcess(p engine.Process) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if now, err := identify(p.PID); err != nil || now.Start != p.Start {
		return
	}
	unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}
