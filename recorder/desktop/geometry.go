package desktop

import (
	"errors"
	"slices"
)

// ErrTooComplex: more windows or more pieces than the guard takes into account.
var ErrTooComplex = errors.New("too many windows to compute the cover")

// maxPieces bounds the rectangles that a cover computation may hold at once.
const maxPieces = 1 << 14

// rect is a half-open rectangle in root pixels.
type rect struct{ x0, y0, x1, y1 int }

func (r rect) empty() bool { return r.x0 >= r.x1 || r.y0 >= r.y1 }

func (r rect) area() int64 {
	if r.empty() {
		return 0
	}
	return int64(r.x1-r.x0) * int64(r.y1-r.y0)
}

func (r rect) meet(o rect) rect {
	return rect{max(r.x0, o.x0), max(r.y0, o.y0), min(r.x1, o.x1), min(r.y1, o.y1)}
}

func (r rect) overlaps(o rect) bool { return !r.meet(o).empty() }

// coveredFraction is the part of target, as far as it lies on screen, that the rectangles above it hide. A target
// with no part on the screen is fully covered.
func coveredFraction(target, screen rect, above []rect) (float64, error) {
	visible := target.meet(screen)
	whole := visible.area()
	if whole == 0 {
		return 1, nil
	}
	pieces := []rect{visible}
	var next []rect
	for _, a := range above {
		next = next[:0]
		for _, p := range pieces {
			m := p.meet(a)
			if m.empty() {
				next = append(next, p)
				continue
			}
			for _, q := range [4]rect{
				{p.x0, p.y0, p.x1, m.y0}, {p.x0, m.y1, p.x1, p.y1},
				{p.x0, m.y0, m.x0, m.y1}, {m.x1, m.y0, p.x1, m.y1},
			} {
				if !q.empty() {
					next = append(next, q)
				}
			}
		}
		if len(next) > maxPieces {
			return 0, ErrTooComplex
		}
		pieces, next = next, pieces
		if len(pieces) == 0 {
			return 1, nil
		}
	}
	var left int64
	for _, p := range pieces {
		left += p.area()
	}
	return float64(whole-left) / float64(whole), nil
}

// maxTreeWindows bounds the children of the root that the replica keeps.
const maxTreeWindows = 8192

// node is a child of the root.
type node struct {
	id                uint32
	x, y, w, h, b     int // place of the border's corner, inner size, border width: pixels
	mapped, inputOnly bool
	classKnown        bool
	inner             uint32 // the client's window, when this is a frame
}

func (n *node) rect() rect {
	return rect{n.x, n.y, n.x + n.w + 2*n.b, n.y + n.h + 2*n.b}
}

// tree is a replica of the root's children, kept from events alone: bottom to top.
type tree struct {
	root     uint32
	screen   rect
	order    []*node
	nodes    map[uint32]*node
	frameOf  map[uint32]uint32 // client's window to the frame it is in
	overflow uint64            // windows that were not taken in
}

func newTree(root uint32, width, height int) *tree {
	return &tree{root: root, screen: rect{0, 0, width, height}, nodes: map[uint32]*node{}, frameOf: map[uint32]uint32{}}
}

func (t *tree) index(n *node) int { return slices.Index(t.order, n) }

// add puts a window on top.
func (t *tree) add(n *node) bool {
	if t.nodes[n.id] != nil {
		return false
	}
	if len(t.order) >= maxTreeWindows {
		t.overflow++
		return false
	}
	t.nodes[n.id] = n
	t.order = append(t.order, n)
	return true
}

func (t *tree) remove(id uint32) *node {
	n := t.nodes[id]
	if n == nil {
		return nil
	}
	delete(t.nodes, id)
	if i := t.index(n); i >= 0 {
		t.order = slices.Delete(t.order, i, i+1)
	}
	if n.inner != 0 && t.frameOf[n.inner] == id {
		delete(t.frameOf, n.inner)
	}
	return n
}

// place moves a window directly above a sibling, or to the bottom for sibling 0, and returns how many mapped
// windows it crossed. An unknown sibling leaves the order as it is.
func (t *tree) place(n *node, sibling uint32) (crossed int) {
	from := t.index(n)
	if from < 0 {
		return 0
	}
	to := 0
	if sibling != 0 {
		s := t.nodes[sibling]
		if s == nil || s == n {
			return 0
		}
		to = t.index(s)
		if to < from {
			to++
		}
	}
	if to == from {
		return 0
	}
	lo, hi := min(from, to), max(from, to)
	for _, o := range t.order[lo : hi+1] {
		if o != n && o.mapped {
			crossed++
		}
	}
	t.order = slices.Delete(t.order, from, from+1)
	t.order = slices.Insert(t.order, to, n)
	return crossed
}

// above calls f for every mapped window above id, from low to high.
func (t *tree) above(id uint32, f func(*node)) {
	n := t.nodes[id]
	if n == nil {
		return
	}
	for _, o := range t.order[t.index(n)+1:] {
		if o.mapped {
			f(o)
		}
	}
}

// cover is the covered fraction of a rectangle of the window id by the windows above it. Windows that only take
// input do not cover.
func (t *tree) cover(id uint32, target rect) (float64, error) {
	if t.overflow > 0 {
		return 0, ErrTooComplex
	}
	var above []rect
	t.above(id, func(o *node) {
		if r := o.rect(); !o.inputOnly && r.overlaps(target) {
			above = append(above, r)
		}
	})
	return coveredFraction(target, t.screen, above)
}
