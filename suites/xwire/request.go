package xwire

import (
	"context"
	"errors"
	"fmt"
)

// Request is one X request under construction. Its length field is filled in when it is sent; a
// request must stay below Setup.MaxRequest.
type Request struct{ b []byte }

// Req begins a request: the opcode, and the byte after it (a detail, or an extension's minor code).
func Req(op, data byte) *Request { return &Request{b: []byte{op, data, 0, 0}} }

// U8 appends bytes.
func (r *Request) U8(v ...byte) *Request { r.b = append(r.b, v...); return r }

// U16 appends 16-bit values.
func (r *Request) U16(v ...uint16) *Request {
	for _, x := range v {
		r.b = le.AppendUint16(r.b, x)
	}
	return r
}

// I16 appends signed 16-bit values, such as coordinates.
func (r *Request) I16(v ...int) *Request {
	for _, x := range v {
		r.b = le.AppendUint16(r.b, uint16(int16(x)))
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

// Bytes appends bytes and pads to four.
func (r *Request) Bytes(v []byte) *Request { r.b = pad(append(r.b, v...)); return r }

func (r *Request) bytes() []byte {
	b := pad(append([]byte(nil), r.b...))
	le.PutUint16(b[2:], uint16(len(b)/4))
	return b
}

func pad(b []byte) []byte {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// Rect is a rectangle in root pixels.
type Rect struct {
	X      int `json:"x"`
	Y      int `json:"y"`
	Width  int `json:"width"`
	Height int `json:"height"`
}

// Contains reports whether o lies wholly within r.
func (r Rect) Contains(o Rect) bool {
	return o.X >= r.X && o.Y >= r.Y && o.X+o.Width <= r.X+r.Width && o.Y+o.Height <= r.Y+r.Height
}

// Overlap returns the common area in square pixels.
func (r Rect) Overlap(o Rect) int {
	w := min(r.X+r.Width, o.X+o.Width) - max(r.X, o.X)
	h := min(r.Y+r.Height, o.Y+o.Height) - max(r.Y, o.Y)
	if w <= 0 || h <= 0 {
		return 0
	}
	return w * h
}

var errShort = errors.New("the X reply is too short")

func (c *Conn) call(ctx context.Context, r *Request, least int) ([]byte, error) {
	b, err := c.Call(ctx, r)
	if err != nil {
		return nil, err
	}
	if len(b) < least {
		return nil, errShort
	}
	return b, nil
}

// Atom interns a name; it asks the server once a name.
func (c *Conn) Atom(ctx context.Context, name string) (uint32, error) {
	c.mu.Lock()
	a, ok := c.atoms[name]
	c.mu.Unlock()
	if ok {
		return a, nil
	}
	b, err := c.call(ctx, Req(16, 0).U16(uint16(len(name)), 0).Bytes([]byte(name)), 12)
	if err != nil {
		return 0, fmt.Errorf("atom %q: %w", name, err)
	}
	a = le.Uint32(b[8:])
	c.mu.Lock()
	c.atoms[name] = a
	c.mu.Unlock()
	return a, nil
}

// Atoms interns several names.
func (c *Conn) Atoms(ctx context.Context, names ...string) (map[string]uint32, error) {
	m := make(map[string]uint32, len(names))
	for _, n := range names {
		a, err := c.Atom(ctx, n)
		if err != nil {
			return nil, err
		}
		m[n] = a
	}
	return m, nil
}

// Extension returns the major opcode and first event of an extension; present is false when the
// server lacks it.
func (c *Conn) Extension(ctx context.Context, name string) (major, event byte, present bool, err error) {
	b, err := c.call(ctx, Req(98, 0).U16(uint16(len(name)), 0).Bytes([]byte(name)), 12)
	if err != nil {
		return 0, 0, false, err
	}
	return b[9], b[10], b[8] != 0, nil
}

// Focus returns the window with the input focus (0 none, 1 pointer root). It is also our round trip.
func (c *Conn) Focus(ctx context.Context) (uint32, error) {
	b, err := c.call(ctx, Req(43, 0), 12)
	if err != nil {
		return 0, err
	}
	return le.Uint32(b[8:]), nil
}

// Pointer returns the pointer's position on the root window and the mask of held modifiers and buttons.
func (c *Conn) Pointer(ctx context.Context) (x, y int, mask uint16, err error) {
	b, err := c.call(ctx, Req(38, 0).U32(c.Root), 26)
	if err != nil {
		return 0, 0, 0, err
	}
	return int(int16(le.Uint16(b[16:]))), int(int16(le.Uint16(b[18:]))), le.Uint16(b[24:]), nil
}

// Property returns a property's type and value, at most 64 KiB of it; type 0 when it is absent.
func (c *Conn) Property(ctx context.Context, win uint32, name string) (typ uint32, value []byte, err error) {
	a, err := c.Atom(ctx, name)
	if err != nil {
		return 0, nil, err
	}
	b, err := c.call(ctx, Req(20, 0).U32(win, a, 0, 0, 16384), 32)
	if err != nil {
		return 0, nil, err
	}
	n := int(le.Uint32(b[16:])) * int(b[1]) / 8
	if n < 0 || n > len(b)-32 {
		return 0, nil, errShort
	}
	return le.Uint32(b[8:]), b[32 : 32+n], nil
}

// Words returns a property of 32-bit items, nil when it is absent.
func (c *Conn) Words(ctx context.Context, win uint32, name string) ([]uint32, error) {
	_, v, err := c.Property(ctx, win, name)
	if err != nil {
		return nil, err
	}
	var out []uint32
	for ; len(v) >= 4; v = v[4:] {
		out = append(out, le.Uint32(v))
	}
	return out, nil
}

// SetProperty builds a ChangeProperty (replace). width is 8, 16 or 32 bits an item.
func SetProperty(win, name, typ uint32, width byte, value []byte) *Request {
	return Req(18, 0).U32(win, name, typ).U8(width, 0, 0, 0).U32(uint32(len(value) / int(width/8))).Bytes(value)
}

// Words32 encodes 32-bit items for SetProperty.
func Words32(v ...uint32) []byte { return Req(0, 0).U32(v...).b[4:] }

// Message builds a 32-bit ClientMessage for SendEvent.
func Message(win, typ uint32, data ...uint32) []byte {
	ev := make([]byte, 32)
	ev[0], ev[1] = 33, 32
	le.PutUint32(ev[4:], win)
	le.PutUint32(ev[8:], typ)
	for i, d := range data {
		if i < 5 {
			le.PutUint32(ev[12+4*i:], d)
		}
	}
	return ev
}

// SendEvent builds the request that delivers ev to the clients that selected mask on win; mask 0 is
// the client that created it.
func SendEvent(win, mask uint32, ev []byte) *Request { return Req(25, 0).U32(win, mask).Bytes(ev) }

// ToManager builds a ClientMessage to the root window, as window managers expect it.
func (c *Conn) ToManager(win, typ uint32, data ...uint32) *Request {
	return SendEvent(c.Root, 0x180000, Message(win, typ, data...))
}

// Geometry returns a drawable's size, and its position relative to its parent.
func (c *Conn) Geometry(ctx context.Context, win uint32) (Rect, error) {
	b, err := c.call(ctx, Req(14, 0).U32(win), 22)
	if err != nil {
		return Rect{}, err
	}
	return Rect{int(int16(le.Uint16(b[12:]))), int(int16(le.Uint16(b[14:]))), int(le.Uint16(b[16:])), int(le.Uint16(b[18:]))}, nil
}

// OnRoot returns where a window's inside is on the root window.
func (c *Conn) OnRoot(ctx context.Context, win uint32) (Rect, error) {
	r, err := c.Geometry(ctx, win)
	if err != nil {
		return Rect{}, err
	}
	b, err := c.call(ctx, Req(40, 0).U32(win, c.Root).I16(0, 0), 16)
	if err != nil {
		return Rect{}, err
	}
	r.X, r.Y = int(int16(le.Uint16(b[12:]))), int(int16(le.Uint16(b[14:])))
	return r, nil
}

// Children returns a window's parent and its children, bottom first.
func (c *Conn) Children(ctx context.Context, win uint32) (parent uint32, children []uint32, err error) {
	b, err := c.call(ctx, Req(15, 0).U32(win), 32)
	if err != nil {
		return 0, nil, err
	}
	n := int(le.Uint16(b[16:]))
	if len(b) < 32+4*n {
		return 0, nil, errShort
	}
	for i := range n {
		children = append(children, le.Uint32(b[32+4*i:]))
	}
	return le.Uint32(b[12:]), children, nil
}

// Top returns the ancestor of a window that is a child of the root: the frame, when it is managed.
func (c *Conn) Top(ctx context.Context, win uint32) (uint32, error) {
	for range 32 {
		parent, _, err := c.Children(ctx, win)
		if err != nil {
			return 0, err
		}
		if parent == c.Root || parent == 0 {
			return win, nil
		}
		win = parent
	}
	return 0, errors.New("window is nested more than 32 deep")
}

// Viewable reports whether a window and all its ancestors are mapped, and whether it shows pixels at all
// (an InputOnly window does not).
func (c *Conn) Viewable(ctx context.Context, win uint32) (bool, error) {
	b, err := c.call(ctx, Req(3, 0).U32(win), 27)
	if err != nil {
		return false, err
	}
	return b[26] == 2 && le.Uint16(b[12:]) == 1, nil
}

// Popups returns the viewable override-redirect windows on the screen that the client which made a window has made, too; those that it keeps outside
// the screen are left out.
func (c *Conn) Popups(ctx context.Context, made uint32) ([]uint32, error) {
	_, all, err := c.Children(ctx, c.Root)
	if err != nil {
		return nil, err
	}
	var out []uint32
	for _, w := range all {
		if w&^c.mask != made&^c.mask {
			continue
		}
		up, err := c.popup(ctx, w)
		var gone *ProtocolError
		if err != nil && !errors.As(err, &gone) {
			return nil, err
		}
		if up {
			out = append(out, w)
		}
	}
	return out, nil
}

func (c *Conn) popup(ctx context.Context, win uint32) (bool, error) {
	b, err := c.call(ctx, Req(3, 0).U32(win), 28)
	if err != nil || b[26] != 2 || b[27] != 1 || le.Uint16(b[12:]) != 1 {
		return false, err
	}
	at, err := c.OnRoot(ctx, win)
	screen := Rect{Width: c.Width, Height: c.Height}
	return err == nil && at.Overlap(screen) > 0, err
}

// Covering returns the frames above a window on the screen, bottom first, as rectangles with borders.
// It asks for each window in turn; a window that goes away meanwhile is left out.
func (c *Conn) Covering(ctx context.Context, win uint32) ([]Rect, error) {
	top, err := c.Top(ctx, win)
	if err != nil {
		return nil, err
	}
	_, all, err := c.Children(ctx, c.Root)
	if err != nil {
		return nil, err
	}
	var out []Rect
	above := false
	for _, w := range all {
		if w == top {
			above = true
			continue
		}
		if !above {
			continue
		}
		if see, err := c.Viewable(ctx, w); err != nil || !see {
			continue
		}
		r, err := c.Geometry(ctx, w)
		if err != nil {
			continue
		}
		out = append(out, r)
	}
	if !above {
		return nil, errors.New("window is not on the screen")
	}
	return out, nil
}

// Manager is what the window manager says of itself.
type Manager struct {
	Window  uint32 // _NET_SUPPORTING_WM_CHECK
	Name    string
	Version string // openbox: _OB_VERSION on the root window; else empty
}

// WindowManager returns the running window manager; present is false as long as none has announced
// itself on the root window and on its own check window.
func (c *Conn) WindowManager(ctx context.Context) (m Manager, present bool, err error) {
	const check = "_NET_SUPPORTING_WM_CHECK"
	root, err := c.Words(ctx, c.Root, check)
	if err != nil || len(root) != 1 {
		return m, false, err
	}
	own, err := c.Words(ctx, root[0], check)
	var xe *ProtocolError
	if errors.As(err, &xe) {
		return m, false, nil // a window manager that has gone
	}
	if err != nil || len(own) != 1 || own[0] != root[0] {
		return m, false, err
	}
	m.Window = root[0]
	_, name, err := c.Property(ctx, m.Window, "_NET_WM_NAME")
	if err != nil {
		return m, false, err
	}
	_, version, err := c.Property(ctx, c.Root, "_OB_VERSION")
	m.Name, m.Version = string(name), string(version)
	return m, m.Name != "", err
}

// WaitProperty waits until check accepts what win's properties say; it asks again at each change of a
// property, after selecting them on win, so the caller must not need another event mask there.
func (c *Conn) WaitProperty(ctx context.Context, win uint32, check func() (bool, error)) error {
	if err := c.Send(Req(2, 0).U32(win, 0x800, 0x400000)); err != nil {
		return err
	}
	for {
		ok, err := check()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.done:
			return c.Err()
		case <-c.wake:
			c.Take()
		}
	}
}
