package redaction

import (
	"errors"
	"io"
	"slices"
)

// Bytes returns text with every rule applied. The result is a new slice; text is not changed.
func (r *Rules) Bytes(text []byte) []byte {
	m := machine{r: r}
	out, _ := m.step(make([]byte, 0, len(text)+len(text)/16+64), text, true)
	return out
}

// String is [Rules.Bytes] for strings.
func (r *Rules) String(text string) string { return string(r.Bytes([]byte(text))) }

// Writer returns a writer that applies the rules to all that is written to it as one text, however it is cut, and passes the result to w.
// It holds back only what is not yet decided: a few bytes on ordinary text, under 64 KiB always. Close writes the rest and does not
// close w. After an error every call returns that error. A Writer is for one goroutine at a time.
func (r *Rules) Writer(w io.Writer) io.WriteCloser { return &writer{m: machine{r: r}, w: w} }

type writer struct {
	m    machine
	w    io.Writer
	held []byte
	out  []byte
	err  error
}

var errClosed = errors.New("redaction: write after close")

// writeBlock bounds what is looked at, and so what may have to be held, at a time.
const writeBlock = 32 << 10

func (w *writer) Write(p []byte) (int, error) {
	for done := 0; done < len(p); {
		if w.err != nil {
			return done, w.err
		}
		in := p[done:min(done+writeBlock, len(p))]
		n := len(in)
		if len(w.held) > 0 {
			w.held = append(w.held, in...)
			in = w.held
		}
		var used int
		w.out, used = w.m.step(w.out[:0], in, false)
		w.held = append(w.held[:0], in[used:]...)
		if err := w.flush(); err != nil {
			return done, err
		}
		done += n
	}
	return len(p), w.err
}

func (w *writer) flush() error {
	if len(w.out) == 0 {
		return nil
	}
	n, err := w.w.Write(w.out)
	if err == nil && n < len(w.out) {
		err = io.ErrShortWrite
	}
	w.err = err
	return err
}

func (w *writer) Close() error {
	if w.err != nil {
		if w.err == errClosed {
			return nil
		}
		return w.err
	}
	w.out, _ = w.m.step(w.out[:0], w.held, true)
	w.held = nil
	if err := w.flush(); err != nil {
		return err
	}
	w.err = errClosed
	return nil
}

// machine is the state between two pieces of one text. Places are relative to the piece that comes next.
type machine struct {
	r     *Rules
	until int    // bytes before this place are dropped
	atom  int    // end of the escape sequence that began last
	mode  mode   // an unbounded span that is open
	spans []span // found, not yet begun
	last  byte   // last byte put out
}

// step puts out what is decided of b and returns how much of b that was; with eof, all of it.
func (m *machine) step(dst, b []byte, eof bool) (out []byte, used int) {
	var (
		p    int
		run  = 0 // start of the bytes to be copied; meaningless while dropping
		drop = m.until > 0 || m.mode.kind != bounded
		a0   = 0 // start of the escape sequence that ends at m.atom
		bits = &m.r.bits
	)
	copyTo := func(end int) {
		if end > run {
			dst = append(dst, b[run:end]...)
			m.last = dst[len(dst)-1]
		}
	}
	begin := func(s span) { // at place p
		if !drop {
			end := p
			if p < m.atom {
				end = a0 // half an escape sequence must not stay
			}
			copyTo(end)
			dst = append(dst, s.repl...)
			m.last = s.repl[len(s.repl)-1]
			drop = true
		}
		m.until = max(m.until, s.end)
		if s.mode.kind != bounded {
			m.mode = s.mode
		}
	}
scan:
	for p < len(b) {
		if drop && m.mode.kind == bounded && p >= m.until {
			if p < m.atom {
				m.until = m.atom
				if m.until > len(b) && !eof {
					break
				}
			} else {
				drop, run = false, p
			}
		}
		if !drop && len(m.spans) == 0 && p >= m.atom {
			// Nothing is open: run to the next place where a pattern or an escape sequence may begin.
			q := p
			for end := len(b) - 2; q < end; q++ {
				h := hash3(b[q], b[q+1], b[q+2])
				if b[q] == '\\' || bits[h>>6]&(1<<(h&63)) != 0 {
					break
				}
			}
			p = q
		}
		if i := slices.IndexFunc(m.spans, func(s span) bool { return s.start == p }); i >= 0 {
			s := m.spans[i]
			m.spans = slices.Delete(m.spans, i, i+1)
			begin(s)
		}
		if m.mode.kind != bounded {
			n, end, next, more := m.mode.step(b, p, eof)
			if more {
				break
			}
			switch {
			case end:
				m.mode = mode{}
				m.atom = min(m.atom, p)
				if next != nil {
					m.spans = append(m.spans, *next)
				}
				if p >= m.until {
					drop, run = false, p
				}
			case m.mode.kind != untilClassEnds:
				p += n
				continue
			}
		}
		if p+2 >= len(b) && !eof {
			break
		}
		if b[p] == '\\' && p >= m.atom {
			n, more := escape(b[p:], eof)
			if more {
				break
			}
			a0, m.atom = p, p+n
		}
		if p+2 >= len(b) {
			p++
			continue
		}
		h := hash3(b[p], b[p+1], b[p+2])
		if bits[h>>6]&(1<<(h&63)) == 0 {
			p++
			continue
		}
		prev := m.last
		if drop {
			prev = 'x'
		} else if p > run {
			prev = b[p-1]
		}
		var secret *span
		known := len(m.spans)
		for _, i := range m.r.byHash[h] {
			pat := &m.r.pats[i]
			ok, more := pat.hasLit(b[p:], eof)
			if more {
				m.spans = m.spans[:known]
				break scan
			}
			if !ok {
				continue
			}
			if pat.tail == nil {
				if secret == nil {
					secret = &span{start: p, end: p + len(pat.lit), repl: pat.repl}
				}
				continue
			}
			c := &cursor{b: b, i: p + len(pat.lit), eof: eof}
			s, ok := pat.tail(c, prev)
			if c.more {
				m.spans = m.spans[:known]
				break scan
			}
			if ok && !slices.ContainsFunc(m.spans, func(o span) bool { return o.start == s.start && o.end == s.end && o.mode.kind == s.mode.kind }) {
				m.spans = append(m.spans, s) // a second look after a held back escape sequence finds it again
			}
		}
		if secret != nil {
			begin(*secret)
		}
		p++
	}
	used = min(p, len(b))
	if !drop {
		if used < m.atom && a0 < used && !eof {
			used = a0 // keep the escape sequence whole until it is passed
			m.atom = a0
			m.spans = slices.DeleteFunc(m.spans, func(s span) bool { return s.start < used })
		}
		copyTo(used)
	}
	m.until -= used
	m.atom -= used
	for i := range m.spans {
		m.spans[i].start -= used
		if m.spans[i].mode.kind == bounded {
			m.spans[i].end -= used
		}
	}
	return dst, used
}

// escape returns the length of the escape sequence at the start of b: six for \uXXXX, else two.
func escape(b []byte, eof bool) (n int, more bool) {
	if len(b) >= 2 && b[1] != 'u' {
		return 2, false
	}
	for i := 2; i < 6; i++ {
		if i >= len(b) {
			if !eof {
				return 0, true
			}
			return min(2, len(b)), false
		}
		if !isHex(b[i]) {
			return 2, false
		}
	}
	return 6, false
}
