// Package evidence holds what was seen and what follows from it: observations, the judge, decisions, the bundle, and its verification.
//
// The judge is a pure function from one [matrix.Contract] and its [Observation] values to a [Verdict]; verify runs the same function again
// over the bytes of a bundle and must reach the same verdicts. Nothing an engine says about itself passes a row: its receipts and refusals
// are observations that are compared with what other oracles saw.
package evidence
