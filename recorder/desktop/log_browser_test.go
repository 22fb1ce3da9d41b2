//go:build browser

package desktop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/recorder/x11"
)

// offence is one kind of disturbance and what the log must show of it, each time: requests with the violator's
// process, effects whoever is behind them.
type offence struct {
	kind     string
	requests []Kind
	effects  []Kind
	once     bool // has no undo of its own to wait with
}

var offences = []offence{
	{"focus", []Kind{ReqFocus}, []Kind{FocusOut}, false},
	{"focus_none", []Kind{ReqFocus}, []Kind{FocusOut}, false},
	{"xi_focus", []Kind{ReqFocus}, []Kind{FocusOut}, false},
	{"activate", []Kind{SendActivate}, []Kind{FocusOut, ActiveWindowChanged, StackingChanged}, false},
	{"raise", []Kind{ReqRestack}, []Kind{StackingChanged}, false},
	{"popup", []Kind{ReqMap, AbovePerson}, []Kind{WindowMapped, WindowUnmapped}, false},
	{"popup_throwaway", []Kind{ReqMap, AbovePerson}, nil, true},
	{"popup_input_only", []Kind{ReqMap, AbovePerson}, nil, true},
	{"move_person", []Kind{ReqConfigure}, []Kind{WindowMoved}, false},
	{"warp", []Kind{ReqWarp, DeviceMotion}, nil, false},
	{"xi_warp", []Kind{ReqWarp, DeviceMotion}, nil, false},
	{"test_motion", []Kind{ReqFakeMotion, DeviceMotion}, []Kind{RawTestMotion}, false},
	{"test_key", []Kind{ReqFakeKey, DeviceKey}, []Kind{RawTestKey}, false},
	{"test_button", []Kind{ReqFakeButton, DeviceButton}, []Kind{RawTestButton}, false},
	{"send_key", []Kind{SendInput}, nil, false},
	{"send_key_focus", []Kind{SendInput}, nil, false},
	{"send_button", []Kind{SendInput}, nil, false},
	{"send_message", []Kind{SendMessage}, nil, false},
	{"send_drag", []Kind{SendDrag}, nil, false},
	{"grab_pointer", []Kind{ReqGrabPointer}, nil, false},
	{"xi_grab_pointer", []Kind{ReqGrabPointer}, nil, false},
	{"grab_keyboard", []Kind{ReqGrabKeyboard}, []Kind{FocusGrab}, false},
	{"xi_grab_keyboard", []Kind{ReqGrabKeyboard}, []Kind{FocusGrab}, false},
	{"grab_key", []Kind{ReqGrabKey}, nil, false},
	{"master", []Kind{ReqAddMaster}, []Kind{MasterAdded}, true},
	{"clipboard", []Kind{ReqClipboard, ClipboardChanged}, nil, false},
	{"primary", []Kind{ReqPrimary, PrimaryChanged}, nil, false},
	{"keymap", []Kind{ReqKeymap}, []Kind{KeymapChanged}, false},
	{"modifiers", []Kind{ReqModifiers}, nil, false},
	{"grab_server", []Kind{ReqGrabServer, ReqFocus, ReqWarp, DeviceMotion}, []Kind{FocusOut}, true},
	{"opacity", []Kind{ReqOpacity}, []Kind{OpacityChanged}, false},
	{"shape", []Kind{ReqShape}, []Kind{ShapeChanged}, false},
	{"hide_cursor", []Kind{ReqCursor}, nil, false},
	{"overlay", []Kind{ReqOverlay}, nil, true},
	{"workspace", []Kind{SendWorkspace}, []Kind{WorkspaceChanged}, false},
	{"urgency", []Kind{ReqUrgency}, nil, false},
	{"urgency_state", []Kind{SendUrgency}, nil, false},
	{"grab_button", []Kind{ReqGrabButton}, nil, false},
	{"barrier", []Kind{ReqCursor}, nil, false},
	{"output", []Kind{ReqOutput}, []Kind{OutputChanged}, true},
	{"restack_message", []Kind{SendRestack}, []Kind{StackingChanged}, false},
	{"move_message", []Kind{SendMoveResize}, []Kind{WindowMoved}, false},
	{"read_person", []Kind{ReqRead}, nil, true},
	{"read_shm", []Kind{ReqRead}, nil, true},
	{"read_composite", []Kind{ReqRead}, nil, true},
	{"read_property", []Kind{ReqRead}, nil, true},
	{"listen", []Kind{ReqListen}, nil, false},
	{"xi_listen", []Kind{ReqListen}, nil, false},
	{"warp_swapped", []Kind{ReqWarp, DeviceMotion}, nil, true},
	{"warp_long", []Kind{ReqWarp, DeviceMotion}, nil, true},
}

// missing lists what the events do not show of an offence.
func (o offence) missing(events []Event, pid int) []string {
	seen := map[Kind]bool{}
	by := map[Kind]bool{}
	for _, ev := range events {
		if _, r := Violation(ev); r != "" || ev.Kind == WindowMapped || ev.Kind == WindowUnmapped || ev.Kind == ReqMap ||
			ev.Kind == RawTestMotion || ev.Kind == RawTestKey || ev.Kind == RawTestButton {
			seen[ev.Kind] = true
			by[ev.Kind] = by[ev.Kind] || ev.PID == pid
		}
	}
	var out []string
	for _, k := range o.requests {
		if !by[k] {
			out = append(out, fmt.Sprintf("%s by process %d", k, pid))
		}
	}
	for _, k := range o.effects {
		if !seen[k] {
			out = append(out, k.String())
		}
	}
	return out
}

// times is how often each offence is committed with each hold.
const times = 100

func TestEveryViolationIsSeen(t *testing.T) { everyViolation(t, 0, time.Millisecond) }

// The same with both cores loaded by programs that never rest, and no time between do and undo.
func TestEveryViolationIsSeenUnderLoad(t *testing.T) {
	for range runtime.NumCPU() {
		busy := exec.Command("/bin/sh", "-c", "while :; do :; done")
		startProcess(t, busy)
	}
	everyViolation(t, 0)
}

func everyViolation(t *testing.T, holds ...time.Duration) {
	g := NewWithT(t)
	s := startScene(t)
	v := s.violator(t)
	s.restore(t)
	_, err := s.log.Cover(t.Context(), s.target, s.person)
	g.Expect(err).NotTo(HaveOccurred())
	for _, o := range offences {
		holds := holds
		if o.once {
			holds = holds[:1]
		}
		for _, hold := range holds {
			t.Run(fmt.Sprintf("%s/hold_%v", o.kind, hold), func(t *testing.T) {
				g := NewWithT(t)
				ctx := t.Context()
				s.restore(t)
				seen := 0
				var last, missed []string
				for range times {
					from, err := s.log.Barrier(ctx)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(v.do(fmt.Sprintf("%s %v", o.kind, hold))).To(Succeed())
					deadline := time.Now().Add(5 * time.Second)
					for {
						to, err := s.log.Barrier(ctx)
						g.Expect(err).NotTo(HaveOccurred())
						if last = o.missing(s.log.Between(from, to), v.pid()); len(last) == 0 {
							seen++
							break
						}
						if time.Now().After(deadline) { // effects need the window manager's time
							missed = append(missed, strings.Join(last, " and "))
							break
						}
					}
					if len(o.effects) > 0 {
						_, err = s.log.Settle(ctx, 5*time.Millisecond)
						g.Expect(err).NotTo(HaveOccurred())
					}
					s.log.Release(from)
				}
				g.Expect(seen).To(Equal(times), "missed: %q", missed)
			})
		}
	}
	for _, h := range s.log.Health() {
		g.Expect(h.Alive).To(BeTrue(), h.Channel.String())
		g.Expect(h.Errors).To(BeZero(), h.Channel.String())
		g.Expect(h.Dropped).To(BeZero(), h.Channel.String())
	}
}

// A desk where nothing happens shows no violation, or the guard would accuse everybody.
func TestQuietDeskShowsNone(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	s := startScene(t)
	v := s.violator(t)
	s.restore(t)
	from, err := s.log.Barrier(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	before, err := s.log.Snapshot(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	for range times {
		g.Expect(v.do("none 0s")).To(Succeed())
		_, err := s.log.Barrier(ctx)
		g.Expect(err).NotTo(HaveOccurred())
	}
	to, err := s.log.Settle(ctx, 150*time.Millisecond)
	g.Expect(err).NotTo(HaveOccurred())
	for _, ev := range s.log.Between(from, to) {
		_, reason := Violation(ev)
		g.Expect(reason).To(BeEmpty(), "%+v", ev)
	}
	after, err := s.log.Snapshot(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(before.Compare(after)).To(BeEmpty())
	g.Expect(before.InputFocus).To(Equal(s.person))
	g.Expect(before.ActiveWindow).To(Equal(s.person))

	g.Expect(s.conn.Send(ctx, s.conn.WarpPointer(10, 11), x11.SetSelectionOwner(s.person, x11.AtomPrimary))).To(Succeed())
	g.Expect(s.conn.Sync(ctx)).To(Succeed())
	after, err = s.log.Snapshot(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	var fields []Field
	for _, d := range before.Compare(after) {
		fields = append(fields, d.Field)
	}
	g.Expect(fields).To(Equal([]Field{FieldPointer, FieldPrimary}))
}

// The covered fraction follows the person's window and every popup, also one that is gone at once, and agrees
// with plain arithmetic.
func TestCoverFollowsTheDesk(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	s := startScene(t)
	first, err := s.log.Cover(ctx, s.target, s.person)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first).To(BeNumerically("~", 0.37, 0.08)) // person 100..600 x 100..500 over target 300..800 x 250..650, frames extra

	popup, err := s.conn.CreateWindow(ctx, x11.WindowOptions{X: 0, Y: 0, Width: 1280, Height: 800, OverrideRedirect: true})
	g.Expect(err).NotTo(HaveOccurred())
	from, err := s.log.Barrier(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.conn.Send(ctx, x11.MapWindow(popup), x11.UnmapWindow(popup))).To(Succeed())
	g.Expect(s.conn.Sync(ctx)).To(Succeed())
	to, err := s.log.Barrier(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	var fractions []float64
	for _, ev := range s.log.Between(from, to) {
		if ev.Kind == CoverChanged {
			fractions = append(fractions, ev.Fraction)
			g.Expect(ev.Window).To(Equal(s.target))
		}
	}
	g.Expect(fractions).To(Equal([]float64{1, first}))

	// A window that only takes input does not cover.
	input, err := s.conn.CreateWindow(ctx, x11.WindowOptions{Width: 1280, Height: 800, OverrideRedirect: true, InputOnly: true})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.conn.Send(ctx, x11.MapWindow(input))).To(Succeed())
	g.Eventually(func() (float64, error) { return s.log.Cover(ctx, s.target, s.person) }, 5*time.Second).Should(Equal(first))

	// Off the target: nothing is covered.
	g.Expect(s.conn.Send(ctx, x11.DestroyWindow(input), x11.MoveWindow(s.person, 0, 0), x11.ResizeWindow(s.person, 100, 100))).To(Succeed())
	g.Eventually(func() (float64, error) { return s.log.Cover(ctx, s.target, s.person) }, 5*time.Second).Should(BeZero())
}

// 100,000 requests in a row: none is lost, or the log says how many.
func TestFloodIsKeptOrToldOf(t *testing.T) {
	for _, tc := range []struct {
		name     string
		capacity int
		drops    bool
	}{{"kept", 1 << 20, false}, {"told of", 1 << 13, true}} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			ctx := t.Context()
			s := startScene(t)
			v := s.violator(t)
			s.restore(t)
			g.Expect(s.log.Stop(ctx)).To(Succeed())
			log, err := Start(ctx, Config{Display: s.display, XAuthority: s.authority, Capacity: tc.capacity, CallBudget: time.Minute})
			g.Expect(err).NotTo(HaveOccurred())
			defer func() { g.Expect(log.Stop(ctx)).To(Succeed()) }()
			from, err := log.Barrier(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			began := time.Now()
			g.Expect(v.do("flood 0s")).To(Succeed())
			to, err := log.Barrier(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			moves, writes, overruns, dropped := 0, 0, 0, uint64(0)
			for _, ev := range log.Between(from, to) {
				switch {
				case ev.Kind == ReqConfigure && ev.PID == v.pid():
					moves++
				case ev.Kind == ReqProperty && ev.PID == v.pid():
					writes++
				case ev.Kind == RecordOverrun:
					overruns++
				case ev.Kind == EventsDropped:
					dropped = uint64(ev.Detail)
				}
			}
			t.Logf("%d events in %v, %d dropped; %d moves, %d writes, %d overruns", to-from, time.Since(began), dropped, moves, writes, overruns)
			if !tc.drops {
				g.Expect(dropped).To(BeZero())
				if overruns == 0 { // else the server itself may have lost requests, and the log has told it
					g.Expect(moves).To(Equal(50_000))
					g.Expect(writes).To(Equal(50_000))
				}
				return
			}
			g.Expect(dropped).To(BeNumerically(">", 80_000))
			var told uint64
			for _, h := range log.Health() {
				told += h.Dropped
			}
			g.Expect(told).To(BeNumerically(">=", dropped))
		})
	}
}

func TestHugePropertiesDoNotHideWhatFollows(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	s := startScene(t)
	v := s.violator(t)
	s.restore(t)
	from, err := s.log.Barrier(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.do("huge_property 0s")).To(Succeed())
	to, err := s.log.Barrier(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	count := map[Kind]int{}
	for _, ev := range s.log.Between(from, to) {
		if ev.PID == v.pid() {
			count[ev.Kind]++
		}
	}
	g.Expect(count[ReqProperty]).To(Equal(20))
	g.Expect(count[ReqWarp]).To(Equal(2))
}

// Messages that no program should send neither stop nor blind the guard.
func TestMalformedMessagesDoNotBlind(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	s := startScene(t)
	v := s.violator(t)
	s.restore(t)
	from, err := s.log.Barrier(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.do("malformed 0s")).To(Succeed())
	to, err := s.log.Barrier(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	warps, sent := 0, 0
	for _, ev := range s.log.Between(from, to) {
		switch {
		case ev.PID == v.pid() && ev.Kind == ReqWarp:
			warps++
		case ev.PID == v.pid() && ev.Request == "SendEvent":
			sent++
		}
	}
	g.Expect(warps).To(Equal(2))
	g.Expect(sent).To(Equal(3 * 256))
	for _, h := range s.log.Health() {
		g.Expect(h.Alive).To(BeTrue(), h.Channel.String())
		g.Expect(h.Errors).To(BeZero(), h.Channel.String())
	}
}

// A client that connects, warps and ends at once is seen each time. Its process is known as long as the server
// could be asked while it lived; the events of the others say so with PID 0.
func TestShortLivedClientsAreSeen(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	s := startScene(t)
	v := s.violator(t)
	s.restore(t)
	seen, named := 0, 0
	for range times {
		from, err := s.log.Barrier(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(v.do("warp_short_lived 0s")).To(Succeed())
		to, err := s.log.Barrier(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		warps, known := 0, false
		for _, ev := range s.log.Between(from, to) {
			if ev.Kind == ReqWarp {
				warps++
				g.Expect(ev.PID).To(Or(Equal(v.pid()), BeZero()))
				known = known || ev.PID == v.pid()
			}
		}
		if warps == 2 {
			seen++
		}
		if known {
			named++
		}
	}
	t.Logf("seen %d, process known %d of %d", seen, named, times)
	g.Expect(seen).To(Equal(times))
	g.Expect(named).To(BeNumerically(">", 0)) // how many depends on the load of the machine
}

func TestLostServerIsToldOnce(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	s := startScene(t)
	from, err := s.log.Barrier(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.server.Process.Kill()).To(Succeed())
	g.Eventually(func() int {
		alive := 0
		for _, h := range s.log.Health() {
			if h.Alive {
				alive++
			}
		}
		return alive
	}, 10*time.Second, 5*time.Millisecond).Should(BeZero())
	_, err = s.log.Barrier(ctx)
	var ch *ChannelError
	g.Expect(errors.As(err, &ch)).To(BeTrue())
	g.Expect(errors.Is(err, x11.ErrLost)).To(BeTrue())
	lost := map[Channel]int{}
	for _, ev := range s.log.Between(from, Mark(1<<62)) {
		if ev.Kind == ChannelLost {
			lost[ev.Channel]++
		}
	}
	g.Expect(lost).To(HaveLen(int(xChannels) - 1))
	for ch, n := range lost {
		g.Expect(n).To(Equal(1), ch.String())
	}
	for _, h := range s.log.Health() {
		g.Expect(h.Cause).NotTo(BeEmpty())
		g.Expect(h.LostAtNS).To(BeNumerically(">", 0))
	}
	g.Expect(s.log.Stop(ctx)).To(MatchError(x11.ErrLost))
}

// Without an extension there is no guard, and the error names the one that is absent.
func TestMissingExtensionIsNamed(t *testing.T) {
	// The server's switch for RECORD takes XTEST away too.
	for _, ext := range []string{"RECORD", "X-Resource", "XFIXES", "RANDR"} {
		t.Run(ext, func(t *testing.T) {
			g := NewWithT(t)
			d := startDesk(t, "-extension", ext)
			c := d.dial(t)
			_, err := c.Extension(t.Context(), ext)
			g.Expect(err).To(MatchError(x11.ErrNoExtension))
			_, err = Start(t.Context(), Config{Display: d.display, XAuthority: d.authority})
			var ce *ChannelError
			g.Expect(errors.As(err, &ce)).To(BeTrue(), "%v", err)
			g.Expect(ce.Extension).To(Equal(ext))
			g.Expect(err).To(MatchError(x11.ErrNoExtension))
		})
	}
}

func TestWrongCookieIsRefused(t *testing.T) {
	g := NewWithT(t)
	d := startDesk(t)
	other := d.dir + "/other"
	writeAuthority(t, other)
	_, err := Start(t.Context(), Config{Display: d.display, XAuthority: other})
	g.Expect(err).To(MatchError(x11.ErrSetup))
}

// A desk that does not come to rest is told, not waited for.
func TestSettleGivesUp(t *testing.T) {
	g := NewWithT(t)
	s := startScene(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			if s.conn.Send(ctx, s.conn.WarpPointer(int16(300+i%2), 300)) != nil || s.conn.Sync(ctx) != nil {
				return
			}
		}
	}()
	defer func() { cancel(); <-done }()
	budget, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	_, err := s.log.Settle(budget, 150*time.Millisecond)
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
}

// Events that a client makes and sends to the root change nothing in the guard's picture of the desk, and are
// charged to their maker.
func TestForgedStructureIsNotBelieved(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	s := startScene(t)
	first, err := s.log.Cover(ctx, s.target, s.person)
	g.Expect(err).NotTo(HaveOccurred())
	from, err := s.log.Barrier(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	top, err := s.conn.TopLevel(ctx, s.person)
	g.Expect(err).NotTo(HaveOccurred())
	forged := make([]byte, 32)
	forged[0] = x11.UnmapNotify
	for i, w := range []uint32{s.conn.Root(), top} {
		forged[4+4*i], forged[5+4*i], forged[6+4*i], forged[7+4*i] = byte(w), byte(w>>8), byte(w>>16), byte(w>>24)
	}
	gone := append([]byte(nil), forged...)
	gone[0] = x11.DestroyNotify
	focus := append([]byte(nil), forged...)
	focus[0], focus[1] = x11.FocusOut, 3
	focus[4], focus[5], focus[6], focus[7] = byte(s.person), byte(s.person>>8), byte(s.person>>16), byte(s.person>>24)
	g.Expect(s.conn.Send(ctx, x11.SendEvent(s.conn.Root(), x11.MaskSubstructure, 0, forged),
		x11.SendEvent(s.conn.Root(), x11.MaskSubstructure, 0, gone),
		x11.SendEvent(s.person, x11.MaskFocus, 0, focus))).To(Succeed())
	g.Expect(s.conn.Sync(ctx)).To(Succeed())
	to, err := s.log.Barrier(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	count := map[Kind]int{}
	for _, ev := range s.log.Between(from, to) {
		count[ev.Kind]++
		g.Expect(ev.Kind).NotTo(Or(Equal(CoverChanged), Equal(WindowUnmapped), Equal(WindowDestroyed), Equal(FocusOut)))
		if ev.Kind == SendOther || ev.Kind == SendInput {
			g.Expect(ev.PID).To(Equal(os.Getpid()))
		}
	}
	g.Expect(count[SentEvent]).To(BeNumerically(">=", 3))
	g.Expect(count[SendOther]).To(Equal(2))
	g.Expect(count[SendInput]).To(Equal(1))
	again, err := s.log.Cover(ctx, s.target, s.person)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(first))
}

// A client that holds the server for itself keeps the guard waiting; the guard says so within its budget, and sees the
// rest when the server is free again.
func TestHeldServerIsTold(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	s := startScene(t)
	from, err := s.log.Barrier(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.conn.Send(ctx, x11.NewRequest(36, 0))).To(Succeed())
	g.Expect(s.conn.Sync(ctx)).To(Succeed())
	budget, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err = s.log.Barrier(budget)
	var ce *ChannelError
	g.Expect(errors.As(err, &ce)).To(BeTrue(), "%v", err)
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
	g.Expect(s.conn.Send(ctx, s.conn.WarpPointer(5, 5), x11.NewRequest(37, 0))).To(Succeed())
	to, err := s.log.Barrier(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	var kinds []Kind
	for _, ev := range s.log.Between(from, to) {
		kinds = append(kinds, ev.Kind)
	}
	g.Expect(kinds).To(ContainElements(ReqGrabServer, ReqWarp, DeviceMotion))
}

// Resources of every guard are given back: connections, goroutines and the server's own.
func TestStopLeavesNothing(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	d := startDesk(t)
	c := d.dial(t)
	_, err := c.UseResource(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	clients := func() int {
		list, err := c.Clients(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		return len(list)
	}
	before, routines := clients(), runtime.NumGoroutine()
	for range 5 {
		log, err := Start(ctx, Config{Display: d.display, XAuthority: d.authority})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(log.Stop(ctx)).To(Succeed())
		for _, h := range log.Health() {
			g.Expect(h.Cause).To(BeEmpty())
		}
	}
	g.Eventually(clients, 5*time.Second).Should(Equal(before))
	g.Eventually(runtime.NumGoroutine, 5*time.Second).Should(BeNumerically("<=", routines))
}
