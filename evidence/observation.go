package evidence

import (
	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/matrix"
)

// Kind is the kind of an observation. Each kind has its own payload field in [Observation].
type Kind string

// The closed list of kinds. An unknown kind in a file is an error of the bundle, never ignored.
const (
	// KindBegin opens a row, KindEnd closes it; a row without both was cut.
	KindBegin Kind = "begin"
	KindEnd   Kind = "end"
	// KindStep says that a step began or ended, with its outcome for the harness.
	KindStep Kind = "step"
	// KindCall is one engine call with its result, after its window of time was closed.
	KindCall Kind = "call"
	// KindJournal is one event that a page reported.
	KindJournal Kind = "journal"
	// KindDesk is one violation-class event of the desk's event log, or an effect in the prepare phase.
	KindDesk Kind = "desk"
	// KindControls is one round of positive controls.
	KindControls Kind = "controls"
	// KindGuard is the health of one guard channel over the row.
	KindGuard Kind = "guard"
	// KindPerson compares what the person did with what the sentinel received.
	KindPerson Kind = "person"
	// KindPrecondition is one measured precondition.
	KindPrecondition Kind = "precondition"
	// KindSystem is a fact about processes, profiles, sockets, files.
	KindSystem Kind = "system"
	// KindScan is one canary scan (raw output, bundle, temporary files).
	KindScan Kind = "scan"
	// KindFilm is what the check of the row's film found.
	KindFilm Kind = "film"
	// KindFault is a fault of the harness or the environment.
	KindFault Kind = "fault"
	// KindHeartbeat is the greatest gap of the harness's own heartbeat over the row.
	KindHeartbeat Kind = "heartbeat"
	// KindDeclaration is the runtime declaration compared with the engine file.
	KindDeclaration Kind = "declaration"
)

// Phase of a row.
type Phase string

// The closed list of phases (design section 6).
const (
	PhasePrepare    Phase = "prepare"
	PhaseBackground Phase = "background"
	PhaseCleanup    Phase = "cleanup"
)

// Observation is one thing seen, numbered from 1 without gaps within its row. MonoNS is CLOCK_MONOTONIC in nanoseconds, relative to the
// run's start. Exactly the payload that belongs to Kind is set.
type Observation struct {
	Seq    int    `json:"seq"`
	MonoNS int64  `json:"mono_ns"`
	Kind   Kind   `json:"kind"`
	Phase  Phase  `json:"phase"`
	Step   string `json:"step,omitempty"`

	Begin        *Begin        `json:"begin,omitempty"`
	End          *End          `json:"end,omitempty"`
	StepInfo     *StepInfo     `json:"step_info,omitempty"`
	Call         *Call         `json:"call,omitempty"`
	Journal      *Journal      `json:"journal,omitempty"`
	Desk         *Desk         `json:"desk,omitempty"`
	Controls     *Controls     `json:"controls,omitempty"`
	Guard        *Guard        `json:"guard,omitempty"`
	Person       *Person       `json:"person,omitempty"`
	Precondition *Precondition `json:"precondition,omitempty"`
	System       *System       `json:"system,omitempty"`
	Scan         *Scan         `json:"scan,omitempty"`
	Film         *Film         `json:"film,omitempty"`
	Fault        *Fault        `json:"fault,omitempty"`
	Heartbeat    *Heartbeat    `json:"heartbeat,omitempty"`
	Declaration  *Declaration  `json:"declaration,omitempty"`
}

// Begin names the row and the plan that it belongs to.
type Begin struct {
	Row     matrix.RowID `json:"row"`
	Attempt int          `json:"attempt"`
	Plan    string       `json:"plan_digest"`
}

// End says that everything of the row was written.
type End struct {
	Observations int `json:"observations"`
}

// StepInfo brackets a step. Outcome is "done" or "failed" (the harness could not do its own part); Note says why in bounded words.
type StepInfo struct {
	Verb    string `json:"verb"`
	StartNS int64  `json:"start_ns"`
	EndNS   int64  `json:"end_ns"`
	Outcome string `json:"outcome"`
	Note    string `json:"note,omitempty"`
}

// Call is one engine call. StartNS is dispatch, ReplyNS the reply, ClosedNS the end of its window of time. Carrier is set when no
// result came: "timeout", "gone", "malformed", or "not_offered" when the engine has no such tool. Violations lists what the result breaks in its published schema or vocabulary.
type Call struct {
	Operation  engine.Operation `json:"operation"`
	ArgsDigest string           `json:"args_sha256"`
	// Page is the tab reference that the call was aimed at, empty when it was aimed at none. Chars counts the code points that a type
	// call was asked for. Arrange is true for calls that arrange the desk before the row's own steps.
	Page    string `json:"page,omitempty"`
	Chars   int    `json:"chars,omitempty"`
	Arrange bool   `json:"arrange,omitempty"`
	// Grouped is true for a call of a group or of a repeated step: its window of time was closed together with those of the others.
	Grouped bool `json:"grouped,omitempty"`
	// Block names the repeat or race that the call was made in, Round and Lane its place there, from 1. Such a call has no window of time of
	// its own: ClosedNS is ReplyNS.
	Block      string          `json:"block,omitempty"`
	Round      int             `json:"round,omitempty"`
	Lane       int             `json:"lane,omitempty"`
	StartNS    int64           `json:"start_ns"`
	ReplyNS    int64           `json:"reply_ns"`
	ClosedNS   int64           `json:"closed_ns"`
	Carrier    string          `json:"carrier,omitempty"`
	Status     engine.Status   `json:"status,omitempty"`
	Refusal    *engine.Refusal `json:"refusal,omitempty"`
	Receipt    *engine.Receipt `json:"receipt,omitempty"`
	Bind       *BindResult     `json:"bind,omitempty"`
	Snapshot   *SnapshotResult `json:"snapshot,omitempty"`
	Violations []string        `json:"violations,omitempty"`
}

// BindResult is what a bind said, without titles.
type BindResult struct {
	Quality         engine.Quality `json:"quality"`
	MutationAllowed bool           `json:"mutation_allowed"`
	Generation      string         `json:"generation"`
	Posture         engine.Posture `json:"posture"`
	// Active holds one entry a tab: "true", "false" or "null".
	Active []string `json:"active"`
}

// SnapshotResult is what a snapshot listed. Values are kept out; names are those of fixture pages.
type SnapshotResult struct {
	Provenance engine.Provenance `json:"provenance"`
	Complete   bool              `json:"complete"`
	Total      int               `json:"total"`
	Nodes      []matrix.RoleName `json:"nodes"`
}

// Journal is one page event. Page is the tab reference of the row; Document counts documents of that tab from 1. Origin is "browser" when
// the reporting connection belongs to the bound browser's process tree, "engine" when it belongs to the engine's own process, "harness" to
// ours, "other" to another process, "unknown" when no process could be named. Reason is set when the report was not accepted as the page's own.
type Journal struct {
	Page     string `json:"page"`
	File     string `json:"file"`
	Document int    `json:"document"`
	Order    int    `json:"order"`
	Type     string `json:"type"`
	Control  string `json:"control,omitempty"`
	Value    string `json:"value,omitempty"`
	// ValueDigest replaces Value for secret controls: keyed digest, hex.
	ValueDigest string `json:"value_digest,omitempty"`
	Trusted     bool   `json:"trusted"`
	Signed      bool   `json:"signed"`
	Origin      string `json:"origin"`
	Reason      string `json:"reason,omitempty"`
}

// Actor says whose process did something to the desk.
type Actor string

// The closed list of actors.
const (
	ActorEngine        Actor = "engine"
	ActorBrowser       Actor = "browser"
	ActorWindowManager Actor = "window_manager"
	ActorPerson        Actor = "person"
	ActorControls      Actor = "controls"
	ActorHarness       Actor = "harness"
	ActorStranger      Actor = "stranger"
	ActorUnknown       Actor = "unknown"
)

// Actors lists them. What each may do stands in actors.yaml.
var Actors = []Actor{ActorEngine, ActorBrowser, ActorWindowManager, ActorPerson, ActorControls, ActorHarness, ActorStranger, ActorUnknown}

// ReadDisclosed is the reason of a desk event that is no violation: somebody read the person's window, or listened to what is sent to it. It is kept
// so that a reader sees it, and judged by nobody.
const ReadDisclosed Reason = "window_read"

// Desk is one event of the desk that the policy does not allow to everybody. Cause names the step whose call was in flight at EventNS, or
// whose window of time was the last before it; empty before the first call.
type Desk struct {
	EventNS     int64                `json:"event_ns"`
	Requirement matrix.RequirementID `json:"requirement"`
	Reason      Reason               `json:"reason"`
	Actor       Actor                `json:"actor"`
	// PID and Exe are the actor's process and the name of its executable, 0 and empty when the X server does not know them, as of effects.
	PID     int    `json:"pid,omitempty"`
	Exe     string `json:"exe,omitempty"`
	Request string `json:"request,omitempty"`
	Channel string `json:"channel"`
	// Window is the role of the window: person, bystander, target, other, root.
	Window string `json:"window,omitempty"`
	// InFlight is true when a call's window of time was open.
	InFlight bool   `json:"in_flight"`
	Detail   string `json:"detail,omitempty"`
}

// Controls is one round: which kinds were committed by the controls process and which of them every responsible channel saw.
type Controls struct {
	// When is "before" or "after", or "desk" for the kinds that are committed once on a desk.
	When      string   `json:"when"`
	Committed []string `json:"committed"`
	Missed    []string `json:"missed,omitempty"`
	TookNS    int64    `json:"took_ns"`
}

// Guard is one channel of the event log.
type Guard struct {
	Channel string `json:"channel"`
	Alive   bool   `json:"alive"`
	Events  int    `json:"events"`
	Dropped int    `json:"dropped"`
	Reason  string `json:"reason,omitempty"`
}

// Person is the comparison of what was injected with what the sentinel received, over the background phase.
type Person struct {
	Injected   int `json:"injected"`
	Received   int `json:"received"`
	Lost       int `json:"lost"`
	Duplicated int `json:"duplicated"`
	Disordered int `json:"disordered"`
	// Foreign counts input at the sentinel that the person did not make, Forged such with the send_event bit, and Stray all input that
	// reached the bystander, whom nobody types to.
	Foreign int `json:"foreign"`
	Forged  int `json:"forged"`
	Stray   int `json:"stray"`
	// LatestNS is the longest time between the end of a stroke and its arrival.
	LatestNS int64 `json:"latest_ns"`
	// LostStrokes names the first of the lost: key or click, its number, and when it was made (CLOCK_MONOTONIC, ns).
	LostStrokes []string `json:"lost_strokes,omitempty"`
}

// Precondition is one measured fact that the row rests on.
type Precondition struct {
	Name string `json:"name"`
	Want string `json:"want"`
	Got  string `json:"got"`
	Met  bool   `json:"met"`
}

// System is one fact about processes, profiles, sockets or files. Fact is a closed word: see [SystemFacts].
type System struct {
	Fact  string `json:"fact"`
	Holds bool   `json:"holds"`
	// Count is the number behind the fact, for example processes left.
	Count  int    `json:"count"`
	Detail string `json:"detail,omitempty"`
}

// The closed list of system facts.
const (
	// FactProfileOwn: the browser runs on a profile directory that did not exist before.
	FactProfileOwn = "profile_own"
	// FactProfileMode: the profile directory has mode 0700.
	FactProfileMode = "profile_mode_0700"
	// FactProfileUsed: the browser holds files of that directory open.
	FactProfileUsed = "profile_used"
	// FactProfileGone: the profile directory is gone after the session.
	FactProfileGone = "profile_gone"
	// FactProcessesGone: no process of the browser is left after the session.
	FactProcessesGone = "processes_gone"
	// FactSandboxOn: the browser runs with its sandbox, under an ordinary uid.
	FactSandboxOn = "sandbox_on"
	// FactLoopbackOnly: every listener of engine and browser is loopback; looked at after a launch and all through the row.
	FactLoopbackOnly = "loopback_only"
	// FactNoRequests: the engine's tree made no X request during the step; FactNoConnections: no connection.
	FactNoRequests    = "no_x_requests"
	FactNoConnections = "no_connections"
	// FactEndpointUntouched: nobody connected to the endpoint of the person's browser during the step; a connection of ours was seen there
	// afterwards (S5).
	FactEndpointUntouched = "endpoint_untouched"
	// FactDecoyUntouched: nobody connected to the other program's listener that an endpoint file names; a connection of ours was counted
	// there afterwards (S9, S13).
	FactDecoyUntouched = "decoy_untouched"
	// FactPersonProfiles: nobody opened, read, linked or changed anything in the person's own profiles during the row (S3). That the watch
	// sees is guard channel "profiles".
	FactPersonProfiles = "person_profiles_untouched"
	// FactUnchanged: processes, windows, listeners, files and profiles are as before the step, one second after it (R2).
	FactUnchanged = "unchanged_after_refusal"
	// FactBrowserAlive: the person's own program still runs (pid and start time).
	FactBystanderAlive = "bystander_alive"
	// FactLaunched: a browser process appeared in the engine's tree during the step. FactWindowOpened: a window did.
	FactLaunched     = "launched"
	FactWindowOpened = "window_opened"
	// FactWindowAbove: a window that appeared lies above one that was there before, be it the person's or another.
	FactWindowAbove = "window_above_another"
	// FactRestarted: the browser that the engine had before a launch is gone after it.
	FactRestarted = "restarted"
	// FactNotAsked: what listened in the place of the browser's endpoint was never connected to.
	FactNotAsked = "impostor_not_asked"
	// FactCut: the connection between engine and browser was cut from outside.
	FactCut = "connection_cut"
	// FactEngineLives: at the row's end the engine runs, which the row itself had not killed; it is looked at in every row but those.
	FactEngineLives = "engine_lives"
	// FactOneConnection: while the browser was frozen the engine asked it for at most one new connection, however many called; Count is how many.
	FactOneConnection = "one_connection_asked_for"
	// FactGarbled: the engine was sent what its browser never said, over their own connection; Detail is the kind (matrix.GarbleKinds), Count the
	// bytes.
	FactGarbled = "messages_garbled"
	// FactEngineKilled: the engine was killed with SIGKILL while it had browsers with profiles; Count is how many processes it had started.
	FactEngineKilled = "engine_killed"
	// FactBrowserKilled and FactRenderersKilled: the browser, or all processes of its pages, were killed; FactFrozen and FactThawed: it was
	// stopped, and let go on; FactEngineAgain: another process of the engine runs after one was killed.
	FactBrowserKilled   = "browser_killed"
	FactRenderersKilled = "renderers_killed"
	FactFrozen          = "browser_frozen"
	FactThawed          = "browser_thawed"
	FactEngineAgain     = "engine_started_again"
	// FactIdentifiersHeard: identifiers that the browser issued were heard on the wire, as many as it takes to look for them (B23).
	FactIdentifiersHeard = "identifiers_heard"
	// FactKilledProcesses: none of the processes that a killed engine had started is left. FactKilledProfiles: none of its browsers'
	// profiles. Both by the engine's own means, for the harness ends nothing before they are measured (S11).
	FactKilledProcesses = "processes_gone_after_kill"
	FactKilledProfiles  = "profiles_gone_after_kill"
)

// SystemFacts lists every fact.
var SystemFacts = []string{FactProfileOwn, FactProfileMode, FactProfileUsed, FactProfileGone, FactProcessesGone, FactSandboxOn, FactLoopbackOnly,
	FactNoRequests, FactNoConnections, FactEndpointUntouched, FactPersonProfiles, FactDecoyUntouched, FactUnchanged, FactBystanderAlive, FactLaunched, FactRestarted, FactWindowOpened, FactWindowAbove, FactNotAsked, FactCut, FactGarbled, FactEngineLives, FactOneConnection,
	FactBrowserKilled, FactRenderersKilled, FactFrozen, FactThawed, FactEngineAgain, FactIdentifiersHeard, FactEngineKilled, FactKilledProcesses, FactKilledProfiles}

// Scan is one canary scan. What is "engine_raw" (results, stderr, tapped before our redactor), "engine_files" (what the engine wrote), "bundle" (the row's files) or "temporary".
type Scan struct {
	What         string        `json:"what"`
	Files        int           `json:"files"`
	Bytes        int64         `json:"bytes"`
	ControlFound bool          `json:"control_found"`
	Findings     []ScanFinding `json:"findings,omitempty"`
}

// ScanFinding names a canary by id and channel, never its value. Channel "identifier" stands for an id that the browser issued (B23).
type ScanFinding struct {
	Canary   string `json:"canary"`
	Channel  string `json:"channel"`
	Encoding string `json:"encoding"`
	Where    string `json:"where"`
}

// Film is what the decoder found.
type Film struct {
	Present    bool    `json:"present"`
	Decodes    bool    `json:"decodes"`
	Frames     int     `json:"frames"`
	SideFrames int     `json:"side_frames"`
	Monotonic  bool    `json:"monotonic"`
	CodesRead  int     `json:"codes_read"`
	CodesWrong int     `json:"codes_wrong"`
	CodesTried int     `json:"codes_tried"`
	BlackRatio float64 `json:"black_ratio"`
	// LongestStillNS is the longest time without any change of pixels outside the code, while the desk moved.
	LongestStillNS int64 `json:"longest_still_ns"`
	// MaxGapNS is the longest time between two captures.
	MaxGapNS int64 `json:"max_gap_ns"`
	// MaskedFrames counts the areas of frames that the side file says are black and that were looked at in the film; MasksSolid says that all of them
	// are.
	MaskedFrames int  `json:"masked_frames"`
	MasksSolid   bool `json:"masks_solid"`
	// SpanNS is first to last frame; CoversRow says that it spans the row's steps.
	SpanNS    int64  `json:"span_ns"`
	CoversRow bool   `json:"covers_row"`
	Note      string `json:"note,omitempty"`
}

// Fault is a fault that is not the engine's. Whose is "harness" or "environment".
type Fault struct {
	Whose string `json:"whose"`
	What  string `json:"what"`
}

// Heartbeat is the greatest gap between two beats of the harness's own clock during the row.
type Heartbeat struct {
	MaxGapNS int64 `json:"max_gap_ns"`
}

// Declaration compares the runtime declaration with the engine file: Differences are bounded words such as "click/trusted_input/...".
type Declaration struct {
	Total       bool     `json:"total"`
	Differences []string `json:"differences,omitempty"`
}
