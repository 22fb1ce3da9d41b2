package native

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/engine-acceptance/acceptance/engine"
)

// Bounds of what is read from one process: bytes of one table, number of processes looked at.
const (
	maxTable     = 8 << 20
	maxProcesses = 1 << 16
	maxLibraries = 4096
)

// stat is the part of /proc/PID/stat that identifies a process (proc(5): fields 3, 4 and 22).
type stat struct {
	name  string
	state byte
	ppid  int
	start uint64
}

func readStat(pid int) (stat, error) {
	var buf [1024]byte
	n, err := readInto(procPath(pid, "stat"), buf[:])
	if err != nil {
		return stat{}, err
	}
	return parseStat(buf[:n])
}

// parseStat reads one line of /proc/PID/stat. The name may hold any byte, ')' and blanks included.
func parseStat(line []byte) (stat, error) {
	open, shut := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 0 || shut < open {
		return stat{}, errors.New("process table entry without a name")
	}
	fields := bytes.Fields(line[shut+1:])
	if len(fields) < 20 || len(fields[0]) != 1 {
		return stat{}, errors.New("process table entry is too short")
	}
	s := stat{name: string(line[open+1 : shut]), state: fields[0][0]}
	var err error
	if s.ppid, err = strconv.Atoi(string(fields[1])); err != nil {
		return stat{}, err
	}
	s.start, err = strconv.ParseUint(string(fields[19]), 10, 64)
	return s, err
}

// gone says whether the process has ended and only waits to be reaped.
func (s stat) gone() bool { return s.state == 'Z' || s.state == 'X' || s.state == 'x' }

func procPath(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

func readInto(path string, buf []byte) (int, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n, err := io.ReadFull(f, buf)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxTable))
}

// executable reads the link behind /proc/PID/exe. A file that was replaced on disk meanwhile keeps its name.
func executable(pid int) (string, error) {
	exe, err := os.Readlink(procPath(pid, "exe"))
	return strings.TrimSuffix(exe, " (deleted)"), err
}

// uid reads the real user id. The owner of the /proc files would be wrong: a process that may not be dumped is shown as root's.
func uid(pid int) (int, error) {
	data, err := readBounded(procPath(pid, "status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "Uid:"); ok {
			if f := strings.Fields(rest); len(f) > 0 {
				return strconv.Atoi(f[0])
			}
		}
	}
	return 0, errors.New("process status without a user")
}

func identify(pid int) (engine.Process, error) {
	if pid <= 0 {
		return engine.Process{}, notABrowser("no_such_process")
	}
	if pid == os.Getpid() {
		return engine.Process{}, notABrowser("own_process")
	}
	s, err := readStat(pid)
	if err != nil || s.gone() {
		return engine.Process{}, notABrowser("no_such_process")
	}
	owner, err := uid(pid)
	if err != nil {
		return engine.Process{}, notABrowser("no_such_process")
	}
	if owner != os.Getuid() {
		return engine.Process{}, notABrowser("foreign_user")
	}
	exe, err := executable(pid)
	if errors.Is(err, os.ErrPermission) {
		return engine.Process{}, notABrowser("foreign_user")
	}
	if err != nil {
		return engine.Process{}, notABrowser("not_a_browser") // a kernel thread has no executable
	}
	if own, err := os.Executable(); err == nil && own == exe {
		return engine.Process{}, notABrowser("own_process")
	}
	return engine.Process{PID: pid, Start: s.start, Exe: exe}, nil
}

func same(p engine.Process) error {
	if p.PID <= 0 || p.Start == 0 {
		return changed("process")
	}
	s, err := readStat(p.PID)
	if err != nil || s.gone() || s.start != p.Start {
		return changed("process")
	}
	exe, err := executable(p.PID)
	if err != nil || exe != p.Exe {
		return changed("process")
	}
	return nil
}

func describe(pid int) (Description, error) {
	p, err := identify(pid)
	if err != nil {
		return Description{}, err
	}
	d := Description{Process: p}
	if s, err := readStat(pid); err == nil {
		d.Name = s.name
	}
	maps, err := readBounded(procPath(pid, "maps"))
	if err != nil {
		return d, nil
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(maps)) {
		i := strings.IndexByte(line, '/')
		if i < 0 {
			continue
		}
		base := filepath.Base(strings.TrimSuffix(strings.TrimSpace(line[i:]), " (deleted)"))
		if !seen[base] && len(d.Libraries) < maxLibraries {
			seen[base] = true
			d.Libraries = append(d.Libraries, base)
		}
	}
	return d, nil
}

// pids lists the process table.
func pids() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxProcesses)
	out := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

func tree(p engine.Process) []engine.Process {
	if same(p) != nil {
		return nil
	}
	children := map[int][]int{}
	starts := map[int]uint64{}
	for _, pid := range pids() {
		if s, err := readStat(pid); err == nil && !s.gone() {
			children[s.ppid] = append(children[s.ppid], pid)
			starts[pid] = s.start
		}
	}
	var out []engine.Process
	for queue := children[p.PID]; len(queue) > 0 && len(out) < maxProcesses; {
		pid := queue[0]
		queue = append(queue[1:], children[pid]...)
		exe, err := executable(pid)
		if err != nil {
			continue
		}
		out = append(out, engine.Process{PID: pid, Start: starts[pid], Exe: exe})
	}
	return out
}

func naming(word string) []engine.Process {
	if word == "" {
		return nil
	}
	var out []engine.Process
	for _, pid := range pids() {
		if pid == os.Getpid() {
			continue
		}
		args, err := readBounded(procPath(pid, "cmdline"))
		if err != nil || !bytes.Contains(args, []byte(word)) {
			continue
		}
		if p, err := identify(pid); err == nil {
			out = append(out, p)
		}
	}
	return out
}

func end(ctx context.Context, p engine.Process) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return nil // nobody has this pid
	}
	defer unix.Close(fd)
	// The descriptor pins whoever has the pid now; only if that is p may it be signalled.
	if same(p) != nil {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end process: %w", err)
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, int((20 * time.Millisecond).Milliseconds()))
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for the end of a process: %w", err)
		}
	}
}
