package x11

import (
	"encoding/binary"
	"fmt"
)

// MaxFrame is the longest part of one reply or event that is kept, in bytes. What is longer is read from the
// connection and dropped; Total tells the true length.
const MaxFrame = 1 << 20

// Request is a request under construction. Its methods append fields and return the receiver.
type Request struct{ b []byte }

// NewRequest starts a request with its opcode and the byte that shares its first word.
func NewRequest(opcode, data byte) *Request {
	return &Request{b: append(make([]byte, 0, 32), opcode, data, 0, 0)}
}

// U8 appends bytes.
func (r *Request) U8(v ...byte) *Request { r.b = append(r.b, v...); return r }

// U16 appends 16-bit values.
func (r *Request) U16(v ...uint16) *Request {
	for _, x := range v {
		r.b = le.AppendUint16(r.b, x)
	}
	return r
}

// I16 appends signed 16-bit values.
func (r *Request) I16(v ...int16) *Request {
	for _, x := range v {
		r.b = le.AppendUint16(r.b, uint16(x))
	}
	return r
}

// U32 appends 32-bit values.
func (r *Request) U32(v ...uint32) *Request {
	for _, x := range v {
		r.b = le.AppendUint32(r.b, x)
	}
	return r
}

// Text appends a string and pads it to a multiple of four bytes.
func (r *Request) Text(s string) *Request { r.b = pad4(append(r.b, s...)); return r }

// Bytes is the finished request: padded, with its length in words. The error matches ErrTooLarge.
func (r *Request) Bytes() ([]byte, error) {
	b := pad4(r.b)
	if len(b) > 65535*4 {
		return nil, fmt.Errorf("request %d of %d bytes: %w", b[0], len(b), ErrTooLarge)
	}
	le.PutUint16(b[2:], uint16(len(b)/4))
	return b, nil
}

// Fields reads typed values at byte offsets of a message in a stated byte order. What lies outside reads as
// zero, so hostile lengths cannot panic; Has asks first where the difference matters.
type Fields struct {
	B     []byte
	Order binary.ByteOrder
}

// Little wraps bytes in our own byte order.
func Little(b []byte) Fields { return Fields{B: b, Order: le} }

// Has reports whether n bytes stand at off.
func (f Fields) Has(off, n int) bool { return off >= 0 && n >= 0 && off <= len(f.B)-n }

// U8 reads one byte.
func (f Fields) U8(off int) byte {
	if !f.Has(off, 1) {
		return 0
	}
	return f.B[off]
}

// U16 reads two bytes.
func (f Fields) U16(off int) uint16 {
	if !f.Has(off, 2) {
		return 0
	}
	return f.Order.Uint16(f.B[off:])
}

// I16 reads two bytes as a signed value.
func (f Fields) I16(off int) int16 { return int16(f.U16(off)) }

// U32 reads four bytes.
func (f Fields) U32(off int) uint32 {
	if !f.Has(off, 4) {
		return 0
	}
	return f.Order.Uint32(f.B[off:])
}

// FP reads a 16.16 fixed point value, rounded down.
func (f Fields) FP(off int) int32 { return int32(f.U32(off)) >> 16 }

// Reply is one reply, at least 32 bytes long.
type Reply struct {
	Fields
	Total int // true length in bytes; above len(B) when cut at MaxFrame
}

// Data is what follows the fixed 32 bytes, at most n bytes. ok is false when fewer are there.
func (r Reply) Data(n int) (b []byte, ok bool) {
	if n < 0 || !r.Has(32, n) {
		return nil, false
	}
	return r.B[32 : 32+n], true
}

// Event is one event as it came. B is valid only while its handler runs.
type Event struct {
	Fields
	Code      byte // without the send_event bit
	SendEvent bool // true: made by a client with SendEvent, not by the server
	Total     int
}

// GenericEvent is the code of XInput 2 and other long events.
const GenericEvent = 35
