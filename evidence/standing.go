package evidence

import (
	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
)

// EffectStanding is how the effect that a receipt claims stands beside what the page reported. The zero value is none of them.
type EffectStanding string

// The closed list of standings.
const (
	// EffectStands: what is claimed is no more and no less than what was seen.
	EffectStands EffectStanding = "stands"
	// EffectUnseen: confirmed, and no page reported any effect.
	EffectUnseen EffectStanding = "claimed_and_not_seen"
	// EffectUnclaimed: seen, readable as it was asked for, and not confirmed.
	EffectUnclaimed EffectStanding = "seen_and_not_claimed"
	// EffectNotLookedAt: the call was aimed at no page, or at what no page can report.
	EffectNotLookedAt EffectStanding = "not_looked_at"
	// EffectUnknownWord: the receipt's word is none of the vocabulary.
	EffectUnknownWord EffectStanding = "unknown_word"
)

// StandingOfEffect applies the judge's own rule to the effect of one receipt (M17): whoever explains a verdict must not have a rule of their
// own. It is pure. A call without a receipt is not looked at.
func StandingOfEffect(c matrix.Contract, obs []Observation, call Observation) EffectStanding {
	if call.Call == nil || call.Call.Receipt == nil {
		return EffectNotLookedAt
	}
	j := &judgement{row: c, obs: obs}
	j.index()
	return j.effectStanding(call)
}

// effectStanding is the rule: what is confirmed must have been seen, and what was seen and can be read back as it was asked for must be confirmed.
// A secret is not read back, and a page that rewrites its input holds something else: an engine that then claims nothing is honest.
func (j *judgement) effectStanding(o Observation) EffectStanding {
	c, r := o.Call, o.Call.Receipt
	saw, _, _ := j.effectsOf(o)
	switch r.Effect {
	case engine.EffectConfirmed:
		switch {
		case c.Page == "" || !mutating[c.Operation] || c.Operation == engine.OpContext:
			return EffectNotLookedAt
		case !saw:
			return EffectUnseen
		}
		return EffectStands
	case engine.EffectUnverifiable, engine.EffectSuspectedNoop, engine.EffectUnknown, engine.EffectPartial:
		if saw && confirmable[c.Operation] && !j.secretTyped(o) && j.arrivedAsAsked(o) && !j.cutDuring(o) {
			return EffectUnclaimed
		}
		if c.Page == "" {
			return EffectNotLookedAt
		}
		return EffectStands
	}
	return EffectUnknownWord
}
