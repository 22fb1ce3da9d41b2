package attempt

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/fixtures"
	"github.com/engine-acceptance/acceptance/recorder/desktop"
	"github.com/engine-acceptance/acceptance/redaction"
)

// maxView bounds one text view, in bytes. A view that ran over ends in a line that says so; observations are never cut.
const maxView = 8 << 20

// views are the row's text files for readers: the judge never looks at them. Everything goes through allow-listed structures, then the
// rules, and only then into a buffer that will be a file.
type views struct {
	rules *redaction.Rules
	files map[string]*bytes.Buffer
	cut   map[string]bool
}

func newViews(rules *redaction.Rules) *views {
	return &views{rules: rules, files: map[string]*bytes.Buffer{}, cut: map[string]bool{}}
}

// line appends one JSON line to a view.
func (v *views) line(name string, value any) {
	b, err := json.Marshal(value)
	if err != nil {
		return
	}
	v.write(name, append(b, '\n'))
}

func (v *views) write(name string, b []byte) {
	if v.files[name] == nil {
		v.files[name] = &bytes.Buffer{}
	}
	clean := v.rules.Bytes(b)
	if v.cut[name] || v.files[name].Len()+len(clean) > maxView {
		v.cut[name] = true
		return
	}
	v.files[name].Write(clean)
}

// step is one line of trajectory.jsonl: what was asked of the engine and what it said.
type trajectoryLine struct {
	Step      string           `json:"step"`
	Operation engine.Operation `json:"operation"`
	StartNS   int64            `json:"start_ns"`
	ReplyNS   int64            `json:"reply_ns"`
	Arguments json.RawMessage  `json:"arguments"`
	Carrier   string           `json:"carrier,omitempty"`
	Status    engine.Status    `json:"status,omitempty"`
	Refusal   *engine.Refusal  `json:"refusal,omitempty"`
	Receipt   *engine.Receipt  `json:"receipt,omitempty"`
}

func (v *views) trajectory(step string, op engine.Operation, args []byte, _ json.RawMessage, carrier string, c *evidence.Call) {
	v.line("trajectory.jsonl", trajectoryLine{step, op, c.StartNS, c.ReplyNS, args, carrier, c.Status, c.Refusal, c.Receipt})
}

// deskLine is one line of desktop.jsonl: an event, and whose process did it.
type deskLine struct {
	desktop.Event
	Actor evidence.Actor `json:"actor"`
}

func (v *views) desktop(ev desktop.Event, actor evidence.Actor) {
	ev.Exe = base(ev.Exe)
	v.line("desktop.jsonl", deskLine{ev, actor})
}

// journal keeps a page event without secret values; those stand as digests in the observations.
func (v *views) journal(ev fixtures.Event) {
	if ev.Secret {
		ev.Value, ev.Detail.Key, ev.Detail.Code, ev.Detail.Data = "", "", "", ""
	}
	ev.Detail.Path, _, _ = strings.Cut(ev.Detail.Path, "?")
	v.line("journal.jsonl", ev)
}

// engineLog splits what the engine wrote to its standard error: its own account of the wire (marked engine_reported, contract: it can fail a
// row and never pass it) and the rest.
func (v *views) engineLog(stderr []byte) {
	for line := range bytes.Lines(stderr) {
		if bytes.HasPrefix(line, []byte(`{"wire":`)) {
			v.write("protocol.jsonl", line)
			continue
		}
		v.write("engine.log", bytes.ToValidUTF8(line, []byte("?")))
	}
}

// add writes the views into the row.
func (v *views) add(out Out) error {
	var errs []error
	for _, name := range []string{"trajectory.jsonl", "desktop.jsonl", "journal.jsonl", "protocol.jsonl", "engine.log"} {
		b := v.files[name]
		if b == nil {
			continue
		}
		if v.cut[name] {
			b.WriteString("{\"cut\":true}\n")
		}
		errs = append(errs, out.Add(name, b))
	}
	return errors.Join(errs...)
}

// base is the last element of a path, so that no directory of the machine is kept.
func base(path string) string {
	return path[strings.LastIndexByte(path, '/')+1:]
}
