package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/engine-acceptance/acceptance/matrix"
)

// request is what run, plan and mutants ask for.
type request struct {
	engine string
	// rows are globs over rows and requirements; nil asks for every row.
	rows []string
}

// planOf makes the plan of a request. The engine is one of the matrix's own, or a file from elsewhere.
func planOf(m *matrix.Matrix, r request) (*matrix.Plan, error) {
	m, file, err := withEngine(m, r.engine)
	if err != nil {
		return nil, err
	}
	return m.Plan(matrix.PlanRequest{Engine: file.Name, Product: file.Products[0].Product, Environment: environmentOf(file), Select: r.rows})
}

// loadPlan reads the built-in data and makes the plan of a request. When it cannot, it says why, and the answer is false.
func loadPlan(std streams, r request) (*matrix.Matrix, *matrix.Plan, bool) {
	m, err := load()
	if err == nil {
		var plan *matrix.Plan
		if plan, err = planOf(m, r); err == nil {
			return m, plan, true
		}
	}
	std.say("%v", err)
	return nil, nil, false
}

// planCommand prints what would be run, and which requirements have no rows.
func planCommand(_ context.Context, args []string, std streams) int {
	f := newFlags("plan", std)
	engineName := f.text("engine", "chromium", "engine: a name of the matrix, or a .yaml file of one from elsewhere")
	rows := f.list("rows", "globs over rows and requirements, comma-separated")
	asJSON := f.is("json", "print the plan as JSON")
	if !f.parse(args, 0, 0) {
		return exitUsage
	}
	m, plan, ok := loadPlan(std, request{*engineName, *rows})
	if !ok {
		return exitUsage
	}
	if *asJSON {
		if err := writeJSON(std.out, plan); err != nil {
			std.say("write the plan: %v", err)
			return exitCannotJudge
		}
		return exitOK
	}
	fmt.Fprintf(std.out, "plan      %s\nengine    %s on %s, %s\nmatrix    %s\n\n", plan.Digest, plan.Engine, plan.Product, plan.Environment, plan.MatrixDigest)
	covered := map[matrix.RequirementID]bool{}
	for _, c := range plan.Rows {
		covered[c.Requirement] = true
		kind := "deliver"
		if c.Twin {
			kind = "refuse"
		}
		fmt.Fprintf(std.out, "%-4s %-8s %-48s %s\n", c.Requirement, kind, c.ID, c.Title)
	}
	var without []string
	for _, r := range m.Requirements() {
		if !covered[r.ID] {
			without = append(without, string(r.ID))
		}
	}
	fmt.Fprintf(std.out, "\n%s, %s with rows, %d without:", plural(len(plan.Rows), "row"), plural(len(covered), "requirement"), len(without))
	for ids := range slices.Chunk(without, 24) {
		fmt.Fprintf(std.out, "\n  %v", ids)
	}
	fmt.Fprintf(std.out, "\ncore without rows: %v\n", plan.CoreMissing)
	return exitOK
}
