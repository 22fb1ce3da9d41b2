//go:build browser

package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/jezek/xgb"
	"github.com/jezek/xgb/res"
	"github.com/jezek/xgb/xproto"
	"golang.org/x/sys/unix"
)

// bare asks what a re-proof asks, of the same sources, with nothing between: no locks, no comparison, no refusal. It is what the proof is
// measured against.
type bare struct {
	rig    *rig
	x      *xgb.Conn
	root   xproto.Window
	pid    int
	socket string // the descriptor under which the browser holds its endpoint
	atoms  []xproto.Atom
}

func (r *rig) openBare(b *testing.B) *bare {
	b.Helper()
	x, err := xgb.NewConnDisplay(r.desk.Display())
	if err != nil {
		b.Fatal(err)
	}
	if err := res.Init(x); err != nil {
		b.Fatal(err)
	}
	out := &bare{rig: r, x: x, root: xproto.Setup(x).DefaultScreen(x).Root, pid: r.browser.Process().PID}
	for _, name := range []string{"_NET_WM_PID", "WM_STATE", "_NET_WM_STATE"} {
		a, err := xproto.InternAtom(x, false, uint16(len(name)), name).Reply()
		if err != nil {
			b.Fatal(err)
		}
		out.atoms = append(out.atoms, a.Atom)
	}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", out.pid))
	if err != nil {
		b.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "socket:") {
			out.socket = fd
		}
	}
	return out
}

func (p *bare) close() { p.x.Close() }

// ask asks everything once.
func (p *bare) ask(ctx context.Context) error {
	// The process.
	if _, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid)); err != nil {
		return err
	}
	if _, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.pid)); err != nil {
		return err
	}
	// The endpoint.
	if err := listening(); err != nil {
		return err
	}
	if _, err := os.Readlink(p.socket); err != nil {
		return err
	}
	// The window.
	w := xproto.Window(p.rig.window)
	owner := res.QueryClientIds(p.x, 1, []res.ClientIdSpec{{Client: p.rig.window, Mask: res.ClientIdMaskLocalClientPID}})
	geometry := xproto.GetGeometry(p.x, xproto.Drawable(w))
	origin := xproto.TranslateCoordinates(p.x, w, p.root, 0, 0)
	attributes := xproto.GetWindowAttributes(p.x, w)
	var properties []xproto.GetPropertyCookie
	for _, a := range p.atoms {
		properties = append(properties, xproto.GetProperty(p.x, false, w, a, xproto.GetPropertyTypeAny, 0, 64))
	}
	_, e0 := owner.Reply()
	_, e1 := geometry.Reply()
	_, e2 := origin.Reply()
	_, e3 := attributes.Reply()
	err := errors.Join(e0, e1, e2, e3)
	for _, c := range properties {
		_, e := c.Reply()
		err = errors.Join(err, e)
	}
	if err != nil {
		return err
	}
	// The tabs: the window of each, and which one is visible, all at once.
	answers := make(chan error, 3)
	for _, id := range []target.ID{p.rig.shown, p.rig.parked} {
		go func() {
			_, err := cdp.Call(ctx, chromedp.FromContext(p.rig.bare).Browser, browser.GetWindowForTarget, browser.GetWindowForTargetParams{TargetID: id})
			answers <- err
		}()
	}
	go func() {
		_, err := chromedp.Run(p.rig.beside, chromedp.Evaluate[string]("document.visibilityState"))
		answers <- err
	}()
	return errors.Join(<-answers, <-answers, <-answers)
}

// listening asks the kernel for the listening TCP sockets (sock_diag(7)) and reads the answer away.
func listening() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req := make([]byte, unix.NLMSG_HDRLEN+56)
	binary.NativeEndian.PutUint32(req, uint32(len(req)))
	binary.NativeEndian.PutUint16(req[4:], 20)
	binary.NativeEndian.PutUint16(req[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	req[16], req[17] = unix.AF_INET, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(req[20:], 1<<10)
	if err := unix.Sendto(fd, req, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buf := make([]byte, 1<<16)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return err
		}
		for rest := buf[:n]; len(rest) >= unix.NLMSG_HDRLEN; {
			size := int(binary.NativeEndian.Uint32(rest))
			if kind := binary.NativeEndian.Uint16(rest[4:]); kind == unix.NLMSG_DONE || kind == unix.NLMSG_ERROR || size < unix.NLMSG_HDRLEN {
				return nil
			}
			rest = rest[min(len(rest), (size+3)&^3):]
		}
	}
}
