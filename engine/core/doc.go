// Package core is the protocol-neutral engine: it implements [engine.Engine] over one [engine.Adapter], which speaks a browser's protocol,
// and one [engine.NativePlatform], which proves what the window system and the operating system know. It joins the two before every
// mutation and before every read of page content.
//
//   - [New] makes an engine from a [Config]; [Engine.Call] is the one way in; [Engine.Close] ends every session.
//   - Everything minted (sessions bs-, targets bt-, tabs tb-, snapshots sn-) is random, belongs to one session, and dies with the session, the
//     browser process or the connection, whichever is first. Nothing is revived.
//   - The re-proof, in this order: session alive, capability known and of this generation, connection alive, same process, endpoint owned,
//     window owned, context in that window with agreeing bounds, state declared, ability of the adapter. Only then is anything dispatched.
//   - What was dispatched and not answered in time has effect unknown and is never repeated.
//   - A window that this engine opened is bound by construction; any other window only when exactly one native window and exactly one protocol
//     window fit each other. Titles and URLs decide nothing.
//   - [GuardianMain] is the second process that ends the browser and removes the profile when this one is killed.
package core
