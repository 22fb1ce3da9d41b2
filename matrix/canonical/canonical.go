// Package canonical writes JSON in the one form that digests are taken over: RFC 8785, the JSON Canonicalization Scheme. Members are
// sorted by UTF-16 code units, there is no white space, numbers are written as ECMAScript writes them, strings with the fewest escapes.
//
//	b, err := canonical.Marshal(plan)      // a Go value
//	b, err := canonical.Transform(raw)     // JSON text that somebody else wrote
//
// The reader behind both is stricter than encoding/json: duplicate members, lone surrogates, invalid UTF-8, trailing bytes, nesting
// deeper than [MaxDepth] and integers that a double cannot hold are errors, because two readers could disagree about them.
package canonical

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is the deepest nesting of arrays and objects that is read.
const MaxDepth = 64

// ErrNotCanonical is returned by [Check] for JSON text that is valid and not in canonical form.
var ErrNotCanonical = errors.New("JSON is not in canonical form (RFC 8785)")

// SyntaxError is JSON text that cannot be canonicalised. Offset counts bytes from 0.
type SyntaxError struct {
	Offset int
	What   string
}

// Error reads offset and cause.
func (e *SyntaxError) Error() string { return fmt.Sprintf("JSON at byte %d: %s", e.Offset, e.What) }

// Marshal returns the canonical JSON of v. Like encoding/json it writes U+FFFD for bytes that are not UTF-8; integers outside the exact range of a
// double are an error.
func Marshal(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return Transform(raw)
}

// Digest returns the sha256 of the canonical JSON of v, in lower-case hex.
func Digest(v any) (string, error) {
	b, err := Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// Transform returns the canonical form of one JSON text.
func Transform(raw []byte) ([]byte, error) {
	p := &parser{in: raw, out: make([]byte, 0, len(raw))}
	p.space()
	if err := p.value(0); err != nil {
		return nil, err
	}
	p.space()
	if p.at != len(raw) {
		return nil, p.fail("bytes after the value")
	}
	return p.out, nil
}

// Check returns nil when raw is canonical JSON, [ErrNotCanonical] when it is JSON in another form, else a [*SyntaxError].
func Check(raw []byte) error {
	got, err := Transform(raw)
	if err != nil {
		return err
	}
	if string(got) != string(raw) {
		return ErrNotCanonical
	}
	return nil
}

type parser struct {
	in  []byte
	at  int
	out []byte
}

func (p *parser) fail(format string, args ...any) error {
	return &SyntaxError{Offset: p.at, What: fmt.Sprintf(format, args...)}
}

func (p *parser) space() {
	for p.at < len(p.in) {
		switch p.in[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) peek() byte {
	if p.at < len(p.in) {
		return p.in[p.at]
	}
	return 0
}

func (p *parser) value(depth int) error {
	if depth > MaxDepth {
		return p.fail("nested deeper than %d", MaxDepth)
	}
	switch c := p.peek(); {
	case p.at >= len(p.in):
		return p.fail("ends where a value should be")
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		s, err := p.str()
		if err != nil {
			return err
		}
		p.out = appendString(p.out, s)
		return nil
	case c == 't':
		return p.word("true")
	case c == 'f':
		return p.word("false")
	case c == 'n':
		return p.word("null")
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	default:
		return p.fail("unexpected byte %q", c)
	}
}

func (p *parser) word(w string) error {
	if !strings.HasPrefix(string(p.in[p.at:min(len(p.in), p.at+len(w))]), w) {
		return p.fail("want %s", w)
	}
	p.at += len(w)
	p.out = append(p.out, w...)
	return nil
}

func (p *parser) array(depth int) error {
	p.at++
	p.out = append(p.out, '[')
	p.space()
	if p.peek() == ']' {
		p.at++
		p.out = append(p.out, ']')
		return nil
	}
	for {
		p.space()
		if err := p.value(depth + 1); err != nil {
			return err
		}
		p.space()
		switch p.peek() {
		case ',':
			p.at++
			p.out = append(p.out, ',')
		case ']':
			p.at++
			p.out = append(p.out, ']')
			return nil
		default:
			return p.fail("want , or ] in an array")
		}
	}
}

type member struct {
	key        string
	start, end int
}

// object writes members in the order met to the end of out, then sorts them there when they were not sorted.
func (p *parser) object(depth int) error {
	p.at++
	begin := len(p.out)
	p.out = append(p.out, '{')
	p.space()
	if p.peek() == '}' {
		p.at++
		p.out = append(p.out, '}')
		return nil
	}
	var members []member
	for sorted := true; ; {
		p.space()
		if p.peek() != '"' {
			return p.fail("want a member name")
		}
		key, err := p.str()
		if err != nil {
			return err
		}
		if n := len(members); n > 0 && !lessUTF16(members[n-1].key, key) {
			sorted = false
		}
		start := len(p.out)
		p.out = appendString(p.out, key)
		p.space()
		if p.peek() != ':' {
			return p.fail("want : after member %q", key)
		}
		p.at++
		p.out = append(p.out, ':')
		p.space()
		if err := p.value(depth + 1); err != nil {
			return err
		}
		members = append(members, member{key, start, len(p.out)})
		p.space()
		switch p.peek() {
		case ',':
			p.at++
			p.out = append(p.out, ',')
		case '}':
			p.at++
			if !sorted {
				if err := p.arrange(begin, members); err != nil {
					return err
				}
			}
			p.out = append(p.out, '}')
			return nil
		default:
			return p.fail("want , or } in an object")
		}
	}
}

func (p *parser) arrange(begin int, members []member) error {
	sort.SliceStable(members, func(i, j int) bool { return lessUTF16(members[i].key, members[j].key) })
	sorted := make([]byte, 0, len(p.out)-begin)
	sorted = append(sorted, '{')
	for i, m := range members {
		if i > 0 {
			if members[i-1].key == m.key {
				return p.fail("member %q occurs twice", m.key)
			}
			sorted = append(sorted, ',')
		}
		sorted = append(sorted, p.out[m.start:m.end]...)
	}
	p.out = append(p.out[:begin], sorted...)
	return nil
}

// lessUTF16 orders by UTF-16 code units. Byte order differs only where one string has a code point beyond U+FFFF.
func lessUTF16(a, b string) bool {
	for a != "" && b != "" {
		ra, na := utf8.DecodeRuneInString(a)
		rb, nb := utf8.DecodeRuneInString(b)
		if ra == rb {
			a, b = a[na:], b[nb:]
			continue
		}
		if (ra > 0xffff) == (rb > 0xffff) {
			return ra < rb
		}
		if ra > 0xffff {
			hi, _ := utf16.EncodeRune(ra)
			return hi < rb
		}
		hi, _ := utf16.EncodeRune(rb)
		return ra < hi
	}
	return a == "" && b != ""
}

func (p *parser) str() (string, error) {
	p.at++
	start := p.at
	for p.at < len(p.in) { // the usual case: nothing escaped
		c := p.in[p.at]
		if c == '"' {
			s := p.in[start:p.at]
			if !utf8.Valid(s) {
				return "", p.fail("a string is not valid UTF-8")
			}
			p.at++
			return string(s), nil
		}
		if c == '\\' || c < 0x20 {
			break
		}
		p.at++
	}
	b := append([]byte(nil), p.in[start:p.at]...)
	for p.at < len(p.in) {
		c := p.in[p.at]
		switch {
		case c == '"':
			if !utf8.Valid(b) {
				return "", p.fail("a string is not valid UTF-8")
			}
			p.at++
			return string(b), nil
		case c < 0x20:
			return "", p.fail("control byte 0x%02x in a string", c)
		case c == '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			b = utf8.AppendRune(b, r)
		default:
			b = append(b, c)
			p.at++
		}
	}
	return "", p.fail("ends inside a string")
}

var plainEscapes = map[byte]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (p *parser) escape() (rune, error) {
	p.at++
	c := p.peek()
	if r, ok := plainEscapes[c]; ok && p.at < len(p.in) {
		p.at++
		return r, nil
	}
	if c != 'u' {
		return 0, p.fail("unknown escape")
	}
	r, err := p.hex4()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if p.at+1 < len(p.in) && p.in[p.at] == '\\' && p.in[p.at+1] == 'u' {
		p.at++
		low, err := p.hex4()
		if err != nil {
			return 0, err
		}
		if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
			return both, nil
		}
	}
	return 0, p.fail("lone surrogate U+%04X", r)
}

// hex4 reads uXXXX, standing on the u.
func (p *parser) hex4() (rune, error) {
	if p.at+5 > len(p.in) {
		return 0, p.fail("ends inside an escape")
	}
	n, err := strconv.ParseUint(string(p.in[p.at+1:p.at+5]), 16, 16)
	if err != nil {
		return 0, p.fail("bad \\u escape")
	}
	p.at += 5
	return rune(n), nil
}

func (p *parser) number() error {
	start := p.at
	if p.peek() == '-' {
		p.at++
	}
	first := p.at
	digits := p.digits()
	if digits == 0 || digits > 1 && p.in[first] == '0' {
		return p.fail("bad number")
	}
	integer := true
	if p.peek() == '.' {
		integer = false
		p.at++
		if p.digits() == 0 {
			return p.fail("bad number")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		integer = false
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		if p.digits() == 0 {
			return p.fail("bad number")
		}
	}
	f, err := strconv.ParseFloat(string(p.in[start:p.at]), 64)
	if err != nil {
		return p.fail("number out of range")
	}
	// What would be written as an integer is refused however it is spelt, or the canonical form could not be read back.
	if abs := math.Abs(f); abs >= 1<<53 && (integer || abs < 1e21) {
		return p.fail("integer of 2^53 or more, which a double does not hold exactly")
	}
	p.out = appendNumber(p.out, f)
	return nil
}

func (p *parser) digits() int {
	start := p.at
	for p.at < len(p.in) && p.in[p.at] >= '0' && p.in[p.at] <= '9' {
		p.at++
	}
	return p.at - start
}

// appendNumber writes f as ECMAScript's Number::toString does (RFC 8785, section 3.2.2.3).
func appendNumber(b []byte, f float64) []byte {
	if f == 0 {
		return append(b, '0')
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(b, f, 'f', -1, 64)
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'e', -1, 64)
	// Go writes at least two digits of exponent, ECMAScript does not.
	if n := len(b); n-start >= 4 && b[n-2] == '0' && (b[n-3] == '+' || b[n-3] == '-') {
		b[n-2] = b[n-1]
		b = b[:n-1]
	}
	return b
}

func appendString(b []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= 0x20:
			b = append(b, c)
		case c == '\b':
			b = append(b, '\\', 'b')
		case c == '\f':
			b = append(b, '\\', 'f')
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c == '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(b, '"')
}
