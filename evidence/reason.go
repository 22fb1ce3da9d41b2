package evidence

import (
	"maps"

	"github.com/engine-acceptance/acceptance/matrix"
)

// class says who answers for a reason. It decides the outcome of a row and the weight of a finding in a decision.
type class int

const (
	// classUnknown is the zero value: a reason that the table lacks is a malformed verdict.
	classUnknown class = iota
	classEngine
	classGuard
	classPrecondition
	classEnvironment
	classHarness
)

// reasonClass is total over the closed list of reasons; a test holds it so.
var reasonClass = map[Reason]class{
	ReasonFocusLeft: classEngine, ReasonStackingChanged: classEngine, ReasonCoverChanged: classEngine, ReasonPointerMoved: classEngine,
	ReasonPointerWarped: classEngine, ReasonPointerGrabbed: classEngine, ReasonMasterAdded: classEngine, ReasonInputLeaked: classEngine,
	ReasonInputForged: classEngine, ReasonWindowAbovePerson: classEngine, ReasonUrgencyRaised: classEngine, ReasonWorkspaceChanged: classEngine,
	ReasonOpacityChanged: classEngine, ReasonClipboardTaken: classEngine, ReasonPrimaryTaken: classEngine, ReasonKeymapChanged: classEngine,
	ReasonKeyboardGrabbed: classEngine, ReasonHotkeyGrabbed: classEngine, ReasonServerGrabbed: classEngine, ReasonBusAction: classEngine,
	ReasonAccessAction: classEngine, ReasonPersonInputLost: classEngine,
	ReasonPersonInputTwice: classEngine, ReasonPersonInputOrder: classEngine, ReasonPersonInputLate: classEngine,

	ReasonEffectMissing: classEngine, ReasonEffectRepeated: classEngine, ReasonEffectElsewhere: classEngine, ReasonEffectWrong: classEngine,
	ReasonTrustWrong: classEngine, ReasonJournalForged: classEngine,

	ReasonRefused: classEngine, ReasonRefusalMissing: classEngine, ReasonRefusalWrong: classEngine, ReasonRefusalMalformed: classEngine,
	ReasonRefusalMutated: classEngine, ReasonRefusalLate: classEngine, ReasonReceiptUntrue: classEngine, ReasonReceiptMalformed: classEngine,
	ReasonReceiptMissing: classEngine, ReasonReceiptUnexpected: classEngine, ReasonEffectUnconfirmed: classEngine, ReasonBindWrong: classEngine,
	ReasonSnapshotWrong: classEngine, ReasonStaleAccepted: classEngine, ReasonGenerationKept: classEngine, ReasonBudgetMissed: classEngine,
	ReasonEngineGone: classEngine, ReasonResultMalformed: classEngine, ReasonDeclMismatch: classEngine, ReasonDeclIncomplete: classEngine,
	ReasonIdentifierLeaked: classEngine, ReasonEngineLeaked: classEngine, ReasonNotOffered: classEngine,

	ReasonProfileNotOwn: classEngine, ReasonProfileMode: classEngine, ReasonProfileUnused: classEngine, ReasonProfileLeft: classEngine,
	ReasonProcessLeft: classEngine, ReasonListenerExposed: classEngine, ReasonProbed: classEngine, ReasonUndeclaredEffect: classEngine,
	ReasonOverdeclared: classEngine, ReasonBystanderHarmed: classEngine, ReasonProfileTouched: classEngine, ReasonDecoyReached: classEngine, ReasonPostureUntrue: classEngine,

	ReasonGuardLost: classGuard, ReasonControlMissed: classGuard,

	ReasonPreconditionUnmet: classPrecondition,

	ReasonSandboxOff: classEnvironment, ReasonEnvironmentFault: classEnvironment, ReasonClockStarved: classEnvironment,

	ReasonBundleLeaked: classHarness, ReasonScanBlind: classHarness, ReasonFilmMissing: classHarness, ReasonFilmUndecodable: classHarness,
	ReasonFilmUnstamped: classHarness, ReasonFilmBlack: classHarness, ReasonFilmFrozen: classHarness, ReasonFilmShort: classHarness,
	ReasonMaskBroken: classHarness, ReasonTooFewSeen: classHarness, ReasonRowCut: classHarness, ReasonHarnessFault: classHarness,
	ReasonObservationsBad: classHarness,
}

// deskReasons are the violations of the desk, each with the requirement that it breaks. The guard has its own list; a test holds that both agree.
var deskReasons = map[Reason]matrix.RequirementID{
	ReasonFocusLeft: "D1", ReasonStackingChanged: "D2", ReasonCoverChanged: "D2",
	ReasonPointerMoved: "D3", ReasonPointerWarped: "D3", ReasonPointerGrabbed: "D3", ReasonMasterAdded: "D3",
	ReasonInputLeaked: "D4", ReasonInputForged: "D4",
	ReasonWindowAbovePerson: "D5", ReasonUrgencyRaised: "D5", ReasonWorkspaceChanged: "D5", ReasonOpacityChanged: "D5",
	ReasonClipboardTaken: "D6", ReasonPrimaryTaken: "D6", ReasonKeymapChanged: "D6", ReasonKeyboardGrabbed: "D6",
	ReasonHotkeyGrabbed: "D6", ReasonServerGrabbed: "D6",
	ReasonBusAction: "D8", ReasonAccessAction: "D8",
}

// DeskReasons lists the violations of the desk, each with the requirement that it breaks.
func DeskReasons() map[Reason]matrix.RequirementID { return maps.Clone(deskReasons) }

// Reasons lists the closed list, sorted.
func Reasons() []Reason { return sortedKeys(reasonClass) }

// EngineAnswers reports whether a reason is charged to the engine.
func EngineAnswers(r Reason) bool { return reasonClass[r] == classEngine }
