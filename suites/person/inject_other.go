//go:build !cgo || !linux

package person

import (
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strings"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
	"github.com/jezek/xgb/xtest"

	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// Injector names what injects the strokes.
const Injector = "xgb"

type hands struct {
	x     *xgb.Conn
	root  xproto.Window
	codes map[byte]xproto.Keycode
}

func newHands() (*hands, error) {
	xgb.Logger = log.New(io.Discard, "", 0)
	number := strings.TrimPrefix(os.Getenv("DISPLAY"), ":")
	cookie, err := xwire.Cookie(os.Getenv("XAUTHORITY"), number)
	if err != nil {
		return nil, err
	}
	nc, err := net.Dial("unix", "/tmp/.X11-unix/X"+number)
	if err != nil {
		return nil, err
	}
	x, err := xgb.NewConnNetWithCookieHex(nc, hex.EncodeToString(cookie))
	if err != nil {
		nc.Close()
		return nil, err
	}
	if err := xtest.Init(x); err != nil {
		x.Close()
		return nil, err
	}
	setup := xproto.Setup(x)
	h := &hands{x: x, root: setup.DefaultScreen(x).Root, codes: map[byte]xproto.Keycode{}}
	m, err := xproto.GetKeyboardMapping(x, setup.MinKeycode, byte(setup.MaxKeycode-setup.MinKeycode+1)).Reply()
	if err != nil {
		x.Close()
		return nil, err
	}
	for i := 0; i+int(m.KeysymsPerKeycode) <= len(m.Keysyms); i += int(m.KeysymsPerKeycode) {
		sym := m.Keysyms[i] // plain, without modifiers
		if sym < 0x80 && strings.IndexByte(alphabet, byte(sym)) >= 0 {
			if _, ok := h.codes[byte(sym)]; !ok {
				h.codes[byte(sym)] = setup.MinKeycode + xproto.Keycode(i/int(m.KeysymsPerKeycode))
			}
		}
	}
	return h, nil
}

// fake injects one event and waits until the server has it.
func (h *hands) fake(kind, detail byte, x, y int) error {
	return xtest.FakeInputChecked(h.x, kind, detail, 0, h.root, int16(x), int16(y), 0).Check()
}

func (h *hands) key(c byte) error {
	code, ok := h.codes[c]
	if !ok {
		return fmt.Errorf("no key types %q", c)
	}
	if err := h.fake(2, byte(code), 0, 0); err != nil {
		return err
	}
	return h.fake(3, byte(code), 0, 0)
}

func (h *hands) click(x, y int) error {
	for _, e := range [][2]byte{{6, 0}, {4, 1}, {5, 1}} {
		if err := h.fake(e[0], e[1], x, y); err != nil {
			return err
		}
	}
	return nil
}

func (h *hands) close() { h.x.Close() }
