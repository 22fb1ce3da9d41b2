package strict

import (
	"sort"
	"strings"
)

// Nearest returns the known word that got most likely was meant to be, or "" when none is near: at most a third of its letters differ.
func Nearest(got string, known []string) string {
	if len(got) > 128 {
		return ""
	}
	best, bestAt := "", len(got)/3+2
	sorted := append([]string(nil), known...)
	sort.Strings(sorted)
	for _, k := range sorted {
		if len(k) > 128 {
			continue
		}
		if d := distance(strings.ToLower(got), strings.ToLower(k)); d < bestAt && d < len([]rune(k)) {
			best, bestAt = k, d
		}
	}
	return best
}

// Hint is the tail of a message about an unknown word: the nearest known one, or else the whole list when it is short.
func Hint(got string, known []string) string {
	if n := Nearest(got, known); n != "" {
		return "; did you mean \"" + n + "\"?"
	}
	if len(known) == 0 || len(known) > 24 {
		return ""
	}
	return "; known: " + strings.Join(known, ", ")
}

// distance is the Levenshtein distance where a swap of neighbours counts once.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, prev := make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		cur := make([]int, len(y)+1)
		cur[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev = prev, cur
	}
	return prev[len(y)]
}
