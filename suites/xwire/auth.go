package xwire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// CookieName is the only authorisation protocol that we speak.
const CookieName = "MIT-MAGIC-COOKIE-1"

// familyWild matches any host: the cookie belongs to the display, whatever the host is called.
const familyWild = 65535

// AppendAuthority appends one entry in the format of Xauthority files (Xau library: every field is
// a big-endian 16-bit length and its bytes). display is the number alone; empty matches any.
func AppendAuthority(b []byte, display string, cookie []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, familyWild)
	for _, f := range [][]byte{nil, []byte(display), []byte(CookieName), cookie} {
		b = binary.BigEndian.AppendUint16(b, uint16(len(f)))
		b = append(b, f...)
	}
	return b
}

// Cookie finds the cookie of a display in an Xauthority file; entries of any host count, since
// connections are local. An empty path means no authorisation.
func Cookie(path, display string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the X cookie: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("the X cookie: %w", err)
	}
	return findCookie(b, display)
}

var errNoCookie = errors.New("the X cookie: none for this display")

func findCookie(b []byte, display string) ([]byte, error) {
	field := func() ([]byte, bool) {
		if len(b) < 2 {
			return nil, false
		}
		n := int(binary.BigEndian.Uint16(b))
		if len(b) < 2+n {
			return nil, false
		}
		v := b[2 : 2+n]
		b = b[2+n:]
		return v, true
	}
	for len(b) >= 2 {
		b = b[2:] // family
		var f [4][]byte
		for i := range f {
			var ok bool
			if f[i], ok = field(); !ok {
				return nil, errNoCookie
			}
		}
		if (len(f[1]) == 0 || string(f[1]) == display) && string(f[2]) == CookieName {
			return f[3], nil
		}
	}
	return nil, errNoCookie
}
