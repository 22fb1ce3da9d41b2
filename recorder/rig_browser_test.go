//go:build browser

package recorder

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/engine-acceptance/acceptance/redaction"
	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
	"github.com/onsi/gomega"
)

// browserUID is an ordinary user for the browser when root runs the tests, so that its own sandbox stays on.
const browserUID = 61234

// desk is a private display with a window manager.
type desk struct {
	t       testing.TB
	display string
	auth    string
	c       *xgb.Conn
	root    xproto.Window
	server  *os.Process
}

// child starts a process in its own group that ends with the test.
func child(t testing.TB, cmd *exec.Cmd) *os.Process {
	t.Helper()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", cmd.Path, err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		done := make(chan struct{})
		go func() { cmd.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(3 * time.Second):
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-done
		}
	})
	return cmd.Process
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	dir, err := os.MkdirTemp("", "film-desk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	d := &desk{t: t, auth: filepath.Join(dir, "auth")}
	cookie := make([]byte, 16)
	rand.Read(cookie)
	var b bytes.Buffer
	binary.Write(&b, binary.BigEndian, uint16(0xffff)) // any host
	for _, f := range [][]byte{nil, nil, []byte("MIT-MAGIC-COOKIE-1"), cookie} {
		binary.Write(&b, binary.BigEndian, uint16(len(f)))
		b.Write(f)
	}
	if err := os.WriteFile(d.auth, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	xvfb := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset", "-auth", d.auth)
	xvfb.ExtraFiles = []*os.File{w}
	d.server = child(t, xvfb)
	w.Close()
	r.SetReadDeadline(time.Now().Add(40 * time.Second))
	line, err := bufio.NewReader(r).ReadString('\n')
	r.Close()
	if err != nil {
		t.Fatalf("Xvfb told no display: %v", err)
	}
	d.display = ":" + strings.TrimSpace(line)
	c, _, err := dial(d.display, d.auth)
	if err != nil {
		t.Fatal(err)
	}
	d.c = c
	t.Cleanup(c.Close)
	d.root = xproto.Setup(c).DefaultScreen(c).Root
	child(t, d.command("openbox", "--sm-disable"))
	d.eventually(func() bool {
		return len(d.prop(d.root, "_NET_SUPPORTING_WM_CHECK")) == 4 && len(d.prop(d.root, "_NET_WORKAREA")) > 0
	})
	return d
}

func (d *desk) eventually(f func() bool) {
	d.t.Helper()
	gomega.NewWithT(d.t).Eventually(f, "60s", "50ms").Should(gomega.BeTrue())
}

func (d *desk) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = []string{"DISPLAY=" + d.display, "XAUTHORITY=" + d.auth, "PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(d.auth), "LC_ALL=C.UTF-8"}
	return cmd
}

func (d *desk) atom(name string) xproto.Atom {
	r, err := xproto.InternAtom(d.c, false, uint16(len(name)), name).Reply()
	if err != nil {
		d.t.Fatal(err)
	}
	return r.Atom
}

func (d *desk) prop(w xproto.Window, name string) []byte {
	r, err := xproto.GetProperty(d.c, false, w, d.atom(name), xproto.GetPropertyTypeAny, 0, 1024).Reply()
	if err != nil || r == nil {
		return nil
	}
	return r.Value
}

// clients returns the windows that the window manager manages.
func (d *desk) clients() []xproto.Window {
	v := d.prop(d.root, "_NET_CLIENT_LIST")
	var out []xproto.Window
	for ; len(v) >= 4; v = v[4:] {
		out = append(out, xproto.Window(xgb.Get32(v)))
	}
	return out
}

// window makes a window of one colour, placed and mapped.
func (d *desk) window(title string, r redaction.Rect, colour uint32) xproto.Window {
	id, _ := xproto.NewWindowId(d.c)
	scr := xproto.Setup(d.c).DefaultScreen(d.c)
	xproto.CreateWindow(d.c, scr.RootDepth, id, d.root, int16(r.X), int16(r.Y), uint16(r.W), uint16(r.H), 0, xproto.WindowClassInputOutput, scr.RootVisual, xproto.CwBackPixel, []uint32{colour})
	xproto.ChangeProperty(d.c, xproto.PropModeReplace, id, xproto.AtomWmName, xproto.AtomString, 8, uint32(len(title)), []byte(title))
	hints := make([]byte, 72)
	xgb.Put32(hints, 1|4) // USPosition, PPosition
	xproto.ChangeProperty(d.c, xproto.PropModeReplace, id, xproto.AtomWmNormalHints, xproto.AtomWmSizeHints, 32, 18, hints)
	xproto.MapWindow(d.c, id)
	d.eventually(func() bool {
		a, err := xproto.GetWindowAttributes(d.c, id).Reply()
		if err != nil || a.MapState != xproto.MapStateViewable {
			xproto.MapWindow(d.c, id) // a window manager that is still starting may have lost the first request
			return false
		}
		return true
	})
	return id
}

// paint fills part of a window.
func (d *desk) paint(w xproto.Window, r redaction.Rect, colour uint32) {
	gc, _ := xproto.NewGcontextId(d.c)
	xproto.CreateGC(d.c, gc, xproto.Drawable(w), xproto.GcForeground, []uint32{colour})
	xproto.PolyFillRectangle(d.c, xproto.Drawable(w), gc, []xproto.Rectangle{{X: int16(r.X), Y: int16(r.Y), Width: uint16(r.W), Height: uint16(r.H)}})
	xproto.FreeGC(d.c, gc)
	d.c.Sync()
}

// beat repaints a part of a window every period until stopped.
func (d *desk) beat(w xproto.Window, r redaction.Rect, period time.Duration) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(period)
		defer t.Stop()
		for i := 0; ; i++ {
			d.paint(w, r, []uint32{0x2040a0, 0xf0d060}[i%2])
			select {
			case <-t.C:
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

func (d *desk) raise(w xproto.Window) {
	xproto.ConfigureWindow(d.c, w, xproto.ConfigWindowStackMode, []uint32{xproto.StackModeAbove})
	d.c.Sync()
}

// rect returns where a window is on the desk.
func (d *desk) rect(w xproto.Window) redaction.Rect {
	g, err := xproto.GetGeometry(d.c, xproto.Drawable(w)).Reply()
	if err != nil {
		return redaction.Rect{}
	}
	p, err := xproto.TranslateCoordinates(d.c, w, d.root, 0, 0).Reply()
	if err != nil {
		return redaction.Rect{}
	}
	return redaction.Rect{X: int(p.DstX), Y: int(p.DstY), W: int(g.Width), H: int(g.Height)}
}

// page beats at its top left corner, scrolls text, and shows a secret in a known place.
const page = `<!doctype html><title>film</title><style>body{margin:0;font:16px sans-serif;background:#f4f6fb}
#beat{width:80px;height:80px;background:#036;float:left}#s{position:absolute;left:40px;top:160px;width:420px;height:40px;font:22px monospace}
p{margin:220px 40px 8px;max-width:640px}</style><div id=beat></div><h2>&nbsp;Sign in</h2>
<input id=s value="SECRET-hunter2-visible"><p>This window is covered by another one. Its own pixels are read through the window system, so the
film shows what the page did while nobody could see it.</p><p style="margin-top:8px" id=n></p>
<script>let i=0;setInterval(()=>{beat.style.background=['#036','#fc3'][++i%2];n.textContent='step '+i;},200)</script>`

// secretOnPage is where the page shows its secret, in pixels of the page.
var secretOnPage = redaction.Rect{X: 36, Y: 156, W: 440, H: 52}

// chromium starts the real browser as an ordinary user, its sandbox on, and returns its window. The answer to the page's request tells that it loaded.
func (d *desk) chromium(pos redaction.Rect) xproto.Window {
	d.t.Helper()
	var loaded atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, page)
		loaded.Store(true)
	}))
	d.t.Cleanup(srv.Close)
	home, err := os.MkdirTemp("", "film-browser-")
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { os.RemoveAll(home) })
	before := len(d.clients())
	cmd := d.command("chromium", "--no-first-run", "--disable-gpu", "--password-store=basic", "--user-data-dir="+filepath.Join(home, "profile"),
		fmt.Sprintf("--window-position=%d,%d", pos.X, pos.Y), fmt.Sprintf("--window-size=%d,%d", pos.W, pos.H), srv.URL)
	cmd.Env = append(cmd.Env, "HOME="+home, "XDG_RUNTIME_DIR="+home, "TMPDIR="+home)
	if os.Geteuid() == 0 {
		if err := os.Chown(home, browserUID, browserUID); err != nil {
			d.t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: browserUID, Gid: browserUID}}
	}
	child(d.t, cmd)
	d.eventually(func() bool { return loaded.Load() && len(d.clients()) > before })
	return d.clients()[before]
}
