package cdp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

const (
	// callBudget bounds every command that the caller's context does not bound tighter.
	callBudget = 5 * time.Second
	// attachBudget is how long a call waits for a target that is being attached. A target whose dialog was open before never gets ready.
	attachBudget = 900 * time.Millisecond
	// maxSessions bounds what a browser can make us remember.
	maxSessions = 1024
)

// link is one connection: the wire, chromedp's browser on it, and our flat sessions. It is the chromedp.Transport that chromedp sees:
// messages of sessions and browser-level events are taken out by Read, replies at browser level go on to chromedp.
type link struct {
	w       *wire
	browser *chromedp.Browser
	cancel  context.CancelFunc
	epoch   int // of the connection; part of every document's identity

	mu       sync.Mutex
	sessions map[target.SessionID]*session
	targets  map[target.ID]*session
	// changed is closed and replaced when a page session comes or goes.
	changed chan struct{}

	lost    chan struct{}
	lostErr error // valid after lost is closed
	endOnce sync.Once
}

var _ chromedp.Transport = (*link)(nil)

// newLink takes over w. It attaches to every page that is there and that will come, without ever pausing one.
func newLink(ctx context.Context, w *wire, epoch int, logf func(string, ...any)) (*link, error) {
	l := &link{w: w, epoch: epoch, sessions: map[target.SessionID]*session{}, targets: map[target.ID]*session{}, changed: make(chan struct{}), lost: make(chan struct{})}
	run, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	b, err := chromedp.NewBrowserTransport(run, l, chromedp.WithBrowserLogf(logf), chromedp.WithBrowserErrorf(logf))
	if err != nil {
		cancel()
		return nil, err
	}
	l.browser = b
	if _, err := call(ctx, l, target.SetDiscoverTargets, target.SetDiscoverTargetsParams{Discover: true, Filter: target.Filter{{Type: "page"}}}); err != nil {
		l.end(err)
		return nil, err
	}
	yes := true
	if _, err := call(ctx, l, target.SetAutoAttach, target.SetAutoAttachParams{AutoAttach: true, Flatten: &yes, Filter: target.Filter{{Type: "page"}}}); err != nil {
		l.end(err)
		return nil, err
	}
	return l, nil
}

// end closes the connection, once, for the first reason given.
func (l *link) end(err error) {
	l.endOnce.Do(func() {
		l.mu.Lock()
		l.lostErr = err
		l.mu.Unlock()
		close(l.lost)
		l.cancel()
		l.w.Close()
	})
}

// Read hands chromedp the replies at browser level and takes everything else.
func (l *link) Read(ctx context.Context, msg *cdproto.Message) error {
	for {
		if err := l.w.Read(ctx, msg); err != nil {
			l.end(err)
			return err
		}
		switch {
		case msg.SessionID != "":
			l.mu.Lock()
			s := l.sessions[msg.SessionID]
			l.mu.Unlock()
			if s != nil {
				if err := s.take(msg); err != nil {
					l.end(err)
					return err
				}
			}
		case msg.Method != "":
			if err := l.event(nil, msg); err != nil {
				l.end(err)
				return err
			}
		default:
			return nil
		}
	}
}

// Write passes on to the wire.
func (l *link) Write(ctx context.Context, msg *cdproto.Message) error { return l.w.Write(ctx, msg) }

// Close ends the connection.
func (l *link) Close() error {
	l.end(errLost)
	return l.w.Close()
}

// Call runs a browser-level command.
func (l *link) Call(ctx context.Context, method string, params, res any) error {
	ctx, cancel := context.WithTimeout(ctx, callBudget)
	defer cancel()
	err := l.browser.Call(ctx, method, params, res)
	var wire *cdproto.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wire):
		return err
	}
	select {
	case <-l.lost:
		return l.lostErr
	default:
	}
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	return violation("%s: reply does not decode", method)
}

// event handles the events about targets. from is the page session whose frame a new target is, nil at browser level.
func (l *link) event(from *session, msg *cdproto.Message) error {
	switch msg.Method {
	case "Target.attachedToTarget":
		var ev target.EventAttachedToTarget
		if err := decode(msg, &ev); err != nil {
			return err
		}
		if ev.TargetInfo == nil || ev.SessionID == "" {
			return violation("attachedToTarget without target or session")
		}
		if (from == nil) != (ev.TargetInfo.Type == "page") {
			return nil
		}
		s := newSession(l, ev.SessionID, ev.TargetInfo.TargetID, from)
		l.mu.Lock()
		if len(l.sessions) >= maxSessions || l.sessions[ev.SessionID] != nil {
			l.mu.Unlock()
			return violation("more than %d sessions, or one twice", maxSessions)
		}
		l.sessions[s.id] = s
		l.targets[s.target] = s
		l.announce()
		l.mu.Unlock()
		go s.start()
	case "Target.detachedFromTarget":
		var ev target.EventDetachedFromTarget
		if err := decode(msg, &ev); err != nil {
			return err
		}
		l.drop(func(s *session) bool { return s.id == ev.SessionID }, errGone)
	case "Target.targetDestroyed":
		var ev target.EventTargetDestroyed
		if err := decode(msg, &ev); err != nil {
			return err
		}
		l.drop(func(s *session) bool { return s.target == ev.TargetID }, errGone)
	case "Target.targetCrashed":
		var ev target.EventTargetCrashed
		if err := decode(msg, &ev); err != nil {
			return err
		}
		l.mu.Lock()
		s := l.targets[ev.TargetID]
		l.mu.Unlock()
		if s != nil {
			s.finish(errCrashed)
		}
	}
	return nil
}

func (l *link) drop(which func(*session) bool, cause error) {
	l.mu.Lock()
	var gone []*session
	for id, s := range l.sessions {
		if which(s) || (s.parent != nil && which(s.parent)) {
			gone = append(gone, s)
			delete(l.sessions, id)
			if l.targets[s.target] == s {
				delete(l.targets, s.target)
			}
		}
	}
	l.announce()
	l.mu.Unlock()
	for _, s := range gone {
		s.finish(cause)
	}
}

// announce wakes who waits for a session to come or go. l.mu is held.
func (l *link) announce() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// page returns the ready session of a page target. A target that no session has and that is not being created is gone.
func (l *link) page(ctx context.Context, id target.ID) (*session, error) {
	l.mu.Lock()
	s := l.targets[id]
	l.mu.Unlock()
	if s == nil || s.parent != nil {
		select {
		case <-l.lost:
			return nil, l.lostErr
		default:
		}
		return nil, errGone
	}
	return s, s.await(ctx)
}

// pages returns the page sessions.
func (l *link) pages() []*session {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*session
	for _, s := range l.targets {
		if s.parent == nil {
			all = append(all, s)
		}
	}
	return all
}

// children returns the sessions of frames of other processes below s.
func (l *link) children(s *session) []*session {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*session
	for _, c := range l.targets {
		for p := c.parent; p != nil; p = p.parent {
			if p == s {
				all = append(all, c)
				break
			}
		}
	}
	return all
}

// session is one flat session of a page or of a frame of another process. The reader updates its state; calls read it.
type session struct {
	l      *link
	id     target.SessionID
	target target.ID
	parent *session

	// act admits one action at a time, so that focus and text of two callers do not mix.
	act chan struct{}

	// ready is closed when Page is enabled; startErr is valid then.
	ready    chan struct{}
	startErr error
	// gone is closed when the session ended; goneErr is valid then.
	gone     chan struct{}
	goneErr  error
	goneOnce sync.Once

	mu     sync.Mutex
	next   int64
	calls  map[int64]chan *cdproto.Message
	dialog chan struct{} // closed while a dialog is open
	// main is the root frame of the session; loader and generation change with its document.
	main       cdp.FrameID
	loader     cdp.LoaderID
	generation int
	// commits and loads are the last documents of the main frame that were committed and that fired load, newest last.
	commits, loads []cdp.LoaderID
	changed        chan struct{} // closed and replaced when loader or loads change
	worlds         map[cdp.FrameID]runtime.ExecutionContextID
	emulated       bool
	// settled is the document that was seen to have painted.
	settled string
	// keepsTree: the accessibility tree is kept between calls.
	keepsTree bool
}

func newSession(l *link, id target.SessionID, t target.ID, parent *session) *session {
	return &session{l: l, id: id, target: t, parent: parent, act: make(chan struct{}, 1), ready: make(chan struct{}), gone: make(chan struct{}),
		calls: map[int64]chan *cdproto.Message{}, dialog: make(chan struct{}), changed: make(chan struct{}), worlds: map[cdp.FrameID]runtime.ExecutionContextID{}}
}

// start enables Page before anything else, for a dialog that opens earlier can neither be seen nor answered. It waits as long as the
// session lives: callers bound their own waiting.
func (s *session) start() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err := func() error {
		yes := true
		enable := s.send("Page.enable", page.EnableParams{})
		lifecycle := s.send("Page.setLifecycleEventsEnabled", page.SetLifecycleEventsEnabledParams{Enabled: true})
		frames := s.send("Page.getFrameTree", nil)
		attach := s.send("Target.setAutoAttach", target.SetAutoAttachParams{AutoAttach: true, Flatten: &yes, Filter: target.Filter{{Type: "iframe"}}})
		for _, p := range []*pending{enable, lifecycle, frames, attach} {
			p.through = true // a dialog that opens meanwhile delays the answers until it is closed
		}
		var tree page.GetFrameTreeResult
		for _, p := range []*pending{enable, lifecycle} {
			if err := p.wait(ctx, nil); err != nil {
				return err
			}
		}
		if err := frames.wait(ctx, &tree); err != nil {
			return err
		}
		if tree.FrameTree == nil || tree.FrameTree.Frame == nil {
			return violation("frame tree without a root")
		}
		s.mu.Lock()
		if s.main == "" {
			s.main, s.loader = tree.FrameTree.Frame.ID, tree.FrameTree.Frame.LoaderID
		}
		s.mu.Unlock()
		return attach.wait(ctx, nil)
	}()
	s.startErr = err
	close(s.ready)
}

// await waits until the session is ready, at most attachBudget.
func (s *session) await(ctx context.Context) error { return s.awaitFor(ctx, attachBudget) }

// awaitFor waits until the session is ready, at most budget.
func (s *session) awaitFor(ctx context.Context, budget time.Duration) error {
	select {
	case <-s.gone:
		return s.goneErr
	default:
	}
	select {
	case <-s.ready:
		return s.startErr
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	select {
	case <-s.ready:
		return s.startErr
	case <-s.opened():
		return errDialog
	case <-s.gone:
		return s.goneErr
	case <-s.l.lost:
		return s.l.lostErr
	case <-ctx.Done():
		return contextError(ctx)
	}
}

// finish ends the session; a crashed renderer ends it too, for nothing of its document is left.
func (s *session) finish(cause error) {
	s.goneOnce.Do(func() {
		s.goneErr = cause
		close(s.gone)
	})
}

// lock admits one action; it does not wait behind an open dialog.
func (s *session) lock(ctx context.Context) (func(), error) {
	select {
	case <-s.opened():
		return nil, errDialog
	default:
	}
	select {
	case s.act <- struct{}{}:
		return func() { <-s.act }, nil
	case <-s.opened():
		return nil, errDialog
	case <-s.gone:
		return nil, s.goneErr
	case <-s.l.lost:
		return nil, s.l.lostErr
	case <-ctx.Done():
		return nil, contextError(ctx)
	}
}

// opened returns the channel that is closed when a dialog opens.
func (s *session) opened() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dialog
}

// dialogOpen says whether a dialog is open now.
func (s *session) dialogOpen() bool {
	select {
	case <-s.opened():
		return true
	default:
		return false
	}
}

// take is the reader's: it delivers a reply or folds an event into the state. It never waits.
func (s *session) take(msg *cdproto.Message) error {
	if msg.ID != 0 {
		s.mu.Lock()
		ch := s.calls[msg.ID]
		delete(s.calls, msg.ID)
		s.mu.Unlock()
		if ch != nil {
			reply := *msg
			ch <- &reply
		}
		return nil
	}
	switch msg.Method {
	case "Page.javascriptDialogOpening":
		s.mu.Lock()
		select {
		case <-s.dialog:
		default:
			close(s.dialog)
		}
		s.mu.Unlock()
	case "Page.javascriptDialogClosed":
		s.mu.Lock()
		select {
		case <-s.dialog:
			s.dialog = make(chan struct{})
		default:
		}
		s.mu.Unlock()
	case "Page.frameNavigated":
		var ev page.EventFrameNavigated
		if err := decode(msg, &ev); err != nil {
			return err
		}
		if ev.Frame == nil {
			return violation("frameNavigated without a frame")
		}
		s.mu.Lock()
		delete(s.worlds, ev.Frame.ID)
		if ev.Frame.ParentID == "" || ev.Frame.ID == s.main {
			clear(s.worlds)
			s.main, s.loader = ev.Frame.ID, ev.Frame.LoaderID
			s.generation++
			s.commits = remember(s.commits, s.loader)
			s.wake()
		}
		s.mu.Unlock()
	case "Page.lifecycleEvent":
		var ev page.EventLifecycleEvent
		if err := decode(msg, &ev); err != nil {
			return err
		}
		if ev.Name != "load" {
			return nil
		}
		s.mu.Lock()
		if ev.FrameID == s.main {
			s.loads = remember(s.loads, ev.LoaderID)
			s.wake()
		}
		s.mu.Unlock()
	case "Page.frameDetached":
		var ev page.EventFrameDetached
		if err := decode(msg, &ev); err != nil {
			return err
		}
		s.mu.Lock()
		delete(s.worlds, ev.FrameID)
		s.mu.Unlock()
	case "Target.attachedToTarget", "Target.detachedFromTarget":
		return s.l.event(s, msg)
	case "Inspector.targetCrashed":
		s.finish(errCrashed)
	}
	return nil
}

// wake wakes who waits for a document. s.mu is held.
func (s *session) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// remember appends to a list of at most eight.
func remember(list []cdp.LoaderID, id cdp.LoaderID) []cdp.LoaderID {
	if len(list) >= 8 {
		list = append(list[:0], list[1:]...)
	}
	return append(list, id)
}

// document identifies the main document now. The generation is part of it because a document that comes back from the page cache has
// its old loader id, and the epoch because a new connection counts generations anew.
func (s *session) document() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%s.%d.%d", s.loader, s.l.epoch, s.generation)
}

// whileDocument returns a context that ends with errNavigated when the main document changes: what was asked of a document that is gone
// may never be answered.
func (s *session) whileDocument(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	s.mu.Lock()
	changed, generation := s.changed, s.generation
	s.mu.Unlock()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			s.mu.Lock()
			now := s.generation
			changed = s.changed
			s.mu.Unlock()
			if now != generation {
				cancel(errNavigated)
				return
			}
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// keepTree asks Chromium, once a session, to keep its accessibility tree between calls: else each look at one node builds the tree of the
// whole page and throws it away, which costs some ms on a page of 1,000 controls. Nothing is waited for; commands are handled in order.
func (s *session) keepTree() {
	s.mu.Lock()
	done := s.keepsTree
	s.keepsTree = true
	s.mu.Unlock()
	if !done {
		s.send("Accessibility.enable", nil).forget()
	}
}

// settle waits until the document takes input: until it has painted once. It asks once a document.
func (s *session) settle(ctx context.Context) error {
	document := s.document()
	s.mu.Lock()
	done := s.settled == document
	s.mu.Unlock()
	if done {
		return nil
	}
	yes := true
	if _, err := evaluateIn[bool](ctx, s, settleScript, &yes); err != nil {
		return err
	}
	s.mu.Lock()
	s.settled = document
	s.mu.Unlock()
	return nil
}

// pending is a command on its way.
type pending struct {
	s      *session
	id     int64
	method string
	reply  chan *cdproto.Message
	err    error
	until  time.Time
	// through: the browser answers this command itself, whether or not a dialog holds up the page.
	through bool
}

// send sends a command without waiting, so that several can be under way at once; Chromium handles them in order.
func (s *session) send(method string, params any) *pending {
	p := &pending{s: s, method: method, reply: make(chan *cdproto.Message, 1), until: time.Now().Add(callBudget)}
	select {
	case <-s.gone:
		p.err = s.goneErr
		return p
	case <-s.l.lost:
		p.err = s.l.lostErr
		return p
	default:
	}
	msg := cdproto.Message{SessionID: s.id, Method: cdproto.MethodType(method)}
	if params != nil {
		b, err := jsonv2.Marshal(params, chromedp.DefaultMarshalOptions)
		if err != nil {
			p.err = fmt.Errorf("encode %s: %w", method, err)
			return p
		}
		msg.Params = b
	}
	s.mu.Lock()
	s.next++
	p.id = s.next
	s.calls[p.id] = p.reply
	s.mu.Unlock()
	msg.ID = p.id
	if err := s.l.w.Write(context.Background(), &msg); err != nil {
		p.forget()
		p.err = err
	}
	return p
}

// wait returns when the reply is there, a dialog opened, the session or the connection ended, or ctx or the budget is over. The deadline
// of start has no budget, for a page with an old dialog answers only when the person answers it.
func (p *pending) wait(ctx context.Context, res any) error {
	if p.err != nil {
		return p.err
	}
	select {
	case msg := <-p.reply:
		return p.result(msg, res)
	default:
	}
	var dialog <-chan struct{}
	if !p.through {
		dialog = p.s.opened()
	}
	var budget <-chan time.Time
	select {
	case <-p.s.ready:
		t := time.NewTimer(time.Until(p.until))
		defer t.Stop()
		budget = t.C
	default:
	}
	select {
	case msg := <-p.reply:
		return p.result(msg, res)
	case <-dialog:
		p.err = errDialog
	case <-p.s.gone:
		p.err = p.s.goneErr
	case <-p.s.l.lost:
		p.err = p.s.l.lostErr
	case <-ctx.Done():
		p.err = contextError(ctx)
	case <-budget:
		p.err = fmt.Errorf("%s: no answer in %v: %w", p.method, callBudget, context.DeadlineExceeded)
	}
	// What is already there wins: a reply that came together with the dialog is a reply.
	select {
	case msg := <-p.reply:
		return p.result(msg, res)
	default:
	}
	p.forget()
	return p.err
}

func (p *pending) forget() {
	p.s.mu.Lock()
	delete(p.s.calls, p.id)
	p.s.mu.Unlock()
}

func (p *pending) result(msg *cdproto.Message, res any) error {
	if msg.Error != nil {
		return fmt.Errorf("%s: %w", p.method, msg.Error)
	}
	if res == nil {
		return nil
	}
	if err := jsonv2.Unmarshal(msg.Result, res, chromedp.DefaultUnmarshalOptions); err != nil {
		return violation("%s: reply does not decode", p.method)
	}
	return nil
}

// Call sends a command and waits.
func (s *session) Call(ctx context.Context, method string, params, res any) error {
	return s.send(method, params).wait(ctx, res)
}

// caller is a session or the link.
type caller interface {
	Call(ctx context.Context, method string, params, res any) error
}

// call runs a typed command.
func call[P, R any](ctx context.Context, c caller, cmd cdp.Command[P, R], params P) (R, error) {
	var res R
	err := c.Call(ctx, cmd.Method, params, &res)
	return res, err
}

func decode(msg *cdproto.Message, ev any) error {
	if err := jsonv2.Unmarshal(msg.Params, ev, chromedp.DefaultUnmarshalOptions); err != nil {
		return violation("event %s does not decode", msg.Method)
	}
	return nil
}
