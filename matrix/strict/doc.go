// Package strict reads YAML data files that may be hostile, and reports every problem of a file at once, each with file, line, field path
// and, for a misspelt word, the nearest right one.
//
// What YAML leaves open is closed here: no anchors, aliases, merge keys or explicit tags; no second document; no key twice, at any level;
// no key that is not a string; no scalar that another reader would take for a boolean, number, date or null where text is wanted; no tab,
// NUL, byte order mark or hidden direction mark; no file above [MaxBytes], nothing nested deeper than [MaxDepth].
//
//	var problems strict.Problems
//	doc, ok := strict.Read("rows/type.yaml", data, &problems)
//	if ok {
//		top := doc.Object("format", "rows")
//		format := top.Need("format").String()
//		for _, row := range top.Need("rows").List() { ... }
//	}
//	return problems.Err()
package strict
