// Package host runs the engine under test as the separate process that it is: started on a desk with an ordinary identity, spoken to over
// standard input and output, its every byte tapped in memory before anything of ours reads or redacts it.
//
// The tap is the oracle of contract P10: what the engine itself gives away. It holds at most [MaxTap] bytes a stream between two calls of
// [Host.Take]; more is counted, and a row whose tap ran over is not judged clean.
package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/engine/mcp"
	"github.com/engine-acceptance/acceptance/suites/desk"
	"github.com/engine-acceptance/acceptance/suites/process"
)

// MaxTap is how much of one stream is kept between two takes, in bytes.
const MaxTap = 16 << 20

// startBudget bounds the engine's first answer.
const startBudget = 10 * time.Second

// Host is a running engine. Its methods are safe for use by several goroutines.
type Host struct {
	proc *process.Process
	// id is the engine's identity after its first answer: what started it may have been a wrapper.
	id      process.Identity
	client  *mcp.Client
	results tap
	stderr  tap
	copied  chan struct{}
}

// Command is the engine's program and arguments, and how it names what the contract names.
type Command struct {
	Path    string
	Args    []string
	Mapping mcp.Mapping
	// Env is its whole environment; nil is the desk's.
	Env []string `json:",omitempty"`
	// User is the identity that the program starts with, for a wrapper that takes the engine's itself; nil is the desk's.
	User *process.User `json:",omitempty"`
}

// Start starts the engine on the desk and makes its acquaintance. When it fails nothing is left running.
func Start(ctx context.Context, d *desk.Desk, cmd Command) (*Host, error) {
	p, err := d.Start(ctx, desk.Engine, process.Spec{Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, User: cmd.User, Dir: d.Home(), Stdin: process.Pipe, Stdout: process.Pipe, Stderr: process.Pipe})
	if err != nil {
		return nil, fmt.Errorf("start the engine: %w", err)
	}
	h := &Host{proc: p, id: p.Identity(), copied: make(chan struct{})}
	go func() {
		defer close(h.copied)
		_, _ = io.Copy(&h.stderr, p.Stderr())
	}()
	ctx, cancel := context.WithTimeout(ctx, startBudget)
	defer cancel()
	h.client, err = mcp.Connect(ctx, tapped{p.Stdout(), &h.results}, p.Stdin(), cmd.Mapping)
	if err != nil {
		stopped := h.stop(context.WithoutCancel(ctx))
		return nil, errors.Join(fmt.Errorf("%w; the engine's last words: %q", err, h.stderr.tail()), stopped)
	}
	if h.id, err = p.Identity().Now(); err != nil {
		stopped := h.stop(context.WithoutCancel(ctx))
		return nil, errors.Join(fmt.Errorf("identify the engine: %w", err), stopped)
	}
	return h, nil
}

// Identity names the engine's process.
func (h *Host) Identity() process.Identity { return h.id }

// Gone is closed when the engine's process has ended.
func (h *Host) Gone() <-chan struct{} { return h.proc.Done() }

// Tree lists the engine and its living descendants; empty once the engine is gone.
func (h *Host) Tree() ([]process.Entry, error) {
	if !h.id.Alive() {
		return nil, nil
	}
	tree, err := process.Tree(h.id.PID)
	if err != nil {
		return nil, err
	}
	return append([]process.Entry{{Identity: h.id}}, tree...), nil
}

// Call calls one tool. carrier is empty when a result came, else timeout, gone, malformed or not_offered.
func (h *Host) Call(ctx context.Context, op engine.Operation, args any) (raw json.RawMessage, carrier string) {
	raw, err := h.client.CallRaw(ctx, op, args)
	switch {
	case err == nil:
		return raw, ""
	case errors.Is(err, mcp.ErrNotOffered):
		return nil, "not_offered"
	case errors.Is(err, mcp.ErrTimeout):
		return nil, "timeout"
	case errors.Is(err, mcp.ErrGone) || !h.id.Alive():
		return nil, "gone"
	default:
		return nil, "malformed"
	}
}

// Take returns what the engine wrote since the last take, by stream, and whether any of it was too much to keep.
func (h *Host) Take() (streams map[string][]byte, overrun bool) {
	results, over1 := h.results.take()
	stderr, over2 := h.stderr.take()
	return map[string][]byte{"results": results, "stderr": stderr}, over1 || over2
}

// Stop ends the conversation and the process with all that it started.
func (h *Host) Stop(ctx context.Context) error {
	_ = h.proc.Stdin().Close()
	return h.stop(ctx)
}

func (h *Host) stop(ctx context.Context) error {
	err := h.proc.Stop(ctx, 3*time.Second)
	if h.client != nil {
		_ = h.client.Close()
	}
	select {
	case <-h.copied:
	case <-ctx.Done():
	}
	return err
}

// tapped copies what is read into a tap.
type tapped struct {
	io.ReadCloser
	tap *tap
}

func (t tapped) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	_, _ = t.tap.Write(b[:n])
	return n, err
}

// tap is a bounded buffer that counts what it could not keep.
type tap struct {
	mu   sync.Mutex
	kept []byte
	lost int
}

func (t *tap) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	room := min(len(b), MaxTap-len(t.kept))
	t.kept = append(t.kept, b[:room]...)
	t.lost += len(b) - room
	return len(b), nil
}

func (t *tap) take() ([]byte, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept, over := t.kept, t.lost > 0
	t.kept, t.lost = nil, 0
	return kept, over
}

// tail is the end of what is kept, for an error message.
func (t *tap) tail() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept[max(0, len(t.kept)-400):])
}
