package native

import (
	"context"
	"errors"
	"io"
	"log"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/res"
	"github.com/jezek/xgb/xproto"

	"github.com/engine-acceptance/acceptance/engine"
)

var (
	_ engine.NativePlatform = (*x11)(nil)
	_ engine.Occluder       = (*x11)(nil)
)

// Bounds of every question to the X server.
const (
	// budgetX is how long the X server may take for one answer before the connection is given up.
	budgetX = 2 * time.Second
	// maxWindows bounds lists of windows.
	maxWindows = 4096
	// xresMajor and xresMinor are the first version of X-Resource with QueryClientIds.
	xresMajor, xresMinor = 1, 2
)

// silence keeps xgb from writing to standard error, where a reader of the engine's output would take it for the engine's.
var silence = sync.OnceFunc(func() { xgb.Logger = log.New(io.Discard, "", 0) })

// Open returns the platform of an X11 display such as ":7". An empty display gives [Unavailable]. The connection is made at the first
// question and made again after it was lost; a display that cannot be reached is refused as environment, no_display, and one without
// X-Resource as environment, owner_unprovable. The error is nil or ctx's.
func Open(ctx context.Context, display string) (engine.NativePlatform, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if display == "" {
		return Unavailable(), nil
	}
	silence()
	return &x11{display: display}, nil
}

// x11 answers from one connection for questions and a second one for events.
type x11 struct {
	display   string
	endpoints endpoints

	mu     sync.Mutex
	link   *link
	watch  *watcher
	closed bool
}

// link is one connection with what was learned at its start.
type link struct {
	conn  *xgb.Conn
	root  xproto.Window
	area  engine.Rect
	atoms map[string]xproto.Atom
}

// atomNames are the properties that proofs and observations read.
var atomNames = []string{"_NET_CLIENT_LIST", "_NET_CLIENT_LIST_STACKING", "_NET_ACTIVE_WINDOW", "_NET_WM_PID", "_NET_WM_STATE",
	"_NET_WM_STATE_HIDDEN", "WM_STATE", "_NET_FRAME_EXTENTS", "_GTK_FRAME_EXTENTS"}

// dial connects, checks X-Resource and interns the atoms.
func dial(display string) (*link, error) {
	conn, err := xgb.NewConnDisplay(display)
	if err != nil {
		return nil, environment("no_display")
	}
	if err := res.Init(conn); err != nil {
		conn.Close()
		return nil, environment("owner_unprovable")
	}
	v, err := res.QueryVersion(conn, xresMajor, xresMinor).Reply()
	if err != nil || v == nil || v.ServerMajor < xresMajor || v.ServerMajor == xresMajor && v.ServerMinor < xresMinor {
		conn.Close()
		return nil, environment("owner_unprovable")
	}
	screen := xproto.Setup(conn).DefaultScreen(conn)
	l := &link{conn: conn, root: screen.Root, atoms: map[string]xproto.Atom{},
		area: engine.Rect{W: int(screen.WidthInPixels), H: int(screen.HeightInPixels)}}
	cookies := make([]xproto.InternAtomCookie, len(atomNames))
	for i, name := range atomNames {
		cookies[i] = xproto.InternAtom(conn, false, uint16(len(name)), name)
	}
	for i, name := range atomNames {
		r, err := cookies[i].Reply()
		if err != nil || r == nil {
			conn.Close()
			return nil, environment("no_display")
		}
		l.atoms[name] = r.Atom
	}
	return l, nil
}

// bounded runs f, which talks to the X server, and waits for it no longer than ctx and [budgetX]. A server that does not answer costs one
// goroutine until its connection breaks.
func bounded[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	ctx, cancel := context.WithTimeout(ctx, budgetX)
	defer cancel()
	ch := make(chan answer, 1)
	go func() {
		v, err := f()
		ch <- answer{v, err}
	}()
	select {
	case a := <-ch:
		return a.v, a.err
	case <-ctx.Done():
		var none T
		return none, environment("window_unprovable")
	}
}

// ask runs f on the question connection, connecting first where needed. A connection that broke is forgotten, and the question refused:
// it is not asked again behind the caller's back.
func ask[T any](ctx context.Context, p *x11, f func(*link) (T, error)) (T, error) {
	return bounded(ctx, func() (T, error) {
		var none T
		l, err := p.connect()
		if err != nil {
			return none, err
		}
		v, err := f(l)
		if errors.Is(err, errLost) {
			p.mu.Lock()
			if p.link == l {
				p.link = nil
			}
			p.mu.Unlock()
			l.conn.Close()
			return none, environment("no_display")
		}
		return v, err
	})
}

func (p *x11) connect() (*link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, environment("no_display")
	}
	if p.link != nil {
		return p.link, nil
	}
	l, err := dial(p.display)
	if err != nil {
		return nil, err
	}
	p.link = l
	// Nothing is selected on this connection, so events and unclaimed errors are only read away.
	go func() {
		for {
			if ev, xerr := l.conn.WaitForEvent(); ev == nil && xerr == nil {
				p.mu.Lock()
				if p.link == l {
					p.link = nil
				}
				p.mu.Unlock()
				return
			}
		}
	}()
	return l, nil
}

// errLost says that the connection broke, as opposed to the server refusing one request.
var errLost = errors.New("connection to the window system lost")

// lost tells a broken connection from an error of the server.
func lost(err error) bool {
	if err == nil {
		return false
	}
	var x xgb.Error
	return !errors.As(err, &x)
}

// Close ends both connections. It is safe to call twice.
func (p *x11) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.link != nil {
		p.link.conn.Close()
		p.link = nil
	}
	if p.watch != nil {
		p.watch.link.conn.Close()
		p.watch = nil
	}
	return nil
}

// Identify implements [engine.NativePlatform]. It does not touch the X server.
func (p *x11) Identify(_ context.Context, pid int) (engine.Process, error) { return Identify(pid) }

// SameProcess implements [engine.NativePlatform]. It does not touch the X server.
func (p *x11) SameProcess(_ context.Context, proc engine.Process) error { return Same(proc) }

// OwnsEndpoint implements [engine.NativePlatform]. It does not touch the X server.
func (p *x11) OwnsEndpoint(_ context.Context, proc engine.Process, addr netip.AddrPort) error {
	return p.endpoints.owns(proc, addr)
}

// Window implements [engine.NativePlatform]: all questions travel in one round trip.
func (p *x11) Window(ctx context.Context, id uint32, proc engine.Process) (engine.NativeWindow, error) {
	return ask(ctx, p, func(l *link) (engine.NativeWindow, error) { return l.window(id, proc) })
}

func (l *link) window(id uint32, proc engine.Process) (engine.NativeWindow, error) {
	w := xproto.Window(id)
	none := engine.NativeWindow{}
	if id == 0 || w == l.root {
		return none, wrongTarget("window_owner")
	}
	owner := res.QueryClientIds(l.conn, 1, []res.ClientIdSpec{{Client: id, Mask: res.ClientIdMaskLocalClientPID}})
	geometry := xproto.GetGeometry(l.conn, xproto.Drawable(w))
	origin := xproto.TranslateCoordinates(l.conn, w, l.root, 0, 0)
	attributes := xproto.GetWindowAttributes(l.conn, w)
	claim := xproto.GetProperty(l.conn, false, w, l.atoms["_NET_WM_PID"], xproto.AtomCardinal, 0, 1)
	state := xproto.GetProperty(l.conn, false, w, l.atoms["WM_STATE"], xproto.GetPropertyTypeAny, 0, 2)
	net := xproto.GetProperty(l.conn, false, w, l.atoms["_NET_WM_STATE"], xproto.AtomAtom, 0, 64)
	// Every reply is collected, so that none stays behind in the connection.
	ids, e0 := owner.Reply()
	geo, e1 := geometry.Reply()
	at, e2 := origin.Reply()
	attr, e3 := attributes.Reply()
	pid, e4 := claim.Reply()
	st, e5 := state.Reply()
	ns, e6 := net.Reply()
	for _, err := range []error{e0, e1, e2, e3, e4, e5, e6} {
		if lost(err) {
			return none, errLost
		}
	}
	if e1 != nil || e2 != nil || e3 != nil || geo == nil || at == nil || attr == nil {
		return none, changed("window")
	}
	if e0 != nil || ids == nil {
		return none, environment("owner_unprovable")
	}
	n := engine.NativeWindow{ID: id, OwnerPID: ownerOf(ids), Bounds: engine.Rect{X: int(at.DstX), Y: int(at.DstY), W: int(geo.Width), H: int(geo.Height)},
		Mapped: attr.MapState == xproto.MapStateViewable}
	if n.OwnerPID == 0 {
		return none, environment("owner_unprovable")
	}
	if n.OwnerPID != proc.PID {
		return none, wrongTarget("window_owner")
	}
	if claimed := words(pid); len(claimed) > 0 && int(claimed[0]) != proc.PID {
		return none, wrongTarget("window_owner")
	}
	if s := words(st); len(s) > 0 && s[0] == 3 { // IconicState, ICCCM 4.1.3.1
		n.Minimised = true
	}
	if slices.Contains(words(ns), uint32(l.atoms["_NET_WM_STATE_HIDDEN"])) {
		n.Minimised = true
	}
	if n.Minimised {
		n.Mapped = false
	}
	return n, nil
}

// ownerOf returns the local pid in the first answer that has one, else 0.
func ownerOf(r *res.QueryClientIdsReply) int {
	for _, id := range r.Ids {
		if id.Spec.Mask&res.ClientIdMaskLocalClientPID != 0 && len(id.Value) > 0 {
			return int(id.Value[0])
		}
	}
	return 0
}

// words reads a property as 32-bit values; a property that is missing or of another width gives none.
func words(r *xproto.GetPropertyReply) []uint32 {
	if r == nil || r.Format != 32 {
		return nil
	}
	out := make([]uint32, 0, len(r.Value)/4)
	for b := r.Value; len(b) >= 4; b = b[4:] {
		out = append(out, xgb.Get32(b))
	}
	return out
}

func (l *link) rootProperty(name string) ([]uint32, error) {
	r, err := xproto.GetProperty(l.conn, false, l.root, l.atoms[name], xproto.GetPropertyTypeAny, 0, maxWindows).Reply()
	if lost(err) {
		return nil, errLost
	}
	return words(r), nil
}

// managed lists the client windows that the window manager manages; without a window manager, the windows that lie on the root.
func (l *link) managed() ([]uint32, error) {
	list, err := l.rootProperty("_NET_CLIENT_LIST")
	if err != nil || len(list) > 0 {
		return list, err
	}
	tree, err := xproto.QueryTree(l.conn, l.root).Reply()
	if lost(err) {
		return nil, errLost
	}
	if err != nil || tree == nil {
		return nil, environment("window_unprovable")
	}
	for _, w := range tree.Children[:min(len(tree.Children), maxWindows)] {
		attr, err := xproto.GetWindowAttributes(l.conn, w).Reply()
		if lost(err) {
			return nil, errLost
		}
		if err == nil && attr != nil && !attr.OverrideRedirect && attr.Class == xproto.WindowClassInputOutput && attr.MapState == xproto.MapStateViewable {
			list = append(list, uint32(w))
		}
	}
	return list, nil
}

// owners asks for the owner of each window, in one round trip. A window that is gone has owner 0.
func (l *link) owners(ids []uint32) ([]int, error) {
	cookies := make([]res.QueryClientIdsCookie, len(ids))
	for i, id := range ids {
		cookies[i] = res.QueryClientIds(l.conn, 1, []res.ClientIdSpec{{Client: id, Mask: res.ClientIdMaskLocalClientPID}})
	}
	out := make([]int, len(ids))
	var failed error
	for i := range ids {
		r, err := cookies[i].Reply()
		if lost(err) {
			failed = errLost
		}
		if err == nil && r != nil {
			out[i] = ownerOf(r)
		}
	}
	return out, failed
}

// Windows implements [engine.NativePlatform]. A window of the process that goes away meanwhile is left out; any other failure fails the list.
func (p *x11) Windows(ctx context.Context, proc engine.Process) ([]engine.NativeWindow, error) {
	return ask(ctx, p, func(l *link) ([]engine.NativeWindow, error) {
		ids, err := l.managed()
		if err != nil {
			return nil, err
		}
		owners, err := l.owners(ids)
		if err != nil {
			return nil, err
		}
		var out []engine.NativeWindow
		for i, id := range ids {
			if owners[i] != proc.PID {
				continue
			}
			w, err := l.window(id, proc)
			if r := engine.AsRefusal(err); r != nil && r.Trigger == "generation_changed" {
				continue
			}
			if err != nil {
				return nil, err
			}
			out = append(out, w)
		}
		return out, nil
	})
}

// Cover implements [engine.Occluder] from the stacking order of the root's children. A window with transparency counts as opaque.
func (p *x11) Cover(ctx context.Context, id uint32) (engine.State, error) {
	return ask(ctx, p, func(l *link) (engine.State, error) {
		frame, err := l.frameOf(xproto.Window(id))
		if err != nil {
			return "", err
		}
		geo, err := xproto.GetGeometry(l.conn, xproto.Drawable(id)).Reply()
		if lost(err) {
			return "", errLost
		}
		if err != nil || geo == nil {
			return "", changed("window")
		}
		at, err := xproto.TranslateCoordinates(l.conn, xproto.Window(id), l.root, 0, 0).Reply()
		if lost(err) {
			return "", errLost
		}
		if err != nil || at == nil {
			return "", changed("window")
		}
		tree, err := xproto.QueryTree(l.conn, l.root).Reply()
		if lost(err) {
			return "", errLost
		}
		if err != nil || tree == nil {
			return "", environment("window_unprovable")
		}
		above := tree.Children[slices.Index(tree.Children, frame)+1:]
		attrs := make([]xproto.GetWindowAttributesCookie, len(above))
		geos := make([]xproto.GetGeometryCookie, len(above))
		for i, w := range above {
			attrs[i] = xproto.GetWindowAttributes(l.conn, w)
			geos[i] = xproto.GetGeometry(l.conn, xproto.Drawable(w))
		}
		var over []engine.Rect
		for i := range above {
			a, e1 := attrs[i].Reply()
			g, e2 := geos[i].Reply()
			if lost(e1) || lost(e2) {
				return "", errLost
			}
			if e1 == nil && e2 == nil && a != nil && g != nil && a.MapState == xproto.MapStateViewable && a.Class == xproto.WindowClassInputOutput {
				b := 2 * int(g.BorderWidth)
				over = append(over, engine.Rect{X: int(g.X), Y: int(g.Y), W: int(g.Width) + b, H: int(g.Height) + b})
			}
		}
		return coverOf(intersect(engine.Rect{X: int(at.DstX), Y: int(at.DstY), W: int(geo.Width), H: int(geo.Height)}, l.area), over), nil
	})
}

// frameOf walks up to the child of the root that holds w: the window manager's frame, or w itself.
func (l *link) frameOf(w xproto.Window) (xproto.Window, error) {
	for range 16 {
		t, err := xproto.QueryTree(l.conn, w).Reply()
		if lost(err) {
			return 0, errLost
		}
		if err != nil || t == nil || t.Parent == 0 {
			return 0, changed("window")
		}
		if t.Parent == l.root {
			return w, nil
		}
		w = t.Parent
	}
	return 0, environment("window_unprovable")
}

// coverOf says how much of target the rectangles above it leave to be seen.
func coverOf(target engine.Rect, over []engine.Rect) engine.State {
	left := []engine.Rect{target}
	touched := false
	for _, o := range over {
		var next []engine.Rect
		for _, r := range left {
			hit := intersect(r, o)
			if hit.W <= 0 || hit.H <= 0 {
				next = append(next, r)
				continue
			}
			touched = true
			for _, rest := range []engine.Rect{
				{X: r.X, Y: r.Y, W: r.W, H: hit.Y - r.Y},
				{X: r.X, Y: hit.Y + hit.H, W: r.W, H: r.Y + r.H - hit.Y - hit.H},
				{X: r.X, Y: hit.Y, W: hit.X - r.X, H: hit.H},
				{X: hit.X + hit.W, Y: hit.Y, W: r.X + r.W - hit.X - hit.W, H: hit.H},
			} {
				if rest.W > 0 && rest.H > 0 {
					next = append(next, rest)
				}
			}
		}
		left = next
	}
	switch {
	case !touched:
		return engine.StateVisibleTab
	case len(left) == 0:
		return engine.StateCovered
	default:
		return engine.StatePartlyCovered
	}
}

func intersect(a, b engine.Rect) engine.Rect {
	x, y := max(a.X, b.X), max(a.Y, b.Y)
	return engine.Rect{X: x, Y: y, W: min(a.X+a.W, b.X+b.W) - x, H: min(a.Y+a.H, b.Y+b.H) - y}
}
