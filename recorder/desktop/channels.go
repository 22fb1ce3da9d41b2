package desktop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/engine-acceptance/acceptance/recorder/x11"
)

// ErrUnsupported: this platform's clock is not the X server's, so events cannot be put in one order.
var ErrUnsupported = errors.New("event log not supported on this platform")

// Start connects every channel and begins to log. A channel or extension that cannot be had is a *ChannelError:
// there is no guard with less. Start it before what is to be watched, so that each client's process is read while it
// connects. Stop frees it; a Log does not stop by itself when ctx ends.
func Start(ctx context.Context, cfg Config) (*Log, error) {
	if !x11.ClockIsSystem {
		return nil, ErrUnsupported
	}
	if _, err := violations(); err != nil {
		return nil, err
	}
	if cfg.Capacity <= 0 {
		cfg.Capacity = DefaultCapacity
	}
	if cfg.CallBudget <= 0 {
		cfg.CallBudget = DefaultCallBudget
	}
	if cfg.SettleBudget <= 0 {
		cfg.SettleBudget = DefaultSettleBudget
	}
	l := &Log{cfg: cfg, own: map[uint32]bool{}, ring: newRing(cfg.Capacity), watched: map[uint32]*watched{},
		baseRole: map[uint32]WindowRole{}, clients: map[uint32]*client{}, tests: map[uint16]bool{},
		exempt: map[int]bool{}, marks: map[uint32]chan struct{}{}}
	for _, p := range cfg.Exempt {
		l.exempt[p] = true
	}
	budget := cfg.CallBudget
	if cfg.Bus != "" {
		budget += busBudget
	}
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	if err := l.connect(ctx); err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = l.Stop(stop) // the first error says more
		return nil, err
	}
	return l, nil
}

func (l *Log) connect(ctx context.Context) error {
	for ch := NoChannel + 1; ch < xChannels; ch++ {
		c, err := x11.Dial(ctx, l.cfg.Display, l.cfg.XAuthority)
		if err != nil {
			return &ChannelError{Channel: ch, Err: err}
		}
		l.conns[ch] = c
		l.own[c.Setup().ResourceBase] = true
		l.health[ch] = ChannelHealth{Channel: ch, Alive: true}
	}
	setup := l.conns[Core].Setup()
	l.mask = setup.ResourceMask
	l.tree = newTree(setup.Root, int(setup.Width), int(setup.Height))
	for ch := NoChannel + 1; ch < xChannels; ch++ {
		h := x11.Handler{
			Error: func(e *x11.XError) { l.xError(ch, e) },
			Lost:  func(err error) { l.channelLost(ch, err) },
		}
		switch ch {
		case Core:
			h.Event = l.coreEvent
		case Record, Properties:
			limit := x11.SendBuffer() * 3 / 4
			h.Behind = func(backlog int) {
				if backlog >= limit {
					l.overrun(ch, backlog)
				}
			}
		case Input:
			h.Event = l.inputEvent
		case Selection:
			h.Event = l.selectionEvent
		case Output:
			h.Event = l.outputEvent
		}
		l.conns[ch].Handle(h)
	}
	steps := []struct {
		ch    Channel
		ext   string
		start func(context.Context, *x11.Conn) error
	}{
		{Control, x11.ExtRecord, func(ctx context.Context, c *x11.Conn) error { _, err := c.UseRecord(ctx); return err }},
		{Control, x11.ExtTest, func(ctx context.Context, c *x11.Conn) error { _, err := c.Extension(ctx, x11.ExtTest); return err }},
		{Control, x11.ExtResource, func(ctx context.Context, c *x11.Conn) error { _, err := c.UseResource(ctx); return err }},
		{Query, "", l.startQuery},
		{Core, "", l.startCore},
		{Input, x11.ExtInput, l.startInput},
		{Selection, x11.ExtFixes, l.startSelection},
		{Output, x11.ExtRandR, l.startOutput},
		{Record, x11.ExtRecord, l.startRecord},
		{Properties, x11.ExtRecord, l.startProperties},
	}
	for _, s := range steps {
		if err := s.start(ctx, l.conns[s.ch]); err != nil {
			ext := s.ext
			var missing *x11.ExtensionError
			if errors.As(err, &missing) {
				ext = missing.Name
			}
			return &ChannelError{Channel: s.ch, Extension: ext, Err: err}
		}
	}
	clients, err := l.conns[Control].Clients(ctx)
	if err != nil {
		return &ChannelError{Channel: Control, Extension: x11.ExtResource, Err: err}
	}
	l.locked(func() {
		for _, b := range clients {
			if !l.own[b] {
				l.actor(b)
			}
		}
	})
	if err := l.startBuses(ctx); err != nil {
		return err
	}
	if _, err := l.Barrier(ctx); err != nil {
		return fmt.Errorf("first barrier: %w", err)
	}
	return nil
}

// startQuery interns the atoms and makes the window that marks are sent to.
func (l *Log) startQuery(ctx context.Context, c *x11.Conn) error {
	atoms := map[uint32]string{}
	for _, name := range atomNames {
		a, err := c.Atom(ctx, name)
		if err != nil {
			return err
		}
		atoms[a] = name
	}
	d := decoder{atoms: atoms, root: c.Root(), keyboards: map[uint16]bool{}}
	for _, e := range []struct {
		name string
		to   *byte
	}{
		{x11.ExtTest, &d.test}, {x11.ExtInput, &d.input}, {x11.ExtFixes, &d.fixes}, {x11.ExtShape, &d.shape},
		{x11.ExtRandR, &d.randr}, {x11.ExtKeyboard, &d.keyboard}, {x11.ExtShm, &d.shm}, {x11.ExtComposite, &d.composite},
	} {
		ext, err := c.Extension(ctx, e.name)
		if err != nil && !errors.Is(err, x11.ErrNoExtension) {
			return err
		}
		*e.to = ext.Major // absent is 0: nobody can use it
	}
	l.mu.Lock()
	l.dec = d
	l.mu.Unlock()
	w, err := c.CreateWindow(ctx, x11.WindowOptions{X: -10, Y: -10, InputOnly: true, OverrideRedirect: true})
	l.markWindow = w
	return err
}

// startCore selects the root's events and reads the tree, in one grab of the server, so that the replica starts
// exactly where the events do.
func (l *Log) startCore(ctx context.Context, c *x11.Conn) error {
	if err := c.Send(ctx, x11.NewRequest(36, 0)); err != nil {
		return err
	}
	release := func() error { return c.Send(ctx, x11.NewRequest(37, 0)) }
	if err := c.Send(ctx, x11.SelectInput(c.Root(), x11.MaskSubstructure|x11.MaskStructure|x11.MaskProperty)); err != nil {
		return err
	}
	states, err := c.Children(ctx, c.Root())
	if err != nil {
		_ = release() // closing the connection releases too
		return err
	}
	inner := map[uint32]uint32{}
	for _, s := range states {
		t, err := c.QueryTree(ctx, s.Window)
		if err != nil {
			_ = release()
			return err
		}
		// The client in a frame is the child that another client made.
		for _, child := range t.Children {
			if l.base(child) != l.base(s.Window) {
				inner[s.Window] = child
			}
		}
	}
	l.mu.Lock()
	for _, s := range states {
		n := &node{id: s.Window, x: int(s.X), y: int(s.Y), w: int(s.Width), h: int(s.Height), b: int(s.Border),
			mapped: s.Mapped, inputOnly: s.InputOnly, classKnown: true, inner: inner[s.Window]}
		if l.tree.add(n) && n.inner != 0 {
			l.tree.frameOf[n.inner] = n.id
		}
	}
	l.mu.Unlock()
	if err := release(); err != nil {
		return err
	}
	return c.Sync(ctx)
}

func (l *Log) startInput(ctx context.Context, c *x11.Conn) error {
	ext, err := c.UseInput(ctx)
	if err != nil {
		return err
	}
	l.exts.input = ext
	devices, err := c.Devices(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.setDevices(devices)
	l.mu.Unlock()
	if err := c.Send(ctx, c.SelectRawInput(ext)); err != nil {
		return err
	}
	return c.Sync(ctx)
}

func (l *Log) setDevices(devices []x11.Device) {
	for _, d := range devices {
		l.tests[d.ID] = d.IsTest()
		l.dec.keyboards[d.ID] = d.IsKeyboard()
	}
}

func (l *Log) startSelection(ctx context.Context, c *x11.Conn) error {
	ext, err := c.UseFixes(ctx)
	if err != nil {
		return err
	}
	l.exts.fixes = ext
	for _, name := range []string{atomPrimary, atomClipboard} {
		a, err := c.Atom(ctx, name)
		if err != nil {
			return err
		}
		if err := c.Send(ctx, x11.SelectSelections(ext, c.Root(), a)); err != nil {
			return err
		}
	}
	return c.Sync(ctx)
}

func (l *Log) startOutput(ctx context.Context, c *x11.Conn) error {
	randr, err := c.UseRandR(ctx)
	if err != nil {
		return err
	}
	shape, err := c.Extension(ctx, x11.ExtShape)
	if err != nil {
		return err
	}
	l.exts.randr, l.exts.shape = randr, shape
	if err := c.Send(ctx, x11.SelectOutputs(randr, c.Root())); err != nil {
		return err
	}
	return c.Sync(ctx)
}

func (l *Log) startRecord(ctx context.Context, c *x11.Conn) error {
	return x11.Record(ctx, l.conns[Control], c, l.dec.ranges(), func(r x11.RecordReply, err error) { l.recorded(Record, r, err) })
}

// startProperties records the writes of properties over a connection of their own. A browser that gives its window an icon writes several hundred
// kilobytes at once, over which the server's recorder can lose what comes next; here that is another property write, and never a request of the other
// kinds, which are all short.
func (l *Log) startProperties(ctx context.Context, c *x11.Conn) error {
	return x11.Record(ctx, l.conns[Control], c, []x11.RecordRange{{Core: [2]byte{changeProperty, changeProperty}}},
		func(r x11.RecordReply, err error) { l.recorded(Properties, r, err) })
}

func (l *Log) xError(ch Channel, e *x11.XError) {
	l.locked(func() {
		l.health[ch].Errors++
		l.put(Event{Channel: ch, Kind: GuardError, Detail: uint32(e.Code), Window: e.Value}, nil)
	})
}

func (l *Log) channelLost(ch Channel, err error) {
	l.locked(func() {
		if l.stopping {
			return
		}
		h := &l.health[ch]
		h.Alive, h.LostAtNS, h.Cause = false, x11.MonoNS(), err.Error()
		l.put(Event{Channel: ch, Kind: ChannelLost, Detail: uint32(ch)}, nil)
	})
}

// overrun tells that the server may have lost recorded requests. X.Org's RECORD loses whole replies without a word
// once the recording client's socket was full: FlushClient in os/io.c counts what is to be written before it calls the
// flush callbacks, and what RECORD appends in that callback is thrown away (seen on 21.1.7 at 100,000 requests a
// second). While the socket never was full nothing is lost. Events of the other channels are not concerned.
func (l *Log) overrun(ch Channel, backlog int) {
	l.locked(func() {
		l.health[ch].Overruns++
		l.put(Event{Channel: ch, Kind: RecordOverrun, Detail: uint32(backlog)}, nil)
	})
}

func (l *Log) inputEvent(e x11.Event) {
	i, ok := x11.ParseInput2(l.exts.input, e)
	if !ok {
		return
	}
	l.locked(func() {
		ev := Event{Channel: Input, ServerMS: i.ServerMS, Detail: i.Detail, Device: i.Device, Source: i.Source, X: i.X, Y: i.Y,
			SendEvent: e.SendEvent}
		pick := func(real, test Kind) Kind {
			if l.tests[i.Source] {
				return test
			}
			return real
		}
		switch i.Type {
		case x11.XIRawMotion:
			ev.Kind = pick(RawMotion, RawTestMotion)
		case x11.XIRawKeyPress, x11.XIRawKeyRelease:
			ev.Kind, ev.Release = pick(RawKey, RawTestKey), i.Type == x11.XIRawKeyRelease
		case x11.XIRawButtonPress, x11.XIRawButtonRelease:
			ev.Kind, ev.Release = pick(RawButton, RawTestButton), i.Type == x11.XIRawButtonRelease
		case x11.XIMotion:
			ev.Kind, ev.Window = PointerMotion, l.tree.root
		case x11.XIHierarchyChanged:
			ev.Kind = HierarchyChanged
			if i.Detail&x11.HierarchyMasterAdded != 0 {
				ev.Kind = MasterAdded
			}
			l.deferred = append(l.deferred, l.readDevices)
		}
		l.put(ev, nil)
	})
}

// readDevices asks for the devices anew. Until the answer is here a new device counts as a real one.
func (l *Log) readDevices() {
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.CallBudget)
	defer cancel()
	l.conns[Input].Async(ctx, x11.DevicesRequest(l.exts.input), func(r x11.Reply, err error) {
		if err != nil {
			return // the channel is lost, which is told elsewhere
		}
		devices, err := x11.ParseDevices(r)
		l.locked(func() {
			if err != nil {
				l.health[Input].Errors++
				l.put(Event{Channel: Input, Kind: GuardError}, nil)
				return
			}
			clear(l.tests)
			clear(l.dec.keyboards)
			l.setDevices(devices)
		})
	})
}

func (l *Log) selectionEvent(e x11.Event) {
	if e.Code != l.exts.fixes.FirstEvent || e.SendEvent {
		return
	}
	l.locked(func() {
		ev := Event{Channel: Selection, Window: e.U32(8), Detail: e.U32(12), ServerMS: e.U32(16)}
		ev.Atom = l.dec.atoms[ev.Detail]
		ev.Kind = selectionKind(ev.Atom, ClipboardChanged, PrimaryChanged, GuardError)
		var owner *client
		if ev.Window != 0 {
			owner = l.actor(ev.Window)
		}
		l.put(ev, owner)
	})
}

func (l *Log) outputEvent(e x11.Event) {
	if e.SendEvent {
		return
	}
	l.locked(func() {
		switch e.Code {
		case l.exts.shape.FirstEvent:
			l.put(Event{Channel: Output, Kind: ShapeChanged, Window: e.U32(4), Detail: uint32(e.U8(1))}, nil)
		case l.exts.randr.FirstEvent, l.exts.randr.FirstEvent + 1:
			l.put(Event{Channel: Output, Kind: OutputChanged, Window: l.tree.root, Detail: uint32(e.U8(1))}, nil)
		}
	})
}

// recorded takes one RECORD reply.
func (l *Log) recorded(ch Channel, r x11.RecordReply, err error) {
	if err != nil {
		return // the loss of the channel is told by its connection; an error of the context by Start
	}
	if l.own[r.Client] && r.Category != x11.RecordFromServer {
		if r.Category == x11.RecordFromClient && r.Client == l.conns[Query].Setup().ResourceBase {
			l.findMark(r)
		}
		return
	}
	l.locked(func() {
		switch r.Category {
		case x11.RecordFromClient:
			actor := l.actor(r.Client)
			unread := r.Requests(func(q x11.RecordedRequest) { l.request(ch, q, r.ServerMS, actor) })
			if unread > 0 {
				l.health[ch].Errors++
				l.put(Event{Channel: ch, Kind: GuardError, ServerMS: r.ServerMS, Detail: uint32(unread)}, actor)
			}
		case x11.RecordFromServer:
			unread := r.DeviceEvents(func(e x11.Event) { l.deviceEvent(e, r.ServerMS) })
			if unread > 0 {
				l.health[Record].Errors++
				l.put(Event{Channel: Record, Kind: GuardError, Detail: uint32(unread)}, nil)
			}
		case x11.RecordClientStarted:
			delete(l.clients, r.Client) // the id range may have been another client's
			l.put(Event{Channel: Record, Kind: ClientStarted}, l.actor(r.Client))
		case x11.RecordClientDied:
			l.put(Event{Channel: Record, Kind: ClientDied}, l.actor(r.Client))
			delete(l.clients, r.Client)
			l.clientGone(r.Client)
		}
	})
}

// clientGone forgets roles that came from a client's windows, when no window of it is watched any more.
func (l *Log) clientGone(base uint32) {
	for id := range l.watched {
		if l.base(id) == base {
			return // its DestroyNotify is logged with its role; the id range is judged until then
		}
	}
	delete(l.baseRole, base)
}

// request logs one request. Reads and selections of input are logged where they concern the person, the
// bystander or the root; others are what every client does all day.
func (l *Log) request(ch Channel, q x11.RecordedRequest, serverMS uint32, actor *client) {
	ev := l.dec.request(q)
	ev.Channel = ch
	ev.ServerMS = serverMS
	ev.Role = l.roleOf(ev.Window)
	theirs := ev.Role == Person || ev.Role == Bystander
	switch ev.Kind {
	case ReqRead:
		if q.Major == 20 && !theirs {
			return
		}
	case ReqAttributes:
		if !theirs {
			return
		}
	case ReqListen:
		if q.Major == 2 && !theirs {
			return
		}
	case ReqFakeKey:
		l.cause = cause{actor, x11.KeyPress}
	case ReqFakeButton:
		l.cause = cause{actor, x11.ButtonPress}
	case ReqFakeMotion, ReqWarp:
		l.cause = cause{actor, x11.MotionNotify}
	case GuardError:
		l.health[Record].Errors++
	}
	l.put(ev, actor)
}

// deviceEvent logs what a device did. The server runs one request after the other and makes a request's input
// before the next one, so the last request of the same kind is the cause; each causes one event.
func (l *Log) deviceEvent(e x11.Event, serverMS uint32) {
	ev := Event{Channel: Record, ServerMS: e.U32(4), Detail: uint32(e.U8(1)), X: int32(e.I16(20)), Y: int32(e.I16(22)),
		SendEvent: e.SendEvent}
	if ev.ServerMS == 0 {
		ev.ServerMS = serverMS
	}
	class := e.Code
	switch e.Code {
	case x11.KeyPress, x11.KeyRelease:
		ev.Kind, class = DeviceKey, x11.KeyPress
		ev.Release = e.Code == x11.KeyRelease
	case x11.ButtonPress, x11.ButtonRelease:
		ev.Kind, class = DeviceButton, x11.ButtonPress
		ev.Release = e.Code == x11.ButtonRelease
	case x11.MotionNotify:
		ev.Kind = DeviceMotion
	default:
		return
	}
	var actor *client
	if l.cause.actor != nil && l.cause.class == class {
		actor = l.cause.actor
		l.cause = cause{}
	}
	l.put(ev, actor)
}

// findMark looks for a barrier's mark among the guard's own requests.
func (l *Log) findMark(r x11.RecordReply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Requests(func(q x11.RecordedRequest) {
		ev := l.dec.request(q)
		if ev.Atom != atomMarker || ev.Window != l.markWindow {
			return
		}
		token := ev.Detail
		if q.Major == changeProperty {
			token = q.U32(24 + q.Body() - 4)
		}
		if ch := l.marks[token]; ch != nil {
			delete(l.marks, token)
			close(ch)
		}
	})
}
