package core

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/engine/enginetest"
)

// TestReconnectHasOneLeaderAndRevivesNothing is G11 and G17.
func TestReconnectHasOneLeaderAndRevivesNothing(t *testing.T) {
	w := newWorld(t, enginetest.NewFake().AllowReconnect())
	s := w.Bound(page)
	w.Type(s, "before")
	before := len(w.fake.Journal())
	w.fake.Set(enginetest.DefectConnection, true)
	var led atomic.Int32
	w.fake.Delay(func(verb string) {
		if verb == "reconnect" {
			led.Add(1)
		}
	})
	r := w.Refused(engine.OpClick, engine.ClickRequest{Session: s.Session, TargetID: s.Target, TabID: s.Tab, Ref: s.Button})
	w.Expect(r.Detail.Reason).To(gomega.Equal("connection"))
	w.Expect(r.Detail.NextAction).To(gomega.Equal("bind"))
	var wg sync.WaitGroup
	targets := make([]*engine.Target, 50)
	for i := range targets {
		wg.Go(func() { targets[i] = w.OK(engine.OpState, bind(s, s.Window)).Target })
	}
	wg.Wait()
	w.Expect(led.Load()).To(gomega.BeEquivalentTo(1))
	for _, target := range targets {
		w.Expect(target.Generation).To(gomega.Equal(r.Detail.Generation))
		w.Expect(target.ID).NotTo(gomega.Equal(s.Target))
	}
	for op, args := range enginetest.Verbs(s.Session, s.Target, s.Tab, s.Box) {
		w.Expect(w.Refused(op, args).Code).To(gomega.Equal(engine.CodeBindingStale), "%s", op)
	}
	w.Expect(w.fake.Journal()).To(gomega.HaveLen(before))
	s.Target, s.Tab = targets[0].ID, targets[0].Tabs[0].ID
	w.Look(&s)
	w.Type(s, "after")
	w.Expect(w.Value(&s)).To(gomega.Equal("after"))
}

// A bind finds a connection lost that it took for alive: the loss is learned while the bind reads. It binds all the same, once the
// connection is made anew, and where no connection can be made anew it says so.
func TestABindThatMeetsTheLossBindsAnew(t *testing.T) {
	for _, able := range []bool{true, false} {
		fake := enginetest.NewFake()
		if able {
			fake.AllowReconnect()
		}
		w := newWorld(t, fake)
		s := w.Bound(page)
		var cut atomic.Bool
		w.fake.Delay(func(verb string) {
			if verb == "contexts" && cut.CompareAndSwap(false, true) {
				w.fake.Set(enginetest.DefectConnection, true)
			}
		})
		if !able {
			w.Expect(w.Refused(engine.OpState, bind(s, s.Window)).Code).To(gomega.Equal(engine.CodeBindingStale))
			continue
		}
		target := w.OK(engine.OpState, bind(s, s.Window)).Target
		w.Expect(cut.Load()).To(gomega.BeTrue())
		w.Expect(target.ID).NotTo(gomega.Equal(s.Target))
	}
}

func TestASpentReconnectBudgetSaysSo(t *testing.T) {
	w := newWorld(t, enginetest.NewFake().AllowReconnect(), func(c *Config) { c.Budgets.Reconnect = 3 * time.Second })
	s := w.Bound(page)
	w.fake.Set(enginetest.DefectReconnect, true)
	w.fake.Set(enginetest.DefectConnection, true)
	for range 2 {
		r := w.Refused(engine.OpState, bind(s, s.Window))
		w.Expect(r.Code).To(gomega.Equal(engine.CodeReconnectExhausted))
		w.Expect(r.Detail.Attempts).To(gomega.Equal(3))
	}
	again := w.OK(engine.OpPrepare, engine.PrepareRequest{Session: s.Session, AllowLaunch: true, Profile: engine.Profile{Kind: engine.PostureIsolatedNew}})
	w.Expect(again.Prepared.Action).To(gomega.Equal("launched_isolated_browser"))
	w.Expect(w.fake.Living()).To(gomega.Equal(1))
}

func TestReconnectSendsNothingToAnotherListener(t *testing.T) {
	w := newWorld(t, enginetest.NewFake().AllowReconnect())
	s := w.Bound(page)
	w.fake.Set(enginetest.DefectConnection, true)
	w.fake.Set(enginetest.DefectEndpoint, true)
	asked := w.fake.Asked()
	w.Expect(w.Refused(engine.OpState, bind(s, s.Window)).Code).To(gomega.Equal(engine.CodeEndpointOwnerMismatch))
	w.Expect(w.fake.Asked()).To(gomega.Equal(asked))
}
