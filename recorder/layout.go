package recorder

import "github.com/engine-acceptance/acceptance/redaction"

// Sizes of a frame's parts in pixels.
const (
	barHeight  = 28  // over desk and pane, for their labels
	gap        = 8   // around the pane
	paneWidth  = 640 // most that a pane takes
	paneHeight = 420
	codeModule = 4   // one module of the code
	codeSide   = 276 // room for the code: 61 modules of version 11 and a quiet zone of 4 each side
)

// Layout says where the parts of a frame are, in frame pixels. It is a function of the desk's size alone.
type Layout struct {
	WidthPx  int            `json:"width_px"`
	HeightPx int            `json:"height_px"`
	Desk     redaction.Rect `json:"desk"` // the desk, unscaled
	Pane     redaction.Rect `json:"pane"` // most that the covered window takes; it starts at the top left
	Code     redaction.Rect `json:"code"` // the code lies inside, centred
	Caption  redaction.Rect `json:"caption"`
}

// NewLayout returns the layout of films of a desk of w x h pixels.
func NewLayout(w, h int) Layout {
	x := w + gap
	l := Layout{
		Desk: redaction.Rect{Y: barHeight, W: w, H: h},
		Pane: redaction.Rect{X: x, Y: barHeight, W: paneWidth, H: paneHeight},
	}
	below := barHeight + paneHeight + 2*gap
	l.Code = redaction.Rect{X: x, Y: below, W: codeSide, H: codeSide}
	l.Caption = redaction.Rect{X: x + codeSide + 2*gap, Y: below, W: paneWidth - codeSide - 2*gap, H: codeSide}
	l.WidthPx = even(w + paneWidth + 2*gap)
	l.HeightPx = even(max(barHeight+h, below+codeSide+gap))
	return l
}

func even(n int) int { return n + n&1 }

// OnDesk moves a rectangle of desk (root window) pixels to where the frame shows it.
func (l Layout) OnDesk(r redaction.Rect) redaction.Rect {
	return shift(shift(r, 0, 0).Clip(l.Desk.W, l.Desk.H), l.Desk.X, l.Desk.Y)
}

// OnPane moves a rectangle of desk pixels to where the frame shows it in the covered window's pane, which shows win (desk pixels) at 1/scale. The
// result covers every pixel that r touches.
func (l Layout) OnPane(r, win redaction.Rect, scale int) redaction.Rect {
	r = paneRect(r, win, max(scale, 1))
	return shift(r.Clip(min(l.Pane.W, win.W/max(scale, 1)), min(l.Pane.H, win.H/max(scale, 1))), l.Pane.X, l.Pane.Y)
}

// paneRect scales r down around the corner of win, outwards.
func paneRect(r, win redaction.Rect, k int) redaction.Rect {
	r = shift(r, -win.X, -win.Y).Clip(win.W, win.H)
	if r.Empty() {
		return redaction.Rect{}
	}
	x, y := r.X/k, r.Y/k
	return redaction.Rect{X: x, Y: y, W: (r.X+r.W+k-1)/k - x, H: (r.Y+r.H+k-1)/k - y}
}

func shift(r redaction.Rect, dx, dy int) redaction.Rect {
	if r.Empty() {
		return redaction.Rect{}
	}
	return redaction.Rect{X: r.X + dx, Y: r.Y + dy, W: r.W, H: r.H}
}

// paneScale returns the least whole number by which a window must be divided to fit the pane.
func paneScale(w, h int) int {
	k := 1
	for w/k > paneWidth || h/k > paneHeight {
		k++
	}
	return k
}

// shrink draws src, a BGRX picture of w x h pixels, at 1/k into dst, whose rows are stride bytes apart. Each pixel is the mean of a 2 x 2
// block for k > 1, which keeps text readable at half size.
func shrink(dst []byte, stride int, src []byte, w, h, k int) {
	ow, oh := w/k, h/k
	for y := range oh {
		d := dst[y*stride : y*stride+ow*4]
		if k == 1 {
			copy(d, src[y*w*4:])
			continue
		}
		a := src[(y*k*w)*4:][:w*4]
		b := src[((y*k+1)*w)*4:][:w*4]
		for x := range ow {
			i := x * k * 4
			two := mean64(get64(a[i:i+8]), get64(b[i:i+8]))
			put32(d[x*4:x*4+4], mean(uint32(two), uint32(two>>32)))
		}
	}
}

// mean averages four bytes at once.
func mean(a, b uint32) uint32 { return a&b + (a^b)>>1&0x7f7f7f7f }

// mean64 averages eight bytes at once.
func mean64(a, b uint64) uint64 { return a&b + (a^b)>>1&0x7f7f7f7f7f7f7f7f }
