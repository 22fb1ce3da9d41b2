package sentinel

import (
	"encoding/binary"

	"github.com/engine-acceptance/acceptance/suites/xwire"
)

var le = binary.LittleEndian

// Kind says what an event is.
type Kind string

// Kinds of events. All but Beat come from the X server.
const (
	KeyPress      Kind = "key_press"
	KeyRelease    Kind = "key_release"
	ButtonPress   Kind = "button_press"
	ButtonRelease Kind = "button_release"
	Motion        Kind = "motion"
	Enter         Kind = "enter"
	Leave         Kind = "leave"
	FocusIn       Kind = "focus_in"
	FocusOut      Kind = "focus_out"
	Visibility    Kind = "visibility"
	Unmap         Kind = "unmap"
	Map           Kind = "map"
	Reparent      Kind = "reparent"
	Configure     Kind = "configure"
	Property      Kind = "property"
	ClientMessage Kind = "client_message"
	Mapping       Kind = "mapping"
	Beat          Kind = "beat"
	Other         Kind = "other"
)

var kinds = map[byte]Kind{2: KeyPress, 3: KeyRelease, 4: ButtonPress, 5: ButtonRelease, 6: Motion, 7: Enter, 8: Leave, 9: FocusIn, 10: FocusOut,
	15: Visibility, 18: Unmap, 19: Map, 21: Reparent, 22: Configure, 28: Property, 33: ClientMessage, 34: Mapping}

// Event is one line of a window's log.
type Event struct {
	N    uint64 `json:"n"` // counts from 1 without gaps
	Kind Kind   `json:"event"`
	// Mono is CLOCK_MONOTONIC in ns when the event was read.
	Mono int64 `json:"mono"`
	// ServerMs is the server's time stamp in ms, 0 where the kind has none. On Linux it is CLOCK_MONOTONIC as
	// well, modulo 2^32.
	ServerMs uint32 `json:"server_ms,omitempty"`
	// Sent is the send_event bit: somebody forged it with SendEvent. Window managers send configure events.
	Sent bool `json:"sent,omitempty"`

	Code  byte   `json:"code,omitempty"`  // keycode, or button number
	Sym   uint32 `json:"sym,omitempty"`   // keysym under the held modifiers
	Char  string `json:"char,omitempty"`  // the character it types, if one
	State uint16 `json:"state,omitempty"` // held modifiers and buttons before the event
	X     int    `json:"x,omitempty"`     // root pixels; for configure the window's, relative to its parent unless sent
	Y     int    `json:"y,omitempty"`

	Width  int    `json:"width,omitempty"`
	Height int    `json:"height,omitempty"`
	Detail byte   `json:"detail,omitempty"` // of focus, enter and leave; visibility state (2 is fully obscured)
	Mode   byte   `json:"mode,omitempty"`   // of focus, enter and leave: 1 grab, 2 ungrab
	Name   string `json:"name,omitempty"`   // of a property or client message, when it is one we know
	Atom   uint32 `json:"atom,omitempty"`
	Typed  int    `json:"typed,omitempty"` // of a beat: characters in the document
}

// decode reads an event. Short or unknown ones are Other; nothing is dropped.
func (r *role) decode(ev xwire.Event) Event {
	e := Event{Kind: Other, Mono: ev.Mono, Sent: ev.Sent, Detail: ev.Kind}
	b := ev.Raw
	kind, known := kinds[ev.Kind]
	if !known || len(b) < 32 {
		return e
	}
	e.Kind, e.Detail = kind, 0
	switch kind {
	case KeyPress, KeyRelease, ButtonPress, ButtonRelease, Motion, Enter, Leave:
		e.ServerMs, e.Code, e.State = le.Uint32(b[4:]), b[1], le.Uint16(b[28:])
		e.X, e.Y = int(int16(le.Uint16(b[20:]))), int(int16(le.Uint16(b[22:])))
		switch kind {
		case KeyPress, KeyRelease:
			e.Sym = r.keys.sym(e.Code, e.State)
			e.Char = character(e.Sym)
		case Enter, Leave:
			e.Detail, e.Mode, e.Code = b[1], b[30], 0
		case Motion:
			e.Code = 0
		}
	case FocusIn, FocusOut:
		e.Detail, e.Mode = b[1], b[8]
	case Visibility:
		e.Detail = b[8]
	case Configure:
		e.X, e.Y = int(int16(le.Uint16(b[16:]))), int(int16(le.Uint16(b[18:])))
		e.Width, e.Height = int(le.Uint16(b[20:])), int(le.Uint16(b[22:]))
	case Property:
		e.Atom, e.ServerMs, e.Detail = le.Uint32(b[8:]), le.Uint32(b[12:]), b[16]
		e.Name = r.names[e.Atom]
	case ClientMessage:
		e.Atom = le.Uint32(b[8:])
		e.Name = r.names[e.Atom]
	}
	return e
}

// keymap holds two keysyms a keycode: plain and with shift.
type keymap struct {
	first byte
	syms  [][2]uint32
}

func parseKeymap(first byte, b []byte) keymap {
	m := keymap{first: first}
	if len(b) < 32 || b[1] == 0 {
		return m
	}
	per := int(b[1])
	for row := b[32:]; len(row) >= 4*per; row = row[4*per:] {
		s := [2]uint32{le.Uint32(row)}
		if per > 1 {
			s[1] = le.Uint32(row[4:])
		}
		m.syms = append(m.syms, s)
	}
	return m
}

// sym follows the core protocol's rules for the first group: shift and lock, letters without their
// own capital get one.
func (m keymap) sym(code byte, state uint16) uint32 {
	i := int(code) - int(m.first)
	if i < 0 || i >= len(m.syms) {
		return 0
	}
	plain, shifted := m.syms[i][0], m.syms[i][1]
	if shifted == 0 {
		shifted = plain
		if plain >= 'a' && plain <= 'z' {
			shifted = plain - 'a' + 'A'
		}
	}
	letter := plain >= 'a' && plain <= 'z'
	if state&1 != 0 != (letter && state&2 != 0) {
		return shifted
	}
	return plain
}

// character is the character that a keysym types: Latin-1, or Unicode (X protocol, appendix A).
func character(sym uint32) string {
	switch {
	case sym >= 0x20 && sym <= 0x7e, sym >= 0xa0 && sym <= 0xff:
		return string(rune(sym))
	case sym >= 0x01000100 && sym <= 0x0110ffff:
		return string(rune(sym - 0x01000000))
	case sym == 0xff0d:
		return "\n"
	}
	return ""
}
