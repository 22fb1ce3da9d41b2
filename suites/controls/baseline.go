package controls

import (
	"context"
	"slices"

	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// baseline is what a control must leave as it was.
type baseline struct {
	focus              uint32
	active             []uint32
	order              []uint32 // mapped children of the root, bottom first
	pointerX, pointerY int
	buttons            uint16
	clipboard, primary uint32
	workspace          []uint32
	victim             xwire.Rect
	victimState        []uint32
}

func (r *role) baseline(ctx context.Context, victim uint32) (b baseline, err error) {
	c := r.c
	if b.focus, err = c.Focus(ctx); err != nil {
		return b, err
	}
	if b.active, err = c.Words(ctx, c.Root, "_NET_ACTIVE_WINDOW"); err != nil {
		return b, err
	}
	_, all, err := c.Children(ctx, c.Root)
	if err != nil {
		return b, err
	}
	for _, w := range all {
		if see, err := c.Viewable(ctx, w); err == nil && see {
			b.order = append(b.order, w)
		}
	}
	if b.pointerX, b.pointerY, b.buttons, err = c.Pointer(ctx); err != nil {
		return b, err
	}
	if b.clipboard, err = r.owner(ctx, r.atoms["CLIPBOARD"]); err != nil {
		return b, err
	}
	if b.primary, err = r.owner(ctx, 1); err != nil {
		return b, err
	}
	if b.workspace, err = c.Words(ctx, c.Root, "_NET_CURRENT_DESKTOP"); err != nil {
		return b, err
	}
	if b.victim, err = c.OnRoot(ctx, victim); err != nil {
		return b, err
	}
	b.victimState, err = c.Words(ctx, victim, "_NET_WM_STATE")
	return b, err
}

func (r *role) owner(ctx context.Context, selection uint32) (uint32, error) {
	b, err := r.c.Call(ctx, xwire.Req(23, 0).U32(selection))
	if err != nil {
		return 0, err
	}
	return le.Uint32(b[8:]), nil
}

func (b baseline) differences(o baseline) []string {
	var d []string
	for _, c := range []struct {
		name string
		same bool
	}{
		{"focus", b.focus == o.focus},
		{"active window", slices.Equal(b.active, o.active)},
		{"stacking", slices.Equal(b.order, o.order)},
		{"pointer", b.pointerX == o.pointerX && b.pointerY == o.pointerY},
		{"buttons and modifiers", b.buttons == o.buttons},
		{"clipboard", b.clipboard == o.clipboard},
		{"primary selection", b.primary == o.primary},
		{"workspace", slices.Equal(b.workspace, o.workspace)},
		{"place of the person's window", b.victim == o.victim},
		{"state of the person's window", slices.Equal(b.victimState, o.victimState)},
	} {
		if !c.same {
			d = append(d, c.name)
		}
	}
	return d
}
