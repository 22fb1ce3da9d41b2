package recorder

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/redaction"
	"github.com/gen2brain/shm"
	"github.com/jezek/xgb"
	"github.com/jezek/xgb/composite"
	xshm "github.com/jezek/xgb/shm"
	"github.com/jezek/xgb/xfixes"
	"github.com/jezek/xgb/xproto"
)

// xgb prints to stderr what its callers get as errors anyway.
func init() { xgb.Logger = log.New(io.Discard, "", 0) }

// displayBudget bounds the wait for the X server: to connect, and for one capture.
const displayBudget = 10 * time.Second

// x11 captures the root window and one window's own pixels over a connection of its own.
type x11 struct {
	c        *xgb.Conn
	conn     net.Conn // under c
	root     xproto.Window
	w, h     int
	segs     []*segment
	pane     *segment // the target's pixels at full size
	win      xproto.Window
	ww, wh   int
	pixmap   xproto.Pixmap
	redirect bool
	ours     []uint32
	layers   []layer
	dirty    bool // layers are older than the last change
}

// segment is memory that we share with the X server. It has no name and vanishes with the two of us.
type segment struct {
	id   xshm.Seg
	data []byte
}

func newSource(display, authority string) (source, error) {
	c, conn, err := dial(display, authority)
	if err != nil {
		return nil, fail("start film", ErrDisplay, err)
	}
	x := &x11{c: c, conn: conn}
	if err := x.setup(); err != nil {
		x.close()
		return nil, fail("start film", ErrDisplay, err)
	}
	return x, nil
}

// dial connects to a local display such as ":99". The cookie comes from the authority file alone, never from the environment.
func dial(display, authority string) (*xgb.Conn, net.Conn, error) {
	num, _, _ := strings.Cut(strings.TrimPrefix(display, ":"), ".")
	if _, err := strconv.ParseUint(num, 10, 16); err != nil || !strings.HasPrefix(display, ":") {
		return nil, nil, fmt.Errorf("display %q: want a local one such as \":99\"", display)
	}
	cookie := ""
	if authority != "" {
		var err error
		if cookie, err = readCookie(authority, num); err != nil {
			return nil, nil, err
		}
	}
	var conn net.Conn
	var err error
	for _, path := range []string{"/tmp/.X11-unix/X" + num, "@/tmp/.X11-unix/X" + num} {
		if conn, err = net.DialTimeout("unix", path, displayBudget); err == nil {
			break
		}
	}
	if err != nil {
		return nil, nil, err
	}
	conn.SetDeadline(time.Now().Add(displayBudget))
	var c *xgb.Conn
	if cookie == "" {
		// xgb would look for a cookie in files of the environment; an empty answer is not possible, so a server without
		// access control is asked with a cookie that it does not look at.
		cookie = strings.Repeat("0", 32)
	}
	c, err = xgb.NewConnNetWithCookieHex(conn, cookie)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	conn.SetDeadline(time.Time{})
	return c, conn, nil
}

// readCookie returns the MIT-MAGIC-COOKIE-1 for a display number in hex.
func readCookie(path, num string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return "", err
	}
	field := func() []byte {
		if len(b) < 2 {
			b = nil
			return nil
		}
		n := int(binary.BigEndian.Uint16(b))
		if len(b) < 2+n {
			b = nil
			return nil
		}
		v := b[2 : 2+n]
		b = b[2+n:]
		return v
	}
	for len(b) > 2 {
		b = b[2:] // family: an address of any kind serves, the file is for our own display
		field()
		n := string(field())
		name := string(field())
		data := field()
		if name == "MIT-MAGIC-COOKIE-1" && (n == num || n == "") && len(data) == 16 {
			return hex.EncodeToString(data), nil
		}
	}
	return "", errors.New("authority file holds no cookie for the display")
}

func (x *x11) setup() error {
	for _, init := range []func(*xgb.Conn) error{xshm.Init, composite.Init, xfixes.Init} {
		if err := init(x.c); err != nil {
			return err
		}
	}
	if _, err := xfixes.QueryVersion(x.c, 5, 0).Reply(); err != nil {
		return err
	}
	if _, err := composite.QueryVersion(x.c, 0, 4).Reply(); err != nil {
		return err
	}
	scr := xproto.Setup(x.c).DefaultScreen(x.c)
	if d := scr.RootDepth; d != 24 && d != 32 {
		return fmt.Errorf("desk has depth %d, want 24", d)
	}
	x.root, x.w, x.h = scr.Root, int(scr.WidthInPixels), int(scr.HeightInPixels)
	// Told of every window that comes, goes, moves or is restacked.
	return xproto.ChangeWindowAttributesChecked(x.c, x.root, xproto.CwEventMask, []uint32{xproto.EventMaskSubstructureNotify}).Check()
}

func (x *x11) size() (int, int) { return x.w, x.h }

func (x *x11) newSegment(size int) (*segment, error) {
	id, err := shm.Get(shm.IPC_PRIVATE, size, shm.IPC_CREAT|0o600)
	if err != nil {
		return nil, fmt.Errorf("shared memory of %d bytes: %w", size, err)
	}
	defer shm.Rm(id) // it lives on until both sides have let go
	data, err := shm.At(id, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	seg, err := xshm.NewSegId(x.c)
	if err == nil {
		err = xshm.AttachChecked(x.c, seg, uint32(id), false).Check()
	}
	if err != nil {
		shm.Dt(data)
		return nil, fmt.Errorf("attach shared memory: %w", err)
	}
	return &segment{seg, data[:size]}, nil
}

func (x *x11) free(s *segment) {
	if s != nil {
		xshm.Detach(x.c, s.id)
		shm.Dt(s.data)
	}
}

func (x *x11) newShot() (*shot, error) {
	s, err := x.newSegment(x.w * x.h * 4)
	if err != nil {
		return nil, fail("start film", ErrDisplay, err)
	}
	x.segs = append(x.segs, s)
	return &shot{desk: s.data, pane: make([]byte, paneWidth*paneHeight*4), seg: uint32(s.id)}, nil
}

// target changes the window of the second pane; 0 is none.
func (x *x11) target(window uint32) {
	w := xproto.Window(window)
	if w == x.win {
		return
	}
	x.dropPixmap()
	if x.redirect {
		composite.UnredirectWindow(x.c, x.win, composite.RedirectAutomatic)
		x.redirect = false
	}
	x.win = w
	x.dirty = true
	if w == 0 {
		return
	}
	// Errors show as PaneLost at the next grab.
	x.redirect = composite.RedirectWindowChecked(x.c, w, composite.RedirectAutomatic).Check() == nil
	xproto.ChangeWindowAttributes(x.c, w, xproto.CwEventMask, []uint32{xproto.EventMaskStructureNotify})
}

func (x *x11) dropPixmap() {
	if x.pixmap != 0 {
		xproto.FreePixmap(x.c, x.pixmap)
		x.pixmap = 0
	}
}

// own names the windows of the harness.
func (x *x11) own(windows []uint32) {
	if !slices.Equal(windows, x.ours) {
		x.ours, x.dirty = windows, true
	}
}

// events takes what the server has told since the last call.
func (x *x11) events() {
	for {
		ev, xerr := x.c.PollForEvent()
		if ev == nil && xerr == nil {
			return
		}
		switch e := ev.(type) {
		case xproto.MapNotifyEvent:
			x.dirty = true
			if e.Window == x.win {
				x.dropPixmap() // a new mapping has new pixels
			}
		case xproto.UnmapNotifyEvent:
			x.dirty = true
			if e.Window == x.win {
				x.dropPixmap()
			}
		case xproto.ConfigureNotifyEvent, xproto.ReparentNotifyEvent, xproto.DestroyNotifyEvent, xproto.CirculateNotifyEvent, xproto.GravityNotifyEvent:
			x.dirty = true
		}
	}
}

// readLayers asks for the top-level windows, bottom to top.
func (x *x11) readLayers() error {
	x.dirty = false
	x.layers = []layer{}
	ours := map[xproto.Window]bool{}
	for _, w := range x.ours {
		ours[x.topOf(xproto.Window(w))] = true
	}
	var targetTop xproto.Window
	if x.win != 0 {
		targetTop = x.topOf(x.win)
	}
	tree, err := xproto.QueryTree(x.c, x.root).Reply()
	if err != nil || tree == nil {
		return fail("film", ErrDisplay, orEOF(err))
	}
	type asked struct {
		attr xproto.GetWindowAttributesCookie
		geom xproto.GetGeometryCookie
	}
	all := make([]asked, len(tree.Children))
	for i, w := range tree.Children {
		all[i] = asked{xproto.GetWindowAttributes(x.c, w), xproto.GetGeometry(x.c, xproto.Drawable(w))}
	}
	for i, w := range tree.Children {
		a, aerr := all[i].attr.Reply()
		g, gerr := all[i].geom.Reply()
		if aerr != nil || gerr != nil || a == nil || g == nil { // it is gone; an event tells so
			continue
		}
		if a.MapState != xproto.MapStateViewable || a.Class == xproto.WindowClassInputOnly {
			continue
		}
		border := 2 * int(g.BorderWidth)
		l := layer{window: uint32(w), rect: redaction.Rect{X: int(g.X), Y: int(g.Y), W: int(g.Width) + border, H: int(g.Height) + border}}
		if l.rect.Clip(x.w, x.h).Empty() {
			continue // helper windows of the window manager stand beside the desk
		}
		switch {
		case w == targetTop:
			l.kind = target
			if at, err := xproto.TranslateCoordinates(x.c, x.win, x.root, 0, 0).Reply(); err == nil && at != nil {
				if g, err := xproto.GetGeometry(x.c, xproto.Drawable(x.win)).Reply(); err == nil && g != nil {
					l.inner = redaction.Rect{X: int(at.DstX), Y: int(at.DstY), W: int(g.Width), H: int(g.Height)}
				}
			}
		case ours[w]:
			l.kind = own
		}
		x.layers = append(x.layers, l)
	}
	return nil
}

// topOf returns the child of the root that holds w.
func (x *x11) topOf(w xproto.Window) xproto.Window {
	for range 8 { // frames are one or two deep
		t, err := xproto.QueryTree(x.c, w).Reply()
		if err != nil || t == nil {
			return 0
		}
		if t.Parent == x.root || t.Parent == 0 {
			return w
		}
		w = t.Parent
	}
	return 0
}

// grabTries bounds how often a capture is repeated because windows moved during it.
const grabTries = 3

// grab takes both pictures, and where the windows are. A server that does not answer within displayBudget ends the connection.
func (x *x11) grab(s *shot) error {
	x.conn.SetDeadline(time.Now().Add(displayBudget))
	defer x.conn.SetDeadline(time.Time{}) // between captures the encoder may take its time
	for try := 1; ; try++ {
		x.events()
		if x.ours != nil && x.dirty {
			if err := x.readLayers(); err != nil {
				return err
			}
		}
		if err := x.pictures(s); err != nil {
			return err
		}
		// Events from before the picture's reply were delivered before it: none means that layers fit the picture.
		x.events()
		s.layers, s.shaky = nil, false
		if x.ours == nil {
			return nil
		}
		s.layers, s.shaky = x.layers, x.dirty
		if !x.dirty || try == grabTries {
			return nil
		}
	}
}

func (x *x11) pictures(s *shot) error {
	desk := xshm.GetImage(x.c, xproto.Drawable(x.root), 0, 0, uint16(x.w), uint16(x.h), 0xffffffff, xproto.ImageFormatZPixmap, xshm.Seg(s.seg), 0)
	mouse := xfixes.GetCursorImage(x.c)
	var attr xproto.GetWindowAttributesCookie
	var geom xproto.GetGeometryCookie
	var at xproto.TranslateCoordinatesCookie
	if x.win != 0 {
		attr = xproto.GetWindowAttributes(x.c, x.win)
		geom = xproto.GetGeometry(x.c, xproto.Drawable(x.win))
		at = xproto.TranslateCoordinates(x.c, x.win, x.root, 0, 0)
	}
	if r, err := desk.Reply(); err != nil || r == nil {
		return fail("film", ErrDisplay, orEOF(err))
	}
	s.mouse = sprite{}
	if m, err := mouse.Reply(); err == nil && m != nil {
		s.mouse = sprite{int(m.X) - int(m.Xhot), int(m.Y) - int(m.Yhot), int(m.Width), int(m.Height), m.CursorImage}
	}
	s.win, s.state, s.paneW, s.paneH, s.scale = redaction.Rect{}, PaneNone, 0, 0, 1
	if x.win == 0 {
		return nil
	}
	a, aerr := attr.Reply()
	g, gerr := geom.Reply()
	p, perr := at.Reply()
	if aerr != nil || gerr != nil || perr != nil || a == nil || g == nil || p == nil {
		s.state = PaneLost
		x.dropPixmap()
		return nil
	}
	s.win = redaction.Rect{X: int(p.DstX), Y: int(p.DstY), W: int(g.Width), H: int(g.Height)}
	if a.MapState != xproto.MapStateViewable {
		s.state = PaneUnmapped
		x.dropPixmap()
		return nil
	}
	if s.state = PaneLost; x.redirect && x.ownPixels(s) == nil {
		s.state = PaneOwn
	}
	return nil
}

func orEOF(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}

// ownPixels reads the target window's pixmap and scales it into the pane. The pixmap keeps the size that it was named at,
// so a window that was resized gets a new one.
func (x *x11) ownPixels(s *shot) error {
	w, h := s.win.W, s.win.H
	if x.pixmap != 0 && (x.ww != w || x.wh != h) {
		x.dropPixmap()
	}
	if x.pixmap == 0 {
		id, err := xproto.NewPixmapId(x.c)
		if err != nil {
			return err
		}
		if err := composite.NameWindowPixmapChecked(x.c, x.win, id).Check(); err != nil {
			return err
		}
		x.pixmap, x.ww, x.wh = id, w, h
	}
	if x.pane == nil || len(x.pane.data) < w*h*4 {
		seg, err := x.newSegment(w * h * 4)
		if err != nil {
			return err
		}
		x.free(x.pane)
		x.pane = seg
	}
	r, err := xshm.GetImage(x.c, xproto.Drawable(x.pixmap), 0, 0, uint16(w), uint16(h), 0xffffffff, xproto.ImageFormatZPixmap, x.pane.id, 0).Reply()
	if err != nil || r == nil {
		x.dropPixmap()
		return orEOF(err)
	}
	s.scale = paneScale(w, h)
	s.paneW, s.paneH = w/s.scale, h/s.scale
	shrink(s.pane, s.paneW*4, x.pane.data, w, h, s.scale)
	return nil
}

func (x *x11) abort() { x.conn.Close() }

func (x *x11) close() {
	for _, s := range x.segs {
		x.free(s)
	}
	x.free(x.pane)
	x.c.Close()
}
