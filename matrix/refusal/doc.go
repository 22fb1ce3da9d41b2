// Package refusal is the vocabulary of refusals as data: which triggers there are, which code each one gives and which detail fields, with
// which values, it may carry. The table is the embedded file refusals.yaml; engines, the plan and the judge read the same one.
//
//   - [Load] reads the table strictly: a hole, a duplicate or a word that package engine does not know is an error.
//   - [Table.New] makes a refusal from a trigger. Callers never choose a code.
//   - [Table.Check] judges a refusal that came from anywhere, a hostile engine included.
//
// The package imports nothing of this project but the words of package engine.
package refusal
