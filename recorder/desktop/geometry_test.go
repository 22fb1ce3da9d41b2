package desktop

import (
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"
)

func TestCoveredFraction(t *testing.T) {
	screen := rect{0, 0, 100, 100}
	for _, tc := range []struct {
		name   string
		target rect
		above  []rect
		want   float64
	}{
		{"nothing above", rect{0, 0, 10, 10}, nil, 0},
		{"half", rect{0, 0, 10, 10}, []rect{{0, 0, 5, 10}}, 0.5},
		{"the same twice counts once", rect{0, 0, 10, 10}, []rect{{0, 0, 5, 10}, {0, 0, 5, 10}}, 0.5},
		{"a hole in the middle", rect{0, 0, 10, 10}, []rect{{4, 4, 6, 6}}, 0.04},
		{"whole by two", rect{0, 0, 10, 10}, []rect{{0, 0, 5, 10}, {5, 0, 10, 10}}, 1},
		{"beside", rect{0, 0, 10, 10}, []rect{{10, 0, 20, 10}}, 0},
		{"only what is on the screen counts", rect{90, 0, 110, 10}, []rect{{90, 0, 95, 10}}, 0.5},
		{"off the screen is covered", rect{200, 0, 210, 10}, nil, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			f, err := coveredFraction(tc.target, screen, tc.above)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(f).To(BeNumerically("~", tc.want, 1e-12))
		})
	}
}

// Rectangle subtraction agrees with counting pixels.
func TestCoveredFractionAgreesWithPixels(t *testing.T) {
	g := NewWithT(t)
	r := rand.New(rand.NewPCG(1, 2))
	screen := rect{0, 0, 40, 40}
	random := func() rect {
		x, y := r.IntN(50)-5, r.IntN(50)-5
		return rect{x, y, x + r.IntN(20), y + r.IntN(20)}
	}
	for range 500 {
		target := random()
		var above []rect
		for range r.IntN(8) {
			above = append(above, random())
		}
		whole, hidden := 0, 0
		for x := 0; x < 40; x++ {
			for y := 0; y < 40; y++ {
				p := rect{x, y, x + 1, y + 1}
				if !p.overlaps(target) {
					continue
				}
				whole++
				for _, a := range above {
					if p.overlaps(a) {
						hidden++
						break
					}
				}
			}
		}
		want := 1.0
		if whole > 0 {
			want = float64(hidden) / float64(whole)
		}
		got, err := coveredFraction(target, screen, above)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(BeNumerically("~", want, 1e-12), "%v under %v", target, above)
	}
}

func TestTreePlace(t *testing.T) {
	build := func() *tree {
		tr := newTree(1, 100, 100)
		for id := uint32(10); id < 15; id++ {
			tr.add(&node{id: id, w: 10, h: 10, mapped: id != 12})
		}
		return tr
	}
	ids := func(tr *tree) (out []uint32) {
		for _, n := range tr.order {
			out = append(out, n.id)
		}
		return out
	}
	for _, tc := range []struct {
		name        string
		id, sibling uint32
		want        []uint32
		crossed     int
	}{
		{"to the bottom", 13, 0, []uint32{13, 10, 11, 12, 14}, 2},
		{"to the top", 10, 14, []uint32{11, 12, 13, 14, 10}, 3},
		{"up by one unmapped", 11, 12, []uint32{10, 12, 11, 13, 14}, 0},
		{"down above a sibling", 14, 10, []uint32{10, 14, 11, 12, 13}, 2},
		{"where it is", 11, 10, []uint32{10, 11, 12, 13, 14}, 0},
		{"an unknown sibling changes nothing", 11, 99, []uint32{10, 11, 12, 13, 14}, 0},
		{"itself changes nothing", 11, 11, []uint32{10, 11, 12, 13, 14}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			tr := build()
			g.Expect(tr.place(tr.nodes[tc.id], tc.sibling)).To(Equal(tc.crossed))
			g.Expect(ids(tr)).To(Equal(tc.want))
		})
	}
	t.Run("bounded", func(t *testing.T) {
		g := NewWithT(t)
		tr := newTree(1, 100, 100)
		for id := uint32(2); id < maxTreeWindows+10; id++ {
			tr.add(&node{id: id})
		}
		g.Expect(tr.order).To(HaveLen(maxTreeWindows))
		g.Expect(tr.overflow).To(Equal(uint64(8)))
		_, err := tr.cover(2, rect{0, 0, 1, 1})
		g.Expect(err).To(MatchError(ErrTooComplex))
	})
}
