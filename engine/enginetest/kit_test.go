package enginetest_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/engine/core"
	"github.com/engine-acceptance/acceptance/engine/enginetest"
)

// faultVar names the fault that the engine of TestSubject has.
const faultVar = "ENGINETEST_FAULT"

// faulty is a healthy engine with one fault in front of it.
type faulty struct {
	engine.Engine
	fault string

	mu      sync.Mutex
	box     string
	session string
}

func (f *faulty) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	var fields map[string]any
	_ = json.Unmarshal(args, &fields)
	again := func() json.RawMessage {
		raw, err := json.Marshal(fields)
		if err != nil {
			return args
		}
		return raw
	}
	f.mu.Lock()
	switch f.fault {
	case "loose_arguments": // unknown fields are dropped
		if _, ok := fields["force"]; ok {
			delete(fields, "force")
			args = again()
		}
	case "revived_refs": // an old ref means the newest snapshot
		if ref, ok := fields["ref"].(string); ok && f.box != "" && strings.HasSuffix(ref, f.box[strings.IndexByte(f.box, ':'):]) {
			fields["ref"] = f.box
			args = again()
		}
	case "shared_sessions": // a foreign session is served as the owner's
		if s, ok := fields["session"].(string); ok && s != f.session && fields["target_id"] != nil {
			fields["session"] = f.session
			args = again()
		}
	}
	f.mu.Unlock()
	if f.fault == "unending_session" && op == engine.OpSessionEnd {
		return engine.Result{Status: engine.StatusOK, Session: &engine.Session{ID: "x"}}, nil
	}
	res, err := f.Engine.Call(ctx, op, args)
	f.mu.Lock()
	defer f.mu.Unlock()
	if op == engine.OpSessionStart && res.Session != nil && f.session == "" {
		f.session = res.Session.ID
	}
	if res.Snapshot != nil {
		f.box = res.Snapshot.Refs[0].Ref
	}
	switch {
	case f.fault == "holes" && res.Declaration != nil:
		res.Declaration.Claims = res.Declaration.Claims[1:]
	case f.fault == "free_words" && res.Refusal != nil:
		res.Refusal.Detail.Reason = "pid 4711 said no"
	case f.fault == "empty_effect" && res.Receipt != nil:
		res.Receipt.Effect = ""
	case f.fault == "crossed_values" && op == engine.OpState && res.Snapshot != nil:
		for i := range res.Snapshot.Refs {
			if v := res.Snapshot.Refs[i].Value; strings.HasPrefix(v, "x") {
				res.Snapshot.Refs[i].Value = "y" + v[1:]
			}
		}
	}
	return res, err
}

func TestSubject(t *testing.T) {
	enginetest.Test(t, enginetest.Subject{Page: "http://127.0.0.1/", Interleavings: 20, Open: func(t *testing.T) engine.Engine {
		fake := enginetest.NewFake()
		e, err := core.New(core.Config{Adapter: fake.Adapter(), Native: fake.Native(), ProfileRoot: filepath.Join(t.TempDir(), "p"), Env: []string{"PATH=/bin"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if err := e.Close(ctx); err != nil {
				t.Error(err)
			}
		})
		return &faulty{Engine: e, fault: os.Getenv(faultVar)}
	}})
}

// TestTheKitSeesEveryFault runs the kit in a process of its own against an engine with one fault each, and wants exactly the parts of the kit
// red that look for it.
func TestTheKitSeesEveryFault(t *testing.T) {
	if os.Getenv(faultVar) != "" {
		return
	}
	for fault, want := range map[string][]string{
		"holes":            {"declaration_is_total_and_stable"},
		"shared_sessions":  {"a_session_ends_once_and_for_all_and_alone", "foreign_and_guessed_ids_are_refused", "two_callers_never_cross"},
		"revived_refs":     {"a_newer_snapshot_and_a_navigation_retire_refs"},
		"unending_session": {"a_session_ends_once_and_for_all_and_alone"},
		"loose_arguments":  {"hostile_arguments_are_refused"},
		"crossed_values":   {"two_callers_never_cross"},
	} {
		t.Run(fault, func(t *testing.T) {
			g := gomega.NewWithT(t)
			out := kit(t, fault)
			for _, part := range want {
				g.Expect(out).To(gomega.ContainSubstring("--- FAIL: TestSubject/" + part))
			}
			if fault != "revived_refs" { // there every caller's refs mix
				g.Expect(strings.Count(out, "--- FAIL: TestSubject/")).To(gomega.Equal(len(want)), out)
			}
		})
	}
	for _, fault := range []string{"free_words", "empty_effect"} { // seen wherever such an answer comes by
		t.Run(fault, func(t *testing.T) {
			gomega.NewWithT(t).Expect(kit(t, fault)).To(gomega.ContainSubstring("--- FAIL: TestSubject"))
		})
	}
}

func kit(t *testing.T, fault string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestSubject$", "-test.v")
	cmd.Env = append(os.Environ(), faultVar+"="+fault)
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("the kit did not see %s", fault)
	}
	return string(out)
}
