package desktop

import (
	"context"
	"fmt"

	"github.com/engine-acceptance/acceptance/recorder/x11"
)

// Watch gives a window a role and selects its focus, visibility, structure, property and shape events, and the
// properties of the frame that it is in. The window must exist. Watching it again changes its role.
func (l *Log) Watch(ctx context.Context, window uint32, as WindowRole) error {
	if as == NoWindow || as == Root || as == Sibling || as >= roleCount {
		return fmt.Errorf("watch window 0x%x: no window can be watched as %s", window, as)
	}
	ctx, cancel := context.WithTimeout(ctx, l.cfg.CallBudget)
	defer cancel()
	fail := func(err error) error { return fmt.Errorf("watch window 0x%x as %s: %w", window, as, err) }
	core := l.conns[Core]
	geometry, err := core.Geometry(ctx, window) // also: does it exist
	if err != nil {
		return fail(err)
	}
	events := x11.MaskFocus | x11.MaskVisibility | x11.MaskStructure | x11.MaskProperty
	if err := core.Send(ctx, x11.SelectInput(window, events)); err != nil {
		return fail(err)
	}
	if err := l.conns[Output].Send(ctx, x11.SelectShape(l.exts.shape, window)); err != nil {
		return fail(err)
	}
	top, dx, dy, err := l.topOf(ctx, window)
	if err != nil {
		return fail(err)
	}
	if top != window {
		if err := core.Send(ctx, x11.SelectInput(top, x11.MaskProperty)); err != nil {
			return fail(err)
		}
	}
	// What the server did before is in the replica after this.
	if err := core.Sync(ctx); err != nil {
		return fail(err)
	}
	if err := l.conns[Output].Sync(ctx); err != nil {
		return fail(err)
	}
	l.locked(func() {
		s := &watched{id: window, role: as, top: top, dx: dx, dy: dy, w: int(geometry.Width), h: int(geometry.Height),
			above: map[uint32]bool{}}
		l.watched[window] = s
		if n := l.tree.nodes[top]; n != nil && top != window {
			n.inner = window
			l.tree.frameOf[window] = top
		}
		base := l.base(window)
		role := as
		if as == Target {
			role = Sibling
		}
		if have, ok := l.baseRole[base]; as != Other && (!ok || have == Sibling) {
			l.baseRole[base] = role
		}
		l.actor(window)
		if as == Person {
			l.judgeAbove(s, nil, false)
		}
	})
	return nil
}

// Cover computes the part of the target's window, as far as it lies on the screen, that the windows above it
// hide, from the server's tree as it is now: frames count, unmapped windows and windows that only take input do not,
// shaped and translucent ones count as opaque. From then on every change is logged as cover_changed. Target and person must be
// watched. A replica that disagrees with the server's tree is an error: then the log cannot be trusted.
func (l *Log) Cover(ctx context.Context, target, person uint32) (fraction float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.CallBudget)
	defer cancel()
	fail := func(err error) (float64, error) {
		return 0, fmt.Errorf("cover of window 0x%x: %w", target, err)
	}
	l.mu.Lock()
	t, p := l.watched[target], l.watched[person]
	l.mu.Unlock()
	if t == nil || p == nil {
		return fail(fmt.Errorf("target and person must be watched"))
	}
	// The desk may change between reading it and reading the replica: then read again.
	for range 3 {
		fresh, err := l.freshCover(ctx, target)
		if err != nil {
			return fail(err)
		}
		if err := l.conns[Core].Sync(ctx); err != nil {
			return fail(err)
		}
		var kept float64
		l.locked(func() {
			t := l.watched[target]
			if t == nil || l.tree.nodes[t.top] == nil {
				err = fmt.Errorf("the window is gone")
				return
			}
			if kept, err = l.tree.cover(t.top, t.rect(l.tree.nodes[t.top])); err != nil || kept != fresh {
				return
			}
			for _, c := range l.covers {
				if c.target == target {
					c.last = kept
					return
				}
			}
			l.covers = append(l.covers, &pair{target: target, last: kept})
		})
		if err != nil {
			return fail(err)
		}
		if kept == fresh {
			return fresh, nil
		}
	}
	return fail(fmt.Errorf("the guard's replica of the tree disagrees with the server's"))
}

// freshCover computes the cover from the server's own tree.
func (l *Log) freshCover(ctx context.Context, target uint32) (float64, error) {
	q := l.conns[Query]
	top, dx, dy, err := l.topOf(ctx, target)
	if err != nil {
		return 0, err
	}
	g, err := q.Geometry(ctx, target)
	if err != nil {
		return 0, err
	}
	states, err := q.Children(ctx, q.Root())
	if err != nil {
		return 0, err
	}
	var area rect
	var above []rect
	for _, s := range states {
		n := node{x: int(s.X), y: int(s.Y), w: int(s.Width), h: int(s.Height), b: int(s.Border)}
		switch {
		case s.Window == top && top == target:
			area = n.rect()
		case s.Window == top:
			area = rect{n.x + dx, n.y + dy, n.x + dx + int(g.Width), n.y + dy + int(g.Height)}
		case !area.empty() && s.Mapped && !s.InputOnly:
			above = append(above, n.rect())
		}
	}
	setup := q.Setup()
	return coveredFraction(area, rect{0, 0, int(setup.Width), int(setup.Height)}, above)
}
