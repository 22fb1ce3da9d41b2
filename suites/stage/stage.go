// Package stage sets the scene for rows: one desk with its guards, its person, its pages and the engine under test, each in a process of
// its own (design section 3), opened together and closed without a trace.
//
//	s, err := stage.Open(ctx, stage.Config{Engine: host.Command{...}})
//	defer s.Close(ctx)
//
// A stage belongs to one worker and is used by one row at a time.
package stage

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/fixtures"
	"github.com/engine-acceptance/acceptance/matrix/refusal"
	"github.com/engine-acceptance/acceptance/recorder/desktop"
	"github.com/engine-acceptance/acceptance/suites/controls"
	"github.com/engine-acceptance/acceptance/suites/desk"
	"github.com/engine-acceptance/acceptance/suites/host"
	"github.com/engine-acceptance/acceptance/suites/keeper"
	"github.com/engine-acceptance/acceptance/suites/person"
	"github.com/engine-acceptance/acceptance/suites/process"
	"github.com/engine-acceptance/acceptance/suites/sentinel"
	"github.com/engine-acceptance/acceptance/suites/xwire"
)

// Config says what stands on the stage.
type Config struct {
	// Binary is our own program: the roles of the desk are played by it.
	Binary string
	// Engine is the program under test. When its path is [Config.Binary] it is copied to where its uid may execute it.
	Engine host.Command
	// Variant is the kind of desk.
	Variant desk.Variant
	// Claimed is what the engine file says, to be compared with what the engine declares.
	Claimed Claimed
}

// Claimed is the public support contract, as far as a runtime declaration is compared with it.
type Claimed struct {
	Table     []engine.Claim   `json:"table"`
	Postures  []engine.Posture `json:"postures"`
	Reconnect bool             `json:"reconnect"`
}

// Stage is an open scene.
type Stage struct {
	Desk      *desk.Desk
	Sentinel  *sentinel.Sentinel
	Bystander *sentinel.Sentinel
	Person    *person.Person
	Controls  *controls.Controls
	Log       *desktop.Log
	Pages     *fixtures.Server
	Host      *host.Host
	Refusals  *refusal.Table
	Heart     *Heart
	// Once is the round of the controls that are committed once a desk, because the window manager takes a while over them; every row that is carried out
	// here rests on it.
	Once evidence.Controls
	// Profiles watches the person's own profiles.
	Profiles *Watch
	// Claimed is what the engine file says.
	Claimed Claimed

	keeper  *keeper.Keeper
	x       *xwire.Conn
	trip    *xwire.Trip
	command host.Command
	key     []byte

	account account

	mu      sync.Mutex
	decoys  []*decoy
	manager int
	// composer is the compositor's process, 0 where there is none: it is a part of the window manager.
	composer int
	browsers map[int]bool
	// Trap is the listener of another program that an endpoint of the machine points at, nil without one.
	Trap *Trap
	// Shared is the browser that rows with launch: shared have in common.
	Shared *Shared
}

// Shared is one session with one browser for a batch of rows.
type Shared struct {
	Session string
	PID     int
	Posture engine.Posture
	Window  *Window
	Profile string
	// HeldUp: a dialog was left open in a tab that the window does not show. Such a tab cannot be navigated, only closed.
	HeldUp bool
}

// Open opens everything. When it fails nothing is left.
func Open(ctx context.Context, cfg Config) (_ *Stage, err error) {
	s := &Stage{Claimed: cfg.Claimed, key: make([]byte, 32), browsers: map[int]bool{}}
	if _, err := rand.Read(s.key); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close(context.WithoutCancel(ctx)))
		}
	}()
	if s.Refusals, err = refusal.Load(); err != nil {
		return nil, err
	}
	if s.keeper, err = keeper.Start(ctx, keeper.Options{}); err != nil {
		return nil, fmt.Errorf("start the keeper: %w", err)
	}
	if s.Desk, err = desk.Open(ctx, desk.Config{Variant: cfg.Variant, Keeper: s.keeper}); err != nil {
		return nil, err
	}
	if s.x, err = s.Desk.Dial(ctx); err != nil {
		return nil, err
	}
	if s.trip, err = xwire.NewTrip(ctx, s.Desk.Display(), s.Desk.Xauthority()); err != nil {
		return nil, err
	}
	if s.Log, err = desktop.Start(ctx, desktop.Config{Display: s.Desk.Display(), XAuthority: s.Desk.Xauthority(),
		Bus: s.Desk.Bus().Bus, BusUID: s.Desk.Bus().UID}); err != nil {
		return nil, err
	}
	if err := s.seat(ctx, cfg); err != nil {
		return nil, err
	}
	if err := s.plantProfiles(); err != nil {
		return nil, err
	}
	if s.Profiles, err = watchProfiles(s.Desk.Home()); err != nil {
		return nil, err
	}
	attribute := fixtures.NewAttributor(s.browserRoots)
	if s.Pages, err = fixtures.Start(context.WithoutCancel(ctx), fixtures.Config{Attribute: attribute.Owner, EchoBudget: echoBudget, Heartbeat: heartbeat}); err != nil {
		return nil, err
	}
	if s.command, err = s.reachable(cfg); err != nil {
		return nil, err
	}
	s.Heart = startHeart()
	return s, s.StartEngine(ctx)
}

// seat starts the person's programs and tells the event log whose window is whose.
func (s *Stage) seat(ctx context.Context, cfg Config) error {
	var err error
	role := s.Desk.StartRole
	if s.Bystander, err = sentinel.Start(ctx, role, sentinel.Options{Role: "bystander", Quiet: true, Rect: xwire.Rect{X: 960, Y: 560, Width: 300, Height: 200}}); err != nil {
		return err
	}
	if s.Sentinel, err = sentinel.Start(ctx, role, sentinel.Options{Above: cfg.Variant == desk.Above, Rect: home, Bus: s.Desk.Bus()}); err != nil {
		return err
	}
	if s.Person, err = person.Start(ctx, role, 1); err != nil {
		return err
	}
	if s.Controls, err = controls.Start(ctx, role, controls.Options{Bus: s.Desk.Bus()}); err != nil {
		return err
	}
	if err := s.Log.Watch(ctx, s.Sentinel.Window(), desktop.Person); err != nil {
		return err
	}
	if err := s.Log.Watch(ctx, s.Bystander.Window(), desktop.Bystander); err != nil {
		return err
	}
	check, err := s.x.Words(ctx, s.x.Root, "_NET_SUPPORTING_WM_CHECK")
	if err != nil || len(check) == 0 {
		return errors.Join(err, errors.New("no window manager announces itself"))
	}
	if s.manager, err = s.clientPID(ctx, check[0]); err != nil {
		return fmt.Errorf("find the window manager's process: %w", err)
	}
	if s.composer, err = s.findComposer(ctx); err != nil {
		return fmt.Errorf("find the compositor's process: %w", err)
	}
	if err := s.commitOnce(ctx); err != nil {
		return fmt.Errorf("controls once a desk: %w", err)
	}
	s.Log.Exempt(s.manager, s.Person.Process().Identity().PID, s.Sentinel.Process().Identity().PID, s.Bystander.Process().Identity().PID,
		s.Controls.Process().Identity().PID, os.Getpid())
	_, err = s.Sentinel.Raise(ctx)
	return err
}

// commitOnce shows the guards the violations that one desk is shown once.
func (s *Stage) commitOnce(ctx context.Context) error {
	if _, err := s.Sentinel.Raise(ctx); err != nil {
		return err
	}
	from, err := s.Log.Barrier(ctx)
	if err != nil {
		return err
	}
	round, err := s.Controls.CommitOnce(ctx, s.Sentinel.Window())
	if err != nil {
		return err
	}
	if len(round.Differences) > 0 {
		return fmt.Errorf("the desk is changed: %v", round.Differences)
	}
	if err := s.ManagerTrip(ctx); err != nil {
		return err
	}
	to, err := s.Log.Barrier(ctx)
	if err != nil {
		return err
	}
	// What was asked for must be seen with the process that asked, and what came of it as an effect.
	asked, came := map[string]bool{}, map[string]bool{}
	for _, ev := range s.Log.Between(from, to) {
		kind, reason := ev.Kind.String(), ""
		if _, r := desktop.Violation(ev); r != "" {
			reason = string(r)
		}
		switch {
		case ev.Kind.IsRequest() && ev.PID == s.Controls.Process().Identity().PID:
			asked[kind], asked[reason] = true, true
		case !ev.Kind.IsRequest():
			came[kind], came[reason] = true, true
		}
	}
	s.Once = evidence.Controls{When: "desk", TookNS: round.Took.Nanoseconds()}
	for _, act := range round.Acts {
		kind := string(act.Kind)
		s.Once.Committed = append(s.Once.Committed, kind)
		request := kind
		if act.Kind == controls.OutputChanged {
			request = desktop.ReqOutput.String()
		}
		if !asked[request] || !came[kind] {
			s.Once.Missed = append(s.Once.Missed, kind)
		}
	}
	s.Log.Release(to)
	return nil
}

// echoBudget bounds how long pages may take to echo: a loaded machine of two cores was seen to need more than the server's own second.
const echoBudget = 3 * time.Second

// heartbeat is how often each page is asked for its masks: once a frame of the film. A frame is held for 200 ms and shows the covered window only
// when a later answer is in by then, so that several must fit into that time; what moves is reported at once all the same.
const heartbeat = 66 * time.Millisecond

// home is where the person's window is when no browser is to be covered.
var home = xwire.Rect{X: 60, Y: 60, Width: 900, Height: 660}

// reachable gives the engine's program a place that its uid can execute: our own binary may lie where an ordinary uid has no way to.
func (s *Stage) reachable(cfg Config) (host.Command, error) {
	if cfg.Engine.Path != cfg.Binary || s.Desk.User() == nil {
		return cfg.Engine, nil
	}
	dir, err := s.directory("bin-", 0o755)
	if err != nil {
		return host.Command{}, fmt.Errorf("put the engine where its uid can execute it: %w", err)
	}
	path := filepath.Join(dir, "engine")
	if err := copyFile(cfg.Binary, path, 0o755); err != nil {
		return host.Command{}, fmt.Errorf("put the engine where its uid can execute it: %w", err)
	}
	return host.Command{Path: path, Args: cfg.Engine.Args, Mapping: cfg.Engine.Mapping}, nil
}

func copyFile(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	return errors.Join(out.Chmod(mode), out.Close())
}

// StartEngine starts the engine anew; the one before, if any, is stopped.
func (s *Stage) StartEngine(ctx context.Context) error { return s.startEngine(ctx, s.command) }

func (s *Stage) startEngine(ctx context.Context, command host.Command) error {
	if s.Host != nil {
		s.Shared = nil
		if err := s.Host.Stop(ctx); err != nil {
			return fmt.Errorf("stop the engine: %w", err)
		}
		s.Host = nil
	}
	h, err := host.Start(ctx, s.Desk, command)
	if err != nil {
		return err
	}
	s.Host = h
	return nil
}

// EndShared ends the session of the browser that rows have in common, if there is one.
func (s *Stage) EndShared(ctx context.Context) error {
	if s.Shared == nil {
		return nil
	}
	session := s.Shared.Session
	s.Shared = nil
	ctx, cancel := context.WithTimeout(ctx, 2*deadline)
	defer cancel()
	if _, carrier := s.Host.Call(ctx, engine.OpSessionEnd, map[string]any{"session": session}); carrier != "" {
		return fmt.Errorf("end the session of the shared browser: %s", carrier)
	}
	return nil
}

// AnotherUsers is a living process that does not belong to the engine's side: our own where it has an identity of its own, else the
// system's first. It is an error when that is of the same user.
func (s *Stage) AnotherUsers() (int, error) {
	if s.Desk.User() != nil {
		return os.Getpid(), nil
	}
	all, err := process.Scan()
	if err != nil {
		return 0, err
	}
	for _, e := range all {
		if e.UID >= 0 && e.UID != os.Getuid() && e.State != 'Z' {
			return e.PID, nil
		}
	}
	return 0, errors.New("every process of this machine belongs to one user")
}

// DeadProcess is the pid of a process of the engine's side that has just ended.
func (s *Stage) DeadProcess(ctx context.Context) (int, error) {
	path, err := installed(sleeps)
	if err != nil {
		return 0, err
	}
	p, err := s.Desk.Start(ctx, desk.Browser, process.Spec{Path: path, Args: []string{"0"}})
	if err != nil {
		return 0, err
	}
	select {
	case <-p.Done():
		return p.Identity().PID, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// EndDecoys ends every decoy.
func (s *Stage) EndDecoys(ctx context.Context) error {
	var errs []error
	for _, d := range s.decoys {
		if err := d.proc.Stop(ctx, deadline); err != nil {
			errs = append(errs, err)
		}
	}
	s.decoys = nil
	return errors.Join(errs...)
}

// SecretDigest is what stands for a secret value in observations: keyed, so that short secrets cannot be guessed from it.
func (s *Stage) SecretDigest(value string) string {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte(value))
	return hex.EncodeToString(m.Sum(nil))
}

// Actor says whose process did what an event tells.
func (s *Stage) Actor(ev desktop.Event) evidence.Actor {
	switch ev.PID {
	case 0:
		return evidence.ActorUnknown
	case s.manager, s.composer:
		return evidence.ActorWindowManager
	case s.Person.Process().Identity().PID:
		return evidence.ActorPerson
	case s.Controls.Process().Identity().PID:
		return evidence.ActorControls
	case os.Getpid(), s.Sentinel.Process().Identity().PID, s.Bystander.Process().Identity().PID:
		return evidence.ActorHarness
	}
	switch {
	case s.Host == nil: // it could not be started
	case ev.PID == s.Host.Identity().PID:
		return evidence.ActorEngine
	case s.ofEngine(ev.PID):
		return evidence.ActorBrowser
	}
	return evidence.ActorStranger
}

// ofEngine reports whether a process belongs to the engine's tree, now or when it was seen last.
func (s *Stage) ofEngine(pid int) bool {
	s.mu.Lock()
	known := s.browsers[pid]
	s.mu.Unlock()
	if known {
		return true
	}
	tree := s.engineSide()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range tree {
		s.browsers[e.PID] = true
	}
	return s.browsers[pid]
}

func (s *Stage) browserRoots() []int {
	if s.Host == nil {
		return nil
	}
	return []int{s.Host.Identity().PID}
}

// ReportOrigin says whose process sent a page report.
func (s *Stage) ReportOrigin(ev fixtures.Event) string {
	switch {
	case ev.Owner.Level == fixtures.OwnerUID:
		// Where everything has one uid the kernel names no process; the signature alone speaks for the page.
		if ev.Signed {
			return "browser"
		}
		return "unknown"
	case ev.PID == 0:
		return "unknown"
	case ev.PID == os.Getpid():
		return "harness"
	case ev.PID == s.Host.Identity().PID:
		return "engine"
	case s.ofEngine(ev.PID):
		return "browser"
	}
	return "other"
}

// Close ends everything, in the order in which nobody is left without what it needs.
func (s *Stage) Close(ctx context.Context) error {
	var errs []error
	if s.Heart != nil {
		s.Heart.Stop()
	}
	if s.Host != nil {
		errs = append(errs, s.Host.Stop(ctx))
	}
	errs = append(errs, s.EndDecoys(ctx))
	if s.Trap != nil {
		errs = append(errs, s.Trap.Close())
	}
	if s.Profiles != nil {
		errs = append(errs, s.Profiles.Close())
	}
	if s.Pages != nil {
		errs = append(errs, s.Pages.Close(ctx))
	}
	if s.Log != nil {
		errs = append(errs, s.Log.Stop(ctx))
	}
	if s.Controls != nil {
		errs = append(errs, s.Controls.Close(ctx))
	}
	if s.Person != nil {
		errs = append(errs, s.Person.Close(ctx))
	}
	for _, w := range []*sentinel.Sentinel{s.Sentinel, s.Bystander} {
		if w != nil {
			errs = append(errs, w.Close(ctx))
		}
	}
	if s.trip != nil {
		errs = append(errs, s.trip.Close())
	}
	if s.x != nil {
		errs = append(errs, s.x.Close())
	}
	if s.Desk != nil {
		errs = append(errs, s.Desk.Close(ctx))
	}
	if s.keeper != nil {
		errs = append(errs, s.keeper.Close(ctx))
	}
	return errors.Join(errs...)
}

// Scratch makes a directory for the harness's own temporary files, in memory where the desk has its homes there, that only our uid can
// enter. It goes with the stage.
func (s *Stage) Scratch() (string, error) { return s.directory("scratch-", 0o700) }

// directory makes a directory beside the desk's homes, which goes with the desk.
func (s *Stage) directory(prefix string, mode os.FileMode) (string, error) {
	return s.Desk.Directory(prefix, mode)
}
