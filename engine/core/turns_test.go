package core

import (
	"sync"
	"testing"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/engine/enginetest"
)

// meter counts how many calls of each verb are inside the browser at once.
type meter struct {
	mu        sync.Mutex
	now, most map[string]int
	release   chan struct{}
}

func newMeter() *meter {
	return &meter{now: map[string]int{}, most: map[string]int{}, release: make(chan struct{})}
}

func (m *meter) enter(verb string) {
	if verb == "contexts" {
		return // every call lists them, to prove its window
	}
	m.mu.Lock()
	m.now[verb]++
	m.most[verb] = max(m.most[verb], m.now[verb])
	m.mu.Unlock()
	<-m.release
	m.mu.Lock()
	m.now[verb]--
	m.mu.Unlock()
}

func (m *meter) inside(verb string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now[verb]
}

func TestReadsOverlapAndMutationsOfAWindowDoNot(t *testing.T) {
	w := newWorld(t, enginetest.NewFake())
	s := w.Bound(page)
	read := engine.StateRequest{Session: s.Session, Mode: engine.ModeSnapshot, TargetID: s.Target}
	m := newMeter()
	w.fake.Delay(m.enter)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { w.OK(engine.OpState, read) })
	}
	w.Eventually(func() int { return m.inside("snapshot") }).Should(gomega.Equal(2))
	close(m.release)
	wg.Wait()

	m = newMeter()
	w.fake.Delay(m.enter)
	for range 3 {
		wg.Go(func() {
			w.OK(engine.OpNavigate, engine.NavigateRequest{Session: s.Session, TargetID: s.Target, URL: page})
		})
	}
	w.Eventually(func() int { return m.inside("navigate") }).Should(gomega.Equal(1))
	// A window of another browser does not wait for this one.
	w.fake.Delay(nil)
	other := w.Bound(page)
	w.Type(other, "meanwhile")
	w.Expect(m.inside("navigate")).To(gomega.Equal(1))
	close(m.release)
	wg.Wait()
	w.Expect(m.most["navigate"]).To(gomega.Equal(1))
}

// TestARestartedEngineKnowsNothing is G4 on the engine's side: ids of an earlier process are refused by the new one.
func TestARestartedEngineKnowsNothing(t *testing.T) {
	before, after := newWorld(t, enginetest.NewFake()), newWorld(t, enginetest.NewFake())
	s := before.Bound(page)
	for op, args := range enginetest.Verbs(s.Session, s.Target, s.Tab, s.Box) {
		after.Expect(after.Refused(op, args).Code).To(gomega.Equal(engine.CodeBindingStale), "%s", op)
	}
	after.Expect(after.Refused(engine.OpSessionEnd, engine.SessionRequest{Session: s.Session}).Detail.Reason).To(gomega.Equal("session"))
	before.Type(s, "unharmed")
}

// TestTheSameTriggerGivesTheSameRefusal is R12 inside one run.
func TestTheSameTriggerGivesTheSameRefusal(t *testing.T) {
	w := newWorld(t, enginetest.NewFake())
	s := w.Bound(page)
	for _, c := range []struct {
		op   engine.Operation
		args any
	}{
		{engine.OpScreenshot, engine.ActRequest{Session: s.Session, TargetID: s.Target}},
		{engine.OpClick, engine.ClickRequest{Session: s.Session, TargetID: s.Target, Ref: "sn-old:0"}},
		{engine.OpNavigate, engine.NavigateRequest{Session: s.Session, TargetID: "bt-guessed", URL: page}},
		{engine.OpState, engine.StateRequest{Session: s.Session, Mode: engine.ModeBind, PID: 1 << 30, WindowID: 1}},
	} {
		first := w.Refused(c.op, c.args)
		for range 20 {
			w.Expect(w.Refused(c.op, c.args)).To(gomega.Equal(first))
		}
	}
}
