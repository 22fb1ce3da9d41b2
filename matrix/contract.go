package matrix

import (
	"fmt"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
)

// RequirementID names one requirement of requirements.yaml, for example "M5".
type RequirementID string

// RowID names one planned row: the stem and its axes, sorted, for example "type-unicode[state=inactive_tab]".
type RowID string

// EnvironmentID names one environment, for example "x11".
type EnvironmentID string

// Launch says whether rows may share a browser.
type Launch string

// The closed list of launch modes.
const (
	// LaunchFresh: a browser of its own, launched and ended in the row.
	LaunchFresh Launch = "fresh"
	// LaunchShared: one session and browser for a batch of rows; each row opens its own pages.
	LaunchShared Launch = "shared"
	// LaunchNone: the row launches itself, or needs no browser of the engine at all.
	LaunchNone Launch = "none"
)

// Person says where the person's window is.
type Person string

// The closed list of positions of the person's window relative to the browser's first window.
const (
	PersonCovers       Person = "covers"
	PersonPartlyCovers Person = "partly_covers"
	PersonBeside       Person = "beside"
)

// DeskKind is a kind of desk: a display server with its window manager, of its own.
type DeskKind string

// The closed list of kinds of desk.
const (
	// DeskOpenbox is openbox as its package configures it: the reference.
	DeskOpenbox DeskKind = "openbox"
	// DeskAbove: the person keeps the own window above all others, by that window's property.
	DeskAbove DeskKind = "openbox+above"
	// DeskPicom: with the compositor picom.
	DeskPicom DeskKind = "openbox+picom"
	// DeskTwoOutputs: the screen is two outputs beside each other.
	DeskTwoOutputs DeskKind = "openbox+two-outputs"
	// DeskScale2: the session asks for two device pixels to each pixel of an application.
	DeskScale2 DeskKind = "openbox+scale-2"
)

// DeskKinds lists every kind of desk, the reference first.
var DeskKinds = []DeskKind{DeskOpenbox, DeskAbove, DeskPicom, DeskTwoOutputs, DeskScale2}

// Hidden says how a window is kept from being seen without anything lying over it.
type Hidden string

// The closed list of ways to hide a window; empty is none.
const (
	// HiddenMinimised: the window is an icon.
	HiddenMinimised Hidden = "minimised"
	// HiddenElsewhere: the window is on another workspace than the one that is shown.
	HiddenElsewhere Hidden = "other_workspace"
)

// Contract is one planned row for one product in one environment: what is done and what must be seen. It is all that a judge needs
// beside the observations, and it is fixed by the plan's digest before the run. JSON field order is irrelevant (canonical JSON).
type Contract struct {
	ID          RowID             `json:"id"`
	Stem        string            `json:"stem"`
	Axes        map[string]string `json:"axes,omitempty"`
	Requirement RequirementID     `json:"requirement"`
	// Aspect is the part of the requirement that the row proves, when the requirement has parts.
	Aspect string `json:"aspect,omitempty"`
	// Duty is "engine" or "harness", copied from the requirement.
	Duty        Duty           `json:"duty"`
	Title       string         `json:"title"`
	Product     engine.Product `json:"product"`
	Environment EnvironmentID  `json:"environment"`
	// Needs is the capability that the row exercises; nil when it exercises none.
	Needs *engine.Capability `json:"needs,omitempty"`
	// Twin is true when the engine file does not declare Needs: Expect is then the refusal that must come instead.
	Twin   bool          `json:"twin,omitempty"`
	Launch Launch        `json:"launch"`
	Desk   DeskPlan      `json:"desk"`
	Steps  []Step        `json:"steps"`
	Expect Expect        `json:"expect"`
	Budget time.Duration `json:"budget_ns"`
	// Source is the row file and line, relative to the matrix folder.
	Source string `json:"source"`
}

// Duty says who is at fault when a requirement does not hold.
type Duty string

// The closed list of duties.
const (
	DutyEngine  Duty = "engine"
	DutyHarness Duty = "harness"
)

// DeskPlan is the arrangement that the harness makes in the prepare phase.
type DeskPlan struct {
	// Kind is the row's own kind of desk, else its environment's.
	Kind    DeskKind     `json:"kind"`
	Windows []WindowPlan `json:"windows,omitempty"`
	Person  Person       `json:"person"`
	// Decoys are ordinary programs of the person that run beside: "firefox" is an ordinary Firefox without remote agent.
	Decoys []string `json:"decoys,omitempty"`
	// Machine is the state of the machine that the engine finds when it is started for the row; see [Machines]. Empty is a sound one.
	Machine string `json:"machine,omitempty"`
}

// Machines are the states of a machine that the engine can be started on: what the person's system may be like when it is not as it should be.
var Machines = []string{
	// No program of the browser can be executed; it ends at once; it runs and opens no endpoint; it shows no window.
	"browser_missing", "browser_exits", "browser_silent", "browser_headless",
	// The browser's endpoint file names another program's port when it starts, and does until its own endpoint is open, or for ever.
	"endpoint_stale", "endpoint_elsewhere",
	// Nothing can be written where the engine keeps things; everything lies below a directory with an odd name.
	"profiles_unwritable", "paths_odd",
	// There is no display; there is one whose server does not say whose a window is.
	"display_missing", "xres_missing",
}

// WindowPlan is one browser window. The first is the one that the launch opens; others are opened by the person, who clicks a fixture
// link (opened: person), or by the page's own script at load (opened: page).
type WindowPlan struct {
	Opened string `json:"opened"`
	// Bounds is the client rectangle that the harness gives the window through the window manager; nil leaves it alone.
	Bounds *Bounds `json:"bounds,omitempty"`
	// Hidden is how the harness hides the window through the window manager, once its pages are loaded.
	Hidden Hidden    `json:"hidden,omitempty"`
	Tabs   []TabPlan `json:"tabs"`
}

// Bounds is a rectangle in root pixels.
type Bounds struct {
	X int `json:"x" yaml:"x"`
	Y int `json:"y" yaml:"y"`
	W int `json:"w" yaml:"w"`
	H int `json:"h" yaml:"h"`
}

// TabPlan is one tab: a page of the fixture server, with the query that the page itself reads if any, and whether it is the one that its window shows (the first is).
type TabPlan struct {
	Page string `json:"page"`
	// Title overrides the page's title, for rows about twins.
	Title   string `json:"title,omitempty"`
	Visible bool   `json:"visible,omitempty"`
}

// Step is one thing done. Verb names a verb of [Verbs]; Args are checked against its fields. Name is how expectations refer to it; the
// default is the verb with its position ("click-3").
type Step struct {
	Name string         `json:"name"`
	Verb string         `json:"verb"`
	Args map[string]any `json:"args,omitempty"`
	// Background is true from the first bind to the session's end: there the desk is absolute.
	Background bool `json:"background,omitempty"`
	// Lanes are the steps inside a block: one list for repeat, several for race. First are those that come before the lanes in each round.
	Lanes [][]Step `json:"lanes,omitempty"`
	First []Step   `json:"first,omitempty"`
}

// Expect is what must be seen. What every row must show without being told (desk untouched in the background, a signed journal, receipts
// that agree with the oracles, no leak, no residue, a whole film) is not written here: the judge always asks for it.
type Expect struct {
	Effect []EffectExpect `json:"effect,omitempty"`
	// Elsewhere "silent": no control and no document beside those of Effect saw an event or changed.
	Elsewhere string           `json:"elsewhere,omitempty"`
	Receipt   []ReceiptExpect  `json:"receipt,omitempty"`
	Refusal   []RefusalExpect  `json:"refusal,omitempty"`
	Bind      []BindExpect     `json:"bind,omitempty"`
	Snapshot  []SnapshotExpect `json:"snapshot,omitempty"`
	// Profile asks for the proofs of S1: own directory with mode 0700, really used, nothing left.
	Profile *ProfileExpect `json:"profile,omitempty"`
	// Probes "none": the engine's process tree made no X request and no connection during the step (S10).
	Probes string `json:"probes,omitempty"`
	// Generation pairs of steps whose generations must differ.
	Generation []GenerationExpect `json:"generation,omitempty"`
	// Rounds are floors for steps that are repeated.
	Rounds []RoundsExpect `json:"rounds,omitempty"`
	// Identifiers "hidden": what the browser answers is listened to on the wire, and nothing that it issued occurs in what the engine says (B23).
	Identifiers string `json:"identifiers,omitempty"`
	// Forged asks that a forged report was seen and named (harness rows of M18).
	Forged string `json:"forged,omitempty"`
	// Blocks say what blocks must show, one entry a block.
	Blocks []BlockExpect `json:"blocks,omitempty"`
}

// EffectExpect is one change that a page must have reported. Page is the tab reference of the row ("w1/tab 2"); Control the
// data-control name. Exactly one of Value (the control's final value) or Event (an event type) is set, or both.
type EffectExpect struct {
	Page    string  `json:"page"`
	Control string  `json:"control,omitempty"`
	Value   *string `json:"value,omitempty"`
	Event   string  `json:"event,omitempty"`
	// Count is how many times the event must occur, or the page be loaded; 0 means once.
	Count int `json:"count,omitempty"`
	// AtLeast is a floor in the place of Count: so many times, or more.
	AtLeast int   `json:"at_least,omitempty"`
	Trusted *bool `json:"trusted,omitempty"`
	// Loaded asks that the page of this name was loaded in the tab.
	Loaded string `json:"loaded,omitempty"`
}

// ReceiptExpect is what the receipt of a step must say. Empty fields are not asked; every field is compared with the oracles anyway.
type ReceiptExpect struct {
	Of          string          `json:"of"`
	Effect      []engine.Effect `json:"effect,omitempty"`
	Trust       engine.Trust    `json:"trust,omitempty"`
	Route       engine.Route    `json:"route,omitempty"`
	SideEffects map[string]bool `json:"side_effects,omitempty"`
	// ValueBefore is what the receipt must say that was replaced.
	ValueBefore *string `json:"value_before,omitempty"`
	// Within is the budget of the call; 0 means the row's.
	Within time.Duration `json:"within_ns,omitempty"`
}

// RefusalExpect is the refusal that a step must return: the trigger's code of refusals.yaml and the typed detail named here.
type RefusalExpect struct {
	Of      string            `json:"of"`
	Code    engine.Code       `json:"code"`
	Trigger string            `json:"trigger"`
	Detail  map[string]string `json:"detail,omitempty"`
	// Within is the budget of the refusal; 0 means the plan's default (2 s, 50 ms without wire).
	Within time.Duration `json:"within_ns,omitempty"`
}

// BindExpect is what a bind must return.
type BindExpect struct {
	Of      string         `json:"of"`
	Quality engine.Quality `json:"quality"`
	Tabs    int            `json:"tabs,omitempty"`
	// Active is the expected value for the first tab: "true", "false" or "null".
	Active string `json:"active,omitempty"`
	// Within is the budget of the bind; 0 means the row's.
	Within time.Duration `json:"within_ns,omitempty"`
}

// SnapshotExpect is what a snapshot must hold: each role and name, once; and what it must not.
type SnapshotExpect struct {
	Of    string     `json:"of"`
	Has   []RoleName `json:"has,omitempty"`
	Lacks []RoleName `json:"lacks,omitempty"`
	// Either are lists of which every delivered snapshot of the step holds exactly one, whole, and nothing of the others.
	Either [][]RoleName `json:"either,omitempty"`
}

// RoleName is a role with an accessible name. Frame is main, same_site or other_site; in an expectation it may be empty: any frame.
type RoleName struct {
	Role  string `json:"role" yaml:"role"`
	Name  string `json:"name" yaml:"name"`
	Frame string `json:"frame,omitempty" yaml:"frame"`
}

// ProfileExpect is the proof of S1.
type ProfileExpect struct {
	Of      string         `json:"of"`
	Posture engine.Posture `json:"posture"`
}

// RoundsExpect is the floor of a repeated step: of its calls at least Delivered must be delivered, and the others refused with one of the
// triggers. Whether each is what it should be is judged as for any call. A repeated step without a floor must deliver all of its calls, or be
// refused each time as the row says.
type RoundsExpect struct {
	Of        string   `json:"of"`
	Delivered int      `json:"delivered"`
	Refused   []string `json:"refused"`
}

// GenerationExpect says that two binds are of different generations.
type GenerationExpect struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

// Plan is every expected row of a run, with what fixes their meaning. It is the first file that a run writes.
type Plan struct {
	Format string `json:"format"`
	// Engine names the engine file; EngineFile is its digest (sha256, hex).
	Engine     string `json:"engine"`
	EngineFile string `json:"engine_file_sha256"`
	// MatrixDigest covers every data file that the plan was made from.
	MatrixDigest string         `json:"matrix_sha256"`
	Product      engine.Product `json:"product"`
	Environment  EnvironmentID  `json:"environment"`
	Rows         []Contract     `json:"rows"`
	// Subset is true when the selection left out rows that the full plan has.
	Subset bool `json:"subset"`
	// Left names the rows that the selection left out.
	Left []RowID `json:"left_out,omitempty"`
	// Declared is the capability table of the engine file, total and in canonical order.
	Declared []engine.Claim `json:"declared"`
	// Postures and Reconnect are what the engine file claims beside the table.
	Postures  []engine.Posture `json:"postures"`
	Reconnect bool             `json:"reconnect"`
	// NotApplicable are reviewed exceptions of the engine file: requirement to reason.
	NotApplicable map[RequirementID]string `json:"not_applicable,omitempty"`
	// CoreMissing are core requirements without a row, counted over all rows for this product and environment, before the selection.
	CoreMissing []RequirementID `json:"core_missing,omitempty"`
	// CoreDeliver and CoreHold list the core requirements: deliver and hold of profiles.yaml. CoreAny are groups of which one
	// requirement must be delivered; those are not in CoreDeliver.
	CoreDeliver []RequirementID   `json:"core_deliver"`
	CoreAny     [][]RequirementID `json:"core_any,omitempty"`
	CoreHold    []RequirementID   `json:"core_hold"`
	// Features are those that the engine file claims beyond core. FeatureMissing are those of them with a requirement that no row
	// delivers: such a claim is not shown.
	Features       []string `json:"features,omitempty"`
	FeatureMissing []string `json:"feature_missing,omitempty"`
	// Ceiling is "supported" or "experimental", from the environment; "none" in a refusal lane, where no decision is made.
	Ceiling string `json:"ceiling"`
	// Limits of the environment, printed beside every decision made in it.
	Limits []string `json:"limits,omitempty"`
	// Budgets of design section 13.
	Budgets map[string]time.Duration `json:"budgets_ns"`
	// Requirements are all that apply to the product in the environment, with or without rows, in the order of their file: so the bundle says
	// what sentence a row proves.
	Requirements []PlanRequirement `json:"requirements,omitempty"`
	// Digest is the sha256 of the canonical JSON of the plan with this field empty.
	Digest string `json:"digest"`
}

// PlanRequirement is a requirement as a plan fixes it.
type PlanRequirement struct {
	ID    RequirementID `json:"id"`
	Claim Claim         `json:"claim"`
	Duty  Duty          `json:"duty"`
	// Must is the sentence that its rows prove.
	Must string `json:"must"`
}

// PlanFormat names the format and version of a [Plan].
const PlanFormat = "acceptance.plan/v1"

// PageName is the one name of a tab in observations: the tab reference, with the name under which the row bound that window first. Windows
// are numbered anew after each launch that the row makes, so that a second browser's window is another window. References to opened tabs and
// to windows that no step binds stay as they are.
func (c Contract) PageName(ref string) string {
	r, err := ParseTabRef(ref)
	if err != nil || r.Name != "" {
		return ref
	}
	first, bound := c.boundWindows()
	if w, ok := bound[r.Target]; ok {
		r.Target = first[w]
	}
	return r.String()
}

// rowWindow is one window of a row: the launch of the row that it came with (0 is the arrangement's), and its number on that browser.
type rowWindow struct{ launch, number int }

// boundWindows walks through the steps: the name under which each window is bound first, and the window behind each name.
func (c Contract) boundWindows() (first map[rowWindow]string, bound map[string]rowWindow) {
	first, bound = map[rowWindow]string{}, map[string]rowWindow{}
	launches, of := 0, map[string]int{}
	for _, s := range flat(c.Steps) {
		session := s.Text("session")
		switch s.Verb {
		case "prepare":
			launches++
			of[session] = launches
		case "bind":
			w, name := rowWindow{of[session], s.Int("window")}, s.Text("as")
			if first[w] == "" {
				first[w] = name
			}
			if _, twice := bound[name]; !twice {
				bound[name] = w
			}
		}
	}
	return first, bound
}

// WindowName is the name under which the row binds a window first: window number of the browser of the row's nth launch, 0 for the
// arrangement's. A window that no step binds is named by its number.
func (c Contract) WindowName(launch, number int) string {
	first, _ := c.boundWindows()
	if name := first[rowWindow{launch, number}]; name != "" {
		return name
	}
	return fmt.Sprintf("window %d", number)
}
