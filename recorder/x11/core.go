package x11

import (
	"context"
	"fmt"
)

// Predefined atoms (X protocol, appendix B).
const (
	AtomPrimary    uint32 = 1
	AtomAtom       uint32 = 4
	AtomCardinal   uint32 = 6
	AtomString     uint32 = 31
	AtomWindow     uint32 = 33
	AtomWMHints    uint32 = 35
	AtomWMName     uint32 = 39
	AtomNormalHint uint32 = 40
	AtomSizeHints  uint32 = 41
)

// Event masks (X protocol, appendix B).
const (
	MaskKeyPress           uint32 = 1 << 0
	MaskKeyRelease         uint32 = 1 << 1
	MaskButtonPress        uint32 = 1 << 2
	MaskButtonRelease      uint32 = 1 << 3
	MaskEnter              uint32 = 1 << 4
	MaskLeave              uint32 = 1 << 5
	MaskPointerMotion      uint32 = 1 << 6
	MaskExposure           uint32 = 1 << 15
	MaskVisibility         uint32 = 1 << 16
	MaskStructure          uint32 = 1 << 17
	MaskSubstructure       uint32 = 1 << 19
	MaskSubstructureDirect uint32 = 1 << 20
	MaskFocus              uint32 = 1 << 21
	MaskProperty           uint32 = 1 << 22
)

// Core event codes.
const (
	KeyPress        = 2
	KeyRelease      = 3
	ButtonPress     = 4
	ButtonRelease   = 5
	MotionNotify    = 6
	EnterNotify     = 7
	LeaveNotify     = 8
	FocusIn         = 9
	FocusOut        = 10
	Expose          = 12
	VisibilityEvent = 15
	CreateNotify    = 16
	DestroyNotify   = 17
	UnmapNotify     = 18
	MapNotify       = 19
	ReparentNotify  = 21
	ConfigureNotify = 22
	GravityNotify   = 24
	CirculateNotify = 26
	PropertyNotify  = 28
	SelectionClear  = 29
	SelectionReq    = 30
	SelectionNotify = 31
	ClientMessage   = 33
	MappingNotify   = 34
)

// maxList bounds the count of windows, clients, devices and atoms that one reply may name.
const maxList = 1 << 16

// Atom interns a name; answers are kept for the life of the connection.
func (c *Conn) Atom(ctx context.Context, name string) (uint32, error) {
	c.mu.Lock()
	a, ok := c.atoms[name]
	c.mu.Unlock()
	if ok {
		return a, nil
	}
	r, err := c.Call(ctx, NewRequest(16, 0).U16(uint16(len(name)), 0).Text(name))
	if err != nil {
		return 0, fmt.Errorf("intern %q: %w", name, err)
	}
	a = r.U32(8)
	c.mu.Lock()
	c.atoms[name] = a
	c.mu.Unlock()
	return a, nil
}

// AtomName asks for the name of an atom; at most 255 bytes of it are returned, made printable.
func (c *Conn) AtomName(ctx context.Context, atom uint32) (string, error) {
	r, err := c.Call(ctx, NewRequest(17, 0).U32(atom))
	if err != nil {
		return "", fmt.Errorf("name of atom %d: %w", atom, err)
	}
	b, ok := r.Data(int(r.U16(8)))
	if !ok {
		return "", fmt.Errorf("name of atom %d: %w", atom, ErrMalformed)
	}
	return printable(b, 255), nil
}

// Property is the value of a window property.
type Property struct {
	Type   uint32 // atom, 0 when the property is absent
	Format byte   // 8, 16 or 32
	Value  []byte
	After  uint32 // bytes that were not returned
}

// Words reads a format 32 value.
func (p Property) Words() []uint32 {
	if p.Format != 32 {
		return nil
	}
	w := make([]uint32, 0, len(p.Value)/4)
	for b := p.Value; len(b) >= 4; b = b[4:] {
		w = append(w, le.Uint32(b))
	}
	return w
}

// Property reads at most limit bytes (rounded up to four, at most 256 KiB) of a property of any type.
func (c *Conn) Property(ctx context.Context, window, atom uint32, limit int) (Property, error) {
	words := uint32(min(max(limit, 0), 256<<10)+3) / 4
	r, err := c.Call(ctx, NewRequest(20, 0).U32(window, atom, 0, 0, words))
	if err != nil {
		return Property{}, fmt.Errorf("property %d of window 0x%x: %w", atom, window, err)
	}
	p := Property{Type: r.U32(8), Format: r.U8(1), After: r.U32(12)}
	n := uint64(r.U32(16)) * uint64(p.Format/8)
	if n > MaxFrame {
		return Property{}, fmt.Errorf("property %d of window 0x%x: %w", atom, window, ErrMalformed)
	}
	v, ok := r.Data(int(n))
	if !ok {
		return Property{}, fmt.Errorf("property %d of window 0x%x: %w", atom, window, ErrMalformed)
	}
	p.Value = v
	return p, nil
}

// ChangeProperty builds a request that replaces a property. Format is 8, 16 or 32.
func ChangeProperty(window, atom, typ uint32, format byte, value []byte) *Request {
	n := uint32(len(value)) / uint32(max(format/8, 1))
	return NewRequest(18, 0).U32(window, atom, typ).U8(format, 0, 0, 0).U32(n).U8(value...)
}

// ChangeProperty32 builds a request that replaces a property of 32-bit values.
func ChangeProperty32(window, atom, typ uint32, values ...uint32) *Request {
	var b []byte
	for _, v := range values {
		b = le.AppendUint32(b, v)
	}
	return ChangeProperty(window, atom, typ, 32, b)
}

// DeleteProperty builds a request that removes a property.
func DeleteProperty(window, atom uint32) *Request { return NewRequest(19, 0).U32(window, atom) }

// Geometry is the place of a window in pixels, relative to its parent.
type Geometry struct {
	X, Y          int16
	Width, Height uint16
	Border        uint16
}

// Geometry asks for a window's place.
func (c *Conn) Geometry(ctx context.Context, window uint32) (Geometry, error) {
	r, err := c.Call(ctx, NewRequest(14, 0).U32(window))
	if err != nil {
		return Geometry{}, fmt.Errorf("geometry of window 0x%x: %w", window, err)
	}
	return geometryOf(r), nil
}

func geometryOf(r Reply) Geometry {
	return Geometry{X: r.I16(12), Y: r.I16(14), Width: r.U16(16), Height: r.U16(18), Border: r.U16(20)}
}

// Translate converts a point from one window's coordinates to another's.
func (c *Conn) Translate(ctx context.Context, from, to uint32, x, y int16) (tx, ty int16, err error) {
	r, err := c.Call(ctx, NewRequest(40, 0).U32(from, to).I16(x, y))
	if err != nil {
		return 0, 0, fmt.Errorf("translate from window 0x%x: %w", from, err)
	}
	return r.I16(12), r.I16(14), nil
}

// Tree is a window's place among its relatives.
type Tree struct {
	Root, Parent uint32
	Children     []uint32 // bottom to top
}

// QueryTree asks for parent and children. More than 65,536 children match ErrTooLarge.
func (c *Conn) QueryTree(ctx context.Context, window uint32) (Tree, error) {
	r, err := c.Call(ctx, NewRequest(15, 0).U32(window))
	if err != nil {
		return Tree{}, fmt.Errorf("tree of window 0x%x: %w", window, err)
	}
	n := int(r.U16(16))
	b, ok := r.Data(4 * n)
	if !ok {
		return Tree{}, fmt.Errorf("tree of window 0x%x: %w", window, ErrMalformed)
	}
	t := Tree{Root: r.U32(8), Parent: r.U32(12), Children: make([]uint32, n)}
	for i := range t.Children {
		t.Children[i] = le.Uint32(b[4*i:])
	}
	return t, nil
}

// Attributes are the parts of a window's attributes that a guard needs.
type Attributes struct {
	InputOnly        bool
	OverrideRedirect bool
	Mapped           bool // mapped, though an ancestor may be unmapped
	Viewable         bool // mapped, and so are all ancestors
}

// Attributes asks for a window's attributes.
func (c *Conn) Attributes(ctx context.Context, window uint32) (Attributes, error) {
	r, err := c.Call(ctx, AttributesRequest(window))
	if err != nil {
		return Attributes{}, fmt.Errorf("attributes of window 0x%x: %w", window, err)
	}
	return ParseAttributes(r), nil
}

// AttributesRequest builds the request of Attributes, for Async.
func AttributesRequest(window uint32) *Request { return NewRequest(3, 0).U32(window) }

// ParseAttributes reads the reply to AttributesRequest.
func ParseAttributes(r Reply) Attributes {
	return Attributes{InputOnly: r.U16(12) == 2, Mapped: r.U8(26) != 0, Viewable: r.U8(26) == 2,
		OverrideRedirect: r.U8(27) != 0}
}

// WindowState joins tree order, attributes and geometry of one child of a window.
type WindowState struct {
	Window uint32
	Attributes
	Geometry
}

// Children reads the children of a window, bottom to top, with attributes and geometry, in two round trips.
// Windows that vanish meanwhile are left out.
func (c *Conn) Children(ctx context.Context, window uint32) ([]WindowState, error) {
	t, err := c.QueryTree(ctx, window)
	if err != nil {
		return nil, err
	}
	states := make([]WindowState, len(t.Children))
	gone := make([]bool, len(t.Children))
	errs := make(chan error, 2*len(t.Children)+1)
	keep := func(i int, err error) {
		if IsGone(err) {
			gone[i] = true
			err = nil
		}
		errs <- err
	}
	for i, w := range t.Children {
		states[i].Window = w
		c.Async(ctx, AttributesRequest(w), func(r Reply, err error) {
			states[i].Attributes = ParseAttributes(r)
			keep(i, err)
		})
		c.Async(ctx, NewRequest(14, 0).U32(w), func(r Reply, err error) {
			states[i].Geometry = geometryOf(r)
			keep(i, err)
		})
	}
	for range 2 * len(t.Children) {
		select {
		case err := <-errs:
			if err != nil {
				return nil, fmt.Errorf("children of window 0x%x: %w", window, err)
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("children of window 0x%x: %w", window, context.Cause(ctx))
		}
	}
	var out []WindowState
	for i, s := range states {
		if !gone[i] {
			out = append(out, s)
		}
	}
	return out, nil
}

// TopLevel returns the ancestor of a window (or itself) that is a child of the root: the window manager's
// frame, where there is one. At most 64 levels are climbed.
func (c *Conn) TopLevel(ctx context.Context, window uint32) (uint32, error) {
	w := window
	for range 64 {
		t, err := c.QueryTree(ctx, w)
		if err != nil {
			return 0, err
		}
		if t.Parent == t.Root || t.Parent == 0 {
			return w, nil
		}
		w = t.Parent
	}
	return 0, fmt.Errorf("window 0x%x is nested above 64 levels: %w", window, ErrTooLarge)
}

// Focus is the input focus: window 0 is none, 1 is whatever root the pointer is on.
func (c *Conn) Focus(ctx context.Context) (window uint32, revertTo byte, err error) {
	r, err := c.Call(ctx, NewRequest(43, 0))
	if err != nil {
		return 0, 0, fmt.Errorf("input focus: %w", err)
	}
	return r.U32(8), r.U8(1), nil
}

// Pointer is the place of the core pointer.
type Pointer struct {
	X, Y  int16  // root coordinates, pixels
	Mask  uint16 // modifiers and buttons that are down
	Child uint32 // child of the root under the pointer, 0 for none
}

// Pointer asks for the place of the core pointer.
func (c *Conn) Pointer(ctx context.Context) (Pointer, error) {
	r, err := c.Call(ctx, NewRequest(38, 0).U32(c.setup.Root))
	if err != nil {
		return Pointer{}, fmt.Errorf("pointer: %w", err)
	}
	return Pointer{X: r.I16(16), Y: r.I16(18), Mask: r.U16(24), Child: r.U32(12)}, nil
}

// SelectionOwner is the window that owns a selection, 0 for none.
func (c *Conn) SelectionOwner(ctx context.Context, selection uint32) (uint32, error) {
	r, err := c.Call(ctx, NewRequest(23, 0).U32(selection))
	if err != nil {
		return 0, fmt.Errorf("owner of selection %d: %w", selection, err)
	}
	return r.U32(8), nil
}

// Keymap is the core keyboard mapping (keysyms of every keycode) and the modifier mapping, as the server
// sends them.
func (c *Conn) Keymap(ctx context.Context) (keysyms, modifiers []byte, err error) {
	n := c.setup.MaxKeycode - c.setup.MinKeycode + 1
	r, err := c.Call(ctx, NewRequest(101, 0).U8(c.setup.MinKeycode, n))
	if err != nil {
		return nil, nil, fmt.Errorf("keyboard mapping: %w", err)
	}
	m, err := c.Call(ctx, NewRequest(119, 0))
	if err != nil {
		return nil, nil, fmt.Errorf("modifier mapping: %w", err)
	}
	return append([]byte{r.U8(1)}, r.B[32:]...), append([]byte{m.U8(1)}, m.B[32:]...), nil
}

// SelectInput builds a request that selects core events of a window for this client.
func SelectInput(window, mask uint32) *Request {
	return NewRequest(2, 0).U32(window, 0x800, mask)
}

// WindowOptions describes a new window. Zero values: placed at 0,0, 1x1 pixels, managed, black.
type WindowOptions struct {
	Parent           uint32 // the root when 0
	X, Y             int16
	Width, Height    uint16
	OverrideRedirect bool
	InputOnly        bool
	Background       uint32 // pixel value 0xRRGGBB
	Events           uint32 // event mask
}

// CreateWindow creates an unmapped window and returns its id. It lives as long as the connection.
func (c *Conn) CreateWindow(ctx context.Context, o WindowOptions) (uint32, error) {
	id := c.NewID()
	parent := o.Parent
	if parent == 0 {
		parent = c.setup.Root
	}
	r := NewRequest(1, 0).U32(id, parent).I16(o.X, o.Y).U16(max(o.Width, 1), max(o.Height, 1), 0)
	override := uint32(0)
	if o.OverrideRedirect {
		override = 1
	}
	if o.InputOnly {
		r.U16(2).U32(0, 0x200|0x800, override, o.Events)
	} else {
		r.U16(1).U32(0, 2|0x200|0x800, o.Background, override, o.Events)
	}
	return id, c.Send(ctx, r)
}

// SetTitle builds a request that names a window.
func SetTitle(window uint32, title string) *Request {
	return ChangeProperty(window, AtomWMName, AtomString, 8, []byte(title))
}

// MapWindow builds a request that maps a window.
func MapWindow(window uint32) *Request { return NewRequest(8, 0).U32(window) }

// UnmapWindow builds a request that unmaps a window.
func UnmapWindow(window uint32) *Request { return NewRequest(10, 0).U32(window) }

// DestroyWindow builds a request that destroys a window.
func DestroyWindow(window uint32) *Request { return NewRequest(4, 0).U32(window) }

// StackMode says where a window goes among its siblings.
type StackMode uint32

// Stack modes of ConfigureWindow.
const (
	Above    StackMode = 0
	Below    StackMode = 1
	TopIf    StackMode = 2
	BottomIf StackMode = 3
	Opposite StackMode = 4
)

// MoveWindow builds a request that moves a window, in pixels of its parent.
func MoveWindow(window uint32, x, y int16) *Request {
	return NewRequest(12, 0).U32(window).U16(3, 0).U32(uint32(int32(x)), uint32(int32(y)))
}

// ResizeWindow builds a request that resizes a window, in pixels.
func ResizeWindow(window uint32, width, height uint16) *Request {
	return NewRequest(12, 0).U32(window).U16(12, 0).U32(uint32(width), uint32(height))
}

// Restack builds a request that raises or lowers a window; sibling 0 means among all.
func Restack(window, sibling uint32, mode StackMode) *Request {
	if sibling == 0 {
		return NewRequest(12, 0).U32(window).U16(0x40, 0).U32(uint32(mode))
	}
	return NewRequest(12, 0).U32(window).U16(0x60, 0).U32(sibling, uint32(mode))
}

// SetInputFocus builds a request that sets the focus, reverting to the pointer root.
func SetInputFocus(window uint32) *Request { return NewRequest(42, 1).U32(window, 0) }

// WarpPointer builds a request that moves the pointer to a place on the root.
func (c *Conn) WarpPointer(x, y int16) *Request {
	return NewRequest(41, 0).U32(0, c.setup.Root).I16(0, 0).U16(0, 0).I16(x, y)
}

// SetSelectionOwner builds a request that takes a selection.
func SetSelectionOwner(window, selection uint32) *Request {
	return NewRequest(22, 0).U32(window, selection, 0)
}

// SendEvent builds a request that sends a made event of 32 bytes. Shorter ones are padded, longer ones cut.
func SendEvent(window, mask uint32, propagate byte, event []byte) *Request {
	var e [32]byte
	copy(e[:], event)
	return NewRequest(25, propagate).U32(window, mask).U8(e[:]...)
}

// ClientMessageEvent is the body of a 32-bit client message; at most five values are carried.
func ClientMessageEvent(window, typ uint32, values ...uint32) []byte {
	b := le.AppendUint32(le.AppendUint32([]byte{ClientMessage, 32, 0, 0}, window), typ)
	for _, v := range values[:min(len(values), 5)] {
		b = le.AppendUint32(b, v)
	}
	return append(b, make([]byte, 32-len(b))...)
}

// RootMessage builds the request by which clients ask a window manager for something (EWMH, "root window
// messages"): a client message about window, sent to the root's substructure clients.
func (c *Conn) RootMessage(window, typ uint32, values ...uint32) *Request {
	return SendEvent(c.setup.Root, MaskSubstructure|MaskSubstructureDirect, 0, ClientMessageEvent(window, typ, values...))
}

// InputEvent is the body of a made key or button event: code is a core event code, detail the keycode or
// button.
func (c *Conn) InputEvent(code, detail byte, window uint32) []byte {
	b := le.AppendUint32([]byte{code, detail, 0, 0}, 0)
	b = le.AppendUint32(le.AppendUint32(b, c.setup.Root), window)
	b = append(b, make([]byte, 32-len(b))...)
	b[30] = 1 // same screen
	return b
}
