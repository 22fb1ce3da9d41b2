package recorder

import "github.com/engine-acceptance/acceptance/redaction"

// layer is a top-level window of the desk, in stacking order.
type layer struct {
	rect   redaction.Rect // with the window manager's frame
	inner  redaction.Rect // of the target: without it
	kind   layerKind
	window uint32
}

type layerKind int

const (
	stranger layerKind = iota // shown as black
	own                       // of the harness: shown
	target                    // shown but for its masks and its frame
)

// maxMasks bounds the pieces that masks are cut into; a desk that needs more is black.
const maxMasks = 400

// deskMasks returns what to blacken on a desk of w x h pixels so that own windows show where they lie above the target, masks lie where the target shows, and
// windows that are neither are black. layers are from bottom to top; rects are the target's masks. A nil list of layers is a desk whose
// windows are not known to us: rects cover whatever is there.
func deskMasks(layers []layer, rects []redaction.Rect, w, h int) (out []redaction.Rect, strangers int) {
	if layers == nil {
		return rects, 0
	}
	placed := false
	for _, l := range layers {
		out = cutOut(out, l.rect)
		switch l.kind {
		case stranger:
			strangers++
			out = append(out, l.rect)
		case target:
			placed = true
			out = append(out, cutOut([]redaction.Rect{l.rect}, l.inner)...)
			out = append(out, rects...)
		}
		if len(out) > maxMasks {
			return []redaction.Rect{{W: w, H: h}}, strangers
		}
	}
	if !placed {
		out = append(out, rects...)
	}
	return out, strangers
}

// cutOut removes hole from each of rects.
func cutOut(rects []redaction.Rect, hole redaction.Rect) []redaction.Rect {
	if hole.Empty() {
		return rects
	}
	var out []redaction.Rect
	for _, r := range rects {
		x0, y0 := max(r.X, hole.X), max(r.Y, hole.Y)
		x1, y1 := min(r.X+r.W, hole.X+hole.W), min(r.Y+r.H, hole.Y+hole.H)
		if r.Empty() || x0 >= x1 || y0 >= y1 {
			out = append(out, r)
			continue
		}
		for _, p := range []redaction.Rect{
			{X: r.X, Y: r.Y, W: r.W, H: y0 - r.Y},
			{X: r.X, Y: y1, W: r.W, H: r.Y + r.H - y1},
			{X: r.X, Y: y0, W: x0 - r.X, H: y1 - y0},
			{X: x1, Y: y0, W: r.X + r.W - x1, H: y1 - y0},
		} {
			if !p.Empty() {
				out = append(out, p)
			}
		}
	}
	return out
}
