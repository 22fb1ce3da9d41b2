package desktop

// Mark is a place in the log: the sequence number of the last event before it.
type Mark uint64

// Event is one thing that happened on the desk. Fields that a kind does not use are zero.
type Event struct {
	Seq      uint64  `json:"seq"`                 // order of arrival over all channels, from 1, without gaps
	MonoNS   int64   `json:"mono_ns"`             // CLOCK_MONOTONIC when the guard read it, never decreasing
	ServerMS uint32  `json:"server_ms,omitempty"` // the server's own time stamp where it gave one: CLOCK_MONOTONIC in ms, 32 bits
	Channel  Channel `json:"channel"`
	Kind     Kind    `json:"kind"`

	Window uint32     `json:"window,omitempty"` // the window that the event or request is about
	Role   WindowRole `json:"role"`
	Inner  uint32     `json:"inner,omitempty"` // the client's window when Window is a frame

	// Client is the resource base of the actor: the client that sent a request; for device events the client
	// whose request caused them; for windows that appear above the person the client that made them.
	Client    uint32 `json:"client,omitempty"`
	PID       int    `json:"pid,omitempty"`        // the actor's process as the server knows it, 0 when unknown
	ProcStart uint64 `json:"proc_start,omitempty"` // its start time in clock ticks since boot, against reused pids
	Exe       string `json:"exe,omitempty"`        // its executable, read when the client connected

	Request string `json:"request,omitempty"` // such as "SetInputFocus", "XTEST.FakeInput" or "org.a11y.atspi.Action.DoAction"
	// Peer is the receiver of a message over a bus, as the sender named it; PeerPID and PeerExe are its process, 0 and empty when unknown.
	Peer    string `json:"peer,omitempty"`
	PeerPID int    `json:"peer_pid,omitempty"`
	PeerExe string `json:"peer_exe,omitempty"`
	Swapped bool   `json:"swapped,omitempty"` // the client speaks big-endian

	X        int32   `json:"x,omitempty"` // pixels, root coordinates for pointers, the parent's for windows
	Y        int32   `json:"y,omitempty"`
	Width    int32   `json:"width,omitempty"`
	Height   int32   `json:"height,omitempty"`
	Detail   uint32  `json:"detail,omitempty"` // see the kind; for requests the value that tells most
	Atom     string  `json:"atom,omitempty"`   // name of the property, selection or message type, of known ones only
	Fraction float64 `json:"fraction,omitempty"`

	SendEvent bool   `json:"send_event,omitempty"` // the event itself was forged
	Device    uint16 `json:"device,omitempty"`     // XInput 2 master device
	Source    uint16 `json:"source,omitempty"`     // XInput 2 device that moved
	Release   bool   `json:"release,omitempty"`    // key or button went up
}

// entry is an event with its actor and, for messages, its receiver, whose processes may be learned later.
type entry struct {
	Event
	actor, peer *client
}

const chunkEvents = 4096

// ring keeps events in chunks that are made when needed. When it is full the oldest chunk goes, counted.
type ring struct {
	chunks    [][]entry
	maxChunks int
	base      uint64 // sequence number of the first kept event, minus one
	last      uint64 // sequence number of the last event
	dropped   uint64 // events that went because the ring was full
	gapEnd    uint64 // last sequence number that went so
	droppedBy [channelCount]uint64
}

func newRing(capacity int) ring {
	return ring{maxChunks: max(2, (capacity+chunkEvents-1)/chunkEvents)}
}

func (r *ring) add(e entry) uint64 {
	n := len(r.chunks)
	if n == 0 || len(r.chunks[n-1]) == chunkEvents {
		var fresh []entry
		if n == r.maxChunks {
			old := r.chunks[0]
			r.dropped += uint64(len(old))
			for i := range old {
				r.droppedBy[old[i].Channel]++
			}
			r.base += uint64(len(old))
			r.gapEnd = r.base
			clear(old)
			fresh = old[:0]
			copy(r.chunks, r.chunks[1:])
			r.chunks[n-1] = fresh
		} else {
			fresh = make([]entry, 0, chunkEvents)
			r.chunks = append(r.chunks, fresh)
		}
		n = len(r.chunks)
	}
	r.last++
	e.Seq = r.last
	r.chunks[n-1] = append(r.chunks[n-1], e)
	return r.last
}

// release forgets whole chunks of events up to and including seq.
func (r *ring) release(seq uint64) {
	for len(r.chunks) > 0 && len(r.chunks[0]) == chunkEvents && r.base+chunkEvents <= seq {
		r.base += chunkEvents
		r.chunks[0] = nil
		r.chunks = r.chunks[1:]
	}
}

// each calls f for the kept events with from < Seq <= to, and returns how many of that span are not there: dropped, or released before.
func (r *ring) each(from, to uint64, f func(*entry)) (missing uint64) {
	to = min(to, r.last)
	if from >= to {
		return 0
	}
	if gone := max(r.gapEnd, r.base); gone > from {
		missing = min(gone, to) - from
	}
	for seq := max(from, r.base) + 1; seq <= to; seq++ {
		i := seq - r.base - 1
		f(&r.chunks[i/chunkEvents][i%chunkEvents])
	}
	return missing
}
