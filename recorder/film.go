package recorder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/engine-acceptance/acceptance/redaction"
)

// Hold is how long a frame waits in memory before it is masked, so that mask reports from after its capture count too.
const Hold = 200 * time.Millisecond

// DefaultFPS is the frame rate when FilmConfig names none.
const DefaultFPS = 15

// MaskProvider knows where secrets are on the desk.
type MaskProvider interface {
	// Masks returns the rectangles, in desk pixels, that held a secret at any moment between two times of CLOCK_MONOTONIC, in
	// nanoseconds. It must answer for that time and not for the moment of the call, which on a busy machine comes seconds later. known is false when it cannot tell for the whole of that time; then the whole target window becomes black. It is
	// called on the film's goroutine, once a frame, and must not block.
	Masks(fromNS, toNS int64) (rects []redaction.Rect, known bool)
}

// FilmConfig says what to film and where to write it.
type FilmConfig struct {
	Display    string // local X display, such as ":99"
	XAuthority string // authority file with its cookie; empty for a server without access control
	Path       string // film, .mp4; must not exist
	SidePath   string // one JSON line a frame; must not exist
	RunID      string // in every frame, as all three are: printable ASCII, together at most 160 bytes
	RowID      string
	Commit     string // of the subject; the film shows its first 12 characters
	FPS        int    // constant frame rate, 1 to 60; 0 is DefaultFPS
	Encoder    string // ffmpeg's path or name; empty is "ffmpeg"

	// Masks is asked for every frame. nil knows nothing, so the target window is always black.
	Masks MaskProvider
	// Chrome returns where browser chrome (which shows ports and tokens) is now, in desk pixels; it is masked always. nil is none. It is called
	// on the film's goroutine at the capture of a frame and again when it is released, and must not block.
	Chrome func() []redaction.Rect
}

// Film is a running recording. Its methods may be called from any goroutine. Every Film must be stopped.
type Film struct {
	cfg    FilmConfig
	layout Layout
	src    source
	enc    *encoder
	side   *sideFile
	faces  struct{ small, big *typeface }
	canvas *picture
	planes *planes
	quit   chan struct{} // closed by Stop
	done   chan struct{} // closed when the loop has ended
	once   sync.Once

	mu      sync.Mutex
	window  uint32
	visible bool
	own     []uint32
	stills  []chan *picture // wanted of the next capture
	taken   int             // captures
	ended   bool
	err     error

	// of the loop alone
	t0       int64 // due time of frame 0
	started  int64
	report   FilmReport
	free     []*shot
	held     []*heldFrame
	wins     []winAt
	codeText string
	last     *sideFrame // what the canvas shows, once something was written
	label    paneNow
}

// winAt is where the target window was at a capture.
type winAt struct {
	ns  int64
	win redaction.Rect
}

// heldFrame is a capture that waits for later mask reports.
type heldFrame struct {
	n, count int // frames n to n+count-1 show it
	missed   int // frames before n that fell due before it was captured; they show what was written last
	cap      int64
	shot     *shot
	chrome   []redaction.Rect
	stills   []chan *picture
}

// FilmReport is what a film's making was like.
type FilmReport struct {
	Path                    string      `json:"path"`
	SidePath                string      `json:"side_path"`
	Layout                  Layout      `json:"layout"`
	FPS                     int         `json:"fps"`
	Frames                  int         `json:"frames"`                  // handed to the encoder
	Repeated                int         `json:"repeated"`                // of those, shown again because the capture was late
	FirstFrameMS            float64     `json:"first_frame_ms"`          // from the call of StartFilm to the first capture
	T0NS                    int64       `json:"t0_mono_ns"`              // due time of frame 0; frame n is due n/FPS later
	LastCapNS               int64       `json:"last_cap_mono_ns"`        // of the last frame
	UnknownMasks            int         `json:"unknown_masks"`           // frames whose window was blackened because nothing was known
	Exit                    EncoderExit `json:"encoder"`                 // how the encoder ended
	SHA256                  string      `json:"sha256,omitempty"`        // of the film; absent when it could not be read
	SideSHA256              string      `json:"frames_sha256,omitempty"` // of the side file
	Bytes                   int64       `json:"bytes"`                   // of the film
	Failed                  string      `json:"failed,omitempty"`        // the first error, in words; a film with one is not evidence
	MaxLateMS               float64     `json:"max_capture_late_ms"`     // longest time from a frame's due time to its capture
	MeanCaptMS              float64     `json:"mean_capture_ms"`         // a capture, both panes
	MeanMakeMS              float64     `json:"mean_compose_ms"`         // masks, drawing
	MeanWriteMS             float64     `json:"mean_write_ms"`           // handing over to the encoder
	captNS, makeNS, writeNS int64
	captures                int
}

// StartFilm begins a film and returns once the first frame is captured. Until [Film.Target] names a window, only the desk is shown. ctx bounds the start only.
// Errors are [*Error]: ErrConfig, ErrUnsupported, ErrDisplay, ErrNoEncoder, ErrDiskFull, ErrWrite.
func StartFilm(ctx context.Context, cfg FilmConfig) (_ *Film, err error) {
	started := monotonic()
	if cfg.FPS == 0 {
		cfg.FPS = DefaultFPS
	}
	if cfg.Encoder == "" {
		cfg.Encoder = "ffmpeg"
	}
	if err := cfg.check(); err != nil {
		return nil, fail("start film", ErrConfig, err)
	}
	f := &Film{cfg: cfg, quit: make(chan struct{}), done: make(chan struct{}), started: started}
	running := false // then the loop frees what was made
	if f.src, err = newSource(cfg.Display, cfg.XAuthority); err != nil {
		return nil, err
	}
	defer func() {
		if err == nil || running {
			return
		}
		f.src.close()
		if f.side != nil {
			f.side.close()
		}
	}()
	w, h := f.src.size()
	f.layout = NewLayout(w, h)
	for range cfg.FPS*int(Hold/time.Millisecond)/1000 + 3 {
		s, err := f.src.newShot()
		if err != nil {
			return nil, err
		}
		f.free = append(f.free, s)
	}
	if err := f.prepare(); err != nil {
		return nil, fail("start film", ErrConfig, err)
	}
	f.report = FilmReport{Path: cfg.Path, SidePath: cfg.SidePath, Layout: f.layout, FPS: cfg.FPS}
	f.t0 = monotonic()
	f.report.T0NS = f.t0
	if f.side, err = newSideFile(cfg.SidePath, f.header()); err != nil {
		return nil, fail("start film", writeKind(err), err)
	}
	if _, err := os.Lstat(cfg.Path); !errors.Is(err, os.ErrNotExist) {
		return nil, fail("start film", ErrConfig, fmt.Errorf("film %s exists", cfg.Path))
	}
	meta := []string{"run=" + cfg.RunID, "row=" + cfg.RowID, "commit=" + cfg.Commit, fmt.Sprintf("t0_mono_ns=%d", f.t0)}
	if f.enc, err = startEncoder(cfg.Encoder, f.layout, cfg.FPS, meta, cfg.Path); err != nil {
		return nil, err
	}
	first := make(chan error, 1)
	running = true
	go f.loop(first)
	select {
	case err = <-first:
	case <-ctx.Done():
		err = fail("start film", ErrDisplay, ctx.Err())
	}
	if err != nil {
		f.once.Do(func() { close(f.quit) })
		<-f.done
		return nil, err
	}
	return f, nil
}

func (c *FilmConfig) check() error {
	switch {
	case c.Path == "" || c.SidePath == "" || c.Path == c.SidePath:
		return errors.New("want a path for the film and another for its side file")
	case c.FPS < 1 || c.FPS > 60:
		return fmt.Errorf("got %d frames a second, want 1 to 60", c.FPS)
	case c.RunID == "" || c.RowID == "" || c.Commit == "":
		return errors.New("want run, row and commit")
	case len(c.RunID)+len(c.RowID)+min(len(c.Commit), 12) > 160:
		return errors.New("run, row and commit are longer than 160 bytes together")
	}
	for _, s := range []string{c.RunID, c.RowID, c.Commit} {
		if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '|' }) {
			return fmt.Errorf("%q: want printable ASCII without blanks and |", s)
		}
	}
	return nil
}

// Target names the window of the second pane; 0 is none. visible says whether the tab that is acted on is the one that the window shows:
// if not, the film says that it has no pixels.
func (f *Film) Target(window uint32, visible bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.window, f.visible = window, visible
}

// Own names the windows of the harness itself, such as the person's, by their own ids. They hold no secrets: from now on they show where they lie
// above the target, and every window that is neither one of them nor the target is black, as is the frame that the window manager draws around the target.
// Before Own is called, all windows show and masks cover whatever lies above them.
func (f *Film) Own(windows ...uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.own = append([]uint32{}, windows...)
}

// Layout returns where the parts of each frame are.
func (f *Film) Layout() Layout { return f.layout }

// Done is closed when the film has ended, by Stop or by a failure.
func (f *Film) Done() <-chan struct{} { return f.done }

// Captures returns how many pictures were taken so far. On a busy machine it is less than the frames that are due.
func (f *Film) Captures() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.taken
}

// Err returns the first failure so far, an [*Error], or nil.
func (f *Film) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *Film) setErr(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

// Cut takes no further picture but one for stills that were asked for already, and returns without waiting. Stop must be called all the same.
func (f *Film) Cut() { f.once.Do(func() { close(f.quit) }) }

// Stop ends the film: frames that wait are masked and written, the encoder is ended and waited for. It returns within Hold and two graces of the encoder; ctx
// only shortens that. The report is filled as far as the film got; the error is the first failure, an [*Error]. A film with an error is not
// evidence. Stop may be called again and answers the same.
func (f *Film) Stop(ctx context.Context) (FilmReport, error) {
	f.Cut()
	select {
	case <-f.done:
	case <-ctx.Done():
		f.setErr(fail("film", ErrStopped, ctx.Err()))
		f.src.abort() // without the display, the loop ends
		<-f.done
	}
	return f.report, f.Err()
}

// loop captures, releases and writes until told to stop or failed.
func (f *Film) loop(first chan<- error) {
	defer close(f.done)
	iv := int64(time.Second) / int64(f.cfg.FPS)
	timer := time.NewTimer(0)
	defer timer.Stop()
	n := 0
	var err error
run:
	for {
		due := f.t0 + int64(n)*iv
		if wait := due - monotonic(); wait > 0 {
			timer.Reset(time.Duration(wait))
			select {
			case <-timer.C:
			case <-f.quit:
				break run
			case <-f.enc.done:
				err = fail("film", ErrEncoderDied, errors.New("it ended before its input did"))
				break run
			}
		} else {
			select {
			case <-f.quit:
				if n > 0 {
					break run
				}
			default:
			}
		}
		if err = f.capture(&n, iv); err != nil {
			break
		}
		if first != nil {
			f.report.FirstFrameMS = float64(f.held[0].cap-f.started) / 1e6
			first <- nil
			first = nil
		}
		for len(f.held) > 0 && monotonic() >= f.held[0].cap+int64(Hold) && err == nil {
			err = f.release()
		}
		if err != nil {
			break
		}
	}
	if err == nil && f.wanted() {
		err = f.capture(&n, iv)
	}
	// Drain: what was captured before is still good, unless it cannot be written.
	for len(f.held) > 0 && (err == nil || errors.Is(err, ErrDisplay)) {
		if wait := f.held[0].cap + int64(Hold) - monotonic(); wait > 0 {
			time.Sleep(time.Duration(wait))
		}
		if rerr := f.release(); rerr != nil {
			err = rerr
		}
	}
	f.finish(err)
	if first != nil {
		if err == nil {
			err = fail("start film", ErrStopped, nil)
		}
		first <- err
	}
}

// wanted says that stills wait for a picture.
func (f *Film) wanted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.stills) > 0
}

// capture takes one picture for every frame that is due.
func (f *Film) capture(n *int, iv int64) error {
	f.mu.Lock()
	window, visible, own := f.window, f.visible, f.own
	stills := f.stills
	f.stills = nil
	f.mu.Unlock()
	if len(f.free) == 0 { // writing was slow: let the oldest go
		if wait := f.held[0].cap + int64(Hold) - monotonic(); wait > 0 {
			time.Sleep(time.Duration(wait))
		}
		if err := f.release(); err != nil {
			return err
		}
	}
	s := f.free[len(f.free)-1]
	f.src.target(window)
	f.src.own(own)
	h := &heldFrame{n: *n, shot: s, stills: stills, chrome: f.chrome()}
	h.cap = monotonic()
	if err := f.src.grab(s); err != nil {
		f.mu.Lock()
		f.stills = append(stills, f.stills...)
		f.mu.Unlock()
		return err
	}
	f.free = f.free[:len(f.free)-1]
	after := monotonic()
	h.count = 1
	if late := int((after-f.t0)/iv) - *n; late > 0 {
		// Frames that fell due while nothing was captured show what was captured before them, never what came after.
		switch {
		case len(f.held) > 0:
			f.held[len(f.held)-1].count += late
			h.n += late
		case f.last != nil:
			h.missed = late
			h.n += late
		default:
			h.count += late
		}
	}
	if s.state == PaneOwn && !visible {
		s.state = PaneInactive
	}
	f.report.captures++
	f.mu.Lock()
	f.taken++
	f.mu.Unlock()
	f.report.captNS += after - h.cap
	f.report.MaxLateMS = max(f.report.MaxLateMS, float64(h.cap-(f.t0+int64(*n)*iv))/1e6)
	*n = h.n + h.count
	f.held = append(f.held, h)
	f.wins = append(f.wins, winAt{h.cap, s.win})
	for len(f.wins) > 0 && f.wins[0].ns < h.cap-4*int64(Hold)-4*iv {
		f.wins = f.wins[1:]
	}
	return nil
}

func (f *Film) chrome() []redaction.Rect {
	if f.cfg.Chrome == nil {
		return nil
	}
	return f.cfg.Chrome()
}

// masks returns what to blacken in a held frame, in desk pixels, and whether that was known.
func (f *Film) masks(h *heldFrame) ([]redaction.Rect, bool) {
	// What the picture shows was laid out before it was captured. A report of after the capture must be in by now, a hold later, so the time
	// asked for may not reach that far itself: a page that is asked every few tens of milliseconds has answered since.
	from, to := h.cap-int64(Hold), h.cap+int64(Hold/5)
	rects := append([]redaction.Rect(nil), h.chrome...)
	rects = append(rects, f.chrome()...)
	if f.cfg.Masks != nil {
		if m, known := f.cfg.Masks.Masks(from, to); known {
			return append(rects, m...), true
		}
	}
	for _, w := range f.wins {
		if w.ns >= from && w.ns <= to {
			rects = append(rects, w.win)
		}
	}
	return append(rects, h.shot.win), false
}

// release masks the oldest held frame and writes it.
func (f *Film) release() error {
	h := f.held[0]
	f.held = f.held[1:]
	for i := range h.missed {
		if err := f.put(h.n-h.missed+i, *f.last, true); err != nil {
			return err
		}
	}
	begin := monotonic()
	rects, known := f.masks(h)
	strangers, black := f.compose(h, rects, known)
	for _, c := range h.stills {
		p := newPicture(f.canvas.w, f.canvas.h)
		copy(p.pix, f.canvas.pix)
		c <- p
	}
	f.free = append(f.free, h.shot)
	shown := sideFrame{CapNS: h.cap, Masks: len(rects), Known: known, Strangers: strangers, Pane: h.shot.state, Window: h.shot.win, Scale: h.shot.scale, Black: black}
	f.last = &shown
	f.report.makeNS += monotonic() - begin
	for i := range h.count {
		if err := f.put(h.n+i, shown, i > 0); err != nil {
			return err
		}
	}
	return nil
}

// put stamps the picture on the canvas as frame n and hands it to the encoder and the side file.
func (f *Film) put(n int, shown sideFrame, repeated bool) error {
	begin := monotonic()
	f.stamp(n, shown.CapNS, repeated)
	pixels := f.planes.turn(f.canvas)
	f.report.makeNS += monotonic() - begin
	begin = monotonic()
	if err := f.enc.write(pixels); err != nil {
		return err
	}
	shown.N, shown.Repeated = n, repeated
	if err := f.side.frame(shown); err != nil {
		return fail("film", writeKind(err), err)
	}
	f.report.writeNS += monotonic() - begin
	f.report.Frames++
	f.report.LastCapNS = shown.CapNS
	if repeated {
		f.report.Repeated++
	}
	if !shown.Known && !shown.Window.Empty() {
		f.report.UnknownMasks++
	}
	return nil
}

// finish ends encoder and files and fills the report.
func (f *Film) finish(err error) {
	f.src.close()
	r := &f.report
	if derr := f.enc.drain(); derr != nil && err == nil {
		err = derr
	}
	r.Exit = f.enc.stop(context.Background())
	if serr := f.side.close(); serr != nil && err == nil {
		err = fail("film", writeKind(serr), serr)
	}
	switch {
	case diskFull(err, r.Exit.Stderr):
		err = fail("film", ErrDiskFull, errors.New("no space for the film"))
	case err == nil && r.Exit.Forced != "":
		err = fail("film", ErrEncoderHung, fmt.Errorf("it had to be ended by %s", r.Exit.Forced))
	case err == nil && r.Exit.Code != 0:
		err = fail("film", ErrEncoderDied, fmt.Errorf("exit code %d %s", r.Exit.Code, r.Exit.Signal))
	}
	if c := int64(r.captures); c > 0 {
		r.MeanCaptMS = float64(r.captNS/c) / 1e6
		r.MeanMakeMS = float64(r.makeNS/c) / 1e6
		r.MeanWriteMS = float64(r.writeNS/c) / 1e6
	}
	var serr error
	if r.SHA256, r.Bytes, serr = syncAndHash(f.cfg.Path); serr != nil && err == nil {
		err = fail("film", writeKind(serr), serr)
	}
	if r.SideSHA256, _, serr = syncAndHash(f.cfg.SidePath); serr != nil && err == nil {
		err = fail("film", writeKind(serr), serr)
	}
	if err == nil && r.Bytes == 0 {
		err = fail("film", ErrWrite, errors.New("the film is empty"))
	}
	if err != nil {
		f.setErr(err)
		r.Failed = err.Error()
	}
	f.mu.Lock()
	f.ended = true
	pending := f.stills
	f.stills = nil
	f.mu.Unlock()
	for _, h := range f.held {
		pending = append(pending, h.stills...)
	}
	for _, c := range pending {
		close(c)
	}
}

// syncAndHash makes sure that a file is on the disk, then reads it back.
func syncAndHash(path string) (sum string, size int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return "", 0, err
	}
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", size, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}
