package attempt

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/fixtures"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/recorder/desktop"
	"github.com/engine-acceptance/acceptance/suites/process"
	"github.com/engine-acceptance/acceptance/suites/stage"
	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// blank is the page that says nothing, for tabs that a row does not care about.
const blank = "blank.html"

// pageBudget bounds how long a page may take to report that it is there.
const pageBudget = 5 * time.Second

// arrange brings the desk into the state that the row starts from: the engine's own tools open tabs and pages, the person opens the
// windows that the engine must not have opened, the harness places windows through the window manager. What goes wrong here makes the row
// not exercised, unless the row judges it itself.
func (a *Attempt) arrange(ctx context.Context) error {
	a.step = "arrange"
	if err := a.deskProof(ctx); err != nil {
		return err
	}
	if err := a.declaration(ctx); err != nil {
		return err
	}
	for _, d := range a.Contract.Desk.Decoys {
		err := a.harnessActs(ctx, func() error {
			if err := a.seatDecoy(ctx, d); err != nil {
				return err
			}
			return a.cover(ctx)
		})
		if err != nil {
			return err
		}
	}
	switch a.Contract.Launch {
	case matrix.LaunchShared:
		if err := a.share(ctx); err != nil {
			return err
		}
	default:
		// The browser that rows have in common has no place on the desk of a row of its own.
		if err := a.Stage.EndShared(ctx); err != nil {
			return a.fault("harness", "end the shared browser: %v", err)
		}
		r, err := a.Must(ctx, engine.OpSessionStart, map[string]any{}, Aim{})
		if err != nil {
			return err
		}
		if r.Session != nil {
			a.session = r.Session.ID
		}
		if a.Contract.Launch == matrix.LaunchFresh {
			if _, err := a.Launch(ctx, a.session, engine.PostureIsolatedNew); err != nil {
				return err
			}
		}
	}
	if len(a.windows) == 0 {
		return a.restore(ctx)
	}
	if err := a.arrangeWindows(ctx); err != nil {
		return err
	}
	return a.baselineProof(ctx)
}

// declaration reads what the engine declares over its public interface, before anything is bound, and compares it with the engine file.
func (a *Attempt) declaration(ctx context.Context) error {
	r, err := a.Call(ctx, engine.OpDeclaration, map[string]any{}, Aim{})
	if err != nil {
		return err
	}
	d := &evidence.Declaration{}
	if r != nil && r.Declaration != nil {
		d.Total = r.Declaration.Total() == nil
		claimed := a.Stage.Claimed
		if !slices.Equal(slices.Sorted(slices.Values(r.Declaration.Postures)), slices.Sorted(slices.Values(claimed.Postures))) {
			d.Differences = append(d.Differences, "postures")
		}
		if r.Declaration.Reconnect != claimed.Reconnect {
			d.Differences = append(d.Differences, "reconnect")
		}
		for _, want := range claimed.Table {
			got := r.Declaration.Lookup(want.Capability)
			if got.Declared != want.Declared {
				d.Differences = append(d.Differences, fmt.Sprintf("%s/%s/%s/%s", want.Action, want.Route, want.Delivery, want.State))
			}
		}
	}
	const most = 20
	d.Differences = d.Differences[:min(len(d.Differences), most)]
	a.observe(evidence.Observation{Kind: evidence.KindDeclaration, Declaration: d})
	return nil
}

// adopt makes windows the row's own: they are watched, and the first is filmed.
func (a *Attempt) adopt(windows []*stage.Window) {
	a.windows = windows
	if len(windows) > 0 {
		a.browser = windows[0].Owner
	}
	a.aim()
}

// arrangeWindows gives every planned window its tabs, pages and place.
func (a *Attempt) arrangeWindows(ctx context.Context) error {
	plans := a.Contract.Desk.Windows
	if len(plans) == 0 {
		return a.restore(ctx)
	}
	t, err := a.bindWindow(ctx, 1)
	if err != nil {
		return err
	}
	if err := a.shownFirst(ctx, t); err != nil {
		return err
	}
	if len(plans) > 1 {
		if err := a.personOpens(ctx, t, plans[1:]); err != nil {
			return err
		}
	}
	for i, tab := range plans[0].Tabs {
		id := ""
		switch {
		case i < len(t.Tabs):
			id = t.Tabs[i].ID
		default:
			r, err := a.Must(ctx, engine.OpContext, map[string]any{"session": a.session, "target_id": t.ID, "tab_id": t.Tabs[0].ID, "kind": "open"}, Aim{})
			if err != nil {
				return err
			}
			if r.Tab != nil {
				id = r.Tab.ID
			}
		}
		at := &Tab{ID: id, Target: t, Page: a.pageName(0, 1, i+1)}
		address := a.URL(tab.Page, a.distinctTitle(plans[0].Tabs, i), at.Page)
		if _, err := a.Must(ctx, engine.OpNavigate, map[string]any{"session": a.session, "target_id": t.ID, "tab_id": id, "url": address}, Aim{Tab: at}); err != nil {
			return err
		}
		if err := a.awaitPage(ctx, at.Page); err != nil {
			return err
		}
		if i == 0 {
			a.unveil() // what another row left in the visible tab is gone from here on
		}
	}
	for i, p := range plans {
		if p.Bounds == nil || i >= len(a.windows) {
			continue
		}
		if err := a.place(ctx, a.windows[i], *p.Bounds); err != nil {
			return err
		}
	}
	if err := a.scaleProof(); err != nil {
		return err
	}
	if err := a.hide(ctx); err != nil {
		return err
	}
	return a.restore(ctx)
}

// distinctTitle is the title that a tab's page gets: the planned one, or, in a window of several tabs, one that tells them apart, so that the
// harness knows which of the engine's tabs is which, and which of them the window shows.
func (a *Attempt) distinctTitle(tabs []matrix.TabPlan, i int) string {
	if tabs[i].Title != "" || len(tabs) < 2 {
		return tabs[i].Title
	}
	return a.markedTitle(tabs[i].Page, strconv.Itoa(i+1))
}

// markedTitle is a page's own title with a mark behind it.
func (a *Attempt) markedTitle(page, mark string) string {
	name, _, _ := strings.Cut(page, "?")
	truth, err := a.pages.Truth(name)
	if err != nil {
		return ""
	}
	return truth.Title + " " + mark
}

// TitleFor is the title that a page gets when a step loads it in a tab: marked where the window has more tabs than one.
func (a *Attempt) TitleFor(page string, tab *Tab) string {
	if tab.Mark == "" && len(tab.Target.Tabs) < 2 {
		return ""
	}
	mark := tab.Mark
	if mark == "" {
		mark = strconv.Itoa(slices.Index(tab.Target.Tabs, tab) + 1)
	}
	return a.markedTitle(page, mark)
}

// place gives a window its planned bounds; the phase is prepare meanwhile, for it is the harness that moves it.
func (a *Attempt) place(ctx context.Context, w *stage.Window, b matrix.Bounds) error {
	return a.harnessActs(ctx, func() error {
		if err := a.Stage.Arrange(ctx, w, xwire.Rect{X: b.X, Y: b.Y, Width: b.W, Height: b.H}); err != nil {
			return a.fault("harness", "place a window: %v", err)
		}
		return nil
	})
}

// bindWindow binds a window of the arrangement under no name.
func (a *Attempt) bindWindow(ctx context.Context, n int) (*Target, error) {
	w := a.windows[n-1]
	r, err := a.Must(ctx, engine.OpState, map[string]any{"session": a.session, "mode": "bind", "pid": w.Owner.PID, "window_id": w.ID}, Aim{})
	if err != nil {
		return nil, err
	}
	if r.Target == nil || len(r.Target.Tabs) == 0 {
		return nil, a.fault("harness", "the engine bound window %d without a tab", n)
	}
	t := &Target{ID: r.Target.ID, Session: a.session, Window: w}
	for i, tab := range r.Target.Tabs {
		t.Tabs = append(t.Tabs, &Tab{ID: tab.ID, Target: t, Title: tab.Title, Page: a.pageName(0, n, i+1)})
	}
	return t, nil
}

// personOpens has the person open windows that the engine did not: the opener page fills the window, the person clicks into it.
func (a *Attempt) personOpens(ctx context.Context, t *Target, plans []matrix.WindowPlan) error {
	query := url.Values{}
	for i, p := range plans {
		tab := matrix.TabPlan{Page: blank}
		if len(p.Tabs) > 0 {
			tab = p.Tabs[0]
		}
		query.Set(fmt.Sprintf("open%d", i+1), a.relative(tab.Page, tab.Title, a.pageName(0, i+2, 1)))
	}
	opener := &Tab{ID: t.Tabs[0].ID, Target: t, Page: "opener"}
	address := a.pages.URL("opener.html?" + query.Encode() + "&tab=opener")
	if _, err := a.Must(ctx, engine.OpNavigate, map[string]any{"session": a.session, "target_id": t.ID, "tab_id": opener.ID, "url": address}, Aim{Tab: opener}); err != nil {
		return err
	}
	if err := a.awaitPage(ctx, "opener"); err != nil {
		return err
	}
	before := a.phase
	a.phase = evidence.PhasePrepare
	err := a.harnessActs(ctx, func() error {
		tree, err := a.Stage.Host.Tree()
		if err != nil {
			return a.fault("harness", "list the engine's processes: %v", err)
		}
		for i := range plans {
			if err := a.Stage.ClickInto(ctx, a.windows[0]); err != nil {
				return a.fault("harness", "the person's click into the opener page: %v", err)
			}
			if err := a.awaitPage(ctx, a.pageName(0, i+2, 1)); err != nil {
				return err
			}
			fresh, err := a.awaitWindow(ctx, tree)
			if err != nil {
				return err
			}
			a.windows = append(a.windows, fresh)
		}
		// The person works on only when the own window has the focus again.
		return a.cover(ctx)
	})
	a.phase = before
	a.aim()
	if err != nil {
		return err
	}
	if err := a.watchTargets(ctx); err != nil {
		return a.fault("harness", "watch the windows that the person opened: %v", err)
	}
	return nil
}

// awaitWindow waits for the window that the person's click opened: the only one of the browser that was not there before.
func (a *Attempt) awaitWindow(ctx context.Context, tree []process.Entry) (*stage.Window, error) {
	ctx, cancel := context.WithTimeout(ctx, pageBudget)
	defer cancel()
	for {
		all, err := a.Stage.WindowsOf(ctx, tree)
		if err != nil {
			return nil, a.fault("harness", "list the browser's windows: %v", err)
		}
		fresh := slices.DeleteFunc(all, func(w *stage.Window) bool {
			return w.Owner != a.browser || slices.ContainsFunc(a.windows, func(old *stage.Window) bool { return old.ID == w.ID })
		})
		switch {
		case len(fresh) == 1:
			return fresh[0], nil
		case len(fresh) > 1:
			return nil, a.fault("environment", "the person's click opened %d windows, want one", len(fresh))
		}
		if err := a.Stage.ManagerTrip(ctx); err != nil {
			return nil, a.fault("environment", "the person's click opened no window: %v", err)
		}
	}
}

// harnessActs marks what follows on the desk as the harness's own doing.
func (a *Attempt) harnessActs(ctx context.Context, act func() error) error {
	if err := a.collect(ctx); err != nil {
		return err
	}
	if err := a.Stage.PersonPauses(ctx); err != nil {
		return a.fault("harness", "the person: %v", err)
	}
	err := act()
	if err != nil {
		return err // the person stays away from a desk that is not as it should be
	}
	if err := a.Stage.ManagerTrip(ctx); err != nil {
		return a.fault("environment", "round trip through the window manager: %v", err)
	}
	mark, settleErr := a.Stage.Log.Settle(ctx, Quiet/3)
	if settleErr != nil {
		if mark, settleErr = a.Stage.Log.Barrier(ctx); settleErr != nil {
			return a.fault("harness", "barrier on the desk's event log: %v", settleErr)
		}
	}
	a.deskEvents(mark, evidence.ActorHarness)
	if resume := a.Stage.PersonResumes(ctx); resume != nil {
		return a.fault("harness", "the person: %v", resume)
	}
	return err
}

// restore has the person take the desk back: the window over the browser as the row wants it, focus in it. A desk that is as it should be
// is left alone.
func (a *Attempt) restore(ctx context.Context) error {
	frames, err := a.frames(ctx)
	if err != nil {
		return err
	}
	in, err := a.Stage.InPlace(ctx, a.Contract.Desk.Person, frames)
	if err != nil {
		return a.fault("environment", "look where the person's window is: %v", err)
	}
	if in {
		return nil
	}
	return a.harnessActs(ctx, func() error { return a.cover(ctx) })
}

// cover places the person's window as the row wants it, on top and with the focus.
func (a *Attempt) cover(ctx context.Context) error {
	frames, err := a.frames(ctx)
	if err != nil {
		return err
	}
	if err := a.Stage.Cover(ctx, a.Contract.Desk.Person, frames); err != nil {
		return a.fault("environment", "place the person's window: %v", err)
	}
	return nil
}

// frames measures where the browser's windows are now.
func (a *Attempt) frames(ctx context.Context) ([]xwire.Rect, error) {
	frames := []xwire.Rect{}
	for _, w := range a.windows {
		if err := a.Stage.Measure(ctx, w); err != nil {
			return nil, a.fault("environment", "measure a window of the browser: %v", err)
		}
		frames = append(frames, w.Frame)
	}
	a.aim()
	return frames, nil
}

// baselineProof proves that the row starts from where it should: the person's window has the focus and lies above.
func (a *Attempt) baselineProof(ctx context.Context) error {
	now, err := a.Stage.Log.Snapshot(ctx)
	if err != nil {
		return a.fault("harness", "read the desk's state: %v", err)
	}
	window := a.Stage.Sentinel.Window()
	met := now.ActiveWindow == window && len(now.Stacking) > 0
	got := "another window is active"
	if met {
		got = "the person's window is active"
	}
	a.observe(evidence.Observation{Kind: evidence.KindPrecondition, Precondition: &evidence.Precondition{Name: "baseline", Want: "the person's window is active", Got: got, Met: met}})
	if !met {
		return ErrStopped
	}
	return nil
}

// URL is the address of a fixture page for a tab of this row.
func (a *Attempt) URL(page, title, tab string) string {
	return a.pages.URL(a.relative(page, title, tab))
}

func (a *Attempt) relative(page, title, tab string) string {
	page, query, _ := strings.Cut(page, "?")
	v, err := url.ParseQuery(query)
	if err != nil {
		v = url.Values{}
	}
	v.Set("tab", tab)
	if expanded, err := a.Expand(title); err == nil && expanded != "" {
		v.Set("title", expanded)
	}
	return page + "?" + v.Encode()
}

func unescape(v string) string {
	s, err := url.QueryUnescape(v)
	if err != nil {
		return ""
	}
	return s
}

// awaitPage waits until the page of a tab has reported its load.
func (a *Attempt) awaitPage(ctx context.Context, tab string) error {
	ctx, cancel := context.WithTimeout(ctx, pageBudget)
	defer cancel()
	loaded := false
	_, err := a.Stage.Pages.Journal().Wait(ctx, 0, func(ev fixtures.Event) bool {
		if ev.Row != a.pages.ID() {
			return false
		}
		if ev.Type == fixtures.EventStart && tabParameter(ev.Detail.Path) == tab {
			loaded = true
		}
		return loaded
	})
	if err != nil {
		a.observe(evidence.Observation{Kind: evidence.KindPrecondition, Precondition: &evidence.Precondition{Name: "page " + tab, Want: "loaded", Got: "no report", Met: false}})
		return ErrStopped
	}
	return nil
}

// Launch has the engine launch a browser in a session, observes what the launch did to system and desk, and hands the desk back to the
// person. It is prepare phase throughout; afterwards the desk is absolute.
func (a *Attempt) Launch(ctx context.Context, session string, posture engine.Posture) (*engine.Result, error) {
	return a.LaunchWithin(ctx, session, posture, 0)
}

// LaunchWithin is [Attempt.Launch] with a time that the engine is told, 0 for none. A launch that the row expects to be refused is no stop.
func (a *Attempt) LaunchWithin(ctx context.Context, session string, posture engine.Posture, within time.Duration) (*engine.Result, error) {
	a.phase = evidence.PhasePrepare
	if err := a.Stage.PersonPauses(ctx); err != nil {
		return nil, a.fault("harness", "the person: %v", err)
	}
	before, err := a.beforeLaunch(ctx)
	if err != nil {
		return nil, err
	}
	args := map[string]any{"session": session, "allow_launch": true, "profile": map[string]any{"kind": posture}}
	if within > 0 {
		args["timeout_ms"] = within.Milliseconds()
	}
	r, err := a.Must(ctx, engine.OpPrepare, args, Aim{})
	if factErr := a.afterLaunch(ctx, session, before, r); factErr != nil {
		return r, factErr
	}
	if err != nil {
		if r != nil && r.Status == engine.StatusRefused && a.expectsRefusal(a.step) {
			return r, a.handBack(ctx)
		}
		return r, err
	}
	a.posture = posture
	if err := a.handBack(ctx); err != nil {
		return r, err
	}
	a.excuseOverruns()
	a.phase = evidence.PhaseBackground
	return r, nil
}

// handBack gives the desk back to the person, who was idle, and goes on working also where nothing had to be restored.
func (a *Attempt) handBack(ctx context.Context) error {
	if err := a.restore(ctx); err != nil {
		return err
	}
	if a.Stage.PersonWorks() {
		return nil
	}
	if err := a.Stage.PersonResumes(ctx); err != nil {
		return a.fault("harness", "the person: %v", err)
	}
	return nil
}

// excuseOverruns takes overruns of the record of requests so far out of the row's account, and says so in the row: those of launch and
// arrangement. A browser that gives its window an icon writes several hundred kilobytes in one request, and a window manager answers a
// raise with a thousand small ones; over either the X server's recorder can lose replies. What happens up to there is judged by what the
// server itself reports (focus, stacking, windows, selections), which has no such limit.
func (a *Attempt) excuseOverruns() {
	for i, h := range a.Stage.Log.Health() {
		if n := h.Overruns - a.health[i].Overruns; n > 0 {
			a.excused[h.Channel] += n
			a.health[i].Overruns = h.Overruns
		}
	}
}

// precondition measures the state that a step's capability asks for, just before the step.
func (a *Attempt) precondition(ctx context.Context, s matrix.Step) error {
	need := a.Contract.Needs
	if need == nil || !s.Exercises(*need) {
		return nil
	}
	tab := a.actedTab(s)
	if tab == nil {
		return nil // a reference that does not resolve is the step's own fault to report
	}
	got, met, err := a.measureState(ctx, tab, need.State)
	if err != nil {
		return a.fault("harness", "measure the state of the window: %v", err)
	}
	a.observe(evidence.Observation{Kind: evidence.KindPrecondition, Precondition: &evidence.Precondition{Name: "state", Want: string(need.State), Got: got, Met: met}})
	if !met {
		return ErrStopped
	}
	return nil
}

// actedTab is the tab that a step acts on.
func (a *Attempt) actedTab(s matrix.Step) *Tab {
	for _, arg := range []string{"on", "into", "ref"} {
		if node := Text(s, arg); node != "" {
			if n, err := matrix.ParseNodeRef(node); err == nil && a.snapshots[n.Snapshot] != nil {
				return a.snapshots[n.Snapshot].Tab
			}
		}
	}
	if ref := Text(s, "tab"); ref != "" {
		if tab, err := a.Tab(ref); err == nil {
			return tab
		}
	}
	if t := a.targets[Text(s, "in")]; t != nil && len(t.Tabs) > 0 {
		return t.Tabs[0]
	}
	return nil
}

// fullCover is the least covered fraction that counts as covered: nothing of the window may be seen but rounding.
const fullCover = 0.999

// measureState says in which state a tab's window is, by the X server and by what the window shows.
func (a *Attempt) measureState(ctx context.Context, tab *Tab, want engine.State) (got string, met bool, err error) {
	w := tab.Target.Window
	shown, err := a.Stage.Shown(ctx, w.ID)
	if err != nil {
		return "", false, err
	}
	if !shown {
		return "window not shown", want == engine.StateMinimised, nil
	}
	fraction, err := a.Stage.Log.Cover(ctx, w.ID, a.Stage.Sentinel.Window())
	if err != nil {
		return "", false, err
	}
	title, err := a.Stage.Title(ctx, w.ID)
	if err != nil {
		return "", false, err
	}
	visible := shows(title, a.titleOf(tab))
	got = fmt.Sprintf("covered %.3f, tab shown: %t", fraction, visible)
	switch want {
	case engine.StateCovered:
		met = visible && fraction >= fullCover
	case engine.StatePartlyCovered:
		met = visible && fraction > 0 && fraction < fullCover
	case engine.StateVisibleTab:
		met = visible && fraction == 0
	case engine.StateInactiveTab:
		met = !visible
	}
	return got, met, nil
}

// shows reports whether a window's title says that it shows the page of that title: products put their own name behind a dash.
func shows(window, page string) bool {
	rest, ok := strings.CutPrefix(window, page)
	return page != "" && ok && (rest == "" || strings.HasPrefix(rest, " - ") || strings.HasPrefix(rest, " \u2014 ") || strings.HasPrefix(rest, " \u2013 "))
}

// titleOf is the title of the page that a tab shows, as its address and the page's own reports say.
func (a *Attempt) titleOf(tab *Tab) string {
	docs := a.docs[tab.Page]
	if len(docs) == 0 {
		return ""
	}
	last, title := docs[len(docs)-1], ""
	for _, ev := range a.Stage.Pages.Journal().Between(0, a.journalMark) {
		switch {
		case ev.Document != last:
		case ev.Type == fixtures.EventTitle:
			title = ev.Value
		case ev.Type == fixtures.EventStart:
			if title = parameter(ev.Detail.Path, "title"); title != "" {
				continue
			}
			if truth, err := a.pages.Truth(ev.Page); err == nil {
				title = truth.Title
			}
		}
	}
	return title
}

// Bind binds window n under a name.
func (a *Attempt) Bind(ctx context.Context, n int, name, session string) error {
	windows, launch := a.windowsOf(session)
	if n < 1 || n > len(windows) {
		return fmt.Errorf("the desk has %d windows, the row binds window %d", len(windows), n)
	}
	w := windows[n-1]
	r, err := a.Call(ctx, engine.OpState, map[string]any{"session": session, "mode": "bind", "pid": w.Owner.PID, "window_id": w.ID}, Aim{})
	if err != nil {
		return err
	}
	if r == nil || r.Target == nil {
		return a.UnlessExpected(ctx)
	}
	t := &Target{Name: name, ID: r.Target.ID, Session: session, Window: w}
	t.Tabs = a.orderTabs(t, launch, n, r.Target.Tabs)
	a.nameTarget(name, t)
	return nil
}

// orderTabs puts the engine's tabs into the order of the row: by title where the planned titles tell them apart, else as they came.
func (a *Attempt) orderTabs(t *Target, launch, n int, tabs []engine.Tab) []*Tab {
	out := make([]*Tab, 0, len(tabs))
	used := map[string]bool{}
	var plan []matrix.TabPlan
	if launch == 0 && n <= len(a.Contract.Desk.Windows) {
		plan = a.Contract.Desk.Windows[n-1].Tabs
	}
	for i := range plan {
		want := a.titleOf(&Tab{Page: a.pageName(launch, n, i+1)})
		match := slices.DeleteFunc(slices.Clone(tabs), func(t engine.Tab) bool { return t.Title != want || used[t.ID] })
		if len(match) == 1 || len(match) > 1 && i < len(tabs) {
			used[match[0].ID] = true
			out = append(out, &Tab{ID: match[0].ID, Target: t, Page: a.pageName(launch, n, i+1)})
		}
	}
	if len(out) == len(plan) && len(plan) > 0 {
		return out
	}
	out = out[:0]
	for i, tab := range tabs {
		out = append(out, &Tab{ID: tab.ID, Target: t, Page: a.pageName(launch, n, i+1)})
	}
	return out
}

// watchTargets tells the event log which windows the engine may act in.
func (a *Attempt) watchTargets(ctx context.Context) error {
	for _, w := range a.windows {
		if err := a.Stage.Log.Watch(ctx, w.ID, desktop.Target); err != nil {
			return err
		}
	}
	return nil
}
