package explain

import (
	"fmt"
	"strings"

	"github.com/engine-acceptance/acceptance/matrix"
)

// blockWords puts a step that holds steps into words.
func blockWords(s matrix.Step) string {
	words := func(steps []matrix.Step) string {
		var parts []string
		for _, inner := range steps {
			parts = append(parts, StepWords(inner))
		}
		return strings.Join(parts, ", then ")
	}
	var lanes []string
	for _, lane := range s.Lanes {
		lanes = append(lanes, words(lane))
	}
	text := fmt.Sprintf("%s %d times: ", s.Verb, s.Int("times"))
	if len(s.First) > 0 {
		text += "first " + words(s.First) + "; then "
	}
	text += strings.Join(lanes, "; and at once: ")
	if s.Has("spread") {
		text += ", begun at random within " + s.Text("spread")
	}
	return text
}

// blockExpectWords puts what a block must show into words.
func blockExpectWords(r matrix.BlockExpect) string {
	text := fmt.Sprintf("at least %d %% of the runs of %s are delivered, and nothing of them arrives anywhere else", r.Delivered, r.Of)
	if r.None {
		text = fmt.Sprintf("no run of %s is delivered, and nothing of any arrives", r.Of)
	}
	var codes []string
	for _, refusal := range r.Refusals {
		codes = append(codes, fmt.Sprintf("%s (%s)", refusal.Code, refusal.Trigger))
	}
	if len(codes) > 0 {
		text += "; a refusal is " + strings.Join(codes, " or ")
	}
	return text
}
