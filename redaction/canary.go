package redaction

import (
	"fmt"
	"io"
)

// Channel names a way by which a secret could leave: typed text, a cookie, a URL query, a window title and so on.
type Channel string

// Canary is a secret that the harness plants in one channel and must not find again in anything it keeps. ID names it in
// findings and replacements, Value is the secret itself and never leaves memory.
type Canary struct {
	ID      string
	Channel Channel
	Value   string
}

// String names the canary without its value, so that printing one by accident tells nothing.
func (c Canary) String() string { return "canary " + c.ID + " (" + string(c.Channel) + ")" }

// GoString is [Canary.String], for %#v.
func (c Canary) GoString() string { return c.String() }

// Format is [Canary.String] for every verb, %+v too.
func (c Canary) Format(f fmt.State, _ rune) { io.WriteString(f, c.String()) }

// Secret returns the canary as a secret for [NewRules].
func (c Canary) Secret() Secret { return Secret{ID: c.ID, Value: c.Value} }

const (
	canaryAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	canaryLen      = 28 // random characters, 166 bits
)

// NewCanaries makes one canary for each channel, in order, from random (crypto/rand.Reader in a run). A value is letters and
// digits of both cases, so it passes unchanged through a file name, a host-like title or a cookie. Its ID is "c" and its place in
// the list, from c01. A short read of random is an error.
func NewCanaries(random io.Reader, channels []Channel) ([]Canary, error) {
	out := make([]Canary, 0, len(channels))
	seen := map[Channel]bool{}
	for i, ch := range channels {
		if ch == "" || seen[ch] {
			return nil, fmt.Errorf("plant canaries: channel %d %q is empty or named twice", i, ch)
		}
		seen[ch] = true
		v, err := randomText(random, canaryLen)
		if err != nil {
			return nil, fmt.Errorf("plant canary for channel %s: %w", ch, err)
		}
		out = append(out, Canary{ID: fmt.Sprintf("c%02d", i+1), Channel: ch, Value: "Cn" + v})
	}
	return out, nil
}

// randomText reads n unbiased characters: bytes at or over the largest multiple of the alphabet are drawn again.
func randomText(random io.Reader, n int) (string, error) {
	out := make([]byte, 0, n)
	var one [1]byte
	for len(out) < n {
		if _, err := io.ReadFull(random, one[:]); err != nil {
			return "", err
		}
		if int(one[0]) < 256/len(canaryAlphabet)*len(canaryAlphabet) {
			out = append(out, canaryAlphabet[int(one[0])%len(canaryAlphabet)])
		}
	}
	return string(out), nil
}
