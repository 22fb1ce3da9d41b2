package redaction

// Rect is a rectangle in pixels of the picture it is used on: X and Y from the top left corner, W to the right, H down. A
// rectangle with W or H of zero or less is empty.
type Rect struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

// Empty says whether the rectangle covers no pixel.
func (r Rect) Empty() bool { return r.W <= 0 || r.H <= 0 }

// Clip returns the part of r inside a picture of w x h pixels. It does not overflow, whatever r holds.
func (r Rect) Clip(w, h int) Rect {
	x0, x1 := clipSpan(r.X, r.W, w)
	y0, y1 := clipSpan(r.Y, r.H, h)
	return Rect{x0, y0, x1 - x0, y1 - y0}
}

func clipSpan(at, length, limit int) (from, to int) {
	if length <= 0 || at >= limit || limit <= 0 {
		return 0, 0
	}
	if at < 0 {
		if length <= -at || -at < 0 {
			return 0, 0
		}
		length += at
		at = 0
	}
	return at, at + min(length, limit-at)
}

// Colour is one BGRX pixel; X is ignored by every reader.
type Colour [4]byte

// Black is the colour of masks.
var Black = Colour{0, 0, 0, 0xff}

// Mask paints rects over img, a BGRX picture of w x h pixels whose rows are stride bytes apart. Parts outside the picture are
// clipped. A picture whose slice is shorter than its sizes say is masked as far as it goes.
func Mask(img []byte, w, h, stride int, rects []Rect, colour Colour) {
	for _, r := range rects {
		r = r.Clip(w, h)
		if r.Empty() {
			continue
		}
		first := rowOf(img, r, r.Y, stride)
		for i := 0; i+4 <= len(first); i += 4 {
			copy(first[i:], colour[:])
		}
		for y := r.Y + 1; y < r.Y+r.H; y++ {
			copy(rowOf(img, r, y, stride), first)
		}
	}
}

// MaskProof says whether each of rects, clipped to the picture, is one solid colour (the same for all). A rectangle that lies wholly outside has no
// pixel to show and is proved; a picture shorter than its sizes say is not.
func MaskProof(img []byte, w, h, stride int, rects []Rect, colour Colour) bool {
	if w < 0 || h < 0 || stride < w*4 || (h > 0 && len(img) < stride*(h-1)+w*4) {
		return false
	}
	for _, r := range rects {
		r = r.Clip(w, h)
		if r.Empty() {
			continue
		}
		for y := r.Y; y < r.Y+r.H; y++ {
			row := rowOf(img, r, y, stride)
			for i := 0; i+4 <= len(row); i += 4 {
				if row[i] != colour[0] || row[i+1] != colour[1] || row[i+2] != colour[2] {
					return false
				}
			}
		}
	}
	return true
}

func rowOf(img []byte, r Rect, y, stride int) []byte {
	from := y*stride + r.X*4
	to := from + r.W*4
	if from < 0 || from > len(img) {
		return nil
	}
	return img[from:min(to, len(img))]
}
