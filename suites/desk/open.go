package desk

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/engine-acceptance/acceptance/suites/process"
	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// DefaultBudget bounds Open when its context has no deadline.
const DefaultBudget = 20 * time.Second

// stopGrace is what a part of the desk gets between SIGTERM and SIGKILL. An X server removes its socket and
// lock in that time; 1 s is ten times what it was seen to take under load.
const stopGrace = time.Second

// stockConfig is where openbox finds its configuration when HOME has none (openbox(1)).
const stockConfig = "/etc/xdg/openbox/rc.xml"

// Desk is an open desktop. Its methods are safe for use by several goroutines.
type Desk struct {
	cfg     Config
	home    string // of engine and browsers
	seat    string // of the person's side
	display string
	bus     string
	user    *process.User // nil: our own
	facts   Facts

	lock *os.File // held as long as the worker lives

	mu     sync.Mutex
	parts  []part   // in order of start
	beside []string // directories beside the homes
	files  []file
	closed bool
	done   chan struct{} // closed when Close has cleaned
	err    error         // result of Close, set before done
	lost   chan struct{}
	why    error
}

type file struct {
	path string
	made os.FileInfo
}

type part struct {
	name string
	p    *process.Process
}

// Open opens a desk. The context bounds the opening (DefaultBudget without a deadline). When it fails
// nothing is left behind. Errors: *MissingProgramError, *DirectoryError, *IdentityError,
// *ReadinessError, the context's.
func Open(ctx context.Context, cfg Config) (*Desk, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultBudget)
		defer cancel()
	}
	d := &Desk{cfg: cfg, done: make(chan struct{}), lost: make(chan struct{})}
	if err := d.open(ctx); err != nil {
		return nil, errors.Join(err, d.Close(context.WithoutCancel(ctx)))
	}
	return d, nil
}

func (d *Desk) open(ctx context.Context) error {
	programs := map[string]string{}
	for _, p := range [][2]string{{"Xvfb", "xvfb"}, {"openbox", "openbox"}, {"dbus-daemon", "dbus-daemon"}, {"picom", "picom"}} {
		if p[0] == "picom" && d.cfg.Variant != Composited {
			continue
		}
		path, err := exec.LookPath(p[0])
		if err != nil {
			return &MissingProgramError{Program: p[0], Package: p[1], Err: err}
		}
		programs[p[0]] = path
	}
	if os.Getuid() != 0 && d.cfg.User != nil && d.cfg.User.UID != os.Getuid() {
		return &IdentityError{UID: d.cfg.User.UID, Reason: fmt.Sprintf("only root can change to it, we are uid %d", os.Getuid())}
	}
	if err := d.directories(ctx); err != nil {
		return err
	}
	if err := d.startServer(ctx, programs["Xvfb"]); err != nil {
		return err
	}
	if err := d.settleIdentity(); err != nil {
		return err
	}
	if err := d.settleOutputs(ctx); err != nil {
		return err
	}
	if err := d.startManager(ctx, programs); err != nil {
		return err
	}
	if err := d.startBus(ctx, programs["dbus-daemon"]); err != nil {
		return err
	}
	d.facts.Display, d.facts.Variant = d.display, d.cfg.Variant
	d.facts.Directories = []string{"home", "config", "cache", "data", "state", "runtime", "temporary"}
	for _, kv := range d.Env(Engine) {
		name, _, _ := strings.Cut(kv, "=")
		d.facts.Environment = append(d.facts.Environment, name)
	}
	slices.Sort(d.facts.Environment)
	return nil
}

// directories makes the two homes. Their names say nothing about us, since an engine sees them.
func (d *Desk) directories(ctx context.Context) error {
	var fail DirectoryError
	for _, dir := range []string{d.cfg.Memory, "/dev/shm", os.Getenv("XDG_RUNTIME_DIR"), os.TempDir()} {
		if dir == "" {
			continue
		}
		home, err := os.MkdirTemp(dir, "home-")
		if err != nil {
			fail.Tried = append(fail.Tried, Attempt{Dir: dir, Err: err})
			continue
		}
		d.home = home
		if d.seat, err = os.MkdirTemp(dir, "seat-"); err != nil {
			return err
		}
		if err := d.takeSeat(); err != nil {
			return err
		}
		sweepOrphans(ctx, dir)
		d.facts.Homes = "disk"
		if inMemory(dir) {
			d.facts.Homes = "memory"
		}
		for _, dir := range []string{d.home, d.seat} {
			if err := d.keep(func(k Registrar) error { return errors.Join(k.Directory(dir), k.Home(dir)) }); err != nil {
				return err
			}
			for _, sub := range []string{".config", ".cache", ".local", ".local/share", ".local/state", ".run", "tmp"} {
				if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return &fail
}

func (d *Desk) keep(f func(Registrar) error) error {
	if d.cfg.Keeper == nil {
		return nil
	}
	if err := f(d.cfg.Keeper); err != nil {
		return fmt.Errorf("register with the keeper: %w", err)
	}
	return nil
}

func (d *Desk) startServer(ctx context.Context, path string) error {
	const name = "X server"
	if err := os.Mkdir("/tmp/.X11-unix", 0o700); err == nil {
		// The server makes it only when it runs as root. It is the machine's, like /tmp, and stays.
		if err := os.Chmod("/tmp/.X11-unix", 0o777|os.ModeSticky); err != nil {
			return &ReadinessError{Part: name, Err: err}
		}
	}
	cookie := make([]byte, 16)
	if _, err := rand.Read(cookie); err != nil {
		return err
	}
	auth := filepath.Join(d.seat, "server-auth")
	if err := os.WriteFile(auth, xwire.AppendAuthority(nil, "", cookie), 0o600); err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	x, err := d.start(ctx, name, process.Spec{
		Path: path,
		Args: []string{"-displayfd", "3", "-screen", "0", fmt.Sprintf("%dx%dx%d", d.cfg.Width, d.cfg.Height, d.cfg.Depth), "-auth", auth,
			"-nolisten", "tcp", "-noreset", "-s", "0"},
		Env:         []string{"PATH=" + searchPath(), "HOME=" + d.seat},
		ExtraFiles:  []*os.File{w},
		DeathSignal: syscall.SIGTERM, // so that it removes its socket and lock itself
	})
	w.Close()
	if err != nil {
		return err
	}
	number, err := readLine(ctx, r, x)
	if err == nil {
		_, err = strconv.ParseUint(number, 10, 16)
	}
	if err != nil {
		return &ReadinessError{Part: name, Err: fmt.Errorf("display number: %w", err)}
	}
	d.display = ":" + number
	// A server that chooses its number takes no lock file, in the versions that were seen.
	for _, path := range []string{"/tmp/.X11-unix/X" + number, "/tmp/.X" + number + "-lock"} {
		made, err := os.Lstat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return &ReadinessError{Part: name, Err: err}
		}
		d.mu.Lock()
		d.files = append(d.files, file{path, made})
		d.mu.Unlock()
		if err := d.keep(func(k Registrar) error { return k.File(path) }); err != nil {
			return err
		}
	}
	for _, dir := range []string{d.home, d.seat} {
		if err := os.WriteFile(filepath.Join(dir, ".Xauthority"), xwire.AppendAuthority(nil, number, cookie), 0o600); err != nil {
			return err
		}
	}
	c, err := d.Dial(ctx)
	if err != nil {
		return &ReadinessError{Part: name, Err: err}
	}
	defer c.Close()
	if c.ServerPID != x.Identity().PID {
		return &ReadinessError{Part: name, Err: fmt.Errorf("display %s is served by pid %d, want ours, %d", d.display, c.ServerPID, x.Identity().PID)}
	}
	d.facts.ServerVendor, d.facts.ServerVersion = c.Vendor, serverVersion(c.Release)
	d.facts.WidthPx, d.facts.HeightPx, d.facts.Depth = c.Width, c.Height, int(c.RootDepth)
	return nil
}

// serverVersion decodes the release number of the X.Org server: 12101007 is 21.1.7 (xorg-server since 21.1).
func serverVersion(release uint32) string {
	if release < 12100000 {
		return strconv.FormatUint(uint64(release), 10)
	}
	n := release - 10000000
	return fmt.Sprintf("%d.%d.%d", n/100000, n/1000%100, n%1000)
}

// The numbers 60578 to 61183 are neither people's accounts nor given out by systemd
// (systemd.io/UIDS-GIDS); no Debian package has one of them.
const firstUID, countUID = 60600, 500

func (d *Desk) settleIdentity() error {
	if os.Getuid() != 0 {
		d.facts.UID, d.facts.GID, d.facts.Posture = os.Getuid(), os.Getgid(), Shared
		return nil
	}
	d.user = d.cfg.User
	if d.user == nil {
		// No two desks of a machine have the same display, so none have the same number here.
		n, err := strconv.Atoi(d.display[1:])
		if err != nil {
			return err
		}
		uid := firstUID + n%countUID
		if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
			return &IdentityError{UID: uid, Reason: fmt.Sprintf("it is the account %q; name another one for this desk", u.Username)}
		}
		d.user = &process.User{UID: uid, GID: uid}
	}
	if d.user.UID <= 0 || d.user.GID <= 0 {
		return &IdentityError{UID: d.user.UID, Reason: "uid and gid must be ordinary ones, not 0"}
	}
	d.facts.UID, d.facts.GID, d.facts.Posture = d.user.UID, d.user.GID, Dropped
	if reason := taken(d.user.UID); reason != "" {
		return &IdentityError{UID: d.user.UID, Reason: reason}
	}
	if err := d.keep(func(k Registrar) error { return k.User(d.user.UID) }); err != nil {
		return err
	}
	return filepath.WalkDir(d.home, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, d.user.UID, d.user.GID)
	})
}

// taken says why a uid cannot be a desk's own: when the desk closes, everything with it is ended.
func taken(uid int) string {
	found, err := process.Claim{UIDs: []int{uid}}.Find()
	switch {
	case err != nil:
		return err.Error()
	case len(found) > 0:
		return fmt.Sprintf("pid %d runs with it already", found[0].PID)
	}
	return ""
}

func (d *Desk) startManager(ctx context.Context, programs map[string]string) error {
	const name = "window manager"
	rc, err := os.ReadFile(stockConfig)
	if err != nil {
		return &ReadinessError{Part: name, Err: fmt.Errorf("stock configuration: %w", err)}
	}
	sum := sha256.Sum256(rc)
	d.facts.ManagerConfig, d.facts.ManagerConfigDigest = stockConfig, "sha256:"+hex.EncodeToString(sum[:])
	wm, err := d.start(ctx, name, process.Spec{Path: programs["openbox"], Env: d.Env(Person)})
	if err != nil {
		return err
	}
	c, err := d.Dial(ctx)
	if err != nil {
		return &ReadinessError{Part: name, Err: err}
	}
	defer c.Close()
	var m xwire.Manager
	err = d.during(ctx, wm, func(ctx context.Context) error {
		return c.WaitProperty(ctx, c.Root, func() (present bool, err error) {
			m, present, err = c.WindowManager(ctx)
			return present, err
		})
	})
	if err != nil {
		return &ReadinessError{Part: name, Err: err}
	}
	d.facts.ManagerName, d.facts.ManagerVersion = m.Name, m.Version
	// A quiet colour behind the windows, for the film's sake: root background, ClearArea of all.
	if err := c.Send(xwire.Req(2, 0).U32(c.Root, 0x2, 0x46525b), xwire.Req(61, 0).U32(c.Root).I16(0, 0).U16(0, 0)); err != nil {
		return &ReadinessError{Part: name, Err: err}
	}
	if err := d.during(ctx, wm, d.firstTrip); err != nil {
		return &ReadinessError{Part: name, Err: fmt.Errorf("round trip: %w", err)}
	}
	if d.cfg.Variant != Composited {
		return nil
	}
	return d.startCompositor(ctx, c, programs["picom"])
}

// firstTrip waits until the manager answers. Openbox 3.6.1 announces itself before it has emptied its
// event queue a last time, so what is asked in between is never answered: ask again, each time with a new
// window, so that no late answer counts for a later question.
func (d *Desk) firstTrip(ctx context.Context) error {
	for {
		trip, err := xwire.NewTrip(ctx, d.display, d.Xauthority())
		if err != nil {
			return err
		}
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		err = trip.Do(short)
		cancel()
		trip.Close()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

func (d *Desk) startCompositor(ctx context.Context, c *xwire.Conn, path string) error {
	const name = "compositor"
	p, err := d.start(ctx, name, process.Spec{Path: path, Env: d.Env(Person)})
	if err != nil {
		return err
	}
	d.facts.Compositor = "picom"
	sel, err := c.Atom(ctx, "_NET_WM_CM_S0")
	if err != nil {
		return &ReadinessError{Part: name, Err: err}
	}
	err = d.during(ctx, p, func(ctx context.Context) error {
		for {
			// GetSelectionOwner: taking a selection sends no event without an extension; so ask again, at
			// most 200 times a second.
			b, err := c.Call(ctx, xwire.Req(23, 0).U32(sel))
			if err != nil || slices.ContainsFunc(b[8:12], func(v byte) bool { return v != 0 }) {
				return err
			}
			t := time.NewTimer(5 * time.Millisecond)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return ctx.Err()
			}
		}
	})
	if err != nil {
		return &ReadinessError{Part: name, Err: err}
	}
	return nil
}

// busPart is the part of the desk that is the session bus.
const busPart = "session bus"

// startBus starts the session bus as the engine's side, for a bus serves its own uid only.
func (d *Desk) startBus(ctx context.Context, path string) error {
	const name = busPart
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	spec := process.Spec{
		Path: path, Args: []string{"--session", "--nofork", "--nopidfile", "--address=unix:path=" + filepath.Join(d.home, ".run/bus"), "--print-address=3"},
		Env: d.Env(Engine), User: d.user, Dir: d.home, ExtraFiles: []*os.File{w},
	}
	hint := ""
	if _, err := user.LookupId(strconv.Itoa(d.facts.UID)); err != nil {
		hint = fmt.Sprintf(" (uid %d has no account; either allow user namespaces or use an account)", d.facts.UID)
		if spec, err = d.withAccount(spec); err != nil {
			w.Close()
			return &ReadinessError{Part: name, Err: err}
		}
	}
	p, err := d.start(ctx, name, spec)
	w.Close()
	if err != nil {
		return err
	}
	address, err := readLine(ctx, r, p)
	if err == nil {
		// The bus says its address before it has read its policy, so greet it as well.
		err = d.during(ctx, p, d.greetBus)
	}
	if err != nil {
		return &ReadinessError{Part: name, Err: fmt.Errorf("%w%s", err, hint)}
	}
	d.bus = address
	return nil
}

// withAccount lets a program run where its uid has an account. A bus does not serve a uid without one
// (dbus 1.14: "Could not get password database information for UID of current process"), and to make
// accounts is not for us. So the program gets a mount namespace where the account files have one more line;
// nothing else sees it. The rights that this takes exist in a user namespace only and are dropped.
func (d *Desk) withAccount(spec process.Spec) (process.Spec, error) {
	uid, gid := d.facts.UID, d.facts.GID
	script := ""
	for name, line := range map[string]string{
		"passwd": fmt.Sprintf("user:x:%d:%d:user:%s:/bin/sh\n", uid, gid, d.home),
		"group":  fmt.Sprintf("user:x:%d:\n", gid),
	} {
		b, err := os.ReadFile("/etc/" + name)
		if err != nil {
			return spec, err
		}
		mine := filepath.Join(d.home, ".run", name)
		if err := os.WriteFile(mine, append(b, line...), 0o644); err != nil {
			return spec, err
		}
		if err := os.Lchown(mine, uid, gid); err != nil {
			return spec, err
		}
		script += fmt.Sprintf("mount --bind %s /etc/%s && ", mine, name)
	}
	for _, tool := range []string{"unshare", "setpriv", "mount"} {
		if _, err := exec.LookPath(tool); err != nil {
			return spec, &MissingProgramError{Program: tool, Package: "util-linux mount", Err: err}
		}
	}
	// The namespace clears the death signal that Start has set; setpriv sets it again.
	script += `exec setpriv --ambient-caps -all --inh-caps -all --pdeathsig KILL "$0" "$@"`
	args := []string{"--user", fmt.Sprintf("--map-user=%d", uid), fmt.Sprintf("--map-group=%d", gid), "--keep-caps", "--mount", "--propagation", "private", "/bin/sh", "-c", script, spec.Path}
	spec.Path, spec.Args = "unshare", append(args, spec.Args...)
	return spec, nil
}

// greetBus authenticates with the bus (D-Bus specification, EXTERNAL) and leaves.
func (d *Desk) greetBus(ctx context.Context) error {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "unix", filepath.Join(d.home, ".run/bus"))
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	if _, err := fmt.Fprintf(c, "\x00AUTH EXTERNAL %x\r\n", strconv.Itoa(os.Getuid())); err != nil {
		return err
	}
	b := make([]byte, 256)
	n, err := c.Read(b)
	if err != nil {
		return err
	}
	// A bus of another uid may turn us away; that it does so is an answer of its main loop all the same.
	if !strings.HasPrefix(string(b[:n]), "OK ") && (d.user == nil || !strings.HasPrefix(string(b[:n]), "REJECTED ")) {
		return fmt.Errorf("bus answered %q to our greeting", b[:n])
	}
	return nil
}

// readLine reads the line that a child writes to say that it is ready.
func readLine(ctx context.Context, r *os.File, p *process.Process) (string, error) {
	stop := context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var line []byte
	var b [1]byte
	for len(line) < 1024 {
		_, err := r.Read(b[:])
		switch {
		case errors.Is(err, io.EOF):
			select {
			case <-p.Done():
				return "", p.Ended()
			case <-ctx.Done():
				return "", ctx.Err()
			}
		case err != nil && ctx.Err() != nil:
			return "", ctx.Err()
		case err != nil:
			return "", err
		case b[0] == '\n':
			return string(line), nil
		}
		line = append(line, b[0])
	}
	return "", errors.New("line longer than 1024 bytes")
}

// during runs f until it returns or p ends.
func (d *Desk) during(ctx context.Context, p *process.Process, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.Done():
			cancel(p.Ended())
		case <-ctx.Done():
		}
	}()
	err := f(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
