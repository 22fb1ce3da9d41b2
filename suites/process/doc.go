// Package process starts, names, finds and ends the processes of a desk.
//
// A process is named by an Identity: pid, start time and executable. A pid alone is never
// enough, since the kernel hands numbers out again; no signal leaves this package for a process
// that is not the one that was named.
//
//	p, err := process.Start(ctx, process.Spec{Path: "/usr/bin/openbox", Env: env})
//	...
//	err = p.Stop(ctx, time.Second) // TERM, then KILL, then whatever its session still holds
//
// A started process leads its own session, hence its own process group, gets exactly the
// environment of its Spec, and dies when this process dies, also by SIGKILL. Its descendants have no
// such tie; a Claim finds them by parentage, session, HOME and, where a desk has a uid of its
// own, by uid.
package process
