package engine

import (
	"context"
	"encoding/json"
)

// Operation is the name of one public tool.
type Operation string

// The public tools. Names that Cua Driver has are kept; declaration, sessions and contexts are ours.
const (
	OpDeclaration  Operation = "engine_declaration"
	OpSessionStart Operation = "session_start"
	OpSessionEnd   Operation = "session_end"
	OpPrepare      Operation = "browser_prepare"
	// OpState binds (mode bind) or reads (mode snapshot).
	OpState      Operation = "get_browser_state"
	OpNavigate   Operation = "browser_navigate"
	OpClick      Operation = "browser_click"
	OpType       Operation = "browser_type"
	OpPointer    Operation = "browser_pointer"
	OpSelect     Operation = "browser_select"
	OpDialog     Operation = "browser_dialog"
	OpUpload     Operation = "browser_set_input_files"
	OpDownload   Operation = "browser_download"
	OpContext    Operation = "browser_context"
	OpScreenshot Operation = "browser_screenshot"
)

// Operations lists every public tool.
var Operations = []Operation{OpDeclaration, OpSessionStart, OpSessionEnd, OpPrepare, OpState, OpNavigate, OpClick, OpType, OpPointer, OpSelect,
	OpDialog, OpUpload, OpDownload, OpContext, OpScreenshot}

// Engine is the public side: one call per tool. Implementations are safe for concurrent use. A call returns a refusal inside the
// result; the error is for faults of the carrier only (a dead process, an answer that is not a result). args is one JSON object of at
// most [MaxArgs] bytes, checked strictly: an unknown field, a wrong type or invalid UTF-8 is refused with trigger "argument".
type Engine interface {
	Call(ctx context.Context, op Operation, args json.RawMessage) (Result, error)
}

// MaxArgs is the greatest size of the arguments of one call, in bytes.
const MaxArgs = 1 << 20

// Status is the outcome class of a result.
type Status string

// The closed list of statuses. The zero value is invalid.
const (
	StatusOK      Status = "ok"
	StatusRefused Status = "refused"
)

// Result is what one call returns. Refusal is set if and only if Status is refused; then nothing else is. Receipt is set for every
// operation that may change something.
type Result struct {
	Status      Status       `json:"status"`
	Refusal     *Refusal     `json:"refusal,omitempty"`
	Receipt     *Receipt     `json:"receipt,omitempty"`
	Declaration *Declaration `json:"declaration,omitempty"`
	Session     *Session     `json:"session,omitempty"`
	Prepared    *Prepared    `json:"prepared,omitempty"`
	Target      *Target      `json:"target,omitempty"`
	Snapshot    *Snapshot    `json:"snapshot,omitempty"`
	Tab         *Tab         `json:"tab,omitempty"`
}

// Refused wraps a refusal as a result.
func Refused(r *Refusal) Result { return Result{Status: StatusRefused, Refusal: r} }

// SessionRequest is the argument of session_start (empty) and session_end.
type SessionRequest struct {
	Session string `json:"session,omitempty"`
}

// Session is one caller's scope. Its end revokes everything minted in it, at once.
type Session struct {
	ID string `json:"id"`
}

// Profile names the profile posture that browser_prepare is asked for.
type Profile struct {
	Kind Posture `json:"kind"`
	// Name is set for isolated_named only.
	Name string `json:"name,omitempty"`
}

// PrepareRequest is the argument of browser_prepare. Without PID it launches (AllowLaunch must be true); with PID and WindowID it asks to
// attach to a running browser.
type PrepareRequest struct {
	Session     string  `json:"session"`
	AllowLaunch bool    `json:"allow_launch,omitempty"`
	Profile     Profile `json:"profile"`
	PID         int     `json:"pid,omitempty"`
	WindowID    uint32  `json:"window_id,omitempty"`
	// TimeoutMS bounds a launch in milliseconds, 500 to 20,000; 0 leaves it to the engine's own budget, which is never exceeded.
	TimeoutMS int `json:"timeout_ms,omitempty"`
}

// Prepared is what browser_prepare returns.
type Prepared struct {
	// Action is launched_isolated_browser, attached_existing_profile or already_prepared.
	Action string `json:"action"`
	PID    int    `json:"prepared_pid"`
	// Windows are the native ids of the windows that the engine opened, known by construction.
	Windows    []uint32 `json:"windows"`
	Posture    Posture  `json:"posture"`
	Generation string   `json:"generation"`
}

// Mode of get_browser_state.
type Mode string

// The closed list of modes.
const (
	ModeBind     Mode = "bind"
	ModeSnapshot Mode = "snapshot"
)

// StateRequest is the argument of get_browser_state. Bind reads Session, PID and WindowID; snapshot reads Session, TargetID, TabID and
// MaxNodes (0 means the engine's own bound).
type StateRequest struct {
	Session  string `json:"session"`
	Mode     Mode   `json:"mode"`
	PID      int    `json:"pid,omitempty"`
	WindowID uint32 `json:"window_id,omitempty"`
	TargetID string `json:"target_id,omitempty"`
	TabID    string `json:"tab_id,omitempty"`
	MaxNodes int    `json:"max_nodes,omitempty"`
}

// Target is a native window bound to engine contexts.
type Target struct {
	ID              string  `json:"target_id"`
	Quality         Quality `json:"binding_quality"`
	Route           string  `json:"binding_route"`
	Posture         Posture `json:"posture"`
	MutationAllowed bool    `json:"mutation_allowed"`
	Generation      string  `json:"generation"`
	Tabs            []Tab   `json:"tabs"`
}

// Tab is one browsing context of a bound window.
type Tab struct {
	ID    string `json:"tab_id"`
	Title string `json:"title"`
	// Active is true or false only when provable, else null (contract B17).
	Active *bool `json:"active"`
}

// Snapshot is a bounded list of what can be acted on in one document.
type Snapshot struct {
	ID         string     `json:"snapshot_id"`
	TabID      string     `json:"tab_id"`
	Provenance Provenance `json:"provenance"`
	Complete   bool       `json:"complete"`
	// TotalNodes counts what could have been listed; Omitted says how many of them were left out, by reason (hidden, budget, unprovable_frame).
	TotalNodes int            `json:"total_nodes"`
	Omitted    map[string]int `json:"omitted"`
	Refs       []Ref          `json:"refs"`
}

// Ref is one node that can be acted on.
type Ref struct {
	Ref     string   `json:"ref"`
	Role    string   `json:"role"`
	Name    string   `json:"name"`
	Value   string   `json:"value,omitempty"`
	States  []string `json:"states,omitempty"`
	Actions []Action `json:"actions,omitempty"`
	// Frame is main, same_site or other_site.
	Frame string `json:"frame"`
	// Visibility is in_view, scrolled_away or unknown.
	Visibility string `json:"visibility"`
}

// NavigateRequest is the argument of browser_navigate. Schemes other than http, https and about are refused.
type NavigateRequest struct {
	Session  string `json:"session"`
	TargetID string `json:"target_id"`
	TabID    string `json:"tab_id,omitempty"`
	URL      string `json:"url"`
}

// ClickRequest is the argument of browser_click.
type ClickRequest struct {
	Session  string `json:"session"`
	TargetID string `json:"target_id"`
	TabID    string `json:"tab_id,omitempty"`
	Ref      string `json:"ref"`
	// Route is trusted_input when empty.
	Route    Route    `json:"input_route,omitempty"`
	Delivery Delivery `json:"delivery,omitempty"`
}

// TypeRequest is the argument of browser_type. Text is valid UTF-8; Replace empties the control first, so that an empty text clears it.
type TypeRequest struct {
	Session  string   `json:"session"`
	TargetID string   `json:"target_id"`
	TabID    string   `json:"tab_id,omitempty"`
	Ref      string   `json:"ref"`
	Text     string   `json:"text"`
	Mode     TypeMode `json:"mode,omitempty"`
	Replace  bool     `json:"replace,omitempty"`
	// Expected is the value that the caller replaces: where the control holds another now, nothing is typed (trigger value_changed). Only
	// with Replace.
	Expected *string  `json:"expected_value,omitempty"`
	Delivery Delivery `json:"delivery,omitempty"`
}

// ContextRequest is the argument of browser_context. Kind open opens a tab in the bound window in the background; close closes TabID;
// window asks for a new window.
type ContextRequest struct {
	Session  string   `json:"session"`
	TargetID string   `json:"target_id"`
	TabID    string   `json:"tab_id,omitempty"`
	Kind     string   `json:"kind"`
	Delivery Delivery `json:"delivery,omitempty"`
}

// ActRequest is the argument of the tools that share one shape: browser_pointer, browser_select, browser_dialog, browser_set_input_files,
// browser_download and browser_screenshot. Kind chooses the gesture or answer; fields that a tool does not use stay empty.
type ActRequest struct {
	Session  string   `json:"session"`
	TargetID string   `json:"target_id"`
	TabID    string   `json:"tab_id,omitempty"`
	Ref      string   `json:"ref,omitempty"`
	ToRef    string   `json:"destination_ref,omitempty"`
	Kind     string   `json:"kind,omitempty"`
	Text     string   `json:"text,omitempty"`
	Files    []string `json:"files,omitempty"`
	Root     string   `json:"destination_root,omitempty"`
	Route    Route    `json:"input_route,omitempty"`
	Delivery Delivery `json:"delivery,omitempty"`
}
