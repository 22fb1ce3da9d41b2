package matrix_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/matrix/canonical"
	"github.com/engine-acceptance/acceptance/matrix/strict"
)

// FuzzLoad: whatever stands in a row file, loading ends, and either every problem has a file and a line, or the rows make a plan whose
// digest holds.
func FuzzLoad(f *testing.F) {
	files, err := fs.Glob(matrix.Embedded(), "rows/*/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, name := range files {
		b, err := fs.ReadFile(matrix.Embedded(), name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(good))
	base := with(f, nil).(fstest.MapFS)
	f.Fuzz(func(t *testing.T, text []byte) {
		fsys := fstest.MapFS{rowFile: &fstest.MapFile{Data: text}}
		for name, file := range base {
			fsys[name] = file
		}
		m, err := matrix.Load(fsys, table)
		if err != nil {
			var e *strict.Error
			if !errors.As(err, &e) || len(e.Problems) == 0 {
				t.Fatalf("not a list of problems: %v", err)
			}
			for _, p := range e.Problems {
				if p.File != rowFile || p.Line < 1 || p.Line > strings.Count(string(text), "\n")+2 || p.Message == "" {
					t.Fatalf("a problem without its place: %+v", p)
				}
			}
			return
		}
		p, err := m.Plan(chromiumX11)
		if errors.Is(err, matrix.ErrNothingSelected) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := p.CheckDigest(); err != nil {
			t.Fatal(err)
		}
		if _, err := canonical.Marshal(p); err != nil {
			t.Fatal(err)
		}
	})
}

// The kept corpus is not empty: a folder that matches nothing stays silent.
func TestFuzzLoad_corpus_is_kept(t *testing.T) {
	entries, err := os.ReadDir("testdata/fuzz/FuzzLoad")
	if err != nil || len(entries) < 10 {
		t.Fatalf("%d kept inputs: %v", len(entries), err)
	}
}
