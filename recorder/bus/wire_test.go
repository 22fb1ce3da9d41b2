package bus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	. "github.com/onsi/gomega"
)

// built is a message with the given header fields: code, signature and the bytes of the value, aligned as the whole demands.
func built(order binary.ByteOrder, fields []byte, body []byte) []byte {
	b := []byte{'l', 1, 0, 1}
	if order == binary.BigEndian {
		b[0] = 'B'
	}
	word := func(v int) {
		b = append(b, 0, 0, 0, 0)
		order.PutUint32(b[len(b)-4:], uint32(v))
	}
	word(len(body))
	word(7)
	word(len(fields))
	b = append(b, fields...)
	b = append(b, make([]byte, align(len(b), 8)-len(b))...)
	return append(b, body...)
}

func TestRead(t *testing.T) {
	call := encode(7, "org.example.Letter", "/org/example/Letter", "org.freedesktop.Application", "Activate", "ss", appendString(appendString(nil, "a"), "tö"))
	// A field of a number that nobody knows, before the destination.
	strange := []byte{201, 2, 'a', 'y', 0, 0, 0, 0, 5, 0, 0, 0, 1, 2, 3, 4, 5}
	strange = append(strange, make([]byte, align(len(strange), 8)-len(strange))...)
	strange = append(strange, 6, 1, 's', 0, 3, 0, 0, 0, 'a', '.', 'b', 0)
	broken := []byte{6, 1, 's', 0, 0xff, 0xff, 0, 0, 'a'}
	for _, tc := range []struct {
		name  string
		bytes []byte
		want  Message
		err   error
	}{
		{"a call is read whole", call, Message{Type: MethodCall, Serial: 7, Destination: "org.example.Letter", Path: "/org/example/Letter",
			Interface: "org.freedesktop.Application", Member: "Activate", Signature: "ss"}, nil},
		{"an unknown field does not hide what follows it", built(binary.LittleEndian, strange, nil), Message{Type: MethodCall, Serial: 7, Destination: "a.b"}, nil},
		{"a field that lies about its length is told of", built(binary.LittleEndian, broken, nil), Message{Type: MethodCall, Serial: 7, Cut: true}, nil},
		{"a header above the bound is told of", built(binary.LittleEndian, make([]byte, MaxHeader+8), []byte("body")), Message{Type: MethodCall, Serial: 7, Cut: true}, nil},
		{"big endian", built(binary.BigEndian, []byte{5, 1, 'u', 0, 0, 0, 0, 9}, nil), Message{Type: MethodCall, Serial: 7, ReplySerial: 9}, nil},
		{"another byte order is an error", []byte("x123456789abcdef"), Message{}, ErrMalformed},
		{"another version is an error", []byte("l\x01\x00\x02456789abcdef"), Message{}, ErrMalformed},
		{"a length above the specification's is an error", []byte("l\x01\x00\x01\xff\xff\xff\x7f\x01\x00\x00\x00\x00\x00\x00\x00"), Message{}, ErrMalformed},
		{"a message cut short is an error", call[:20], Message{}, io.ErrUnexpectedEOF},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			var buf []byte
			r := bytes.NewReader(tc.bytes)
			m, err := read(r, &buf)
			if tc.err != nil {
				g.Expect(errors.Is(err, tc.err)).To(BeTrue(), "%v", err)
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			if tc.want.Signature == "ss" {
				g.Expect(m.Strings()).To(Equal([]string{"a", "tö"}))
			}
			m.Body, m.order = nil, nil
			g.Expect(m).To(Equal(tc.want))
			g.Expect(r.Len()).To(BeZero(), "the next message begins right after it")
		})
	}
}

func TestSkip(t *testing.T) {
	for _, tc := range []struct {
		sig  string
		b    []byte
		next int
		ok   bool
	}{
		{"y", []byte{1}, 1, true},
		{"u", []byte{1, 0, 0}, 0, false},
		{"(yu)", []byte{1, 0, 0, 0, 2, 0, 0, 0}, 8, true},
		{"v", []byte{1, 'y', 0, 9}, 4, true},
		{"as", []byte{6, 0, 0, 0, 1, 0, 0, 0, 'a', 0}, 10, true},
		{"a(", []byte{0, 0, 0, 0}, 0, false},
		{"a", []byte{0, 0, 0, 0}, 0, false},
		{"at", []byte{8, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}, 16, true},
		{"z", []byte{1}, 0, false},
	} {
		t.Run(tc.sig, func(t *testing.T) {
			g := NewWithT(t)
			next, rest, ok := skip(tc.b, 0, tc.sig, binary.LittleEndian, 0)
			g.Expect(ok).To(Equal(tc.ok))
			if ok {
				g.Expect(next).To(Equal(tc.next))
				g.Expect(rest).To(BeEmpty())
			}
		})
	}
	deep := bytes.Repeat([]byte{1, 'v', 0}, 100)
	_, _, ok := skip(deep, 0, "v", binary.LittleEndian, 0)
	NewWithT(t).Expect(ok).To(BeFalse(), "nested without end")
}

// Whatever comes, reading neither panics nor keeps more than its bounds, and never reads past the message.
func FuzzRead(f *testing.F) {
	f.Add(encode(1, "a.b", "/", "i.f", "M", "s", appendString(nil, "x")))
	f.Add(built(binary.BigEndian, []byte{200, 1, 'v', 0, 1, 'v', 0, 1, 'y', 0, 1}, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var buf []byte
		r := bytes.NewReader(b)
		for {
			m, err := read(r, &buf)
			if err != nil {
				return
			}
			if len(m.Body) > MaxBody || len(m.Destination) > MaxText || len(m.Sender) > MaxText || len(m.Member) > MaxText {
				t.Fatalf("kept too much: %+v", m)
			}
			_, _, _ = m.Strings(), m.List(), m.Signature
		}
	})
}

func TestPath(t *testing.T) {
	for _, tc := range []struct{ address, want string }{
		{"unix:path=/run/user/1000/bus", "/run/user/1000/bus"},
		{"unix:path=/tmp/o%27b%20%c3%a9,guid=00", "/tmp/o'b é"},
		{"tcp:host=x;unix:abstract=/tmp/a", "@/tmp/a"},
		{"tcp:host=localhost", ""},
		{"unix:path=%zz", ""},
		{"", ""},
	} {
		t.Run(tc.address, func(t *testing.T) {
			g := NewWithT(t)
			got, err := path(tc.address)
			g.Expect(got).To(Equal(tc.want))
			g.Expect(err != nil).To(Equal(tc.want == ""))
		})
	}
}
