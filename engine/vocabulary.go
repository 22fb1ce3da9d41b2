package engine

// Family is the engine family that a refusal names (refusals.yaml, lists.engine_family).
type Family string

// The closed list of families.
const (
	FamilyChromium Family = "chromium"
	FamilyGecko    Family = "gecko"
	FamilyWebKit   Family = "webkit"
	FamilyUnknown  Family = "unknown"
)

// Product is one browser product (refusals.yaml, lists.product).
type Product string

// The closed list of products.
const (
	ProductChromium    Product = "chromium"
	ProductChrome      Product = "chrome"
	ProductEdge        Product = "edge"
	ProductFirefox     Product = "firefox"
	ProductSafari      Product = "safari"
	ProductMiniBrowser Product = "webkitgtk_minibrowser"
	ProductEpiphany    Product = "epiphany"
	ProductOther       Product = "other"
	ProductNone        Product = "none"
)

// Protocol is the wire protocol that a product would need (refusals.yaml, lists.required_protocol).
type Protocol string

// The closed list of protocols.
const (
	ProtocolCDP        Protocol = "cdp"
	ProtocolBiDi       Protocol = "webdriver_bidi"
	ProtocolAutomation Protocol = "webkit_automation"
	ProtocolUnknown    Protocol = "unknown"
)

// Action is a family of things that an engine can do to a page or a browser.
type Action string

// The closed list of actions. A declaration says something about every one of them.
const (
	ActionSnapshot     Action = "snapshot"
	ActionNavigate     Action = "navigate"
	ActionClick        Action = "click"
	ActionType         Action = "type"
	ActionHover        Action = "hover"
	ActionDoubleClick  Action = "double_click"
	ActionRightClick   Action = "right_click"
	ActionScroll       Action = "scroll"
	ActionDrag         Action = "drag"
	ActionSelect       Action = "select"
	ActionDialog       Action = "dialog"
	ActionUpload       Action = "upload"
	ActionDownload     Action = "download"
	ActionContextOpen  Action = "context_open"
	ActionContextClose Action = "context_close"
	ActionWindowOpen   Action = "window_open"
	ActionScreenshot   Action = "screenshot"
)

// Actions lists every action, in the order in which declarations print them.
var Actions = []Action{ActionSnapshot, ActionNavigate, ActionClick, ActionType, ActionHover, ActionDoubleClick, ActionRightClick, ActionScroll,
	ActionDrag, ActionSelect, ActionDialog, ActionUpload, ActionDownload, ActionContextOpen, ActionContextClose, ActionWindowOpen, ActionScreenshot}

// Route is the way an action takes to the page.
type Route string

// The closed list of routes.
const (
	// RouteTrustedInput is the browser's own pointer or text input path: events are trusted.
	RouteTrustedInput Route = "trusted_input"
	// RouteKeyboard activates a focused control by a key through the browser's own input path: a trusted click without pointer events.
	RouteKeyboard Route = "keyboard"
	// RouteDOMEvent dispatches from script: events are not trusted.
	RouteDOMEvent Route = "dom_event"
	// RouteEngine is an effect that the browser makes itself, with no input event (navigation, reading, file set).
	RouteEngine Route = "engine"
)

// Routes lists every route, in declaration order.
var Routes = []Route{RouteTrustedInput, RouteKeyboard, RouteDOMEvent, RouteEngine}

// Trust says what the page can know about an action: whether its events carry isTrusted.
type Trust string

// The closed list of trust classes.
const (
	TrustTrustedInput Trust = "trusted_input"
	TrustDOMEvent     Trust = "dom_event"
	TrustNone         Trust = "none"
)

// Delivery says whether an action may touch the person's desk.
type Delivery string

// The closed list of deliveries.
const (
	DeliveryBackground Delivery = "background"
	DeliveryForeground Delivery = "foreground"
)

// Deliveries lists every delivery, in declaration order.
var Deliveries = []Delivery{DeliveryBackground, DeliveryForeground}

// State is the state of the tab and its window at the moment of an action.
type State string

// The closed list of states.
const (
	// StateCovered is the visible tab of a window that other windows cover fully.
	StateCovered State = "covered"
	// StatePartlyCovered is the visible tab of a window covered in part.
	StatePartlyCovered State = "partly_covered"
	// StateMinimised is any tab of a minimised window.
	StateMinimised State = "minimised"
	// StateInactiveTab is a tab that its window does not show, whatever covers the window.
	StateInactiveTab State = "inactive_tab"
	// StateVisibleTab is the visible tab of a window that nothing covers and that does not hold the focus.
	StateVisibleTab State = "visible_tab"
)

// States lists every state, in declaration order.
var States = []State{StateCovered, StatePartlyCovered, StateMinimised, StateInactiveTab, StateVisibleTab}

// Effect is what an engine claims about an action after dispatch.
type Effect string

// The closed list of effects. The zero value is invalid in a receipt.
const (
	// EffectConfirmed: the engine read the effect back itself.
	EffectConfirmed Effect = "confirmed"
	// EffectPartial: a part is known to have arrived, see delivered_count.
	EffectPartial Effect = "partial"
	// EffectUnverifiable: dispatched, and nothing that can be read would show it.
	EffectUnverifiable Effect = "unverifiable"
	// EffectSuspectedNoop: dispatched, and what was read suggests that nothing happened.
	EffectSuspectedNoop Effect = "suspected_noop"
	// EffectUnknown: the answer did not come in time or the connection was lost after dispatch. Never retried.
	EffectUnknown Effect = "unknown"
)

// Quality is the quality of a binding. Only exact may mutate.
type Quality string

// The closed list of binding qualities.
const (
	QualityExact     Quality = "exact"
	QualityHeuristic Quality = "heuristic"
	QualityNone      Quality = "none"
)

// Posture is the profile posture in use.
type Posture string

// The closed list of postures.
const (
	PostureIsolatedNew   Posture = "isolated_new"
	PostureIsolatedNamed Posture = "isolated_named"
	PostureExisting      Posture = "existing_profile"
)

// Provenance says where the names and roles of a snapshot come from.
type Provenance string

// The closed list of provenances.
const (
	ProvenanceAccessibility Provenance = "engine_accessibility"
	ProvenanceDOM           Provenance = "dom_heuristic"
)

// TypeMode is the way text enters a control.
type TypeMode string

// The closed list of modes. The zero value means insert_text. In the capability table insert_text is type by trusted_input, and keystrokes is
// type by keyboard.
const (
	TypeInsert     TypeMode = "insert_text"
	TypeKeystrokes TypeMode = "keystrokes"
)
