package controls

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/engine-acceptance/acceptance/suites/sessionbus"
	"github.com/engine-acceptance/acceptance/suites/talk"
	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// maxClipboard bounds the person's clipboard in bytes.
const maxClipboard = 64 << 10

type role struct {
	c     *xwire.Conn
	trip  *xwire.Trip
	atoms map[string]uint32
	xtest byte
	xi    byte
	randr byte
	panel uint32 // managed, at the bottom; owns the selections
	popup uint32 // override-redirect, mapped for an act only
	taker uint32 // takes the selections for an act; never mapped
	text  string
	buses *sessionbus.Buses // nil: there is no bus
}

// Main is the role: it commits what it is told to on stdin, until that ends or "quit". Exit codes: 0 ended as
// asked, 1 the display was lost or lacks an extension, 2 wrong arguments.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("controls", flag.ContinueOnError)
	fs.SetOutput(stderr)
	var at sessionbus.Address
	fs.StringVar(&at.Bus, "bus", "", "address of the session bus on which the person's application is")
	fs.IntVar(&at.UID, "bus-uid", os.Getuid(), "uid that the bus serves")
	if err := fs.Parse(args); err != nil || fs.NArg() > 0 {
		fmt.Fprintln(stderr, "controls: wrong arguments", err, fs.Args())
		return 2
	}
	r := &role{}
	if at.Bus != "" {
		buses, err := sessionbus.Open(ctx, at)
		if err != nil {
			fmt.Fprintln(stderr, "controls:", err)
			return 1
		}
		defer buses.Close()
		r.buses = buses
	}
	if err := r.open(ctx); err != nil {
		fmt.Fprintln(stderr, "controls:", err)
		return 1
	}
	defer r.c.Close()
	defer r.trip.Close()
	if err := r.run(ctx, stdin, talk.NewWriter(stdout)); err != nil {
		fmt.Fprintln(stderr, "controls:", err)
		return 1
	}
	return 0
}

func (r *role) open(ctx context.Context) (err error) {
	display, auth := os.Getenv("DISPLAY"), os.Getenv("XAUTHORITY")
	if r.c, err = xwire.Dial(ctx, display, auth); err != nil {
		return err
	}
	if r.trip, err = xwire.NewTrip(ctx, display, auth); err != nil {
		return err
	}
	c := r.c
	if r.atoms, err = c.Atoms(ctx, "CLIPBOARD", "TARGETS", "UTF8_STRING", "_NET_WM_NAME", "_NET_WM_PID", "_NET_WM_USER_TIME", "_NET_WM_STATE", "_NET_WM_STATE_SKIP_TASKBAR",
		"_NET_WM_WINDOW_OPACITY", "_NET_ACTIVE_WINDOW", "_NET_MOVERESIZE_WINDOW", "_NET_CURRENT_DESKTOP", "_ACCEPTANCE_CONTROL"); err != nil {
		return err
	}
	for name, major := range map[string]*byte{"XTEST": &r.xtest, "XInputExtension": &r.xi, "RANDR": &r.randr} {
		var there bool
		if *major, _, there, err = c.Extension(ctx, name); err != nil {
			return err
		}
		if !there {
			return fmt.Errorf("the X server has no extension %s", name)
		}
	}
	if _, err := c.Call(ctx, xwire.Req(r.xi, 47).U16(2, 2)); err != nil { // XIQueryVersion
		return err
	}
	if _, err := c.Call(ctx, xwire.Req(r.randr, 0).U32(1, 2)); err != nil { // RRQueryVersion
		return err
	}
	r.panel, r.popup, r.taker = c.NewID(), c.NewID(), c.NewID()
	a := r.atoms
	const w, h = 180, 26
	const input = 0x1 | 0x2 | 0x4 | 0x8 | 0x40 // keys, buttons, motion
	window := func(id uint32, x, y, w, h int, override uint32) *xwire.Request {
		return xwire.Req(1, 0).U32(id, c.Root).I16(x, y).U16(uint16(w), uint16(h), 0, 1).U32(0, 0x2|0x200|0x800, 0x5a6b74, override, input)
	}
	err = c.Send(
		window(r.panel, c.Width-w-8, c.Height-h-8, w, h, 0), window(r.popup, 0, 0, popupPx, popupPx, 1), window(r.taker, 0, 0, 1, 1, 1),
		xwire.SetProperty(r.panel, 39, 31, 8, []byte("Panel")),
		xwire.SetProperty(r.panel, a["_NET_WM_NAME"], a["UTF8_STRING"], 8, []byte("Panel")),
		xwire.SetProperty(r.panel, 67, 31, 8, []byte("panel\x00Panel\x00")),
		xwire.SetProperty(r.panel, a["_NET_WM_PID"], 6, 32, xwire.Words32(uint32(os.Getpid()))),
		xwire.SetProperty(r.panel, a["_NET_WM_USER_TIME"], 6, 32, xwire.Words32(0)), // opens without the focus
		xwire.SetProperty(r.panel, a["_NET_WM_STATE"], 4, 32, xwire.Words32(a["_NET_WM_STATE_SKIP_TASKBAR"])),
		hints(r.panel, 0),
		xwire.SetProperty(r.panel, 40, 41, 32, xwire.Words32(1|2|512, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10)),
		xwire.Req(8, 0).U32(r.panel),
		xwire.Req(22, 0).U32(r.panel, a["CLIPBOARD"], 0), xwire.Req(22, 0).U32(r.panel, 1, 0),
	)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		if see, err := c.Viewable(ctx, r.panel); err != nil {
			return err
		} else if see {
			break
		}
		if err := r.settle(ctx); err != nil {
			return fmt.Errorf("panel was not mapped: %w", err)
		}
	}
	if err := errors.Join(c.Send(stack(r.panel, 1)), r.settle(ctx)); err != nil {
		return err
	}
	if e := c.Errors(); len(e) > 0 {
		return e[0]
	}
	return nil
}

func (r *role) run(ctx context.Context, stdin io.Reader, out *talk.Writer) error {
	requests := talk.Requests(ctx, stdin)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.c.Done():
			return r.c.Err()
		case <-r.trip.Done():
			return errors.New("second connection to the display was lost")
		case <-r.c.Ready():
			for _, ev := range r.c.Take() {
				if ev.Kind == 30 && !ev.Sent {
					if err := r.giveSelection(ev.Raw); err != nil {
						return err
					}
				}
			}
		case q, ok := <-requests:
			if !ok || q.Op == "quit" {
				return nil
			}
			result, err := r.serve(ctx, q)
			if err := out.Answer(q, result, err); err != nil {
				return err
			}
		}
	}
}

func (r *role) serve(ctx context.Context, q talk.Request) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, talk.DefaultBudget)
	defer cancel()
	switch q.Op {
	case "clipboard":
		var text string
		if err := q.Decode(&text); err != nil {
			return nil, err
		}
		if len(text) > maxClipboard {
			return nil, fmt.Errorf("clipboard of %d bytes, more than %d", len(text), maxClipboard)
		}
		r.text = text
		err := r.c.Send(xwire.Req(22, 0).U32(r.panel, r.atoms["CLIPBOARD"], 0), xwire.Req(22, 0).U32(r.panel, 1, 0))
		if err == nil {
			_, err = r.c.Focus(ctx)
		}
		return nil, err
	case "commit", "once":
		var victim uint32
		if err := q.Decode(&victim); err != nil {
			return nil, err
		}
		if q.Op == "once" {
			return r.commitOnce(ctx, victim)
		}
		return r.commit(ctx, victim)
	}
	return nil, fmt.Errorf("unknown operation %q", q.Op)
}

// holdSelections takes the person's selections again where somebody took them for good: that was seen when it happened, and a control needs
// an owner to take them from.
func (r *role) holdSelections(ctx context.Context) error {
	for _, selection := range []uint32{r.atoms["CLIPBOARD"], 1} {
		now, err := r.owner(ctx, selection)
		if err != nil {
			return err
		}
		if now != r.panel {
			if err := r.c.Send(xwire.Req(22, 0).U32(r.panel, selection, 0)); err != nil {
				return err
			}
		}
	}
	return nil
}

// giveSelection answers a SelectionRequest with the person's text (ICCCM, 2.2).
func (r *role) giveSelection(b []byte) error {
	time, requestor, selection, target, property := le.Uint32(b[4:]), le.Uint32(b[12:]), le.Uint32(b[16:]), le.Uint32(b[20:]), le.Uint32(b[24:])
	if property == 0 {
		property = target
	}
	var put *xwire.Request
	switch target {
	case r.atoms["TARGETS"]:
		put = xwire.SetProperty(requestor, property, 4, 32, xwire.Words32(r.atoms["TARGETS"], r.atoms["UTF8_STRING"], 31))
	case r.atoms["UTF8_STRING"], 31:
		put = xwire.SetProperty(requestor, property, target, 8, []byte(r.text))
	default:
		property = 0
	}
	ev := make([]byte, 32)
	ev[0] = 31
	for i, v := range []uint32{time, requestor, selection, target, property} {
		le.PutUint32(ev[4+4*i:], v)
	}
	reqs := []*xwire.Request{xwire.SendEvent(requestor, 0, ev)}
	if put != nil {
		reqs = append([]*xwire.Request{put}, reqs...)
	}
	return r.c.Send(reqs...)
}
