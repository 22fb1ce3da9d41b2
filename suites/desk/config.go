package desk

import (
	"fmt"

	"github.com/engine-acceptance/acceptance/suites/process"
)

// Variant is a kind of desk.
type Variant string

// The kinds of desk.
const (
	// Stock is openbox as its package configures it.
	Stock Variant = "openbox"
	// Above is Stock where the person keeps the window on top, by that window's own property.
	Above Variant = "openbox+above"
	// Composited is Stock with the picom compositor.
	Composited Variant = "openbox+picom"
	// TwoOutputs is Stock on a screen of two outputs, side by side.
	TwoOutputs Variant = "openbox+two-outputs"
	// Scaled is Stock in a session that asks for two device pixels to each pixel of an application.
	Scaled Variant = "openbox+scale-2"
)

// Posture says what keeps engine and browsers apart from the harness.
type Posture string

// The postures.
const (
	// Dropped: the harness runs as root, engine and browsers as an ordinary uid of their own.
	Dropped Posture = "own-uid"
	// Shared: everything runs as the same ordinary uid.
	Shared Posture = "shared-uid"
)

// Role is what a child is on the desk; it decides its identity and environment.
type Role string

// Roles of a desk's children. Engine and Browser have the identity of the engine's side; the others
// are the person's side and keep the worker's uid.
const (
	Engine  Role = "engine"
	Browser Role = "browser"
	Person  Role = "person" // also sentinel, bystander, controls
)

// Registrar is told of everything that must not stay behind. *keeper.Keeper is one.
type Registrar interface {
	Process(process.Identity) error
	User(uid int) error
	Home(path string) error
	Directory(path string) error
	File(path string) error
}

// Config describes a desk; the zero value is the reference desk.
type Config struct {
	Width, Height int     // pixels; 0 is 1280x800
	Depth         int     // bits; 0 is 24
	Variant       Variant // empty is Stock

	// User is the identity of engine and browsers; only root may set it. Nil takes an ordinary number
	// that no account and no process has and that differs between desks. An account may be named when nothing
	// runs with it: everything with this uid is ended when the desk closes.
	User *process.User

	// Keeper is told of processes and directories before they are used; nil keeps nothing.
	Keeper Registrar

	// RoleCommand is the command that plays a role when the role's name and arguments are appended; nil is
	// this program with the argument "role".
	RoleCommand []string

	// Memory is the first directory tried for the homes; empty starts with /dev/shm.
	Memory string
}

func (c Config) withDefaults() (Config, error) {
	if c.Width == 0 && c.Height == 0 {
		c.Width, c.Height = 1280, 800
	}
	if c.Depth == 0 {
		c.Depth = 24
	}
	if c.Variant == "" {
		c.Variant = Stock
	}
	switch c.Variant {
	case Stock, Above, Composited, TwoOutputs, Scaled:
	default:
		return c, fmt.Errorf("desk variant %q: want %s, %s, %s, %s or %s", c.Variant, Stock, Above, Composited, TwoOutputs, Scaled)
	}
	if c.Width < 320 || c.Height < 240 || c.Width > 8192 || c.Height > 8192 {
		return c, fmt.Errorf("desk of %dx%d: want 320x240 to 8192x8192 pixels", c.Width, c.Height)
	}
	return c, nil
}

// Facts are what provenance records of a desk; no absolute path of the machine but the manager's
// public configuration file is in it.
type Facts struct {
	Display       string  `json:"display"`
	ServerVendor  string  `json:"server_vendor"`
	ServerVersion string  `json:"server_version"`
	WidthPx       int     `json:"width_px"`
	HeightPx      int     `json:"height_px"`
	Depth         int     `json:"depth"`
	Variant       Variant `json:"variant"`

	ManagerName         string `json:"manager_name"`
	ManagerVersion      string `json:"manager_version"`
	ManagerConfig       string `json:"manager_config"`        // path of the stock rc.xml that was in force
	ManagerConfigDigest string `json:"manager_config_digest"` // "sha256:..."
	Compositor          string `json:"compositor,omitempty"`
	// Outputs is how many monitors the server tells of, Scale what the session asks of applications.
	Outputs int `json:"outputs"`
	Scale   int `json:"scale"`

	UID     int     `json:"uid"` // of engine and browsers
	GID     int     `json:"gid"`
	Posture Posture `json:"posture"`

	// Homes is "memory" when the homes are in a memory-backed file system, else "disk".
	Homes string `json:"homes"`
	// Directories are the roles of the directories that the engine's side was given.
	Directories []string `json:"directories"`
	// Environment are the names that the engine's side was given.
	Environment []string `json:"environment"`
}
