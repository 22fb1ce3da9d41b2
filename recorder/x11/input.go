package x11

import (
	"context"
	"fmt"
	"strings"
)

// XInput 2 event types.
const (
	XIDeviceChanged    = 1
	XIMotion           = 6
	XIHierarchyChanged = 11
	XIRawKeyPress      = 13
	XIRawKeyRelease    = 14
	XIRawButtonPress   = 15
	XIRawButtonRelease = 16
	XIRawMotion        = 17
)

// Flags of a hierarchy event.
const (
	HierarchyMasterAdded   = 1 << 0
	HierarchyMasterRemoved = 1 << 1
)

// Device uses (XIQueryDevice).
const (
	UseMasterPointer  = 1
	UseMasterKeyboard = 2
	UseSlavePointer   = 3
	UseSlaveKeyboard  = 4
)

// Device is one input device.
type Device struct {
	ID, Use, Attachment uint16
	Name                string
}

// IsTest reports whether the device is one that XTEST requests act through.
func (d Device) IsTest() bool { return strings.Contains(d.Name, "XTEST ") }

// IsKeyboard reports whether the device is a keyboard, master or slave.
func (d Device) IsKeyboard() bool { return d.Use == UseMasterKeyboard || d.Use == UseSlaveKeyboard }

// DevicesRequest builds the request of Devices, for Async.
func DevicesRequest(input Extension) *Request { return NewRequest(input.Major, 48).U16(0, 0) }

// Devices lists the input devices. UseInput must have succeeded on this connection.
func (c *Conn) Devices(ctx context.Context) ([]Device, error) {
	e, err := c.Extension(ctx, ExtInput)
	if err != nil {
		return nil, err
	}
	r, err := c.Call(ctx, DevicesRequest(e))
	if err != nil {
		return nil, fmt.Errorf("input devices: %w", err)
	}
	return ParseDevices(r)
}

// ParseDevices reads the reply to DevicesRequest; every count in it is checked against its length.
func ParseDevices(r Reply) ([]Device, error) {
	n := int(r.U16(8))
	var out []Device
	off := 32
	for range n {
		if !r.Has(off, 12) {
			return nil, fmt.Errorf("input devices: %w", ErrMalformed)
		}
		d := Device{ID: r.U16(off), Use: r.U16(off + 2), Attachment: r.U16(off + 4)}
		classes, nameLen := int(r.U16(off+6)), int(r.U16(off+8))
		off += 12
		if !r.Has(off, (nameLen+3)/4*4) {
			return nil, fmt.Errorf("input devices: %w", ErrMalformed)
		}
		d.Name = printable(r.B[off:off+nameLen], 128)
		off += (nameLen + 3) / 4 * 4
		for range classes {
			words := int(r.U16(off + 2))
			if words == 0 || !r.Has(off, 4*words) {
				return nil, fmt.Errorf("input devices: %w", ErrMalformed)
			}
			off += 4 * words
		}
		out = append(out, d)
	}
	return out, nil
}

// SelectRawInput builds the XInput 2 request for raw keys, buttons and motion of every master device, for
// pointer motion on the root, and for changes of the device hierarchy.
func (c *Conn) SelectRawInput(input Extension) *Request {
	raw := uint32(1<<XIRawKeyPress | 1<<XIRawKeyRelease | 1<<XIRawButtonPress | 1<<XIRawButtonRelease |
		1<<XIRawMotion | 1<<XIMotion)
	return NewRequest(input.Major, 46).U32(c.setup.Root).U16(2, 0).
		U16(1, 1).U32(raw). // all master devices
		U16(0, 1).U32(1 << XIHierarchyChanged)
}

// InputEvent2 is an XInput 2 event as far as a guard reads it.
type InputEvent2 struct {
	Type           uint16 // XIRawMotion and so on
	Device, Source uint16 // Source is the device that moved, Device the master it acts through
	ServerMS       uint32
	Detail         uint32 // keycode or button; for hierarchy events its flags
	X, Y           int32  // root pixels, for XIMotion only
}

// ParseInput2 reads an XInput 2 event. ok is false for other events and for ones cut short.
func ParseInput2(input Extension, e Event) (ev InputEvent2, ok bool) {
	if e.Code != GenericEvent || e.U8(1) != input.Major || !e.Has(0, 32) {
		return ev, false
	}
	ev = InputEvent2{Type: e.U16(8), Device: e.U16(10), ServerMS: e.U32(12), Detail: e.U32(16)}
	switch ev.Type {
	case XIRawKeyPress, XIRawKeyRelease, XIRawButtonPress, XIRawButtonRelease, XIRawMotion:
		ev.Source = e.U16(20)
	case XIMotion:
		if !e.Has(32, 24) {
			return ev, false
		}
		ev.X, ev.Y, ev.Source = e.FP(32), e.FP(36), e.U16(52)
	case XIHierarchyChanged:
	default:
		return ev, false
	}
	return ev, true
}
