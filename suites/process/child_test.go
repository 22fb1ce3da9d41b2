//go:build linux

package process

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

func ptr(v *int32) unsafe.Pointer { return unsafe.Pointer(v) }

func notify(c chan os.Signal) { signal.Notify(c, syscall.SIGTERM) }
