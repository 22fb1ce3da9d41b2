package cdp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/target"
	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
)

// frame encodes one unmasked frame, as a server sends it.
func frame(op byte, fin bool, payload []byte) []byte {
	b := []byte{op, 0}
	if fin {
		b[0] |= 0x80
	}
	switch n := len(payload); {
	case n < 126:
		b[1] = byte(n)
	case n < 1<<16:
		b[1] = 126
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	default:
		b[1] = 127
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return append(b, payload...)
}

// reading is a connection that plays bytes and swallows what is written.
type reading struct {
	net.Conn
	r io.Reader
}

func (c reading) Read(p []byte) (int, error)       { return c.r.Read(p) }
func (c reading) Write(p []byte) (int, error)      { return len(p), nil }
func (c reading) Close() error                     { return nil }
func (c reading) SetWriteDeadline(time.Time) error { return nil }

func wireOf(r io.Reader) *wire {
	return &wire{conn: reading{r: r}, br: bufio.NewReaderSize(r, 64<<10)}
}

// endless repeats bytes without end.
type endless []byte

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e)
	}
	return n, nil
}

func TestWireRead(t *testing.T) {
	ok := []byte(`{"id":1,"result":{}}`)
	nested := []byte(`{"id":1,"result":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`)
	for name, c := range map[string]struct {
		in   io.Reader
		want error // nil: the message is read
	}{
		"one":               {bytes.NewReader(frame(opText, true, ok)), nil},
		"fragments":         {bytes.NewReader(append(frame(opText, false, ok[:5]), frame(opContinuation, true, ok[5:])...)), nil},
		"ping_between":      {bytes.NewReader(append(append(frame(opText, false, ok[:5]), frame(opPing, true, []byte("x"))...), frame(opContinuation, true, ok[5:])...)), nil},
		"end":               {bytes.NewReader(nil), errLost},
		"half_header":       {bytes.NewReader([]byte{0x81}), errLost},
		"half_payload":      {bytes.NewReader(frame(opText, true, ok)[:9]), errLost},
		"close":             {bytes.NewReader(frame(opClose, true, []byte{3, 232})), errLost},
		"not_json":          {bytes.NewReader(frame(opText, true, []byte("{\"id\":"))), errViolation},
		"array":             {bytes.NewReader(frame(opText, true, []byte("[]"))), errViolation},
		"no_id":             {bytes.NewReader(frame(opText, true, []byte("{}"))), errViolation},
		"wrong_type":        {bytes.NewReader(frame(opText, true, []byte(`{"id":"x"}`))), errViolation},
		"deep":              {bytes.NewReader(frame(opText, true, nested)), errViolation},
		"not_utf8":          {bytes.NewReader(frame(opText, true, []byte("\xff"))), errViolation},
		"binary":            {bytes.NewReader(frame(2, true, ok)), errViolation},
		"masked":            {bytes.NewReader([]byte{0x81, 0x80, 0, 0, 0, 0}), errViolation},
		"reserved":          {bytes.NewReader([]byte{0xc1, 0}), errViolation},
		"continuation_only": {bytes.NewReader(frame(opContinuation, true, ok)), errViolation},
		"text_in_text":      {bytes.NewReader(append(frame(opText, false, ok), frame(opText, true, ok)...)), errViolation},
		"long_ping":         {bytes.NewReader([]byte{0x89, 126, 1, 0}), errViolation},
		"declared_huge":     {bytes.NewReader([]byte{0x81, 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}), errViolation},
		"endless_empty":     {endless(frame(opContinuation, false, nil)), errViolation},
		"endless_pings":     {endless(frame(opPing, true, nil)), errViolation},
		"endless_fragments": {io.MultiReader(bytes.NewReader(frame(opText, false, nil)), endless(frame(opContinuation, false, make([]byte, 65_000)))), errViolation},
	} {
		t.Run(name, func(t *testing.T) {
			var msg cdproto.Message
			err := wireOf(c.in).Read(t.Context(), &msg)
			if c.want == nil {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				NewWithT(t).Expect(msg.ID).To(Equal(int64(1)))
				return
			}
			NewWithT(t).Expect(err).To(MatchError(c.want))
		})
	}
}

// TestDeclaredSizeAllocatesNothing: a header that announces 64 MiB costs only the bytes that come.
func TestDeclaredSizeAllocatesNothing(t *testing.T) {
	g := NewWithT(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		header := binary.BigEndian.AppendUint64([]byte{0x81, 127}, MaxMessage)
		g.Expect(wireOf(bytes.NewReader(header)).Read(t.Context(), &cdproto.Message{})).To(MatchError(errLost))
	}
	runtime.ReadMemStats(&after)
	g.Expect(after.TotalAlloc - before.TotalAlloc).To(BeNumerically("<", 100*(2*readStep)))
}

func FuzzWireRead(f *testing.F) {
	f.Add(frame(opText, true, []byte(`{"id":1,"result":{}}`)))
	f.Add(append(frame(opText, false, []byte(`{"method":`)), frame(opContinuation, true, []byte(`"Page.loadEventFired","params":{}}`))...))
	f.Add(frame(opText, true, []byte(`{"method":"Page.frameNavigated","sessionId":"s","params":{"frame":null}}`)))
	f.Add(frame(opText, true, []byte(`{"method":"Target.attachedToTarget","params":{"sessionId":"s","targetInfo":{"type":"page","targetId":"t"}}}`)))
	f.Add(frame(opPing, true, []byte("x")))
	f.Fuzz(func(t *testing.T, data []byte) {
		w := wireOf(bytes.NewReader(data))
		l := &link{w: w, sessions: map[target.SessionID]*session{}, targets: map[target.ID]*session{}, changed: make(chan struct{}), lost: make(chan struct{}), cancel: func() {}}
		s := newSession(l, "s", "p", nil)
		close(s.ready)
		l.sessions["s"] = s
		for {
			var msg cdproto.Message
			err := l.Read(t.Context(), &msg)
			if err == nil {
				continue
			}
			if !errors.Is(err, errLost) && !errors.Is(err, errViolation) {
				t.Fatalf("an error of no kind: %v", err)
			}
			if !closed(l.lost) {
				t.Fatal("the connection did not end")
			}
			return
		}
	})
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// serve plays a browser's websocket: each connection is upgraded and given to f.
func serve(t *testing.T, f func(net.Conn, *bufio.Reader)) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				br := bufio.NewReader(c)
				req, err := http.ReadRequest(br)
				if err != nil {
					return
				}
				sum := sha1.Sum([]byte(req.Header.Get("Sec-WebSocket-Key") + websocketGUID))
				fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]))
				f(c, br)
			}()
		}
	}()
	return netip.MustParseAddrPort(l.Addr().String())
}

func TestDialRefuses(t *testing.T) {
	g := NewWithT(t)
	_, err := dialWire(t.Context(), netip.MustParseAddrPort("192.0.2.1:80"), "/", nil, nil)
	g.Expect(err).To(MatchError(ContainSubstring("not loopback")))
	for name, answer := range map[string]string{
		"no_upgrade": "HTTP/1.1 403 Forbidden\r\n\r\n",
		"wrong_key":  "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: x\r\n\r\n",
		"endless":    "HTTP/1.1 101 Switching Protocols\r\n" + strings.Repeat("X: y\r\n", 4000),
		"long_line":  "HTTP/1.1 101 " + strings.Repeat("x", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			defer l.Close()
			go func() {
				if c, err := l.Accept(); err == nil {
					http.ReadRequest(bufio.NewReader(c))
					io.WriteString(c, answer)
					io.Copy(io.Discard, c)
				}
			}()
			_, err = dialWire(t.Context(), netip.MustParseAddrPort(l.Addr().String()), "/", nil, nil)
			NewWithT(t).Expect(err).To(MatchError(errViolation))
		})
	}
}

// TestDialBudget: a listener that says nothing costs the budget and no more.
func TestDialBudget(t *testing.T) {
	g := NewWithT(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = dialWire(ctx, netip.MustParseAddrPort(l.Addr().String()), "/", nil, nil)
	g.Expect(err).To(HaveOccurred())
	g.Expect(time.Since(start)).To(BeNumerically("<", time.Second))
}

// TestEventsNeverDelayReplies: 200,000 events that nobody reads come before a reply.
func TestEventsNeverDelayReplies(t *testing.T) {
	g := NewWithT(t)
	event := frame(opText, true, []byte(`{"method":"Target.targetInfoChanged","params":{"targetInfo":{"targetId":"x","type":"page","title":"","url":"","attached":false,"canAccessOpener":false}}}`))
	addr := serve(t, func(c net.Conn, br *bufio.Reader) {
		w := bufio.NewWriter(c)
		for id := 1; ; id++ {
			var h [14]byte
			if _, err := io.ReadFull(br, h[:2]); err != nil {
				return
			}
			n := int(h[1] & 0x7f)
			if n == 126 {
				io.ReadFull(br, h[2:4])
				n = int(binary.BigEndian.Uint16(h[2:4]))
			}
			io.CopyN(io.Discard, br, int64(n+4))
			if id > 2 {
				for range 200_000 {
					w.Write(event)
				}
			}
			w.Write(frame(opText, true, fmt.Appendf(nil, `{"id":%d,"result":{}}`, id)))
			w.Flush()
		}
	})
	var seen int
	w, err := dialWire(t.Context(), addr, "/", nil, func(e WireEvent) { seen++ })
	g.Expect(err).NotTo(HaveOccurred())
	l, err := newLink(t.Context(), w, 0, func(string, ...any) {})
	g.Expect(err).NotTo(HaveOccurred())
	defer l.Close()
	g.Expect(l.Call(t.Context(), "Browser.getVersion", nil, nil)).To(Succeed())
	g.Expect(seen).To(BeNumerically(">", 200_000))
}

func TestRefuseNamesEveryFault(t *testing.T) {
	for fault, want := range map[error]string{errDialog: "dialog", errViolation: "protocol_violation", errLost: "generation_changed", errGone: "tab_gone",
		errCrashed: "tab_gone", errNavigated: "ref_retired", errNode: "ref_retired", context.DeadlineExceeded: "unresponsive", io.EOF: "unresponsive"} {
		r := refuse(engine.OpClick, engine.ActionClick, engine.RouteKeyboard, fmt.Errorf("wrapped: %w", fault))
		NewWithT(t).Expect(r.Trigger).To(Equal(want), fault.Error())
	}
}
