//go:build cgo && linux

package person

import (
	"errors"

	"github.com/go-vgo/robotgo"
)

// Injector names what injects the strokes.
const Injector = "robotgo"

// hands injects through robotgo, whose display is one and static in a process; it finds it by DISPLAY
// and XAUTHORITY. Its calls return when the server has the event.
type hands struct{}

func newHands() (*hands, error) {
	robotgo.KeySleep, robotgo.MouseSleep = 0, 0
	// Without its display robotgo tries another one; the role has connected before, so this is a check.
	if w, h := robotgo.GetScreenSize(); w <= 0 || h <= 0 {
		return nil, errors.New("robotgo has no display")
	}
	return &hands{}, nil
}

// key types one character of the alphabet. Type takes the keyboard map as it is for ASCII.
func (*hands) key(c byte) error { robotgo.Type(string(c)); return nil }

func (*hands) click(x, y int) error {
	robotgo.Move(x, y)
	return errors.Join(robotgo.Toggle("left"), robotgo.Toggle("left", "up"))
}

func (*hands) close() {}
