package sentinel

import (
	"fmt"

	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// Fully is the rectangle that covers a window's frame wholly, as far as the screen shows it.
func Fully(target, screen xwire.Rect) xwire.Rect { return clip(target, screen) }

// Partly covers the left part of a window's frame: share, between 0 and 1, of its visible width.
func Partly(target, screen xwire.Rect, share float64) xwire.Rect {
	r := clip(target, screen)
	r.Width = max(int(float64(r.Width)*share+0.5), 60)
	return r
}

// Margin is what a manager's frame may add around a window, in pixels; openbox's stock theme adds 20 at the
// top, 5 at the bottom and 1 at the sides.
const Margin = 24

// Beside is a rectangle on the screen whose frame does not touch the window: in the largest of the four
// strips around it. An error says that no strip is large enough.
func Beside(target, screen xwire.Rect) (xwire.Rect, error) {
	t := clip(target, screen)
	right, bottom := screen.X+screen.Width, screen.Y+screen.Height
	var best xwire.Rect
	for _, s := range []xwire.Rect{
		{X: screen.X, Y: screen.Y, Width: t.X - screen.X, Height: screen.Height},
		{X: t.X + t.Width, Y: screen.Y, Width: right - t.X - t.Width, Height: screen.Height},
		{X: screen.X, Y: screen.Y, Width: screen.Width, Height: t.Y - screen.Y},
		{X: screen.X, Y: t.Y + t.Height, Width: screen.Width, Height: bottom - t.Y - t.Height},
	} {
		in := xwire.Rect{X: s.X + Margin, Y: s.Y + Margin, Width: s.Width - 2*Margin, Height: s.Height - 2*Margin}
		if checkSize(in) == nil && in.Width*in.Height > best.Width*best.Height {
			best = in
		}
	}
	if best.Width == 0 {
		return best, fmt.Errorf("no room beside a window at %+v on a screen of %dx%d", target, screen.Width, screen.Height)
	}
	return best, nil
}

func clip(r, screen xwire.Rect) xwire.Rect {
	x, y := max(r.X, screen.X), max(r.Y, screen.Y)
	return xwire.Rect{X: x, Y: y, Width: min(r.X+r.Width, screen.X+screen.Width) - x, Height: min(r.Y+r.Height, screen.Y+screen.Height) - y}
}
