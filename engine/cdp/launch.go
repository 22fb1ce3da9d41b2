package cdp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/cdproto/target"

	"github.com/engine-acceptance/acceptance/engine"
)

var (
	_ engine.Adapter     = (*Adapter)(nil)
	_ engine.Browser     = (*Browser)(nil)
	_ engine.Reconnector = (*Browser)(nil)
)

// Binaries is where Chromium is looked for when [Config.Binary] is empty, in this order.
var Binaries = []string{"/usr/lib/chromium/chromium", "/usr/bin/chromium", "/usr/lib/chromium-browser/chromium-browser", "/opt/google/chrome/chrome", "/usr/bin/google-chrome"}

const (
	// endpointFile is where Chromium writes its endpoint, inside the profile.
	endpointFile = "DevToolsActivePort"
	// maxEndpointFile bounds what is read of it, in bytes.
	maxEndpointFile = 256
	// maxOutput is how much of the browser's own output is kept, in bytes; the last lines are what explains a failed start.
	maxOutput = 64 << 10
	// closeGrace is how long a browser may take to close by itself, and then how long its helpers may.
	closeGrace = 3 * time.Second
	// pollEvery is how often files and processes that send no event are looked at.
	pollEvery = 5 * time.Millisecond
)

// Config is what an adapter needs; the zero value starts the first of [Binaries].
type Config struct {
	// Binary is the path of the browser, empty for the search list.
	Binary string
	// Log receives the adapter's private log: the browser's own last lines and faults. It may hold paths and ports and must never reach a
	// caller of the engine. Nil discards it.
	Log io.Writer
	// WireTap is called for every protocol message, by the goroutine that reads or writes it. It must not block.
	WireTap func(WireEvent)
	// Wire wraps the stream to the browser. It is nil in production; an instrumented build cuts, garbles or delays with it.
	Wire func(net.Conn) net.Conn
}

// Adapter starts Chromium.
type Adapter struct{ cfg Config }

// New returns an adapter. It touches nothing.
func New(cfg Config) *Adapter { return &Adapter{cfg: cfg} }

// arguments are the switches of every launch. None is a test's; each is needed:
//
//	--user-data-dir                           the profile
//	--remote-debugging-port=0                 a free port on loopback, written to the profile
//	--disable-backgrounding-occluded-windows  a covered window goes on drawing and taking input; without it a mouse event hangs and arrives
//	                                          when the person uncovers the window
//	--no-first-run, --no-default-browser-check, --hide-crash-restore-bubble
//	                                          no window or bubble of the browser's own over the person's windows
//	--password-store=basic                    no keyring dialog
//	--disable-background-networking, --disable-component-update
//	                                          a browser that works for an engine talks to nobody of its own accord: no update, no field trial
//	about:blank                               one window with one inert visible tab
func arguments(profile string) []string {
	return []string{
		"--user-data-dir=" + profile,
		"--remote-debugging-port=0",
		"--disable-backgrounding-occluded-windows",
		"--no-first-run",
		"--no-default-browser-check",
		"--hide-crash-restore-bubble",
		"--password-store=basic",
		"--disable-background-networking",
		"--disable-component-update",
		"about:blank",
	}
}

// Launch starts Chromium with its sandbox on; uid 0 is refused, for Chromium would need the sandbox off. spec.ProfileDir is used as it is,
// but for the endpoint file of an earlier run, which is deleted.
func (a *Adapter) Launch(ctx context.Context, spec engine.LaunchSpec) (engine.Browser, error) {
	if os.Geteuid() == 0 {
		a.logf("launch refused: uid 0 would need the sandbox off")
		return nil, launchFailed("exited")
	}
	budget := spec.Budget
	if budget <= 0 {
		budget = 20 * time.Second
	}
	start, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	b, err := a.launch(start, spec)
	if err == nil {
		return b, nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err() // nobody waits any more; where the time was up, what the browser did not do in it says more
	}
	return nil, err
}

func (a *Adapter) launch(ctx context.Context, spec engine.LaunchSpec) (*Browser, error) {
	binary, err := a.binary()
	if err != nil {
		a.logf("launch: %v", err)
		return nil, launchFailed("no_binary")
	}
	profile, err := filepath.Abs(spec.ProfileDir)
	if err == nil {
		err = writable(profile)
	}
	if err != nil {
		a.logf("launch: %v", err)
		return nil, launchFailed("profile_unwritable")
	}
	if owner, held := lockOwner(profile); held {
		a.logf("launch: profile is in use by process %d", owner)
		return nil, launchFailed("profile_in_use")
	}
	if err := os.Remove(filepath.Join(profile, endpointFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		a.logf("launch: %v", err)
		return nil, launchFailed("profile_unwritable")
	}
	output := &tail{max: maxOutput}
	child, err := startChild(binary, arguments(profile), spec.Env, profile, output)
	if err != nil {
		a.logf("launch %s: %v", binary, err)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			return nil, launchFailed("no_binary")
		}
		return nil, launchFailed("exited")
	}
	b := &Browser{adapter: a, child: child, profile: profile, owns: spec.Owns, scale: 1, lost: make(chan struct{})}
	err = b.connect(ctx)
	if err == nil {
		go b.watch()
		return b, nil
	}
	select {
	case <-b.child.done:
		// Its last words may still be in the pipe; a helper that lives on can hold that open.
		select {
		case <-b.child.drained:
		case <-time.After(closeGrace / 6):
		}
	default:
	}
	reason := b.explain(output)
	a.logf("launch %s: %v (%s); last output:\n%s", binary, err, reason, output.last(20))
	stop, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	b.kill(stop)
	if r := engine.AsRefusal(err); r != nil && reason == "no_endpoint" {
		// There was an endpoint all the time, and it was not the browser's.
		return nil, r
	}
	return nil, launchFailed(reason)
}

func (a *Adapter) logf(format string, args ...any) {
	if a.cfg.Log != nil {
		fmt.Fprintf(a.cfg.Log, "cdp: "+format+"\n", args...)
	}
}

func (a *Adapter) binary() (string, error) {
	list := Binaries
	if a.cfg.Binary != "" {
		list = []string{a.cfg.Binary}
	}
	for _, p := range list {
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", fmt.Errorf("no executable of %q: %w", list, os.ErrNotExist)
}

// writable proves that files can be made in a directory.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".writable-")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// lockOwner reads Chromium's lock, a link to "host-pid". A lock of a process that is dead is no lock; Chromium removes it.
func lockOwner(profile string) (pid int, held bool) {
	link, err := os.Readlink(filepath.Join(profile, "SingletonLock"))
	if err != nil {
		return 0, false
	}
	i := strings.LastIndexByte(link, '-')
	pid, err = strconv.Atoi(link[i+1:])
	if err != nil || pid <= 0 {
		return 0, false
	}
	return pid, alive(pid)
}

// explain says why a launch failed, in a word of refusals.yaml.
func (b *Browser) explain(output *tail) string {
	text := output.last(50)
	switch {
	case strings.Contains(text, "Opening in existing browser session") || strings.Contains(text, "profile appears to be in use"):
		return "profile_in_use"
	case strings.Contains(text, "Address already in use"):
		return "port_taken"
	case strings.Contains(text, "Failed to create") && strings.Contains(text, "data directory"):
		return "profile_unwritable"
	}
	select {
	case <-b.child.done:
		return "exited"
	default:
	}
	return "no_endpoint"
}

// Browser is one running Chromium with one connection.
type Browser struct {
	adapter  *Adapter
	child    *child
	profile  string
	process  engine.Process
	endpoint netip.AddrPort
	path     string // of the endpoint; it names the browser's generation
	link     *link
	// owns proves that an endpoint is the browser's before anything is sent to it; nil proves nothing.
	owns func(context.Context, engine.Process, netip.AddrPort) error
	// scale is device pixels per unit of the protocol's window bounds; it does not change while an X11 browser runs.
	scale float64
	// epoch counts the connections to this browser.
	epoch int

	lost    chan struct{}
	closing sync.Mutex
}

// connect waits for the endpoint, connects, and proves that the endpoint is the child's: the browser says its own pid.
func (b *Browser) connect(ctx context.Context) error {
	addr, path, err := b.awaitEndpoint(ctx)
	if err != nil {
		return err
	}
	b.endpoint, b.path = addr, path
	if err := b.attach(ctx); err != nil {
		return err
	}
	// The first window is there when a context has one; until then its look-up says that there is none.
	for {
		list, err := b.contexts(ctx)
		if err == nil && len(list) > 0 && list[0].Document != "" {
			break
		}
		if err != nil && !errors.Is(err, errGone) {
			return err
		}
		select {
		case <-time.After(pollEvery):
		case <-b.child.done:
			return errors.New("the browser ended before it had a window")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return b.readScale(ctx)
}

// attach connects to the endpoint that is known and proves that it is the child's.
func (b *Browser) attach(ctx context.Context) error {
	w, err := dialWire(ctx, b.endpoint, b.path, b.adapter.cfg.Wire, b.adapter.cfg.WireTap)
	if err != nil {
		return err
	}
	l, err := newLink(ctx, w, b.epoch, b.adapter.logf)
	if err != nil {
		w.Close()
		return err
	}
	b.link = l
	info, err := call(ctx, l, systeminfo.GetProcessInfo, cdp.Empty{})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(info.ProcessInfo, func(p *systeminfo.ProcessInfo) bool {
		return p != nil && p.Type == "browser" && p.ID == int64(b.child.pid)
	}) {
		return errors.New("the endpoint belongs to another process")
	}
	b.process, err = identify(b.child.pid)
	return err
}

// dyingBudget is how long a browser that does not answer a new connection may take to be gone.
const dyingBudget = time.Second

// Reconnect makes a new connection to the same living browser after the old one was lost. Nothing is revived: tabs keep their keys, but
// documents are seen anew, focus emulation is over, and nodes of before are refused by their document. The old Browser stays lost; only the
// new one is to be closed.
func (b *Browser) Reconnect(ctx context.Context) (engine.Browser, error) {
	select {
	case <-b.lost:
	default:
		return nil, refuse(engine.OpState, "", "", errors.New("the connection is not lost"))
	}
	stale := func(reason string) error {
		return refusal(engine.OpState, engine.CodeBindingStale, "generation_changed", engine.Detail{Reason: reason})
	}
	if now, err := identify(b.child.pid); err != nil || now.Start != b.process.Start {
		return nil, stale("process")
	}
	again := &Browser{adapter: b.adapter, child: b.child, profile: b.profile, endpoint: b.endpoint, path: b.path, scale: b.scale, epoch: b.epoch + 1, lost: make(chan struct{})}
	if err := again.attach(ctx); err != nil {
		if again.link != nil {
			again.link.end(errLost)
		}
		b.adapter.logf("reconnect: %v", err)
		// A process that is being killed closes its sockets before it is gone.
		for deadline := time.Now().Add(dyingBudget); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(dyingBudget / 50) {
			if now, err := identify(b.child.pid); err != nil || now.Start != b.process.Start {
				return nil, stale("process")
			}
		}
		return nil, stale("connection")
	}
	go again.watch()
	return again, nil
}

// readScale asks for the scale of the screens. Screens of different scale are not told apart: the primary one counts.
func (b *Browser) readScale(ctx context.Context) error {
	list, err := call(ctx, b.link, target.GetTargets, target.GetTargetsParams{Filter: target.Filter{{Type: "page"}}})
	if err != nil {
		return err
	}
	for _, t := range list.TargetInfos {
		s, err := b.link.page(ctx, t.TargetID)
		if err != nil {
			continue
		}
		screens, err := call(ctx, s, emulation.GetScreenInfos, cdp.Empty{})
		if err != nil {
			var wire *cdproto.Error
			if errors.As(err, &wire) {
				continue
			}
			return err
		}
		for _, sc := range screens.ScreenInfos {
			if sc != nil && sc.DevicePixelRatio > 0 && (sc.IsPrimary || len(screens.ScreenInfos) == 1) {
				b.scale = sc.DevicePixelRatio
				return nil
			}
		}
	}
	return nil
}

// awaitEndpoint reads the endpoint file once it is whole and names an endpoint of the browser's own: a file that an earlier run left names
// another's, and that is not spoken to.
func (b *Browser) awaitEndpoint(ctx context.Context) (netip.AddrPort, string, error) {
	name := filepath.Join(b.profile, endpointFile)
	var last error
	for {
		content, err := readBounded(name, maxEndpointFile)
		if err == nil {
			addr, path, err := parseEndpoint(content)
			if err == nil {
				err = b.ownsEndpoint(ctx, addr)
			}
			if err == nil {
				return addr, path, nil
			}
			last = err
		}
		select {
		case <-time.After(pollEvery):
		case <-b.child.done:
			return netip.AddrPort{}, "", fmt.Errorf("the browser ended: %s", b.child.state())
		case <-ctx.Done():
			return netip.AddrPort{}, "", fmt.Errorf("no endpoint: %w", errors.Join(ctx.Err(), last))
		}
	}
}

// ownsEndpoint proves that an endpoint is the browser's.
func (b *Browser) ownsEndpoint(ctx context.Context, addr netip.AddrPort) error {
	if b.owns == nil {
		return nil
	}
	p, err := identify(b.child.pid) // a script becomes the browser while we wait
	if err != nil {
		return err
	}
	return b.owns(ctx, p, addr)
}

// readBounded reads a small regular file; a link is not followed.
func readBounded(name string, limit int64) (string, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return "", fmt.Errorf("%s is no regular file of at most %d bytes", filepath.Base(name), limit)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit))
	return string(data), err
}

// watch closes Lost when connection or process is gone, whichever comes first.
func (b *Browser) watch() {
	select {
	case <-b.child.done:
		b.link.end(fmt.Errorf("%w: the browser ended: %s", errLost, b.child.state()))
	case <-b.link.lost:
		b.adapter.logf("connection ended: %v", b.link.lostErr)
	}
	close(b.lost)
}

// Process identifies the browser.
func (b *Browser) Process() engine.Process { return b.process }

// Endpoint is the loopback address of the connection.
func (b *Browser) Endpoint() netip.AddrPort { return b.endpoint }

// Lost is closed when connection or process is gone.
func (b *Browser) Lost() <-chan struct{} { return b.lost }

// Close ends the browser: by the protocol, then by signals to the processes that are proved to be its own. When it returns nil, no
// process of the browser is left. It may be called more than once.
func (b *Browser) Close(ctx context.Context) error {
	b.closing.Lock()
	defer b.closing.Unlock()
	family := b.child.family(b.profile)
	select {
	case <-b.link.lost:
	default:
		// chromedp keeps this command for itself, so it leaves on our own wire; the answer is the end of the connection.
		b.link.w.Write(ctx, &cdproto.Message{ID: 1 << 30, Method: browser.CommandClose})
		t := time.NewTimer(closeGrace)
		defer t.Stop()
		select {
		case <-b.child.done:
		case <-t.C:
		case <-ctx.Done():
		}
	}
	b.link.end(errLost)
	return b.end(ctx, family)
}

// kill ends a browser that never became usable.
func (b *Browser) kill(ctx context.Context) {
	family := b.child.family(b.profile)
	if b.link != nil {
		b.link.end(errLost)
	}
	if err := b.end(ctx, family); err != nil {
		b.adapter.logf("after a failed launch: %v", err)
	}
}

// end kills what is left of a family and waits until nothing is. Helpers that the browser takes along by itself get a moment for it.
func (b *Browser) end(ctx context.Context, family []engine.Process) error {
	b.child.kill()
	patience := time.Now().Add(closeGrace / 6)
	for {
		left := 0
		for _, p := range append(family, b.child.family(b.profile)...) {
			now, err := identify(p.PID)
			if err != nil || now.Start != p.Start {
				continue
			}
			left++
			if time.Now().After(patience) {
				signalProcess(p)
			}
		}
		select {
		case <-b.child.done:
			if left == 0 {
				return nil
			}
		default:
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return fmt.Errorf("%d processes of the browser are left: %w", left, ctx.Err())
		}
	}
}

// tail keeps the last bytes that were written to it.
type tail struct {
	mu  sync.Mutex
	max int
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - t.max; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// last returns the last n lines.
func (t *tail) last(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimRight(t.buf, "\n"), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-n):], []byte("\n")))
}
