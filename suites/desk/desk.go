package desk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/engine-acceptance/acceptance/suites/process"
	"github.com/engine-acceptance/acceptance/suites/sessionbus"
	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// ErrClosed says that the desk was closed.
var ErrClosed = errors.New("desk is closed")

// Display is the name of the desk's display, such as ":7".
func (d *Desk) Display() string { return d.display }

// Xauthority is the cookie file of the person's side; only the worker's uid can read it.
func (d *Desk) Xauthority() string { return filepath.Join(d.seat, ".Xauthority") }

// Home is the home of engine and browsers: everything they may write lies below it.
func (d *Desk) Home() string { return d.home }

// BusAddress is the address of the session bus.
func (d *Desk) BusAddress() string { return d.bus }

// User is the identity of engine and browsers, nil when it is our own.
func (d *Desk) User() *process.User {
	if d.user == nil {
		return nil
	}
	u := *d.user
	return &u
}

// Variant is the kind of desk.
func (d *Desk) Variant() Variant { return d.cfg.Variant }

// Facts are what provenance records.
func (d *Desk) Facts() Facts {
	f := d.facts
	f.Directories, f.Environment = slices.Clone(f.Directories), slices.Clone(f.Environment)
	return f
}

// Dial connects to the display from the person's side; the caller closes the connection.
func (d *Desk) Dial(ctx context.Context) (*xwire.Conn, error) {
	return xwire.Dial(ctx, d.display, d.Xauthority())
}

func searchPath() string {
	if p := os.Getenv("PATH"); p != "" {
		return p
	}
	return "/usr/local/bin:/usr/bin:/bin"
}

// Env is the whole environment of a role's child: the names below and no other.
func (d *Desk) Env(role Role) []string {
	home := d.seat
	if role == Engine || role == Browser {
		home = d.home
	}
	env := []string{
		"PATH=" + searchPath(), "LANG=C.UTF-8", "SHELL=/bin/sh", "USER=user", "LOGNAME=user",
		"HOME=" + home, "TMPDIR=" + filepath.Join(home, "tmp"),
		"XDG_CONFIG_HOME=" + filepath.Join(home, ".config"), "XDG_CACHE_HOME=" + filepath.Join(home, ".cache"),
		"XDG_DATA_HOME=" + filepath.Join(home, ".local/share"), "XDG_STATE_HOME=" + filepath.Join(home, ".local/state"),
		"XDG_RUNTIME_DIR=" + filepath.Join(home, ".run"), "XDG_SESSION_TYPE=x11",
		"DISPLAY=" + d.display, "XAUTHORITY=" + filepath.Join(home, ".Xauthority"),
	}
	if home == d.home && d.cfg.Variant == Scaled {
		env = append(env, scale)
	}
	if home == d.home {
		env = append(env, "DBUS_SESSION_BUS_ADDRESS="+d.busAddress())
	}
	return env
}

// Bus is the address of the session bus and the uid that it serves.
func (d *Desk) Bus() sessionbus.Address {
	return sessionbus.Address{Bus: d.busAddress(), UID: d.facts.UID}
}

// BusPID is the process of the session bus; the services that it starts are below it.
func (d *Desk) BusPID() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.parts {
		if p.name == busPart {
			return p.p.Identity().PID
		}
	}
	return 0
}

// busAddress is known before the bus runs, without its unique id; the bus itself gets that.
func (d *Desk) busAddress() string {
	if d.bus != "" {
		return d.bus
	}
	return "unix:path=" + filepath.Join(d.home, ".run/bus")
}

// Start starts a child of the desk. Env, User and Dir of spec are set from the role where they are
// empty. The child is ended by Close at the latest.
func (d *Desk) Start(ctx context.Context, role Role, spec process.Spec) (*process.Process, error) {
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	if spec.Env == nil {
		spec.Env = d.Env(role)
	}
	spec.Dir = cmpOr(spec.Dir, d.seat)
	if role == Engine || role == Browser {
		if spec.Dir == d.seat {
			spec.Dir = d.home
		}
		if spec.User == nil {
			spec.User = d.user
		}
	}
	return d.start(ctx, "", spec)
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// StartRole starts one of the harness's own roles (sentinel, bystander, person, controls) with pipes for its
// conversation. It is a Starter for the controllers of these roles.
func (d *Desk) StartRole(ctx context.Context, name string, args ...string) (*process.Process, error) {
	command := d.cfg.RoleCommand
	if command == nil {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		command = []string{self, "role"}
	}
	return d.Start(ctx, Person, process.Spec{
		Path: command[0], Args: append(append(slices.Clone(command[1:]), name), args...),
		Stdin: process.Pipe, Stdout: process.Pipe,
	})
}

// start starts and registers a process. A name makes it a part: the desk is lost without it.
func (d *Desk) start(ctx context.Context, name string, spec process.Spec) (*process.Process, error) {
	p, err := process.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	closed := d.closed
	if !closed {
		d.parts = append(d.parts, part{name, p})
	}
	d.mu.Unlock()
	if closed {
		return nil, errors.Join(ErrClosed, p.Stop(ctx, 0))
	}
	if err := d.keep(func(k Registrar) error { return k.Process(p.Identity()) }); err != nil {
		return nil, errors.Join(err, p.Stop(ctx, stopGrace))
	}
	if name != "" {
		go func() {
			<-p.Done()
			d.mu.Lock()
			defer d.mu.Unlock()
			if !d.closed && d.why == nil {
				d.why = &LostError{Part: name, Err: p.Ended()}
				close(d.lost)
			}
		}()
	}
	return p, nil
}

// Lost is closed when server, manager, bus or compositor ended by itself; Err then says which.
func (d *Desk) Lost() <-chan struct{} { return d.lost }

// Err is nil while the desk is whole, else a *LostError. Closing is no loss.
func (d *Desk) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.why
}

// Close ends every process of the desk and removes its directories and sockets. It may be called
// several times; later calls wait for the first and return its result. A context that has ended shortens
// the grace but not the cleaning. *ResidueError says what is left.
func (d *Desk) Close(ctx context.Context) error {
	d.mu.Lock()
	first := !d.closed
	d.closed = true
	parts, files := d.parts, d.files
	d.mu.Unlock()
	if !first {
		<-d.done
		return d.err
	}
	d.err = d.clean(ctx, parts, files)
	close(d.done)
	return d.err
}

func (d *Desk) clean(ctx context.Context, parts []part, files []file) error {
	var left []string
	note := func(what string, err error) {
		if err != nil {
			left = append(left, fmt.Sprintf("%s: %v", what, err))
		}
	}
	claim := process.Claim{}
	if d.user != nil {
		claim.UIDs = []int{d.user.UID}
	}
	for _, dir := range []string{d.home, d.seat} {
		if dir != "" {
			claim.Homes = append(claim.Homes, dir)
		}
	}
	var server []part
	for _, p := range slices.Backward(parts) {
		if p.name == "X server" {
			server = append(server, p)
			continue
		}
		note(p.p.Identity().Executable, p.p.Stop(ctx, stopGrace))
		claim.Roots = append(claim.Roots, p.p.Identity())
	}
	// Browsers and their helpers that left their sessions; the server goes last, so that they can say goodbye.
	claim.Except = serverIdentity(server)
	note("processes", claim.End(ctx, 200*time.Millisecond))
	for _, p := range server {
		note("X server", p.p.Stop(ctx, stopGrace))
	}
	claim.Except = nil
	note("processes", claim.End(ctx, 0))
	for _, f := range files {
		// A server that was killed leaves them; what another server made since is not ours to touch.
		if now, err := os.Lstat(f.path); err == nil && os.SameFile(now, f.made) && now.ModTime().Equal(f.made.ModTime()) {
			note(f.path, ignoreMissing(os.Remove(f.path)))
		}
	}
	d.mu.Lock()
	beside := d.beside
	d.mu.Unlock()
	for _, dir := range append(beside, claim.Homes...) {
		note(dir, removeAll(dir))
	}
	if d.lock != nil {
		d.lock.Close()
	}
	if len(left) > 0 {
		return &ResidueError{Left: left}
	}
	return nil
}

func serverIdentity(parts []part) []process.Identity {
	var ids []process.Identity
	for _, p := range parts {
		ids = append(ids, p.p.Identity())
	}
	return ids
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// removeAll removes a tree; it tries again for a moment, since a file that a process made while it died
// lets a removal fail once.
func removeAll(dir string) error {
	var err error
	for range 5 {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
	}
	return err
}
