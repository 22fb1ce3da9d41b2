package native

import (
	"context"
	"slices"
	"sync"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"github.com/engine-acceptance/acceptance/engine"
)

// The kinds of desk effects that the watcher notes.
type effect int

const (
	effectOpened effect = iota + 1
	effectClosed
	effectFocused
	effectRaised
	effectMoved
)

type note struct {
	effect effect
	window uint32
	owner  int
}

// barrierName is the property of our own window whose change marks a point in the stream of events.
const barrierName = "_ENGINE_OBSERVER_BARRIER"

// maxNotes bounds what one observation keeps. When more happens, what was kept already says that it happened.
const maxNotes = 4096

// watcher keeps one event connection for the life of the platform: root properties and structure, and the focus events of every managed
// window. Focus is taken from FocusIn events, which no change can outrun; order among windows that stay from ConfigureNotify.
//
// MovedPointer stays false: the window system does not say who moved the pointer while a person works at the desk, and this engine has no
// request that moves it.
type watcher struct {
	link   *link
	marker xproto.Window
	mark   xproto.Atom

	mu        sync.Mutex
	observers map[*observer]bool
	marks     []func() // what to do at each mark that is under way, oldest first; called with mu held
	dead      bool

	// Only the event loop uses what follows.
	clients map[uint32]int           // managed window -> owner
	frames  map[xproto.Window]uint32 // child of the root -> managed window
	places  map[xproto.Window]place  // of each frame
	order   []xproto.Window          // children of the root, bottom first
}

// place is where a frame lies on the root, in pixels.
type place struct{ x, y, w, h int }

type observer struct {
	w     *watcher
	notes []note
}

var _ engine.DeskObserver = (*observer)(nil)

// Observe implements [engine.NativePlatform].
func (p *x11) Observe(ctx context.Context) (engine.DeskObserver, error) {
	o, err := bounded(ctx, func() (*observer, error) {
		w, err := p.watching()
		if err != nil {
			return nil, err
		}
		// Nothing is waited for: the observation begins where the mark lies in the stream of events, which is now.
		o := &observer{w: w}
		if !w.at(func() { w.observers[o] = true }) {
			return nil, environment("no_display")
		}
		return o, nil
	})
	if err != nil {
		return nil, err
	}
	return o, nil
}

func (p *x11) watching() (*watcher, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, environment("no_display")
	}
	if p.watch != nil {
		p.watch.mu.Lock()
		dead := p.watch.dead
		p.watch.mu.Unlock()
		if !dead {
			return p.watch, nil
		}
	}
	l, err := dial(p.display)
	if err != nil {
		return nil, err
	}
	w := &watcher{link: l, observers: map[*observer]bool{}, clients: map[uint32]int{}, frames: map[xproto.Window]uint32{}, places: map[xproto.Window]place{}}
	if err := w.start(); err != nil {
		l.conn.Close()
		return nil, environment("window_unprovable")
	}
	p.watch = w
	return w, nil
}

func (w *watcher) start() error {
	l := w.link
	atom, err := xproto.InternAtom(l.conn, false, uint16(len(barrierName)), barrierName).Reply()
	if err != nil {
		return err
	}
	w.mark = atom.Atom
	id, err := xproto.NewWindowId(l.conn)
	if err != nil {
		return err
	}
	w.marker = id
	if err := xproto.CreateWindowChecked(l.conn, 0, id, l.root, -1, -1, 1, 1, 0, xproto.WindowClassInputOnly, 0,
		xproto.CwOverrideRedirect|xproto.CwEventMask, []uint32{1, xproto.EventMaskPropertyChange}).Check(); err != nil {
		return err
	}
	if err := xproto.ChangeWindowAttributesChecked(l.conn, l.root, xproto.CwEventMask,
		[]uint32{xproto.EventMaskPropertyChange | xproto.EventMaskSubstructureNotify}).Check(); err != nil {
		return err
	}
	tree, err := xproto.QueryTree(l.conn, l.root).Reply()
	if err != nil {
		return err
	}
	w.order = tree.Children
	if err := w.refresh(); err != nil {
		return err
	}
	go w.loop()
	return nil
}

// at runs f, with w.mu held, when the event loop has seen everything that the server had to tell before now. It says whether the
// connection is alive.
func (w *watcher) at(f func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return false
	}
	w.marks = append(w.marks, f)
	xproto.ChangeProperty(w.link.conn, xproto.PropModeReplace, w.marker, w.mark, xproto.AtomInteger, 8, 1, []byte{0})
	return true
}

func (w *watcher) note(e effect, window uint32, owner int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for o := range w.observers {
		if len(o.notes) < maxNotes {
			o.notes = append(o.notes, note{e, window, owner})
		}
	}
}

func (w *watcher) loop() {
	for {
		ev, xerr := w.link.conn.WaitForEvent()
		if ev == nil && xerr == nil {
			w.mu.Lock()
			w.dead = true
			for _, f := range w.marks {
				f()
			}
			w.marks = nil
			w.mu.Unlock()
			return
		}
		if ev != nil {
			w.handle(ev)
		}
	}
}

func (w *watcher) handle(ev xgb.Event) {
	switch ev := ev.(type) {
	case xproto.PropertyNotifyEvent:
		switch {
		case ev.Window == w.marker:
			w.mu.Lock()
			if len(w.marks) > 0 {
				w.marks[0]()
				w.marks = w.marks[1:]
			}
			w.mu.Unlock()
		case ev.Window == w.link.root && ev.Atom == w.link.atoms["_NET_CLIENT_LIST"]:
			_ = w.refresh() // a lost connection ends the loop
		}
	case xproto.FocusInEvent:
		// A pointer-root focus that merely passes over a window does not give it the focus.
		if ev.Detail == xproto.NotifyDetailPointer || ev.Mode == xproto.NotifyModeGrab {
			return
		}
		if owner, ok := w.clients[uint32(ev.Event)]; ok {
			w.note(effectFocused, uint32(ev.Event), owner)
		}
	case xproto.CreateNotifyEvent:
		if ev.Parent == w.link.root && !slices.Contains(w.order, ev.Window) && len(w.order) < maxWindows {
			w.order = append(w.order, ev.Window)
		}
	case xproto.ReparentNotifyEvent:
		if ev.Parent != w.link.root {
			w.order = slices.DeleteFunc(w.order, func(x xproto.Window) bool { return x == ev.Window })
		}
	case xproto.DestroyNotifyEvent:
		w.order = slices.DeleteFunc(w.order, func(x xproto.Window) bool { return x == ev.Window })
		delete(w.frames, ev.Window)
		delete(w.places, ev.Window)
	case xproto.ConfigureNotifyEvent:
		w.moved(ev.Window, place{int(ev.X), int(ev.Y), int(ev.Width), int(ev.Height)})
		w.restack(ev.Window, ev.AboveSibling)
	case xproto.CirculateNotifyEvent:
		if ev.Place == xproto.PlaceOnTop && len(w.order) > 0 {
			w.restack(ev.Window, w.order[len(w.order)-1])
		} else {
			w.restack(ev.Window, 0)
		}
	}
}

// moved notes a frame that has another place or size than before.
func (w *watcher) moved(frame xproto.Window, now place) {
	client, known := w.frames[frame]
	if !known || w.places[frame] == now {
		return
	}
	w.places[frame] = now
	w.note(effectMoved, client, w.clients[client])
}

// restack moves a child of the root directly above sibling (0: to the bottom) and notes a raise when it passed another client's frame.
func (w *watcher) restack(win, sibling xproto.Window) {
	from := slices.Index(w.order, win)
	if from < 0 || win == sibling {
		return
	}
	passed := w.order[from+1:]
	order := slices.Delete(slices.Clone(w.order), from, from+1)
	to := slices.Index(order, sibling) + 1
	client, known := w.frames[win]
	if known && to > from {
		for _, other := range passed[:min(to-from, len(passed))] {
			if _, framed := w.frames[other]; framed {
				w.note(effectRaised, client, w.clients[client])
				break
			}
		}
	}
	w.order = slices.Insert(order, to, win)
}

// refresh reads the list of managed windows, watches new ones and notes what came and went.
func (w *watcher) refresh() error {
	l := w.link
	ids, err := l.managed()
	if err != nil {
		return err
	}
	var fresh []uint32
	for _, id := range ids {
		if _, ok := w.clients[id]; !ok {
			fresh = append(fresh, id)
			xproto.ChangeWindowAttributes(l.conn, xproto.Window(id), xproto.CwEventMask, []uint32{xproto.EventMaskFocusChange})
		}
	}
	owners, err := l.owners(fresh)
	if err != nil {
		return err
	}
	started := len(w.clients) > 0 || len(w.frames) > 0
	for id, owner := range w.clients {
		if !slices.Contains(ids, id) {
			w.note(effectClosed, id, owner)
			delete(w.clients, id)
			for frame, client := range w.frames {
				if client == id {
					delete(w.frames, frame)
					delete(w.places, frame)
				}
			}
		}
	}
	for i, id := range fresh {
		w.clients[id] = owners[i]
		if frame, err := l.frameOf(xproto.Window(id)); err == nil {
			w.frames[frame] = id
			if geo, err := xproto.GetGeometry(l.conn, xproto.Drawable(frame)).Reply(); err == nil && geo != nil {
				w.places[frame] = place{int(geo.X), int(geo.Y), int(geo.Width), int(geo.Height)}
			}
		}
		w.note(effectOpened, id, owners[i])
	}
	if len(fresh) == 0 || !started {
		return nil
	}
	stacking, err := l.rootProperty("_NET_CLIENT_LIST_STACKING")
	if err != nil {
		return err
	}
	for i, id := range fresh {
		if slices.Index(stacking, id) > 0 {
			w.note(effectRaised, id, owners[i])
		}
	}
	// The new window may hold the focus since before its events were selected.
	focus, err := xproto.GetInputFocus(l.conn).Reply()
	if lost(err) {
		return errLost
	}
	active, err := l.rootProperty("_NET_ACTIVE_WINDOW")
	if err != nil {
		return err
	}
	for i, id := range fresh {
		if slices.Contains(active, id) || focus != nil && l.within(focus.Focus, xproto.Window(id)) {
			w.note(effectFocused, id, owners[i])
		}
	}
	return nil
}

// within says whether w is top or lies below it.
func (l *link) within(w, top xproto.Window) bool {
	for range 16 {
		if w == top {
			return true
		}
		t, err := xproto.QueryTree(l.conn, w).Reply()
		if err != nil || t == nil || t.Parent == 0 || t.Parent == l.root {
			return false
		}
		w = t.Parent
	}
	return false
}

// Stop implements [engine.DeskObserver]. It may be called once.
func (o *observer) Stop(ctx context.Context, p engine.Process) (engine.DeskEffects, error) {
	return bounded(ctx, func() (engine.DeskEffects, error) {
		var notes []note
		var dead bool
		done := make(chan struct{})
		if !o.w.at(func() {
			delete(o.w.observers, o)
			notes, dead = o.notes, o.w.dead
			close(done)
		}) {
			return engine.DeskEffects{}, environment("no_display")
		}
		<-done
		if dead {
			return engine.DeskEffects{}, environment("no_display")
		}
		var out engine.DeskEffects
		for _, n := range notes {
			if n.owner != p.PID {
				continue
			}
			switch n.effect {
			case effectOpened:
				out.Opened = append(out.Opened, n.window)
			case effectClosed:
				out.Closed = true
			case effectFocused:
				out.Foregrounded = true
			case effectRaised:
				out.Raised = true
			case effectMoved:
				// A window manager also changes the frame of a window that it lets go.
				out.Moved = out.Moved || !slices.Contains(notes, note{effectClosed, n.window, n.owner})
			}
		}
		return out, nil
	})
}
