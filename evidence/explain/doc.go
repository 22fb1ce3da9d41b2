// Package explain says in words what one row of a bundle asked for, what was seen instead, and where to look: the first divergence, its moment
// in the film, the calls before it, the receipt beside what the oracles saw, and the command that repeats just this row.
//
//	e, err := explain.Row(ctx, dir, "type-unicode*")
//	err = e.WriteText(os.Stdout)
//
// It reads the bundle only and believes no verdict: the judge is run again on the observations. The pieces that a report needs as well (an
// [Attempt], its film's [Clock], [Clauses], [CompareReceipt]) are exported.
package explain
