//go:build browser

package cdp

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
)

// desk is a private X display with a window manager and a person's window on top that holds the focus.
type desk struct {
	t        testing.TB
	display  string
	x        *xgb.Conn
	root     xproto.Window
	sentinel xproto.Window
	atoms    map[string]xproto.Atom

	mu     sync.Mutex
	events []string
}

func run(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	g := NewWithT(t)
	r, w, err := os.Pipe()
	g.Expect(err).NotTo(HaveOccurred())
	server := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset")
	server.ExtraFiles = []*os.File{w}
	run(t, server)
	w.Close()
	line, err := bufio.NewReader(r).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	d := &desk{t: t, display: ":" + strings.TrimSpace(line), atoms: map[string]xproto.Atom{}}
	wm := exec.Command("openbox", "--sm-disable")
	wm.Env = append(os.Environ(), "DISPLAY="+d.display)
	run(t, wm)
	d.x, err = xgb.NewConnDisplay(d.display)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(d.x.Close)
	d.root = xproto.Setup(d.x).DefaultScreen(d.x).Root
	for _, n := range []string{"_NET_ACTIVE_WINDOW", "_NET_CLIENT_LIST", "_NET_CLIENT_LIST_STACKING", "_NET_SUPPORTING_WM_CHECK", "CLIPBOARD"} {
		a, err := xproto.InternAtom(d.x, false, uint16(len(n)), n).Reply()
		g.Expect(err).NotTo(HaveOccurred())
		d.atoms[n] = a.Atom
	}
	g.Eventually(func() int { return len(d.words("_NET_SUPPORTING_WM_CHECK")) }, "10s").Should(Equal(1))
	return d
}

func (d *desk) words(name string) []uint32 {
	r, err := xproto.GetProperty(d.x, false, d.root, d.atoms[name], xproto.GetPropertyTypeAny, 0, 1024).Reply()
	if err != nil {
		return nil
	}
	var out []uint32
	for i := 0; i+4 <= len(r.Value); i += 4 {
		out = append(out, xgb.Get32(r.Value[i:]))
	}
	return out
}

// client returns the client rectangle of the newest managed window.
func (d *desk) client() (r engine.Rect) {
	list := d.words("_NET_CLIENT_LIST")
	if len(list) == 0 {
		return r
	}
	w := xproto.Window(list[len(list)-1])
	g, err := xproto.GetGeometry(d.x, xproto.Drawable(w)).Reply()
	if err != nil {
		return r
	}
	p, err := xproto.TranslateCoordinates(d.x, w, d.root, 0, 0).Reply()
	if err != nil {
		return r
	}
	return engine.Rect{X: int(p.DstX), Y: int(p.DstY), W: int(g.Width), H: int(g.Height)}
}

// cover maps the person's window over everything and starts to listen.
func (d *desk) cover() {
	g := NewWithT(d.t)
	s := xproto.Setup(d.x).DefaultScreen(d.x)
	id, err := xproto.NewWindowId(d.x)
	g.Expect(err).NotTo(HaveOccurred())
	xproto.CreateWindow(d.x, s.RootDepth, id, d.root, 0, 0, s.WidthInPixels, s.HeightInPixels, 0, xproto.WindowClassInputOutput, s.RootVisual,
		xproto.CwBackPixel|xproto.CwEventMask, []uint32{0x336699, xproto.EventMaskKeyPress | xproto.EventMaskButtonPress | xproto.EventMaskPointerMotion |
			xproto.EventMaskFocusChange | xproto.EventMaskVisibilityChange})
	xproto.MapWindow(d.x, id)
	d.sentinel = id
	g.Eventually(func() []uint32 { return d.words("_NET_CLIENT_LIST_STACKING") }, "5s").Should(ContainElement(uint32(id)))
	d.restore()
	go func() {
		for {
			e, xe := d.x.WaitForEvent()
			if e == nil && xe == nil {
				return
			}
			d.note(e)
		}
	}()
	xproto.ChangeWindowAttributes(d.x, d.root, xproto.CwEventMask, []uint32{xproto.EventMaskPropertyChange | xproto.EventMaskSubstructureNotify})
	d.quiet()() // the window manager's last words about the new window
}

func (d *desk) note(e xgb.Event) {
	var what string
	switch v := e.(type) {
	case xproto.PropertyNotifyEvent:
		switch v.Atom {
		case d.atoms["_NET_ACTIVE_WINDOW"]:
			what = "active window"
		case d.atoms["_NET_CLIENT_LIST_STACKING"]:
			what = "stacking"
		}
	case xproto.MapNotifyEvent:
		if v.OverrideRedirect {
			if g, err := xproto.GetGeometry(d.x, xproto.Drawable(v.Window)).Reply(); err == nil && g.Width > 2 && g.X > -10 {
				what = fmt.Sprintf("popup %dx%d", g.Width, g.Height)
			}
		}
	case xproto.FocusOutEvent:
		what = "focus left the person"
	case xproto.KeyPressEvent, xproto.ButtonPressEvent, xproto.MotionNotifyEvent:
		what = "input at the person"
	case xproto.VisibilityNotifyEvent:
		if v.State != xproto.VisibilityUnobscured {
			what = "person covered"
		}
	}
	if what != "" {
		d.mu.Lock()
		d.events = append(d.events, what)
		d.mu.Unlock()
	}
}

// restore gives the person's window the focus and the top.
func (d *desk) restore() {
	g := NewWithT(d.t)
	g.Eventually(func() []uint32 {
		m := xproto.ClientMessageEvent{Format: 32, Window: d.sentinel, Type: d.atoms["_NET_ACTIVE_WINDOW"], Data: xproto.ClientMessageDataUnionData32New([]uint32{2, 0, 0, 0, 0})}
		xproto.SendEvent(d.x, false, d.root, xproto.EventMaskSubstructureRedirect|xproto.EventMaskSubstructureNotify, string(m.Bytes()))
		stack := d.words("_NET_CLIENT_LIST_STACKING")
		if len(stack) == 0 {
			return nil
		}
		return append(d.words("_NET_ACTIVE_WINDOW"), stack[len(stack)-1])
	}, "5s", "20ms").Should(Equal([]uint32{uint32(d.sentinel), uint32(d.sentinel)}))
}

func (d *desk) seen() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.events)
}

type standing struct {
	active, stack []uint32
	focus         xproto.Window
	x, y          int16
	primary, clip xproto.Window
}

func (d *desk) standing() standing {
	s := standing{active: d.words("_NET_ACTIVE_WINDOW"), stack: d.words("_NET_CLIENT_LIST_STACKING")}
	if f, err := xproto.GetInputFocus(d.x).Reply(); err == nil {
		s.focus = f.Focus
	}
	if p, err := xproto.QueryPointer(d.x, d.root).Reply(); err == nil {
		s.x, s.y = p.RootX, p.RootY
	}
	if o, err := xproto.GetSelectionOwner(d.x, xproto.AtomPrimary).Reply(); err == nil {
		s.primary = o.Owner
	}
	if o, err := xproto.GetSelectionOwner(d.x, d.atoms["CLIPBOARD"]).Reply(); err == nil {
		s.clip = o.Owner
	}
	return s
}

// quiet starts a window of time; the returned function closes it after 150 ms of quiet and says what happened to the desk.
func (d *desk) quiet() func() []string {
	before := d.standing()
	d.mu.Lock()
	d.events = nil
	d.mu.Unlock()
	return func() []string {
		g := NewWithT(d.t)
		n, since := len(d.seen()), time.Now()
		g.Eventually(func() bool {
			if now := len(d.seen()); now != n {
				n, since = now, time.Now()
			}
			return time.Since(since) >= 150*time.Millisecond
		}, "3s", "10ms").Should(BeTrue())
		list := d.seen()
		if after := d.standing(); fmt.Sprint(after) != fmt.Sprint(before) {
			list = append(list, fmt.Sprintf("standing %+v became %+v", before, after))
		}
		return list
	}
}

// untouched runs f and fails when the desk changed.
func (d *desk) untouched(t *testing.T, f func()) {
	t.Helper()
	end := d.quiet()
	f()
	if list := end(); len(list) > 0 {
		t.Errorf("the desk was touched: %q", list)
		d.restore()
	}
}

// site is a page server that journals what the pages report.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	lines []string
}

// head makes a page report load, click, key and input events with their trust.
const head = `<!doctype html><meta charset=utf-8><title>page</title><script>
const tell = (s) => fetch("/log", {method: "POST", body: location.pathname + " " + s, keepalive: true});
for (const k of ["click", "input", "change", "keydown"]) addEventListener(k, (e) => tell(k + " " + (e.target.id || e.target.localName) + " " + e.isTrusted +
  (k == "input" || k == "change" ? " " + (e.target.value ?? e.target.innerText) : "")), true);
addEventListener("load", () => tell("load"));
</script>`

func newSite(t testing.TB, pages map[string]string) *site {
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/log" {
			b := make([]byte, 64<<10)
			n, _ := r.Body.Read(b)
			s.mu.Lock()
			s.lines = append(s.lines, string(b[:n]))
			s.mu.Unlock()
			return
		}
		p, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, head+p)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) journal() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

// launchOn starts a browser on a desk.
func launchOn(t testing.TB, d *desk, cfg Config, extra ...string) *Browser {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	if err := os.Mkdir(profile, 0o700); err != nil {
		t.Fatal(err)
	}
	if cfg.Log == nil {
		cfg.Log = logTo{t}
	}
	got, err := New(cfg).Launch(t.Context(), engine.LaunchSpec{ProfileDir: profile, Env: append(env(d, profile), extra...), Budget: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	b := got.(*Browser)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		if err := b.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return b
}

func env(d *desk, home string) []string {
	return []string{"DISPLAY=" + d.display, "HOME=" + home, "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "XDG_RUNTIME_DIR=" + home}
}

type logTo struct{ t testing.TB }

func (l logTo) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}
