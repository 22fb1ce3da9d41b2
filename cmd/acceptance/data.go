package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/matrix/refusal"
	"github.com/engine-acceptance/acceptance/matrix/strict"
)

// load reads the data that is built into this program.
func load() (*matrix.Matrix, error) {
	table, err := refusal.Load()
	if err != nil {
		return nil, err
	}
	return matrix.Load(matrix.Embedded(), table)
}

// version is what build information says about this program.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(12, len(s.Value))]
		}
	}
	return cmp.Or(info.Main.Version, "unknown")
}

// writeJSON prints a result for machines.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// nearest is a hint at the closest known word, or nothing.
func nearest(word string, known []string) string { return strict.Hint(word, known) }

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// plural reads "1 row", "2 rows".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
