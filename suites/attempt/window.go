package attempt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/fixtures"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/recorder/desktop"
)

// closeWindow closes a window of time: the pages echo, the window manager answers, every guard channel is drained, and then the desk is
// still for [Quiet]. Events that come later are charged to the row before, never dropped.
func (a *Attempt) closeWindow(ctx context.Context) error {
	var silent *fixtures.EchoError
	if err := a.pages.Echo(ctx); err != nil && !errors.As(err, &silent) {
		return a.fault("harness", "echo of the pages: %v", err)
	}
	if err := a.Stage.ManagerTrip(ctx); err != nil {
		return a.fault("environment", "round trip through the window manager: %v", err)
	}
	if _, err := a.Stage.Log.Settle(ctx, Quiet); err != nil {
		// A desk that does not come to rest is no fault of ours while the guards live: what keeps it moving is in the log.
		if !a.guardsAlive() {
			return a.fault("harness", "settle the desk: %v", err)
		}
	}
	if err := a.pages.Echo(ctx); err != nil && !errors.As(err, &silent) {
		return a.fault("harness", "echo of the pages: %v", err)
	}
	return a.collect(ctx)
}

// closeQuickly closes the window of time of a call that arranges the desk: the pages flush what they have to report, and the guards are
// drained. Nothing waits for the desk to be still; what comes later is collected with the next call, in the same phase.
func (a *Attempt) closeQuickly(ctx context.Context) error {
	var silent *fixtures.EchoError
	if err := a.pages.Echo(ctx); err != nil && !errors.As(err, &silent) {
		return a.fault("harness", "echo of the pages: %v", err)
	}
	return a.collect(ctx)
}

func (a *Attempt) guardsAlive() bool {
	return !slices.ContainsFunc(a.Stage.Log.Health(), func(h desktop.ChannelHealth) bool { return !h.Alive })
}

// collect turns what the journal and the event log hold since the last time into observations.
func (a *Attempt) collect(ctx context.Context) error {
	mark, err := a.Stage.Log.Barrier(ctx)
	if err != nil {
		return a.fault("harness", "barrier on the desk's event log: %v", err)
	}
	a.deskEvents(mark, "")
	a.journalEvents()
	return nil
}

// deskEvents observes violation-class events up to mark. by overrides the actor of effects for what the harness itself just did.
func (a *Attempt) deskEvents(mark desktop.Mark, by evidence.Actor) {
	actors := map[int]evidence.Actor{} // by process: to find a stranger's, all processes are looked through
	for _, ev := range a.Stage.Log.Between(a.deskMark, mark) {
		if a.probes != nil {
			a.probes.saw(ev)
		}
		actor, known := actors[ev.PID]
		if !known {
			actor = a.Stage.Actor(ev)
			actors[ev.PID] = actor
		}
		a.text.desktop(ev, actor)
		requirement, reason := desktop.Violation(ev)
		if reason == "" || ev.Kind.IsMessage() && a.Stage.OwnMessage(ev) {
			continue
		}
		if ev.Kind == desktop.WorkspaceChanged && (ev.Role == desktop.Target || ev.Role == desktop.Sibling) {
			// The window manager writes and deletes a window's desktop number when it manages and withdraws it. Who asks for another desktop is
			// seen by the request.
			continue
		}
		if by != "" && (actor == evidence.ActorUnknown || actor == evidence.ActorWindowManager) {
			actor = by
		}
		if evidence.ChargeOf(actor, ev.Request != "") == evidence.ChargeNobody {
			continue
		}
		if requirement == "" && !a.firstRead(actor, ev) {
			continue
		}
		a.observe(evidence.Observation{Kind: evidence.KindDesk, MonoNS: ev.MonoNS, Desk: &evidence.Desk{EventNS: ev.MonoNS,
			Requirement: matrix.RequirementID(requirement), Reason: evidence.Reason(reason), Actor: actor, PID: ev.PID, Exe: base(ev.Exe), Request: ev.Request,
			Channel: ev.Channel.String(), Window: ev.Role.String(), InFlight: a.inFlight, Detail: deskDetail(ev)}})
	}
	a.deskMark = mark
	a.Stage.Log.Release(mark)
}

// deskDetail says what else is known of an event.
func deskDetail(ev desktop.Event) string {
	if ev.Kind.IsMessage() {
		return fmt.Sprintf("%s to %s", ev.Kind, ev.Peer)
	}
	if ev.Kind == desktop.CoverChanged {
		return fmt.Sprintf("the target is covered %.3f now", ev.Fraction)
	}
	return fmt.Sprintf("%s detail %d at %d,%d", ev.Kind, ev.Detail, ev.X, ev.Y)
}

// firstRead reports whether this is the first time in a step that somebody reads the person's desk so: reading is no violation, and one line says as
// much as a thousand. What the person's own programs read is theirs.
func (a *Attempt) firstRead(actor evidence.Actor, ev desktop.Event) bool {
	if actor != evidence.ActorEngine && actor != evidence.ActorBrowser {
		return false
	}
	key := fmt.Sprint(a.step, actor, ev.Request, ev.Role)
	first := !a.reads[key]
	a.reads[key] = true
	return first
}

// journalEvents observes what the pages reported since the last time.
func (a *Attempt) journalEvents() {
	journal := a.Stage.Pages.Journal()
	to := journal.Mark()
	for _, ev := range journal.Between(a.journalMark, to) {
		if ev.Row != a.pages.ID() {
			continue
		}
		a.follow(ev)
		if o, keep := a.journalObservation(ev); keep {
			a.observe(o)
		}
		a.text.journal(ev)
	}
	a.journalMark = to
}

// follow keeps track of which tab a document belongs to: by the tab parameter of the address that the harness gave it, else it took the
// place of the document that left last.
func (a *Attempt) follow(ev fixtures.Event) {
	switch ev.Type {
	case fixtures.EventStart:
		if _, known := a.tabOf[ev.Document]; known {
			return
		}
		page := tabParameter(ev.Detail.Path)
		switch {
		case page != "":
		case !ev.Detail.Top && a.tabOf[a.pages.Parent(ev.Document)] != "":
			page = a.tabOf[a.pages.Parent(ev.Document)]
		case a.lastGone == "" && len(a.docs) == 1:
			for page = range a.docs { // the row's only tab
			}
		default:
			page = a.lastGone
		}
		a.tabOf[ev.Document] = page
		if ev.Detail.Top {
			a.docs[page] = append(a.docs[page], ev.Document)
		}
	case "pagehide", fixtures.EventDisconnected:
		if page := a.tabOf[ev.Document]; page != "" {
			a.lastGone = page
		}
	}
}

// tabParameter reads the tab name out of a page's path and query.
func tabParameter(path string) string { return parameter(path, "tab") }

// parameter reads one parameter of a page's query.
func parameter(path, name string) string {
	_, query, _ := strings.Cut(path, "?")
	query, _, _ = strings.Cut(query, "#")
	for pair := range strings.SplitSeq(query, "&") {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			return unescape(v)
		}
	}
	return ""
}

// quiet lists page reports that say nothing about input or values; they stay in the journal view.
var quiet = map[fixtures.EventType]bool{"focus": true, "blur": true, "focusin": true, "focusout": true, "visibilitychange": true, "pageshow": true,
	"pagehide": true, fixtures.EventTitle: true, fixtures.EventServed: true, fixtures.EventConnected: true, fixtures.EventDisconnected: true,
	fixtures.EventRequest: true, fixtures.EventDownload: true}

func (a *Attempt) journalObservation(ev fixtures.Event) (evidence.Observation, bool) {
	if ev.Origin == fixtures.OriginServer && !ev.Forged() || ev.Signed && quiet[ev.Type] {
		return evidence.Observation{}, false
	}
	j := &evidence.Journal{Page: a.tabOf[ev.Document], File: ev.Page, Document: a.ordinal(ev.Document), Order: int(ev.Order), Type: string(ev.Type),
		Control: ev.Control, Trusted: ev.Trusted, Signed: ev.Signed, Origin: a.Stage.ReportOrigin(ev), Reason: string(ev.Reason)}
	switch {
	case ev.Secret:
		j.ValueDigest = a.Stage.SecretDigest(ev.Value)
	default:
		j.Value = string(a.rules.Bytes([]byte(ev.Value)))
	}
	phase := evidence.PhasePrepare
	if a.steps {
		phase = a.phase
	}
	return evidence.Observation{Kind: evidence.KindJournal, MonoNS: ev.MonoNS, Phase: phase, Journal: j}, true
}

// ordinal counts the documents of a tab from 1.
func (a *Attempt) ordinal(d fixtures.DocumentID) int {
	return slices.Index(a.docs[a.tabOf[d]], d) + 1
}
