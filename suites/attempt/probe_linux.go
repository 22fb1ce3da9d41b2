package attempt

import (
	"context"
	"time"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/recorder/desktop"
	"github.com/engine-acceptance/acceptance/suites/process"
)

// Probes watches what the engine's process tree asks of the X server and whom it connects to (contract S10).
type Probes struct {
	a *Attempt
	// asked counts requests and connections to the X server by process; 0 are clients that were gone before the server could be asked for theirs.
	asked       map[int]int
	clients     int
	connections int
	peak        int
	samples     int
	stop        chan struct{}
	done        chan struct{}
}

// sample is how often the engine's sockets are looked at while it must not connect. A connection that lives shorter is not seen; the X
// server's own record has no such limit.
const sample = time.Millisecond

// WatchProbes begins to watch.
func (a *Attempt) WatchProbes(ctx context.Context) (*Probes, error) {
	from, err := a.Stage.Log.Barrier(ctx)
	if err != nil {
		return nil, a.fault("harness", "barrier on the desk's event log: %v", err)
	}
	a.deskEvents(from, "") // what was before is nobody's probe
	tree, err := a.Stage.Host.Tree()
	if err != nil {
		return nil, a.fault("harness", "list the engine's processes: %v", err)
	}
	p := &Probes{a: a, asked: map[int]int{}, stop: make(chan struct{}), done: make(chan struct{})}
	if p.clients, err = a.Stage.ClientsOf(ctx, tree); err != nil {
		return nil, a.fault("harness", "count the engine's X clients: %v", err)
	}
	if p.connections, err = connectionsOf(tree); err != nil {
		return nil, a.fault("harness", "count the engine's connections: %v", err)
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
		n, err := connectionsOf(tree)
		if err == nil {
			p.peak = max(p.peak, n)
			p.samples++
		}
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
	}
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
	a.Fact(evidence.FactNoConnections, p.samples > 0 && p.peak <= p.connections, p.peak-p.connections, "")
	return nil
}

// FactBystander observes whether the person's own program still is the process that was started.
func (a *Attempt) FactBystander(product string) {
	a.Fact(evidence.FactBystanderAlive, a.Stage.DecoyAlive(product), 1, product)
}
