// Package native is the window system and the operating system as a proof of its own, apart from what any browser says: which process owns
// a window, where the window is, which process owns a listening socket, and whether a process still is the one it was.
//
//   - [Open] gives an [engine.NativePlatform] for an X11 display. It connects at the first question, not before, so that a refusal that needs
//     no window system sends nothing to it. A window's owner is the X server's own word (X-Resource), never the client's claim.
//   - [Unavailable] and [Refusing] give platforms that refuse everything.
//   - [Identify], [Same], [Describe], [Tree] and [End] are the process half. [End] signals a process only through a descriptor of it and only
//     after pid, start time and executable matched.
//
// Refusals of this package carry no operation; whoever asked fills it in. On systems other than Linux every proof is refused as
// platform_unproven.
package native
