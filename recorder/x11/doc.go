// Package x11 is a small raw client of the X Window System for guards.
//
// A guard has needs that ordinary clients do not have, and this package exists for them:
//
//   - the send_event bit of every event is kept, so a forged event is never taken for a real one;
//   - generic events (XInput 2) are read at their full length;
//   - one request may have many replies ([Conn.Stream]), as RECORD needs;
//   - what the server sends is bounded: a frame longer than [MaxFrame] is cut and says so ([Event.Total]),
//     never kept whole;
//   - the end of a connection is told once, with its cause ([Handler.Lost], [Conn.Err]).
//
// [Dial] connects and authenticates. [Conn.Call] sends one request and waits for its reply, [Conn.Send]
// writes any number of requests in one write, so that the server may run them without a pause between.
// Events are handed to the [Handler] in the order of the stream, on the reader's own goroutine: when a Call
// has returned, every event that the server wrote before that reply was already handled. That is what makes
// a barrier possible.
//
// Window-reading calls (properties, geometry, trees, owners) and acting calls (windows, XTEST, SendEvent)
// sit on top. The acting calls serve the positive controls and the sentinel.
//
// All requests are written in little-endian order. Numbers and layouts are those of the X protocol
// (version 11, release 7.7) and of the extensions' own protocol documents.
package x11
