package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// User is a numeric identity to drop to; supplementary groups are emptied.
type User struct {
	UID int `json:"uid"`
	GID int `json:"gid"`
}

// Stream says what a standard stream of a child is connected to.
type Stream int

const (
	// Unset is /dev/null for stdin and Tail for stdout and stderr.
	Unset Stream = iota
	// Null is /dev/null.
	Null
	// Pipe is a pipe whose other end the Process hands out.
	Pipe
	// Tail keeps the last Spec.TailBytes and drops the rest.
	Tail
)

// Spec describes a child. Nothing of our own environment reaches it except what Env says.
type Spec struct {
	Path string
	Args []string // after argv[0], which is Path
	Env  []string // the whole environment; nil is an empty one
	Dir  string   // working directory; empty is "/"
	User *User    // identity to drop to, which takes root; nil keeps ours

	Stdin, Stdout, Stderr Stream
	TailBytes             int        // kept of a Tail stream; 0 is 16 KiB
	ExtraFiles            []*os.File // become fd 3, 4 ...; ours stay open and ours to close

	// DeathSignal is sent to the child by the kernel when this process ends in any way; 0 is SIGKILL.
	DeathSignal syscall.Signal
	// Outlives leaves the child alive when this process ends. Only a keeper is meant to.
	Outlives bool
}

// Process is a started child. It is reaped by itself; Done tells when.
type Process struct {
	id      Identity
	spec    Spec
	cmd     *exec.Cmd
	stdin   *os.File
	stdout  *os.File
	stderr  *os.File
	outTail *tail
	errTail *tail
	done    chan struct{}
	strays  []Identity // of its session when it ended; set before done, as the next two
	state   string
	clean   bool
}

// A death signal is tied to the thread that forked, not to the process; so every child is started
// from one thread that lives as long as we do. See prctl(2), PR_SET_PDEATHSIG. The signal
// survives our drop of the uid, because the runtime sets it after the drop and just before the exec;
// it would be cleared by the exec of a set-uid program only.
var launches = sync.OnceValue(func() chan func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
})

// Start starts a child. The context bounds the start alone; ending it later does not end the
// child. Errors are *StartError.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	fail := func(err error) (*Process, error) { return nil, &StartError{Path: spec.Path, Err: err} }
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	if attributes(spec) == nil {
		return fail(ErrUnsupported)
	}
	if spec.TailBytes == 0 {
		spec.TailBytes = 16 << 10
	}
	path, err := exec.LookPath(spec.Path)
	if err != nil {
		return fail(err)
	}
	p := &Process{spec: spec, done: make(chan struct{})}
	cmd := &exec.Cmd{Path: path, Args: append([]string{spec.Path}, spec.Args...), Env: spec.Env, Dir: spec.Dir, ExtraFiles: spec.ExtraFiles, SysProcAttr: attributes(spec)}
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	p.cmd = cmd
	var theirs, ours []*os.File
	closeAll := func(files []*os.File) {
		for _, f := range files {
			f.Close()
		}
	}
	pipe := func(childReads bool) (child, mine *os.File, err error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, nil, err
		}
		child, mine = w, r
		if childReads {
			child, mine = r, w
		}
		theirs, ours = append(theirs, child), append(ours, mine)
		return child, mine, nil
	}
	if spec.Stdin == Pipe {
		child, mine, err := pipe(true)
		if err != nil {
			return fail(err)
		}
		cmd.Stdin, p.stdin = child, mine
	}
	out := func(s Stream, keep **tail) (io.Writer, *os.File, error) {
		if s == Null {
			return nil, nil, nil
		}
		child, mine, err := pipe(false)
		if err != nil {
			return nil, nil, err
		}
		if s != Pipe {
			*keep = newTail(mine, spec.TailBytes)
			mine = nil
		}
		return child, mine, nil
	}
	if cmd.Stdout, p.stdout, err = out(spec.Stdout, &p.outTail); err == nil {
		cmd.Stderr, p.stderr, err = out(spec.Stderr, &p.errTail)
	}
	if err != nil {
		closeAll(theirs)
		closeAll(ours)
		return fail(err)
	}
	started := make(chan error, 1)
	launches() <- func() { started <- cmd.Start() }
	err = <-started
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return fail(err)
	}
	// Not reaped yet, so the pid is still the child's, even if it has ended already.
	e, err := readEntry(cmd.Process.Pid)
	p.id = e.Identity
	go p.wait()
	if err != nil {
		_ = p.cmd.Process.Kill()
		<-p.done
		closeAll(ours)
		return fail(fmt.Errorf("read its identity: %w", err))
	}
	return p, nil
}

func (p *Process) wait() {
	// Until it is reaped its number is its own, so what is in its session now is its, whoever's children
	// they are by then.
	p.strays = awaitExit(p.id.PID)
	err := p.cmd.Wait()
	p.state = "exit status 0"
	p.clean = err == nil
	if err != nil {
		p.state = err.Error()
	}
	// What it wrote last is in the pipe already; give the tails a moment to read it, but do not wait
	// for a grandchild that holds the pipe.
	for _, t := range []*tail{p.outTail, p.errTail} {
		if t == nil {
			continue
		}
		select {
		case <-t.eof:
		case <-time.After(200 * time.Millisecond):
		}
	}
	close(p.done)
}

// Identity names the child as it was right after its exec.
func (p *Process) Identity() Identity { return p.id }

// Done is closed when the child has ended and was reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is nil while the child runs and after it ended with status 0, else an *ExitError.
func (p *Process) Err() error {
	select {
	case <-p.done:
		if p.clean {
			return nil
		}
		return p.Ended()
	default:
		return nil
	}
}

// Ended describes the end of a child that should not have ended, whatever its status. Call it
// after Done.
func (p *Process) Ended() error {
	<-p.done
	return &ExitError{Path: p.spec.Path, State: p.state, Tail: p.Tail()}
}

// Stdin is the pipe to the child, nil unless Spec.Stdin is Pipe.
func (p *Process) Stdin() io.WriteCloser {
	if p.stdin == nil {
		return nil
	}
	return p.stdin
}

// Stdout is the pipe from the child, nil unless Spec.Stdout is Pipe. The caller reads it; Stop closes it.
func (p *Process) Stdout() io.ReadCloser {
	if p.stdout == nil {
		return nil
	}
	return p.stdout
}

// Stderr is the pipe from the child, nil unless Spec.Stderr is Pipe. The caller reads it; Stop closes it.
func (p *Process) Stderr() io.ReadCloser {
	if p.stderr == nil {
		return nil
	}
	return p.stderr
}

// Tail returns the last bytes of stderr, then of stdout, as far as these streams are kept.
func (p *Process) Tail() string {
	var parts []string
	for _, t := range []*tail{p.errTail, p.outTail} {
		if t == nil {
			continue
		}
		if s := strings.TrimSpace(t.text()); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "\n")
}

// Signal sends a signal to the child alone. ErrGone after its end.
func (p *Process) Signal(sig syscall.Signal) error {
	err := p.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%v: %w", p.id, ErrGone)
	}
	return err
}

// Stop ends the child and everything in its session: it closes stdin, asks with SIGTERM, waits
// up to grace, kills. It may be called twice and from several goroutines. LeftError when something
// outlived that.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	if p.stdin != nil {
		p.stdin.Close()
	}
	_ = p.Signal(syscall.SIGTERM)
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-p.done:
	case <-ctx.Done():
	case <-t.C:
	}
	_ = p.Signal(syscall.SIGKILL)
	var err error
	select {
	case <-p.done:
		err = Claim{Roots: p.strays}.End(ctx, 0)
	case <-time.After(3 * time.Second):
		err = &LeftError{Left: []Identity{p.id}}
	}
	for _, f := range []*os.File{p.stdout, p.stderr} {
		if f != nil {
			f.Close()
		}
	}
	for _, t := range []*tail{p.outTail, p.errTail} {
		if t != nil {
			t.src.Close()
		}
	}
	return err
}

// tail keeps the last bytes of a stream.
type tail struct {
	src *os.File
	eof chan struct{}
	mu  sync.Mutex
	buf []byte
	max int
}

func newTail(src *os.File, max int) *tail {
	t := &tail{src: src, eof: make(chan struct{}), max: max}
	go func() {
		defer close(t.eof)
		defer src.Close()
		b := make([]byte, 4096)
		for {
			n, err := src.Read(b)
			t.mu.Lock()
			t.buf = append(t.buf, b[:n]...)
			if over := len(t.buf) - t.max; over > 0 {
				t.buf = append(t.buf[:0], t.buf[over:]...)
			}
			t.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return t
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
