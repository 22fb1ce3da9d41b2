package attempt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/fixtures"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/recorder/desktop"
	"github.com/engine-acceptance/acceptance/redaction"
	"github.com/engine-acceptance/acceptance/suites/stage"
)

// End closes the row on the desk: the session where it is the row's own, the person's account, the guards' account, the film's last picture.
// After it the desk is free for the next row. What remains needs no desk and is done by [Attempt.Finish], on any goroutine.
func (a *Attempt) End(ctx context.Context) {
	if a.ended {
		return
	}
	a.ended = true
	defer a.reviveEngine(ctx)
	if a.pages == nil {
		return
	}
	if err := a.collect(ctx); err == nil {
		a.personAccount(ctx)
	}
	if err := a.Stage.PersonPauses(ctx); err != nil {
		_ = a.fault("harness", "the person: %v", err)
	}
	a.step = "end"
	a.still(ctx, "after.png")
	a.phase = evidence.PhaseCleanup
	// Overruns count up to here: what the controls commit next is either seen or missed, one by one.
	atEnd := a.Stage.Log.Health()
	a.leave(ctx)
	a.wireAccount()
	a.endImpostors()
	// The arrangement may not have come to its end, or the row took the focus from the person for good: that was seen, and is over.
	if err := a.Stage.TakeBack(ctx); err != nil {
		_ = a.fault("environment", "the person's window does not get the focus: %v", err)
	}
	if err := a.controls(ctx, "after"); err != nil && !errors.Is(err, ErrStopped) {
		_ = a.fault("harness", "controls: %v", err)
	}
	a.guards(atEnd)
	a.cutFilm()
	for _, product := range a.Contract.Desk.Decoys {
		a.FactBystander(product)
	}
	if err := a.Stage.EndDecoys(ctx); err != nil {
		_ = a.fault("harness", "end the person's programs: %v", err)
	}
	a.trapAccount(ctx)
	a.listenersAccount()
	a.profilesAccount(ctx)
	a.artifacts(ctx) // now, for the next row's browser will hold what its pages give it
	a.tap, a.tapOverrun = a.Stage.Host.Take()
	a.gapNS = a.Stage.Heart.MaxGapNS()
}

// Finish closes the row's evidence: the film is decoded whole, what the engine wrote and what we wrote is scanned. It returns everything that
// was observed; the error is that nothing more could be written. [Attempt.End] comes first.
func (a *Attempt) Finish(ctx context.Context) ([]evidence.Observation, error) {
	if a.pages != nil {
		a.stopFilm(ctx)
		a.Stage.Pages.EndRow(a.pages.ID())
		a.scans(ctx)
		a.observe(evidence.Observation{Kind: evidence.KindHeartbeat, Heartbeat: &evidence.Heartbeat{MaxGapNS: a.gapNS}})
	}
	// Of a row that never began, the fault that says why is all there is to keep.
	a.observe(evidence.Observation{Kind: evidence.KindEnd, End: &evidence.End{}})
	return a.kept, a.writeErr
}

// reviveEngine says whether the engine still runs, and starts it anew when it does not, or was started on a machine of this row's own, so
// that the next row has one. An engine that the row killed is no news; any other that is gone ended by itself, and no call may have been there
// to tell of it.
func (a *Attempt) reviveEngine(ctx context.Context) {
	gone := false
	select {
	case <-a.Stage.Host.Gone():
		gone = true
	default:
	}
	if !a.engineKilled {
		a.Fact(evidence.FactEngineLives, !gone, 1, "")
	}
	if !gone && a.Contract.Desk.Machine == "" {
		return
	}
	if err := a.Stage.StartEngine(ctx); err != nil {
		_ = a.fault("harness", "start the engine anew: %v", err)
	}
}

// leave ends what the row began: its session and browser. A shared browser keeps its window and tabs for the next row that shares it, which
// puts them in order (see [Attempt.tidy]); one that got further windows, or that shows a tab which a dialog holds up, is given up.
func (a *Attempt) leave(ctx context.Context) {
	a.thawLast()
	a.show(ctx)
	switch {
	case a.Contract.Launch == matrix.LaunchShared && a.Stage.Shared != nil:
		held := a.pages.HeldUp()
		a.Stage.Shared.HeldUp = len(held) > 0
		shown := slices.ContainsFunc(held, func(d fixtures.DocumentID) bool { return a.tabOf[d] == a.pageName(0, 1, 1) })
		if len(a.windows) > 1 || shown {
			if err := a.Stage.EndShared(ctx); err != nil {
				_ = a.fault("harness", "%v", err)
			}
		}
	default:
		for _, id := range append([]string{a.session}, values(a.sessions)...) {
			if _, has := a.launches[id]; has {
				_, _ = a.EndSession(ctx, id)
			}
		}
	}
	if err := a.collect(ctx); err != nil && !a.guardsAlive() {
		return
	}
}

func values(m map[string]string) []string {
	var out []string
	for _, v := range m {
		out = append(out, v)
	}
	slices.Sort(out)
	return out
}

// controls commits one round of positive controls and says which of them every responsible channel saw.
func (a *Attempt) controls(ctx context.Context, when string) error {
	from, err := a.Stage.Log.Barrier(ctx)
	if err != nil {
		return err
	}
	a.deskEvents(from, "")
	round, err := a.Stage.Controls.Commit(ctx, a.Stage.Sentinel.Window())
	if err != nil {
		return err
	}
	if len(round.Differences) > 0 {
		return fmt.Errorf("the controls left the desk changed: %v", round.Differences)
	}
	if err := a.Stage.ManagerTrip(ctx); err != nil {
		return err
	}
	to, err := a.Stage.Log.Barrier(ctx)
	if err != nil {
		return err
	}
	c := &evidence.Controls{When: when, TookNS: round.Took.Nanoseconds()}
	seen := map[string]bool{}
	for _, ev := range a.Stage.Log.Between(from, to) {
		_, reason := desktop.Violation(ev)
		actor := a.Stage.Actor(ev)
		if reason != "" && (actor == evidence.ActorControls || actor == evidence.ActorUnknown || actor == evidence.ActorWindowManager) {
			seen[string(reason)] = true
		}
	}
	for _, act := range round.Acts {
		kind := string(act.Kind)
		if slices.Contains(c.Committed, kind) {
			continue
		}
		c.Committed = append(c.Committed, kind)
		if !seen[kind] {
			c.Missed = append(c.Missed, kind)
		}
	}
	if when == "before" {
		once := a.Stage.Once
		a.observe(evidence.Observation{Kind: evidence.KindControls, Step: when, Controls: &once})
	}
	a.observe(evidence.Observation{Kind: evidence.KindControls, Step: when, Controls: c})
	a.deskMark = to
	a.Stage.Log.Release(to)
	return nil
}

// personAccount compares what the person did since the row began with what reached the sentinel.
func (a *Attempt) personAccount(ctx context.Context) {
	p, err := a.Stage.PersonAccount(ctx)
	if err != nil {
		_ = a.fault("harness", "the person's account: %v", err)
		return
	}
	a.observe(evidence.Observation{Kind: evidence.KindPerson, Person: &p})
}

// guards observes the health of every channel, the sentinel's own log included.
func (a *Attempt) guards(overrunsBefore []desktop.ChannelHealth) {
	for i, h := range a.Stage.Log.Health() {
		// The log lives longer than a row: what counts is what happened since the row began.
		was := a.health[i]
		errs, overruns, dropped := h.Errors-was.Errors, overrunsBefore[i].Overruns-was.Overruns, h.Dropped-was.Dropped
		g := &evidence.Guard{Channel: h.Channel.String(), Alive: h.Alive && errs == 0, Events: int(h.Events - was.Events), Dropped: int(dropped + overruns)}
		if !g.Alive || g.Dropped > 0 {
			g.Reason = fmt.Sprintf("cause %q, %d errors, %d overruns", h.Cause, errs, overruns)
		}
		if n := a.excused[h.Channel]; n > 0 {
			if g.Reason != "" {
				g.Reason += "; "
			}
			g.Reason += fmt.Sprintf("during launch and arrangement %d requests or more may have been missed", n)
		}
		a.observe(evidence.Observation{Kind: evidence.KindGuard, Guard: g})
	}
	g := &evidence.Guard{Channel: "sentinel", Alive: true, Events: int(a.Stage.Sentinel.Mark())}
	if err := errors.Join(a.Stage.Sentinel.Err(), a.Stage.Bystander.Err()); err != nil {
		g.Alive, g.Reason = false, err.Error()
	}
	a.observe(evidence.Observation{Kind: evidence.KindGuard, Guard: g})
}

// scans looks for the run's canaries in what the engine wrote, before any redaction of ours, and in what we wrote.
func (a *Attempt) scans(ctx context.Context) {
	streams := a.tap
	if a.tapOverrun {
		_ = a.fault("harness", "the engine wrote more than the tap keeps")
	}
	identifiers := a.identifiers()
	raw := &evidence.Scan{What: "engine_raw"}
	if scanner, err := redaction.NewScanner(append(slices.Clone(a.canaries), identifiers...)); err != nil {
		_ = a.fault("harness", "prepare the scan: %v", err)
	} else {
		for _, name := range sortedNames(streams) {
			found, err := scanner.Scan(ctx, bytes.NewReader(streams[name]), name)
			if err != nil {
				_ = a.fault("harness", "scan the engine's %s: %v", name, err)
				continue
			}
			raw.Files++
			raw.Bytes += int64(len(streams[name]))
			for _, f := range found {
				if name == "results" && askedFor[f.Channel] {
					continue
				}
				raw.Findings = append(raw.Findings, scanFinding(f))
			}
			raw.Findings = append(raw.Findings, a.portsIn(name, streams[name])...)
		}
		missed, err := scanner.Control(ctx)
		raw.ControlFound = err == nil && len(missed) == 0
	}
	a.observe(evidence.Observation{Kind: evidence.KindScan, Scan: raw})
	a.text.engineLog(streams["stderr"])
	if err := a.text.add(a.out); err != nil {
		_ = a.fault("harness", "write the row's views: %v", err)
	}
	ours := &evidence.Scan{What: "bundle"}
	scanner, err := redaction.NewScanner(a.canaries)
	if err != nil {
		_ = a.fault("harness", "prepare the scan: %v", err)
	} else {
		report, err := scanner.ScanDir(ctx, a.dir, redaction.ScanOptions{})
		if err != nil {
			_ = a.fault("harness", "scan the row's files: %v", err)
		}
		ours.Files, ours.Bytes, ours.ControlFound = report.Files, report.Bytes, report.ControlFound
		for _, f := range report.Findings {
			ours.Findings = append(ours.Findings, scanFinding(f))
		}
	}
	a.observe(evidence.Observation{Kind: evidence.KindScan, Scan: ours})
}

// askedFor are the channels whose content a result holds because the caller asks for it: titles of tabs and names of controls. In anything
// else that the engine writes they are leaks like all others.
var askedFor = map[redaction.Channel]bool{"title": true, "field": true}

func scanFinding(f redaction.Finding) evidence.ScanFinding {
	return evidence.ScanFinding{Canary: f.CanaryID, Channel: string(f.Channel), Encoding: string(f.Encoding), Where: fmt.Sprintf("%s at %d", f.File, f.Offset)}
}

func sortedNames(m map[string][]byte) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// SeatDecoy starts an ordinary program of the person and waits for its window.
func (a *Attempt) seatDecoy(ctx context.Context, product string) error {
	if err := a.Stage.SeatDecoy(ctx, product); err != nil {
		return a.fault("environment", "start the person's %s: %v", product, err)
	}
	// A browser that has just shown its window raises it once more: the person begins when that is over.
	if _, err := a.Stage.Log.Settle(ctx, seated); err != nil && !a.guardsAlive() {
		return a.fault("harness", "settle the desk: %v", err)
	}
	return nil
}

// seated is how long the desk must be still after a program of the person has shown its window: a Chromium was seen to raise it again half
// a second later.
const seated = 600 * time.Millisecond

// Process finds a process that no engine may attach to: one that has ended, the engine's own, another user's.
func (a *Attempt) Process(ctx context.Context, which string) (int, error) {
	switch which {
	case "dead":
		pid, err := a.Stage.DeadProcess(ctx)
		if err != nil {
			return 0, a.fault("harness", "start a process that ends at once: %v", err)
		}
		return pid, nil
	case "own":
		return a.Stage.Host.Identity().PID, nil
	case "foreign":
		pid, err := a.Stage.AnotherUsers()
		if err != nil {
			return 0, a.fault("environment", "find another user's process: %v", err)
		}
		return pid, nil
	}
	return 0, fmt.Errorf("no process is called %q", which)
}

// Decoy is the running decoy of a product: its process and its window.
func (a *Attempt) Decoy(product string) (*stage.Window, error) { return a.Stage.DecoyWindow(product) }
