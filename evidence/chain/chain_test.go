package chain_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/evidence/chain"
)

func written(t *testing.T, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := chain.NewWriter(&b, "seed")
	for i := range n {
		if err := w.Append(map[string]int{"i": i}); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func none(chain.Line) error { return nil }

func TestReadAndResume(t *testing.T) {
	g := gomega.NewWithT(t)
	raw := written(t, 3)
	head, n, err := chain.Read(bytes.NewReader(raw), "seed", none)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(n).To(gomega.Equal(3))
	buf := bytes.NewBuffer(raw)
	g.Expect(chain.Resume(buf, head, n).Append(map[string]int{"i": 3})).To(gomega.Succeed())
	g.Expect(buf.Bytes()).To(gomega.Equal(written(t, 4)))
}

func TestEveryByteCounts(t *testing.T) {
	raw := written(t, 4)
	lastLine := bytes.LastIndexByte(raw[:len(raw)-1], '\n') + 1
	for i := range raw {
		for _, flip := range []byte{1, 0x20, 0x80} {
			bad := bytes.Clone(raw)
			bad[i] ^= flip
			head, n, err := chain.Read(bytes.NewReader(bad), "seed", none)
			// A change of the last entry is seen by whoever knows the head.
			whole, _, _ := chain.Read(bytes.NewReader(raw), "seed", none)
			if err == nil && (head == whole || i < lastLine) {
				t.Fatalf("byte %d ^ %#x: accepted %d lines", i, flip, n)
			}
		}
	}
}

func TestBroken(t *testing.T) {
	lines := strings.SplitAfter(string(written(t, 4)), "\n")
	for name, c := range map[string]struct {
		in   string
		line int
		cut  bool
	}{
		"line_missing": {lines[0] + lines[2], 2, false},
		"line_twice":   {lines[0] + lines[0], 2, false},
		"swapped":      {lines[1] + lines[0], 1, false},
		"cut":          {lines[0] + lines[1][:10], 0, true},
		"blank_line":   {lines[0] + "\n" + lines[1], 2, false},
		"long":         {lines[0] + strings.Repeat("x", chain.MaxLine+2) + "\n", 2, false},
		"unknown":      {`{"seq":1,"prev":"seed","entry":{},"more":1}` + "\n", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := chain.Read(strings.NewReader(c.in), "seed", none)
			if c.cut {
				if !errors.Is(err, chain.ErrCut) {
					t.Fatalf("got %v, want ErrCut", err)
				}
				return
			}
			var broken *chain.BrokenError
			if !errors.As(err, &broken) || broken.Line != c.line {
				t.Fatalf("got %v, want line %d broken", err, c.line)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"seq":1,"prev":"seed","entry":{"i":0}}` + "\n"))
	f.Add([]byte("{\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var again bytes.Buffer
		w := chain.NewWriter(&again, "seed")
		_, _, err := chain.Read(bytes.NewReader(raw), "seed", func(l chain.Line) error { return w.Append(l.Entry) })
		if err == nil && !bytes.Equal(again.Bytes(), raw) {
			t.Fatalf("accepted %q, which would be written as %q", raw, again.Bytes())
		}
	})
}
