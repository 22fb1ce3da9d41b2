package main

import (
	"context"
	"io"

	"github.com/engine-acceptance/acceptance/engine/core"
	"github.com/engine-acceptance/acceptance/suites/controls"
	"github.com/engine-acceptance/acceptance/suites/keeper"
	"github.com/engine-acceptance/acceptance/suites/person"
	"github.com/engine-acceptance/acceptance/suites/sentinel"
	"github.com/engine-acceptance/acceptance/suites/worker"
)

// role is what one hidden process of a run does: the process model is in docs/design.md.
type role func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int

func roles() map[string]role {
	return map[string]role{
		"worker": worker.Main, "keeper": keeper.Main, "sentinel": sentinel.Main, "bystander": sentinel.Main, "person": person.Main, "controls": controls.Main,
		"mutant": func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
			return mutantRole(ctx, args, streams{stdin, stdout, stderr})
		},
		"guardian": func(ctx context.Context, _ []string, stdin io.Reader, _, _ io.Writer) int {
			return core.GuardianMain(ctx, stdin)
		},
	}
}

// roleCommand plays one role of a run. It is not for people.
func roleCommand(ctx context.Context, args []string, std streams) int {
	if len(args) == 0 {
		std.say("role: a role of a run, not for people")
		return exitUsage
	}
	play, ok := roles()[args[0]]
	if !ok {
		std.say("role: unknown role %q", args[0])
		return exitUsage
	}
	return play(ctx, args[1:], std.in, std.out, std.err)
}
