//go:build !linux

package x11

import "time"

// ClockIsSystem reports whether MonoNS reads CLOCK_MONOTONIC, the clock that the X server stamps with.
const ClockIsSystem = false

var processStart = time.Now()

// MonoNS is the monotonic time since this process started, in nanoseconds. It compares within this process only.
func MonoNS() int64 { return int64(time.Since(processStart)) }
