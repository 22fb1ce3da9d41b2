package x11

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// goodSetup is the setup block of a small but complete server.
func goodSetup() (header, body []byte) {
	vendor := "test server"
	body = make([]byte, 32)
	le.PutUint32(body[4:], 0x200000)
	le.PutUint32(body[8:], 0x1fffff)
	le.PutUint16(body[16:], uint16(len(vendor)))
	le.PutUint16(body[18:], 65535)
	body[20], body[21], body[26], body[27] = 1, 1, 8, 255
	body = pad4(append(body, vendor...))
	body = append(body, make([]byte, 8)...) // one format
	screen := make([]byte, 40)
	le.PutUint32(screen, 0x500)
	le.PutUint16(screen[20:], 1280)
	le.PutUint16(screen[22:], 800)
	body = append(body, screen...)
	header = []byte{1, 0, 11, 0, 0, 0, 0, 0}
	le.PutUint16(header[6:], uint16(len(body)/4))
	return header, body
}

// serve connects to a server that is played by script. The script gets the server's end after the setup.
func serve(t *testing.T, script func(nc net.Conn)) *Conn {
	t.Helper()
	g := NewWithT(t)
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer theirs.Close()
		if _, err := io.ReadFull(theirs, make([]byte, 12)); err != nil {
			return
		}
		header, body := goodSetup()
		if _, err := theirs.Write(append(header, body...)); err != nil {
			return
		}
		script(theirs)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	c, err := newConn(ctx, ours, "", nil)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = c.Close(); <-done })
	return c
}

func readRequest(nc net.Conn) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(nc, head); err != nil {
		return nil, err
	}
	b := make([]byte, 4*int(binary.LittleEndian.Uint16(head[2:])))
	copy(b, head)
	_, err := io.ReadFull(nc, b[4:])
	return b, err
}

func frame(code byte, seq uint16, extra int) []byte {
	b := make([]byte, 32+extra)
	b[0] = code
	le.PutUint16(b[2:], seq)
	le.PutUint32(b[4:], uint32(extra/4))
	return b
}
