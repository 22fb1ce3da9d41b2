// Package chain writes and reads hash-chained JSON lines: a file that grows, and in which no line can be changed, moved, added or taken
// away without every later line saying so. The run log of a bundle and the ledger of runs are such files.
//
// Each line is {"seq":N,"prev":"HEX","entry":{...}} and a newline. Seq counts from 1 without gaps. Prev is the sha256 of the line before,
// without its newline; the first line carries the seed that the file was begun with. What a chain cannot show is that lines were cut off
// its end: for that the head must be known from elsewhere (a manifest, a next file, a reader's own memory).
package chain

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// MaxLine is the longest line that is written or read, in bytes, without its newline.
const MaxLine = 64 << 10

// Line is one line of a chain.
type Line struct {
	Seq   int             `json:"seq"`
	Prev  string          `json:"prev"`
	Entry json.RawMessage `json:"entry"`
}

// BrokenError names the first line that does not follow from the one before. Line counts from 1.
type BrokenError struct {
	Line int
	What string
}

// Error reads line and cause.
func (e *BrokenError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.What) }

// ErrCut is returned when the file ends inside a line: its writer was killed, or somebody cut it.
var ErrCut = errors.New("the last line has no end")

// Writer appends to a chain. It is safe for concurrent use. Every line is one Write.
type Writer struct {
	mu   sync.Mutex
	w    io.Writer
	seq  int
	prev string
}

// NewWriter begins a chain with seed, a hex digest or "".
func NewWriter(w io.Writer, seed string) *Writer { return &Writer{w: w, prev: seed} }

// Resume goes on after line seq, whose digest is head; both come from [Read].
func Resume(w io.Writer, head string, seq int) *Writer { return &Writer{w: w, seq: seq, prev: head} }

// Append writes one entry. After a failed Write the chain must not be used again: the file may end inside a line.
func (c *Writer) Append(entry any) error {
	raw, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	line, err := json.Marshal(Line{Seq: c.seq + 1, Prev: c.prev, Entry: raw})
	if err != nil {
		return err
	}
	if len(line) > MaxLine {
		return fmt.Errorf("entry %d has %d bytes, want at most %d", c.seq+1, len(line), MaxLine)
	}
	if _, err := c.w.Write(append(line, '\n')); err != nil {
		return err
	}
	c.seq++
	c.prev = digest(line)
	return nil
}

// Head returns the digest of the last line (the seed before the first) and its number.
func (c *Writer) Head() (string, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.prev, c.seq
}

// Read checks a chain from its seed and hands each line to each. It returns the head and the number of lines that hold. The error is a
// [*BrokenError] for the first line that does not, [ErrCut] for an unfinished last line, else that of r or of each.
func Read(r io.Reader, seed string, each func(Line) error) (head string, lines int, err error) {
	head = seed
	br := bufio.NewReaderSize(r, MaxLine+1)
	for {
		raw, err := br.ReadSlice('\n')
		switch {
		case err == io.EOF && len(raw) == 0:
			return head, lines, nil
		case err == io.EOF:
			return head, lines, ErrCut
		case errors.Is(err, bufio.ErrBufferFull):
			return head, lines, &BrokenError{lines + 1, fmt.Sprintf("longer than %d bytes", MaxLine)}
		case err != nil:
			return head, lines, err
		}
		raw = raw[:len(raw)-1]
		line, err := parse(raw)
		if err != nil {
			return head, lines, &BrokenError{lines + 1, err.Error()}
		}
		if line.Seq != lines+1 {
			return head, lines, &BrokenError{lines + 1, fmt.Sprintf("seq is %d, want %d", line.Seq, lines+1)}
		}
		if line.Prev != head {
			return head, lines, &BrokenError{lines + 1, fmt.Sprintf("prev is %.64q, want %s: a line before was changed", line.Prev, head)}
		}
		if err := each(line); err != nil {
			return head, lines, err
		}
		lines++
		head = digest(raw)
	}
}

// parse accepts exactly the bytes that Append would write for what it reads.
func parse(raw []byte) (Line, error) {
	var line Line
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&line); err != nil {
		return Line{}, err
	}
	again, err := json.Marshal(line)
	if err != nil {
		return Line{}, err
	}
	if !bytes.Equal(again, raw) {
		return Line{}, errors.New("not in the form that is written")
	}
	line.Entry = append(json.RawMessage(nil), line.Entry...)
	return line, nil
}

func digest(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}
