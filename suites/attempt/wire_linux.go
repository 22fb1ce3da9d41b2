package attempt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// wireTap listens on loopback, passively, to what a browser answers its engine, and keeps the identifiers in it. It needs the right to open a
// packet socket, which the superuser has (packet(7)).
type wireTap struct {
	fd   int
	port uint16
	done chan struct{}

	mu    sync.Mutex
	seen  map[string]bool
	bytes int64
	err   error
}

// Bounds of a tap: the largest packet of loopback, the identifiers that it keeps, and what it keeps of the end of a packet, for an identifier may
// go on in the next.
const (
	maxPacket      = 128 << 10
	maxIdentifiers = 512
	tokenTail      = 40
	tapBuffer      = 8 << 20
)

// tapWire begins to listen to the answers from a port.
func tapWire(port uint16) (*wireTap, error) {
	loopback, err := net.InterfaceByName("lo")
	if err != nil {
		return nil, fmt.Errorf("find the loopback interface: %w", err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(network(unix.ETH_P_IP)))
	if err != nil {
		return nil, fmt.Errorf("open a packet socket: %w", err)
	}
	w := &wireTap{fd: fd, port: port, done: make(chan struct{}), seen: map[string]bool{}}
	err = errors.Join(unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: network(unix.ETH_P_IP), Ifindex: loopback.Index}),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, tapBuffer),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000}))
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	return w, nil
}

// network gives a number in the order of the network.
func network(v uint16) uint16 { return v<<8 | v>>8 }

// listen reads until stop is closed, and what was there by then.
func (w *wireTap) listen(stop <-chan struct{}) {
	defer close(w.done)
	packet := make([]byte, maxPacket)
	tails := map[uint16][]byte{}
	for {
		n, from, err := unix.Recvfrom(w.fd, packet, 0)
		switch {
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
			select {
			case <-stop:
				return
			default:
			}
			continue
		case err != nil:
			w.mu.Lock()
			w.err = fmt.Errorf("read from the packet socket: %w", err)
			w.mu.Unlock()
			return
		}
		// Loopback shows each packet twice: as it leaves and as it arrives.
		if at, ok := from.(*unix.SockaddrLinklayer); ok && at.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		to, payload, ok := answer(packet[:n], w.port)
		if !ok {
			continue
		}
		text := append(tails[to], payload...)
		w.keep(text, len(payload))
		tails[to] = append([]byte(nil), text[max(len(text)-tokenTail, 0):]...)
	}
}

// answer takes a TCP segment over IPv4 apart (RFC 791, RFC 9293): the port that it goes to, and what it carries, when it comes from port.
func answer(packet []byte, port uint16) (to uint16, payload []byte, ok bool) {
	const leastIP, leastTCP = 20, 20
	if len(packet) < leastIP || packet[0]>>4 != 4 || packet[9] != unix.IPPROTO_TCP {
		return 0, nil, false
	}
	header := int(packet[0]&15) * 4
	if header < leastIP || len(packet) < header+leastTCP {
		return 0, nil, false
	}
	tcp := packet[header:]
	offset := int(tcp[12]>>4) * 4
	if binary.BigEndian.Uint16(tcp) != port || offset < leastTCP || len(tcp) <= offset {
		return 0, nil, false
	}
	return binary.BigEndian.Uint16(tcp[2:]), tcp[offset:], true
}

func (w *wireTap) keep(text []byte, fresh int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes += int64(fresh)
	for _, token := range tokenForm.FindAll(text, -1) {
		if len(w.seen) < maxIdentifiers {
			w.seen[string(token)] = true
		}
	}
}

// found is what the tap heard, sorted, and how many bytes it heard in all.
func (w *wireTap) found() (tokens []string, heard int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.seen)), w.bytes, w.err
}

// listenToBrowser taps every endpoint that a browser listens on, from here to the end of its session.
func (a *Attempt) listenToBrowser(ports []uint16) error {
	for _, port := range ports {
		w, err := tapWire(port)
		if err != nil {
			return a.fault("environment", "listen to the browser's answers: %v", err)
		}
		stop := make(chan struct{})
		go w.listen(stop)
		a.taps = append(a.taps, tapped{w, stop})
	}
	return nil
}

// tapped is a tap that listens, and what ends it.
type tapped struct {
	wire *wireTap
	stop chan struct{}
}
