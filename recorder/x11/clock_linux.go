package x11

import "golang.org/x/sys/unix"

// ClockIsSystem reports whether MonoNS reads CLOCK_MONOTONIC, the clock that the X server stamps with.
const ClockIsSystem = true

// MonoNS is CLOCK_MONOTONIC in nanoseconds: the same clock for every process since boot.
func MonoNS() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}
