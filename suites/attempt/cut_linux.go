package attempt

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/engine-acceptance/acceptance/evidence"
)

// Cut cuts every connection between the engine's own process and a listener of its browser, from outside: the socket is copied out of the
// engine by pidfd_getfd and shut down, so that no seam inside the engine is needed (contract G1).
//
// Inside a block there may be nothing to cut, because the round before was refused a new connection: that is no fact of its own.
func (a *Attempt) Cut(ctx context.Context) error {
	tree, err := a.Stage.Host.Tree()
	if err != nil || len(tree) == 0 {
		return a.fault("harness", "list the engine's processes: %v", err)
	}
	listening, err := listenersOf(tree[1:])
	if err != nil {
		return a.fault("harness", "list the browser's listeners: %v", err)
	}
	for _, i := range a.impostors {
		// Where another listens in the browser's place, the browser's connections still are at that port.
		listening = append(listening, listener{addr: i.at})
	}
	table, err := tcpTable()
	if err != nil {
		return a.fault("harness", "read the kernel's socket table: %v", err)
	}
	held := socketsOf(tree[0].PID)
	cut := 0
	for _, line := range table {
		fd, ours := held[line.inode]
		if !ours || line.state != tcpEstablished {
			continue
		}
		for _, l := range listening {
			if l.addr.Port() == line.remote.Port() && line.remote.Addr().IsLoopback() {
				if err := shutdown(tree[0].PID, fd); err != nil {
					return a.fault("environment", "cut the engine's connection: %v", err)
				}
				cut++
			}
		}
	}
	if cut == 0 && laneOf(ctx) != nil {
		return nil
	}
	a.Fact(evidence.FactCut, cut > 0, cut, "")
	return nil
}

// shutdown copies descriptor fd of a process and shuts the connection behind it down for both.
func shutdown(pid, fd int) error {
	end, err := copied(pid, fd)
	if err != nil {
		return err
	}
	defer unix.Close(end)
	if err := unix.Shutdown(end, unix.SHUT_RDWR); err != nil {
		return fmt.Errorf("shutdown: %w", err)
	}
	return nil
}
