package attempt

import (
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
)

func TestWireTap_hears_what_one_port_answers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a packet socket needs the superuser")
	}
	g := gomega.NewWithT(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer l.Close()
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	const issued, told, cut = "5B1F2A524C0E4B7E9A530D8F3C1F7A11", "00112233445566778899AABBCCDDEEFF", "F0E1D2C3B4A5968778695A4B3C2D1E0F"
	w, err := tapWire(port)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	stop := make(chan struct{})
	go w.listen(stop)
	served := make(chan struct{})
	go func() {
		defer close(served)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.ReadFull(c, make([]byte, len(told)))
		_, _ = io.WriteString(c, "{\"id\":\""+issued+"\"}")
		_, _ = io.WriteString(c, strings.Repeat("x", 50_000)+cut[:11])
		time.Sleep(20 * time.Millisecond) // so that it goes in another packet
		_, _ = io.WriteString(c, cut[11:])
	}()
	c, err := net.Dial("tcp4", l.Addr().String())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = io.WriteString(c, told)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = io.ReadAll(c)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_ = c.Close()
	<-served
	close(stop)
	<-w.done
	tokens, heard, err := w.found()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(heard).To(gomega.BeNumerically(">", 50_000))
	g.Expect(tokens).To(gomega.ConsistOf(issued, cut), "what goes to the port is the engine's own")
}

func TestAnswer_takes_no_packet_that_is_none(t *testing.T) {
	g := gomega.NewWithT(t)
	for _, packet := range [][]byte{nil, {0x45}, make([]byte, 40), {0x4f, 9: 6, 19: 0}, {0x45, 9: 6, 20: 0x10, 21: 0x92, 32: 0xf0, 39: 0}, {0x45, 9: 17, 20: 0x10, 21: 0x92, 45: 0}} {
		_, _, ok := answer(packet, 0x1092)
		g.Expect(ok).To(gomega.BeFalse(), "%x", packet)
	}
	to, payload, ok := answer([]byte{0: 0x45, 9: 6, 20: 0x10, 21: 0x92, 22: 1, 23: 2, 32: 0x50, 40: 'h', 41: 'i'}, 0x1092)
	g.Expect(ok).To(gomega.BeTrue())
	g.Expect(to).To(gomega.BeEquivalentTo(0x102))
	g.Expect(string(payload)).To(gomega.Equal("hi"))
}
