// Package desktop keeps the event log of a desk: what the X server itself says about focus, stacking, the
// pointer, input, selections and the keyboard, and which process asked for it.
//
// A guard that polls sees nothing of a change that is undone at once. This one is driven by events, on separate
// raw connections (package x11), so that nothing a browser engine does can hide behind a quick undo:
//
//   - core: the root window and every watched window (focus, visibility, structure, properties). A replica
//     of the stacking order is kept from these events alone, so order, cover and windows above the person are
//     judged for every instant, also for windows that lived a microsecond;
//   - input: XInput 2 raw keys, buttons and motion, and the hierarchy of devices;
//   - record: RECORD, the requests of every client with the process behind it (X-Resource), and the events that
//     devices make, each with the request that caused it;
//   - properties: RECORD, the writes of properties, apart from the others because they may be of any size;
//   - selection: XFIXES, owners of CLIPBOARD and PRIMARY;
//   - output: RANDR and SHAPE;
//   - bus, accessibility: monitors of the session bus and of the accessibility bus, where the desk has them ([Config.Bus]): calls
//     and directed signals to other programs, with the processes of both (package bus).
//
// Use: [Start] before anything that is to be watched runs, [Log.Watch] the person's window, the bystander and the target,
// [Log.Cover] for the pair, then per step
//
//	from, err := log.Barrier(ctx)
//	... the step ...
//	to, err := log.Settle(ctx, 150*time.Millisecond)
//	for _, ev := range log.Between(from, to) {
//		requirement, reason := desktop.Violation(ev)
//
// [Violation] says which requirement an event would break; who is charged is decided by the caller, who knows
// the processes. Requests of the window manager are never charged, their effects (focus, stacking) are.
//
// A lost connection, a full log, a request that could not be read is told ([Log.Health], the kinds
// channel_lost, events_dropped, record_overrun and guard_error): silence of a guard that is not alive means nothing.
//
// What it cannot see: drawing into another client's window, actions that pass neither the X server nor these buses
// (the system bus, uinput seen only as raw input), and the process of a client that was gone before the server
// could be asked; such events carry PID 0.
package desktop
