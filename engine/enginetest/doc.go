// Package enginetest is the kit that every engine passes, and an in-memory browser to build engines on in unit tests.
//
//   - [Test] drives an engine through its public interface only: the declaration is total, refusals fit the vocabulary, stale and foreign ids
//     are refused, a session ends once and for all, concurrent callers do not meet.
//   - [Fake] is an [engine.Adapter] and an [engine.NativePlatform] over one scripted desk: windows, tabs, documents and controls in memory, a
//     journal of what reached which page, and defects that are switched on one at a time.
//
// The fake exists for unit tests; no command reaches it.
package enginetest
