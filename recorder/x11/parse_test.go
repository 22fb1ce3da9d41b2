package x11

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func authority(entries ...AuthorityEntry) []byte {
	var b []byte
	for _, e := range entries {
		b = binary.BigEndian.AppendUint16(b, e.Family)
		for _, s := range []string{e.Address, e.Number, e.Name, string(e.Data)} {
			b = append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
		}
	}
	return b
}

func TestParseAuthority(t *testing.T) {
	g := NewWithT(t)
	cookie := AuthorityEntry{Family: familyLocal, Address: "host", Number: "93", Name: cookieName, Data: []byte("0123456789abcdef")}
	wild := AuthorityEntry{Family: familyWild, Name: cookieName, Data: []byte("wildwildwildwild")}
	other := AuthorityEntry{Family: 0, Address: "\x7f\x00\x00\x01", Number: "93", Name: "XDM-AUTHORIZATION-1", Data: []byte("x")}
	entries, err := ParseAuthority(bytes.NewReader(authority(other, wild, cookie)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entries).To(Equal([]AuthorityEntry{other, wild, cookie}))

	for _, tc := range []struct {
		host   string
		number int
		want   []byte
	}{{"host", 93, cookie.Data}, {"host", 94, wild.Data}, {"elsewhere", 93, wild.Data}} {
		got, ok := chooseCookie(entries, tc.host, tc.number)
		g.Expect(ok).To(BeTrue())
		g.Expect(got).To(Equal(tc.want))
	}
	_, ok := chooseCookie([]AuthorityEntry{cookie, other}, "host", 7)
	g.Expect(ok).To(BeFalse())

	whole := authority(cookie)
	for n := 1; n < len(whole); n++ {
		_, err := ParseAuthority(bytes.NewReader(whole[:n]))
		g.Expect(err).To(MatchError(ErrAuthority), "cut at %d", n)
	}
	_, err = ParseAuthority(bytes.NewReader(bytes.Repeat(authority(AuthorityEntry{}), maxAuthorityEntries+1)))
	g.Expect(err).To(MatchError(ErrAuthority))
	_, err = ParseAuthority(strings.NewReader(strings.Repeat("x", maxAuthorityBytes+1)))
	g.Expect(err).To(MatchError(ErrAuthority))
}

func TestParseDisplay(t *testing.T) {
	for s, want := range map[string]int{":0": 0, ":93": 93, ":93.0": 93, "unix:7": 7} {
		t.Run(s, func(t *testing.T) {
			g := NewWithT(t)
			n, err := ParseDisplay(s)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(n).To(Equal(want))
		})
	}
	for _, s := range []string{"", "93", ":", ":x", ":-1", ":+1", ":1.1", "host:1", ":99999999", ":1.0.0", "/tmp/x:1"} {
		t.Run("refused "+s, func(t *testing.T) {
			g := NewWithT(t)
			_, err := ParseDisplay(s)
			g.Expect(err).To(MatchError(ErrDisplay))
		})
	}
}

func TestParseSetup(t *testing.T) {
	g := NewWithT(t)
	header, body := goodSetup()
	s, err := ParseSetup(header, body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Root).To(Equal(uint32(0x500)))
	g.Expect([]uint16{s.Width, s.Height}).To(Equal([]uint16{1280, 800}))
	g.Expect(s.Vendor).To(Equal("test server"))
	for n := range body {
		_, err := ParseSetup(header, body[:n])
		g.Expect(err).To(MatchError(ErrSetup), "cut at %d", n)
	}
	_, err = ParseSetup([]byte{0, 5, 11, 0, 0, 0, 2, 0}, []byte("No\x1b[mX"))
	g.Expect(err).To(MatchError(ErrSetup))
	g.Expect(err.Error()).To(ContainSubstring("No?[m"))
	for _, status := range []byte{2, 3, 255} {
		header[0] = status
		_, err = ParseSetup(header, body)
		g.Expect(err).To(MatchError(ErrSetup))
	}
}

// A big-endian client's id comes in its own byte order from X.Org; its process is found all the same.
func TestParseClientPID(t *testing.T) {
	reply := func(client uint32, words ...uint32) Reply {
		b := make([]byte, 32)
		le.PutUint32(b[8:], 1)
		for _, w := range append([]uint32{client}, words...) {
			b = le.AppendUint32(b, w)
		}
		return Reply{Fields: Little(b), Total: len(b)}
	}
	const mask = 0x1fffff
	for _, tc := range []struct {
		name string
		r    Reply
		want int
		err  error
	}{
		{"known", reply(0x1c00000, 2, 4, 4711), 4711, nil},
		{"big-endian client", reply(0x0000c001, 2, 4, 4711), 4711, nil},
		{"another client", reply(0x1e00000, 2, 4, 4711), 0, ErrNoPID},
		{"no process", reply(0x1c00000, 2, 4, 0xffffffff), 0, ErrNoPID},
		{"another kind of id", reply(0x1c00000, 1, 0), 0, ErrNoPID},
		{"cut short", reply(0x1c00000, 2), 0, ErrMalformed},
		{"a length that lies", reply(0x1c00000, 2, 0xfffffff0), 0, ErrMalformed},
		{"no answer", Reply{Fields: Little(make([]byte, 32))}, 0, ErrNoPID},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			pid, err := ParseClientPID(tc.r, 0x1c00007, mask)
			if tc.err != nil {
				g.Expect(err).To(MatchError(tc.err))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pid).To(Equal(tc.want))
		})
	}
}

func TestRequestsArePaddedAndMeasured(t *testing.T) {
	g := NewWithT(t)
	b, err := NewRequest(16, 0).U16(5, 0).Text("abcde").Bytes()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(b).To(Equal([]byte{16, 0, 4, 0, 5, 0, 0, 0, 'a', 'b', 'c', 'd', 'e', 0, 0, 0}))
	_, err = NewRequest(1, 0).U8(make([]byte, 65535*4)...).Bytes()
	g.Expect(err).To(MatchError(ErrTooLarge))
	e := ClientMessageEvent(1, 2, 3, 4, 5, 6, 7, 8, 9)
	g.Expect(e).To(HaveLen(32))
}

func FuzzParseAuthority(f *testing.F) {
	f.Add(authority(AuthorityEntry{Family: 256, Address: "h", Number: "1", Name: cookieName, Data: []byte("x")}))
	f.Add([]byte{1, 0, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := ParseAuthority(bytes.NewReader(b))
		if err == nil && !bytes.Equal(authority(entries...), b) {
			t.Error("what was read is not what was written")
		}
	})
}

func FuzzParseSetup(f *testing.F) {
	header, body := goodSetup()
	f.Add(header, body)
	f.Add([]byte{0, 255, 11, 0, 0, 0, 0, 0}, []byte("no"))
	f.Fuzz(func(t *testing.T, header, body []byte) {
		s, err := ParseSetup(header, body)
		if err == nil && (s.Root == 0 || s.ResourceBase&s.ResourceMask != 0) {
			t.Errorf("accepted %+v", s)
		}
	})
}

// FuzzReplies: no reply, however hostile, makes a parser panic or run on.
func FuzzReplies(f *testing.F) {
	f.Add(make([]byte, 64))
	long := bytes.Repeat([]byte{1, 0, 2, 0}, 40)
	f.Add(long)
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) < 32 {
			b = append(b, 0)
		}
		r := Reply{Fields: Little(b), Total: len(b)}
		if devices, err := ParseDevices(r); err == nil && len(devices)*12 > len(b) {
			t.Error("more devices than bytes")
		}
		_, _ = ParseClientPID(r, 1, 0xff) // any error will do
		ParseAttributes(r)
		ParseInput2(Extension{Major: b[1]}, Event{Fields: Little(b), Code: GenericEvent, Total: len(b)})
		rec := ParseRecord(r)
		n := 0
		rec.Requests(func(RecordedRequest) { n++ })
		rec.DeviceEvents(func(Event) { n++ })
		if n > len(b)/4+1 {
			t.Error("more elements than bytes")
		}
	})
}
