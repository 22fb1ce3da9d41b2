//go:build !linux

package process

import (
	"syscall"
	"time"
)

var began = time.Now()

// Mono returns a monotonic time in nanoseconds since this process began.
func Mono() int64 { return int64(time.Since(began)) }

// Scan is ErrUnsupported here.
func Scan() ([]Entry, error) { return nil, ErrUnsupported }

func readEntry(int) (Entry, error) { return Entry{}, ErrUnsupported }

func homeOf(int) string { return "" }

func killExact(Identity, syscall.Signal) error { return ErrUnsupported }

func attributes(Spec) *syscall.SysProcAttr { return nil }

func awaitExit(int) []Identity { return nil }
