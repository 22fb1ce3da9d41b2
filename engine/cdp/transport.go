package cdp

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/chromedp"
)

// Limits of the wire. Chromium's own limit for one incoming message is 100 MiB; what it sends in answer to our calls stays far below ours.
const (
	// MaxMessage is the greatest message that is read, in bytes.
	MaxMessage = 64 << 20
	// maxFragments is the greatest number of frames of one message.
	maxFragments = 1 << 14
	// maxHandshake bounds the answer to the upgrade request, in bytes.
	maxHandshake = 8 << 10
	// readStep is how far the buffer grows before the bytes are there, in bytes: a header alone allocates no more.
	readStep = 1 << 20
	// keepBuffer is the greatest buffer kept between messages, in bytes.
	keepBuffer = 4 << 20
	// writeBudget bounds one write: a browser that is stopped fills the socket.
	writeBudget = 5 * time.Second
)

// websocketGUID is the constant of RFC 6455, section 1.3.
const websocketGUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

// The opcodes of RFC 6455, section 5.2.
const (
	opContinuation = 0x0
	opText         = 0x1
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xa
)

var _ chromedp.Transport = (*wire)(nil)

// wire is a websocket client with bounded reading; it implements chromedp.Transport. One goroutine reads; any may write or close.
type wire struct {
	conn net.Conn
	br   *bufio.Reader
	tap  func(WireEvent)

	buf []byte // the reader's

	writeMu sync.Mutex
	out     []byte

	closeOnce sync.Once
	closeErr  error
}

// WireEvent is one protocol message, redacted by structure: neither parameters nor results, and ids only as digests.
type WireEvent struct {
	// Sent is true for what we sent, false for what the browser sent.
	Sent bool
	// Method is empty for a reply.
	Method string
	ID     int64
	// Session is the first 8 bytes of the SHA-256 of the session id in hex, empty at browser level.
	Session string
	// Bytes is the size of the JSON text.
	Bytes int
	// Failed says that a reply carries an error.
	Failed bool
}

// dialWire connects to a loopback websocket. wrap may be nil.
func dialWire(ctx context.Context, addr netip.AddrPort, path string, wrap func(net.Conn) net.Conn, tap func(WireEvent)) (*wire, error) {
	if !addr.Addr().IsLoopback() {
		return nil, fmt.Errorf("dial %v: not loopback", addr)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr.String())
	if err != nil {
		return nil, err
	}
	if wrap != nil {
		conn = wrap(conn)
	}
	w := &wire{conn: conn, br: bufio.NewReaderSize(conn, 64<<10), tap: tap}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	err = w.handshake(addr, path)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return w, nil
}

// handshake upgrades the connection. No Origin is sent: Chromium answers 403 to any.
func (w *wire) handshake(addr netip.AddrPort, path string) error {
	var nonce [16]byte
	rand.Read(nonce[:])
	key := base64.StdEncoding.EncodeToString(nonce[:])
	if _, err := fmt.Fprintf(w.conn, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n\r\n",
		path, addr, key); err != nil {
		return err
	}
	total := 0
	accepted := false
	for first := true; ; first = false {
		line, err := w.br.ReadSlice('\n')
		if total += len(line); err != nil || total > maxHandshake {
			return violation("upgrade answer: %v after %d bytes", err, total)
		}
		text := strings.TrimRight(string(line), "\r\n")
		if first {
			if !strings.HasPrefix(text, "HTTP/1.1 101") {
				return violation("upgrade answer is no 101")
			}
			continue
		}
		if text == "" {
			break
		}
		name, value, _ := strings.Cut(text, ":")
		switch {
		case strings.EqualFold(name, "Sec-WebSocket-Accept"):
			sum := sha1.Sum([]byte(key + websocketGUID))
			accepted = strings.TrimSpace(value) == base64.StdEncoding.EncodeToString(sum[:])
		case strings.EqualFold(name, "Sec-WebSocket-Extensions"):
			return violation("upgrade answer has an extension that was not asked for")
		}
	}
	if !accepted {
		return violation("upgrade answer has no matching accept key")
	}
	return nil
}

// Read reads the next message into msg. Every fault ends the connection; what the peer did wrong wraps errViolation.
func (w *wire) Read(_ context.Context, msg *cdproto.Message) error {
	data, err := w.readMessage()
	if err != nil {
		return err
	}
	*msg = cdproto.Message{}
	if err := jsonv2.Unmarshal(data, msg, chromedp.DefaultUnmarshalOptions); err != nil {
		return violation("message of %d bytes does not decode", len(data))
	}
	if msg.ID == 0 && msg.Method == "" {
		return violation("message has neither id nor method")
	}
	if w.tap != nil {
		w.tap(WireEvent{Method: string(msg.Method), ID: msg.ID, Session: digest(string(msg.SessionID)), Bytes: len(data), Failed: msg.Error != nil})
	}
	return nil
}

// Write sends one message as one frame; Chromium reads no fragments.
func (w *wire) Write(_ context.Context, msg *cdproto.Message) error {
	data, err := jsonv2.Marshal(msg, chromedp.DefaultMarshalOptions)
	if err != nil {
		return fmt.Errorf("encode %s: %w", msg.Method, err)
	}
	if w.tap != nil {
		w.tap(WireEvent{Sent: true, Method: string(msg.Method), ID: msg.ID, Session: digest(string(msg.SessionID)), Bytes: len(data)})
	}
	return w.writeFrame(opText, data)
}

// Close closes the connection. It is safe to call more than once.
func (w *wire) Close() error {
	w.closeOnce.Do(func() { w.closeErr = w.conn.Close() })
	return w.closeErr
}

func (w *wire) writeFrame(op byte, payload []byte) error {
	w.writeMu.Lock()
	defer w.writeMu.Unlock()
	b := append(w.out[:0], 0x80|op)
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = append(b, 0x80|126)
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	default:
		b = append(b, 0x80|127)
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	var mask [4]byte
	rand.Read(mask[:])
	b = append(b, mask[:]...)
	start := len(b)
	b = append(b, payload...)
	for i := range payload {
		b[start+i] ^= mask[i&3]
	}
	if w.out = b; cap(b) > keepBuffer {
		w.out = nil
	}
	w.conn.SetWriteDeadline(time.Now().Add(writeBudget))
	if _, err := w.conn.Write(b); err != nil {
		// A frame that left in part cannot be repaired.
		w.Close()
		return fmt.Errorf("%w: write: %v", errLost, err)
	}
	return nil
}

// readMessage joins the frames of one text message. The bytes are valid until the next call.
func (w *wire) readMessage() ([]byte, error) {
	if cap(w.buf) > keepBuffer {
		w.buf = nil
	}
	w.buf = w.buf[:0]
	open := false
	for range maxFragments {
		var h [14]byte
		if _, err := io.ReadFull(w.br, h[:2]); err != nil {
			return nil, readError(err)
		}
		fin, op, n := h[0]&0x80 != 0, h[0]&0x0f, uint64(h[1]&0x7f)
		if h[0]&0x70 != 0 || h[1]&0x80 != 0 {
			return nil, violation("frame with reserved bits or a mask")
		}
		switch n {
		case 126:
			if _, err := io.ReadFull(w.br, h[2:4]); err != nil {
				return nil, readError(err)
			}
			n = uint64(binary.BigEndian.Uint16(h[2:4]))
		case 127:
			if _, err := io.ReadFull(w.br, h[2:10]); err != nil {
				return nil, readError(err)
			}
			n = binary.BigEndian.Uint64(h[2:10])
		}
		if op >= opClose {
			if err := w.control(op, fin, n); err != nil {
				return nil, err
			}
			continue
		}
		if (op == opContinuation) != open || (op != opContinuation && op != opText) {
			return nil, violation("frame of kind %d out of place", op)
		}
		open = true
		if n > MaxMessage || uint64(len(w.buf))+n > MaxMessage {
			return nil, violation("message is larger than %d bytes", MaxMessage)
		}
		if err := w.readPayload(int(n)); err != nil {
			return nil, err
		}
		if !fin {
			continue
		}
		if !utf8.Valid(w.buf) {
			return nil, violation("message is not UTF-8")
		}
		return w.buf, nil
	}
	return nil, violation("message has more than %d frames", maxFragments)
}

func (w *wire) readPayload(n int) error {
	for n > 0 {
		step := min(n, readStep)
		at := len(w.buf)
		if cap(w.buf)-at < step {
			grown := make([]byte, at, max(2*cap(w.buf), at+step))
			copy(grown, w.buf)
			w.buf = grown
		}
		w.buf = w.buf[:at+step]
		if _, err := io.ReadFull(w.br, w.buf[at:]); err != nil {
			return readError(err)
		}
		n -= step
	}
	return nil
}

func (w *wire) control(op byte, fin bool, n uint64) error {
	if !fin || n > 125 {
		return violation("control frame of %d bytes, fin %t", n, fin)
	}
	var payload [125]byte
	if _, err := io.ReadFull(w.br, payload[:n]); err != nil {
		return readError(err)
	}
	switch op {
	case opPing:
		return w.writeFrame(opPong, payload[:n])
	case opPong:
		return nil
	case opClose:
		w.writeFrame(opClose, payload[:min(n, 2)])
		return fmt.Errorf("%w: closed by the browser", errLost)
	}
	return violation("control frame of kind %d", op)
}

func readError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return fmt.Errorf("%w: %v", errLost, err)
}

func digest(s string) string {
	if s == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// parseEndpoint reads the content of DevToolsActivePort: the port and the path of the browser's websocket, two lines.
func parseEndpoint(content string) (netip.AddrPort, string, error) {
	lines := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	if len(lines) != 2 {
		return netip.AddrPort{}, "", fmt.Errorf("endpoint file has %d lines, want 2", len(lines))
	}
	port, err := strconv.ParseUint(lines[0], 10, 16)
	if err != nil || port == 0 {
		return netip.AddrPort{}, "", fmt.Errorf("endpoint file: port %q", lines[0])
	}
	id, ok := strings.CutPrefix(lines[1], "/devtools/browser/")
	if !ok || len(id) != 36 || strings.Trim(id, "0123456789abcdef-") != "" {
		return netip.AddrPort{}, "", errors.New("endpoint file: path is not a browser's")
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)), lines[1], nil
}
