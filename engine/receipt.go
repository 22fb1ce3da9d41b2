package engine

// Receipt says what an operation did, in fields that outside observation can contradict. Every field is always present; the schema is
// published as engine/mcp/schema/result.json, and with every tool over MCP.
type Receipt struct {
	Operation Operation `json:"operation"`
	Action    Action    `json:"action,omitempty"`
	Effect    Effect    `json:"effect"`
	Route     Route     `json:"route"`
	Trust     Trust     `json:"trust"`
	Delivery  Delivery  `json:"delivery"`
	// RequestedCount and DeliveredCount are Unicode code points for typing, activations for clicks, 1 or 0 elsewhere.
	RequestedCount int `json:"requested_count"`
	DeliveredCount int `json:"delivered_count"`
	// ContextVisible is true or false only when the engine can prove it, else null.
	ContextVisible *bool `json:"context_visible_tab"`
	// ValueBefore is what the control held when it was replaced, at most 1 KiB; null for every other operation, for a longer value, and for
	// a control that hides its value.
	ValueBefore *string `json:"value_before"`
	// FocusEmulated says that the page was told that it has the focus.
	FocusEmulated bool        `json:"focus_emulated"`
	Posture       Posture     `json:"posture,omitempty"`
	Generation    string      `json:"generation"`
	SideEffects   SideEffects `json:"side_effects"`
	// BrowserInitiated lists what the page or the browser did to the desk with no call in flight since the last receipt (D10), in words of
	// [Initiated].
	BrowserInitiated []string  `json:"browser_initiated"`
	Durations        Durations `json:"durations"`
	// Refusal carries a code that was found after dispatch; effect is then partial or unknown.
	Refusal *Refusal `json:"refusal,omitempty"`
}

// The words of [Receipt.BrowserInitiated].
const (
	InitiatedOpened       = "opened_window"
	InitiatedClosed       = "closed_window"
	InitiatedForegrounded = "foregrounded_window"
	InitiatedRaised       = "raised_window"
	// InitiatedMoved: a window of the browser that was there before has another place or size.
	InitiatedMoved = "moved_window"
)

// Initiated is the closed list of those words, in the order in which a receipt has them.
var Initiated = []string{InitiatedOpened, InitiatedClosed, InitiatedForegrounded, InitiatedRaised, InitiatedMoved}

// Durations are wall-clock milliseconds inside the engine.
type Durations struct {
	ProofMS    float64 `json:"proof_ms"`
	DispatchMS float64 `json:"dispatch_ms"`
	TotalMS    float64 `json:"total_ms"`
}

// SideEffects are flags; each is true when the operation did the thing, and false when it did not. There is no third value.
type SideEffects struct {
	LaunchedBrowser          bool `json:"launched_browser"`
	RestartedBrowser         bool `json:"restarted_browser"`
	CreatedProfile           bool `json:"created_profile"`
	ReusedDriverProfile      bool `json:"reused_driver_profile"`
	CopiedProfileData        bool `json:"copied_profile_data"`
	ChangedPreferences       bool `json:"changed_preferences"`
	DisplayedConsentPrompt   bool `json:"displayed_consent_prompt"`
	OpenedSetupPage          bool `json:"opened_setup_page"`
	ClosedSetupPage          bool `json:"closed_setup_page"`
	EnabledRemoteDebugging   bool `json:"enabled_remote_debugging"`
	UsedBoundedPixelFallback bool `json:"used_bounded_pixel_fallback"`
	FocusedSetupAddressField bool `json:"focused_setup_address_field"`
	// ForegroundedWindow: a window of the browser became active, for however short a time.
	ForegroundedWindow  bool `json:"foregrounded_window"`
	InjectedGlobalInput bool `json:"injected_global_input"`
	OpenedWindow        bool `json:"opened_window"`
	ClosedWindow        bool `json:"closed_window"`
	// RaisedWindow: a window of the browser came to lie above one that it lay below, a new window above others included.
	RaisedWindow  bool `json:"raised_window"`
	MovedPointer  bool `json:"moved_pointer"`
	TookClipboard bool `json:"took_clipboard"`
	OpenedContext bool `json:"opened_context"`
	ClosedContext bool `json:"closed_context"`
}
