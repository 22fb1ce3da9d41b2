package recorder

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/engine-acceptance/acceptance/redaction"
)

// SideFormat names the format and version of a film's side file: a header line, then one line a frame.
const SideFormat = "acceptance-frames/2"

type sideHeader struct {
	Format string `json:"format"`
	Run    string `json:"run"`
	Row    string `json:"row"`
	Commit string `json:"commit"` // as the code shows it
	FPS    int    `json:"fps"`
	T0NS   int64  `json:"t0_mono_ns"` // due time of frame 0
	HoldNS int64  `json:"hold_ns"`
	Layout Layout `json:"layout"`
}

type sideFrame struct {
	N         int            `json:"n"`
	CapNS     int64          `json:"cap_mono_ns"`
	Repeated  bool           `json:"repeated"`
	Masks     int            `json:"masks"`       // rectangles that were blackened
	Known     bool           `json:"masks_known"` // false: the whole window was
	Strangers int            `json:"strangers"`   // windows that are neither ours nor the target, shown black; -1: the whole desk was
	Pane      PaneState      `json:"pane"`
	Window    redaction.Rect `json:"window"` // the target on the desk
	Scale     int            `json:"scale"`  // the pane shows it at 1/scale
	// Black is what was blackened, in frame pixels, but for where the pointer is drawn over it: a reader of the film can look whether it is.
	Black []redaction.Rect `json:"black,omitempty"`
}

// sideFile is written as the film goes and flushed once a second of frames.
type sideFile struct {
	f   *os.File
	w   *bufio.Writer
	fps int
	err error
}

func (f *Film) header() sideHeader {
	return sideHeader{SideFormat, f.cfg.RunID, f.cfg.RowID, shortCommit(f.cfg.Commit), f.cfg.FPS, f.t0, int64(Hold), f.layout}
}

func newSideFile(path string, h sideHeader) (*sideFile, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	s := &sideFile{f: f, w: bufio.NewWriter(f), fps: h.FPS}
	if err = s.line(h); err == nil {
		err = s.w.Flush()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return s, nil
}

func (s *sideFile) line(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = s.w.Write(append(b, '\n'))
	return err
}

func (s *sideFile) frame(fr sideFrame) error {
	if s.err = s.line(fr); s.err == nil && fr.N%s.fps == 0 {
		s.err = s.w.Flush()
	}
	return s.err
}

func (s *sideFile) close() error {
	err := s.err
	if err == nil {
		err = s.w.Flush()
	}
	if err == nil {
		err = s.f.Sync()
	}
	if cerr := s.f.Close(); err == nil {
		err = cerr
	}
	return err
}

// maxSideFrames bounds a side file that is read back: 60 frames a second for three hours.
const maxSideFrames = 60 * 3600 * 3

func readSide(path string) (sideHeader, []sideFrame, error) {
	var h sideHeader
	f, err := os.Open(path)
	if err != nil {
		return h, nil, err
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReader(io.LimitReader(f, maxSideFrames*512)))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		return h, nil, fmt.Errorf("side file header: %w", err)
	}
	l := h.Layout
	if h.Format != SideFormat || h.FPS < 1 || h.FPS > 60 || l != NewLayout(l.Desk.W, l.Desk.H) || l.Desk.W < 1 || l.Desk.W > 16384 || l.Desk.H < 1 || l.Desk.H > 16384 {
		return h, nil, fmt.Errorf("side file header is not one of %s", SideFormat)
	}
	var out []sideFrame
	for {
		var fr sideFrame
		err := d.Decode(&fr)
		if err == io.EOF {
			return h, out, nil
		}
		if err != nil {
			return h, out, fmt.Errorf("side file line %d: %w", len(out)+2, err)
		}
		if len(fr.Black) > 2*maxMasks {
			return h, out, fmt.Errorf("side file line %d: got %d black areas, want at most %d", len(out)+2, len(fr.Black), 2*maxMasks)
		}
		if fr.N != len(out) || len(out) >= maxSideFrames {
			return h, out, fmt.Errorf("side file line %d: got frame %d, want %d", len(out)+2, fr.N, len(out))
		}
		out = append(out, fr)
	}
}
