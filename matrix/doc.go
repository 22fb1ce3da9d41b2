// Package matrix is the language that release acceptance is written in, and the data written in it: requirements, rows, engine files
// (public support contracts), profiles, refusals, policies. Rows are data; what a row means for one product in one environment is a
// [Contract], and a [Plan] is all contracts of a run, fixed by digest before anything starts.
//
// Loading is strict: every problem of every file is reported at once, each with file, line, field path and, for a misspelt word, the
// nearest right one. Nothing is ever skipped because it could not be read.
//
//	table, err := refusal.Load()                    // trigger -> code
//	m, err := matrix.Load(matrix.Embedded(), table) // or os.DirFS("matrix")
//	p, err := m.Plan(matrix.PlanRequest{Engine: "chromium", Product: engine.ProductChromium, Environment: "x11", Select: []string{"M5"}})
//
// A row that needs what the engine file does not declare is planned as its twin: the same steps up to that one, and the refusal that must
// come in its place. docs/rows.md shows the language; [Verbs] is the closed list of what a step can do.
package matrix
