// Package bench measures what only the joined parts show: the core with the window system and a real browser, beside the same calls made
// bare, in one run, one browser, turn by turn.
//
//	go test -tags browser -run '^$' -bench . -benchtime 200x ./cmd/acceptance/bench
//
// Every figure is a metric of a benchmark; none is asserted, for a time that is asserted fails on a busy machine. The command make bench
// prints them with those of the other packages in one table.
package bench
