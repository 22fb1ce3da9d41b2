package matrix

import (
	"slices"

	"github.com/engine-acceptance/acceptance/engine"
)

// FieldKind says what a field of a verb holds, and so how it is checked.
type FieldKind string

// The closed list of field kinds.
const (
	// FieldText is text; it may hold {{variables}}.
	FieldText FieldKind = "text"
	FieldInt  FieldKind = "int"
	FieldBool FieldKind = "bool"
	// FieldDuration is text such as "150ms"; Args keep it as written.
	FieldDuration FieldKind = "duration"
	// FieldEnum is one word of Field.Words.
	FieldEnum FieldKind = "enum"
	// FieldPage is a page of the fixture server, "form.html".
	FieldPage FieldKind = "page"
	// FieldNew binds a name; FieldUse uses one. Field.Names says which kind of name.
	FieldNew FieldKind = "new"
	FieldUse FieldKind = "use"
	// FieldTab is a tab reference: "w/tab 2", or the name of an opened tab. See [ParseTabRef].
	FieldTab FieldKind = "tab"
	// FieldNode is a node reference: s/textbox "Full name". See [ParseNodeRef].
	FieldNode FieldKind = "node"
	// FieldWindow is the number of a window of the row's desk, from 1.
	FieldWindow FieldKind = "window"
	// FieldSteps is a list of steps, FieldLanes a list of such lists; they become [Step.Lanes].
	FieldSteps FieldKind = "steps"
	FieldLanes FieldKind = "lanes"
	// FieldArgs is a mapping of any plain values, for calls that are wrong on purpose.
	FieldArgs FieldKind = "args"
)

// NameKind is the kind of thing that a row's name stands for.
type NameKind string

// The closed list of kinds of names.
const (
	NameSession  NameKind = "session"
	NameTarget   NameKind = "target"
	NameTab      NameKind = "tab"
	NameSnapshot NameKind = "snapshot"
)

// Field is one field of a verb.
type Field struct {
	Name     string
	Kind     FieldKind
	Required bool
	Words    []string
	Names    NameKind
	// Low and High bound a FieldInt.
	Low, High int
	Doc       string
}

// Verb is one thing that a step can do. Exactly one step implementation belongs to each (suites/steps, one verb a file).
type Verb struct {
	Name string
	Doc  string
	// Operation is the tool that the verb calls; empty for what the harness does itself, and for call, which names its own.
	Operation engine.Operation
	// Action is the capability family that the verb exercises; empty when it exercises none.
	Action engine.Action
	// Route is the route when the step names none.
	Route engine.Route
	// KeepsPages says that the verb leaves every page as it is. One that neither acts on a page by its Action nor keeps them may have changed any,
	// and what a row must expect of controls used after it is known less exactly.
	KeepsPages bool
	Fields     []Field
	// OneOf are groups of fields of which exactly one must be there.
	OneOf [][]string
}

// Field looks one field up.
func (v Verb) Field(name string) (Field, bool) {
	for _, f := range v.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

func (v Verb) fieldNames() []string {
	names := make([]string, len(v.Fields))
	for i, f := range v.Fields {
		names[i] = f.Name
	}
	return names
}

var (
	inSession = Field{Name: "session", Kind: FieldUse, Names: NameSession, Doc: "the session that calls; without it the row's own"}
	// Repetition belongs to verbs that call the engine: see [Step.Calls].
	times   = Field{Name: "times", Kind: FieldInt, Low: 1, High: maxTimes, Doc: "how often the call is made, one after the other; once when left out"}
	callers = Field{Name: "callers", Kind: FieldInt, Low: 1, High: maxCallers, Doc: "how many callers make it at once"}
	beside  = Field{Name: "beside", Kind: FieldBool, Doc: "at the same time as the step before"}
	routeOf = Field{Name: "route", Kind: FieldEnum, Words: texts(engine.Routes), Doc: "the route asked for; trusted_input when left out"}
)

// Bounds of repetition: calls of one caller, and callers of one step.
const (
	maxTimes   = 1000
	maxCallers = 64
)

// GarbleKinds is the closed list of what can be wrong with protocol messages (contract G15).
var GarbleKinds = []string{"malformed", "oversized", "endless", "unfinished", "reordered", "duplicated"}

// Verbs is the closed list of verbs, in the order of the documentation. Every step may also have a name. Steps that stand beside each other
// form a group: their calls are in flight at once, and the window of time of all of them is closed when the last has returned.
var Verbs = []Verb{
	{Name: "start_session", Doc: "opens a session of the engine", KeepsPages: true, Operation: engine.OpSessionStart, Fields: []Field{
		{Name: "as", Kind: FieldNew, Names: NameSession, Required: true, Doc: "the name of the session"},
	}},
	{Name: "end_session", Doc: "ends a session, and with it everything minted in it", KeepsPages: true, Operation: engine.OpSessionEnd, Fields: []Field{inSession}},
	{Name: "prepare", Doc: "has the engine launch a browser of its own", KeepsPages: true, Operation: engine.OpPrepare, Fields: []Field{
		{Name: "profile", Kind: FieldEnum, Words: []string{string(engine.PostureIsolatedNew), string(engine.PostureIsolatedNamed)}, Required: true, Doc: "the profile posture"},
		{Name: "timeout", Kind: FieldDuration, Doc: "what the launch may take at most; without it the engine's own budget"},
		inSession,
	}},
	{Name: "attach", Doc: "asks the engine to attach to a program of the person that runs as a decoy, or to another process", KeepsPages: true, Operation: engine.OpPrepare, Fields: []Field{
		{Name: "product", Kind: FieldEnum, Words: decoys, Doc: "the decoy, one of the row's desk"},
		{Name: "process", Kind: FieldEnum, Words: []string{"dead", "own", "foreign"}, Doc: "a process that has ended, the engine's own, or another user's"},
		{Name: "window", Kind: FieldEnum, Words: []string{"real", "impossible"}, Required: true, Doc: "its own window, or an id that no window has"},
		inSession,
	}, OneOf: [][]string{{"product", "process"}}},
	{Name: "bind", Doc: "binds a window of the desk", KeepsPages: true, Operation: engine.OpState, Fields: []Field{
		{Name: "window", Kind: FieldWindow, Required: true, Doc: "the window's number on the desk, from 1"},
		{Name: "as", Kind: FieldNew, Names: NameTarget, Required: true, Doc: "the name of the bound window"},
		inSession, times, callers, beside,
	}},
	{Name: "snapshot", Doc: "lists what can be acted on in a tab", Operation: engine.OpState, Action: engine.ActionSnapshot, Route: engine.RouteEngine, Fields: []Field{
		{Name: "tab", Kind: FieldTab, Required: true, Doc: "the tab"},
		{Name: "as", Kind: FieldNew, Names: NameSnapshot, Required: true, Doc: "the name of the snapshot"},
		{Name: "max_nodes", Kind: FieldInt, Low: 1, High: 100_000, Doc: "the greatest number of nodes asked for"},
		inSession, times, callers, beside,
	}},
	{Name: "navigate", Doc: "loads a page or an address", Operation: engine.OpNavigate, Action: engine.ActionNavigate, Route: engine.RouteEngine, Fields: []Field{
		{Name: "tab", Kind: FieldTab, Required: true, Doc: "the tab"},
		{Name: "page", Kind: FieldPage, Doc: "a page of the fixture server"},
		{Name: "url", Kind: FieldText, Doc: "an address as it is; {{page form.html}} stands for a page's"},
		inSession, times, callers, beside,
	}, OneOf: [][]string{{"page", "url"}}},
	{Name: "click", Doc: "activates a control", Operation: engine.OpClick, Action: engine.ActionClick, Route: engine.RouteTrustedInput, Fields: []Field{
		{Name: "on", Kind: FieldNode, Required: true, Doc: "the control, by role and name, of a snapshot"},
		routeOf, inSession, times, callers, beside,
	}},
	{Name: "type", Doc: "enters text into a control", Operation: engine.OpType, Action: engine.ActionType, Route: engine.RouteTrustedInput, Fields: []Field{
		{Name: "into", Kind: FieldNode, Required: true, Doc: "the control, by role and name, of a snapshot"},
		{Name: "text", Kind: FieldText, Required: true, Doc: "the text; empty text with replace clears"},
		{Name: "mode", Kind: FieldEnum, Words: []string{string(engine.TypeInsert), string(engine.TypeKeystrokes)}, Doc: "the way in; insert_text when left out"},
		{Name: "replace", Kind: FieldBool, Doc: "empties the control first"},
		{Name: "expected", Kind: FieldText, Doc: "the value that the caller believes to replace"},
		routeOf, inSession, times, callers, beside,
	}},
	{Name: "open_tab", Doc: "opens a tab in the background of a bound window", Operation: engine.OpContext, Action: engine.ActionContextOpen, Route: engine.RouteEngine, Fields: []Field{
		{Name: "in", Kind: FieldUse, Names: NameTarget, Required: true, Doc: "the bound window"},
		{Name: "as", Kind: FieldNew, Names: NameTab, Required: true, Doc: "the name of the tab"},
		inSession,
	}},
	{Name: "close_tab", Doc: "closes a tab", Operation: engine.OpContext, Action: engine.ActionContextClose, Route: engine.RouteEngine, Fields: []Field{
		{Name: "tab", Kind: FieldTab, Required: true, Doc: "the tab"}, inSession,
	}},
	{Name: "call", Doc: "calls any tool of the engine with raw arguments, for refusal rows", KeepsPages: true, Fields: []Field{
		{Name: "operation", Kind: FieldEnum, Words: texts(engine.Operations), Required: true, Doc: "the tool"},
		{Name: "target", Kind: FieldUse, Names: NameTarget, Doc: "fills target_id, also in the place of what tab or ref fill"},
		{Name: "tab", Kind: FieldTab, Doc: "fills target_id and tab_id; beside ref, tab_id alone"},
		{Name: "ref", Kind: FieldNode, Doc: "fills target_id, tab_id and ref"},
		{Name: "args", Kind: FieldArgs, Doc: "arguments as they are; they win over what other fields fill"},
		inSession, times, callers, beside,
	}},
	{Name: "repeat", Doc: "does steps many times in turn, in one window of time", KeepsPages: true, Fields: []Field{
		{Name: "times", Kind: FieldInt, Low: 1, High: 1000, Required: true, Doc: "how many rounds"},
		{Name: "do", Kind: FieldSteps, Required: true, Doc: "the steps of a round; {{round}} is its number"},
	}},
	{Name: "race", Doc: "does several lanes of steps at once, many times, in one window of time", KeepsPages: true, Fields: []Field{
		{Name: "times", Kind: FieldInt, Low: 1, High: 1000, Required: true, Doc: "how many rounds"},
		{Name: "first", Kind: FieldSteps, Doc: "what each round begins with, before the lanes"},
		{Name: "lanes", Kind: FieldLanes, Required: true, Doc: "the lists of steps that are done at once; {{round}} is the number of the round"},
		{Name: "in_turn", Kind: FieldBool, Doc: "does the lanes of a round one after the other, as they are written; what one is refused keeps no other from its turn"},
		{Name: "spread", Kind: FieldDuration, Doc: "the time over which the lanes of a round begin, at random; at once when left out"},
	}},
	{Name: "cut", Doc: "cuts a connection of the engine from outside", KeepsPages: true, Fields: []Field{
		{Name: "connection", Kind: FieldEnum, Words: []string{"browser"}, Required: true, Doc: "the connection between engine and browser"},
		{Name: "when", Kind: FieldEnum, Words: []string{"page_asks"}, Doc: "page_asks: in the middle of a handler, when a page asks the server for time; at once when left out"},
		beside,
	}},
	{Name: "garble", Doc: "sends the engine what a frozen browser never said, over its own connection, in the middle of the call that this step stands beside; then the browser goes on", KeepsPages: true, Fields: []Field{
		{Name: "with", Kind: FieldEnum, Words: GarbleKinds, Required: true, Doc: "what is wrong: half a message, one that says it has 4 GiB, one without an end, one whose rest never comes, or the browser's own replies in reverse or twice"},
		beside,
	}},
	{Name: "kill", Doc: "kills a process with SIGKILL: the engine's, and looks at what is left of its browsers; the browser's; or those of all its pages", KeepsPages: true, Fields: []Field{
		{Name: "process", Kind: FieldEnum, Words: []string{"engine", "browser", "renderers"}, Required: true, Doc: "whose process"},
	}},
	{Name: "start_engine", Doc: "starts the engine again after it was killed", KeepsPages: true},
	{Name: "freeze", Doc: "stops the browser's process: it lives and answers nothing", KeepsPages: true, Fields: []Field{
		{Name: "process", Kind: FieldEnum, Words: []string{"browser"}, Required: true, Doc: "whose process"},
	}},
	{Name: "thaw", Doc: "lets a frozen browser go on", KeepsPages: true, Fields: []Field{
		{Name: "process", Kind: FieldEnum, Words: []string{"browser"}, Required: true, Doc: "whose process"},
		{Name: "when", Kind: FieldEnum, Words: []string{"dialled"}, Doc: "dialled: once the engine asks for a new connection, and counts how many it asks for; at once when left out"},
		beside,
	}},
	{Name: "page_does", Doc: "has a page change by itself: hands a word to its script, and waits until it says that it is done", KeepsPages: true, Fields: []Field{
		{Name: "tab", Kind: FieldTab, Required: true, Doc: "the tab"},
		{Name: "what", Kind: FieldText, Required: true, Doc: "the word; the page's own script knows what it means"},
		beside,
	}},
	{Name: "await_dialog", Doc: "waits until a dialog holds a page up, as its silence shows", KeepsPages: true, Fields: []Field{
		{Name: "tab", Kind: FieldTab, Required: true, Doc: "the tab"},
		beside,
	}},
	{Name: "place", Doc: "has the person move and resize a window, or maximise it", KeepsPages: true, Fields: []Field{
		{Name: "window", Kind: FieldWindow, Required: true, Doc: "the window's number on the desk, or on the session's own browser"},
		{Name: "x", Kind: FieldInt, Low: -4000, High: 8000, Doc: "left edge of the inside, in pixels"},
		{Name: "y", Kind: FieldInt, Low: -4000, High: 8000, Doc: "upper edge"},
		{Name: "w", Kind: FieldInt, Low: 100, High: 8000, Doc: "width"},
		{Name: "h", Kind: FieldInt, Low: 100, High: 8000, Doc: "height"},
		{Name: "maximised", Kind: FieldBool, Doc: "maximises it in the place of x, y, w and h"},
		inSession,
	}, OneOf: [][]string{{"w", "maximised"}}},
	{Name: "person_clicks", Doc: "has the person click into a window, near its lower right corner, where a page of the desk opens another", KeepsPages: true, Fields: []Field{
		{Name: "window", Kind: FieldWindow, Required: true, Doc: "the window's number on the desk"},
		{Name: "opens", Kind: FieldEnum, Words: []string{"window", "tab"}, Required: true, Doc: "what the click opens"},
		{Name: "page", Kind: FieldText, Required: true, Doc: "the name that the opened page reports under"},
	}},
	{Name: "impersonate", Doc: "opens a window of a foreign client that wears process id, class, title and place of a window, and asks the engine to bind it", Operation: engine.OpState, KeepsPages: true, Fields: []Field{
		{Name: "window", Kind: FieldWindow, Required: true, Doc: "the window that is imitated"},
	}},
	{Name: "change", Doc: "changes one thing that a binding rests on, from outside, and nothing else", KeepsPages: true, Fields: []Field{
		{Name: "component", Kind: FieldEnum, Words: []string{"endpoint", "window", "connection"}, Required: true, Doc: "endpoint: another process listens at it; window: it names another process; connection: it is cut"},
		{Name: "window", Kind: FieldWindow, Doc: "the window, where the component is one"},
		{Name: "back", Kind: FieldBool, Doc: "undoes the change of a window"},
	}},
	{Name: "wait", Doc: "waits until nothing happened for a time", KeepsPages: true, Fields: []Field{
		{Name: "quiet", Kind: FieldDuration, Required: true, Doc: "the quiet time"},
	}},
	{Name: "page_acts", Doc: "has a page do something to the desk by itself, while no call of the engine is in flight", KeepsPages: true, Fields: []Field{
		{Name: "tab", Kind: FieldTab, Required: true, Doc: "the tab whose page does it, in a window that a page opened"},
		{Name: "act", Kind: FieldEnum, Words: PageActs, Required: true, Doc: "move: the window moves down, from under the person's; close: it closes"},
	}},
	{Name: "report_forged", Doc: "posts a false page report to the fixture server, from a process that is not the browser", KeepsPages: true, Fields: []Field{
		{Name: "page", Kind: FieldTab, Required: true, Doc: "the tab that the report pretends to come from"},
		{Name: "control", Kind: FieldText, Required: true, Doc: "the control that it names"},
		{Name: "value", Kind: FieldText, Required: true, Doc: "the value that it claims"},
	}},
}

// PageActs are the things that a page can do to the desk by itself: see the verb page_acts.
var PageActs = []string{"move", "close"}

// decoys are the programs that a desk can seat beside the browser.
var decoys = []string{"firefox", "renamed_firefox", "chromium", "epiphany", "webkitgtk_minibrowser", "xterm", "clock", "unknown_browser"}

// Calls is how many calls of the engine the step makes: times for each of its callers. Steps of verbs without repetition make one, or none.
// A block makes none itself: the steps in it do.
func (s Step) Calls() int {
	if s.IsBlock() {
		return 1
	}
	return max(s.Int("times"), 1) * max(s.Int("callers"), 1)
}

// Group is how many of the given steps, from the first, are carried out at once: those that stand beside it.
func Group(steps []Step) int {
	n := min(1, len(steps))
	for n < len(steps) && steps[n].Bool("beside") {
		n++
	}
	return n
}

// LookupVerb finds a verb by name.
func LookupVerb(name string) (Verb, bool) {
	for _, v := range Verbs {
		if v.Name == name {
			return v, true
		}
	}
	return Verb{}, false
}

func verbNames() []string {
	names := make([]string, len(Verbs))
	for i, v := range Verbs {
		names[i] = v.Name
	}
	return names
}

// called are the actions that a tool can be called for, by the verb call.
var called = map[engine.Operation][]engine.Action{
	engine.OpNavigate: {engine.ActionNavigate}, engine.OpClick: {engine.ActionClick}, engine.OpType: {engine.ActionType},
	engine.OpPointer: {engine.ActionHover, engine.ActionDoubleClick, engine.ActionRightClick, engine.ActionScroll, engine.ActionDrag},
	engine.OpSelect:  {engine.ActionSelect}, engine.OpDialog: {engine.ActionDialog}, engine.OpUpload: {engine.ActionUpload},
	engine.OpDownload: {engine.ActionDownload}, engine.OpScreenshot: {engine.ActionScreenshot},
	engine.OpContext: {engine.ActionContextOpen, engine.ActionContextClose, engine.ActionWindowOpen},
}

// Exercises says whether the step is one that the capability is needed for: the same action, by the same route.
func (s Step) Exercises(c engine.Capability) bool {
	verb, ok := LookupVerb(s.Verb)
	if !ok {
		return false
	}
	if s.Verb == "call" {
		op, _ := s.Args["operation"].(string)
		return slices.Contains(called[engine.Operation(op)], c.Action)
	}
	if verb.Action == "" || verb.Action != c.Action {
		return false
	}
	route := verb.Route
	if asked, ok := s.Args["route"].(string); ok {
		route = engine.Route(asked)
	}
	return route == c.Route
}

// texts turns a list of words into a list of strings.
func texts[T ~string](words []T) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}
