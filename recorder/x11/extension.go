package x11

import (
	"context"
	"fmt"
	"math/bits"
)

// localClientPID asks X-Resource for the process of a local client.
const localClientPID = 2

// Names of the extensions that this package speaks.
const (
	ExtRecord    = "RECORD"
	ExtResource  = "X-Resource"
	ExtTest      = "XTEST"
	ExtInput     = "XInputExtension"
	ExtFixes     = "XFIXES"
	ExtRandR     = "RANDR"
	ExtShape     = "SHAPE"
	ExtShm       = "MIT-SHM"
	ExtComposite = "Composite"
	ExtKeyboard  = "XKEYBOARD"
)

// Extension says where a server put an extension. Zero Major means that it lacks it.
type Extension struct{ Major, FirstEvent, FirstError byte }

// Extension asks whether the server has an extension; answers are kept. An absent one is an *ExtensionError.
func (c *Conn) Extension(ctx context.Context, name string) (Extension, error) {
	c.mu.Lock()
	e, ok := c.exts[name]
	c.mu.Unlock()
	if !ok {
		r, err := c.Call(ctx, NewRequest(98, 0).U16(uint16(len(name)), 0).Text(name))
		if err != nil {
			return Extension{}, fmt.Errorf("query extension %q: %w", name, err)
		}
		if r.U8(8) != 0 {
			e = Extension{Major: r.U8(9), FirstEvent: r.U8(10), FirstError: r.U8(11)}
		}
		c.mu.Lock()
		c.exts[name] = e
		c.mu.Unlock()
	}
	if e.Major == 0 {
		return Extension{}, &ExtensionError{Name: name}
	}
	return e, nil
}

// version16 runs a version request of two 16-bit numbers and asks for at least wantMajor.wantMinor.
func (c *Conn) version16(ctx context.Context, name string, minor byte, wantMajor, wantMinor uint16) (Extension, error) {
	e, err := c.Extension(ctx, name)
	if err != nil {
		return Extension{}, err
	}
	r, err := c.Call(ctx, NewRequest(e.Major, minor).U16(wantMajor, wantMinor))
	if err != nil {
		return Extension{}, fmt.Errorf("version of %q: %w", name, err)
	}
	return e, atLeast(name, uint32(r.U16(8)), uint32(r.U16(10)), uint32(wantMajor), uint32(wantMinor))
}

// version32 is version16 for extensions with 32-bit version numbers.
func (c *Conn) version32(ctx context.Context, name string, wantMajor, wantMinor uint32) (Extension, error) {
	e, err := c.Extension(ctx, name)
	if err != nil {
		return Extension{}, err
	}
	r, err := c.Call(ctx, NewRequest(e.Major, 0).U32(wantMajor, wantMinor))
	if err != nil {
		return Extension{}, fmt.Errorf("version of %q: %w", name, err)
	}
	return e, atLeast(name, r.U32(8), r.U32(12), wantMajor, wantMinor)
}

func atLeast(name string, major, minor, wantMajor, wantMinor uint32) error {
	if major > wantMajor || (major == wantMajor && minor >= wantMinor) {
		return nil
	}
	return &ExtensionError{Name: name, Want: fmt.Sprintf("%d.%d", wantMajor, wantMinor), Got: fmt.Sprintf("%d.%d", major, minor)}
}

// UseFixes starts XFIXES (2.0 or later).
func (c *Conn) UseFixes(ctx context.Context) (Extension, error) {
	return c.version32(ctx, ExtFixes, 2, 0)
}

// UseRandR starts RANDR (1.2 or later).
func (c *Conn) UseRandR(ctx context.Context) (Extension, error) {
	return c.version32(ctx, ExtRandR, 1, 2)
}

// UseInput starts XInput (2.0 or later).
func (c *Conn) UseInput(ctx context.Context) (Extension, error) {
	return c.version16(ctx, ExtInput, 47, 2, 0)
}

// UseRecord starts RECORD (1.13 or later).
func (c *Conn) UseRecord(ctx context.Context) (Extension, error) {
	return c.version16(ctx, ExtRecord, 0, 1, 13)
}

// UseResource starts X-Resource (1.2 or later, the first that tells process ids).
func (c *Conn) UseResource(ctx context.Context) (Extension, error) {
	e, err := c.Extension(ctx, ExtResource)
	if err != nil {
		return Extension{}, err
	}
	r, err := c.Call(ctx, NewRequest(e.Major, 0).U8(1, 2))
	if err != nil {
		return Extension{}, fmt.Errorf("version of %q: %w", ExtResource, err)
	}
	return e, atLeast(ExtResource, uint32(r.U16(8)), uint32(r.U16(10)), 1, 2)
}

// SelectSelections builds the XFIXES request for every change of a selection's owner.
func SelectSelections(fixes Extension, window, selection uint32) *Request {
	return NewRequest(fixes.Major, 2).U32(window, selection, 7)
}

// SelectOutputs builds the RANDR request for every change of screens, outputs and their controllers.
func SelectOutputs(randr Extension, window uint32) *Request {
	return NewRequest(randr.Major, 4).U32(window).U16(0xf, 0)
}

// SelectShape builds the SHAPE request for changes of a window's shape.
func SelectShape(shape Extension, window uint32) *Request {
	return NewRequest(shape.Major, 6).U32(window).U8(1)
}

// ClientPID asks the server which local process is behind the client that owns a resource (a window, or a
// client's resource base). UseResource must have succeeded on this connection. A client that the server has no
// process for matches ErrNoPID.
func (c *Conn) ClientPID(ctx context.Context, resource uint32) (int, error) {
	req, err := c.ClientPIDRequest(ctx, resource)
	if err != nil {
		return 0, err
	}
	r, err := c.Call(ctx, req)
	if err != nil {
		return 0, fmt.Errorf("process of 0x%x: %w", resource, err)
	}
	return ParseClientPID(r, resource, c.setup.ResourceMask)
}

// ClientPIDRequest builds the request of ClientPID, for Async.
func (c *Conn) ClientPIDRequest(ctx context.Context, resource uint32) (*Request, error) {
	e, err := c.Extension(ctx, ExtResource)
	if err != nil {
		return nil, err
	}
	return NewRequest(e.Major, 4).U32(1, resource, localClientPID), nil
}

// ParseClientPID reads the reply to ClientPIDRequest. mask is Setup.ResourceMask.
func ParseClientPID(r Reply, resource, mask uint32) (int, error) {
	off := 32
	for range min(r.U32(8), maxList) {
		if !r.Has(off, 12) {
			return 0, fmt.Errorf("process of 0x%x: %w", resource, ErrMalformed)
		}
		// X.Org (21.1.7) writes the id of a big-endian client in that client's byte order, not in the asker's; who
		// does not know it finds no process for such a client.
		client, kind, n := r.U32(off), r.U32(off+4), r.U32(off+8)
		same := client&^mask == resource&^mask || bits.ReverseBytes32(client)&^mask == resource&^mask
		if same && kind == localClientPID && n == 4 && r.Has(off+12, 4) {
			if pid := int32(r.U32(off + 12)); pid > 0 {
				return int(pid), nil
			}
		}
		if n > MaxFrame {
			return 0, fmt.Errorf("process of 0x%x: %w", resource, ErrMalformed)
		}
		off += 12 + int(n+3)/4*4
	}
	return 0, fmt.Errorf("process of 0x%x: %w", resource, ErrNoPID)
}

// Clients lists the resource bases of every client. UseResource must have succeeded on this connection.
func (c *Conn) Clients(ctx context.Context) ([]uint32, error) {
	e, err := c.Extension(ctx, ExtResource)
	if err != nil {
		return nil, err
	}
	r, err := c.Call(ctx, NewRequest(e.Major, 1))
	if err != nil {
		return nil, fmt.Errorf("clients: %w", err)
	}
	n := r.U32(8)
	if n > maxList || !r.Has(32, int(n)*8) {
		return nil, fmt.Errorf("clients: %w", ErrMalformed)
	}
	bases := make([]uint32, n)
	for i := range bases {
		bases[i] = r.U32(32 + 8*i)
	}
	return bases, nil
}

// FakeInput builds an XTEST request: code is KeyPress, KeyRelease, ButtonPress, ButtonRelease or
// MotionNotify; detail the keycode or button; x, y root pixels for motion.
func (c *Conn) FakeInput(ctx context.Context, code, detail byte, x, y int16) (*Request, error) {
	e, err := c.Extension(ctx, ExtTest)
	if err != nil {
		return nil, err
	}
	return NewRequest(e.Major, 2).U8(code, detail, 0, 0).U32(0, 0, 0, 0).I16(x, y).U32(0, 0), nil
}
