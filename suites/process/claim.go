package process

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"
)

// Claim says which processes belong to a desk. A process is claimed when it is a root or a
// descendant of one, when it is in a session that a living root leads, when its environment
// has one of the homes, or when its real uid is one of the uids. This process is never claimed,
// nor are those in Except.
type Claim struct {
	Roots  []Identity
	Homes  []string // exact values of HOME, private to the desk; never a person's real home
	UIDs   []int    // uids that exist for this desk only; 0 and our own uid are ignored
	Except []Identity
}

// Find lists the claimed processes that live now.
func (c Claim) Find() ([]Entry, error) {
	all, err := Scan()
	if err != nil {
		return nil, err
	}
	self := os.Getpid()
	byPID := map[int]Entry{}
	for _, e := range all {
		byPID[e.PID] = e
	}
	roots := map[int]bool{}
	sessions := map[int]uint64{}
	for _, r := range c.Roots {
		// A root that has gone says nothing any more: its number may lead another session by now.
		if now, there := byPID[r.PID]; there && now.Start == r.Start {
			roots[r.PID] = true
			if now.Session == r.PID {
				sessions[r.PID] = r.Start
			}
		}
	}
	found := map[int]Entry{}
	for pid := range roots {
		found[pid] = byPID[pid]
	}
	for _, e := range all {
		if start, ok := sessions[e.Session]; ok && e.Start >= start {
			found[e.PID] = e
		} else if e.UID > 0 && e.UID != os.Getuid() && slices.Contains(c.UIDs, e.UID) {
			found[e.PID] = e
		} else if len(c.Homes) > 0 && slices.Contains(c.Homes, homeOf(e.PID)) {
			found[e.PID] = e
		}
	}
	members := map[int]bool{}
	for pid := range found {
		if pid != self {
			members[pid] = true
		}
	}
	for _, e := range descendants(all, members) {
		found[e.PID] = e
	}
	var out []Entry
	for _, e := range found {
		if e.PID == self || e.dead() || slices.ContainsFunc(c.Except, e.Identity.matches) {
			continue
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return a.PID - b.PID })
	return out, nil
}

// End asks the claimed processes to end (SIGTERM), waits up to grace, then kills them, and looks
// again until nothing is claimed any more, since a dying tree may still fork. A grace of zero kills
// at once. LeftError names what lives when ctx ends, or after 3 s of killing.
func (c Claim) End(ctx context.Context, grace time.Duration) error {
	found, err := c.Find()
	if err != nil || len(found) == 0 {
		return err
	}
	if grace > 0 {
		for _, e := range found {
			_ = e.Kill(syscall.SIGTERM)
		}
		until := time.Now().Add(grace)
		for len(found) > 0 && time.Now().Before(until) {
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				break
			}
			if found, err = c.Find(); err != nil {
				return err
			}
		}
	}
	// Killing goes on when ctx has ended, for it is the end of a desk that must not stay behind.
	until := time.Now().Add(3 * time.Second)
	for len(found) > 0 {
		for _, e := range found {
			if err := e.Kill(syscall.SIGKILL); err != nil && !errors.Is(err, ErrGone) {
				return err
			}
		}
		if time.Now().After(until) {
			return &LeftError{Left: identities(found)}
		}
		_ = pause(context.WithoutCancel(ctx), 5*time.Millisecond)
		if found, err = c.Find(); err != nil {
			return err
		}
	}
	return nil
}

func identities(entries []Entry) []Identity {
	out := make([]Identity, len(entries))
	for i, e := range entries {
		out[i] = e.Identity
	}
	return out
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
