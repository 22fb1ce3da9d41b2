package report

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence"
)

func TestSumOf_says_what_came_of_the_calls_of_a_block(t *testing.T) {
	g := NewWithT(t)
	ok := evidence.Call{Block: "race", Status: engine.StatusOK, Round: 1}
	refused := evidence.Call{Block: "race", Status: engine.StatusRefused, Round: 7, Refusal: &engine.Refusal{Code: engine.CodeBindingAmbiguous, Trigger: "several_fit"}}
	g.Expect(sumOf([]evidence.Call{ok, refused, ok, {Block: "race", Carrier: "timeout", Round: 2}})).To(
		Equal("4 calls in 7 rounds: 2 ok, 1 refused: browser_binding_ambiguous (several_fit), 1 timeout"))
}
