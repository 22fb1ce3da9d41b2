package attempt

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/redaction"
)

// profilesAccount observes whether the person's own profiles were touched since the account before, and that the watch is alive: a file
// of each is opened on purpose (contract S3).
func (a *Attempt) profilesAccount(ctx context.Context) {
	r, err := a.Stage.Profiles.Report(ctx, a.Stage.Desk.Home())
	g := &evidence.Guard{Channel: "profiles", Alive: err == nil && r.Lost == nil && r.Products == r.Of, Events: r.Products}
	if !g.Alive {
		g.Reason = fmt.Sprintf("controls seen in %d of %d profiles, lost %v, error %v", r.Products, r.Of, r.Lost, err)
	}
	a.observe(evidence.Observation{Kind: evidence.KindGuard, Guard: g})
	detail := ""
	if len(r.Touched) > 0 {
		detail = r.Touched[0]
	}
	a.Fact(evidence.FactPersonProfiles, len(r.Touched) == 0, len(r.Touched), detail)
}

// listenersAccount ends the watch for listeners beyond loopback and observes what it saw (contract S13).
func (a *Attempt) listenersAccount() {
	if a.listening == nil {
		return
	}
	looks, exposed, err := a.listening.Stop()
	a.listening = nil
	g := &evidence.Guard{Channel: "listeners", Alive: err == nil && looks > 0, Events: looks}
	if !g.Alive {
		g.Reason = fmt.Sprintf("the kernel was asked %d times, error %v", looks, err)
	}
	a.observe(evidence.Observation{Kind: evidence.KindGuard, Guard: g})
	a.Fact(evidence.FactLoopbackOnly, len(exposed) == 0, len(exposed), "the whole row")
}

// trapAccount observes whether anybody came to the listener that the machine's endpoint file names, and closes it.
func (a *Attempt) trapAccount(ctx context.Context) {
	trap := a.Stage.Trap
	if trap == nil {
		return
	}
	a.Stage.Trap = nil
	n, err := trap.Visitors(ctx)
	if err != nil {
		_ = a.fault("harness", "%v", err)
		return
	}
	a.Fact(evidence.FactDecoyUntouched, n == 0, int(n), "")
	if err := trap.Close(); err != nil {
		_ = a.fault("harness", "close the trap: %v", err)
	}
}

// Bounds of the search through what the engine wrote: bytes of one file, number of files.
const (
	maxArtifact  = 64 << 20
	maxArtifacts = 20_000
)

// artifacts looks for the run's canaries in every file that the engine's side wrote, but for the profiles and homes of its browsers, which
// hold what their pages gave them, and what is the person's (contract P8). A file with a canary is planted first and must be found.
func (a *Attempt) artifacts(ctx context.Context) {
	s := &evidence.Scan{What: "engine_files"}
	defer func() { a.observe(evidence.Observation{Kind: evidence.KindScan, Scan: s}) }()
	control, err := redaction.NewCanaries(rand.Reader, []redaction.Channel{"control"})
	if err != nil {
		_ = a.fault("harness", "prepare the scan: %v", err)
		return
	}
	control[0].ID = "planted"
	scanner, err := redaction.NewScanner(append(slices.Clone(a.canaries), control...))
	if err != nil {
		_ = a.fault("harness", "prepare the scan: %v", err)
		return
	}
	home := a.Stage.Desk.Home()
	planted := filepath.Join(home, ".cache", "control")
	if err := os.WriteFile(planted, []byte(control[0].Value), 0o600); err != nil {
		_ = a.fault("harness", "plant the control of the scan: %v", err)
		return
	}
	defer os.Remove(planted)
	scan := func(path string, d fs.DirEntry) error {
		if s.Files >= maxArtifacts {
			return fs.SkipAll
		}
		f, err := os.Open(path)
		if err != nil {
			return nil // it went away meanwhile
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxArtifact {
			return nil
		}
		found, err := scanner.Scan(ctx, f, "file")
		if err != nil {
			return err
		}
		s.Files++
		s.Bytes += info.Size()
		for _, hit := range found {
			switch {
			case path == planted:
				s.ControlFound = true
			default:
				s.Findings = append(s.Findings, scanFinding(hit))
			}
		}
		return nil
	}
	err = filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // it went away meanwhile
		case d.IsDir() && (a.persons(path) || slices.Contains(a.profiles, path) || slices.Contains(a.homes, path)):
			return fs.SkipDir
		case d.Type().IsRegular():
			return scan(path, d)
		}
		return nil
	})
	if err == nil {
		err = a.elsewhereWritten(scan)
	}
	if err != nil {
		_ = a.fault("harness", "scan what the engine wrote: %v", err)
	}
}

// elsewhereWritten visits the files that the engine's uid has in the directories where everybody may write, where it has one of its own.
func (a *Attempt) elsewhereWritten(visit func(string, fs.DirEntry) error) error {
	user := a.Stage.Desk.User()
	if user == nil {
		return nil
	}
	for _, top := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || path == top {
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return nil
			}
			st, ok := info.Sys().(*syscall.Stat_t)
			foreign := !ok || int(st.Uid) != user.UID
			switch {
			case d.IsDir() && (foreign || path == a.Stage.Desk.Home()):
				return fs.SkipDir
			case d.Type().IsRegular() && !foreign:
				return visit(path, d)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// browserHome is the HOME that a browser was started with, where that lies below the desk's home and is not the engine's own.
func (a *Attempt) browserHome(pid int) string {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return ""
	}
	for v := range strings.SplitSeq(string(environ), "\x00") {
		if home, ok := strings.CutPrefix(v, "HOME="); ok && strings.HasPrefix(home, a.Stage.Desk.Home()+"/") {
			return home
		}
	}
	return ""
}
