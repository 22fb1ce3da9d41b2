// Command acceptance decides, with proof, whether a browser engine may be called supported.
//
// Usage is in the constant below. Results go to standard output, talk to standard error, lower case and without a full stop. Exit codes are a
// promise: 0 accepted, 1 rejected, 2 usage or configuration, 3 could not judge.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const usage = `acceptance decides, with proof, whether a browser engine may be called supported

usage:
  acceptance run     [--engine NAME] [--rows GLOBS] [--out DIR] [--key FILE] [--ledger FILE] [--json]
                                                                                        carry the plan out, write a bundle
  acceptance plan    [--engine NAME] [--rows GLOBS] [--json]                            print what would be run, and what has no rows
  acceptance verify  [--signer FILE] [--json] BUNDLE                                    check a bundle from its bytes alone
  acceptance gate    [--policy NAME] [--signer FILE] [--ledger FILE] [--kills FILE] [--baseline DIR] [--waiver FILE] [--json] BUNDLE
                                                                                        decide whether a bundle meets a policy
  acceptance report  BUNDLE                                                             say where the report is, and its decision
  acceptance why     [--json] BUNDLE ROW                                                explain one row
  acceptance mutants [--only GLOBS] [--cross] [--key FILE] [--out DIR] [--json]         show that every check can fail; --list names them
  acceptance doctor  [--json]                                                           say what is missing on this machine
  acceptance matrix lint [DIR]                                                          check every data file, all problems at once
  acceptance engine serve NAME                                                          serve an engine over MCP on stdin and stdout
  acceptance key DIR                                                                    make a signing key
  acceptance waive   --key FILE --out FILE WAIVER.yaml                                  sign what may be lost against a baseline: gate --waiver

examples:
  acceptance run                              the core profile on Chromium, on a private display
  acceptance run --rows 'type-*'              some rows; such a bundle never passes a release policy
  acceptance run --engine ours/acme.yaml      an engine from elsewhere: its file says how it is started
  acceptance why out/BUNDLE type-unicode      why a row is what it is

exit codes: 0 accepted, 1 rejected or altered, 2 usage or configuration, 3 could not judge or incomplete
`

// The promised exit codes.
const (
	exitOK          = 0
	exitRejected    = 1
	exitUsage       = 2
	exitCannotJudge = 3
)

// command is one subcommand. It parses its own arguments.
type command func(ctx context.Context, args []string, std streams) int

// streams are the standard streams, injectable for tests.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// say prints talk.
func (s streams) say(format string, args ...any) {
	fmt.Fprintf(s.err, "acceptance: "+format+"\n", args...)
}

// commands is the table of subcommands.
func commands() map[string]command {
	return map[string]command{
		"run": runCommand, "plan": planCommand, "verify": verifyCommand, "mutants": mutantsCommand, "report": reportCommand, "why": whyCommand, "gate": gateCommand,
		"doctor": doctorCommand, "matrix": matrixCommand, "engine": engineCommand, "key": keyCommand, "waive": waiveCommand, "role": roleCommand,
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := dispatch(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// dispatch runs one subcommand and returns the exit code.
func dispatch(ctx context.Context, args []string, std streams) int {
	if len(args) == 0 {
		fmt.Fprint(std.err, usage)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "--help", "-help":
		fmt.Fprint(std.out, usage)
		return exitOK
	}
	run, ok := commands()[args[0]]
	if !ok {
		std.say("unknown command %q%s; see acceptance help", args[0], nearest(args[0], visible()))
		return exitUsage
	}
	if args[0] != "role" && slices.ContainsFunc(args[1:], func(a string) bool { return a == "-h" || a == "-help" || a == "--help" }) {
		fmt.Fprint(std.out, usage)
		return exitOK
	}
	return run(ctx, args[1:], std)
}

// visible are the commands that people type.
func visible() []string {
	var out []string
	for name := range commands() {
		if name != "role" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// flags is a FlagSet that reports errors in our own words and refuses a flag that is given twice.
type flags struct {
	*flag.FlagSet
	std streams
}

func newFlags(name string, std streams) flags {
	f := flags{flag.NewFlagSet(name, flag.ContinueOnError), std}
	f.SetOutput(io.Discard)
	return f
}

// once is a string flag that may be given one time.
type once struct {
	value string
	set   bool
}

// String implements flag.Value.
func (o *once) String() string { return o.value }

// Set implements flag.Value.
func (o *once) Set(v string) error {
	if o.set {
		return errors.New("given twice")
	}
	o.value, o.set = v, true
	return nil
}

// onceBool is a flag without a value that may be given one time.
type onceBool struct{ value, set bool }

// String implements flag.Value.
func (o *onceBool) String() string { return strconv.FormatBool(o.value) }

// IsBoolFlag tells package flag that no value follows.
func (o *onceBool) IsBoolFlag() bool { return true }

// Set implements flag.Value.
func (o *onceBool) Set(v string) (err error) {
	if o.set {
		return errors.New("given twice")
	}
	o.set = true
	if o.value, err = strconv.ParseBool(v); err != nil {
		return errors.New("want true or false")
	}
	return nil
}

// is declares a flag without a value that may be given once.
func (f flags) is(name, help string) *bool {
	o := &onceBool{}
	f.Var(o, name, help)
	return &o.value
}

// text declares a flag that holds text and may be given once.
func (f flags) text(name, value, help string) *string {
	o := &once{value: value}
	f.Var(o, name, help)
	return &o.value
}

// globList is a flag that holds globs, comma-separated. An empty list is an error: where it comes from a variable that is not set, everything
// would be run.
type globList struct {
	once
	globs []string
}

// Set implements flag.Value.
func (g *globList) Set(v string) error {
	if err := g.once.Set(v); err != nil {
		return err
	}
	if g.globs = globs(v); len(g.globs) == 0 {
		return errors.New("selects nothing; leave the flag out for everything")
	}
	return nil
}

// list declares a flag that holds globs and may be given once; without it the list is nil.
func (f flags) list(name, help string) *[]string {
	g := &globList{}
	f.Var(g, name, help)
	return &g.globs
}

// nearestFlag is a hint at the flag that was meant where err says that one is not defined.
func (f flags) nearestFlag(err error) string {
	_, name, unknown := strings.Cut(err.Error(), "not defined: -")
	if !unknown {
		return ""
	}
	var known []string
	f.VisitAll(func(d *flag.Flag) { known = append(known, d.Name) })
	return nearest(strings.TrimPrefix(name, "-"), known)
}

// parse reads the arguments; want is how many stay beside flags, at least and at most. Usage errors are printed.
func (f flags) parse(args []string, least, most int) bool {
	// Flags may stand behind the positional arguments, too: people type them there.
	var positional []string
	for {
		if err := f.Parse(args); err != nil {
			f.std.say("%s: %v%s; see acceptance help", f.Name(), err, f.nearestFlag(err))
			return false
		}
		if f.NArg() == 0 {
			break
		}
		positional = append(positional, f.Arg(0))
		args = f.Args()[1:]
	}
	if err := f.Parse(append([]string{"--"}, positional...)); err != nil {
		return false
	}
	if f.NArg() < least {
		f.std.say("%s: too few arguments; see acceptance help", f.Name())
		return false
	}
	if f.NArg() > most {
		f.std.say("%s: stray argument %q; see acceptance help", f.Name(), f.Arg(most))
		return false
	}
	return true
}
