// Package kills is the kill table: which engines that are wrong on purpose were run against which rows, what those rows found, and that the
// healthy engine passed the same rows. A gate joins it to a bundle by the digests of harness and matrix: a check that was never seen failing
// on this very build proves nothing about an engine that passed it (J6).
//
//	raw, err := t.Seal(key)                    // or t.Marshal() without a key
//	t, signed, err := kills.Read(raw, pub)     // form, digest, signature
//	problems := t.Check(kills.Build{...})      // harness, commit, matrix, each mutant, the healthy engine, every requirement
//
// A table holds what was seen, never what it means: whether a mutant was killed follows from its rows ([Mutant.Judge]).
package kills
