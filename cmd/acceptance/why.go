package main

import (
	"context"

	"github.com/engine-acceptance/acceptance/evidence/explain"
)

// whyCommand explains one row of a bundle: contract, observations, first divergence, the moment in the film, the command that repeats it.
func whyCommand(ctx context.Context, args []string, std streams) int {
	f := newFlags("why", std)
	asJSON := f.is("json", "print the explanation as JSON")
	if !f.parse(args, 2, 2) {
		return exitUsage
	}
	e, err := explain.Row(ctx, f.Arg(0), f.Arg(1))
	if err != nil {
		std.say("why: %v", err)
		return exitUsage
	}
	if *asJSON {
		err = writeJSON(std.out, e)
	} else {
		err = e.WriteText(std.out)
	}
	if err != nil {
		std.say("why: %v", err)
		return exitCannotJudge
	}
	return exitOK
}
