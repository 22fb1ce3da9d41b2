package process

import (
	"fmt"
	"syscall"
)

// Identity names one process for as long as the machine runs.
type Identity struct {
	// PID is the number in the PID namespace of this process.
	PID int `json:"pid"`
	// Start is the start time in clock ticks since boot: field 22 of /proc/PID/stat.
	Start uint64 `json:"start"`
	// Executable is the target of /proc/PID/exe. Empty when it may not be read (another user's
	// process); then pid and start time alone decide.
	Executable string `json:"executable"`
}

// String gives pid, start time and executable.
func (i Identity) String() string { return fmt.Sprintf("%d@%d %s", i.PID, i.Start, i.Executable) }

// Observe returns the identity of the process that has this pid now. A zombie is ErrGone.
func Observe(pid int) (Identity, error) {
	e, err := readEntry(pid)
	if err != nil {
		return Identity{}, err
	}
	if e.dead() {
		return Identity{}, fmt.Errorf("pid %d: %w", pid, ErrGone)
	}
	return e.Identity, nil
}

// Alive reports whether this very process still runs: same pid, same start time, and the same
// executable where both are known. A zombie is not alive.
func (i Identity) Alive() bool {
	now, err := Observe(i.PID)
	return err == nil && i.matches(now)
}

// Now observes the same process again, following an exec: pid and start time stay, the
// executable may have changed (a wrapper script that became the program). ErrGone when the
// process ended.
func (i Identity) Now() (Identity, error) {
	now, err := Observe(i.PID)
	if err != nil {
		return Identity{}, err
	}
	if now.Start != i.Start {
		return Identity{}, fmt.Errorf("pid %d started at %d, want %d: %w", i.PID, now.Start, i.Start, ErrGone)
	}
	return now, nil
}

// Kill sends a signal if, and only if, the process is still the named one. The process is
// held by a descriptor while it is compared, so a pid that changes hands in between is not hit.
// ErrGone when it is not the named process any more.
func (i Identity) Kill(sig syscall.Signal) error { return killExact(i, sig) }

func (i Identity) matches(now Identity) bool {
	if i.PID != now.PID || i.Start != now.Start {
		return false
	}
	return i.Executable == "" || now.Executable == "" || i.Executable == now.Executable
}

// Entry is one process as the kernel's table shows it.
type Entry struct {
	Identity
	Parent  int // pid of the parent now; orphans have another parent than they were born with
	Group   int
	Session int
	UID     int // real uid, -1 when unreadable
	State   byte
}

func (e Entry) dead() bool { return e.State == 'Z' || e.State == 'X' }

// Tree returns the living descendants of pid by present parentage, parents before children.
// Orphans that were handed to another parent are not in it: see Claim.
func Tree(pid int) ([]Entry, error) {
	all, err := Scan()
	if err != nil {
		return nil, err
	}
	return descendants(all, map[int]bool{pid: true}), nil
}

func descendants(all []Entry, roots map[int]bool) []Entry {
	children := map[int][]Entry{}
	for _, e := range all {
		children[e.Parent] = append(children[e.Parent], e)
	}
	seen := map[int]bool{}
	var queue []int
	for pid := range roots {
		queue = append(queue, pid)
		seen[pid] = true
	}
	var out []Entry
	for len(queue) > 0 {
		pid := queue[0]
		queue = queue[1:]
		for _, c := range children[pid] {
			if seen[c.PID] {
				continue
			}
			seen[c.PID] = true
			queue = append(queue, c.PID)
			if !c.dead() {
				out = append(out, c)
			}
		}
	}
	return out
}
