package redaction

// cursor reads ahead of a trigger. When it runs out of bytes before the end of the input, more is set and the decision waits.
type cursor struct {
	b    []byte
	i    int
	eof  bool
	more bool
}

// peek returns the byte at the cursor, or 0 and false at the end of what is there.
func (c *cursor) peek() (byte, bool) {
	if c.i >= len(c.b) {
		c.more = c.more || !c.eof
		return 0, false
	}
	return c.b[c.i], true
}

func (c *cursor) take(x byte) bool {
	if v, ok := c.peek(); !ok || v != x {
		return false
	}
	c.i++
	return true
}

func (c *cursor) text(s string) bool {
	for i := range len(s) {
		if !c.take(s[i]) {
			return false
		}
	}
	return true
}

// run skips up to limit bytes of a class and returns how many there were.
func (c *cursor) run(in func(byte) bool, limit int) int {
	n := 0
	for n < limit {
		v, ok := c.peek()
		if !ok || !in(v) {
			break
		}
		c.i++
		n++
	}
	return n
}

// quote skips a run of at most maxBackslashes backslashes and a double quote, and returns the run's length.
func (c *cursor) quote() (backslashes int, ok bool) {
	at := c.i
	k := c.run(isBackslash, maxBackslashes)
	if c.take('"') {
		return k, true
	}
	c.i = at
	return 0, false
}

const (
	maxBackslashes = 63   // deeper nested JSON than 6 levels is not looked through
	maxBlank       = 16   // white space looked through between a key and its value
	maxAuthority   = 4096 // a URL authority longer than this is dropped whole
)

func isBackslash(c byte) bool { return c == '\\' }
func isBlank(c byte) bool     { return c == ' ' || c == '\t' }
func isSpace(c byte) bool     { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
func isDigit(c byte) bool     { return c >= '0' && c <= '9' }
func isHex(c byte) bool       { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }
func isAlnum(c byte) bool     { return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isID(c byte) bool        { return isAlnum(c) || c == '-' || c == '_' }
func isLower(c byte) bool     { return c >= 'a' && c <= 'z' || c == '_' }

func isOpaque(c byte) bool {
	return isID(c) || c == '.' || c == '~' || c == '+' || c == '/' || c == '='
}

func isAuthority(c byte) bool {
	switch c {
	case '/', '?', '#', '"', '\'', '<', '>', '\\', '`', '[': // a bracket begins a host, or a replacement
		return false
	}
	return c > ' ' && c != 0x7f
}

func classOf(c TokenClass) func(byte) bool {
	switch c {
	case HexToken:
		return isHex
	case AlnumToken:
		return isAlnum
	case OpaqueText:
		return isOpaque
	}
	return nil
}

func tokenTail(repl []byte, in func(byte) bool, least, most int) func(*cursor, byte) (span, bool) {
	return func(c *cursor, _ byte) (span, bool) {
		at := c.i
		if c.run(in, most) < least {
			return span{}, false
		}
		return span{start: at, end: c.i, repl: repl}, true
	}
}

// structural returns the built-in patterns.
func structural() []pattern {
	var out []pattern
	fold := func(lit string, tail func(*cursor, byte) (span, bool)) {
		out = append(out, pattern{lit: []byte(lit), fold: true, tail: tail})
	}
	for _, host := range []string{"127.0.0.1", "[::1]", "localhost", "0.0.0.0"} {
		fold(host, loopbackPort)
	}
	fold("port", portField)
	fold("://", userinfo)
	fold("/devtools/", devtools)
	fold("/session/", session)
	for _, h := range []string{"cookie", "authorization"} {
		fold(h, header(replacement(h)))
	}
	fold("mit-magic-cookie-1", xcookie)
	return out
}

// loopbackPort finds :PORT or %3APORT behind a loopback host.
func loopbackPort(c *cursor, _ byte) (span, bool) {
	if !c.take(':') {
		if !c.text("%3") || !c.take('A') && !c.take('a') {
			return span{}, false
		}
	}
	return digits(c, replacement("port"))
}

func digits(c *cursor, repl []byte) (span, bool) {
	if v, ok := c.peek(); !ok || !isDigit(v) {
		return span{}, false
	}
	return span{start: c.i, repl: repl, mode: mode{kind: untilClassEnds, in: isDigit}}, true
}

// portField finds port=N, port: N and "port": N, where port is a word or the last word of a camelCase or dashed name.
func portField(c *cursor, prev byte) (span, bool) {
	if first := c.b[c.i-4]; first == 'p' && isAlnum(prev) {
		return span{}, false
	}
	_, key := c.quote()
	c.run(isBlank, maxBlank)
	if !c.take(':') && !c.take('=') {
		return span{}, false
	}
	c.run(isBlank, maxBlank)
	if _, quoted := c.quote(); !quoted && key {
		return digits(c, []byte("0"))
	}
	return digits(c, replacement("port"))
}

// userinfo finds what stands between :// and the last @ of a URL's authority.
func userinfo(c *cursor, _ byte) (span, bool) {
	at := c.i
	n := c.run(isAuthority, maxAuthority)
	if n == maxAuthority {
		return span{start: at, repl: replacement("userinfo"), mode: mode{kind: untilClassEnds, in: isAuthority}}, true
	}
	for i := at + n - 1; i > at; i-- {
		if c.b[i] == '@' {
			return span{start: at, end: i, repl: replacement("userinfo")}, true
		}
	}
	return span{}, false
}

// devtools finds the token in /devtools/KIND/TOKEN.
func devtools(c *cursor, _ byte) (span, bool) {
	if c.run(isLower, 32) == 0 || !c.take('/') {
		return span{}, false
	}
	at := c.i
	if v, ok := c.peek(); !ok || !isID(v) {
		return span{}, false
	}
	return span{start: at, repl: replacement("endpoint"), mode: mode{kind: untilClassEnds, in: isID}}, true
}

// session finds the UUID in /session/UUID.
func session(c *cursor, _ byte) (span, bool) {
	at := c.i
	for i, n := range []int{8, 4, 4, 4, 12} {
		if i > 0 && !c.take('-') || c.run(isHex, n) != n {
			return span{}, false
		}
	}
	return span{start: at, end: c.i, repl: replacement("endpoint")}, true
}

// xcookie finds an X authority cookie in the text of xauth or in the bytes of an authority file.
func xcookie(c *cursor, _ byte) (span, bool) {
	repl := replacement("xcookie")
	if at := c.i; c.text("\x00\x10") {
		if c.run(func(byte) bool { return true }, 16) < 16 {
			return span{}, false
		}
		return span{start: at, end: c.i, repl: repl}, true
	}
	if c.more || c.run(isBlank, maxBlank) == 0 {
		return span{}, false
	}
	at := c.i
	if c.run(isHex, 32) != 32 {
		return span{}, false
	}
	return span{start: at, end: c.i, repl: repl}, true
}

// header finds the value of a header: raw (NAME: value), as a JSON field ("NAME":"value", "NAME":["value"]), or as a pair
// ("NAME","value":"value"), each at any depth of quoting.
func header(repl []byte) func(*cursor, byte) (span, bool) {
	return func(c *cursor, _ byte) (span, bool) {
		k, quoted := c.quote()
		c.run(isBlank, maxBlank)
		if !quoted {
			if c.more || !c.take(':') {
				return span{}, false
			}
			c.run(isBlank, maxBlank)
			m := mode{kind: untilLineEnds}
			if _, ok := c.peek(); !ok {
				return span{}, false
			}
			_, end, _, more := m.step(c.b, c.i, c.eof)
			c.more = c.more || more
			if end || more { // an empty value stays
				return span{}, false
			}
			return span{start: c.i, repl: repl, mode: m}, true
		}
		m := mode{kind: untilQuote, k: k}
		if c.take(',') {
			c.run(isSpace, maxBlank)
			if _, ok := c.quote(); !ok || !c.text("value") {
				return span{}, false
			}
			if _, ok := c.quote(); !ok {
				return span{}, false
			}
			c.run(isSpace, maxBlank)
		}
		if !c.take(':') {
			return span{}, false
		}
		c.run(isSpace, maxBlank)
		if c.take('[') {
			m.array = true
			c.run(isSpace, maxBlank)
		}
		if m.k, quoted = c.quote(); !quoted {
			return span{}, false
		}
		m.repl = repl
		return span{start: c.i, repl: repl, mode: m}, true
	}
}

// mode is how an unbounded span ends.
type mode struct {
	kind  modeKind
	in    func(byte) bool // untilClassEnds
	k     int             // untilQuote: backslashes before the opening quote
	array bool            // untilQuote: further strings of the list follow
	repl  []byte          // of those
}

type modeKind int

const (
	bounded modeKind = iota
	untilClassEnds
	untilLineEnds
	untilQuote
)

// step looks at b[p] inside the span. It returns how many bytes to drop, or end with a possible next span; more says that
// b ends before that is decided.
func (m mode) step(b []byte, p int, eof bool) (drop int, end bool, next *span, more bool) {
	v := b[p]
	if m.kind == untilClassEnds {
		return 1, !m.in(v), nil, false
	}
	if v == '\r' || v == '\n' {
		return 0, true, nil, false
	}
	if v != '\\' && v != '"' {
		return 1, false, nil, false
	}
	c := &cursor{b: b, i: p, eof: eof}
	r := c.run(isBackslash, maxBackslashes)
	after, ok := c.peek()
	if c.more {
		return 0, false, nil, true
	}
	if !ok || after != '"' {
		if ok && m.kind == untilLineEnds && (after == 'r' || after == 'n') {
			return 0, true, nil, false
		}
		return max(r, 1), false, nil, false
	}
	c.i++
	if m.kind == untilQuote {
		if r >= m.k && (r-m.k)%(2*(m.k+1)) != 0 {
			return r + 1, false, nil, false
		}
		if !m.array {
			return 0, true, nil, false
		}
		c.run(isSpace, maxBlank)
		if c.take(',') {
			c.run(isSpace, maxBlank)
			if k, ok := c.quote(); ok && k == m.k {
				next = &span{start: c.i, repl: m.repl, mode: m}
			}
		}
		if c.more {
			return 0, false, nil, true
		}
		return 0, true, next, false
	}
	// A raw header inside some JSON string: its end is a quote with JSON punctuation behind it. A quote of even escaping may
	// also stand before white space or the end.
	next1, ok := c.peek()
	if c.more {
		return 0, false, nil, true
	}
	switch {
	case ok && (next1 == ',' || next1 == '}' || next1 == ']' || next1 == ':'):
		return 0, true, nil, false
	case r%2 == 0 && (!ok || isSpace(next1)):
		return 0, true, nil, false
	}
	return r + 1, false, nil, false
}
