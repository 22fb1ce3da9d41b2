package recorder

import (
	"fmt"

	"github.com/engine-acceptance/acceptance/redaction"
)

// codeVersion opens the text of every code.
const codeVersion = "AF1"

// prepare draws what does not change.
func (f *Film) prepare() (err error) {
	if f.faces.small, err = newTypeface(13); err != nil {
		return err
	}
	if f.faces.big, err = newTypeface(15); err != nil {
		return err
	}
	l := f.layout
	p := newPicture(l.WidthPx, l.HeightPx)
	p.fill(redaction.Rect{W: p.w, H: p.h}, ground)
	p.fill(redaction.Rect{W: p.w, H: barHeight}, bar)
	p.text(f.faces.big, 10, 5, l.Desk.W, "desk  (black: masked, or empty)", ink)
	f.canvas = p
	f.planes = newPlanes(p.w, p.h)
	if !p.code(l.Code, codeTextFor(f.cfg, 1<<30, 1<<62)) {
		return fmt.Errorf("run, row and commit do not fit the code")
	}
	x, y := l.Caption.X, l.Caption.Y
	per := l.Caption.W / f.faces.small.w
	line := func(name, value string, lines int) {
		p.text(f.faces.small, x, y, l.Caption.W, name, soft)
		y += f.faces.small.h + 1
		for _, s := range wrap(value, per, lines) {
			p.text(f.faces.small, x, y, l.Caption.W, s, ink)
			y += f.faces.small.h + 1
		}
		y += 6
	}
	line("row", f.cfg.RowID, 4)
	line("run", f.cfg.RunID, 2)
	line("commit", shortCommit(f.cfg.Commit), 1)
	return nil
}

func shortCommit(c string) string { return c[:min(12, len(c))] }

// codeTextFor is what the code of the second that begins with frame n says: run, row, commit, that frame, and its capture in milliseconds of
// CLOCK_MONOTONIC.
func codeTextFor(c FilmConfig, n int, capNS int64) string {
	return fmt.Sprintf("%s|%s|%s|%s|%d|%d", codeVersion, c.RunID, c.RowID, shortCommit(c.Commit), n, capNS/1e6)
}

// compose draws a held frame with its masks on the canvas and returns how many windows of strangers are black, -1 for the whole desk, and what of
// the frame is black now.
func (f *Film) compose(h *heldFrame, rects []redaction.Rect, known bool) (strangers int, black []redaction.Rect) {
	l, p, s := f.layout, f.canvas, h.shot
	// Masked in place: the capture is ours alone, and nothing unmasked is ever copied.
	desk := []redaction.Rect{{W: l.Desk.W, H: l.Desk.H}}
	if strangers = -1; !s.shaky {
		desk, strangers = deskMasks(s.layers, rects, l.Desk.W, l.Desk.H)
	}
	redaction.Mask(s.desk, l.Desk.W, l.Desk.H, l.Desk.W*4, desk, redaction.Black)
	s.mouse.draw(s.desk, l.Desk.W, l.Desk.H)
	for _, r := range cutOut(desk, redaction.Rect{X: s.mouse.x, Y: s.mouse.y, W: s.mouse.w, H: s.mouse.h}) {
		black = appendShown(black, l.OnDesk(r))
	}
	p.blit(l.Desk, s.desk, l.Desk.W)
	now := paneNow{s.state, known, s.paneW, s.paneH}
	pixels := s.state == PaneOwn || s.state == PaneInactive
	if now != f.label {
		f.label = now
		f.paneLabel(now)
		if pixels {
			p.fill(redaction.Rect{X: l.Pane.X + s.paneW, Y: l.Pane.Y, W: l.Pane.W - s.paneW, H: l.Pane.H}, ground)
			p.fill(redaction.Rect{X: l.Pane.X, Y: l.Pane.Y + s.paneH, W: s.paneW, H: l.Pane.H - s.paneH}, ground)
		} else {
			p.hatch(l.Pane)
		}
	}
	if !pixels {
		return strangers, black
	}
	for _, r := range rects {
		pr := paneRect(r, s.win, s.scale)
		redaction.Mask(s.pane, s.paneW, s.paneH, s.paneW*4, []redaction.Rect{pr}, redaction.Black)
		black = appendShown(black, shift(pr.Clip(s.paneW, s.paneH), l.Pane.X, l.Pane.Y))
	}
	p.blit(redaction.Rect{X: l.Pane.X, Y: l.Pane.Y, W: s.paneW, H: s.paneH}, s.pane, s.paneW)
	return strangers, black
}

func appendShown(list []redaction.Rect, r redaction.Rect) []redaction.Rect {
	if r.Empty() {
		return list
	}
	return append(list, r)
}

// paneNow is what the pane's label and the room beside its picture depend on; the zero value is drawn over by the first frame.
type paneNow struct {
	state PaneState
	known bool
	w, h  int
}

func (f *Film) paneLabel(now paneNow) {
	text, colour := "covered window (own pixels)", ink
	if !now.known {
		text, colour = "covered window - masked, its secrets are not known", warn
	}
	switch now.state {
	case PaneNone:
		text, colour = "no browser window yet", soft
	case PaneInactive:
		text, colour = "inactive tab: no pixels - window shows its visible tab", warn
	case PaneUnmapped:
		text, colour = "window is minimised: no pixels", warn
	case PaneLost:
		text, colour = "window is gone: no pixels", warn
	}
	f.canvas.fill(redaction.Rect{X: f.layout.Pane.X, W: f.layout.WidthPx - f.layout.Pane.X, H: barHeight}, bar)
	f.canvas.text(f.faces.big, f.layout.Pane.X, 5, f.layout.Pane.W, text, colour)
}

// stamp draws what tells one frame from the next: the code, renewed with the first frame of each second, and the clock.
func (f *Film) stamp(n int, capNS int64, repeated bool) {
	if n%f.cfg.FPS == 0 || f.codeText == "" {
		f.codeText = codeTextFor(f.cfg, n, capNS)
		f.canvas.code(f.layout.Code, f.codeText)
	}
	l := f.layout.Caption
	t := f.faces.big
	r := redaction.Rect{X: l.X, Y: l.Y + l.H - 2*(t.h+4), W: l.W, H: 2 * (t.h + 4)}
	f.canvas.fill(r, ground)
	f.canvas.text(t, r.X, r.Y, r.W, fmt.Sprintf("frame %06d   +%.3f s", n, float64(capNS-f.t0)/1e9), ink)
	note := fmt.Sprintf("mono %d ms", capNS/1e6)
	if repeated {
		note += "  repeated"
	}
	f.canvas.text(f.faces.small, r.X, r.Y+t.h+4, r.W, note, soft)
}
