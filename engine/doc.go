// Package engine is the contract between a browser engine under test and whoever calls it: the words, the requests and results of its
// public tools, and the small interfaces that an implementation is put together from. It imports nothing else of this project.
//
// Two sides meet here.
//
//   - The public side is [Engine]: one call per tool, arguments in, a [Result] out. A result is either a refusal from a closed list of
//     sixteen codes, with nothing dispatched, or what the tool returns, with a [Receipt] for everything that may have changed something.
//     Tool names, codes and field names follow the public vocabulary of Cua Driver (MIT), so that its users read ours without a glossary.
//   - The inner side is [Adapter], [Browser] and the abilities beside it, implemented once per wire protocol, and [NativePlatform], the
//     window system's own account of who owns a window. Package engine/core joins the two before every mutation and every read.
//
// Identifiers that cross the public side are ours, opaque and unguessable. [ContextKey], [WindowKey], [NodeKey] and endpoints stay inside.
//
// Zero values never mean success: an empty [Effect] is invalid, a zero [Status] is invalid, a nil engine refuses.
package engine
