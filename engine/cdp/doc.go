// Package cdp drives Chromium through the Chrome DevTools Protocol: it implements [engine.Adapter], [engine.Browser] and the abilities
// beside them.
//
// The connection is ours from the bytes up (transport.go): a bounded websocket client that implements chromedp.Transport. chromedp's Browser
// runs on it for browser-level commands; page-level commands are typed cdproto calls on flat sessions of our own (session.go), because
// chromedp's own attach evaluates in the page, which hangs while a dialog is open. Events are folded into a few state variables of a
// session by the reader itself; nothing is queued, so an event that nobody wants never delays a reply.
//
// Three facts about Chromium on X11 shape the actions:
//
//   - a mouse press in the visible tab activates and raises the native window. So trusted clicks go only to a tab that is proved not to be
//     the visible one ("parked"), with focus emulation; in the visible tab they are refused with would_touch_desk.
//   - keyboard input and inserted text reach the visible tab of a covered window without touching the desk.
//   - focus emulation makes a parked tab report itself as visible. A tab under emulation is therefore proved parked by another tab of the
//     same window that is not emulated and is visible.
//
// Script runs in isolated worlds only, where the page cannot replace the functions that we call.
package cdp
