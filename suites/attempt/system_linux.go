package attempt

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/engine-acceptance/acceptance/suites/process"
)

// listener is one listening TCP socket of the watched processes.
type listener struct {
	addr netip.AddrPort
	pid  int
}

// socketsOf returns the inodes of the sockets that a process holds; a process that may not be read holds none that we can name.
func socketsOf(pid int) map[string]int {
	out := map[string]int{}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return out
	}
	for _, e := range entries {
		link, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		if inode, ok := strings.CutPrefix(link, "socket:["); ok {
			fd, err := strconv.Atoi(e.Name())
			if err == nil {
				out[strings.TrimSuffix(inode, "]")] = fd
			}
		}
	}
	return out
}

// tcpLine is one line of /proc/net/tcp or tcp6.
type tcpLine struct {
	local, remote netip.AddrPort
	state         string
	inode         string
}

const (
	tcpEstablished = "01"
	tcpCloseWait   = "08"
	tcpListen      = "0A"
)

// tcpTable reads the kernel's table of TCP sockets.
func tcpTable() ([]tcpLine, error) {
	var out []tcpLine
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(name)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s := bufio.NewScanner(f)
		for s.Scan() {
			fields := strings.Fields(s.Text())
			if len(fields) < 10 || fields[0] == "sl" {
				continue
			}
			local, err1 := hexAddr(fields[1])
			remote, err2 := hexAddr(fields[2])
			if err1 != nil || err2 != nil {
				continue
			}
			out = append(out, tcpLine{local, remote, fields[3], fields[9]})
		}
		err = s.Err()
		_ = f.Close()
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// hexAddr reads "0100007F:1F90": address words in host order, port big-endian.
func hexAddr(s string) (netip.AddrPort, error) {
	host, port, ok := strings.Cut(s, ":")
	p, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || len(host) != 8 && len(host) != 32 {
		return netip.AddrPort{}, fmt.Errorf("%q is no kernel address", s)
	}
	b := make([]byte, len(host)/2)
	for word := 0; word < len(b); word += 4 {
		v, err := strconv.ParseUint(host[word*2:word*2+8], 16, 32)
		if err != nil {
			return netip.AddrPort{}, err
		}
		b[word], b[word+1], b[word+2], b[word+3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
	}
	addr, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(addr.Unmap(), uint16(p)), nil
}

// listenersOf lists the listening sockets of the given processes.
func listenersOf(tree []process.Entry) ([]listener, error) {
	table, err := tcpTable()
	if err != nil {
		return nil, err
	}
	var out []listener
	for _, e := range tree {
		held := socketsOf(e.PID)
		for _, line := range table {
			if _, ok := held[line.inode]; ok && line.state == tcpListen {
				out = append(out, listener{line.local, e.PID})
			}
		}
	}
	return out, nil
}

// openBelow lists the files below dir that the processes hold open.
func openBelow(dir string, tree []process.Entry) []string {
	var out []string
	for _, e := range tree {
		fds := fmt.Sprintf("/proc/%d/fd", e.PID)
		entries, err := os.ReadDir(fds)
		if err != nil {
			continue
		}
		for _, fd := range entries {
			if link, err := os.Readlink(filepath.Join(fds, fd.Name())); err == nil && strings.HasPrefix(link, dir+"/") {
				out = append(out, link)
			}
		}
	}
	return out
}

// directories lists the directories below root down to a depth, without following links and without entering those that skip names.
func directories(root string, depth int, skip func(string) bool) map[string]fs.FileMode {
	out := map[string]fs.FileMode{}
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		rel, _ := filepath.Rel(root, path)
		if rel == "." {
			return nil
		}
		if skip(path) {
			return fs.SkipDir
		}
		if info, err := d.Info(); err == nil {
			out[path] = info.Mode().Perm()
		}
		if strings.Count(rel, "/")+1 >= depth {
			return fs.SkipDir
		}
		return nil
	})
	return out
}

// persons reports whether a directory is the person's: where the person's own programs write, and their profiles, which nobody opens.
func (a *Attempt) persons(dir string) bool {
	return dir == a.Stage.DecoyHome() || a.Stage.PersonProfile(dir)
}

// profileDepth is how deep below the desk's home a profile directory may lie.
const profileDepth = 8

// profileOf finds the profile directory of a browser by what it holds open: the lowest directory below home that holds all of its open files
// which lie in directories that were not there before.
func profileOf(home string, before map[string]fs.FileMode, tree []process.Entry) (dir string, files int) {
	for _, file := range openBelow(home, tree) {
		own := ""
		for d := filepath.Dir(file); strings.HasPrefix(d, home+"/"); d = filepath.Dir(d) {
			if _, old := before[d]; old {
				break
			}
			own = d
		}
		if own == "" {
			continue
		}
		files++
		if dir == "" {
			dir = filepath.Dir(file)
		}
		for dir != own && !strings.HasPrefix(file, dir+"/") && strings.HasPrefix(dir, own+"/") {
			dir = filepath.Dir(dir)
		}
	}
	return dir, files
}

// sandboxed reports whether some process of the tree runs under a seccomp filter and none was started without the sandbox, and whether
// all run under an ordinary uid.
func sandboxed(tree []process.Entry) (filtered, unswitched, ordinary bool) {
	unswitched, ordinary = true, true
	for _, e := range tree {
		ordinary = ordinary && e.UID != 0
		if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.PID)); err == nil && strings.Contains(string(status), "\nSeccomp:\t2") {
			filtered = true
		}
		if cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", e.PID)); err == nil && strings.Contains(string(cmdline), "--no-sandbox") {
			unswitched = false
		}
	}
	return filtered, unswitched, ordinary
}

// system is what a refusal must leave as it was.
type system struct {
	children  []process.Identity
	windows   []uint32
	listeners []string
	dirs      []string
}

// look takes the system's state as far as a refusal must not change it: the engine's children, managed windows, listeners, and the
// directories of its home outside of running profiles.
func (a *Attempt) look(ctx context.Context) (*system, error) {
	s := &system{}
	tree, err := a.Stage.Host.Tree()
	if err != nil {
		return nil, err
	}
	for _, e := range tree {
		if len(tree) > 0 && e.Parent == tree[0].PID {
			s.children = append(s.children, e.Identity)
		}
	}
	if s.windows, err = a.Stage.ManagedWindows(ctx); err != nil {
		return nil, err
	}
	held, err := listenersOf(tree)
	if err != nil {
		return nil, err
	}
	for _, l := range held {
		s.listeners = append(s.listeners, l.addr.String())
	}
	for d := range directories(a.Stage.Desk.Home(), 5, a.persons) {
		if !slices.ContainsFunc(a.profiles, func(p string) bool { return strings.HasPrefix(d, p+"/") }) {
			s.dirs = append(s.dirs, d)
		}
	}
	slices.SortFunc(s.children, func(x, y process.Identity) int { return x.PID - y.PID })
	slices.Sort(s.windows)
	slices.Sort(s.listeners)
	slices.Sort(s.dirs)
	return s, nil
}

// differs names the first part in which two states differ.
func (s *system) differs(now *system) string {
	switch {
	case !slices.Equal(s.children, now.children):
		return fmt.Sprintf("children of the engine: %d before, %d after", len(s.children), len(now.children))
	case !slices.Equal(s.windows, now.windows):
		return fmt.Sprintf("managed windows: %d before, %d after", len(s.windows), len(now.windows))
	case !slices.Equal(s.listeners, now.listeners):
		return fmt.Sprintf("listeners: %d before, %d after", len(s.listeners), len(now.listeners))
	case !slices.Equal(s.dirs, now.dirs):
		return fmt.Sprintf("directories: %d before, %d after", len(s.dirs), len(now.dirs))
	}
	return ""
}
