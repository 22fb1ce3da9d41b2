package x11

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"
)

var le = binary.LittleEndian

// Setup is what the server said at connection time.
type Setup struct {
	Vendor       string
	Release      uint32
	ResourceBase uint32 // this client's id range: ResourceBase plus any value within ResourceMask
	ResourceMask uint32 // the same for every client of the server: id &^ ResourceMask names the client
	MaxRequest   int    // longest request in bytes
	MinKeycode   byte
	MaxKeycode   byte
	Root         uint32
	RootVisual   uint32
	RootDepth    byte
	Width        uint16 // root window, pixels
	Height       uint16
}

// setupRequest is the first message of a client: byte order, version 11.0, authority.
func setupRequest(name string, data []byte) []byte {
	b := []byte{'l', 0, 11, 0, 0, 0}
	b = le.AppendUint16(b, uint16(len(name)))
	b = le.AppendUint16(b, uint16(len(data)))
	b = append(b, 0, 0)
	b = pad4(append(b, name...))
	return pad4(append(b, data...))
}

func pad4(b []byte) []byte {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// printable keeps a server's text harmless: bounded, no control characters.
func printable(b []byte, limit int) string {
	if len(b) > limit {
		b = b[:limit]
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(string(b), "?"))
}

// ParseSetup reads the server's setup block: header holds its first 8 bytes, body the rest at the length
// that the header names. Only the first screen is kept. Errors match ErrSetup.
func ParseSetup(header, body []byte) (Setup, error) {
	var s Setup
	bad := func(what string) (Setup, error) { return Setup{}, fmt.Errorf("%s: %w", what, ErrSetup) }
	if len(header) != 8 {
		return bad("setup header is cut short")
	}
	switch header[0] {
	case 0:
		n := min(int(header[1]), len(body))
		return bad("refused: " + printable(body[:n], 200))
	case 1:
	case 2:
		return bad("further authentication asked: " + printable(body, 200))
	default:
		return bad(fmt.Sprintf("status %d", header[0]))
	}
	if v := le.Uint16(header[2:]); v != 11 {
		return bad(fmt.Sprintf("protocol version %d", v))
	}
	if len(body) < 32 {
		return bad("setup block is cut short")
	}
	s.Release = le.Uint32(body)
	s.ResourceBase = le.Uint32(body[4:])
	s.ResourceMask = le.Uint32(body[8:])
	vendorLen := int(le.Uint16(body[16:]))
	s.MaxRequest = int(le.Uint16(body[18:])) * 4
	screens, formats := int(body[20]), int(body[21])
	s.MinKeycode, s.MaxKeycode = body[26], body[27]
	off := 32 + (vendorLen+3)/4*4
	if off > len(body) {
		return bad("vendor is cut short")
	}
	s.Vendor = printable(body[32:32+vendorLen], 80)
	off += 8 * formats
	if screens < 1 || off+40 > len(body) {
		return bad("no screen")
	}
	scr := body[off:]
	s.Root = le.Uint32(scr)
	s.Width, s.Height = le.Uint16(scr[20:]), le.Uint16(scr[22:])
	s.RootVisual, s.RootDepth = le.Uint32(scr[32:]), scr[38]
	switch {
	case s.Root == 0:
		return bad("root window 0")
	case s.ResourceMask == 0 || s.ResourceBase&s.ResourceMask != 0:
		return bad("resource base and mask overlap")
	case s.MaxRequest < 4096*4:
		return bad("longest request below the protocol's minimum")
	case s.MinKeycode < 8 || s.MaxKeycode < s.MinKeycode:
		return bad("keycode range")
	}
	return s, nil
}
