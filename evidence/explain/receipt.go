package explain

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/matrix"
)

// Agreement says how a field of a receipt stands beside what was seen.
type Agreement string

// The closed list of agreements. The zero value is none of them.
const (
	Agrees Agreement = "agrees"
	Differ Agreement = "differs"
	// Unmeasured: no oracle looks at this field.
	Unmeasured Agreement = "not measured"
)

// Field is one field of a receipt, what the receipt says, and what the oracles saw.
type Field struct {
	Name      string    `json:"field"`
	Says      string    `json:"says"`
	Seen      string    `json:"seen"`
	Agreement Agreement `json:"agreement"`
}

// ReceiptCheck is one receipt beside the oracles.
type ReceiptCheck struct {
	Step        string           `json:"step"`
	Operation   engine.Operation `json:"operation"`
	Observation int              `json:"observation"`
	Fields      []Field          `json:"fields"`
	// Unset names the side effects that the receipt denies and no oracle saw; they are no fields of their own.
	Unset []string `json:"side_effects_denied_and_not_seen,omitempty"`
}

// Differs reports whether a field differs.
func (r ReceiptCheck) Differs() bool {
	return slices.ContainsFunc(r.Fields, func(f Field) bool { return f.Agreement == Differ })
}

// window is what the oracles saw in the window of time of one call.
type window struct {
	effects            map[string]int
	trusted, untrusted int
	load               int
	value              *string
	secret             bool
	desk               map[string]int
	flags              map[string]bool
}

func look(obs []evidence.Observation, call evidence.Observation) window {
	c := call.Call
	w := window{effects: map[string]int{}, desk: map[string]int{}, flags: map[string]bool{}}
	in := func(ns int64) bool { return ns >= c.StartNS && ns <= c.ClosedNS }
	for _, o := range obs {
		switch {
		case o.Journal != nil && in(o.MonoNS) && o.Journal.Signed && o.Journal.Page == c.Page && c.Page != "":
			w.journal(o.Journal)
		case o.Desk != nil && in(o.Desk.EventNS):
			w.deskEvent(o)
		case o.System != nil && o.Step == call.Step && (c.Operation == engine.OpPrepare || c.Operation == engine.OpSessionEnd):
			name := map[string]string{evidence.FactLaunched: "launched_browser", evidence.FactWindowOpened: "opened_window", evidence.FactProfileOwn: "created_profile",
				evidence.FactRestarted: "restarted_browser"}[o.System.Fact]
			if o.System.Fact == evidence.FactProcessesGone && c.Operation == engine.OpSessionEnd {
				name = "closed_window"
			}
			if o.System.Fact == evidence.FactWindowAbove && o.System.Holds {
				name = "raised_window"
			}
			if name != "" {
				w.flags[name] = o.System.Holds
			}
		}
	}
	return w
}

func (w *window) journal(j *evidence.Journal) {
	switch j.Type {
	case "load":
		w.load++
	case "click", "input", "change":
		where := j.Type
		if j.Control != "" {
			where += " on " + word(j.Control)
		}
		w.effects[where]++
		if j.Trusted {
			w.trusted++
		} else {
			w.untrusted++
		}
		if j.Type == "input" {
			w.value = &j.Value
			w.secret = w.secret || j.ValueDigest != ""
		}
	}
}

func (w *window) deskEvent(o evidence.Observation) {
	d := o.Desk
	if evidence.ChargeOf(d.Actor, d.Request != "") != evidence.ChargeEngine || d.Reason == evidence.ReadDisclosed {
		return
	}
	w.desk[string(d.Reason)]++
	switch d.Reason {
	case evidence.ReasonFocusLeft:
		w.flags["foregrounded_window"] = true
	case evidence.ReasonWindowAbovePerson, evidence.ReasonStackingChanged:
		w.flags["raised_window"] = true
	case evidence.ReasonPointerMoved, evidence.ReasonPointerWarped:
		w.flags["moved_pointer"] = true
	case evidence.ReasonClipboardTaken, evidence.ReasonPrimaryTaken:
		w.flags["took_clipboard"] = true
	}
}

// counted lists what was counted, sorted: "input on full-name, 2 × change".
func counted(m map[string]int, none string) string {
	if len(m) == 0 {
		return none
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if m[k] > 1 {
			k = fmt.Sprintf("%d × %s", m[k], k)
		}
		parts = append(parts, k)
	}
	return strings.Join(parts, ", ")
}

// CompareReceipt puts the receipt of a call beside what journal, desk and system saw in its window of time. It is for readers; the judge
// compares for itself, and where a rule of its own decides (the effect), that rule is asked. It returns false for a call without a receipt.
func CompareReceipt(c matrix.Contract, obs []evidence.Observation, call evidence.Observation) (ReceiptCheck, bool) {
	if call.Call == nil || call.Call.Receipt == nil || call.Call.Block != "" {
		return ReceiptCheck{}, false // a call in a block has no window of time of its own to look into
	}
	r, w := call.Call.Receipt, look(obs, call)
	out := ReceiptCheck{Step: call.Step, Operation: call.Call.Operation, Observation: call.Seq}
	add := func(name, says, seen string, how Agreement) {
		out.Fields = append(out.Fields, Field{name, word(says), word(seen), how})
	}
	is := func(ok bool) Agreement {
		if ok {
			return Agrees
		}
		return Differ
	}
	add("operation", string(r.Operation), string(call.Call.Operation)+" was called", is(r.Operation == call.Call.Operation))
	effect, how := w.effect(c, obs, call)
	add("effect", string(r.Effect), effect, how)
	trust, how := w.trust(call.Call)
	add("trust", string(r.Trust), trust, how)
	add("route", string(r.Route), "no oracle of its own: see trust", Unmeasured)
	if r.Delivery == engine.DeliveryBackground && call.Phase == evidence.PhaseBackground {
		add("delivery", string(r.Delivery), counted(w.desk, "the desk stayed as it was"), is(len(w.desk) == 0))
	} else {
		add("delivery", string(r.Delivery), counted(w.desk, "the desk stayed as it was"), Unmeasured)
	}
	if r.Operation == engine.OpType {
		add("requested_count", fmt.Sprint(r.RequestedCount), fmt.Sprintf("%d code points were asked for", call.Call.Chars), is(r.RequestedCount == call.Call.Chars))
		seen, how := w.delivered(r)
		add("delivered_count", fmt.Sprint(r.DeliveredCount), seen, how)
	}
	visible := "null"
	if r.ContextVisible != nil {
		visible = fmt.Sprint(*r.ContextVisible)
	}
	seen, how := shown(c, obs, r)
	add("context_visible_tab", visible, seen, how)
	out.flags(r, w, call)
	return out, true
}

// effect puts the judge's own ruling on a receipt's effect beside what was counted.
func (w window) effect(c matrix.Contract, obs []evidence.Observation, call evidence.Observation) (string, Agreement) {
	if call.Call.Page == "" {
		return "the call was aimed at no page", Unmeasured
	}
	text := counted(w.effects, "no page event in the call's window of time")
	if call.Call.Operation == engine.OpNavigate {
		text = Count(w.load, "load")
	}
	switch evidence.StandingOfEffect(c, obs, call) {
	case evidence.EffectStands:
		return text, Agrees
	case evidence.EffectNotLookedAt:
		return text, Unmeasured
	case evidence.EffectUnclaimed:
		return text + "; it can be read back", Differ
	case evidence.EffectUnknownWord:
		return text + "; the receipt's word is none of the vocabulary", Differ
	}
	return text, Differ
}

func (w window) trust(c *evidence.Call) (string, Agreement) {
	if c.Operation != engine.OpClick && c.Operation != engine.OpType || w.trusted+w.untrusted == 0 {
		return "no input event to see it by", Unmeasured
	}
	text := fmt.Sprintf("%d trusted, %d untrusted events", w.trusted, w.untrusted)
	switch {
	case c.Receipt.Trust == engine.TrustTrustedInput && w.untrusted > 0, c.Receipt.Trust == engine.TrustDOMEvent && w.trusted > 0:
		return text, Differ
	}
	return text, Agrees
}

func (w window) delivered(r *engine.Receipt) (string, Agreement) {
	switch {
	case r.Effect == engine.EffectConfirmed && r.DeliveredCount != r.RequestedCount:
		return "confirmed, and yet not all that was asked for", Differ
	case w.secret:
		return "the value is secret and kept as a digest", Unmeasured
	case w.value == nil:
		return "no value was reported", Unmeasured
	}
	n := len([]rune(*w.value))
	text := fmt.Sprintf("the control holds %d code points after its last input", n)
	if n == r.DeliveredCount {
		return text, Agrees
	}
	return text + "; it may have held text before, or rewritten it", Unmeasured
}

// shown compares context_visible_tab with the measured state of the window.
func shown(c matrix.Contract, obs []evidence.Observation, r *engine.Receipt) (string, Agreement) {
	for _, o := range obs {
		p := o.Precondition
		if p == nil || p.Name != "state" || !p.Met || c.Needs == nil || c.Needs.State == engine.StateMinimised {
			continue
		}
		want := c.Needs.State != engine.StateInactiveTab
		switch {
		case r.ContextVisible == nil:
			return "measured " + p.Got + "; the engine does not claim to know", Unmeasured
		case r.Action == "" || r.Action != c.Needs.Action:
			return "measured for the row's action only", Unmeasured
		case *r.ContextVisible == want:
			return "measured " + p.Got, Agrees
		}
		return "measured " + p.Got + " before the action", Unmeasured
	}
	return "the state of the tab was not measured", Unmeasured
}

// flags adds the side effects that are claimed or were seen; the others are listed together.
func (out *ReceiptCheck) flags(r *engine.Receipt, w window, call evidence.Observation) {
	prepared := call.Call.Operation == engine.OpPrepare
	all := sideEffects(r.SideEffects)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		claimed := all[name]
		saw, measured := w.flags[name]
		switch {
		case !claimed && !saw:
			out.Unset = append(out.Unset, name)
		case claimed && saw:
			out.Fields = append(out.Fields, Field{name, "true", "seen", Agrees})
		case saw && name == "closed_window":
			// The end of a session may name the windows that went with it, and need not.
			out.Fields = append(out.Fields, Field{name, "false", "its windows went with the session", Unmeasured})
		case saw && prepared:
			out.Fields = append(out.Fields, Field{name, "false", "seen", Differ})
		case saw:
			out.Fields = append(out.Fields, Field{name, "false", "seen in the call's window of time", Differ})
		case name == "enabled_remote_debugging" && prepared, strings.HasSuffix(name, "_context") && call.Call.Operation == engine.OpContext:
			out.Fields = append(out.Fields, Field{name, "true", "no oracle of its own", Unmeasured})
		case measured || !prepared || name == "foregrounded_window" || name == "raised_window" || name == "moved_pointer" || name == "took_clipboard":
			out.Fields = append(out.Fields, Field{name, "true", "not seen", Differ})
		default:
			out.Fields = append(out.Fields, Field{name, "true", "was not measured", Unmeasured})
		}
	}
}

func sideEffects(s engine.SideEffects) map[string]bool {
	out := map[string]bool{}
	b, err := json.Marshal(s)
	if err != nil || json.Unmarshal(b, &out) != nil {
		return nil
	}
	return out
}
