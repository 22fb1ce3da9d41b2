package mutant

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
)

// wires are defects of what is made of the bytes that come from a browser.
func wires() []Mutant {
	return []Mutant{
		{Name: "dies-of-a-bad-message", Seam: SeamReceipt, Text: "ends when a browser breaks the protocol", Rows: []string{"garbled-messages"},
			Kills: kills("G15", "engine_gone"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				r, err := n.Call(ctx, op, args)
				if err == nil && r.Refusal != nil && r.Refusal.Trigger == "protocol_violation" {
					os.Exit(1)
				}
				return r, err
			})},
		{Name: "waits-for-the-rest-of-a-message", Seam: SeamReceipt, Text: "waits far beyond its budget for a browser that stopped in the middle of a message", Rows: []string{"garbled-messages"},
			Kills: kills("R7", "refusal_late"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				r, err := n.Call(ctx, op, args)
				if err == nil && r.Refusal != nil && r.Refusal.Trigger == "unresponsive" {
					time.Sleep(3 * time.Second)
				}
				return r, err
			})},
		{Name: "takes-the-others-along", Seam: SeamStore, Text: "ends every session when the browser of one breaks the protocol", Rows: []string{"garbled-messages"},
			Kills: kills("G15", "refused", "R2", "refusal_mutated"),
			parts: func(p *Parts) {
				p.Wrap = func(n engine.Engine) engine.Engine { return &together{n: n, all: map[string]bool{}} }
			}},
		{Name: "hangs-up-on-a-repetition", Seam: SeamAdapter, Text: "takes a reply that comes twice for the end of the connection", Rows: []string{"garbled-order"},
			Kills: kills("G15", "refused"),
			parts: func(p *Parts) { p.Wire = func(c net.Conn) net.Conn { return &once{Conn: c} } }},
		{Name: "gives-another-name-to-giving-up", Seam: SeamReceipt, Text: "says that the connection is lost where it has spent its budget to make it anew", Rows: []string{"reconnect-exhausted"},
			Kills: kills("G10", "refusal_wrong"),
			parts: around(func(ctx context.Context, n next, op engine.Operation, args json.RawMessage) (engine.Result, error) {
				r, err := n.Call(ctx, op, args)
				if err == nil && r.Refusal != nil && r.Refusal.Trigger == "reconnect_budget" {
					return refused(engine.CodeBindingStale, op, "generation_changed", engine.Detail{Reason: "connection", Generation: "g-next", NextAction: "bind"}), nil
				}
				return r, err
			})},
		{Name: "knocks-twice", Seam: SeamAdapter, Text: "asks for two connections where it needs one", Rows: []string{"reconnect-one-leader"},
			Kills: kills("G11", "effect_repeated"),
			parts: func(p *Parts) {
				p.Adapter = adapterWith{p.Adapter, func(b engine.Browser) engine.Browser { return knocks{twice{b}} }}
			}},
	}
}

// knocks asks the listener for a connection that it does not use, beside the one that it does.
type knocks struct{ twice }

// Click implements [engine.Clicker].
func (k knocks) Click(ctx context.Context, c engine.ContextKey, n engine.NodeRef, route engine.Route) (engine.Outcome, error) {
	return able(k.Browser).Click(ctx, c, n, route)
}

// Reconnect implements [engine.Reconnector].
func (k knocks) Reconnect(ctx context.Context) (engine.Browser, error) {
	var d net.Dialer
	if c, err := d.DialContext(ctx, "tcp", k.Endpoint().String()); err == nil {
		time.AfterFunc(time.Second, func() { _ = c.Close() })
	}
	maker, able := k.Browser.(engine.Reconnector)
	if !able {
		return nil, errors.New("the browser behind the mutant makes no connection anew")
	}
	b, err := maker.Reconnect(ctx)
	if err != nil {
		return nil, err
	}
	return knocks{twice{b}}, nil
}

// together remembers the sessions that there are.
type together struct {
	n   next
	mu  sync.Mutex
	all map[string]bool
}

// Call implements [engine.Engine].
func (t *together) Call(ctx context.Context, op engine.Operation, args json.RawMessage) (engine.Result, error) {
	r, err := t.n.Call(ctx, op, args)
	t.mu.Lock()
	defer t.mu.Unlock()
	if own := text(args, "session"); own != "" {
		t.all[own] = true
	}
	if err != nil || r.Refusal == nil || r.Refusal.Trigger != "protocol_violation" {
		return r, err
	}
	for id := range t.all {
		if id != text(args, "session") {
			if _, err := t.n.Call(ctx, engine.OpSessionEnd, with(json.RawMessage("{}"), "session", id)); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// once closes a connection when a frame is the same as the one before it.
type once struct {
	net.Conn
	upgraded bool
	stream   []byte
	last     []byte
}

// Read implements [net.Conn].
func (o *once) Read(b []byte) (int, error) {
	n, err := o.Conn.Read(b)
	o.stream = append(o.stream, b[:n]...)
	if !o.upgraded {
		_, rest, found := bytes.Cut(o.stream, []byte("\r\n\r\n"))
		if !found {
			return n, err
		}
		o.upgraded, o.stream = true, rest
	}
	for len(o.stream) >= 10 {
		head, size := 2, uint64(o.stream[1]&0x7f)
		switch size {
		case 126:
			head, size = 4, uint64(binary.BigEndian.Uint16(o.stream[2:]))
		case 127:
			head, size = 10, binary.BigEndian.Uint64(o.stream[2:])
		}
		if size > uint64(len(o.stream)-head) {
			break
		}
		frame := o.stream[:head+int(size)]
		if bytes.Equal(frame, o.last) {
			return n, o.Conn.Close()
		}
		o.last = bytes.Clone(frame)
		o.stream = o.stream[len(frame):]
	}
	return n, err
}
