// Package report writes the pages that people read into a bundle: report/index.html answers, on one screen, whether the engine may be called
// supported and why; report/rows/ has one page a row, with its film, what the desk and the pages saw beside it on one line of time, and every
// receipt beside the oracles.
//
//	err := report.Write(ctx, w, report.Input{Plan: plan, Provenance: p, Verdicts: v, Ruling: ruling, Signer: "unsigned"})
//
// Pages are static: they hold what the bundle holds and nothing else, load nothing but the bundle's own film, stills and style sheet by relative
// paths, work from a folder without a network, and say everything without JavaScript, which only filters the table and moves the film. The same
// bundle gives the same bytes. All text of a bundle is hostile: it is escaped by html/template after control characters, text direction marks and
// broken UTF-8 were made visible; lists are cut, with a count.
package report
