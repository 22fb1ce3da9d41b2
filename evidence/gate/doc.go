// Package gate decides whether a verified bundle meets a policy. A decision about an engine ([evidence.Decide]) says what was shown; a policy says
// what a release asks for beside it: who signed, how old it may be, how many complete runs, which features, which known deviations, and that
// nothing which a baseline bundle had was lost or loosened.
//
//	report, err := verify.Verify(ctx, dir, verify.Options{Judge: evidence.Judge, Key: pub})
//	d := gate.Evaluate(policy, report, ruling, gate.Extra{Now: time.Now(), Began: began, Standing: standing})
//	os.Exit(d.ExitCode())
//
// [Evaluate] is pure: the clock, the ledger and the baseline are passed in. A clause that could not be looked at is not met.
package gate
