package attempt

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/recorder/desktop"
	"github.com/engine-acceptance/acceptance/suites/process"
)

// Probes watches what the engine's process tree asks of the X server and whom it connects to (contract S10).
type Probes struct {
	a *Attempt
	// asked counts requests and connections to the X server by process; 0 are clients that were gone before the server could be asked for theirs.
	asked   map[int]int
	clients int
	// before are the sockets that the tree held before, by inode; peak is how many TCP sockets beyond those it was seen to hold at once.
	before  map[string]bool
	peak    int
	samples int
	// endpoint is the port that the decoy listens on, 0 when it has none; touched is how many sockets of it were seen at once, beside the listener.
	endpoint uint16
	touched  int
	stop     chan struct{}
	done     chan struct{}
}

// sample is how often the engine's sockets are looked at while it must not connect. A connection that lives shorter is not seen; the X
// server's own record has no such limit.
const sample = time.Millisecond

// WatchProbes begins to watch. Product names the decoy that the engine is asked about, empty for none.
func (a *Attempt) WatchProbes(ctx context.Context, product string) (*Probes, error) {
	from, err := a.Stage.Log.Barrier(ctx)
	if err != nil {
		return nil, a.fault("harness", "barrier on the desk's event log: %v", err)
	}
	a.deskEvents(from, "") // what was before is nobody's probe
	tree, err := a.Stage.Host.Tree()
	if err != nil {
		return nil, a.fault("harness", "list the engine's processes: %v", err)
	}
	p := &Probes{a: a, asked: map[int]int{}, before: map[string]bool{}, stop: make(chan struct{}), done: make(chan struct{})}
	if p.clients, err = a.Stage.ClientsOf(ctx, tree); err != nil {
		return nil, a.fault("harness", "count the engine's X clients: %v", err)
	}
	for _, e := range tree {
		for inode := range socketsOf(e.PID) {
			p.before[inode] = true
		}
	}
	if product != "" {
		if p.endpoint, err = a.endpointOf(product); err != nil {
			return nil, a.fault("environment", "find the endpoint of the person's %s: %v", product, err)
		}
	}
	a.probes = p
	go p.watch(tree)
	return p, nil
}

// saw takes an event of the desk as the windows of time are collected, for the log forgets what was collected.
func (p *Probes) saw(ev desktop.Event) {
	if ev.Kind.IsRequest() || ev.Kind == desktop.ClientStarted || ev.Kind == desktop.EventsDropped {
		p.asked[ev.PID]++
	}
}

func (p *Probes) watch(tree []process.Entry) {
	defer close(p.done)
	tick := time.NewTicker(sample)
	defer tick.Stop()
	for {
		if n, err := p.fresh(tree); err == nil {
			p.peak = max(p.peak, n)
			p.samples++
		}
		if p.endpoint != 0 && p.samples%endpointEvery == 0 {
			if n, err := socketsAt(p.endpoint); err == nil {
				p.touched = max(p.touched, n)
			}
		}
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
	}
}

// endpointEvery is how many samples lie between two looks at the sockets of the decoy's endpoint: the kernel takes milliseconds to list all
// sockets, and one that was closed in between is still listed when the watch stops.
const endpointEvery = 20

// fresh counts the TCP sockets that the tree holds and did not hold before. The kernel's table of all sockets is read only where there is a
// socket that might be one.
func (p *Probes) fresh(tree []process.Entry) (int, error) {
	found := map[string]bool{}
	for _, e := range tree {
		for inode := range socketsOf(e.PID) {
			if !p.before[inode] {
				found[inode] = true
			}
		}
	}
	if len(found) == 0 {
		return 0, nil
	}
	table, err := tcpTable()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, line := range table {
		if found[line.inode] && line.state != tcpListen {
			n++
		}
	}
	return n, nil
}

// Stop ends the watch and observes what was seen. Requests count from what the X server recorded; an engine with an X connection that was
// open before the call proves nothing by its silence there, so it must have none.
func (p *Probes) Stop(ctx context.Context) error {
	a := p.a
	close(p.stop)
	<-p.done
	tree, err := a.Stage.Host.Tree()
	if err != nil {
		return a.fault("harness", "list the engine's processes: %v", err)
	}
	clients, err := a.Stage.ClientsOf(ctx, tree)
	if err != nil {
		return a.fault("harness", "count the engine's X clients: %v", err)
	}
	to, err := a.Stage.Log.Barrier(ctx)
	if err != nil {
		return a.fault("harness", "barrier on the desk's event log: %v", err)
	}
	a.deskEvents(to, "")
	a.probes = nil
	// A client that was gone before the server could be asked has no process; with nobody else starting clients it counts as the engine's.
	requests := p.asked[0]
	for _, e := range tree {
		requests += p.asked[e.PID]
	}
	a.Fact(evidence.FactNoRequests, clients == 0 && p.clients == 0 && requests == 0, requests+clients, "")
	a.Fact(evidence.FactNoConnections, p.samples > 0 && p.peak == 0, p.peak, "")
	if p.endpoint == 0 {
		return nil
	}
	n, err := socketsAt(p.endpoint)
	if err != nil {
		return a.fault("harness", "read the kernel's socket table: %v", err)
	}
	p.touched = max(p.touched, n)
	// The same look must find a connection that is there, or it proves nothing.
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", p.endpoint))
	if err != nil {
		return a.fault("environment", "connect to the endpoint of the person's browser: %v", err)
	}
	defer c.Close()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it ends without a trace, so that the next look does not find it
	}
	table, err := tcpTable()
	ours := netip.AddrPort{}
	if err == nil {
		ours, err = netip.ParseAddrPort(c.LocalAddr().String())
	}
	if err != nil || !slices.ContainsFunc(table, func(line tcpLine) bool { return line.local == ours }) {
		return a.fault("harness", "our own connection to the endpoint was not seen: %v", err)
	}
	a.Fact(evidence.FactEndpointUntouched, p.touched == 0, p.touched, "")
	return nil
}

// socketsAt counts the sockets of a port beside its listener, those of connections that were closed a moment ago included: the side that
// closed first keeps one for a minute.
func socketsAt(port uint16) (int, error) {
	table, err := tcpTable()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, line := range table {
		if line.state != tcpListen && (line.local.Port() == port || line.remote.Port() == port) {
			n++
		}
	}
	return n, nil
}

// endpointOf is the port that a running decoy listens on, 0 when it listens on none.
func (a *Attempt) endpointOf(product string) (uint16, error) {
	w, err := a.Decoy(product)
	if err != nil {
		return 0, err
	}
	held, err := listenersOf([]process.Entry{{Identity: w.Owner}})
	if err != nil || len(held) == 0 {
		return 0, err
	}
	return held[0].addr.Port(), nil
}

// FactBystander observes whether the person's own program still is the process that was started.
func (a *Attempt) FactBystander(product string) {
	a.Fact(evidence.FactBystanderAlive, a.Stage.DecoyAlive(product), 1, product)
}
