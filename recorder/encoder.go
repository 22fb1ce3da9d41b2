package recorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	frameWriteBudget = 10 * time.Second // an encoder that takes no frame for so long is hung
	encoderGrace     = 4 * time.Second  // from end of input to SIGTERM, and from there to SIGKILL: a busy machine needs seconds
	stderrTail       = 4 << 10
)

// quantizer is the encoder's constant one. On a desk with a covered window it gives the quality and the size that crf 28 gives (luma PSNR 56.9 dB, its
// worst frame 55.9 instead of 48.6), and saves the encoder from looking at each frame twice to choose one.
const quantizer = "20"

// wholeEvery is how many seconds lie between two frames that need no other to be shown. With one a second, two thirds of a film of a quiet desk are
// such frames; at five, a reader who seeks waits for at most 75 frames to be decoded, which takes a tenth of a second.
const wholeEvery = 5

// EncoderExit says how the encoder's process ended.
type EncoderExit struct {
	Code   int    `json:"code"`             // -1 when a signal ended it
	Signal string `json:"signal,omitempty"` // that ended it
	Forced string `json:"forced,omitempty"` // signal that the recorder had to send: SIGTERM, SIGKILL
	Stderr string `json:"stderr,omitempty"` // its last lines, bounded; pass it through redaction before it is kept
}

// encoder is a running ffmpeg that takes raw frames.
type encoder struct {
	in     *os.File
	frames *backlog
	done   chan struct{} // closed when the process is gone
	proc   *os.Process
	state  *os.ProcessState
	stderr *tail
	forced string
}

// startEncoder runs path (ffmpeg or what takes its place) in a process group of its own. It gets SIGTERM when we die; the end of its input
// tells it as well, and fragments make the film playable up to there.
func startEncoder(path string, l Layout, fps int, meta []string, out string) (*encoder, error) {
	full, err := exec.LookPath(path)
	if err != nil {
		return nil, fail("start film", ErrNoEncoder, err)
	}
	args := []string{"-hide_banner", "-loglevel", "error", "-nostats", "-y",
		"-f", "rawvideo", "-pix_fmt", inputPixels, "-s", fmt.Sprintf("%dx%d", l.WidthPx, l.HeightPx), "-r", strconv.Itoa(fps), "-i", "pipe:0",
		"-an", "-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-qp", quantizer, "-pix_fmt", "yuv420p", "-g", strconv.Itoa(fps * wholeEvery), "-threads", "1"}
	for _, m := range meta {
		args = append(args, "-metadata", m)
	}
	args = append(args, "-flush_packets", "1", "-movflags", "+frag_every_frame+empty_moov+default_base_moof+use_metadata_tags", "-f", "mp4", "file:"+out)
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fail("start film", ErrNoEncoder, err)
	}
	widenPipe(w)
	e := &encoder{in: w, frames: newBacklog(w), done: make(chan struct{}), stderr: &tail{}}
	cmd := exec.Command(full, args...)
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/local/bin:/usr/bin:/bin"}
	cmd.Stdin = r
	cmd.Stderr = e.stderr
	cmd.WaitDelay = encoderGrace
	cmd.SysProcAttr = childAttr()
	started := make(chan error, 1)
	go func() {
		// The death signal follows the thread that started the child, so that thread has to live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
			e.state = cmd.ProcessState
		}
		close(e.done)
	}()
	err = <-started
	r.Close()
	if err != nil {
		_ = e.frames.end() // nothing was put
		w.Close()
		return nil, fail("start film", ErrNoEncoder, err)
	}
	e.proc = cmd.Process
	return e, nil
}

// write hands one frame over. What became of it is said by a later call, or by drain.
func (e *encoder) write(frame []byte) error { return e.fault(e.frames.put(frame)) }

// drain waits until every frame was taken; nothing may be written after it.
func (e *encoder) drain() error { return e.fault(e.frames.end()) }

func (e *encoder) fault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, errBacklog):
		return fail("film", ErrEncoderHung, fmt.Errorf("no frame taken for %v", frameWriteBudget))
	}
	return fail("film", ErrEncoderDied, err)
}

// stop ends the input and waits; ctx ending only shortens the grace.
func (e *encoder) stop(ctx context.Context) EncoderExit {
	e.in.Close()
	for _, step := range []struct {
		sig  syscall.Signal
		name string
	}{{syscall.SIGTERM, "SIGTERM"}, {syscall.SIGKILL, "SIGKILL"}} {
		t := time.NewTimer(encoderGrace)
		select {
		case <-e.done:
			t.Stop()
			return e.exit()
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
		e.forced = step.name
		e.proc.Signal(step.sig) // our own unreaped child: the pid cannot be anyone else's
	}
	<-e.done
	return e.exit()
}

func (e *encoder) exit() EncoderExit {
	x := EncoderExit{Code: -1, Forced: e.forced, Stderr: e.stderr.String()}
	if e.state != nil {
		x.Code = e.state.ExitCode()
		if ws, ok := e.state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			x.Signal = ws.Signal().String()
		}
	}
	return x
}

// diskFull says whether err or the encoder's own words mean that the disk is full.
func diskFull(err error, stderr string) bool {
	return errors.Is(err, syscall.ENOSPC) || strings.Contains(stderr, "No space left on device")
}

func writeKind(err error) error {
	if diskFull(err, "") {
		return ErrDiskFull
	}
	return ErrWrite
}

// tail keeps the last bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if n := len(t.buf) - stderrTail; n > 0 {
		t.buf = append(t.buf[:0], t.buf[n:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(bytes.ToValidUTF8(t.buf, []byte("?"))))
}
