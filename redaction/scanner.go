package redaction

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Errors of scans, for errors.Is.
var (
	ErrNoCanaries     = errors.New("no canaries to look for")
	ErrNothingScanned = errors.New("nothing was scanned")
	ErrControlMissed  = errors.New("the scan missed its own control")
)

// Finding is one place where a canary was found. It never holds the value.
type Finding struct {
	CanaryID string       `json:"canary"`
	Channel  Channel      `json:"channel"`
	Encoding EncodingName `json:"encoding"`
	Within   EncodingName `json:"within,omitempty"` // for Split: the form that was split
	File     string       `json:"file"`             // name given to the scan; members of archives as FILE!MEMBER
	Offset   int64        `json:"offset"`           // of the first byte in the file or member; -1 when it is in the name itself
}

// MaxFindings bounds what one scan reports; beyond it, it says that it stopped counting.
const MaxFindings = 10000

// Scanner looks for canaries. It is immutable and safe for concurrent use.
type Scanner struct {
	raw     index // for the bytes as they are
	sq      index // for the bytes without what squeeze leaves out
	control Canary
	targets []Canary // with the control
}

// index finds needles by a hash of their first 3 bytes.
type index struct {
	bits    [1 << 10]uint64
	byHash  map[uint16][]int
	needles []needle
	longest int
}

func (x *index) add(n needle) {
	if len(n.lit) < minForm || slices.ContainsFunc(x.needles, func(o needle) bool { return o.canary == n.canary && bytes.Equal(o.lit, n.lit) }) {
		return
	}
	h := hash3(n.lit[0], n.lit[1], n.lit[2])
	x.bits[h>>6] |= 1 << (h & 63)
	x.byHash[h] = append(x.byHash[h], len(x.needles))
	x.needles = append(x.needles, n)
	x.longest = max(x.longest, len(n.lit))
}

// needle is one form of one canary, in lower case: the scan ignores the case of letters, in every encoding.
type needle struct {
	canary int // in targets
	name   EncodingName
	lit    []byte
}

// NewScanner prepares a scan for canaries; none at all is [ErrNoCanaries]. Each value must be fit for a [Secret]. The control is made
// here, from crypto/rand.
func NewScanner(canaries []Canary) (*Scanner, error) {
	if len(canaries) == 0 {
		return nil, ErrNoCanaries
	}
	v, err := randomText(rand.Reader, canaryLen)
	if err != nil {
		return nil, fmt.Errorf("make scan control: %w", err)
	}
	s := &Scanner{raw: index{byHash: map[uint16][]int{}}, sq: index{byHash: map[uint16][]int{}}, control: Canary{ID: "control", Channel: "control", Value: "Ct" + v}}
	s.targets = append(slices.Clone(canaries), s.control)
	var errs []error
	for i, c := range s.targets {
		if detail, kind := unsafeSecret(c.Value); kind != nil {
			errs = append(errs, &SecretError{c.ID, kind, detail})
			continue
		}
		for _, f := range distinctForms(c.Value) {
			s.raw.add(needle{i, f.name, lowerASCII(f.lit)})
			p := pass{split: true}
			p.squeeze(f.lit, 0, true)
			s.sq.add(needle{i, f.name, p.win})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

func lowerASCII(b []byte) []byte {
	out := bytes.Clone(b)
	for i, c := range out {
		out[i] = fold[c]
	}
	return out
}

// fold lowers ASCII letters.
var fold = func() (t [256]byte) {
	for i := range t {
		t[i] = byte(i)
		if i >= 'A' && i <= 'Z' {
			t[i] += 'a' - 'A'
		}
	}
	return t
}()

// squeezed marks the bytes that the second pass leaves out.
var squeezed = [256]bool{' ': true, '\t': true, '\r': true, '\n': true, '\v': true, '\f': true, 0: true}

const scanBlock = 64 << 10

// Scan reads r to its end and returns where canaries are, in order of place, at most [MaxFindings]. The result does not depend on how r cuts its
// reads. An error (of r, or of ctx) means that the rest was not looked at; findings up to there are returned with it.
func (s *Scanner) Scan(ctx context.Context, r io.Reader, name string) ([]Finding, error) {
	f, _, err := s.scan(ctx, r, name)
	return slices.DeleteFunc(f, func(f Finding) bool { return f.CanaryID == s.control.ID }), err
}

// scan is Scan with the control's findings and the number of bytes read.
func (s *Scanner) scan(ctx context.Context, r io.Reader, name string) ([]Finding, int64, error) {
	raw := pass{x: &s.raw}
	sq := pass{x: &s.sq, split: true}
	buf := make([]byte, scanBlock)
	var total int64
	var err error
	for {
		if err = ctx.Err(); err != nil {
			break
		}
		var n int
		n, err = io.ReadFull(r, buf)
		raw.feed(buf[:n], total)
		sq.feed(buf[:n], total)
		total += int64(n)
		if err != nil {
			break
		}
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	raw.drain(true)
	sq.drain(true)
	// The squeezed pass finds whole values again; only what it alone found is split.
	type place struct {
		canary int
		at     int64
	}
	whole := map[place]bool{}
	var out []Finding
	for _, h := range raw.hits {
		whole[place{h.needle.canary, h.from}] = true
		whole[place{h.needle.canary, h.from + 1}] = true // UTF-16BE begins with a NUL
		c := s.targets[h.needle.canary]
		out = append(out, Finding{CanaryID: c.ID, Channel: c.Channel, Encoding: h.needle.name, File: name, Offset: h.from})
	}
	for _, h := range sq.hits {
		if whole[place{h.needle.canary, h.from}] {
			continue
		}
		c := s.targets[h.needle.canary]
		out = append(out, Finding{CanaryID: c.ID, Channel: c.Channel, Encoding: Split, Within: h.needle.name, File: name, Offset: h.from})
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return int(min(1, max(-1, a.Offset-b.Offset))) })
	if len(out) > MaxFindings {
		out = out[:MaxFindings]
	}
	if err != nil {
		err = fmt.Errorf("scan %s: %w", name, err)
	}
	return out, total, err
}

type hit struct {
	needle *needle
	from   int64
}

// pass is one look over a stream, over all bytes or over the squeezed ones.
type pass struct {
	x     *index
	split bool
	win   []byte  // lower case
	at    []int64 // split: where each byte of win was
	base  int64   // raw: place of win[0]
	held  []byte  // split: a begun escape or soft break at the end of the last block
	heldN int64   // place after the last byte fed
	hits  []hit
}

func (p *pass) feed(b []byte, at int64) {
	if !p.split {
		for _, c := range b {
			p.win = append(p.win, fold[c])
		}
		p.drain(false)
		return
	}
	if len(p.held) > 0 {
		at -= int64(len(p.held))
		b = append(slices.Clone(p.held), b...)
		p.held = p.held[:0]
	}
	p.squeeze(b, at, false)
	p.drain(false)
}

// squeeze appends what is left of b without white space, NUL, soft breaks and escaped line ends.
func (p *pass) squeeze(b []byte, at int64, eof bool) {
	for i := 0; i < len(b); i++ {
		c := b[i]
		if squeezed[c] {
			continue
		}
		if c == '\\' || c == '=' {
			if i+1 >= len(b) && !eof {
				p.held = append(p.held[:0], b[i:]...)
				p.heldN = at + int64(len(b))
				return
			}
			if i+1 < len(b) {
				n := b[i+1]
				if c == '\\' && (n == 'n' || n == 'r' || n == 't') {
					i++
					continue
				}
				if c == '=' && (n == '\r' || n == '\n') {
					continue
				}
			}
		}
		p.win = append(p.win, fold[c])
		p.at = append(p.at, at+int64(i))
	}
}

// drain looks at every place of the window at which a whole needle could stand, and keeps the rest.
func (p *pass) drain(eof bool) {
	if eof && len(p.held) > 0 {
		held := p.held
		p.held = nil
		p.squeeze(held, p.heldN-int64(len(held)), true)
	}
	s, w := p.x, p.win
	end := len(w) - s.longest
	if eof {
		end = len(w) - 2
	}
	i := 0
	for ; i < end; i++ {
		h := hash3(w[i], w[i+1], w[i+2])
		if s.bits[h>>6]&(1<<(h&63)) == 0 {
			continue
		}
		for _, k := range s.byHash[h] {
			n := &s.needles[k]
			if bytes.HasPrefix(w[i:], n.lit) && len(p.hits) <= MaxFindings {
				at := p.base + int64(i)
				if p.split {
					at = p.at[i]
				}
				p.hits = append(p.hits, hit{n, at})
			}
		}
	}
	i = max(i, 0)
	p.win = append(w[:0], w[i:]...)
	p.base += int64(i)
	if p.split {
		p.at = append(p.at[:0], p.at[i:]...)
	}
}

// checkControl runs a text that holds every form of the control and of each canary, whole, split and across block borders,
// through the same code as any file. It returns the forms that were missed, as ID/ENCODING.
func (s *Scanner) checkControl(ctx context.Context) (missed []string, err error) {
	var text bytes.Buffer
	filler := strings.Repeat("the quick brown fox. ", scanBlock/2/21)
	want := map[string]int{}
	add := func(id string, name EncodingName, b []byte) {
		want[id+"/"+string(name)]++
		text.Write(b)
		text.WriteString("\n--\n")
	}
	for _, c := range s.targets {
		text.WriteString(filler)
		forms := distinctForms(c.Value)
		for _, f := range forms {
			add(c.ID, f.name, f.lit)
		}
		// The value across the next block border, and once in two lines.
		if gap := (scanBlock - text.Len()%scanBlock) - len(c.Value)/2; gap > 0 {
			text.WriteString(strings.Repeat(".", gap))
		}
		add(c.ID, Plain, []byte(c.Value))
		add(c.ID, Split, []byte(c.Value[:5]+" \r\n\t"+c.Value[5:]))
	}
	found, _, err := s.scan(ctx, &text, "control")
	if err != nil {
		return nil, err
	}
	got := map[string]int{}
	for _, f := range found {
		got[f.CanaryID+"/"+string(f.Encoding)]++
	}
	for _, c := range s.targets {
		// The scan folds case: a form that differs from an earlier one in case only is found under the earlier name.
		folded := map[string]EncodingName{}
		need := map[EncodingName]int{Plain: 1, Split: 1}
		for _, f := range distinctForms(c.Value) {
			key := string(lowerASCII(f.lit))
			if _, ok := folded[key]; !ok {
				folded[key] = f.name
			}
			need[folded[key]]++
		}
		for _, n := range EncodingNames() {
			if got[c.ID+"/"+string(n)] < need[n] {
				missed = append(missed, c.ID+"/"+string(n))
			}
		}
	}
	return missed, nil
}

// Control runs the scanner's own control, planted in every form in memory, through the code that scans files, and returns the forms that
// it missed, as ID/ENCODING. A scanner that misses any proves nothing by finding nothing.
func (s *Scanner) Control(ctx context.Context) (missed []string, err error) {
	return s.checkControl(ctx)
}
