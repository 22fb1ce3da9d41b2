package desktop

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestRing(t *testing.T) {
	collect := func(r *ring, from, to uint64) (seqs []uint64, missing uint64) {
		missing = r.each(from, to, func(e *entry) { seqs = append(seqs, e.Seq) })
		return seqs, missing
	}
	t.Run("keeps everything below its capacity", func(t *testing.T) {
		g := NewWithT(t)
		r := newRing(2 * chunkEvents)
		for range 2 * chunkEvents {
			r.add(entry{})
		}
		seqs, missing := collect(&r, 0, 1<<40)
		g.Expect(missing).To(BeZero())
		g.Expect(seqs).To(HaveLen(2 * chunkEvents))
		g.Expect(seqs[0]).To(Equal(uint64(1)))
		g.Expect(seqs[len(seqs)-1]).To(Equal(uint64(2 * chunkEvents)))
	})
	t.Run("tells what it dropped, by channel", func(t *testing.T) {
		g := NewWithT(t)
		r := newRing(2 * chunkEvents)
		for i := range 5 * chunkEvents {
			r.add(entry{Event: Event{Channel: Channel(1 + i%2)}})
		}
		seqs, missing := collect(&r, 10, 1<<40)
		g.Expect(missing).To(Equal(uint64(3*chunkEvents - 10)))
		g.Expect(seqs).To(HaveLen(2 * chunkEvents))
		g.Expect(seqs[0]).To(Equal(uint64(3*chunkEvents + 1)))
		g.Expect(r.dropped).To(Equal(uint64(3 * chunkEvents)))
		g.Expect(r.droppedBy[1] + r.droppedBy[2]).To(Equal(r.dropped))
		_, missing = collect(&r, 4*chunkEvents, 1<<40)
		g.Expect(missing).To(BeZero())
	})
	t.Run("what is released is not dropped", func(t *testing.T) {
		g := NewWithT(t)
		r := newRing(2 * chunkEvents)
		for range 20 {
			for range chunkEvents {
				r.add(entry{})
			}
			r.release(r.last)
		}
		g.Expect(r.dropped).To(BeZero())
		g.Expect(len(r.chunks)).To(BeNumerically("<=", 2))
		r.add(entry{})
		seqs, missing := collect(&r, r.last-1, r.last)
		g.Expect(missing).To(BeZero())
		g.Expect(seqs).To(Equal([]uint64{20*chunkEvents + 1}))
	})
	t.Run("an empty span is empty", func(t *testing.T) {
		g := NewWithT(t)
		r := newRing(1)
		seqs, missing := collect(&r, 5, 3)
		g.Expect(seqs).To(BeEmpty())
		g.Expect(missing).To(BeZero())
	})
}

func TestBaselineCompare(t *testing.T) {
	g := NewWithT(t)
	a := Baseline{ActiveWindow: 1, InputFocus: 1, Stacking: []uint32{1, 2}, PointerX: 3, KeymapSHA256: "x"}
	g.Expect(a.Compare(a)).To(BeEmpty())
	b := a
	b.Stacking, b.PointerX, b.KeymapSHA256, b.Clipboard = []uint32{2, 1}, 4, "y", 7
	var fields []Field
	for _, d := range a.Compare(b) {
		fields = append(fields, d.Field)
		g.Expect(d.Was).NotTo(Equal(d.Is))
	}
	g.Expect(fields).To(Equal([]Field{FieldStacking, FieldPointer, FieldClipboard, FieldKeymap}))
}

// Whoever asks for events that were released is told that they are missing: silence would read as a desk on which nothing happened.
func TestRing_tells_of_what_was_released(t *testing.T) {
	g := NewWithT(t)
	r := newRing(8 * chunkEvents)
	for range 3 * chunkEvents {
		r.add(entry{})
	}
	count := func(from, to uint64) (kept int, missing uint64) {
		missing = r.each(from, to, func(*entry) { kept++ })
		return kept, missing
	}
	kept, missing := count(10, r.last)
	g.Expect(kept).To(Equal(3*chunkEvents - 10))
	g.Expect(missing).To(BeZero())
	r.release(uint64(2*chunkEvents + 5)) // whole chunks go
	kept, missing = count(10, r.last)
	g.Expect(kept).To(Equal(chunkEvents))
	g.Expect(missing).To(Equal(uint64(2*chunkEvents - 10)))
	kept, missing = count(uint64(2*chunkEvents), r.last)
	g.Expect(kept).To(Equal(chunkEvents))
	g.Expect(missing).To(BeZero())
	g.Expect(r.dropped).To(BeZero(), "released is not dropped")
}
