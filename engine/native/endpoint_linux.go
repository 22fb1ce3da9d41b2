package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/engine-acceptance/acceptance/engine"
)

// listener is one listening TCP socket.
type listener struct {
	addr  netip.AddrPort
	inode uint64
}

// sockDiagByFamily and stateListen are values of linux/sock_diag.h and net/tcp_states.h.
const (
	sockDiagByFamily = 20
	stateListen      = 10
	// maxDiag bounds the answer of the kernel, in messages.
	maxDiag = 1 << 12
	// budgetDiag bounds the wait for the kernel's answer.
	budgetDiag = time.Second
)

// listeners asks the kernel (sock_diag(7)) for the listening TCP sockets of one family.
func listeners(family uint8) ([]listener, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	timeout := unix.NsecToTimeval(int64(budgetDiag))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return nil, err
	}
	// struct nlmsghdr, then struct inet_diag_req_v2 (56 bytes).
	req := make([]byte, unix.NLMSG_HDRLEN+56)
	binary.NativeEndian.PutUint32(req[0:], uint32(len(req)))
	binary.NativeEndian.PutUint16(req[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(req[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	req[16], req[17] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(req[20:], 1<<stateListen)
	if err := unix.Sendto(fd, req, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	buf := make([]byte, 1<<16)
	var out []listener
	for range maxDiag {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return nil, err
		}
		found, done, err := parseDiag(buf[:n])
		out = append(out, found...)
		if err != nil || done {
			return out, err
		}
	}
	return nil, errors.New("endless answer about sockets")
}

// parseDiag reads one datagram of struct inet_diag_msg answers.
func parseDiag(data []byte) (out []listener, done bool, err error) {
	for len(data) >= unix.NLMSG_HDRLEN {
		size := int(binary.NativeEndian.Uint32(data))
		if size < unix.NLMSG_HDRLEN || size > len(data) {
			return out, true, errors.New("malformed answer about sockets")
		}
		body := data[unix.NLMSG_HDRLEN:size]
		switch binary.NativeEndian.Uint16(data[4:]) {
		case unix.NLMSG_DONE:
			return out, true, nil
		case unix.NLMSG_ERROR:
			return out, true, errors.New("the kernel does not tell about sockets")
		case sockDiagByFamily:
			// family(1) state(1) timer(1) retrans(1) sport(2) dport(2) src(16) dst(16) if(4) cookie(8) expires(4) rqueue(4) wqueue(4) uid(4) inode(4)
			if len(body) >= 72 && body[1] == stateListen {
				ip := netip.AddrFrom16([16]byte(body[8:24])).Unmap()
				if body[0] == unix.AF_INET {
					ip = netip.AddrFrom4([4]byte(body[8:12]))
				}
				out = append(out, listener{netip.AddrPortFrom(ip, binary.BigEndian.Uint16(body[4:])), uint64(binary.NativeEndian.Uint32(body[68:]))})
			}
		}
		next := (size + unix.NLMSG_ALIGNTO - 1) &^ (unix.NLMSG_ALIGNTO - 1)
		if next >= len(data) {
			break
		}
		data = data[next:]
	}
	return out, false, nil
}

// tableListeners reads /proc/net/tcp or tcp6, for kernels that do not offer sock_diag.
func tableListeners(name string) ([]listener, error) {
	data, err := readBounded("/proc/net/" + name)
	if err != nil {
		return nil, err
	}
	return parseTable(string(data)), nil
}

// parseTable reads the text form of the socket table; lines that it cannot read are left out.
func parseTable(text string) []listener {
	var out []listener
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 10 || f[3] != "0A" {
			continue
		}
		host, port, ok := strings.Cut(f[1], ":")
		if !ok || len(host)%8 != 0 || len(host) > 32 {
			continue
		}
		raw := make([]byte, 0, 16)
		for i := 0; i < len(host); i += 8 {
			v, err := strconv.ParseUint(host[i:i+8], 16, 32)
			if err != nil {
				break
			}
			raw = binary.NativeEndian.AppendUint32(raw, uint32(v))
		}
		ip, ok := netip.AddrFromSlice(raw)
		p, err := strconv.ParseUint(port, 16, 16)
		inode, err2 := strconv.ParseUint(f[9], 10, 64)
		if ok && err == nil && err2 == nil {
			out = append(out, listener{netip.AddrPortFrom(ip.Unmap(), uint16(p)), inode})
		}
	}
	return out
}

func listenersOf(addr netip.Addr) ([]listener, error) {
	family, table := uint8(unix.AF_INET), "tcp"
	if addr.Is6() {
		family, table = unix.AF_INET6, "tcp6"
	}
	if out, err := listeners(family); err == nil {
		return out, nil
	}
	return tableListeners(table)
}

// endpoints remembers under which descriptor a process holds a socket, so that a repeated proof reads one link instead of a whole table.
// The memory is only a place to look first: every proof asks the kernel anew.
type endpoints struct {
	mu   sync.Mutex
	held map[uint64]holder
}

type holder struct {
	pid, fd int
}

func (e *endpoints) owns(p engine.Process, addr netip.AddrPort) error {
	if !addr.IsValid() || !addr.Addr().Unmap().IsLoopback() {
		return endpointOwner("not_loopback")
	}
	ip := addr.Addr().Unmap()
	all, err := listenersOf(ip)
	if err != nil {
		return endpointOwner("owner")
	}
	found := false
	for _, l := range all {
		if l.addr.Port() != addr.Port() || l.addr.Addr() != ip {
			continue
		}
		found = true
		if !e.holds(p, l.inode) {
			return endpointOwner("owner")
		}
	}
	if !found {
		return endpointOwner(e.elsewhere(p, addr.Port()))
	}
	return nil
}

// elsewhere says why no listener of a port is on the address that was asked about: the process listens on others, or it is not its own.
func (e *endpoints) elsewhere(p engine.Process, port uint16) string {
	for _, any := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		all, err := listenersOf(any)
		if err != nil {
			continue
		}
		for _, l := range all {
			if l.addr.Port() == port && !l.addr.Addr().Unmap().IsLoopback() && e.holds(p, l.inode) {
				return "not_loopback"
			}
		}
	}
	return "owner"
}

// holds says whether p or a process below it has the socket open.
func (e *endpoints) holds(p engine.Process, inode uint64) bool {
	link := fmt.Sprintf("socket:[%d]", inode)
	e.mu.Lock()
	h, ok := e.held[inode]
	e.mu.Unlock()
	if ok && h.pid == p.PID {
		if got, err := os.Readlink(procPath(h.pid, "fd/") + strconv.Itoa(h.fd)); err == nil && got == link {
			return true
		}
	}
	if fd, ok := descriptor(p.PID, link); ok {
		e.mu.Lock()
		if e.held == nil || len(e.held) > 256 {
			e.held = map[uint64]holder{}
		}
		e.held[inode] = holder{p.PID, fd}
		e.mu.Unlock()
		return true
	}
	for _, child := range tree(p) {
		if _, ok := descriptor(child.PID, link); ok {
			return true
		}
	}
	return false
}

func descriptor(pid int, link string) (int, bool) {
	dir, err := os.Open(procPath(pid, "fd"))
	if err != nil {
		return 0, false
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxProcesses)
	for _, name := range names {
		if got, err := os.Readlink(procPath(pid, "fd/") + name); err == nil && got == link {
			fd, err := strconv.Atoi(name)
			return fd, err == nil
		}
	}
	return 0, false
}
