// Package redaction keeps secrets out of everything the harness writes, and proves that it did.
//
// Three parts, from the inside out:
//
//   - [Rules] rewrite text on its way to the disk. A rule set is made once a run from the run's secrets; text passes
//     through [Rules.Bytes] or [Rules.Writer]. The result is the same however the text is cut into writes, passing it
//     twice changes nothing more, and JSON stays JSON.
//   - [Mask] blackens rectangles of a picture in memory, [MaskProof] says whether they are solid.
//   - [Scanner] looks for the run's planted secrets ([Canary]) in bytes that are already there, in every encoding of a
//     closed and versioned list ([EncodingsVersion]). Each scan must first find a control that it plants itself, and a scan
//     of nothing is an error.
//
// There is no switch that turns redaction off, and the package uses the standard library alone.
package redaction
