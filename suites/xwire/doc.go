// Package xwire is a small X11 client for the processes of the desk: its windows, its controls
// and its readiness checks.
//
// It exists because the common Go bindings drop the send_event bit and read generic events at the
// wrong length, and because a control must be able to send several requests in one write. Requests
// are built with Req, events arrive in order through Take, an answer is returned by Call after all
// events that the server sent before it are in the queue: so a Call is a barrier.
//
//	c, err := xwire.Dial(ctx, ":7", "/home/x/.Xauthority")
//	win := c.NewID()
//	err = c.Send(xwire.Req(8, 0).U32(win)) // MapWindow
//	_, err = c.Focus(ctx)                  // round trip
//	for _, ev := range c.Take() { ... ev.Sent ... }
//
// Everything from the server is bounded and treated as hostile: an oversized or short message ends
// the connection with an error.
package xwire
