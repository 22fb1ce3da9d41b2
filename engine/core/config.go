package core

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/engine/native"
	"github.com/engine-acceptance/acceptance/matrix/refusal"
)

// Config says what an engine is put together from. Adapter is required; every other field has a useful zero value.
type Config struct {
	Adapter engine.Adapter
	// Native proves windows and processes; nil means [native.Unavailable]. The engine does not close it.
	Native engine.NativePlatform
	// Table is the refusal vocabulary; nil loads the embedded one.
	Table *refusal.Table
	// ProfileRoot is the directory that holds the profiles of driver-owned browsers; empty means [DefaultProfileRoot]. It is made with mode 0700.
	ProfileRoot string
	// Env is the environment from which the browser's own is taken, NAME=value; nil means [DefaultEnv]. HOME and the XDG directories of the
	// browser always lie beside its profile, whatever Env says.
	Env []string
	// Guardian is the command, program first, that runs [GuardianMain]. Without one, a browser and its profile outlive an engine that is killed.
	Guardian []string
	// Describe tells what a process is made of, for pids that are not the engine's own browser; nil means [native.Describe].
	Describe func(ctx context.Context, pid int) (native.Description, error)
	Budgets  Budgets
	// MaxNodes is the bound of a snapshot that names none; 0 means 2,000.
	MaxNodes int
}

// Budgets bound the time of each kind of call. Zero values mean the defaults of [DefaultBudgets].
type Budgets struct {
	// Launch bounds browser_prepare, Bind bounds binding, Action every other call on a browser, End the end of a session.
	Launch, Bind, Action, End time.Duration
	// Proof bounds the proof before an action or a read: a browser that does not answer is refused before the caller's own patience ends.
	Proof time.Duration
	// Settle is how long native and protocol rectangles may disagree after a window moved.
	Settle time.Duration
	// Reconnect bounds all attempts to make a lost connection anew.
	Reconnect time.Duration
}

// DefaultBudgets are the budgets of a release plan.
var DefaultBudgets = Budgets{Launch: 20 * time.Second, Bind: 5 * time.Second, Action: 5 * time.Second, End: 10 * time.Second, Proof: 1500 * time.Millisecond, Settle: 500 * time.Millisecond,
	Reconnect: 32 * time.Second}

func (b Budgets) withDefaults() Budgets {
	for _, f := range []struct{ got, def *time.Duration }{
		{&b.Launch, &DefaultBudgets.Launch}, {&b.Bind, &DefaultBudgets.Bind}, {&b.Action, &DefaultBudgets.Action}, {&b.End, &DefaultBudgets.End},
		{&b.Proof, &DefaultBudgets.Proof}, {&b.Settle, &DefaultBudgets.Settle}, {&b.Reconnect, &DefaultBudgets.Reconnect},
	} {
		if *f.got <= 0 {
			*f.got = *f.def
		}
	}
	return b
}

// Bounds of what crosses the public side, in nodes and bytes.
const (
	defaultNodes = 2000
	maxNodes     = 10000
	// maxListed bounds the text of all nodes of one snapshot.
	maxListed = 4 << 20
	// maxText bounds a name, value or title in a result.
	maxText = 1024
	// maxURL bounds a URL argument.
	maxURL = 8192
	// maxTyped bounds the text of one browser_type.
	maxTyped = 256 << 10
	// maxEnded is how many ended sessions are remembered, so that ending one again is no error.
	maxEnded = 4096
	// maxSessions bounds the sessions alive at once.
	maxSessions = 256
)

// New checks the configuration and makes an engine. It touches no browser, window system or profile.
func New(cfg Config) (*Engine, error) {
	if cfg.Adapter == nil {
		return nil, errors.New("engine: no adapter")
	}
	if cfg.Native == nil {
		cfg.Native = native.Unavailable()
	}
	if cfg.Table == nil {
		table, err := refusal.Load()
		if err != nil {
			return nil, err
		}
		cfg.Table = table
	}
	if cfg.Describe == nil {
		cfg.Describe = native.Describe
	}
	if cfg.Env == nil {
		cfg.Env = DefaultEnv(os.Environ())
	}
	if cfg.ProfileRoot == "" {
		cfg.ProfileRoot = DefaultProfileRoot()
	}
	if !filepath.IsAbs(cfg.ProfileRoot) {
		return nil, fmt.Errorf("engine: profile root is not an absolute path")
	}
	if cfg.MaxNodes <= 0 || cfg.MaxNodes > maxNodes {
		cfg.MaxNodes = defaultNodes
	}
	cfg.Budgets = cfg.Budgets.withDefaults()
	decl := cfg.Adapter.Declare()
	if err := decl.Total(); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	// What an engine declares it delivers: named and existing profiles are not kept here, whatever the adapter could do with them.
	decl.Postures = slices.DeleteFunc(slices.Clone(decl.Postures), func(p engine.Posture) bool { return p != engine.PostureIsolatedNew })
	e := &Engine{cfg: cfg, table: cfg.Table, decl: decl, claims: make(map[engine.Capability]engine.Claim, len(decl.Claims)),
		sessions: map[string]*session{}, guardian: &guardian{argv: cfg.Guardian}}
	for _, c := range decl.Claims {
		e.claims[c.Capability] = c
	}
	return e, nil
}

// DefaultProfileRoot is $XDG_STATE_HOME/acceptance/profiles, else under $XDG_RUNTIME_DIR, else under the user's cache directory, else under the
// directory for temporary files.
func DefaultProfileRoot() string {
	for _, name := range []string{"XDG_STATE_HOME", "XDG_RUNTIME_DIR"} {
		if dir := os.Getenv(name); filepath.IsAbs(dir) {
			return filepath.Join(dir, "acceptance", "profiles")
		}
	}
	if dir, err := os.UserCacheDir(); err == nil && filepath.IsAbs(dir) {
		return filepath.Join(dir, "acceptance", "profiles")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("acceptance-%d", os.Getuid()), "profiles")
}

// allowed are the variables that a browser gets from the engine's environment.
var allowed = map[string]bool{"DISPLAY": true, "XAUTHORITY": true, "PATH": true, "LANG": true, "LANGUAGE": true, "TZ": true, "USER": true, "LOGNAME": true,
	"SHELL": true, "XDG_RUNTIME_DIR": true, "DBUS_SESSION_BUS_ADDRESS": true, "FONTCONFIG_FILE": true, "FONTCONFIG_PATH": true, "XDG_DATA_DIRS": true, "XDG_CONFIG_DIRS": true,
	"GDK_SCALE": true, "GDK_DPI_SCALE": true}

// DefaultEnv is the allow-listed part of environ. An X authority file that is found through HOME alone is named, since the browser's HOME is
// another one.
func DefaultEnv(environ []string) []string {
	var out []string
	home, authority := "", false
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if allowed[name] || strings.HasPrefix(name, "LC_") {
			out = append(out, kv)
		}
		authority = authority || name == "XAUTHORITY"
		if name == "HOME" {
			home = value
		}
	}
	if !authority && home != "" {
		if file := filepath.Join(home, ".Xauthority"); exists(file) {
			out = append(out, "XAUTHORITY="+file)
		}
	}
	return out
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
