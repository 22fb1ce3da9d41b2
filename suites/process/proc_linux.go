package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Mono returns CLOCK_MONOTONIC in nanoseconds. On Linux the X server's time stamps are the same
// clock in milliseconds.
func Mono() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}

// Scan lists every process that /proc shows, zombies too. Processes that end while it reads are
// left out.
func Scan() ([]Entry, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	names, err := dir.Readdirnames(-1)
	dir.Close()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var out []Entry
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		e, err := readEntry(pid)
		if err != nil {
			continue
		}
		out = append(out, e)
	}
	return out, nil
}

func readEntry(pid int) (Entry, error) {
	if pid <= 0 {
		return Entry{}, fmt.Errorf("pid %d: %w", pid, ErrGone)
	}
	dir := "/proc/" + strconv.Itoa(pid)
	b, err := readSome(dir+"/stat", 4096)
	if err != nil {
		return Entry{}, gone(pid, err)
	}
	e, err := parseStat(b)
	if err != nil {
		return Entry{}, fmt.Errorf("pid %d: %w", pid, err)
	}
	e.UID = -1
	if b, err := readSome(dir+"/status", 8192); err == nil {
		e.UID = parseUID(b)
	}
	if exe, err := os.Readlink(dir + "/exe"); err == nil {
		e.Executable = strings.TrimSuffix(exe, " (deleted)")
	}
	return e, nil
}

func gone(pid int, err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("pid %d: %w", pid, ErrGone)
	}
	return fmt.Errorf("pid %d: %w", pid, err)
}

// parseStat reads one line of /proc/PID/stat. The command name may hold spaces and brackets, so
// fields are counted from the last bracket.
func parseStat(b []byte) (Entry, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open {
		return Entry{}, errors.New("stat has no command name")
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(b[:open])))
	if err != nil {
		return Entry{}, fmt.Errorf("stat pid: %w", err)
	}
	f := bytes.Fields(b[end+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return Entry{}, fmt.Errorf("stat has %d fields after the name, want 20 or more", len(f))
	}
	e := Entry{State: f[0][0]}
	e.PID = pid
	for i, dst := range map[int]*int{1: &e.Parent, 2: &e.Group, 3: &e.Session} {
		if *dst, err = strconv.Atoi(string(f[i])); err != nil {
			return Entry{}, fmt.Errorf("stat field %d: %w", i+3, err)
		}
	}
	if e.Start, err = strconv.ParseUint(string(f[19]), 10, 64); err != nil {
		return Entry{}, fmt.Errorf("stat start time: %w", err)
	}
	return e, nil
}

func parseUID(status []byte) int {
	_, rest, ok := bytes.Cut(status, []byte("\nUid:"))
	if !ok {
		return -1
	}
	f := bytes.Fields(rest)
	if len(f) == 0 {
		return -1
	}
	uid, err := strconv.Atoi(string(f[0]))
	if err != nil {
		return -1
	}
	return uid
}

// homeOf returns HOME as the process was started with it, "" when there is none or it may not
// be read.
func homeOf(pid int) string {
	b, err := readSome("/proc/"+strconv.Itoa(pid)+"/environ", 256<<10)
	if err != nil {
		return ""
	}
	for kv := range bytes.SplitSeq(b, []byte{0}) {
		if v, ok := bytes.CutPrefix(kv, []byte("HOME=")); ok {
			return string(v)
		}
	}
	return ""
}

func readSome(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

func killExact(i Identity, sig syscall.Signal) error {
	if i.PID <= 1 {
		return fmt.Errorf("pid %d is not one of ours: %w", i.PID, ErrGone)
	}
	fd, err := unix.PidfdOpen(i.PID, 0)
	if err != nil {
		return gone(i.PID, err)
	}
	defer unix.Close(fd)
	if !i.Alive() {
		return fmt.Errorf("%v: %w", i, ErrGone)
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil {
		return gone(i.PID, err)
	}
	return nil
}

// awaitExit waits until a child of ours has ended, without reaping it, and returns what lives in the
// session that it led.
func awaitExit(pid int) []Identity {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		break
	}
	all, err := Scan()
	if err != nil {
		return nil
	}
	var out []Identity
	for _, e := range all {
		if e.Session == pid && e.PID != pid && !e.dead() {
			out = append(out, e.Identity)
		}
	}
	return out
}

func attributes(s Spec) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	if s.User != nil {
		a.Credential = &syscall.Credential{Uid: uint32(s.User.UID), Gid: uint32(s.User.GID), Groups: []uint32{}}
	}
	switch {
	case s.Outlives:
	case s.DeathSignal != 0:
		a.Pdeathsig = s.DeathSignal
	default:
		a.Pdeathsig = syscall.SIGKILL
	}
	return a
}
