package desktop

import (
	"context"

	"github.com/engine-acceptance/acceptance/recorder/x11"
)

// coreEvent takes one event of the core channel: it keeps the replica of the stacking order and logs what
// follows from it. Forged events are logged and change nothing.
func (l *Log) coreEvent(e x11.Event) {
	l.locked(func() {
		if e.SendEvent {
			l.put(Event{Channel: Core, Kind: SentEvent, Window: e.U32(4), Detail: uint32(e.Code), SendEvent: true}, nil)
			return
		}
		switch e.Code {
		case x11.FocusIn, x11.FocusOut:
			l.focus(e)
		case x11.VisibilityEvent:
			l.put(Event{Channel: Core, Kind: Visibility, Window: e.U32(4), Detail: uint32(e.U8(8))}, nil)
		case x11.CreateNotify, x11.DestroyNotify, x11.UnmapNotify, x11.MapNotify, x11.ReparentNotify, x11.ConfigureNotify,
			x11.CirculateNotify, x11.GravityNotify:
			if e.U32(4) == l.tree.root {
				l.rootStructure(e)
			} else {
				l.windowStructure(e)
			}
		case x11.PropertyNotify:
			l.propertyEvent(e)
		case x11.MappingNotify:
			ev := Event{Channel: Core, Kind: KeymapChanged, Detail: uint32(e.U8(4))}
			if ev.Detail == 2 {
				ev.Kind = PointerMapChanged
			}
			l.put(ev, nil)
		}
	})
}

// focus logs FocusIn and FocusOut of a watched window. Modes: 0 normal, 1 grab, 2 ungrab, 3 while grabbed;
// detail 2 (inferior) means that the other window lies inside this one (X protocol, FocusIn).
func (l *Log) focus(e x11.Event) {
	mode, detail := e.U8(8), e.U8(1)
	ev := Event{Channel: Core, Window: e.U32(4), Detail: uint32(mode)<<8 | uint32(detail)}
	switch {
	case mode == 1 || mode == 2:
		ev.Kind = FocusGrab
	case detail == 2:
		ev.Kind = FocusInside
	case e.Code == x11.FocusIn:
		ev.Kind = FocusIn
	default:
		ev.Kind = FocusOut
	}
	l.put(ev, nil)
}

func (l *Log) propertyEvent(e x11.Event) {
	ev := Event{Channel: Core, Kind: PropertyChanged, Window: e.U32(4), ServerMS: e.U32(12), Detail: uint32(e.U8(16))}
	ev.Atom = l.dec.atoms[e.U32(8)]
	switch ev.Atom {
	case atomOpacity:
		ev.Kind = OpacityChanged
	case atomWMDesktop:
		ev.Kind = WorkspaceChanged
	}
	if ev.Window == l.tree.root {
		switch ev.Atom {
		case atomActive:
			ev.Kind = ActiveWindowChanged
		case atomClientList, atomStacking:
			ev.Kind = ClientListChanged
		case atomCurrent, atomCount, atomViewport, atomGeometry, atomShowing:
			ev.Kind = WorkspaceChanged
		}
	}
	l.put(ev, nil)
}

// rootStructure applies an event about a child of the root.
func (l *Log) rootStructure(e x11.Event) {
	id := e.U32(8)
	ev := Event{Channel: Core, Window: id}
	switch e.Code {
	case x11.CreateNotify: // parent 4, window 8, place 12, override 22
		n := &node{id: id, x: int(e.I16(12)), y: int(e.I16(14)), w: int(e.U16(16)), h: int(e.U16(18)), b: int(e.U16(20))}
		l.tree.add(n)
		l.overflowed()
		ev.Kind, ev.X, ev.Y, ev.Width, ev.Height = WindowCreated, int32(n.x), int32(n.y), int32(n.w), int32(n.h)
		l.put(ev, l.actor(id))
		return
	case x11.DestroyNotify:
		ev.Kind = WindowDestroyed
		l.put(ev, nil)
		l.gone(id)
		return
	case x11.ReparentNotify: // window 8, parent 12, place 16
		ev.Kind, ev.Detail, ev.X, ev.Y = WindowReparented, e.U32(12), int32(e.I16(16)), int32(e.I16(18))
		l.put(ev, nil)
		l.reparented(id, e.U32(12), int(e.I16(16)), int(e.I16(18)))
		return
	}
	n := l.tree.nodes[id]
	if n == nil {
		return // beyond the replica's bounds, told by overflowed, or the root itself
	}
	old := n.rect()
	crossed := 0
	switch e.Code {
	case x11.MapNotify:
		n.mapped = true
		ev.Kind = WindowMapped
		l.put(ev, l.actor(id))
		l.askClass(n)
	case x11.UnmapNotify:
		n.mapped = false
		ev.Kind = WindowUnmapped
		l.put(ev, nil)
	case x11.GravityNotify:
		n.x, n.y = int(e.I16(12)), int(e.I16(14))
		ev.Kind = WindowMoved
		l.put(ev, nil)
	case x11.ConfigureNotify: // above sibling 12, place 16, border 24
		crossed = l.tree.place(n, e.U32(12))
		n.x, n.y, n.w, n.h, n.b = int(e.I16(16)), int(e.I16(18)), int(e.U16(20)), int(e.U16(22)), int(e.U16(24))
		ev.Kind = WindowConfigured
		if n.rect() != old {
			ev.Kind = WindowMoved
		}
		ev.X, ev.Y, ev.Width, ev.Height = int32(n.x), int32(n.y), int32(n.w), int32(n.h)
		l.put(ev, nil)
	case x11.CirculateNotify: // place 16: 0 top, 1 bottom
		sibling := uint32(0)
		if e.U8(16) == 0 {
			sibling = l.tree.order[len(l.tree.order)-1].id
		}
		crossed = l.tree.place(n, sibling)
		ev.Kind = WindowCirculated
		l.put(ev, nil)
	}
	if crossed > 0 && n.mapped {
		l.put(Event{Channel: Core, Kind: StackingChanged, Window: id, Inner: n.inner, Detail: uint32(crossed)}, l.actor(l.maker(n)))
	}
	l.affected(n, old)
}

// maker is the window whose client made what a child of the root shows: the one in the frame, or itself.
func (l *Log) maker(n *node) uint32 {
	if n.inner != 0 {
		return n.inner
	}
	return n.id
}

// overflowed tells once that the replica no longer holds every window.
func (l *Log) overflowed() {
	if l.tree.overflow == 1 {
		l.health[Core].Errors++
		l.put(Event{Channel: Core, Kind: GuardError, Detail: maxTreeWindows}, nil)
	}
}

// gone forgets a destroyed window.
func (l *Log) gone(id uint32) {
	if n := l.tree.remove(id); n != nil {
		n.mapped = false
		l.affected(n, n.rect())
	}
	if l.watched[id] == nil {
		return
	}
	delete(l.watched, id)
	if b := l.base(id); l.clients[b] == nil {
		l.clientGone(b)
	}
}

func (l *Log) reparented(id, parent uint32, x, y int) {
	if parent == l.tree.root {
		n := &node{id: id, x: x, y: y}
		if s := l.watched[id]; s != nil {
			n.w, n.h = s.w, s.h
		}
		if l.tree.add(n) {
			l.askGeometry(n)
		}
		l.overflowed()
		return
	}
	if n := l.tree.remove(id); n != nil {
		n.mapped = false
		l.affected(n, n.rect())
	}
	if frame := l.tree.nodes[parent]; frame != nil {
		frame.inner = id
		l.tree.frameOf[id] = parent
	}
}

// windowStructure takes an event that a watched window reports of itself. For children of the root the root
// reports the same, and that one is logged.
func (l *Log) windowStructure(e x11.Event) {
	id := e.U32(8)
	s := l.watched[id]
	if s == nil || e.U32(4) != id {
		return
	}
	if e.Code == x11.ReparentNotify {
		l.retop(s, e.U32(12), int(e.I16(16)), int(e.I16(18)))
		return
	}
	if l.tree.nodes[id] != nil {
		if e.Code == x11.ConfigureNotify {
			s.w, s.h = int(e.U16(20)), int(e.U16(22))
		}
		return
	}
	ev := Event{Channel: Core, Window: id}
	switch e.Code {
	case x11.DestroyNotify:
		ev.Kind = WindowDestroyed
		l.put(ev, nil)
		l.gone(id)
	case x11.MapNotify:
		ev.Kind = WindowMapped
		l.put(ev, nil)
	case x11.UnmapNotify:
		ev.Kind = WindowUnmapped
		l.put(ev, nil)
	case x11.ConfigureNotify:
		top := l.tree.nodes[s.top]
		dx, dy, w, h := s.dx, s.dy, int(e.U16(20)), int(e.U16(22))
		if top != nil && l.tree.frameOf[id] == s.top {
			dx, dy = int(e.I16(16))+top.b, int(e.I16(18))+top.b
		}
		ev.Kind = WindowConfigured
		if dx != s.dx || dy != s.dy || w != s.w || h != s.h {
			ev.Kind = WindowMoved
			s.dx, s.dy, s.w, s.h = dx, dy, w, h
		}
		ev.X, ev.Y, ev.Width, ev.Height = int32(e.I16(16)), int32(e.I16(18)), int32(w), int32(h)
		l.put(ev, nil)
		if top != nil {
			l.affected(top, top.rect())
		}
	}
}

// retop finds the frame that a watched window is in now.
func (l *Log) retop(s *watched, parent uint32, x, y int) {
	switch frame := l.tree.nodes[parent]; {
	case parent == l.tree.root:
		s.top, s.dx, s.dy = s.id, 0, 0
	case frame != nil:
		s.top, s.dx, s.dy = parent, x+frame.b, y+frame.b
	default:
		// A frame within a frame: ask the server.
		id := s.id
		l.deferred = append(l.deferred, func() { go l.findTop(id) })
	}
}

func (l *Log) findTop(id uint32) {
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.CallBudget)
	defer cancel()
	top, dx, dy, err := l.topOf(ctx, id)
	l.locked(func() {
		s := l.watched[id]
		if s == nil {
			return
		}
		if err != nil {
			l.health[Query].Errors++
			l.put(Event{Channel: Query, Kind: GuardError, Window: id}, nil)
			return
		}
		s.top, s.dx, s.dy = top, dx, dy
	})
}

// topOf asks for the child of the root that holds a window, and the window's corner in it.
func (l *Log) topOf(ctx context.Context, id uint32) (top uint32, dx, dy int, err error) {
	q := l.conns[Query]
	if top, err = q.TopLevel(ctx, id); err != nil || top == id {
		return top, 0, 0, err
	}
	x, y, err := q.Translate(ctx, id, top, 0, 0)
	if err != nil {
		return 0, 0, 0, err
	}
	g, err := q.Geometry(ctx, top)
	if err != nil {
		return 0, 0, 0, err
	}
	return top, int(x) + int(g.Border), int(y) + int(g.Border), nil
}

// askClass asks whether a window only takes input; until the answer is here it counts as one that covers.
func (l *Log) askClass(n *node) {
	if n.classKnown || l.questions >= maxQuestions {
		return
	}
	l.questions++
	l.deferred = append(l.deferred, func() {
		ctx, cancel := context.WithTimeout(context.Background(), l.cfg.CallBudget)
		defer cancel()
		l.conns[Query].Async(ctx, x11.AttributesRequest(n.id), func(r x11.Reply, err error) {
			l.locked(func() {
				l.questions--
				if err != nil {
					return // gone already
				}
				n.classKnown, n.inputOnly = true, x11.ParseAttributes(r).InputOnly
				if n.inputOnly && l.tree.nodes[n.id] == n {
					l.affected(n, n.rect())
				}
			})
		})
	})
}

// askGeometry asks for the size of a window that came back to the root.
func (l *Log) askGeometry(n *node) {
	l.deferred = append(l.deferred, func() {
		ctx, cancel := context.WithTimeout(context.Background(), l.cfg.CallBudget)
		defer cancel()
		l.conns[Query].Async(ctx, x11.NewRequest(14, 0).U32(n.id), func(r x11.Reply, err error) {
			if err != nil {
				return // gone already
			}
			l.locked(func() {
				if l.tree.nodes[n.id] == n && n.w == 0 && n.h == 0 {
					n.w, n.h, n.b = int(r.U16(16)), int(r.U16(18)), int(r.U16(20))
					l.affected(n, n.rect())
				}
			})
		})
	})
}

// affected judges cover and windows above the person after n changed; old is where it was.
func (l *Log) affected(n *node, old rect) {
	for _, p := range l.covers {
		s := l.watched[p.target]
		if s == nil {
			continue
		}
		top := l.tree.nodes[s.top]
		if top == nil || !top.mapped {
			continue
		}
		r := s.rect(top)
		if n != top && !old.overlaps(r) && !n.rect().overlaps(r) {
			continue
		}
		f, err := l.tree.cover(s.top, r)
		if err != nil {
			l.health[Core].Errors++
			l.put(Event{Channel: Core, Kind: GuardError, Window: p.target}, nil)
			continue
		}
		if f != p.last {
			p.last = f
			l.put(Event{Channel: Core, Kind: CoverChanged, Window: p.target, Fraction: f}, nil)
		}
	}
	for _, s := range l.watched {
		if s.role == Person {
			l.judgeAbove(s, n, true)
		}
	}
}

// rect is where a watched window is, in root pixels.
func (s *watched) rect(top *node) rect {
	x, y := top.x+s.dx, top.y+s.dy
	if s.top == s.id {
		return top.rect()
	}
	return rect{x, y, x + s.w, y + s.h}
}

// judgeAbove finds windows that came to lie above the person's: n alone, or all when n is the person's own.
func (l *Log) judgeAbove(s *watched, n *node, tell bool) {
	top := l.tree.nodes[s.top]
	if top == nil {
		return
	}
	at := l.tree.index(top)
	judge := func(i int, o *node) {
		lies := i > at && o.mapped && top.mapped && o.rect().overlaps(top.rect())
		if !lies {
			delete(s.above, o.id)
			return
		}
		if role := l.roleOf(o.id); s.above[o.id] || role == Person || role == Harness {
			return
		}
		s.above[o.id] = true
		if tell {
			l.put(Event{Channel: Core, Kind: AbovePerson, Window: o.id, Inner: o.inner, X: int32(o.x), Y: int32(o.y),
				Width: int32(o.w), Height: int32(o.h)}, l.actor(l.maker(o)))
		}
	}
	if n != nil && n != top {
		judge(l.tree.index(n), n)
		return
	}
	for i, o := range l.tree.order {
		judge(i, o)
	}
}
