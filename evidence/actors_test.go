package evidence

import (
	"strings"
	"testing"

	"github.com/onsi/gomega"
)

// A table that lacks somebody, or that says something that no judge knows, is none.
func TestPolicy_refuses_what_is_not_whole(t *testing.T) {
	whole := string(actorsYAML)
	for name, c := range map[string]struct{ from, to, want string }{
		"an actor less":           {"  unknown: ", "  # unknown: ", `actor "unknown" is missing`},
		"an actor of no kind":     {"  stranger:  ", "  visitor: ", `unknown actor "visitor"`},
		"a charge of no kind":     {"browser:        {request: charged", "browser:        {request: forgiven", `browser: request: got "forgiven"`},
		"a charge left out":       {"{request: charged, effect: charged}", "{request: charged}", `engine: effect: got ""`},
		"a phase less":            {"  cleanup:    own", "", `phase "cleanup" is missing`},
		"a worth of no kind":      {"absolute\n  cleanup", "relative\n  cleanup", `phase background: got "relative"`},
		"an act less":             {"  close: {told_as: closed_window, brings: []}", "", `page act "close" is missing`},
		"a word of no receipt":    {"told_as: moved_window", "told_as: wandered", `page act move: no receipt has the word "wandered"`},
		"a reason of no desk":     {"[cover_changed]", "[weather_changed]", `page act move: no reason "weather_changed"`},
		"another format":          {"desk-actors/1", "desk-actors/9", `got format "acceptance.desk-actors/9"`},
		"a key that is not known": {"for_page: true}  #", "for_page: true, forgiven: true}  #", "forgiven"},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			g.Expect(strings.Count(whole, c.from)).To(gomega.BeNumerically(">=", 1), c.from)
			_, err := parsePolicy([]byte(strings.Replace(whole, c.from, c.to, 1)))
			g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(c.want)))
		})
	}
	_, err := parsePolicy(actorsYAML)
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
}

// What the table says is what the judge does: an act of each actor, asked for and as an effect, in each phase.
func TestPolicy_is_what_the_judge_does(t *testing.T) {
	for _, actor := range Actors {
		for request, kind := range map[string]string{"SetInputFocus": "request", "": "effect"} {
			for _, phase := range []Phase{PhasePrepare, PhaseBackground, PhaseCleanup} {
				t.Run(string(actor)+" "+kind+" "+string(phase), func(t *testing.T) {
					g := gomega.NewWithT(t)
					j := &judgement{obs: []Observation{{Seq: 1, Phase: phase, Kind: KindDesk,
						Desk: &Desk{Requirement: "D1", Reason: ReasonFocusLeft, Actor: actor, Request: request, PID: 12, Exe: "thief"}}}}
					j.desk()
					charge := ChargeOf(actor, request != "")
					switch {
					case WorthIn(phase) != WorthAbsolute || charge == ChargeNobody:
						g.Expect(j.findings).To(gomega.BeEmpty())
					case charge == ChargeEnvironment:
						g.Expect(j.findings).To(gomega.HaveLen(1))
						g.Expect(j.findings[0].Requirement).To(gomega.BeEquivalentTo("J5"))
					default:
						g.Expect(j.findings).To(gomega.HaveLen(1))
						g.Expect(j.findings[0].Requirement).To(gomega.BeEquivalentTo("D1"))
						g.Expect(j.findings[0].Text).To(gomega.ContainSubstring("pid 12 thief"))
					}
				})
			}
		}
	}
	// The table as it is: who is charged for nothing must not grow without somebody seeing it here.
	g := gomega.NewWithT(t)
	var free []string
	for _, a := range Actors {
		for kind, request := range map[string]bool{"request": true, "effect": false} {
			if ChargeOf(a, request) == ChargeNobody {
				free = append(free, string(a)+" "+kind)
			}
		}
	}
	g.Expect(free).To(gomega.ConsistOf("window_manager request", "person request", "person effect", "controls request", "controls effect", "harness request", "harness effect"))
	g.Expect(ChargeOf("somebody", true)).To(gomega.Equal(ChargeEngine), "who is in no list is charged")
	g.Expect(WorthIn(PhaseBackground)).To(gomega.Equal(WorthAbsolute))
}
