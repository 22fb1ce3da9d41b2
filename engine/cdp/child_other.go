//go:build !linux

package cdp

import (
	"errors"
	"io"
	"os/exec"

	"github.com/engine-acceptance/acceptance/engine"
)

// child is the browser's main process.
type child struct {
	pid     int
	cmd     *exec.Cmd
	done    chan struct{}
	drained chan struct{}
}

// startChild refuses: without a death signal and a process identity a browser could outlive us.
func startChild(string, []string, []string, string, io.Writer) (*child, error) {
	return nil, errors.ErrUnsupported
}

func (c *child) state() string                  { return "" }
func (c *child) kill()                          {}
func (c *child) family(string) []engine.Process { return nil }
func identify(int) (engine.Process, error)      { return engine.Process{}, errors.ErrUnsupported }
func alive(int) bool                            { return false }
func signalProcess(engine.Process)              {}
