package stage

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/engine-acceptance/acceptance/suites/process"
)

// ListenEvery is how often the kernel's table is looked at for listeners of engine and browser beyond loopback. One that lives shorter may
// not be seen.
const ListenEvery = 25 * time.Millisecond

// Listeners watches, for the whole time between Start and Stop of a row, whether engine or browser listen where others can reach them.
type Listeners struct {
	stage *Stage
	stop  chan struct{}
	done  chan struct{}

	mu      sync.Mutex
	looks   int
	exposed []string
	err     error
}

// WatchListeners begins to watch.
func (s *Stage) WatchListeners() *Listeners {
	l := &Listeners{stage: s, stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		tick := time.NewTicker(ListenEvery)
		defer tick.Stop()
		for {
			l.look()
			select {
			case <-tick.C:
			case <-l.stop:
				l.look()
				return
			}
		}
	}()
	return l
}

// Stop ends the watch. It says how often the table was read and which addresses beyond loopback belonged to engine or browser.
func (l *Listeners) Stop() (looks int, exposed []string, err error) {
	close(l.stop)
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.looks, l.exposed, l.err
}

func (l *Listeners) look() {
	found, err := openListeners()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.err = err
		return
	}
	l.looks++
	for _, o := range found {
		if slices.Contains(l.exposed, o.address) || !l.stage.holdsSocket(o) {
			continue
		}
		l.exposed = append(l.exposed, o.address)
	}
}

// openListener is a listening TCP socket that is not bound to loopback.
type openListener struct {
	address string
	uid     int
	inode   string
}

// openListeners reads those of the whole machine: there are few.
func openListeners() ([]openListener, error) {
	var out []openListener
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
			if len(fields) < 10 || fields[3] != "0A" {
				continue
			}
			host, _, _ := strings.Cut(fields[1], ":")
			if loopback(host) {
				continue
			}
			uid, err := strconv.Atoi(fields[7])
			if err != nil {
				continue
			}
			out = append(out, openListener{fields[1], uid, fields[9]})
		}
		err = s.Err()
		_ = f.Close()
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// loopback reads the kernel's hexadecimal form of 127.0.0.0/8, ::1 and the first within IPv6, each word in host order (little-endian here).
func loopback(host string) bool {
	switch len(host) {
	case 8:
		return strings.HasSuffix(host, "7F")
	case 32:
		return host == "00000000000000000000000001000000" || strings.HasPrefix(host, "0000000000000000FFFF0000") && strings.HasSuffix(host, "7F")
	}
	return false
}

// holdsSocket reports whether a process of engine or browser holds a socket.
func (s *Stage) holdsSocket(o openListener) bool {
	if u := s.Desk.User(); u != nil && o.uid != u.UID {
		return false
	}
	for _, e := range s.engineSide() {
		fds := fmt.Sprintf("/proc/%d/fd", e.PID)
		entries, err := os.ReadDir(fds)
		if err != nil {
			continue
		}
		for _, fd := range entries {
			if link, err := os.Readlink(filepath.Join(fds, fd.Name())); err == nil && link == "socket:["+o.inode+"]" {
				return true
			}
		}
	}
	return false
}

// engineSide lists the processes of engine and browser: its tree, or everything of its uid, less the person's own programs.
func (s *Stage) engineSide() []process.Entry {
	tree, err := s.Host.Tree()
	if err != nil {
		return nil
	}
	if user := s.Desk.User(); user != nil {
		if all, err := process.Scan(); err == nil {
			tree = slices.DeleteFunc(all, func(e process.Entry) bool { return e.UID != user.UID })
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.decoys {
		tree = slices.DeleteFunc(tree, func(e process.Entry) bool { return e.Session == d.proc.Identity().PID })
	}
	return tree
}
