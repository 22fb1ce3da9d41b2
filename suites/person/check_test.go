package person

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/suites/sentinel"
)

const ms = int64(time.Millisecond)

// work is a person who types n characters, one each 100 ms, and clicks after every tenth.
func work(n int) (strokes []Stroke, log []sentinel.Event) {
	at := 1000 * ms
	for i := range n {
		s := Stroke{N: uint64(len(strokes) + 1), Kind: Key, Char: string(Sequence(7, uint64(i))), Began: at, Ended: at + 6*ms}
		strokes = append(strokes, s)
		log = append(log, sentinel.Event{Kind: sentinel.KeyPress, Char: s.Char, Mono: at + ms}, sentinel.Event{Kind: sentinel.KeyRelease, Char: s.Char, Mono: at + 6*ms})
		if i%10 == 9 {
			s := Stroke{N: uint64(len(strokes) + 1), Kind: Click, X: 300, Y: 200, Began: at + 20*ms, Ended: at + 21*ms}
			strokes = append(strokes, s)
			log = append(log, sentinel.Event{Kind: sentinel.ButtonPress, X: 300, Y: 200, Mono: at + 21*ms}, sentinel.Event{Kind: sentinel.ButtonRelease, X: 300, Y: 200, Mono: at + 21*ms})
		}
		at += 100 * ms
	}
	for i := range log {
		log[i].N, log[i].ServerMs = uint64(i+1), uint32(log[i].Mono/ms)
	}
	return strokes, log
}

func TestCheck(t *testing.T) {
	// Stroke 1 is events 0 and 1 of the log, stroke 2 events 2 and 3 ...
	for _, c := range []struct {
		name   string
		change func([]sentinel.Event) []sentinel.Event
		want   func(*Report)
	}{
		{"all_arrived_is_ok", func(l []sentinel.Event) []sentinel.Event { return l }, func(*Report) {}},
		{"nothing_arrived_is_all_lost", func(l []sentinel.Event) []sentinel.Event { return nil }, func(r *Report) {
			r.Received = 0
			for n := range uint64(88) {
				r.Lost = append(r.Lost, n+1)
			}
		}},
		{"one_key_lost", func(l []sentinel.Event) []sentinel.Event { return slices.Delete(l, 4, 6) }, func(r *Report) { r.Received -= 2; r.Lost = []uint64{3} }},
		{"release_lost", func(l []sentinel.Event) []sentinel.Event { return slices.Delete(l, 5, 6) }, func(r *Report) { r.Received--; r.Lost = []uint64{3} }},
		{"forty_strokes_lost_are_no_duplicates", func(l []sentinel.Event) []sentinel.Event { return slices.Delete(l, 20, 100) }, func(r *Report) {
			r.Received -= 80
			for n := uint64(11); n <= 50; n++ {
				r.Lost = append(r.Lost, n)
			}
		}},
		{"press_doubled", func(l []sentinel.Event) []sentinel.Event { return slices.Insert(l, 7, l[6]) }, func(r *Report) { r.Received++; r.Duplicated = []uint64{4} }},
		{"click_doubled", func(l []sentinel.Event) []sentinel.Event { return slices.Insert(l, 21, l[20]) }, func(r *Report) { r.Received++; r.Duplicated = []uint64{11} }},
		{"press_doubled_after_its_elder_was_lost", func(l []sentinel.Event) []sentinel.Event {
			l = slices.Insert(l, 79, l[78]) // character 37, stroke 40, is the first one again
			return slices.Delete(l, 0, 2)
		}, func(r *Report) { r.Received--; r.Lost = []uint64{1}; r.Duplicated = []uint64{40} }},
		{"two_keys_swapped", func(l []sentinel.Event) []sentinel.Event {
			moved := slices.Clone(l[4:6])
			for i := range moved {
				moved[i].Mono = l[7].Mono
			}
			return slices.Concat(l[:4], l[6:8], moved, l[8:])
		}, func(r *Report) { r.Disordered, r.LatestNS = []uint64{3}, 100*ms }},
		{"late", func(l []sentinel.Event) []sentinel.Event {
			for i := 170; i < len(l); i++ {
				l[i].Mono += 300 * ms
			}
			return l
		}, func(r *Report) { r.Late, r.LatestNS = []uint64{86, 87, 88}, 300*ms }},
		{"read_late_in_a_burst_is_late_and_nothing_else", func(l []sentinel.Event) []sentinel.Event {
			for i := range l {
				l[i].Mono = l[len(l)-1].Mono
			}
			return l
		}, func(r *Report) {
			for n := uint64(1); n <= 84; n++ { // those of the last quarter of a second are in time
				r.Late = append(r.Late, n)
			}
			r.LatestNS = 7915 * ms // of the first stroke
		}},
		{"the_same_key_at_another_time_is_foreign", func(l []sentinel.Event) []sentinel.Event {
			return slices.Insert(l, 8, sentinel.Event{N: 1000, Kind: sentinel.KeyPress, Char: l[0].Char, Mono: l[7].Mono + 30*ms, ServerMs: l[7].ServerMs + 30})
		}, func(r *Report) { r.Received++; r.Foreign = []uint64{1000} }},
		{"foreign_key", func(l []sentinel.Event) []sentinel.Event {
			return slices.Insert(l, 7, sentinel.Event{N: 1000, Kind: sentinel.KeyPress, Char: "A", Mono: l[6].Mono})
		}, func(r *Report) { r.Received++; r.Foreign = []uint64{1000} }},
		{"key_before_the_person_typed_it_is_foreign", func(l []sentinel.Event) []sentinel.Event {
			return slices.Insert(l, 0, sentinel.Event{N: 1000, Kind: sentinel.KeyPress, Char: l[0].Char, Mono: 1})
		}, func(r *Report) { r.Received++; r.Foreign = []uint64{1000} }},
		{"forged_key", func(l []sentinel.Event) []sentinel.Event {
			return slices.Insert(l, 7, sentinel.Event{N: 1000, Kind: sentinel.KeyPress, Char: "a", Mono: l[6].Mono, Sent: true})
		}, func(r *Report) { r.Forged = []uint64{1000} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			strokes, log := work(80)
			want := Report{Injected: 88, Received: 176}
			c.want(&want)
			got := Check(strokes, c.change(log), DefaultLate)
			g.Expect(got).To(Equal(want), got.String())
			g.Expect(got.OK()).To(Equal(c.name == "all_arrived_is_ok"))
		})
	}
	NewWithT(t).Expect(Check(nil, nil, DefaultLate).OK()).To(BeFalse(), "nobody worked")
}

func TestSequence_repeats_no_character_within_36(t *testing.T) {
	g := NewWithT(t)
	seen := map[byte]uint64{}
	for i := range uint64(100) {
		c := Sequence(42, i)
		if before, ok := seen[c]; ok {
			g.Expect(i - before).To(Equal(uint64(36)))
		}
		seen[c] = i
	}
	g.Expect(seen).To(HaveLen(36))
	g.Expect(Sequence(1, 0)).To(Equal(Sequence(1, 0)))
}
