//go:build !linux

package recorder

import (
	"os"
	"syscall"
	"time"
)

var processStart = time.Now()

func monotonic() int64 { return int64(time.Since(processStart)) }

func childAttr() *syscall.SysProcAttr { return nil }

func widenPipe(*os.File) {}

func newSource(string, string) (source, error) {
	return nil, fail("start film", ErrUnsupported, nil)
}

func checkAttr() *syscall.SysProcAttr { return nil }
