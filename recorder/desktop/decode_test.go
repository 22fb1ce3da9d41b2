package desktop

import (
	"encoding/binary"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/recorder/x11"
)

func testDecoder() *decoder {
	d := &decoder{test: 132, input: 131, fixes: 138, shape: 129, randr: 140, keyboard: 135, shm: 130, composite: 142,
		atoms: map[uint32]string{1: atomPrimary, 35: atomWMHints}, keyboards: map[uint16]bool{3: true}, root: 7}
	for i, name := range atomNames {
		if name != atomPrimary && name != atomWMHints {
			d.atoms[uint32(300+i)] = name
		}
	}
	return d
}

func (d *decoder) id(name string) uint32 {
	for id, n := range d.atoms {
		if n == name {
			return id
		}
	}
	return 0
}

// decodeOne reads a request in all four forms that a client may send it in: either byte order, short or long
// length. All must read the same.
func decodeOne(g *WithT, d *decoder, r *x11.Request) Event {
	b, err := r.Bytes()
	g.Expect(err).NotTo(HaveOccurred())
	read := func(data []byte, order binary.ByteOrder) (ev Event) {
		n := 0
		rep := x11.RecordReply{Order: order, Data: data, Total: len(data)}
		g.Expect(rep.Requests(func(q x11.RecordedRequest) { n++; ev = d.request(q) })).To(BeZero())
		g.Expect(n).To(Equal(1))
		return ev
	}
	short := read(b, binary.LittleEndian)
	long := append([]byte{b[0], b[1], 0, 0}, binary.LittleEndian.AppendUint32(nil, uint32(len(b)/4+1))...)
	g.Expect(read(append(long, b[4:]...), binary.LittleEndian)).To(Equal(short))
	return short
}

func TestDecodeRequests(t *testing.T) {
	d := testDecoder()
	message := func(w uint32, name string, v ...uint32) *x11.Request {
		return x11.SendEvent(d.root, 0x180000, 0, x11.ClientMessageEvent(w, d.id(name), v...))
	}
	made := func(w uint32, code byte) *x11.Request { return x11.SendEvent(w, 0, 0, []byte{code | 0x80, 38}) }
	for _, tc := range []struct {
		name   string
		req    *x11.Request
		kind   Kind
		window uint32
	}{
		{"focus", x11.SetInputFocus(9), ReqFocus, 9},
		{"focus to none", x11.SetInputFocus(0), ReqFocus, 0},
		{"map", x11.MapWindow(9), ReqMap, 9},
		{"move", x11.MoveWindow(9, 1, 2), ReqConfigure, 9},
		{"raise", x11.Restack(9, 0, x11.Above), ReqRestack, 9},
		{"circulate", x11.NewRequest(13, 0).U32(9), ReqRestack, 9},
		{"clipboard", x11.SetSelectionOwner(9, d.id(atomClipboard)), ReqClipboard, 9},
		{"primary", x11.SetSelectionOwner(9, 1), ReqPrimary, 9},
		{"another selection", x11.SetSelectionOwner(9, 2), ReqSelection, 9},
		{"activate", message(9, atomActive, 2), SendActivate, 9},
		{"restack by message", message(9, atomRestack, 2), SendRestack, 9},
		{"above by state", message(9, atomState, 1, d.id(atomAbove)), SendRestack, 9},
		{"attention by state", message(9, atomState, 1, 0, d.id(atomAttention)), SendUrgency, 9},
		{"another state", message(9, atomState, 1, 5), SendMessage, 7},
		{"workspace", message(7, atomCurrent, 1), SendWorkspace, 7},
		{"move by message", message(9, atomMoveResize), SendDragWindow, 9},
		{"place by message", message(9, atomPlace), SendMoveResize, 9},
		{"close by message", message(9, atomClose), SendClose, 9},
		{"delete window", x11.SendEvent(9, 0, 0, x11.ClientMessageEvent(9, d.id(atomProtocols), d.id(atomDelete))), SendClose, 9},
		{"drop", x11.SendEvent(9, 0, 0, x11.ClientMessageEvent(9, d.id(atomXdndDrop))), SendDrag, 9},
		{"forged key", made(9, x11.KeyPress), SendInput, 9},
		{"forged focus", made(9, x11.FocusIn), SendInput, 9},
		{"forged configure", made(9, x11.ConfigureNotify), SendOther, 9},
		{"forged generic event", made(9, x11.GenericEvent), SendInput, 9},
		{"forged key to the focus", made(1, x11.KeyPress), SendInput, 1},
		{"grab pointer", x11.NewRequest(26, 1).U32(9).U16(4).U8(1, 1).U32(0, 0, 0), ReqGrabPointer, 9},
		{"grab keyboard", x11.NewRequest(31, 1).U32(9, 0).U8(1, 1), ReqGrabKeyboard, 9},
		{"grab key", x11.NewRequest(33, 1).U32(9).U16(0).U8(39, 1, 1), ReqGrabKey, 9},
		{"grab server", x11.NewRequest(36, 0), ReqGrabServer, 0},
		{"warp", x11.NewRequest(41, 0).U32(0, 7).I16(0, 0).U16(0, 0).I16(5, 6), ReqWarp, 7},
		{"keymap", x11.NewRequest(100, 1).U8(255, 1, 0, 0).U32(97), ReqKeymap, 0},
		{"modifier map", x11.NewRequest(118, 1).U32(0, 0), ReqKeymap, 0},
		{"image", x11.NewRequest(73, 2).U32(9).I16(0, 0).U16(1, 1).U32(1), ReqRead, 9},
		{"urgency hint", x11.ChangeProperty32(9, 35, 35, urgencyHint), ReqUrgency, 9},
		{"hints without urgency", x11.ChangeProperty32(9, 35, 35, 1), ReqProperty, 9},
		{"attention by property", x11.ChangeProperty32(9, d.id(atomState), 4, 1, d.id(atomAttention)), ReqUrgency, 9},
		{"opacity", x11.ChangeProperty32(9, d.id(atomOpacity), 6, 0), ReqOpacity, 9},
		{"opacity taken away", x11.DeleteProperty(9, d.id(atomOpacity)), ReqOpacity, 9},
		{"event mask", x11.SelectInput(9, 1), ReqListen, 9},
		{"other attributes", x11.NewRequest(2, 0).U32(9, 2, 0), ReqAttributes, 9},
		{"test key", x11.NewRequest(132, 2).U8(2, 38, 0, 0).U32(0, 0, 0, 0).I16(0, 0).U32(0, 0), ReqFakeKey, 0},
		{"test button", x11.NewRequest(132, 2).U8(5, 1, 0, 0).U32(0, 0, 0, 0).I16(0, 0).U32(0, 0), ReqFakeButton, 0},
		{"test motion", x11.NewRequest(132, 2).U8(6, 0, 0, 0).U32(0, 0, 0, 0).I16(5, 6).U32(0, 0), ReqFakeMotion, 0},
		{"xi warp", x11.NewRequest(131, 41).U32(0, 7, 0, 0).U16(0, 0).U32(5<<16, 6<<16).U16(2, 0), ReqWarp, 7},
		{"xi grab of a pointer", x11.NewRequest(131, 51).U32(9, 0, 0).U16(2).U8(1, 1, 0, 0).U16(0), ReqGrabPointer, 9},
		{"xi grab of a keyboard", x11.NewRequest(131, 51).U32(9, 0, 0).U16(3).U8(1, 1, 0, 0).U16(0), ReqGrabKeyboard, 9},
		{"xi passive key", x11.NewRequest(131, 54).U32(0, 9, 0, 39).U16(3, 0, 0).U8(1, 1, 1, 0), ReqGrabKey, 9},
		{"xi passive button", x11.NewRequest(131, 54).U32(0, 9, 0, 1).U16(2, 0, 0).U8(0, 1, 1, 0), ReqGrabButton, 9},
		{"xi focus", x11.NewRequest(131, 49).U32(9, 0).U16(3, 0), ReqFocus, 9},
		{"add master", x11.NewRequest(131, 43).U8(1, 0, 0, 0).U16(1, 3, 2).U8(0, 1).Text("ab"), ReqAddMaster, 0},
		{"remove, then add master", x11.NewRequest(131, 43).U8(2, 0, 0, 0).U16(2, 3, 5).U8(1, 0).U16(0, 0).U16(1, 2, 0).U8(0, 1), ReqAddMaster, 0},
		{"remove master", x11.NewRequest(131, 43).U8(1, 0, 0, 0).U16(2, 3, 5).U8(1, 0).U16(0, 0), ReqHierarchy, 0},
		{"hide cursor", x11.NewRequest(138, 29).U32(7), ReqCursor, 7},
		{"shape", x11.NewRequest(129, 1).U8(0, 0, 0, 0).U32(9).I16(0, 0), ReqShape, 9},
		{"overlay", x11.NewRequest(142, 7).U32(7), ReqOverlay, 7},
		{"unknown minor is told", x11.NewRequest(131, 99), GuardError, 0},
		{"unknown extension is told", x11.NewRequest(200, 1), GuardError, 0},
		{"unknown core request is told", x11.NewRequest(127, 0), GuardError, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			ev := decodeOne(g, d, tc.req)
			g.Expect(ev.Kind).To(Equal(tc.kind), ev.Kind.String())
			g.Expect(ev.Window).To(Equal(tc.window))
		})
	}
	t.Run("warps carry the place", func(t *testing.T) {
		g := NewWithT(t)
		for _, r := range []*x11.Request{
			x11.NewRequest(41, 0).U32(0, 7).I16(0, 0).U16(0, 0).I16(5, -6),
			x11.NewRequest(131, 41).U32(0, 7, 0, 0).U16(0, 0).U32(5<<16, 0xfffa0000).U16(2, 0),
			x11.NewRequest(132, 2).U8(6, 0, 0, 0).U32(0, 0, 0, 0).I16(5, -6).U32(0, 0),
		} {
			ev := decodeOne(g, d, r)
			g.Expect([]int32{ev.X, ev.Y}).To(Equal([]int32{5, -6}))
		}
	})
	t.Run("the other byte order", func(t *testing.T) {
		g := NewWithT(t)
		b := []byte{42, 1, 0, 3, 0, 0, 0, 9, 0, 0, 0, 0}
		rep := x11.RecordReply{Order: binary.BigEndian, Data: b, Total: len(b)}
		g.Expect(rep.Requests(func(q x11.RecordedRequest) {
			ev := d.request(q)
			g.Expect(ev.Kind).To(Equal(ReqFocus))
			g.Expect(ev.Window).To(Equal(uint32(9)))
			g.Expect(ev.Swapped).To(BeTrue())
		})).To(BeZero())
	})
	t.Run("every recorded request is known", func(t *testing.T) {
		g := NewWithT(t)
		for op := range coreRequests {
			ev := decodeOne(g, d, x11.NewRequest(op, 0).U32(9, 0, 0, 0, 0, 0, 0, 0))
			g.Expect(ev.Kind).NotTo(Or(Equal(KindNone), Equal(GuardError)), "opcode %d", op)
			g.Expect(ev.Kind.IsRequest()).To(BeTrue())
		}
		for _, g2 := range d.ranges() {
			if g2.ExtMajor[0] != 0 {
				ev := decodeOne(g, d, x11.NewRequest(g2.ExtMajor[0], byte(g2.ExtMinor[0])).U32(9, 0, 0, 0, 0, 0, 0, 0, 0))
				g.Expect(ev.Kind.IsRequest()).To(BeTrue(), "%d.%d", g2.ExtMajor[0], g2.ExtMinor[0])
			}
		}
	})
}

// FuzzDecode: whatever bytes a client gets recorded, reading them ends, tells a known kind, and accounts for every byte.
func FuzzDecode(f *testing.F) {
	for _, r := range []*x11.Request{x11.SetInputFocus(9), x11.SendEvent(9, 0, 0, []byte{33}), x11.ChangeProperty32(9, 35, 35, 256),
		x11.NewRequest(131, 43).U8(255, 0, 0, 0).U16(1, 0)} {
		b, err := r.Bytes()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, false, 0)
		f.Add(append(b, b...), true, 40)
	}
	f.Add([]byte{18, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, false, 0)
	f.Add([]byte{18, 0, 0, 0, 0, 0, 0, 1}, true, 0)
	d := testDecoder()
	f.Fuzz(func(t *testing.T, b []byte, swapped bool, more int) {
		order := binary.ByteOrder(binary.LittleEndian)
		if swapped {
			order = binary.BigEndian
		}
		total := len(b) + max(0, min(more, 1<<20))
		read := 0
		rep := x11.RecordReply{Order: order, Data: b, Total: total}
		unread := rep.Requests(func(q x11.RecordedRequest) {
			ev := d.request(q)
			if !ev.Kind.IsRequest() && ev.Kind != GuardError {
				t.Errorf("kind %s", ev.Kind)
			}
			read += int(q.Length)
		})
		if read+unread != total {
			t.Errorf("read %d, unread %d, of %d", read, unread, total)
		}
	})
}
