package sentinel

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"io"
	"os"
	"time"

	"github.com/engine-acceptance/acceptance/suites/process"
	"github.com/engine-acceptance/acceptance/suites/sessionbus"
	"github.com/engine-acceptance/acceptance/suites/talk"
	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// BeatEvery is the time between two heartbeats of a window.
const BeatEvery = 250 * time.Millisecond

// keptRunes bounds how much of the document the window remembers to show.
const keptRunes = 4096

// role is the running window.
type role struct {
	c     *xwire.Conn
	trip  *xwire.Trip
	out   *talk.Writer
	win   uint32
	gc    uint32
	atoms map[string]uint32
	names map[uint32]string
	keys  keymap
	faces faces
	pic   picture
	sheet sheet // as the server has it
	n     uint64
	total int

	stale   bool // the sheet does not show what was typed yet
	resized bool
}

// settleWithin is ten times what openbox takes for its animation.
const settleWithin = 2 * time.Second

// paintEvery bounds how often the sheet is painted: faster than a film's frames, but not for each key.
const paintEvery = 40 * time.Millisecond

// Main is the role: it opens its window on DISPLAY with XAUTHORITY, logs on stdout and takes commands on
// stdin until that ends or "quit". Exit codes: 0 ended as asked, 1 the display was lost or refused,
// 2 wrong arguments.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("sentinel", flag.ContinueOnError)
	fs.SetOutput(stderr)
	var o Options
	fs.StringVar(&o.Title, "title", "Letter", "window title")
	fs.StringVar(&o.Heading, "heading", "The person's document", "what the window shows at its head")
	fs.BoolVar(&o.Dark, "dark", false, "dark colours")
	fs.BoolVar(&o.Above, "above", false, "keep the window above others by its own property")
	fs.BoolVar(&o.Quiet, "quiet", false, "do not take the focus when it opens")
	fs.StringVar(&o.Bus.Bus, "bus", "", "address of a session bus to be an application on")
	fs.IntVar(&o.Bus.UID, "bus-uid", os.Getuid(), "uid that the bus serves")
	fs.IntVar(&o.Rect.X, "x", 80, "root pixels")
	fs.IntVar(&o.Rect.Y, "y", 60, "root pixels")
	fs.IntVar(&o.Rect.Width, "width", 640, "pixels")
	fs.IntVar(&o.Rect.Height, "height", 420, "pixels")
	if err := fs.Parse(args); err != nil || fs.NArg() > 0 || checkSize(o.Rect) != nil {
		fmt.Fprintln(stderr, "sentinel: wrong arguments", err, fs.Args(), o.Rect)
		return 2
	}
	r := &role{out: talk.NewWriter(stdout)}
	if err := r.open(ctx, o); err != nil {
		fmt.Fprintln(stderr, "sentinel:", err)
		return 1
	}
	defer r.c.Close()
	defer r.trip.Close()
	if o.Bus.Bus != "" {
		buses, err := sessionbus.Open(ctx, o.Bus)
		if err == nil {
			defer buses.Close()
			err = buses.Offer(r.acted)
		}
		if err != nil {
			fmt.Fprintln(stderr, "sentinel:", err)
			return 1
		}
	}
	if err := r.run(ctx, stdin); err != nil {
		fmt.Fprintln(stderr, "sentinel:", err)
		return 1
	}
	return 0
}

// acted takes an action that somebody had this application do over a bus: nothing happens, for who does it is what counts, and the desk's event
// log has that.
func (r *role) acted(string) {}

func checkSize(r xwire.Rect) error {
	if r.Width < 60 || r.Height < headPx+footPx+20 || r.Width > 16384 || r.Height > 16384 {
		return fmt.Errorf("window of %dx%d, want 60x%d to 16384x16384 pixels", r.Width, r.Height, headPx+footPx+20)
	}
	return nil
}

func (r *role) open(ctx context.Context, o Options) (err error) {
	display, auth := os.Getenv("DISPLAY"), os.Getenv("XAUTHORITY")
	if r.faces, err = loadFaces(); err != nil {
		return err
	}
	if r.c, err = xwire.Dial(ctx, display, auth); err != nil {
		return err
	}
	if r.trip, err = xwire.NewTrip(ctx, display, auth); err != nil {
		return err
	}
	c := r.c
	if r.atoms, err = c.Atoms(ctx, "UTF8_STRING", "_NET_WM_NAME", "_NET_WM_PID", "_NET_WM_STATE", "_NET_WM_STATE_ABOVE", "_NET_WM_USER_TIME", "WM_PROTOCOLS",
		"WM_DELETE_WINDOW", "WM_STATE", "WM_CHANGE_STATE", "_NET_ACTIVE_WINDOW", "_NET_MOVERESIZE_WINDOW", "_NET_WM_WINDOW_OPACITY", "_NET_FRAME_EXTENTS", "_NET_WM_DESKTOP", "WM_HINTS"); err != nil {
		return err
	}
	r.names = map[uint32]string{}
	for n, a := range r.atoms {
		r.names[a] = n
	}
	if err := r.readKeymap(ctx); err != nil {
		return err
	}
	r.win, r.gc = c.NewID(), c.NewID()
	r.pic = picture{width: o.Rect.Width, height: o.Rect.Height, heading: o.Heading, colors: paper}
	if o.Dark {
		r.pic.colors = slate
	}
	bg := r.pic.colors.sheet
	// Key, button, enter, leave, motion, exposure, visibility, structure, focus and property events.
	const mask = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x20 | 0x40 | 0x8000 | 0x10000 | 0x20000 | 0x200000 | 0x400000
	class := o.Title
	a := r.atoms
	reqs := []*xwire.Request{
		xwire.Req(1, 0).U32(r.win, c.Root).I16(o.Rect.X, o.Rect.Y).U16(uint16(o.Rect.Width), uint16(o.Rect.Height), 0, 1).
			U32(0, 0x2|0x800, uint32(bg.R)<<16|uint32(bg.G)<<8|uint32(bg.B), mask),
		xwire.Req(55, 0).U32(r.gc, r.win, 0),
		xwire.SetProperty(r.win, 39, 31, 8, []byte(o.Title)), // WM_NAME
		xwire.SetProperty(r.win, a["_NET_WM_NAME"], a["UTF8_STRING"], 8, []byte(o.Title)),
		xwire.SetProperty(r.win, 67, 31, 8, []byte(class+"\x00"+class+"\x00")), // WM_CLASS
		xwire.SetProperty(r.win, a["_NET_WM_PID"], 6, 32, xwire.Words32(uint32(os.Getpid()))),
		xwire.SetProperty(r.win, a["WM_PROTOCOLS"], 4, 32, xwire.Words32(a["WM_DELETE_WINDOW"])),
		xwire.SetProperty(r.win, 35, 35, 32, xwire.Words32(1, 1, 0, 0, 0, 0, 0, 0, 0)), // WM_HINTS: input
		// WM_NORMAL_HINTS: the person chose position and size; the position is the inside's (static gravity).
		xwire.SetProperty(r.win, 40, 41, 32, xwire.Words32(1|2|512, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10)),
	}
	if host, err := os.Hostname(); err == nil {
		reqs = append(reqs, xwire.SetProperty(r.win, 36, 31, 8, []byte(host))) // WM_CLIENT_MACHINE
	}
	if o.Above {
		reqs = append(reqs, xwire.SetProperty(r.win, a["_NET_WM_STATE"], 4, 32, xwire.Words32(a["_NET_WM_STATE_ABOVE"])))
	}
	if o.Quiet {
		reqs = append(reqs, xwire.SetProperty(r.win, a["_NET_WM_USER_TIME"], 6, 32, xwire.Words32(0)))
	}
	if err := c.Send(append(reqs, xwire.Req(8, 0).U32(r.win))...); err != nil {
		return err
	}
	return r.untilViewable(ctx)
}

func (r *role) untilViewable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		if see, err := r.c.Viewable(ctx, r.win); err != nil || see {
			return err
		}
		if err := r.settle(ctx); err != nil {
			return fmt.Errorf("window was not mapped: %w", err)
		}
	}
}

func (r *role) readKeymap(ctx context.Context) error {
	b, err := r.c.Call(ctx, xwire.Req(101, 0).U8(r.c.MinKeycode, r.c.MaxKeycode-r.c.MinKeycode+1, 0, 0))
	if err != nil {
		return err
	}
	r.keys = parseKeymap(r.c.MinKeycode, b)
	return nil
}

// run is the only goroutine that reads the connection, draws and writes the log.
func (r *role) run(ctx context.Context, stdin io.Reader) error {
	requests := talk.Requests(ctx, stdin)
	beat := time.NewTicker(BeatEvery)
	defer beat.Stop()
	brush := time.NewTimer(paintEvery)
	defer brush.Stop()
	wet := true // the brush's timer runs
	r.pic.now = time.Now()
	if err := r.paint(true, true); err != nil {
		return err
	}
	for {
		var err error
		if r.stale && !wet {
			brush.Reset(paintEvery)
			wet = true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-brush.C:
			wet = false
			if r.stale {
				err = r.paint(true, r.resized)
				r.stale, r.resized = false, false
			}
		case <-r.c.Done():
			return r.c.Err()
		case <-r.trip.Done():
			return errors.New("second connection to the display was lost")
		case <-r.c.Ready():
			err = r.drain(ctx)
		case now := <-beat.C:
			r.pic.beat++
			r.pic.now = now
			if err = r.log(Event{Kind: Beat, Mono: process.Mono(), Typed: r.total}); err == nil {
				err = r.paint(false, false)
			}
		case q, ok := <-requests:
			if !ok || q.Op == "quit" {
				return nil
			}
			var result any
			result, err = r.serve(ctx, q)
			var fatal bool
			if err != nil && r.c.Err() != nil {
				fatal = true
			}
			if derr := r.drain(ctx); derr != nil {
				return derr
			}
			if werr := r.out.Answer(q, result, err); werr != nil {
				return werr
			}
			if !fatal {
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
}

func (r *role) log(e Event) error {
	r.n++
	e.N = r.n
	return r.out.Event(e)
}

// drain logs what has arrived and takes it into the picture.
func (r *role) drain(ctx context.Context) error {
	for _, ev := range r.c.Take() {
		if ev.Kind == 12 { // Expose: nothing that happened to us, only something to paint, and whole
			r.stale, r.sheet = true, sheet{}
			continue
		}
		e := r.decode(ev)
		if err := r.log(e); err != nil {
			return err
		}
		switch e.Kind {
		case KeyPress:
			if e.Sent {
				break // shown by the log alone: a forged key does not write
			}
			r.pic.keys++
			if e.Char != "" {
				r.total++
				r.pic.typed = append(r.pic.typed, []rune(e.Char)...)
				if over := len(r.pic.typed) - keptRunes; over > 0 {
					r.pic.typed = append(r.pic.typed[:0], r.pic.typed[over:]...)
				}
			}
			r.stale = true
		case ButtonPress:
			if !e.Sent {
				r.pic.clicks++
			}
			r.stale = true
		case FocusIn, FocusOut:
			// Grabs leave the focus where it is; detail 5 to 7 are the pointer's.
			if e.Mode != 1 && e.Mode != 2 && e.Detail < 5 {
				r.pic.focused = e.Kind == FocusIn
				r.stale = true
			}
		case Configure:
			if e.Width > 0 && (e.Width != r.pic.width || e.Height != r.pic.height) {
				r.pic.width, r.pic.height, r.stale, r.resized = e.Width, e.Height, true, true
			}
		case Mapping:
			if err := r.readKeymap(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// paint draws the head always, the sheet and foot when they changed.
func (r *role) paint(paper, all bool) error {
	if err := put(r.c, r.win, r.gc, image.Point{}, r.pic.head(r.faces)); err != nil || !paper && !all {
		return err
	}
	if all {
		r.sheet = sheet{}
	}
	if part := r.sheet.paint(r.pic, r.faces); !part.Empty() {
		if err := put(r.c, r.win, r.gc, image.Pt(0, headPx+part.Min.Y), r.sheet.img.SubImage(part).(*image.RGBA)); err != nil {
			return err
		}
	}
	return put(r.c, r.win, r.gc, image.Pt(0, r.pic.height-footPx), r.pic.foot(r.faces))
}

// settle waits until server and window manager have handled what we sent.
func (r *role) settle(ctx context.Context) error {
	if _, err := r.c.Focus(ctx); err != nil {
		return err
	}
	return r.trip.Do(ctx)
}

func (r *role) serve(ctx context.Context, q talk.Request) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, talk.DefaultBudget)
	defer cancel()
	a := r.atoms
	switch q.Op {
	case "echo":
		_, err := r.c.Focus(ctx)
		return nil, err
	case "where":
		return r.where(ctx)
	case "place":
		var to xwire.Rect
		if err := q.Decode(&to); err != nil {
			return nil, err
		}
		if err := checkSize(to); err != nil {
			return nil, err
		}
		// Static gravity, all four values, from a pager: the inside of the window goes to this rectangle.
		err := r.c.Send(r.c.ToManager(r.win, a["_NET_MOVERESIZE_WINDOW"], 10|0xf00|0x2000, uint32(int32(to.X)), uint32(int32(to.Y)), uint32(to.Width), uint32(to.Height)))
		if err != nil {
			return nil, err
		}
		return r.whereAfter(ctx, func(p Placement) bool { return p.Client == to && (!p.Shown || p.FrameRect.Contains(to)) })
	case "raise":
		if err := r.c.Send(r.c.ToManager(r.win, a["_NET_ACTIVE_WINDOW"], 2, 0, 0)); err != nil {
			return nil, err
		}
		return r.whereAfter(ctx, func(p Placement) bool {
			return p.Focused && p.Shown && p.Overlapped == 0 && p.FrameRect.Contains(p.Client)
		})
	case "minimise":
		if err := r.c.Send(r.c.ToManager(r.win, a["WM_CHANGE_STATE"], 3)); err != nil {
			return nil, err
		}
		return r.whereAfter(ctx, func(p Placement) bool { return !p.Shown })
	}
	return nil, fmt.Errorf("unknown operation %q", q.Op)
}

// whereAfter lets the manager work until the placement is as wanted, for at most settleWithin: openbox
// shrinks and grows a window's frame for a while when it is minimised. What it made of it is returned in
// any case; the controller judges.
func (r *role) whereAfter(ctx context.Context, wanted func(Placement) bool) (p Placement, err error) {
	until := time.Now().Add(settleWithin)
	for {
		if err := r.settle(ctx); err != nil {
			return p, err
		}
		if p, err = r.where(ctx); err != nil || wanted(p) || time.Now().After(until) {
			return p, err
		}
	}
}

func (r *role) where(ctx context.Context) (p Placement, err error) {
	p.Window = r.win
	if p.Client, err = r.c.OnRoot(ctx, r.win); err != nil {
		return p, err
	}
	top, err := r.c.Top(ctx, r.win)
	if err != nil {
		return p, err
	}
	p.Frame = top
	if p.FrameRect, err = r.c.Geometry(ctx, top); err != nil {
		return p, err
	}
	for _, w := range []uint32{r.win, top} {
		see, err := r.c.Viewable(ctx, w)
		if err != nil {
			return p, err
		}
		p.Shown = p.Shown || see
	}
	focus, err := r.c.Focus(ctx)
	if err != nil {
		return p, err
	}
	p.Focused = focus == r.win
	above, err := r.c.Covering(ctx, r.win)
	if err != nil {
		return p, err
	}
	for _, o := range above {
		p.Overlapped += o.Overlap(p.FrameRect)
	}
	return p, nil
}
