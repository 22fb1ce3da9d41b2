package core

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/engine/enginetest"
)

const page = "http://127.0.0.1/form.html"

// world is an engine over a fake desk, with a caller.
type world struct {
	*enginetest.Caller
	*gomega.WithT
	fake *enginetest.Fake
	e    *Engine
	root string
}

func newWorld(t *testing.T, fake *enginetest.Fake, edit ...func(*Config)) *world {
	t.Helper()
	root := filepath.Join(t.TempDir(), "profiles")
	cfg := Config{Adapter: fake.Adapter(), Native: fake.Native(), ProfileRoot: root, Env: []string{"PATH=/bin"},
		Budgets: Budgets{Launch: 5 * time.Second, Bind: 2 * time.Second, Action: 2 * time.Second, End: 5 * time.Second, Settle: 60 * time.Millisecond}}
	for _, f := range edit {
		f(&cfg)
	}
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if left := entries(root); left != 0 {
			t.Errorf("%d profiles left", left)
		}
	})
	return &world{Caller: enginetest.NewCaller(t, e), WithT: gomega.NewWithT(t), fake: fake, e: e, root: root}
}

func entries(dir string) int {
	list, _ := os.ReadDir(dir)
	return len(list)
}

func TestKit(t *testing.T) {
	enginetest.Test(t, enginetest.Subject{Page: page, Open: func(t *testing.T) engine.Engine { return newWorld(t, enginetest.NewFake()).e }})
}

func bind(s enginetest.Scope, window uint32) engine.StateRequest {
	return engine.StateRequest{Session: s.Session, Mode: engine.ModeBind, PID: s.PID, WindowID: window}
}

// TestOneChangedFactRefusesEveryVerb is B22: each fact changed alone after the bind, for every verb, is refused with its own code and nothing
// reaches any page.
func TestOneChangedFactRefusesEveryVerb(t *testing.T) {
	for _, c := range []struct {
		defect  enginetest.Defect
		trigger string
		reason  string
	}{
		{enginetest.DefectProcess, "generation_changed", "process"},
		{enginetest.DefectConnection, "reconnect_unsupported", "reconnect_unsupported"},
		{enginetest.DefectEndpoint, "endpoint_owner", "owner"},
		{enginetest.DefectWindowOwner, "wrong_target", "window_owner"},
		{enginetest.DefectWindowGone, "generation_changed", "window"},
		{enginetest.DefectTabMoved, "wrong_target", "tab_moved"},
		{enginetest.DefectBounds, "wrong_target", "not_exact"},
		{enginetest.DefectTabGone, "tab_gone", "closed"},
		{enginetest.DefectNoDisplay, "environment", ""},
	} {
		t.Run(string(c.defect), func(t *testing.T) {
			for op := range enginetest.Verbs("", "", "", "") {
				t.Run(string(op), func(t *testing.T) {
					w := newWorld(t, enginetest.NewFake())
					s := w.Bound(page)
					w.Type(s, "one") // between two actions of one session
					before := len(w.fake.Journal())
					w.fake.Set(c.defect, true)
					r := w.Refused(op, enginetest.Verbs(s.Session, s.Target, s.Tab, s.Box)[op])
					w.Expect(r.Trigger).To(gomega.Equal(c.trigger))
					w.Expect(r.Detail.Reason).To(gomega.Equal(c.reason))
					w.Expect(w.fake.Journal()).To(gomega.HaveLen(before))
					w.fake.Set(c.defect, false)
				})
			}
		})
	}
	t.Run("document", func(t *testing.T) {
		w := newWorld(t, enginetest.NewFake())
		s := w.Bound(page)
		w.fake.Set(enginetest.DefectDocument, true)
		for _, op := range []engine.Operation{engine.OpClick, engine.OpType} {
			r := w.Refused(op, enginetest.Verbs(s.Session, s.Target, s.Tab, s.Box)[op])
			w.Expect(r.Code).To(gomega.Equal(engine.CodeRefStale))
		}
		w.Expect(w.fake.Journal()).To(gomega.HaveLen(1))
	})
}

func TestLostConnectionVoidsEverythingAndNamesTheNextGeneration(t *testing.T) {
	w := newWorld(t, enginetest.NewFake())
	s := w.Bound(page)
	before := len(w.fake.Journal())
	w.fake.Set(enginetest.DefectConnection, true)
	w.fake.Set(enginetest.DefectConnection, false)
	started := time.Now()
	r := w.Refused(engine.OpClick, engine.ClickRequest{Session: s.Session, TargetID: s.Target, TabID: s.Tab, Ref: s.Button})
	w.Expect(time.Since(started)).To(gomega.BeNumerically("<", time.Second)) // G13
	w.Expect(r.Code).To(gomega.Equal(engine.CodeBindingStale))
	w.Expect(r.Detail.NextAction).To(gomega.Equal("prepare"))
	w.Expect(r.Detail.Generation).NotTo(gomega.Or(gomega.BeEmpty(), gomega.Equal(s.Generation)))
	w.Expect(w.Refused(engine.OpState, bind(s, s.Window)).Code).To(gomega.Equal(engine.CodeBindingStale))
	w.Expect(w.fake.Living()).To(gomega.Equal(1), "nothing is started until told")
	again := w.OK(engine.OpPrepare, engine.PrepareRequest{Session: s.Session, AllowLaunch: true, Profile: engine.Profile{Kind: engine.PostureIsolatedNew}})
	w.Expect(again.Prepared.Generation).To(gomega.Equal(r.Detail.Generation))
	w.Expect(again.Receipt.SideEffects.RestartedBrowser).To(gomega.BeTrue())
	w.Expect(w.fake.Living()).To(gomega.Equal(1), "the old browser goes first")
	w.Expect(entries(w.root)).To(gomega.Equal(1))
	old := w.Refused(engine.OpClick, engine.ClickRequest{Session: s.Session, TargetID: s.Target, TabID: s.Tab, Ref: s.Button})
	w.Expect(old.Detail.Generation).To(gomega.Equal(r.Detail.Generation))
	w.Expect(w.fake.Journal()).To(gomega.HaveLen(before))
	t2 := w.OK(engine.OpState, engine.StateRequest{Session: s.Session, Mode: engine.ModeBind, PID: again.Prepared.PID, WindowID: again.Prepared.Windows[0]}).Target
	s.Target, s.Tab = t2.ID, t2.Tabs[0].ID
	w.Go(&s, page)
	w.Type(s, "again")
	w.Expect(w.Value(&s)).To(gomega.Equal("again")) // G17
}

func TestConnectionCutMidCommandIsUnknownAndNotRepeated(t *testing.T) {
	w := newWorld(t, enginetest.NewFake())
	s := w.Bound(page)
	before := len(w.fake.Journal())
	w.fake.Set(enginetest.DefectCut, true)
	rc := w.Type(s, "once").Receipt
	w.Expect(rc.Effect).To(gomega.Equal(engine.EffectUnknown))
	w.Expect(rc.Refusal.Code).To(gomega.Equal(engine.CodeBindingStale))
	w.Expect(w.fake.Journal()).To(gomega.HaveLen(before + 1))
}

func TestAnAbilityThatNeverReturnsCostsItsBudgetAndNoMore(t *testing.T) {
	w := newWorld(t, enginetest.NewFake(), func(c *Config) { c.Budgets.Action = 100 * time.Millisecond })
	s := w.Bound(page)
	w.fake.Set(enginetest.DefectHang, true)
	rc := w.Type(s, "x").Receipt
	w.Expect(rc.Effect).To(gomega.Equal(engine.EffectUnknown))
	w.Expect(rc.Durations.TotalMS).To(gomega.BeNumerically("<", 1000))
	// The window's turn is still taken: nothing else is dispatched into it.
	r := w.Refused(engine.OpClick, engine.ClickRequest{Session: s.Session, TargetID: s.Target, TabID: s.Tab, Ref: s.Button})
	w.Expect(r.Trigger).To(gomega.Equal("unresponsive"))
	w.Expect(w.Refused(engine.OpState, engine.StateRequest{Session: s.Session, Mode: engine.ModeSnapshot, TargetID: s.Target}).Trigger).To(gomega.Equal("unresponsive"))
	w.Expect(w.OK(engine.OpSessionEnd, engine.SessionRequest{Session: s.Session}).Receipt.Effect).To(gomega.Equal(engine.EffectConfirmed))
}

func TestSessionEndDuringAnAction(t *testing.T) {
	w := newWorld(t, enginetest.NewFake())
	s := w.Bound(page)
	inside, goOn := make(chan struct{}), make(chan struct{})
	w.fake.Delay(func(verb string) {
		if verb == "type" {
			close(inside)
			<-goOn
		}
	})
	var wg sync.WaitGroup
	var rc *engine.Receipt
	wg.Go(func() { rc = w.Type(s, "late").Receipt })
	<-inside
	w.OK(engine.OpSessionEnd, engine.SessionRequest{Session: s.Session})
	w.Expect(w.fake.Living()).To(gomega.BeZero())
	w.Expect(entries(w.root)).To(gomega.BeZero())
	close(goOn)
	wg.Wait()
	w.Expect(rc.Effect).To(gomega.Equal(engine.EffectUnknown))
	for _, in := range w.fake.Journal() {
		w.Expect(in.Text).NotTo(gomega.Equal("late"))
	}
}

func TestSessionEndDuringALaunch(t *testing.T) {
	w := newWorld(t, enginetest.NewFake())
	s := w.OK(engine.OpSessionStart, struct{}{}).Session.ID
	inside, goOn := make(chan struct{}), make(chan struct{})
	w.fake.Delay(func(verb string) {
		if verb == "launch" {
			close(inside)
			<-goOn
		}
	})
	var wg sync.WaitGroup
	wg.Go(func() {
		w.Refused(engine.OpPrepare, engine.PrepareRequest{Session: s, AllowLaunch: true, Profile: engine.Profile{Kind: engine.PostureIsolatedNew}})
	})
	<-inside
	wg.Go(func() { w.OK(engine.OpSessionEnd, engine.SessionRequest{Session: s}) })
	w.Eventually(func() bool { return w.e.session(s).alive() }).Should(gomega.BeFalse())
	close(goOn)
	wg.Wait()
	w.Expect(w.fake.Living()).To(gomega.BeZero())
	w.Expect(entries(w.root)).To(gomega.BeZero())
}

// TestTwins is B4 and B5: equal windows that the engine did not open are ambiguous, whatever their titles; the one that it opened is not.
func TestTwins(t *testing.T) {
	w := newWorld(t, enginetest.NewFake())
	s := w.Start()
	at := engine.Rect{X: 40, Y: 60, W: 900, H: 700} // where the engine's own window is
	first, second := w.fake.OpenWindow(at, "one"), w.fake.OpenWindow(at, "two")
	for _, id := range []uint32{first, second} {
		r := w.Refused(engine.OpState, bind(s, id))
		w.Expect(r.Code).To(gomega.Equal(engine.CodeBindingAmbiguous))
		w.Expect(r.Detail.CandidateCount).To(gomega.Equal(2))
	}
	own := w.OK(engine.OpState, bind(s, s.Window)).Target
	s.Target, s.Tab = own.ID, own.Tabs[0].ID
	w.Go(&s, page)
	w.Type(s, "mine")
	for _, in := range w.fake.Journal() {
		w.Expect(in.Window).To(gomega.Equal(s.Window))
	}
	// Once their rectangles differ each is bound to its own.
	apart := engine.Rect{X: 300, Y: 200, W: 500, H: 400}
	w.fake.MoveWindow(second, apart, false)
	w.fake.MoveWindow(second, apart, true)
	for _, id := range []uint32{first, second} {
		v := s
		target := w.OK(engine.OpState, bind(s, id)).Target
		w.Expect(target.Quality).To(gomega.Equal(engine.QualityExact))
		v.Target, v.Tab = target.ID, target.Tabs[0].ID
		w.Go(&v, page)
		w.Type(v, "there")
		journal := w.fake.Journal()
		w.Expect(journal[len(journal)-1].Window).To(gomega.Equal(id))
	}
	// A binding that was proved exact stays so when a twin turns up.
	w.fake.OpenWindow(apart, "late twin")
	w.OK(engine.OpState, bind(s, second))
}

func TestPopupsDoNotInheritABinding(t *testing.T) {
	w := newWorld(t, enginetest.NewFake())
	s := w.Bound(page)
	w.fake.OpenWindow(engine.Rect{X: 500, Y: 300, W: 300, H: 200}, "popup")
	w.fake.OpenTab(s.Window, "blank target")
	w.Expect(w.OK(engine.OpState, engine.StateRequest{Session: s.Session, Mode: engine.ModeSnapshot, TargetID: s.Target}).Snapshot.TabID).To(gomega.Equal(s.Tab))
	w.Look(&s)
	w.Type(s, "opener")
	w.Expect(w.fake.Journal()[1].Window).To(gomega.Equal(s.Window))
	target := w.OK(engine.OpState, bind(s, s.Window)).Target
	w.Expect(target.ID).To(gomega.Equal(s.Target))
	w.Expect(target.Tabs).To(gomega.HaveLen(2))
	w.Expect(target.Tabs[0].Active).To(gomega.BeNil(), "not provable with two tabs (B17)")
	r := w.Refused(engine.OpClick, engine.ClickRequest{Session: s.Session, TargetID: s.Target, Ref: s.Button})
	w.Expect(r.Code).To(gomega.Equal(engine.CodeTabRequired))
	w.Expect(r.Detail.CandidateCount).To(gomega.Equal(2))
}

// TestClosedAndMoved is B8, B9 and the window half of B22.
func TestClosedAndMoved(t *testing.T) {
	w := newWorld(t, enginetest.NewFake())
	s := w.Bound(page)
	other := w.fake.OpenWindow(engine.Rect{X: 500, Y: 300, W: 300, H: 200}, "other")
	tab := w.OK(engine.OpContext, engine.ContextRequest{Session: s.Session, TargetID: s.Target, Kind: "open"}).Tab.ID
	closed := w.OK(engine.OpContext, engine.ContextRequest{Session: s.Session, TargetID: s.Target, TabID: tab, Kind: "close"})
	w.Expect(closed.Receipt.SideEffects.ClosedContext).To(gomega.BeTrue())
	w.Expect(w.Refused(engine.OpNavigate, engine.NavigateRequest{Session: s.Session, TargetID: s.Target, TabID: tab, URL: page}).Code).To(gomega.Equal(engine.CodeTabNotFound))
	w.fake.MoveTab(s.Window, other)
	w.Expect(w.Refused(engine.OpType, engine.TypeRequest{Session: s.Session, TargetID: s.Target, TabID: s.Tab, Ref: s.Box, Text: "x"}).Code).To(gomega.Equal(engine.CodeWrongTarget))
	w.fake.CloseWindow(s.Window)
	r := w.Refused(engine.OpType, engine.TypeRequest{Session: s.Session, TargetID: s.Target, TabID: s.Tab, Ref: s.Box, Text: "x"})
	w.Expect(r.Code).To(gomega.Equal(engine.CodeBindingStale))
	w.Expect(r.Detail.Reason).To(gomega.Equal("window"))
	for _, in := range w.fake.Journal() {
		w.Expect(in.Verb).NotTo(gomega.Equal("type"))
	}
}

func TestAMovedWindowSettlesAndDelivers(t *testing.T) {
	w := newWorld(t, enginetest.NewFake(), func(c *Config) { c.Budgets.Settle = 500 * time.Millisecond })
	s := w.Bound(page)
	to := engine.Rect{X: 200, Y: 100, W: 640, H: 480}
	w.fake.MoveWindow(s.Window, to, false)
	var wg sync.WaitGroup
	wg.Go(func() { w.Type(s, "moved") })
	asked := w.fake.Asked()
	w.Eventually(w.fake.Asked).Should(gomega.BeNumerically(">", asked+2))
	w.Expect(w.fake.Journal()).To(gomega.HaveLen(1), "nothing is dispatched while the rectangles disagree")
	w.fake.MoveWindow(s.Window, to, true)
	wg.Wait()
	w.Expect(w.Value(&s)).To(gomega.Equal("moved"))
	w.fake.SetMinimised(s.Window, true)
	w.fake.MoveWindow(s.Window, engine.Rect{}, true)
	w.Type(s, "small") // declared in every state; a minimised window's rectangle proves nothing
}

func TestUndeclaredCapabilities(t *testing.T) {
	w := newWorld(t, enginetest.NewFake(engine.ActionClick))
	s := w.Bound(page)
	for op, args := range enginetest.Verbs(s.Session, s.Target, s.Tab, s.Box) {
		if op == engine.OpState || op == engine.OpNavigate || op == engine.OpType || op == engine.OpContext {
			continue
		}
		r := w.Refused(op, args)
		w.Expect(r.Trigger).To(gomega.Equal("undeclared"), "%s", op)
		w.Expect(r.Detail.Action).NotTo(gomega.BeEmpty())
		w.Expect(r.Detail.State).NotTo(gomega.BeEmpty())
	}
	r := w.Refused(engine.OpContext, engine.ContextRequest{Session: s.Session, TargetID: s.Target, Kind: "window"})
	w.Expect(r.Detail.Action).To(gomega.Equal(engine.ActionWindowOpen))
	r = w.Refused(engine.OpType, engine.TypeRequest{Session: s.Session, TargetID: s.Target, TabID: s.Tab, Ref: s.Box, Text: "x", Delivery: engine.DeliveryForeground})
	w.Expect(r.Trigger).To(gomega.Equal("undeclared"))
	w.Expect(w.fake.Journal()).To(gomega.HaveLen(1))
}

func TestHostileWordsOfAnAdapterDoNotLeave(t *testing.T) {
	w := newWorld(t, enginetest.NewFake())
	s := w.Bound(page)
	w.fake.Set(enginetest.DefectHostileWords, true)
	r := w.Refused(engine.OpClick, engine.ClickRequest{Session: s.Session, TargetID: s.Target, TabID: s.Tab, Ref: s.Button})
	w.Expect(r.Trigger).To(gomega.Equal("protocol_violation"))
}

func TestAPrefixIsPartialWithItsCounts(t *testing.T) {
	w := newWorld(t, enginetest.NewFake())
	s := w.Bound(page)
	w.fake.Set(enginetest.DefectPrefix, true)
	rc := w.Type(s, "☂b👍🏽").Receipt
	w.Expect(rc.Effect).To(gomega.Equal(engine.EffectPartial))
	w.Expect(rc.RequestedCount).To(gomega.Equal(4))
	w.Expect(rc.Refusal.Code).To(gomega.Equal(engine.CodeInputIncomplete))
	w.Expect(rc.Refusal.Detail.DeliveredChars).To(gomega.Equal(1))
}

func TestLaunchFailuresLeaveNothing(t *testing.T) {
	for defect, want := range map[enginetest.Defect][2]string{
		enginetest.DefectLaunch:    {"launch_failed", "launch_failed"},
		enginetest.DefectNoDisplay: {"environment", "no_display"},
		enginetest.DefectHeadless:  {"environment", "no_native_window"},
		enginetest.DefectEndpoint:  {"endpoint_owner", ""},
		enginetest.DefectProcess:   {"launch_failed", "launch_failed"},
	} {
		t.Run(string(defect), func(t *testing.T) {
			w := newWorld(t, enginetest.NewFake(), func(c *Config) { c.Budgets.Launch = 300 * time.Millisecond })
			s := w.OK(engine.OpSessionStart, struct{}{}).Session.ID
			w.fake.Set(defect, true)
			r := w.Refused(engine.OpPrepare, engine.PrepareRequest{Session: s, AllowLaunch: true, Profile: engine.Profile{Kind: engine.PostureIsolatedNew}})
			w.Expect([2]string{r.Trigger, r.Detail.Limitation}).To(gomega.Equal(want))
			w.Expect(w.fake.Living()).To(gomega.BeZero())
			w.Expect(entries(w.root)).To(gomega.BeZero())
			w.fake.Set(defect, false)
		})
	}
	t.Run("profile root is a file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, enginetest.NewFake(), func(c *Config) { c.ProfileRoot = filepath.Join(file, "x") })
		s := w.OK(engine.OpSessionStart, struct{}{}).Session.ID
		r := w.Refused(engine.OpPrepare, engine.PrepareRequest{Session: s, AllowLaunch: true, Profile: engine.Profile{Kind: engine.PostureIsolatedNew}})
		w.Expect(r.Detail.Reason).To(gomega.Equal("profile_unwritable"))
	})
}

func TestPrepareTwiceAndReceipt(t *testing.T) {
	w := newWorld(t, enginetest.NewFake())
	s := w.OK(engine.OpSessionStart, struct{}{}).Session.ID
	req := engine.PrepareRequest{Session: s, AllowLaunch: true, Profile: engine.Profile{Kind: engine.PostureIsolatedNew}}
	first := w.OK(engine.OpPrepare, req)
	w.Expect(first.Receipt.SideEffects).To(gomega.Equal(engine.SideEffects{LaunchedBrowser: true, CreatedProfile: true, OpenedWindow: true}))
	info, err := os.Stat(w.root)
	w.Expect(err).NotTo(gomega.HaveOccurred())
	w.Expect(info.Mode().Perm()).To(gomega.Equal(os.FileMode(0o700)))
	second := w.OK(engine.OpPrepare, req)
	w.Expect(second.Prepared.Action).To(gomega.Equal("already_prepared"))
	w.Expect(second.Receipt.SideEffects).To(gomega.BeZero())
	w.Expect(w.fake.Living()).To(gomega.Equal(1))
	for kind, trigger := range map[engine.Posture]string{engine.PostureIsolatedNamed: "undeclared", engine.PostureExisting: "unsupported_engine"} {
		w.Expect(w.Refused(engine.OpPrepare, engine.PrepareRequest{Session: s, AllowLaunch: true, Profile: engine.Profile{Kind: kind}}).Trigger).To(gomega.Equal(trigger))
	}
	fresh := w.OK(engine.OpSessionStart, struct{}{}).Session.ID
	w.Expect(w.Refused(engine.OpPrepare, engine.PrepareRequest{Session: fresh, Profile: engine.Profile{Kind: engine.PostureIsolatedNew}}).Code).To(gomega.Equal(engine.CodeRequiresSetup))
}

func TestBrowserInitiatedWindowsAreDisclosedOnce(t *testing.T) {
	w := newWorld(t, enginetest.NewFake())
	s := w.Bound(page)
	w.fake.OpenWindow(engine.Rect{X: 500, Y: 300, W: 300, H: 200}, "popup")
	w.Expect(w.Type(s, "a").Receipt.BrowserInitiated).To(gomega.Equal([]string{"opened_window"}))
	w.Expect(w.Type(s, "b").Receipt.BrowserInitiated).To(gomega.BeEmpty())
}

func TestZeroEngineRefuses(t *testing.T) {
	g := gomega.NewWithT(t)
	var none *Engine
	_, err := none.Call(t.Context(), engine.OpDeclaration, nil)
	g.Expect(err).To(gomega.HaveOccurred())
	_, err = New(Config{})
	g.Expect(err).To(gomega.HaveOccurred())
	w := newWorld(t, enginetest.NewFake(), func(c *Config) { c.Native = nil })
	s := w.OK(engine.OpSessionStart, struct{}{}).Session.ID
	r := w.Refused(engine.OpPrepare, engine.PrepareRequest{Session: s, AllowLaunch: true, Profile: engine.Profile{Kind: engine.PostureIsolatedNew}})
	w.Expect(r.Detail.Limitation).To(gomega.Equal("no_display"))
	_, err = w.e.Call(t.Context(), "rm", nil)
	w.Expect(err).To(gomega.HaveOccurred())
}
