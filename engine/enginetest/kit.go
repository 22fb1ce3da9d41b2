package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix/refusal"
)

// Subject is the engine that [Test] drives.
type Subject struct {
	// Open gives a fresh engine; it registers its own clean-up.
	Open func(t *testing.T) engine.Engine
	// Page is the URL of a page with exactly one textbox, and a button.
	Page string
	// Interleavings is the number of times that two callers act at once; 0 means 200 (B16).
	Interleavings int
}

// refusalBudget is the longest that a refusal may take that needs no wire (R7).
const refusalBudget = 50 * time.Millisecond

// Test runs the kit. It uses the public interface only, so what it holds for one engine it holds for every one.
func Test(t *testing.T, s Subject) {
	if s.Interleavings == 0 {
		s.Interleavings = 200
	}
	t.Run("declaration_is_total_and_stable", func(t *testing.T) {
		g, c := gomega.NewWithT(t), NewCaller(t, s.Open(t))
		first := c.OK(engine.OpDeclaration, struct{}{}).Declaration
		g.Expect(first.Total()).To(gomega.Succeed())
		g.Expect(c.OK(engine.OpDeclaration, struct{}{}).Declaration).To(gomega.Equal(first))
	})
	t.Run("foreign_and_guessed_ids_are_refused", func(t *testing.T) {
		g, c := gomega.NewWithT(t), NewCaller(t, s.Open(t))
		w := c.Bound(s.Page)
		other := c.OK(engine.OpSessionStart, struct{}{}).Session.ID
		for _, session := range []string{other, w.Session, "bs-guessed", ""} {
			for _, target := range []string{w.Target, "bt-guessed", ""} {
				if session == w.Session && target == w.Target {
					continue
				}
				for op, args := range Verbs(session, target, w.Tab, w.Box) {
					g.Expect(c.Refused(op, args).Code).To(gomega.Equal(engine.CodeBindingStale), "%s", op)
				}
			}
		}
		for _, ref := range []string{"sn-guessed:0", strings.TrimSuffix(w.Box, "0") + "77", w.Box + "x", "0"} {
			g.Expect(c.Refused(engine.OpClick, engine.ClickRequest{Session: w.Session, TargetID: w.Target, TabID: w.Tab, Ref: ref}).Code).To(gomega.Equal(engine.CodeRefStale))
		}
		g.Expect(c.Refused(engine.OpState, engine.StateRequest{Session: w.Session, Mode: engine.ModeSnapshot, TargetID: w.Target, TabID: "tb-guessed"}).Code).
			To(gomega.Equal(engine.CodeBindingStale))
	})
	t.Run("a_newer_snapshot_and_a_navigation_retire_refs", func(t *testing.T) {
		g, c := gomega.NewWithT(t), NewCaller(t, s.Open(t))
		w := c.Bound(s.Page)
		c.Look(&w)
		old := w.Box
		c.Look(&w)
		g.Expect(c.Refused(engine.OpType, engine.TypeRequest{Session: w.Session, TargetID: w.Target, TabID: w.Tab, Ref: old, Text: "x"}).Code).To(gomega.Equal(engine.CodeRefStale))
		c.OK(engine.OpNavigate, engine.NavigateRequest{Session: w.Session, TargetID: w.Target, TabID: w.Tab, URL: s.Page})
		g.Expect(c.Refused(engine.OpType, engine.TypeRequest{Session: w.Session, TargetID: w.Target, TabID: w.Tab, Ref: w.Box, Text: "x"}).Code).To(gomega.Equal(engine.CodeRefStale))
	})
	t.Run("a_replaced_value_is_the_expected_one_and_is_told", func(t *testing.T) {
		g, c := gomega.NewWithT(t), NewCaller(t, s.Open(t))
		w := c.Bound(s.Page)
		c.Look(&w)
		c.Type(w, "first")
		other, first := "other", "first"
		req := engine.TypeRequest{Session: w.Session, TargetID: w.Target, TabID: w.Tab, Ref: w.Box, Text: "second", Replace: true, Expected: &other}
		g.Expect(c.Refused(engine.OpType, req).Trigger).To(gomega.Equal("value_changed"))
		req.Expected = &first
		g.Expect(c.OK(engine.OpType, req).Receipt.ValueBefore).To(gomega.HaveValue(gomega.Equal("first")))
		req.Expected = nil
		g.Expect(c.OK(engine.OpType, req).Receipt.ValueBefore).To(gomega.HaveValue(gomega.Equal("second")))
		g.Expect(c.Value(&w)).To(gomega.Equal("second"))
	})
	t.Run("a_session_ends_once_and_for_all_and_alone", func(t *testing.T) {
		g, c := gomega.NewWithT(t), NewCaller(t, s.Open(t))
		w, v := c.Bound(s.Page), c.Bound(s.Page)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { c.OK(engine.OpSessionEnd, engine.SessionRequest{Session: w.Session}) })
		}
		wg.Wait()
		for op, args := range Verbs(w.Session, w.Target, w.Tab, w.Box) {
			g.Expect(c.Refused(op, args).Code).To(gomega.Equal(engine.CodeBindingStale), "%s", op)
		}
		c.Type(v, "alive")
		g.Expect(c.Value(&v)).To(gomega.Equal("alive"))
	})
	t.Run("hostile_arguments_are_refused", func(t *testing.T) {
		g, c := gomega.NewWithT(t), NewCaller(t, s.Open(t))
		w := c.Bound(s.Page)
		for name, raw := range HostileArguments(w) {
			started := time.Now()
			res, err := c.Engine.Call(t.Context(), raw.Op, json.RawMessage(raw.Args))
			took := time.Since(started)
			g.Expect(err).NotTo(gomega.HaveOccurred(), name)
			g.Expect(res.Status).To(gomega.Equal(engine.StatusRefused), name)
			g.Expect(c.Table.Check(res.Refusal)).To(gomega.Succeed(), name)
			g.Expect(res.Refusal.Trigger).To(gomega.Equal("argument"), name)
			if len(raw.Args) < 1<<16 {
				g.Expect(took).To(gomega.BeNumerically("<", refusalBudget), name)
			}
		}
		g.Expect(c.Value(&w)).To(gomega.BeEmpty())
	})
	t.Run("two_callers_never_cross", func(t *testing.T) {
		g, c := gomega.NewWithT(t), NewCaller(t, s.Open(t))
		a, b := c.Bound(s.Page), c.Bound(s.Page)
		twin := a
		twin.Tab = c.OK(engine.OpContext, engine.ContextRequest{Session: a.Session, TargetID: a.Target, Kind: "open"}).Tab.ID
		c.Go(&twin, s.Page)
		// Three scopes: two tabs of one browser, and another session with a browser of its own.
		scopes := []*Scope{&a, &twin, &b}
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range s.Interleavings {
			x, y := rng.IntN(3), rng.IntN(2)
			if y >= x {
				y++
			}
			want := map[*Scope]string{scopes[x]: fmt.Sprintf("x%d", i), scopes[y]: fmt.Sprintf("y%d", i)}
			var wg sync.WaitGroup
			for scope, text := range want {
				wg.Go(func() { c.Look(scope); c.Type(*scope, text) })
			}
			wg.Wait()
			for scope, text := range want {
				g.Expect(c.Value(scope)).To(gomega.Equal(text))
			}
		}
	})
}

// Caller calls an engine and holds every answer to what all answers must be.
type Caller struct {
	t      *testing.T
	Engine engine.Engine
	Table  *refusal.Table
}

// NewCaller makes a caller that fails t.
func NewCaller(t *testing.T, e engine.Engine) *Caller {
	t.Helper()
	table, err := refusal.Load()
	if err != nil {
		t.Fatal(err)
	}
	return &Caller{t: t, Engine: e, Table: table}
}

// Call calls and checks the form of the answer: a refusal fits the table and comes alone, an effect is one of the list.
func (c *Caller) Call(ctx context.Context, op engine.Operation, args any) engine.Result {
	c.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		c.t.Fatal(err)
	}
	res, err := c.Engine.Call(ctx, op, raw)
	if err != nil {
		c.t.Errorf("%s: carrier fault: %v", op, err)
		return res
	}
	switch res.Status {
	case engine.StatusRefused:
		if err := c.Table.Check(res.Refusal); err != nil {
			c.t.Errorf("%s: %v", op, err)
		}
		if alone := engine.Refused(res.Refusal); !sameResult(alone, res) {
			c.t.Errorf("%s: a refusal came with more: %+v", op, res)
		}
	case engine.StatusOK:
		if res.Refusal != nil {
			c.t.Errorf("%s: ok with a refusal", op)
		}
		if rc := res.Receipt; rc != nil {
			if rc.Operation != op || rc.Effect == "" || rc.Route == "" || rc.Trust == "" || rc.Delivery == "" || rc.BrowserInitiated == nil {
				c.t.Errorf("%s: receipt with holes: %+v", op, *rc)
			}
			if rc.Refusal != nil {
				if err := c.Table.Check(rc.Refusal); err != nil {
					c.t.Errorf("%s: receipt: %v", op, err)
				}
			}
		}
	default:
		c.t.Errorf("%s: status %q", op, res.Status)
	}
	return res
}

func sameResult(a, b engine.Result) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// OK calls and fails the test unless the answer is ok.
func (c *Caller) OK(op engine.Operation, args any) engine.Result {
	c.t.Helper()
	res := c.Call(c.t.Context(), op, args)
	if res.Status != engine.StatusOK {
		c.t.Fatalf("%s: refused: %+v", op, res.Refusal)
	}
	return res
}

// Refused calls and fails the test unless the answer is a refusal.
func (c *Caller) Refused(op engine.Operation, args any) *engine.Refusal {
	c.t.Helper()
	res := c.Call(c.t.Context(), op, args)
	if res.Status != engine.StatusRefused {
		c.t.Fatalf("%s: not refused: %+v", op, res)
	}
	return res.Refusal
}

// Scope is one tab with the refs of its newest snapshot.
type Scope struct {
	Session, Target, Tab string
	PID                  int
	Window               uint32
	Generation           string
	// Box and Button are refs.
	Box, Button string
}

// Start starts a session with a browser.
func (c *Caller) Start() Scope {
	c.t.Helper()
	s := Scope{Session: c.OK(engine.OpSessionStart, struct{}{}).Session.ID}
	p := c.OK(engine.OpPrepare, engine.PrepareRequest{Session: s.Session, AllowLaunch: true, Profile: engine.Profile{Kind: engine.PostureIsolatedNew}}).Prepared
	s.PID, s.Window, s.Generation = p.PID, p.Windows[0], p.Generation
	return s
}

// Bound starts a session, binds its first window and opens url in it. With an empty url it does not navigate.
func (c *Caller) Bound(url string) Scope {
	c.t.Helper()
	s := c.Start()
	t := c.OK(engine.OpState, engine.StateRequest{Session: s.Session, Mode: engine.ModeBind, PID: s.PID, WindowID: s.Window}).Target
	s.Target, s.Tab = t.ID, t.Tabs[0].ID
	if url != "" {
		c.Go(&s, url)
	}
	return s
}

// Go navigates and takes a snapshot.
func (c *Caller) Go(s *Scope, url string) {
	c.t.Helper()
	c.OK(engine.OpNavigate, engine.NavigateRequest{Session: s.Session, TargetID: s.Target, TabID: s.Tab, URL: url})
	c.Look(s)
}

// Look takes a snapshot and keeps the refs.
func (c *Caller) Look(s *Scope) *engine.Snapshot {
	c.t.Helper()
	snap := c.OK(engine.OpState, engine.StateRequest{Session: s.Session, Mode: engine.ModeSnapshot, TargetID: s.Target, TabID: s.Tab}).Snapshot
	for _, r := range snap.Refs {
		switch r.Role {
		case "textbox":
			s.Box = r.Ref
		case "button":
			s.Button = r.Ref
		}
	}
	return snap
}

// Type replaces the textbox's text.
func (c *Caller) Type(s Scope, text string) engine.Result {
	c.t.Helper()
	return c.OK(engine.OpType, engine.TypeRequest{Session: s.Session, TargetID: s.Target, TabID: s.Tab, Ref: s.Box, Text: text, Replace: true})
}

// Value reads the textbox.
func (c *Caller) Value(s *Scope) string {
	c.t.Helper()
	for _, r := range c.Look(s).Refs {
		if r.Role == "textbox" {
			return r.Value
		}
	}
	c.t.Fatal("no textbox")
	return ""
}

// Verbs gives one well-formed call of every tool that works on a bound tab.
func Verbs(session, target, tab, ref string) map[engine.Operation]any {
	act := engine.ActRequest{Session: session, TargetID: target, TabID: tab, Ref: ref}
	pointer, dialog := act, act
	pointer.Kind, dialog.Kind, dialog.Ref = "hover", "accept", ""
	return map[engine.Operation]any{
		engine.OpState:      engine.StateRequest{Session: session, Mode: engine.ModeSnapshot, TargetID: target, TabID: tab},
		engine.OpNavigate:   engine.NavigateRequest{Session: session, TargetID: target, TabID: tab, URL: "about:blank"},
		engine.OpClick:      engine.ClickRequest{Session: session, TargetID: target, TabID: tab, Ref: ref},
		engine.OpType:       engine.TypeRequest{Session: session, TargetID: target, TabID: tab, Ref: ref, Text: "x"},
		engine.OpContext:    engine.ContextRequest{Session: session, TargetID: target, TabID: tab, Kind: "open"},
		engine.OpPointer:    pointer,
		engine.OpSelect:     act,
		engine.OpDialog:     dialog,
		engine.OpUpload:     act,
		engine.OpDownload:   act,
		engine.OpScreenshot: dialog,
	}
}

// RawCall is one call with its arguments as bytes.
type RawCall struct {
	Op   engine.Operation
	Args string
}

// HostileArguments are calls that must be refused with trigger argument, by name. The ids in them are good.
func HostileArguments(s Scope) map[string]RawCall {
	base := fmt.Sprintf(`"session":%q,"target_id":%q,"tab_id":%q`, s.Session, s.Target, s.Tab)
	typ := base + fmt.Sprintf(`,"ref":%q`, s.Box)
	return map[string]RawCall{
		"list":                     {engine.OpType, `[]`},
		"null":                     {engine.OpType, `null`},
		"number":                   {engine.OpType, `7`},
		"text":                     {engine.OpType, `"x"`},
		"two_values":               {engine.OpType, `{} {}`},
		"cut_short":                {engine.OpType, `{"session":`},
		"not_json":                 {engine.OpType, `session=x`},
		"unknown_field":            {engine.OpType, `{` + typ + `,"text":"x","force":true}`},
		"other_case":               {engine.OpType, `{` + typ + `,"TEXT":"x"}`},
		"duplicate":                {engine.OpType, `{` + typ + `,"text":"x","text":"y"}`},
		"null_text":                {engine.OpType, `{` + typ + `,"text":null}`},
		"number_text":              {engine.OpType, `{` + typ + `,"text":5}`},
		"expected_without_replace": {engine.OpType, `{` + typ + `,"text":"x","expected_value":"y"}`},
		"expected_number":          {engine.OpType, `{` + typ + `,"text":"x","replace":true,"expected_value":5}`},
		"text_flag":                {engine.OpType, `{` + typ + `,"text":"x","replace":"yes"}`},
		"object_text":              {engine.OpType, `{` + typ + `,"text":{"a":"x"}}`},
		"invalid_utf8":             {engine.OpType, `{` + typ + `,"text":"` + "\xff\xfe" + `"}`},
		"half_surrogate":           {engine.OpType, `{` + typ + `,"text":"\ud83d"}`},
		"half_surrogate_late":      {engine.OpType, `{` + typ + `,"text":"\ud83d\u0041"}`},
		"low_surrogate":            {engine.OpType, `{` + typ + `,"text":"\udc00"}`},
		"huge_text":                {engine.OpType, `{` + typ + `,"text":"` + strings.Repeat("x", 600<<10) + `"}`},
		"huge_call":                {engine.OpType, `{` + typ + `,"text":"` + strings.Repeat("x", engine.MaxArgs) + `"}`},
		"unknown_mode":             {engine.OpType, `{` + typ + `,"text":"x","mode":"telepathy"}`},
		"unknown_delivery":         {engine.OpType, `{` + typ + `,"text":"x","delivery":"sideways"}`},
		"no_text":                  {engine.OpType, `{` + typ + `}`},
		"no_ref":                   {engine.OpType, `{` + base + `,"text":"x"}`},
		"deep":                     {engine.OpType, `{"session":` + strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000) + `}`},
		"unknown_route":            {engine.OpClick, `{` + typ + `,"input_route":"magic"}`},
		"script_url":               {engine.OpNavigate, `{` + base + `,"url":"javascript:alert(1)"}`},
		"file_url":                 {engine.OpNavigate, `{` + base + `,"url":"file:///etc/passwd"}`},
		"data_url":                 {engine.OpNavigate, `{` + base + `,"url":"data:text/html,x"}`},
		"browser_url":              {engine.OpNavigate, `{` + base + `,"url":"chrome://settings"}`},
		"about_config":             {engine.OpNavigate, `{` + base + `,"url":"about:config"}`},
		"padded_url":               {engine.OpNavigate, `{` + base + `,"url":" javascript:alert(1)"}`},
		"split_url":                {engine.OpNavigate, `{` + base + `,"url":"java\nscript:alert(1)"}`},
		"relative_url":             {engine.OpNavigate, `{` + base + `,"url":"/x"}`},
		"hostless_url":             {engine.OpNavigate, `{` + base + `,"url":"http:///x"}`},
		"no_url":                   {engine.OpNavigate, `{` + base + `}`},
		"long_url":                 {engine.OpNavigate, `{` + base + `,"url":"http://a/` + strings.Repeat("x", 9000) + `"}`},
		"big_pid":                  {engine.OpState, fmt.Sprintf(`{"session":%q,"mode":"bind","pid":99999999999999999999,"window_id":1}`, s.Session)},
		"negative_pid":             {engine.OpState, fmt.Sprintf(`{"session":%q,"mode":"bind","pid":-1,"window_id":1}`, s.Session)},
		"fraction_pid":             {engine.OpState, fmt.Sprintf(`{"session":%q,"mode":"bind","pid":1.5,"window_id":1}`, s.Session)},
		"negative_window":          {engine.OpState, fmt.Sprintf(`{"session":%q,"mode":"bind","pid":1,"window_id":-1}`, s.Session)},
		"unknown_state_mode":       {engine.OpState, fmt.Sprintf(`{"session":%q,"mode":"peek"}`, s.Session)},
		"negative_nodes":           {engine.OpState, `{` + base + `,"mode":"snapshot","max_nodes":-1}`},
		"mixed_modes":              {engine.OpState, `{` + base + `,"mode":"snapshot","pid":5}`},
		"unknown_profile":          {engine.OpPrepare, fmt.Sprintf(`{"session":%q,"allow_launch":true,"profile":{"kind":"mine"}}`, s.Session)},
		"profile_extra":            {engine.OpPrepare, fmt.Sprintf(`{"session":%q,"allow_launch":true,"profile":{"kind":"isolated_new","path":"/"}}`, s.Session)},
		"profile_list":             {engine.OpPrepare, fmt.Sprintf(`{"session":%q,"allow_launch":true,"profile":[]}`, s.Session)},
		"window_without_pid":       {engine.OpPrepare, fmt.Sprintf(`{"session":%q,"allow_launch":true,"profile":{"kind":"isolated_new"},"window_id":9}`, s.Session)},
		"unknown_kind":             {engine.OpContext, `{` + base + `,"kind":"explode"}`},
		"unknown_gesture":          {engine.OpPointer, `{` + typ + `,"kind":"wiggle"}`},
		"arguments_for_none":       {engine.OpSessionStart, `{"session":"x"}`},
	}
}
