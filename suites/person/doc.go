// Package person is the person who works at the desk while an engine is tested: who types and clicks
// into the foreground application, before, during and after every row.
//
// The role, a process of its own, injects real keys and clicks through the server's XTEST extension (by
// robotgo where cgo is there, by xgb where not; Injector says which) and reports each stroke with a
// number and its time. Characters follow a sequence that a row's seed fixes, in which a character
// comes again after 35 others at the earliest; so Check can tell what was lost, doubled, swapped or late.
//
//	p, err := person.Start(ctx, d.StartRole, seed)
//	err = p.Work(ctx, person.Work{Every: 100 * time.Millisecond, ClickEvery: 10, X: 300, Y: 300})
//	...                      // the row
//	err = p.Pause(ctx)       // returns when the last stroke is out
//	err = s.Echo(ctx)        // the sentinel's barrier
//	report := person.Check(p.Strokes(), s.Since(0), person.DefaultLate)
package person
