// Package desk opens a private desktop and closes it without a trace: an X server, a window manager
// with its stock configuration, a session bus, homes in memory, and an identity for the engine and
// its browsers.
//
//	d, err := desk.Open(ctx, desk.Config{})
//	...
//	defer d.Close(ctx)
//	eng, err := d.Start(ctx, desk.Engine, process.Spec{Path: "acceptance", Args: ...})
//	sentinel, err := d.StartRole(ctx, "sentinel", "--title", "Letter")
//
// The X server chooses the display number itself and proves that it is ours by its socket; every part
// is ready when its protocol says so, never after a sleep. Run as root, engine and browsers get an
// ordinary uid that no other desk has, while server, manager and the person's applications keep ours; run
// as a user, everything has that uid, and Posture says so. Children get an environment of allowed names
// only, with nothing in it that tells an engine that it is tested.
//
// Whatever happens to the worker, a keeper that was told of the desk's processes and directories ends
// and removes them (Config.Keeper). Where that was killed too, the next desk finds the seat's lock free and
// removes what was left.
package desk
