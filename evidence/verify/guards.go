package verify

import (
	"cmp"
	"slices"

	"github.com/engine-acceptance/acceptance/evidence"
)

// Armed is one kind of violation, or one channel of the event log, and in how many attempts it was proven: the violation was committed on purpose and
// seen, the channel was alive and dropped nothing. It is counted from observations, so no document can claim it.
type Armed struct {
	// Name is "control KIND" or "channel NAME".
	Name string `json:"name"`
	// Rows counts the attempts; Every is true when those were all that were judged.
	Rows  int  `json:"rows"`
	Every bool `json:"every"`
}

// armed names what one attempt proved of its guards.
func armed(all []evidence.Observation) map[string]bool {
	out, missed := map[string]bool{}, map[string]bool{}
	for _, o := range all {
		switch {
		case o.Controls != nil:
			for _, kind := range o.Controls.Committed {
				out["control "+kind] = true
			}
			for _, kind := range o.Controls.Missed {
				missed["control "+kind] = true
			}
		case o.Guard != nil && o.Guard.Alive && o.Guard.Dropped == 0:
			out["channel "+o.Guard.Channel] = true
		case o.Guard != nil:
			missed["channel "+o.Guard.Channel] = true
		}
	}
	for name := range missed {
		delete(out, name)
	}
	return out
}

// arm counts what one attempt proved.
func (v *verifier) arm(all []evidence.Observation) {
	names := armed(all)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.judged++
	for name := range names {
		v.armedIn[name]++
	}
}

// guards lists what was proven, sorted by name.
func (v *verifier) guards() []Armed {
	out := make([]Armed, 0, len(v.armedIn))
	for name, n := range v.armedIn {
		out = append(out, Armed{name, n, n == v.judged})
	}
	slices.SortFunc(out, func(a, b Armed) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
