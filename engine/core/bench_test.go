package core

import (
	"encoding/json"
	"testing"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/engine/enginetest"
)

// BenchmarkClickWithProof is the core's own share of a click: store, proof, capability, receipt, over answers that cost nothing. What the
// window system and the browser add is measured by their own packages.
func BenchmarkClickWithProof(b *testing.B) {
	fake := enginetest.NewFake()
	e, err := New(Config{Adapter: fake.Adapter(), Native: fake.Native(), ProfileRoot: b.TempDir(), Env: []string{"PATH=/bin"}})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close(b.Context())
	call := func(op engine.Operation, v any) engine.Result {
		raw, _ := json.Marshal(v)
		res, err := e.Call(b.Context(), op, raw)
		if err != nil || res.Status != engine.StatusOK {
			b.Fatalf("%s: %v %+v", op, err, res.Refusal)
		}
		return res
	}
	s := call(engine.OpSessionStart, struct{}{}).Session.ID
	p := call(engine.OpPrepare, engine.PrepareRequest{Session: s, AllowLaunch: true, Profile: engine.Profile{Kind: engine.PostureIsolatedNew}}).Prepared
	t := call(engine.OpState, engine.StateRequest{Session: s, Mode: engine.ModeBind, PID: p.PID, WindowID: p.Windows[0]}).Target
	snap := call(engine.OpState, engine.StateRequest{Session: s, Mode: engine.ModeSnapshot, TargetID: t.ID}).Snapshot
	args := engine.ClickRequest{Session: s, TargetID: t.ID, Ref: snap.Refs[1].Ref}
	for b.Loop() {
		call(engine.OpClick, args)
	}
}
