package stage

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/engine-acceptance/acceptance/fixtures"
	"github.com/engine-acceptance/acceptance/suites/process"
)

// ListenEvery is how often the kernel is asked for listeners of engine and browser beyond loopback. One that lives shorter may
// not be seen.
const ListenEvery = 25 * time.Millisecond

// Listeners watches, for the whole time between Start and Stop of a row, whether engine or browser listen where others can reach them.
type Listeners struct {
	stage *Stage
	// own is the port that the fixture server listens on.
	own  uint16
	stop chan struct{}
	done chan struct{}

	mu      sync.Mutex
	looks   int
	exposed []string
	err     error
}

// WatchListeners begins to watch.
func (s *Stage) WatchListeners() *Listeners {
	l := &Listeners{stage: s, own: portOf(s.Pages.Origins()[fixtures.Main]), stop: make(chan struct{}), done: make(chan struct{})}
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

// portOf is the port of an origin, 0 when it has none.
func portOf(origin string) uint16 {
	at, err := netip.ParseAddrPort(strings.TrimPrefix(origin, "http://"))
	if err != nil {
		return 0
	}
	return at.Port()
}

// Stop ends the watch. It says how often the kernel was asked and which addresses beyond loopback belonged to engine or browser.
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
	// The harness's own listener must be among them, or the look was blind.
	if !slices.ContainsFunc(found, func(o openListener) bool { return o.address.Port() == l.own }) {
		l.err = fmt.Errorf("port %d, where the fixture server listens, is not among %d listeners", l.own, len(found))
		return
	}
	l.looks++
	for _, o := range found {
		if o.address.Addr().Unmap().IsLoopback() {
			continue
		}
		if slices.Contains(l.exposed, o.address.String()) || !l.stage.holdsSocket(o) {
			continue
		}
		l.exposed = append(l.exposed, o.address.String())
	}
}

// openListener is a listening TCP socket.
type openListener struct {
	address netip.AddrPort
	uid     int
	inode   uint32
}

// openListeners asks the kernel for those of the whole machine, in both families. It is asked for listeners alone (sock_diag(7)), for its text table
// of all sockets takes it some milliseconds each time.
func openListeners() ([]openListener, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("open a socket for questions about sockets: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return nil, err
	}
	var out []openListener
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		if err := unix.Sendto(fd, askListeners(family), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return nil, fmt.Errorf("ask for listeners: %w", err)
		}
		found, err := readListeners(fd)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// Lengths in bytes of what sock_diag(7) lays out: inet_diag_req_v2 and inet_diag_msg; listening is the bit of TCP_LISTEN.
const (
	diagRequest = 56
	diagMessage = 72
	listening   = 1 << 10
)

// askListeners is a question for all listening TCP sockets of a family.
func askListeners(family uint8) []byte {
	b := make([]byte, unix.SizeofNlMsghdr+diagRequest)
	order := binary.NativeEndian
	order.PutUint32(b, uint32(len(b)))
	order.PutUint16(b[4:], unix.SOCK_DIAG_BY_FAMILY)
	order.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	b[16], b[17] = family, unix.IPPROTO_TCP
	order.PutUint32(b[20:], listening)
	return b
}

// readListeners reads the answer to its end.
func readListeners(fd int) ([]openListener, error) {
	var out []openListener
	b := make([]byte, 32<<10)
	for {
		n, _, err := unix.Recvfrom(fd, b, 0)
		if err != nil {
			return nil, fmt.Errorf("read which sockets listen: %w", err)
		}
		messages, err := syscall.ParseNetlinkMessage(b[:n])
		if err != nil {
			return nil, fmt.Errorf("read which sockets listen: %w", err)
		}
		for _, m := range messages {
			switch m.Header.Type {
			case unix.NLMSG_DONE:
				return out, nil
			case unix.NLMSG_ERROR:
				return nil, fmt.Errorf("the kernel does not tell which sockets listen (%x)", m.Data[:min(len(m.Data), 4)])
			case unix.SOCK_DIAG_BY_FAMILY:
				if o, ok := listenerIn(m.Data); ok {
					out = append(out, o)
				}
			}
		}
	}
}

// listenerIn reads one inet_diag_msg.
func listenerIn(m []byte) (openListener, bool) {
	if len(m) < diagMessage {
		return openListener{}, false
	}
	length := 4
	if m[0] == unix.AF_INET6 {
		length = 16
	}
	addr, ok := netip.AddrFromSlice(m[8 : 8+length])
	order := binary.NativeEndian
	return openListener{netip.AddrPortFrom(addr, binary.BigEndian.Uint16(m[4:])), int(order.Uint32(m[64:])), order.Uint32(m[68:])}, ok
}

// holdsSocket reports whether a process of engine or browser holds a socket.
func (s *Stage) holdsSocket(o openListener) bool {
	if u := s.Desk.User(); u != nil && o.uid != u.UID {
		return false
	}
	link := fmt.Sprintf("socket:[%d]", o.inode)
	for _, e := range s.engineSide() {
		fds := fmt.Sprintf("/proc/%d/fd", e.PID)
		entries, err := os.ReadDir(fds)
		if err != nil {
			continue
		}
		for _, fd := range entries {
			if to, err := os.Readlink(filepath.Join(fds, fd.Name())); err == nil && to == link {
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
