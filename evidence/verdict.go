package evidence

import (
	"fmt"

	"github.com/engine-acceptance/acceptance/matrix"
)

// Outcome is the verdict on one row. The zero value is not_run.
type Outcome int

// The closed list of outcomes (design section 8).
const (
	NotRun Outcome = iota
	Pass
	Fail
	NotExercised
	InvalidGuard
	EnvironmentUnmet
	HarnessError
	NotOffered
	NotApplicable
	Flaky
)

var outcomeNames = [...]string{"not_run", "pass", "fail", "not_exercised", "invalid_guard", "environment_unmet", "harness_error", "not_offered",
	"not_applicable", "flaky"}

// String returns the word used in every file.
func (o Outcome) String() string {
	if o < 0 || int(o) >= len(outcomeNames) {
		return fmt.Sprintf("outcome(%d)", int(o))
	}
	return outcomeNames[o]
}

// MarshalText writes the word; a value outside the list is an error.
func (o Outcome) MarshalText() ([]byte, error) {
	if o < 0 || int(o) >= len(outcomeNames) {
		return nil, fmt.Errorf("outcome %d is not in the closed list", int(o))
	}
	return []byte(outcomeNames[o]), nil
}

// UnmarshalText reads the word; an unknown word is an error, never not_run.
func (o *Outcome) UnmarshalText(b []byte) error {
	for i, name := range outcomeNames {
		if name == string(b) {
			*o = Outcome(i)
			return nil
		}
	}
	return fmt.Errorf("unknown outcome %q", b)
}

// Reason says in one closed word why a row failed or could not be judged.
type Reason string

// The closed list of reasons.
const (
	// Desk, D1 to D7.
	ReasonFocusLeft         Reason = "focus_left"
	ReasonStackingChanged   Reason = "stacking_changed"
	ReasonCoverChanged      Reason = "cover_changed"
	ReasonPointerMoved      Reason = "pointer_moved"
	ReasonPointerWarped     Reason = "pointer_warped"
	ReasonPointerGrabbed    Reason = "pointer_grabbed"
	ReasonMasterAdded       Reason = "master_added"
	ReasonInputLeaked       Reason = "input_leaked"
	ReasonInputForged       Reason = "input_forged"
	ReasonWindowAbovePerson Reason = "window_above_person"
	ReasonUrgencyRaised     Reason = "urgency_raised"
	ReasonWorkspaceChanged  Reason = "workspace_changed"
	ReasonOpacityChanged    Reason = "opacity_changed"
	ReasonClipboardTaken    Reason = "clipboard_taken"
	ReasonPrimaryTaken      Reason = "primary_taken"
	ReasonKeymapChanged     Reason = "keymap_changed"
	ReasonKeyboardGrabbed   Reason = "keyboard_grabbed"
	ReasonHotkeyGrabbed     Reason = "hotkey_grabbed"
	ReasonServerGrabbed     Reason = "server_grabbed"
	ReasonBusAction         Reason = "bus_action"
	ReasonAccessAction      Reason = "accessibility_action"
	ReasonPersonInputLost   Reason = "person_input_lost"
	ReasonPersonInputTwice  Reason = "person_input_duplicated"
	ReasonPersonInputOrder  Reason = "person_input_disordered"
	ReasonPersonInputLate   Reason = "person_input_late"
	// Effects.
	ReasonEffectMissing   Reason = "effect_missing"
	ReasonEffectRepeated  Reason = "effect_repeated"
	ReasonEffectElsewhere Reason = "effect_elsewhere"
	ReasonEffectWrong     Reason = "effect_wrong"
	ReasonTrustWrong      Reason = "trust_wrong"
	ReasonNotOffered      Reason = "not_offered"
	ReasonJournalForged   Reason = "journal_forged"
	// Calls.
	ReasonRefused           Reason = "refused"
	ReasonRefusalMissing    Reason = "refusal_missing"
	ReasonRefusalWrong      Reason = "refusal_wrong"
	ReasonRefusalMalformed  Reason = "refusal_malformed"
	ReasonRefusalMutated    Reason = "refusal_mutated"
	ReasonRefusalLate       Reason = "refusal_late"
	ReasonReceiptUntrue     Reason = "receipt_untrue"
	ReasonEffectUnconfirmed Reason = "effect_unconfirmed"
	ReasonReceiptMalformed  Reason = "receipt_malformed"
	ReasonReceiptMissing    Reason = "receipt_missing"
	ReasonReceiptUnexpected Reason = "receipt_unexpected"
	ReasonBindWrong         Reason = "bind_wrong"
	ReasonSnapshotWrong     Reason = "snapshot_wrong"
	ReasonStaleAccepted     Reason = "stale_accepted"
	ReasonGenerationKept    Reason = "generation_kept"
	ReasonBudgetMissed      Reason = "budget_missed"
	ReasonEngineGone        Reason = "engine_gone"
	ReasonResultMalformed   Reason = "result_malformed"
	ReasonDeclMismatch      Reason = "declaration_mismatch"
	ReasonDeclIncomplete    Reason = "declaration_incomplete"
	ReasonIdentifierLeaked  Reason = "identifier_leaked"
	ReasonEngineLeaked      Reason = "engine_leaked"
	// System.
	ReasonProfileNotOwn    Reason = "profile_not_own"
	ReasonProfileMode      Reason = "profile_mode"
	ReasonProfileUnused    Reason = "profile_unused"
	ReasonProfileLeft      Reason = "profile_left"
	ReasonProcessLeft      Reason = "process_left"
	ReasonSandboxOff       Reason = "sandbox_off"
	ReasonListenerExposed  Reason = "listener_exposed"
	ReasonProbed           Reason = "probed"
	ReasonUndeclaredEffect Reason = "side_effect_undeclared"
	ReasonOverdeclared     Reason = "side_effect_overdeclared"
	ReasonBystanderHarmed  Reason = "bystander_harmed"
	ReasonPostureUntrue    Reason = "posture_untrue"
	ReasonDecoyReached     Reason = "decoy_reached"
	ReasonProfileTouched   Reason = "person_profile_touched"
	// Harness and environment.
	ReasonBundleLeaked      Reason = "bundle_leaked"
	ReasonScanBlind         Reason = "scan_blind"
	ReasonFilmMissing       Reason = "film_missing"
	ReasonFilmUndecodable   Reason = "film_undecodable"
	ReasonFilmUnstamped     Reason = "film_unstamped"
	ReasonFilmBlack         Reason = "film_black"
	ReasonFilmFrozen        Reason = "film_frozen"
	ReasonFilmShort         Reason = "film_short"
	ReasonMaskBroken        Reason = "mask_broken"
	ReasonGuardLost         Reason = "guard_lost"
	ReasonControlMissed     Reason = "control_missed"
	ReasonPreconditionUnmet Reason = "precondition_unmet"
	ReasonTooFewSeen        Reason = "too_few_seen"
	ReasonRowCut            Reason = "row_cut"
	ReasonHarnessFault      Reason = "harness_fault"
	ReasonEnvironmentFault  Reason = "environment_fault"
	ReasonClockStarved      Reason = "clock_starved"
	ReasonObservationsBad   Reason = "observations_malformed"
)

// Finding is one requirement that did not hold in a row, with the observation that shows it first.
type Finding struct {
	Requirement matrix.RequirementID `json:"requirement"`
	Reason      Reason               `json:"reason"`
	// Observation is the Seq of the first observation that shows it; 0 when an observation is missing.
	Observation int `json:"observation"`
	// Step names the step it happened in.
	Step string `json:"step,omitempty"`
	// Text explains it to a reader: what was expected and what was seen.
	Text string `json:"text"`
}

// Verdict is the judge's answer on one row.
type Verdict struct {
	Row          matrix.RowID `json:"row"`
	Outcome      Outcome      `json:"outcome"`
	Findings     []Finding    `json:"findings,omitempty"`
	JudgeVersion string       `json:"judge_version"`
}
