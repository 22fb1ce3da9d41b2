package xwire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
)

func TestAuthority_round_trip(t *testing.T) {
	g := NewWithT(t)
	cookie := bytes.Repeat([]byte{7}, 16)
	b := AppendAuthority(AppendAuthority(nil, "3", []byte("other")), "12", cookie)
	g.Expect(findCookie(b, "12")).To(Equal(cookie))
	_, err := findCookie(b, "4")
	g.Expect(err).To(MatchError(errNoCookie))
	g.Expect(findCookie(AppendAuthority(nil, "", cookie), "99")).To(Equal(cookie), "an entry for any display")
	for i := range b { // cut anywhere: an error or a cookie, never a panic
		_, _ = findCookie(b[:i], "12")
	}
}

func TestDial_wants_a_local_display(t *testing.T) {
	for _, d := range []string{"", "host:1", ":x", ":70000", "1"} {
		_, err := Dial(t.Context(), d, "")
		var ae *AddressError
		NewWithT(t).Expect(errors.As(err, &ae)).To(BeTrue(), d)
	}
}

func TestRequest_is_padded_and_counted(t *testing.T) {
	g := NewWithT(t)
	b := Req(16, 0).U16(5, 0).Bytes([]byte("ATOM1")).bytes()
	g.Expect(b).To(HaveLen(16))
	g.Expect(le.Uint16(b[2:])).To(Equal(uint16(4)))
}

// server plays the server's side of a connection: it sends what a hostile one might.
func server(t *testing.T, play func(net.Conn)) *Conn {
	ours, theirs := net.Pipe()
	c := &Conn{nc: ours, calls: map[uint16]chan result{}, wake: make(chan struct{}, 1), done: make(chan struct{}), atoms: map[string]uint32{}}
	go func() { play(theirs); theirs.Close() }()
	go c.read(ours)
	t.Cleanup(func() { c.Close() })
	return c
}

func reply(seq uint16, extra uint32) []byte {
	b := make([]byte, 32)
	b[0] = 1
	le.PutUint16(b[2:], seq)
	le.PutUint32(b[4:], extra)
	return b
}

func read(c net.Conn) { _, _ = c.Read(make([]byte, 4096)) }

func TestConn_ends_with_an_oversized_message(t *testing.T) {
	g := NewWithT(t)
	c := server(t, func(nc net.Conn) { read(nc); nc.Write(reply(1, 1<<30)) })
	_, err := c.Focus(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("more than " + strconv.Itoa(maxReply))))
	<-c.Done()
}

func TestConn_fails_open_calls_when_the_server_goes(t *testing.T) {
	g := NewWithT(t)
	c := server(t, func(nc net.Conn) { read(nc); nc.Write(make([]byte, 7)) })
	_, err := c.Focus(t.Context())
	g.Expect(err).To(HaveOccurred())
	_, err = c.Focus(t.Context())
	g.Expect(err).To(HaveOccurred())
}

func TestConn_keeps_the_send_event_bit_and_the_order(t *testing.T) {
	g := NewWithT(t)
	c := server(t, func(nc net.Conn) {
		read(nc)
		ev := make([]byte, 32)
		ev[0] = 2 | 0x80
		generic := make([]byte, 40)
		generic[0], generic[4] = 35, 2
		nc.Write(append(append(ev, generic...), reply(1, 0)...))
		read(nc)
	})
	_, err := c.Focus(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	q := c.Take()
	g.Expect(q).To(HaveLen(2))
	g.Expect(q[0].Kind).To(Equal(byte(2)))
	g.Expect(q[0].Sent).To(BeTrue())
	g.Expect(q[1].Raw).To(HaveLen(40))
	g.Expect(q[1].Sent).To(BeFalse())
}

func TestConn_gives_up_a_call_with_its_context(t *testing.T) {
	g := NewWithT(t)
	c := server(t, func(nc net.Conn) { read(nc); read(nc) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Focus(ctx)
	g.Expect(err).To(MatchError(context.Canceled))
}

func FuzzParseSetup(f *testing.F) {
	ok := make([]byte, 32+8+8+40)
	binary.LittleEndian.PutUint16(ok[16:], 5)
	ok[20], ok[21] = 1, 1
	f.Add(ok)
	f.Add([]byte{})
	f.Add(ok[:40])
	f.Fuzz(func(t *testing.T, b []byte) { _ = new(Conn).parseSetup(b) })
}

func TestRect(t *testing.T) {
	g := NewWithT(t)
	a := Rect{0, 0, 10, 10}
	g.Expect(a.Overlap(Rect{5, 5, 10, 10})).To(Equal(25))
	g.Expect(a.Overlap(Rect{10, 0, 5, 5})).To(BeZero())
	g.Expect(a.Contains(Rect{2, 2, 8, 8})).To(BeTrue())
	g.Expect(a.Contains(Rect{2, 2, 9, 8})).To(BeFalse())
}
