package x11

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Bounds of an authority file.
const (
	maxAuthorityBytes   = 256 << 10
	maxAuthorityEntries = 1024
	cookieName          = "MIT-MAGIC-COOKIE-1"
)

// Families of authority entries (Xauth.h).
const (
	familyLocal = 256
	familyWild  = 65535
)

// AuthorityEntry is one record of an Xauthority file.
type AuthorityEntry struct {
	Family  uint16
	Address string // host name for local entries
	Number  string // display number, empty for any
	Name    string // such as MIT-MAGIC-COOKIE-1
	Data    []byte
}

// ParseAuthority reads the records of an Xauthority file: big-endian counted strings, at most 1024 entries
// and 256 KiB. Anything cut short is an error that matches ErrAuthority.
func ParseAuthority(r io.Reader) ([]AuthorityEntry, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxAuthorityBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read authority: %w: %w", ErrAuthority, err)
	}
	if len(b) > maxAuthorityBytes {
		return nil, fmt.Errorf("authority file above %d bytes: %w", maxAuthorityBytes, ErrAuthority)
	}
	counted := func() (string, bool) {
		if len(b) < 2 {
			return "", false
		}
		n := int(binary.BigEndian.Uint16(b))
		if len(b) < 2+n {
			return "", false
		}
		s := string(b[2 : 2+n])
		b = b[2+n:]
		return s, true
	}
	var entries []AuthorityEntry
	for len(b) > 0 {
		if len(entries) == maxAuthorityEntries {
			return nil, fmt.Errorf("more than %d authority entries: %w", maxAuthorityEntries, ErrAuthority)
		}
		if len(b) < 2 {
			return nil, fmt.Errorf("authority entry %d is cut short: %w", len(entries), ErrAuthority)
		}
		e := AuthorityEntry{Family: binary.BigEndian.Uint16(b)}
		b = b[2:]
		var parts [4]string
		for i := range parts {
			s, ok := counted()
			if !ok {
				return nil, fmt.Errorf("authority entry %d is cut short: %w", len(entries), ErrAuthority)
			}
			parts[i] = s
		}
		e.Address, e.Number, e.Name, e.Data = parts[0], parts[1], parts[2], []byte(parts[3])
		entries = append(entries, e)
	}
	return entries, nil
}

// chooseCookie picks the cookie for a local display: an entry of this host before a wildcard.
func chooseCookie(entries []AuthorityEntry, host string, number int) ([]byte, bool) {
	n := strconv.Itoa(number)
	var wild []byte
	for _, e := range entries {
		if e.Name != cookieName || (e.Number != "" && e.Number != n) || len(e.Data) == 0 {
			continue
		}
		switch {
		case e.Family == familyLocal && e.Address == host:
			return e.Data, true
		case e.Family == familyWild && wild == nil:
			wild = e.Data
		}
	}
	return wild, wild != nil
}

func readCookie(path string, number int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open authority: %w: %w", ErrAuthority, err)
	}
	defer f.Close() // read only: nothing to lose
	entries, err := ParseAuthority(f)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("host name: %w: %w", ErrAuthority, err)
	}
	cookie, ok := chooseCookie(entries, host, number)
	if !ok {
		return nil, fmt.Errorf("no %s for display %d: %w", cookieName, number, ErrAuthority)
	}
	return cookie, nil
}

// ParseDisplay reads a local display string (":93", ":93.0", "unix:93") and returns its number. A display
// on another host is refused with ErrDisplay: a process id means something on this machine only.
func ParseDisplay(s string) (number int, err error) {
	host, rest, ok := strings.Cut(s, ":")
	if !ok || (host != "" && host != "unix") {
		return 0, fmt.Errorf("display %.64q: %w", s, ErrDisplay)
	}
	num, screen, hasScreen := strings.Cut(rest, ".")
	n, err := strconv.ParseUint(num, 10, 16)
	if err != nil || strings.HasPrefix(num, "+") {
		return 0, fmt.Errorf("display %.64q: %w", s, ErrDisplay)
	}
	if hasScreen && screen != "0" {
		return 0, fmt.Errorf("display %.64q: only screen 0 is watched: %w", s, ErrDisplay)
	}
	return int(n), nil
}
