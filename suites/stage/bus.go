package stage

import (
	"slices"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/recorder/desktop"
	"github.com/engine-acceptance/acceptance/suites/process"
)

// OwnMessage reports whether a message over a bus is nobody's action on another one's application: the engine and its browser speak among
// themselves, or the sender is a program of the person, or one of the services that the bus itself started.
func (s *Stage) OwnMessage(ev desktop.Event) bool {
	switch s.Actor(ev) {
	case evidence.ActorEngine, evidence.ActorBrowser:
		return ev.PeerPID != 0 && (ev.PeerPID == s.Host.Identity().PID || s.ofEngine(ev.PeerPID))
	case evidence.ActorStranger:
		return s.ofDecoy(ev.PID) || s.ofBus(ev.PID)
	}
	return false
}

// ofDecoy reports whether a process belongs to a program of the person.
func (s *Stage) ofDecoy(pid int) bool {
	all, err := process.Scan()
	if err != nil {
		return false
	}
	i := slices.IndexFunc(all, func(e process.Entry) bool { return e.PID == pid })
	s.mu.Lock()
	defer s.mu.Unlock()
	return i >= 0 && slices.ContainsFunc(s.decoys, func(d *decoy) bool { return d.proc.Identity().PID == all[i].Session })
}

// ofBus reports whether a process is a service that the session bus started.
func (s *Stage) ofBus(pid int) bool {
	tree, err := process.Tree(s.Desk.BusPID())
	return err == nil && slices.ContainsFunc(tree, func(e process.Entry) bool { return e.PID == pid })
}
