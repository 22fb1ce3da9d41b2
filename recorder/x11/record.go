package x11

import (
	"context"
	"encoding/binary"
	"fmt"
)

// RecordRange asks RECORD for a range of things. Zero pairs ask for nothing.
type RecordRange struct {
	Core         [2]byte   // core request opcodes
	ExtMajor     [2]byte   // extension major opcodes
	ExtMinor     [2]uint16 // and their minor opcodes
	DeviceEvents [2]byte   // core codes of events made by devices
	Clients      bool      // starts and ends of clients
}

func (g RecordRange) append(r *Request) {
	r.U8(g.Core[0], g.Core[1], 0, 0, g.ExtMajor[0], g.ExtMajor[1]).U16(g.ExtMinor[0], g.ExtMinor[1])
	r.U8(0, 0, 0, 0, 0, 0) // replies of extensions
	r.U8(0, 0, g.DeviceEvents[0], g.DeviceEvents[1], 0, 0)
	if g.Clients {
		r.U8(1, 1)
	} else {
		r.U8(0, 0)
	}
}

// RecordCategory says what a RECORD reply carries.
type RecordCategory byte

// Categories of RECORD replies.
const (
	RecordFromServer    RecordCategory = 0 // device events
	RecordFromClient    RecordCategory = 1 // requests
	RecordClientStarted RecordCategory = 2
	RecordClientDied    RecordCategory = 3
	RecordStartOfData   RecordCategory = 4
	RecordEndOfData     RecordCategory = 5
)

// RecordReply is one reply of an enabled RECORD context.
type RecordReply struct {
	Category RecordCategory
	Client   uint32           // resource base of the client, as the server knows it
	ServerMS uint32           // server time of the first element
	Order    binary.ByteOrder // of the client's own requests
	Data     []byte           // elements; valid only during the call
	Total    int              // true length of Data in bytes; above len(Data) when it was cut at MaxFrame
}

// ParseRecord reads a reply of a RECORD context made by Record.
func ParseRecord(r Reply) RecordReply {
	out := RecordReply{Category: RecordCategory(r.U8(1)), Client: r.U32(12), ServerMS: r.U32(16), Order: binary.LittleEndian}
	if r.U8(9) != 0 {
		out.Order = binary.BigEndian // swapped: the client's order is not ours, and ours is little-endian
	}
	if len(r.B) > 32 {
		out.Data = r.B[32:]
	}
	out.Total = r.Total - 32
	return out
}

// RecordedRequest is one request of a client as RECORD shows it.
type RecordedRequest struct {
	Major, Minor byte
	Fields              // the request with its length word, in the client's byte order
	Long         bool   // a BIG-REQUESTS request: Body starts four bytes later
	Length       uint64 // bytes, as the request says
}

// Body is the offset of the first field after the length.
func (q RecordedRequest) Body() int {
	if q.Long {
		return 8
	}
	return 4
}

// Requests walks the requests of a reply by their own lengths and calls each for every one; the last may be
// cut short. It returns the number of bytes that were not read as requests: malformed
// ones, and what lay behind a cut.
func (r RecordReply) Requests(each func(RecordedRequest)) (unread int) {
	b, left := r.Data, r.Total
	for len(b) >= 4 {
		q := RecordedRequest{Major: b[0], Minor: b[1]}
		f := Fields{B: b, Order: r.Order}
		q.Length = uint64(f.U16(2)) * 4
		if q.Length == 0 {
			if len(b) < 8 {
				return left
			}
			q.Long = true
			q.Length = uint64(f.U32(4)) * 4
		}
		if q.Length < uint64(q.Body()) || q.Length > uint64(max(left, 0)) {
			return left
		}
		left -= int(q.Length)
		n := min(q.Length, uint64(len(b)))
		q.Fields = Fields{B: b[:n], Order: r.Order}
		each(q)
		b = b[n:]
	}
	return left
}

// DeviceEvents walks the device events of a reply; they are in our own byte order.
func (r RecordReply) DeviceEvents(each func(Event)) (unread int) {
	b := r.Data
	for len(b) >= 32 {
		each(Event{Fields: Little(b[:32]), Code: b[0] & 0x7f, SendEvent: b[0]&0x80 != 0, Total: 32})
		b = b[32:]
	}
	return len(b)
}

// Record makes a RECORD context on control for all present and future clients and streams it on data, which
// must be used for nothing else from then on. It returns when recording has begun. each runs on data's reader
// goroutine; err is set once, last, when the stream ends. The context lives as long as control.
func Record(ctx context.Context, control, data *Conn, ranges []RecordRange, each func(RecordReply, error)) error {
	ext, err := control.UseRecord(ctx)
	if err != nil {
		return err
	}
	if _, err := data.UseRecord(ctx); err != nil {
		return err
	}
	id := control.NewID()
	const allClients = 3
	req := NewRequest(ext.Major, 1).U32(id, 0, 1, uint32(len(ranges)), allClients)
	for _, g := range ranges {
		g.append(req)
	}
	created := make(chan error, 1)
	// The creation has no reply: a round trip behind it, and the error, if any, comes before.
	control.mu.Lock()
	old := control.handler
	control.handler.Error = func(e *XError) {
		if e.Major == ext.Major {
			select {
			case created <- e:
			default:
			}
		}
		if old.Error != nil {
			old.Error(e)
		}
	}
	control.mu.Unlock()
	defer control.Handle(old)
	if err := control.Send(ctx, req); err != nil {
		return err
	}
	if err := control.Sync(ctx); err != nil {
		return err
	}
	select {
	case err := <-created:
		return fmt.Errorf("create record context: %w", err)
	default:
	}
	begun := make(chan error, 1)
	report := func(err error) {
		select {
		case begun <- err:
		default:
		}
	}
	err = data.Stream(ctx, NewRequest(ext.Major, 5).U32(id), func(r Reply, err error) {
		if err != nil {
			report(err)
			each(RecordReply{}, err)
			return
		}
		rec := ParseRecord(r)
		if rec.Category == RecordStartOfData {
			report(nil)
		}
		each(rec, nil)
	})
	if err != nil {
		return err
	}
	select {
	case err := <-begun:
		if err != nil {
			return fmt.Errorf("enable record context: %w", err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("enable record context: %w", context.Cause(ctx))
	}
}
