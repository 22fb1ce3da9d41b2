package redaction

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// MinSecretBytes is the shortest secret that can be redacted safely: shorter ones occur by chance in ids and digests.
const MinSecretBytes = 8

// maxSecretBytes bounds a secret, and with it what a [Rules.Writer] may hold back (the longest form is 8 bytes for one).
const maxSecretBytes = 4096

// Secret is a value that must not leave. ID stands in its place in the output; it is public.
type Secret struct {
	ID    string
	Value string
}

// Kinds of [SecretError], for errors.Is.
var (
	ErrSecretTooShort  = errors.New("secret too short to be redacted safely")
	ErrSecretUnsafe    = errors.New("secret cannot be redacted safely")
	ErrSecretCollides  = errors.New("secret collides with text that must stay")
	ErrRuleNotCompiled = errors.New("rule does not compile")
)

// SecretError says which secret or rule was refused, and why. It never holds the value.
type SecretError struct {
	ID     string // of the secret or token rule
	Kind   error  // one of the kinds above
	Detail string
}

// Error implements error. It never holds the secret.
func (e *SecretError) Error() string {
	return fmt.Sprintf("redaction rule %q: %v: %s", e.ID, e.Kind, e.Detail)
}

// Unwrap returns the kind.
func (e *SecretError) Unwrap() error { return e.Kind }

// TokenClass is a set of bytes that a [TokenRule] redacts.
type TokenClass string

// The classes: hex digits; letters and digits; letters, digits and any of -_.~+/=.
const (
	HexToken   TokenClass = "hex"
	AlnumToken TokenClass = "alnum"
	OpaqueText TokenClass = "opaque"
)

// TokenRule redacts what follows a fixed prefix, for tokens that are not known beforehand. The prefix stays.
type TokenRule struct {
	ID     string
	Prefix string // at least 3 bytes, exact case
	Class  TokenClass
	Min    int // fewer bytes are left alone; at least 1
	Max    int // at most this many are redacted; at most 4096
}

// Options of [NewRules]; the zero value is the built-in set alone.
type Options struct {
	// Keep lists texts that must pass unchanged (ids, refs, keys, digests). A secret that occurs in one is refused.
	Keep []string
	// Tokens are rules beside the built-in ones.
	Tokens []TokenRule
}

var idSyntax = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// built-in replacement ids; secrets may not take them.
var builtinIDs = []string{"port", "endpoint", "userinfo", "cookie", "authorization", "xcookie"}

// Rules is a compiled rule set. It is immutable and safe for concurrent use.
//
// Beside the secrets in all forms of [Encodings] it knows, by structure: ports of loopback addresses and of fields named port; tokens in debugging
// endpoints (/devtools/KIND/TOKEN, /session/UUID); user information in URLs; values of Cookie, Set-Cookie, Authorization and
// Proxy-Authorization headers, raw and in JSON; X authority cookies. The replacement is [redacted:ID]; a port that is a JSON number becomes 0, and a
// secret's form of digits only becomes as many nines, so that numbers stay numbers. A replacement that would cut an escape sequence in two takes the whole
// sequence.
type Rules struct {
	bits   [1 << 10]uint64 // which hashes of 3 bytes begin a pattern
	byHash map[uint16][]int
	pats   []pattern
}

type pattern struct {
	lit  []byte // lower case when fold
	fold bool
	repl []byte
	tail func(c *cursor, prev byte) (span, bool) // nil: the literal itself is the secret
}

// span is what a pattern wants dropped: from start to end, or from start until mode ends.
type span struct {
	start, end int
	repl       []byte
	mode       mode
}

func hash3(a, b, c byte) uint16 {
	return uint16((uint32(a) | uint32(b)<<8 | uint32(c)<<16) * 0x9E3779B1 >> 16)
}

// NewRules compiles a rule set. It refuses, with a [SecretError] for each, secrets under [MinSecretBytes] bytes or too simple, such as cannot be told from
// structure (quotes, backslashes, control characters, invalid UTF-8), ids that are taken or malformed, and token rules
// that do not compile.
func NewRules(secrets []Secret, opts Options) (*Rules, error) {
	r := &Rules{byHash: map[uint16][]int{}}
	var errs []error
	refuse := func(id string, kind error, format string, args ...any) {
		errs = append(errs, &SecretError{id, kind, fmt.Sprintf(format, args...)})
	}
	ids := map[string]bool{}
	for _, id := range builtinIDs {
		ids[id] = true
	}
	repls := make([][]byte, 0, len(ids)+len(secrets))
	for _, id := range builtinIDs {
		repls = append(repls, replacement(id))
	}
	claim := func(id string) bool {
		if !idSyntax.MatchString(id) || ids[id] {
			refuse(id, ErrRuleNotCompiled, "id is malformed or taken")
			return false
		}
		ids[id] = true
		repls = append(repls, replacement(id))
		return true
	}
	for _, s := range secrets {
		claim(s.ID)
	}
	for _, t := range opts.Tokens {
		claim(t.ID)
	}
	for _, s := range secrets {
		if detail, kind := unsafeSecret(s.Value); kind != nil {
			refuse(s.ID, kind, "%s", detail)
			continue
		}
		for _, f := range distinctForms(s.Value) {
			if i := slices.IndexFunc(repls, func(t []byte) bool { return overlaps(f.lit, t) }); i >= 0 {
				refuse(s.ID, ErrSecretCollides, "its form %s overlaps the replacement %s", f.name, repls[i])
				break
			}
			if i := slices.IndexFunc(opts.Keep, func(k string) bool { return strings.Contains(k, string(f.lit)) }); i >= 0 {
				refuse(s.ID, ErrSecretCollides, "its form %s occurs in kept text %d", f.name, i)
				break
			}
			repl := replacement(s.ID)
			if allDigits(f.lit) {
				repl = bytes.Repeat([]byte("9"), len(f.lit))
			}
			r.pats = append(r.pats, pattern{lit: f.lit, repl: repl})
		}
	}
	for _, t := range opts.Tokens {
		in := classOf(t.Class)
		if len(t.Prefix) < 3 || len(t.Prefix) > maxSecretBytes || in == nil || t.Min < 1 || t.Max < t.Min || t.Max > maxSecretBytes {
			refuse(t.ID, ErrRuleNotCompiled, "want a prefix of 3 to %d bytes, a known class and 1 <= min <= max <= %d", maxSecretBytes, maxSecretBytes)
			continue
		}
		r.pats = append(r.pats, pattern{lit: []byte(t.Prefix), tail: tokenTail(replacement(t.ID), in, t.Min, t.Max)})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	r.pats = append(r.pats, structural()...)
	// The longest secret first, so that the first hit at a place is the one to take.
	slices.SortStableFunc(r.pats, func(a, b pattern) int { return len(b.lit) - len(a.lit) })
	for i, p := range r.pats {
		for _, h := range prefixHashes(p) {
			r.bits[h>>6] |= 1 << (h & 63)
			r.byHash[h] = append(r.byHash[h], i)
		}
	}
	return r, nil
}

func replacement(id string) []byte { return []byte("[redacted:" + id + "]") }

// unsafeSecret says why a secret cannot be redacted safely: the kind is nil when it can.
func unsafeSecret(v string) (detail string, kind error) {
	distinct := map[byte]bool{}
	for i := range len(v) {
		distinct[v[i]] = true
	}
	switch {
	case len(v) < MinSecretBytes:
		return fmt.Sprintf("got %d bytes, want at least %d", len(v), MinSecretBytes), ErrSecretTooShort
	case len(v) > maxSecretBytes:
		return fmt.Sprintf("got %d bytes, want at most %d", len(v), maxSecretBytes), ErrSecretUnsafe
	case len(distinct) < 4:
		return fmt.Sprintf("got %d different bytes, want at least 4", len(distinct)), ErrSecretTooShort
	case !utf8.ValidString(v):
		return "it is not UTF-8", ErrSecretUnsafe
	case strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f || r == '"' || r == '\\' }):
		return "it holds a quote, a backslash or a control character", ErrSecretUnsafe
	case allDigits([]byte(v)) && (v[0] == '9' || v[len(v)-1] == '9'):
		return "it is a number that begins or ends in 9", ErrSecretUnsafe
	}
	return "", nil
}

func allDigits(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c < '0' || c > '9' })
}

// overlaps says whether s and t could share bytes in some text: one in the other, or an end of one that begins the other.
func overlaps(s, t []byte) bool {
	if bytes.Contains(s, t) || bytes.Contains(t, s) {
		return true
	}
	for n := 1; n < min(len(s), len(t)); n++ {
		if bytes.HasPrefix(s, t[len(t)-n:]) || bytes.HasPrefix(t, s[len(s)-n:]) {
			return true
		}
	}
	return false
}

func prefixHashes(p pattern) []uint16 {
	n := 1
	if p.fold {
		n = 8
	}
	var out []uint16
	for v := range n {
		var k [3]byte
		copy(k[:], p.lit)
		for i := range k {
			if v>>i&1 == 1 && k[i] >= 'a' && k[i] <= 'z' {
				k[i] -= 'a' - 'A'
			}
		}
		if h := hash3(k[0], k[1], k[2]); !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	return out
}

// hasLit compares the literal at b. more says that b ends before that is decided.
func (p *pattern) hasLit(b []byte, eof bool) (ok, more bool) {
	n := min(len(b), len(p.lit))
	if !p.fold {
		if !bytes.Equal(b[:n], p.lit[:n]) {
			return false, false
		}
	} else {
		for i := range n {
			c := b[i]
			if c >= 'A' && c <= 'Z' {
				c += 'a' - 'A'
			}
			if c != p.lit[i] {
				return false, false
			}
		}
	}
	if n < len(p.lit) {
		return false, !eof
	}
	return true, false
}
