package attempt

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/engine-acceptance/acceptance/evidence"
)

// impostor listens where the browser listened, and counts whoever comes.
type impostor struct {
	listener net.Listener
	at       netip.AddrPort
	asked    atomic.Int64
}

// TakeEndpoint takes the endpoint of the browser over from outside: its listening socket is copied out of the browser by pidfd_getfd and shut,
// and then this process, which is not the browser, listens at the same address. The browser, its window and the engine's connection to it
// live on.
func (a *Attempt) TakeEndpoint(_ context.Context) error {
	tree, err := a.Stage.Host.Tree()
	if err != nil || len(tree) == 0 {
		return a.fault("harness", "list the engine's processes: %v", err)
	}
	held, err := listenersOf(tree[1:])
	if err != nil {
		return a.fault("harness", "list the browser's listeners: %v", err)
	}
	if len(held) != 1 {
		return a.fault("environment", "the browser listens at %d addresses, want one", len(held))
	}
	table, err := tcpTable()
	if err != nil {
		return a.fault("harness", "read the kernel's socket table: %v", err)
	}
	sockets := socketsOf(held[0].pid)
	for _, line := range table {
		if fd, ok := sockets[line.inode]; ok && line.state == tcpListen {
			if err := shutdown(held[0].pid, fd); err != nil {
				return a.fault("environment", "shut the browser's listener: %v", err)
			}
		}
	}
	i := &impostor{at: held[0].addr}
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if i.listener, err = net.Listen("tcp", held[0].addr.String()); err == nil {
			break
		}
		if time.Now().After(end) {
			return a.fault("environment", "listen where the browser listened: %v", err)
		}
	}
	go i.serve()
	a.impostors = append(a.impostors, i)
	return nil
}

// serve takes every connection and answers none.
func (i *impostor) serve() {
	for {
		c, err := i.listener.Accept()
		if err != nil {
			return
		}
		i.asked.Add(1)
		_ = c.Close()
	}
}

// endImpostors closes what listened in the browser's place, and says how often it was asked.
func (a *Attempt) endImpostors() {
	for _, i := range a.impostors {
		// A control: one connection of our own must be counted, or the count means nothing.
		before := i.asked.Load()
		counted := false
		if c, err := net.DialTimeout("tcp", i.listener.Addr().String(), time.Second); err == nil {
			_ = c.Close()
			for range 200 {
				if counted = i.asked.Load() > before; counted {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
		}
		_ = i.listener.Close()
		if !counted {
			_ = a.fault("harness", "the listener in the browser's place does not count who comes")
		}
		a.Fact(evidence.FactNotAsked, before == 0, int(before), fmt.Sprintf("%d connections", before))
	}
	a.impostors = nil
}
