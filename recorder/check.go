package recorder

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/engine-acceptance/acceptance/redaction"
	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
)

// Span is an area of the frame, in frame pixels (see [Layout.OnDesk], [Layout.OnPane]), from frame From up to but without To; To 0 is the end.
type Span struct {
	Name string         `json:"name"`
	Rect redaction.Rect `json:"rect"`
	From int            `json:"from"`
	To   int            `json:"to,omitempty"`
}

func (s Span) has(n int) bool { return n >= s.From && (s.To == 0 || n < s.To) }

// Expect is what [CheckFilm] should look at beyond the film as a whole; the zero value is nothing more.
type Expect struct {
	Encoder string // ffmpeg's path or name; empty is "ffmpeg"
	Masked  []Span // must be solid black, as what the side file says is black must be: frames where they are not are listed
	Watched []Span // moving things, such as a beat or a colour clock: their brightness is returned frame by frame
	// CodeEvery is the distance in seconds between codes that are read back; 0 is every second.
	CodeEvery int
}

// Code is a code that was looked for in a frame.
type Code struct {
	Frame  int    `json:"frame"`
	Text   string `json:"text,omitempty"` // what it says, when it could be read
	MonoMS int64  `json:"mono_ms,omitempty"`
	OK     bool   `json:"ok"` // it says run, row and commit of the side file, and the first frame and time of its second
}

// MaskBreach is a frame in which a masked area is not solid black.
type MaskBreach struct {
	Name    string `json:"name"`
	Frame   int    `json:"frame"`
	MaxLuma int    `json:"max_luma"` // brightest pixel, 16 to 235; black is at most MaskLuma
}

// Motion is a watched area's brightness.
type Motion struct {
	Name    string  `json:"name"`
	Luma    []uint8 `json:"luma"`          // mean of each frame from Span.From, 16 to 235
	Changes int     `json:"changes"`       // frames in which it differs from the frame before by more than MotionLuma
	Longest int     `json:"longest_still"` // frames, the longest run without such a change
}

// Tolerances of the check, in steps of 8-bit luma.
const (
	// MaskLuma is the brightest that black may come out of the encoder: 16, and 12 for ringing beside bright edges, of which 7 were
	// measured at crf 28. The faintest text of a page that is still readable differs by 40 and more.
	MaskLuma = 28
	// MotionLuma is the least difference of two means that is motion and not noise of the encoder.
	MotionLuma = 3
	// BlackLuma is the mean brightness up to which the whole desk and pane count as black.
	BlackLuma = 18
)

// FilmCheck is what was found in a film: facts for a judge. Lists are bounded.
type FilmCheck struct {
	SHA256       string            `json:"sha256"`
	Frames       int               `json:"frames"`      // decoded
	SideFrames   int               `json:"side_frames"` // lines of the side file
	Repeated     int               `json:"repeated"`
	DecodeErrors string            `json:"decode_errors,omitempty"` // the decoder's own words, bounded
	DecodeExit   int               `json:"decode_exit"`
	WidthPx      int               `json:"width_px"`
	HeightPx     int               `json:"height_px"`
	PTSMonotonic bool              `json:"pts_monotonic"`     // each frame later than the one before
	PTSEven      bool              `json:"pts_even"`          // frame n at n/FPS seconds, within half a frame
	CapMonotonic bool              `json:"captures_in_order"` // capture times of the side file never go back
	MaxGapNS     int64             `json:"max_capture_gap_ns"`
	SpanNS       int64             `json:"span_ns"` // first to last capture
	FirstCapNS   int64             `json:"first_cap_mono_ns"`
	LastCapNS    int64             `json:"last_cap_mono_ns"`
	Codes        []Code            `json:"codes"`
	CodesOK      bool              `json:"codes_ok"`      // all that were looked for are right, and there is one at least
	BlackFrames  int               `json:"black_frames"`  // desk and pane black throughout
	FrozenFrames int               `json:"frozen_frames"` // longest run of frames whose desk and pane do not change
	PaneFrames   map[PaneState]int `json:"pane_frames"`
	UnknownMasks int               `json:"unknown_masks"` // frames whose window was blackened for want of mask reports
	Breaches     []MaskBreach      `json:"mask_breaches"`
	MaskChecks   int               `json:"mask_checks"` // areas times frames that were looked at
	Motion       []Motion          `json:"motion"`
}

const (
	maxBreaches = 1000
)

// CheckFilm decodes the whole film once and compares it with its side file. It returns facts; an error, an [*Error], means that it could not look: ErrNoEncoder, or
// ErrConfig for a film or side file that is absent or not of our making. A film that does not decode is a fact (no frames, DecodeErrors).
func CheckFilm(ctx context.Context, path, sidePath string, want Expect) (FilmCheck, error) {
	var c FilmCheck
	const op = "check film"
	head, side, err := readSide(sidePath)
	if err != nil {
		return c, fail(op, ErrConfig, err)
	}
	if c.SHA256, err = hashFile(path); err != nil {
		return c, fail(op, ErrConfig, err)
	}
	c.side(side)
	if want.Encoder == "" {
		want.Encoder = "ffmpeg"
	}
	tool, err := exec.LookPath(want.Encoder)
	if err != nil {
		return c, fail(op, ErrNoEncoder, err)
	}
	l := head.Layout
	c.WidthPx, c.HeightPx = l.WidthPx, l.HeightPx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, "-hide_banner", "-nostdin", "-nostats", "-loglevel", "info", "-threads", "1", "-i", "file:"+path,
		"-map", "0:v:0", "-fps_mode", "passthrough", "-vf", "showinfo=checksum=0,extractplanes=y", "-f", "rawvideo", "-pix_fmt", "gray", "pipe:1")
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/local/bin:/usr/bin:/bin"}
	cmd.SysProcAttr = checkAttr()
	info := &frameInfo{}
	cmd.Stderr = info
	cmd.WaitDelay = encoderGrace
	r, w, err := os.Pipe()
	if err != nil {
		return c, fail(op, ErrNoEncoder, err)
	}
	widenPipe(w)
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		r.Close()
		w.Close()
		return c, fail(op, ErrNoEncoder, err)
	}
	w.Close()
	rerr := c.frames(r, head, side, want)
	r.Close()
	if rerr != nil {
		cancel() // what it sends is not frames of this size
	}
	cmd.Wait()
	c.DecodeExit = cmd.ProcessState.ExitCode()
	if err := context.Cause(ctx); err != nil && rerr == nil {
		return c, fail(op, ErrStopped, err)
	}
	info.end()
	c.DecodeErrors = info.other.String()
	if rerr != nil {
		c.DecodeErrors = strings.TrimSpace(c.DecodeErrors + "\n" + rerr.Error())
	}
	if info.w != 0 && (info.w != l.WidthPx || info.h != l.HeightPx) {
		c.WidthPx, c.HeightPx = info.w, info.h
	}
	c.PTSMonotonic = len(info.pts) == c.Frames && c.Frames > 0
	c.PTSEven = c.PTSMonotonic
	for i, t := range info.pts {
		if i > 0 && t <= info.pts[i-1] {
			c.PTSMonotonic = false
		}
		if d := t - float64(i)/float64(head.FPS); d > 0.5/float64(head.FPS) || d < -0.5/float64(head.FPS) {
			c.PTSEven = false
		}
	}
	return c, nil
}

func (c *FilmCheck) side(side []sideFrame) {
	c.SideFrames = len(side)
	c.CapMonotonic = len(side) > 0
	c.PaneFrames = map[PaneState]int{}
	for i, f := range side {
		c.PaneFrames[f.Pane]++
		if f.Repeated {
			c.Repeated++
		}
		if !f.Known && !f.Window.Empty() {
			c.UnknownMasks++
		}
		if i == 0 {
			c.FirstCapNS = f.CapNS
			continue
		}
		d := f.CapNS - side[i-1].CapNS
		if d < 0 || d == 0 && !f.Repeated {
			c.CapMonotonic = false
		}
		c.MaxGapNS = max(c.MaxGapNS, d)
	}
	if len(side) > 0 {
		c.LastCapNS = side[len(side)-1].CapNS
		c.SpanNS = c.LastCapNS - c.FirstCapNS
	}
}

// frames reads gray frames and looks at each.
func (c *FilmCheck) frames(r io.Reader, head sideHeader, side []sideFrame, want Expect) error {
	l := head.Layout
	in := bufio.NewReaderSize(r, 1<<20)
	cur, prev := make([]byte, l.WidthPx*l.HeightPx), make([]byte, l.WidthPx*l.HeightPx)
	every := max(want.CodeEvery, 1) * head.FPS
	c.Breaches = []MaskBreach{}
	c.Codes = []Code{}
	c.Motion = make([]Motion, len(want.Watched))
	for i, s := range want.Watched {
		c.Motion[i] = Motion{Name: s.Name, Luma: []uint8{}}
	}
	still := make([]int, len(want.Watched))
	frozen := 0
	defer func() {
		c.CodesOK = len(c.Codes) > 0
		for _, k := range c.Codes {
			c.CodesOK = c.CodesOK && k.OK
		}
	}()
	for n := 0; ; n++ {
		if _, err := io.ReadFull(in, cur); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("frame %d: %w", n, err)
		}
		if n >= maxSideFrames {
			return errors.New("too many frames")
		}
		c.Frames++
		if n%every == min(every, head.FPS)/2 || n == 0 {
			c.Codes = append(c.Codes, readCode(cur, head, side, n))
		}
		if black(cur, l) {
			c.BlackFrames++
		}
		if n > 0 && same(cur, prev, l) {
			frozen++
		} else {
			frozen = 1
		}
		c.FrozenFrames = max(c.FrozenFrames, frozen)
		for _, r := range blackOf(side, n) {
			c.MaskChecks++
			if m := brightest(cur, l, r); m > MaskLuma && len(c.Breaches) < maxBreaches {
				c.Breaches = append(c.Breaches, MaskBreach{"side_file", n, m})
			}
		}
		for _, s := range want.Masked {
			if !s.has(n) {
				continue
			}
			c.MaskChecks++
			if m := brightest(cur, l, s.Rect); m > MaskLuma && len(c.Breaches) < maxBreaches {
				c.Breaches = append(c.Breaches, MaskBreach{s.Name, n, m})
			}
		}
		for i, s := range want.Watched {
			if !s.has(n) {
				continue
			}
			m := &c.Motion[i]
			v := meanLuma(cur, l, s.Rect)
			if k := len(m.Luma); k > 0 && diff(v, m.Luma[k-1]) > MotionLuma {
				m.Changes++
				still[i] = 0
			}
			still[i]++
			m.Longest = max(m.Longest, still[i])
			m.Luma = append(m.Luma, v)
		}
		cur, prev = prev, cur
	}
}

func diff(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }

// readCode reads the code of frame n back and compares it with the side file.
func readCode(gray []byte, head sideHeader, side []sideFrame, n int) Code {
	out := Code{Frame: n}
	r := head.Layout.Code
	img := image.NewGray(image.Rect(0, 0, r.W, r.H))
	for y := range r.H {
		copy(img.Pix[y*img.Stride:], gray[(r.Y+y)*head.Layout.WidthPx+r.X:][:r.W])
	}
	bmp, err := gozxing.NewBinaryBitmapFromImage(img)
	if err != nil {
		return out
	}
	res, err := qrcode.NewQRCodeReader().Decode(bmp, map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_PURE_BARCODE: true})
	if err != nil {
		if res, err = qrcode.NewQRCodeReader().Decode(bmp, nil); err != nil {
			return out
		}
	}
	out.Text = res.GetText()
	first := n - n%head.FPS
	parts := strings.Split(out.Text, "|")
	if len(parts) == 6 {
		out.MonoMS, _ = strconv.ParseInt(parts[5], 10, 64)
	}
	if len(parts) == 6 && first < len(side) {
		out.OK = parts[0] == codeVersion && parts[1] == head.Run && parts[2] == head.Row && parts[3] == head.Commit &&
			parts[4] == strconv.Itoa(first) && out.MonoMS == side[first].CapNS/1e6
	}
	return out
}

// seen calls f with the bytes of each row of r.
func seen(gray []byte, l Layout, r redaction.Rect, f func([]byte) bool) {
	r = r.Clip(l.WidthPx, l.HeightPx)
	if r.Empty() {
		return
	}
	for y := r.Y; y < r.Y+r.H; y++ {
		if !f(gray[y*l.WidthPx+r.X:][:r.W]) {
			return
		}
	}
}

// blackOf is what the side file says is black in a frame. One pixel less on each edge, where the encoder rings beside bright neighbours; what
// is no wider than that cannot show a letter.
func blackOf(side []sideFrame, n int) []redaction.Rect {
	if n >= len(side) {
		return nil
	}
	var out []redaction.Rect
	for _, r := range side[n].Black {
		if r.W > 2 && r.H > 2 {
			out = append(out, redaction.Rect{X: r.X + 1, Y: r.Y + 1, W: r.W - 2, H: r.H - 2})
		}
	}
	return out
}

func brightest(gray []byte, l Layout, r redaction.Rect) int {
	m := 0
	seen(gray, l, r, func(row []byte) bool {
		for _, v := range row {
			m = max(m, int(v))
		}
		return true
	})
	return m
}

func meanLuma(gray []byte, l Layout, r redaction.Rect) uint8 {
	sum, n := 0, 0
	seen(gray, l, r, func(row []byte) bool {
		for _, v := range row {
			sum += int(v)
		}
		n += len(row)
		return true
	})
	if n == 0 {
		return 0
	}
	return uint8(sum / n)
}

// black looks at every 4th pixel of every 4th row of the desk: a black desk is no desk.
func black(gray []byte, l Layout) bool {
	dark, y := true, 0
	seen(gray, l, l.Desk, func(row []byte) bool {
		if y++; y%4 == 0 {
			for x := 0; x < len(row); x += 4 {
				if row[x] > BlackLuma {
					dark = false
					return false
				}
			}
		}
		return true
	})
	return dark
}

// same compares the rows of desk and pane.
func same(a, b []byte, l Layout) bool {
	for _, r := range []redaction.Rect{l.Desk, l.Pane} {
		r = r.Clip(l.WidthPx, l.HeightPx)
		for y := r.Y; y < r.Y+r.H; y++ {
			i := y*l.WidthPx + r.X
			if !bytes.Equal(a[i:i+r.W], b[i:i+r.W]) {
				return false
			}
		}
	}
	return true
}

// frameInfo takes ffmpeg's stderr apart: times of frames, and what else it says at level warning and above.
type frameInfo struct {
	line  []byte
	pts   []float64
	w, h  int
	other tail
}

func (f *frameInfo) Write(p []byte) (int, error) {
	for _, c := range p {
		if c != '\n' {
			if len(f.line) < 1024 {
				f.line = append(f.line, c)
			}
			continue
		}
		f.end()
	}
	return len(p), nil
}

func (f *frameInfo) end() {
	s := string(f.line)
	f.line = f.line[:0]
	switch {
	case strings.HasPrefix(s, "[Parsed_showinfo"):
		if v, ok := after(s, " pts_time:"); ok && len(f.pts) < maxSideFrames {
			if t, err := strconv.ParseFloat(v, 64); err == nil {
				f.pts = append(f.pts, t)
			}
		}
		if v, ok := after(s, " s:"); ok {
			fmt.Sscanf(v, "%dx%d", &f.w, &f.h)
		}
	case strings.Contains(strings.ToLower(s), "error"), strings.Contains(s, "Invalid"), strings.Contains(s, "invalid"), strings.Contains(s, "corrupt"), strings.Contains(s, "moov atom not found"):
		f.other.Write([]byte(s + "\n"))
	}
}

func after(s, key string) (string, bool) {
	_, v, ok := strings.Cut(s, key)
	if !ok {
		return "", false
	}
	v = strings.TrimLeft(v, " ")
	v, _, _ = strings.Cut(v, " ")
	return v, true
}
