package x11

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestCallGetsItsReplyAfterTheEventsBeforeIt(t *testing.T) {
	g := NewWithT(t)
	c := serve(t, func(nc net.Conn) {
		if _, err := readRequest(nc); err != nil {
			return
		}
		long := frame(GenericEvent|0x80, 0, 64)
		long[95] = 7
		out := append(frame(PropertyNotify, 0, 0)[:32], long...)
		out[4] = 0
		_, _ = nc.Write(append(out, frame(1, 1, 8)...))
	})
	var events []Event
	c.Handle(Handler{Event: func(e Event) {
		e.B = append([]byte(nil), e.B...)
		events = append(events, e)
	}})
	r, err := c.Call(t.Context(), NewRequest(43, 0))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Total).To(Equal(40))
	g.Expect(events).To(HaveLen(2))
	g.Expect(events[0].Code).To(Equal(byte(PropertyNotify)))
	g.Expect(events[0].SendEvent).To(BeFalse())
	g.Expect(events[1].SendEvent).To(BeTrue())
	g.Expect(events[1].Total).To(Equal(96))
	g.Expect(events[1].U8(95)).To(Equal(byte(7)))
}

func TestErrorsAreTyped(t *testing.T) {
	g := NewWithT(t)
	c := serve(t, func(nc net.Conn) {
		for seq := uint16(1); ; seq++ {
			q, err := readRequest(nc)
			if err != nil {
				return
			}
			e := frame(0, seq, 0)
			e[1], e[10] = BadWindow, q[0]
			le.PutUint32(e[4:], 77)
			if _, err := nc.Write(e); err != nil {
				return
			}
		}
	})
	stray := make(chan *XError, 1)
	c.Handle(Handler{Error: func(e *XError) { stray <- e }})
	_, err := c.Geometry(t.Context(), 77)
	var x *XError
	g.Expect(errors.As(err, &x)).To(BeTrue())
	g.Expect(*x).To(Equal(XError{Code: BadWindow, Major: 14, Value: 77, Sequence: 1}))
	g.Expect(IsGone(err)).To(BeTrue())
	g.Expect(c.Send(t.Context(), MapWindow(77))).To(Succeed())
	g.Eventually(stray, 5*time.Second).Should(Receive(HaveField("Major", byte(8))))
}

func TestOneRequestManyReplies(t *testing.T) {
	g := NewWithT(t)
	c := serve(t, func(nc net.Conn) {
		if _, err := readRequest(nc); err != nil {
			return
		}
		for range 3 {
			if _, err := nc.Write(frame(1, 1, 4)); err != nil {
				return
			}
		}
	})
	got := make(chan error, 10)
	g.Expect(c.Stream(t.Context(), NewRequest(130, 5), func(r Reply, err error) { got <- err })).To(Succeed())
	for range 3 {
		g.Eventually(got, 5*time.Second).Should(Receive(BeNil()))
	}
	g.Eventually(got, 5*time.Second).Should(Receive(MatchError(ErrLost)))
	g.Expect(got).To(BeEmpty())
}

func TestLossIsToldOnce(t *testing.T) {
	g := NewWithT(t)
	c := serve(t, func(nc net.Conn) { _, _ = readRequest(nc) })
	lost := make(chan error, 4)
	c.Handle(Handler{Lost: func(err error) { lost <- err }})
	_, err := c.Call(t.Context(), NewRequest(43, 0))
	g.Expect(err).To(MatchError(ErrLost))
	g.Eventually(c.Done(), 5*time.Second).Should(BeClosed())
	g.Expect(c.Send(t.Context(), MapWindow(1))).To(MatchError(ErrLost))
	_, err = c.Call(t.Context(), NewRequest(43, 0))
	g.Expect(err).To(MatchError(ErrLost))
	g.Expect(c.Close()).To(Succeed())
	g.Expect(lost).To(HaveLen(1))
	g.Expect(c.Err()).To(MatchError(ErrLost))
	late := make(chan error, 1)
	c.Handle(Handler{Lost: func(err error) { late <- err }})
	g.Expect(late).To(BeEmpty())
}

func TestCallHasABudget(t *testing.T) {
	g := NewWithT(t)
	c := serve(t, func(nc net.Conn) {
		for {
			if _, err := readRequest(nc); err != nil {
				return
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := c.Call(ctx, NewRequest(43, 0))
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
	g.Expect(c.Err()).NotTo(HaveOccurred())
}

func TestGiantFramesAreCut(t *testing.T) {
	g := NewWithT(t)
	const extra = 4 * MaxFrame
	c := serve(t, func(nc net.Conn) {
		if _, err := readRequest(nc); err != nil {
			return
		}
		_, _ = nc.Write(append(frame(1, 1, extra), frame(PropertyNotify, 1, 0)...))
		_, _ = readRequest(nc)
	})
	after := make(chan byte, 1)
	c.Handle(Handler{Event: func(e Event) { after <- e.Code }})
	r, err := c.Call(t.Context(), NewRequest(20, 0))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.B).To(HaveLen(MaxFrame))
	g.Expect(r.Total).To(Equal(32 + extra))
	g.Eventually(after, 5*time.Second).Should(Receive(Equal(byte(PropertyNotify)))) // still in step
}

func TestAnImpossibleLengthEndsTheConnection(t *testing.T) {
	g := NewWithT(t)
	c := serve(t, func(nc net.Conn) {
		if _, err := readRequest(nc); err != nil {
			return
		}
		b := frame(1, 1, 0)
		le.PutUint32(b[4:], 0xffffffff)
		_, _ = nc.Write(b)
		_, _ = readRequest(nc)
	})
	_, err := c.Call(t.Context(), NewRequest(43, 0))
	g.Expect(err).To(MatchError(ErrTooLarge))
	g.Expect(err).To(MatchError(ErrLost))
}

func TestTooLongRequestsAreRefused(t *testing.T) {
	g := NewWithT(t)
	c := serve(t, func(nc net.Conn) { _, _ = readRequest(nc) })
	err := c.Send(t.Context(), ChangeProperty(1, 2, 3, 8, make([]byte, 1<<20)))
	g.Expect(err).To(MatchError(ErrTooLarge))
	g.Expect(c.Err()).NotTo(HaveOccurred())
}

func TestFrameWalkCountsForAnyChunking(t *testing.T) {
	g := NewWithT(t)
	var stream []byte
	stream = append(stream, frame(PropertyNotify, 0, 0)...)
	stream = append(stream, frame(1, 1, 44)...)
	stream = append(stream, frame(GenericEvent, 1, 8)...)
	stream = append(stream, frame(0, 1, 0)...)
	for size := 1; size <= len(stream); size++ {
		var w frameWalk
		n := 0
		for b := stream; len(b) > 0; b = b[min(size, len(b)):] {
			n += w.walk(b[:min(size, len(b))])
		}
		g.Expect(n).To(Equal(4), "chunks of %d", size)
		g.Expect(w.skip).To(BeZero())
		g.Expect(w.have).To(BeZero())
	}
}
