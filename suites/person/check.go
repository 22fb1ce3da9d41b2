package person

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/engine-acceptance/acceptance/suites/sentinel"
)

// alphabet is what the person types: no modifier is needed for any of it.
const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"

// Sequence is the i-th character (from 0) that a person with this seed types.
func Sequence(seed uint64, i uint64) byte {
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(alphabet))
	return alphabet[order[i%uint64(len(alphabet))]]
}

// Kind says what a stroke is.
type Kind string

// Kinds of strokes.
const (
	Key   Kind = "key"
	Click Kind = "click"
)

// Stroke is one key or click that was injected, press and release.
type Stroke struct {
	N     uint64 `json:"n"` // counts from 1 without gaps
	Kind  Kind   `json:"stroke"`
	Char  string `json:"char,omitempty"` // of a key
	X     int    `json:"x,omitempty"`    // of a click, root pixels
	Y     int    `json:"y,omitempty"`
	Began int64  `json:"began"` // CLOCK_MONOTONIC in ns before the press was sent
	Ended int64  `json:"ended"` // after the server had the release
}

// DefaultLate bounds the time between a stroke and its arrival. On a busy machine of two cores a reader
// was seen to lag 240 ms; a person notices from there on.
const DefaultLate = 250 * time.Millisecond

// Report says what became of the strokes. Lists hold stroke numbers, in order, each number once;
// Foreign and Forged hold numbers of the window's log.
type Report struct {
	Injected   int      `json:"injected"`   // strokes
	Received   int      `json:"received"`   // presses and releases of real input that the window got
	Lost       []uint64 `json:"lost"`       // press or release did not arrive
	Duplicated []uint64 `json:"duplicated"` // press or release arrived more than once
	Disordered []uint64 `json:"disordered"` // arrived after something that was injected later by the same device
	Late       []uint64 `json:"late"`       // arrived later than the bound after the stroke's end
	Foreign    []uint64 `json:"foreign"`    // input that the person did not inject
	Forged     []uint64 `json:"forged"`     // input with the send_event bit
	LatestNS   int64    `json:"latest_ns"`  // longest time from a stroke's end to its arrival
}

// OK reports whether every stroke arrived once, in order and in time, and nothing else did, and at least
// one was injected: a person who did nothing proves nothing.
func (r Report) OK() bool {
	return r.Injected > 0 && len(r.Lost)+len(r.Duplicated)+len(r.Disordered)+len(r.Late)+len(r.Foreign)+len(r.Forged) == 0
}

// String is one line.
func (r Report) String() string {
	return fmt.Sprintf("%d strokes, %d events: lost %v, duplicated %v, disordered %v, late %v, foreign %v, forged %v",
		r.Injected, r.Received, r.Lost, r.Duplicated, r.Disordered, r.Late, r.Foreign, r.Forged)
}

// stampSlack is what a server's time stamp may be off: it counts whole milliseconds, of a clock that may
// tick as coarsely.
const stampSlack = 2 * int64(time.Millisecond)

// serverTime is an event's time stamp on CLOCK_MONOTONIC in ns; the stamp itself wraps each 49 days.
func serverTime(e sentinel.Event) int64 {
	if e.ServerMs == 0 {
		return e.Mono
	}
	read := e.Mono / int64(time.Millisecond)
	return (read - int64(int32(uint32(read)-e.ServerMs))) * int64(time.Millisecond)
}

// token is one half of a stroke, as the window sees it.
type token struct {
	kind sentinel.Kind
	char string
	x, y int
}

// Check compares what the person injected with what the focused window received. It is pure. Order is kept
// for the keyboard and for the pointer, each for itself: a window manager with click-to-focus holds a
// press back until it has looked at it, and the server lets keys overtake it.
//
// An event belongs to the stroke of the same key or place in whose time the server made it, by the server's
// own time stamp; when that stroke has arrived already, it is a duplicate, and when there is none, it is
// foreign. So it does not matter how late the window read it.
func Check(injected []Stroke, log []sentinel.Event, late time.Duration) Report {
	r := Report{Injected: len(injected)}
	type half struct {
		stroke int
		order  int
		count  int
	}
	var halves []half
	index := map[token][]int{}
	add := func(stroke int, t token) {
		index[t] = append(index[t], len(halves))
		halves = append(halves, half{stroke: stroke, order: len(halves)})
	}
	for i, s := range injected {
		if s.Kind == Click {
			add(i, token{kind: sentinel.ButtonPress, x: s.X, y: s.Y})
			add(i, token{kind: sentinel.ButtonRelease, x: s.X, y: s.Y})
		} else {
			add(i, token{kind: sentinel.KeyPress, char: s.Char})
			add(i, token{kind: sentinel.KeyRelease, char: s.Char})
		}
	}
	doubled, swapped, tardy := map[int]bool{}, map[int]bool{}, map[int]bool{}
	last := map[Kind]int{Key: -1, Click: -1}
	for _, e := range log {
		t := token{kind: e.Kind}
		switch e.Kind {
		case sentinel.KeyPress, sentinel.KeyRelease:
			t.char = e.Char
		case sentinel.ButtonPress, sentinel.ButtonRelease:
			t.x, t.y = e.X, e.Y
		default:
			continue
		}
		if e.Sent {
			r.Forged = append(r.Forged, e.N)
			continue
		}
		r.Received++
		at := serverTime(e)
		own, taken := -1, -1
		for _, i := range index[t] {
			s := injected[halves[i].stroke]
			if at < s.Began-stampSlack || at > s.Ended+stampSlack {
				continue
			}
			if halves[i].count == 0 {
				own = i
				break
			}
			taken = i
		}
		if own < 0 && taken >= 0 {
			halves[taken].count++
			doubled[halves[taken].stroke] = true
			continue
		}
		if own < 0 {
			r.Foreign = append(r.Foreign, e.N)
			continue
		}
		h := &halves[own]
		h.count++
		device := injected[h.stroke].Kind
		if h.order < last[device] {
			swapped[h.stroke] = true
		}
		last[device] = max(last[device], h.order)
		r.LatestNS = max(r.LatestNS, e.Mono-injected[h.stroke].Ended)
		if e.Mono-injected[h.stroke].Ended > int64(late) {
			tardy[h.stroke] = true
		}
	}
	missing := map[int]bool{}
	for _, h := range halves {
		if h.count == 0 {
			missing[h.stroke] = true
		}
	}
	for i, s := range injected {
		for _, l := range []struct {
			in   map[int]bool
			list *[]uint64
		}{{missing, &r.Lost}, {doubled, &r.Duplicated}, {swapped, &r.Disordered}, {tardy, &r.Late}} {
			if l.in[i] {
				*l.list = append(*l.list, s.N)
			}
		}
	}
	return r
}
