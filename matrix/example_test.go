package matrix_test

import (
	"fmt"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
)

// A click that would raise the browser's window is not declared, so its row is planned as the refusal that must come instead.
func ExampleMatrix_Plan() {
	m, err := matrix.Load(matrix.Embedded(), table)
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := m.Plan(matrix.PlanRequest{Engine: "chromium", Product: engine.ProductChromium, Environment: "x11", Select: []string{"click-trusted"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range p.Rows {
		if row.Twin {
			fmt.Println(row.ID, row.Expect.Refusal[0].Code, row.Expect.Refusal[0].Detail["limitation"])
			continue
		}
		fmt.Println(row.ID, row.Expect.Receipt[0].Trust)
	}
	// Output:
	// click-trusted[state=covered] browser_input_trust_unavailable would_raise
	// click-trusted[state=inactive_tab] trusted_input
	// click-trusted[state=partly_covered] browser_input_trust_unavailable would_raise
	// click-trusted[state=visible_tab] browser_input_trust_unavailable would_raise
}
