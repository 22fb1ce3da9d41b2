package bus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits of what is kept of one message. The specification allows 128 MiB for a whole one.
const (
	// MaxHeader is the longest array of header fields that is read, in bytes. Names are at most 255 bytes each; paths have no bound.
	MaxHeader = 1 << 20
	// MaxBody is the part of a body that is kept, in bytes. The answers that a guard asks for are shorter.
	MaxBody = 64 << 10
	// MaxText is the longest text of a header that is kept, in bytes.
	MaxText = 255
	// maxMessage is the specification's own bound of a whole message.
	maxMessage = 1 << 27
	// maxDepth bounds the nesting of a value, as the specification does (32 arrays and 32 structs).
	maxDepth = 64
)

// Errors of this package match these with errors.Is.
var (
	// ErrMalformed: bytes that are no message. The connection cannot go on.
	ErrMalformed = errors.New("malformed message")
	// ErrLost: the connection has ended.
	ErrLost = errors.New("connection lost")
	// ErrRefused: the bus did not let us in.
	ErrRefused = errors.New("authentication refused")
)

// Type is the type of a message.
type Type byte

// Types of messages.
const (
	MethodCall   Type = 1
	MethodReturn Type = 2
	Error        Type = 3
	Signal       Type = 4
)

// Message is one message. Texts are printable and cut at MaxText. Body is valid only while its handler runs.
type Message struct {
	Type        Type
	NoReply     bool // a call whose sender wants no answer
	Serial      uint32
	ReplySerial uint32
	Sender      string // unique name, which the bus itself writes: it cannot be forged
	Destination string // as the sender wrote it; empty for broadcasts
	Path        string
	Interface   string // may be empty in calls
	Member      string
	Error       string
	Signature   string
	Body        []byte
	Cut         bool // header fields were too long to be read; what is above is not to be trusted to be all
	order       binary.ByteOrder
}

// Strings reads the leading strings of the body, as far as its signature and length say that there are some.
func (m Message) Strings() []string {
	var out []string
	at := 0
	for _, t := range m.Signature {
		if t != 's' && t != 'o' {
			break
		}
		s, next, ok := text(m.Body, at, m.order)
		if !ok {
			break
		}
		out, at = append(out, s), next
	}
	return out
}

// List reads a body that is one array of strings.
func (m Message) List() []string {
	if m.Signature != "as" || len(m.Body) < 4 {
		return nil
	}
	end := min(4+int(m.order.Uint32(m.Body)), len(m.Body))
	var out []string
	for at := 4; at < end; {
		s, next, ok := text(m.Body[:end], at, m.order)
		if !ok {
			break
		}
		out, at = append(out, s), next
	}
	return out
}

// Uint32 reads a body that begins with one number.
func (m Message) Uint32() (uint32, bool) {
	if !strings.HasPrefix(m.Signature, "u") || len(m.Body) < 4 {
		return 0, false
	}
	return m.order.Uint32(m.Body), true
}

// text reads a string at or after at.
func text(b []byte, at int, order binary.ByteOrder) (s string, next int, ok bool) {
	at = align(at, 4)
	if at+4 > len(b) {
		return "", 0, false
	}
	n := int(order.Uint32(b[at:]))
	at += 4
	if n < 0 || n > len(b)-at {
		return "", 0, false
	}
	return string(b[at : at+n]), at + n + 1, true
}

func align(at, to int) int { return (at + to - 1) / to * to }

// call builds a method call of strings to the bus itself.
func call(serial uint32, iface, member string, signature string, body []byte) []byte {
	const name, path = "org.freedesktop.DBus", "/org/freedesktop/DBus"
	return encode(serial, name, path, iface, member, signature, body)
}

var le = binary.LittleEndian

func encode(serial uint32, destination, path, iface, member, signature string, body []byte) []byte {
	var f []byte
	field := func(code byte, sig byte, value string) {
		f = append(f, make([]byte, align(len(f), 8)-len(f))...)
		f = append(f, code, 1, sig, 0)
		if sig == 'g' {
			f = append(f, byte(len(value)))
		} else {
			f = le.AppendUint32(f, uint32(len(value)))
		}
		f = append(append(f, value...), 0)
	}
	field(1, 'o', path)
	field(2, 's', iface)
	field(3, 's', member)
	field(6, 's', destination)
	if signature != "" {
		field(8, 'g', signature)
	}
	b := []byte{'l', byte(MethodCall), 0, 1}
	b = le.AppendUint32(b, uint32(len(body)))
	b = le.AppendUint32(b, serial)
	b = le.AppendUint32(b, uint32(len(f)))
	b = append(b, f...)
	b = append(b, make([]byte, align(len(b), 8)-len(b))...)
	return append(b, body...)
}

// appendString appends a string of a body that is aligned from its own start.
func appendString(b []byte, s string) []byte {
	b = append(b, make([]byte, align(len(b), 4)-len(b))...)
	return append(append(le.AppendUint32(b, uint32(len(s))), s...), 0)
}

// read reads one message. buf is used again for the body.
func read(r io.Reader, buf *[]byte) (Message, error) {
	var m Message
	var head [16]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return m, err
	}
	switch head[0] {
	case 'l':
		m.order = binary.LittleEndian
	case 'B':
		m.order = binary.BigEndian
	default:
		return m, fmt.Errorf("byte order %#x: %w", head[0], ErrMalformed)
	}
	if head[3] != 1 {
		return m, fmt.Errorf("protocol version %d: %w", head[3], ErrMalformed)
	}
	m.Type, m.NoReply = Type(head[1]), head[2]&1 != 0
	body, fields := int64(m.order.Uint32(head[4:])), int64(m.order.Uint32(head[12:]))
	m.Serial = m.order.Uint32(head[8:])
	if body+fields+16 > maxMessage {
		return m, fmt.Errorf("message of %d bytes: %w", body+fields+16, ErrMalformed)
	}
	pad := (8 - fields%8) % 8
	if fields > MaxHeader {
		m.Cut = true
		_, err := io.CopyN(io.Discard, r, fields+pad+body)
		return m, err
	}
	kept := min(body, MaxBody)
	need := int(fields + pad + kept)
	if cap(*buf) < need {
		*buf = make([]byte, need)
	}
	b := (*buf)[:need]
	if _, err := io.ReadFull(r, b); err != nil {
		return m, err
	}
	if _, err := io.CopyN(io.Discard, r, body-kept); err != nil {
		return m, err
	}
	m.fields(b[:fields])
	m.Body = b[fields+pad:]
	if cap(*buf) > MaxBody+4096 { // one giant must not be kept for ever
		*buf = nil
	}
	return m, nil
}

// fields reads the array of header fields. It starts at byte 16 of the message, so alignment counts from its own start.
func (m *Message) fields(b []byte) {
	at := 0
	for at < len(b) {
		at = align(at, 8)
		if at+3 > len(b) {
			m.Cut = m.Cut || at < len(b)
			return
		}
		code, n := b[at], int(b[at+1])
		at += 2
		if at+n+1 > len(b) {
			m.Cut = true
			return
		}
		sig := string(b[at : at+n])
		at += n + 1
		to := map[byte]*string{1: &m.Path, 2: &m.Interface, 3: &m.Member, 4: &m.Error, 6: &m.Destination, 7: &m.Sender}[code]
		switch {
		case to != nil && (sig == "s" || sig == "o"):
			s, next, ok := text(b, at, m.order)
			if !ok {
				m.Cut = true
				return
			}
			*to, at = printable(s), next
		case code == 5 && sig == "u":
			at = align(at, 4)
			if at+4 > len(b) {
				m.Cut = true
				return
			}
			m.ReplySerial = m.order.Uint32(b[at:])
			at += 4
		case code == 8 && sig == "g":
			if at >= len(b) || at+1+int(b[at]) > len(b) {
				m.Cut = true
				return
			}
			m.Signature = string(b[at+1 : at+1+int(b[at])])
			at += 2 + int(b[at])
		default:
			// A field that nobody knows: whatever it holds, what follows it must be read.
			next, rest, ok := skip(b, at, sig, m.order, 0)
			if !ok || rest != "" {
				m.Cut = true
				return
			}
			at = next
		}
	}
}

// skip passes over one value of the first type of a signature, and returns the rest of the signature.
func skip(b []byte, at int, sig string, order binary.ByteOrder, depth int) (next int, rest string, ok bool) {
	if sig == "" || depth > maxDepth {
		return 0, "", false
	}
	t, rest := sig[0], sig[1:]
	fixed := func(n int) (int, string, bool) {
		at = align(at, n) + n
		return at, rest, at <= len(b)
	}
	switch t {
	case 'y':
		return fixed(1)
	case 'n', 'q':
		return fixed(2)
	case 'b', 'i', 'u', 'h':
		return fixed(4)
	case 'x', 't', 'd':
		return fixed(8)
	case 's', 'o':
		_, next, ok := text(b, at, order)
		return next, rest, ok && next <= len(b)
	case 'g':
		if at >= len(b) {
			return 0, "", false
		}
		at += 2 + int(b[at])
		return at, rest, at <= len(b)
	case 'v':
		if at >= len(b) || at+1+int(b[at]) > len(b) {
			return 0, "", false
		}
		inner := string(b[at+1 : at+1+int(b[at])])
		next, left, ok := skip(b, at+2+len(inner), inner, order, depth+1)
		return next, rest, ok && left == ""
	case 'a':
		at = align(at, 4)
		if at+4 > len(b) {
			return 0, "", false
		}
		n := int(order.Uint32(b[at:]))
		element, ok := single(rest, depth+1)
		if !ok {
			return 0, "", false
		}
		at += 4
		if strings.ContainsRune("xtd({", rune(rest[0])) {
			at = align(at, 8)
		}
		if n < 0 || n > len(b)-at {
			return 0, "", false
		}
		return at + n, rest[len(element):], true
	case '(', '{':
		closing := byte(')')
		if t == '{' {
			closing = '}'
		}
		at = align(at, 8)
		for rest != "" && rest[0] != closing {
			if at, rest, ok = skip(b, at, rest, order, depth+1); !ok {
				return 0, "", false
			}
		}
		if rest == "" {
			return 0, "", false
		}
		return at, rest[1:], at <= len(b)
	}
	return 0, "", false
}

// single is the first complete type of a signature.
func single(sig string, depth int) (string, bool) {
	if sig == "" || depth > maxDepth {
		return "", false
	}
	switch sig[0] {
	case 'a':
		inner, ok := single(sig[1:], depth+1)
		return sig[:1+len(inner)], ok
	case '(', '{':
		open := 0
		for i := range sig {
			switch sig[i] {
			case '(', '{':
				open++
			case ')', '}':
				open--
			}
			if open == 0 {
				return sig[:i+1], true
			}
		}
		return "", false
	}
	return sig[:1], true
}

// printable keeps a text harmless: bounded, ASCII without control characters. Names of the specification are.
func printable(s string) string {
	if len(s) > MaxText {
		s = s[:MaxText]
	}
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, s)
}
