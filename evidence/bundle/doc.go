// Package bundle writes the evidence of a run, as it happens, and names what lies where.
//
//	plan.json                every expected row and its digest; written before anything else
//	provenance.json          commits, binaries, browsers, system
//	log.jsonl                hash-chained run log, seeded with the digest of plan.json
//	rows/PRODUCT/ENVIRONMENT/ROWID/attempt-N/
//	    row.json             the contract and the attempt
//	    observations.jsonl   the judge's only input
//	    verdict.json         what the judge said
//	    ...                  views: see [Views]
//	report/  junit.xml  summary.md
//	statement.intoto.jsonl   who vouches; absent from an unsigned bundle
//	manifest.json            every other file with size and sha256; written last
//
// A run writes
//
//	w, err := bundle.Create(ctx, dir, plan)
//	err = w.Provenance(p)
//	row, err := w.Row(contract, 1)
//	err = row.Observe(o)                   // again and again
//	film, err := row.File("film.mp4")      // write, then Close
//	err = row.Finish(verdict)
//	result, err := w.Finish(ctx, bundle.Signing{Key: key})
//
// Everything is whole or absent: a file under its own name is complete, and a folder without manifest.json is an unfinished bundle,
// whatever killed the run. The first failed write (a full disk) is an [ErrWrite], and after it nothing makes the bundle finish.
//
// The folder has mode 0700 and belongs to the harness's uid: an engine with another uid cannot write it.
package bundle
