package engine

import (
	"context"
	"net/netip"
	"time"
)

// Process identifies one process for as long as it lives: a pid alone is reused.
type Process struct {
	PID int
	// Start is field 22 of /proc/PID/stat on Linux: clock ticks since boot.
	Start uint64
	// Exe is the path behind /proc/PID/exe.
	Exe string
}

// ContextKey, WindowKey, NodeKey and DocumentKey are a protocol's own identifiers. They never leave the engine: results, receipts, refusals
// and events carry only ids that the core minted (contract B23).
type (
	ContextKey  string
	WindowKey   string
	NodeKey     string
	DocumentKey string
)

// Rect is a rectangle in device pixels of the root window unless a field says otherwise.
type Rect struct{ X, Y, W, H int }

// Adapter speaks one product's wire protocol. Adapters are chosen by name from a plain map in cmd/acceptance; none registers itself.
type Adapter interface {
	// Declare returns the total declaration; it never touches a browser.
	Declare() Declaration
	// Launch starts a browser of its own on spec.ProfileDir and connects. On error nothing is left running. The error is a *[Refusal] with
	// trigger launch_failed and a reason of refusals.yaml, or the context's error.
	Launch(ctx context.Context, spec LaunchSpec) (Browser, error)
}

// LaunchSpec says what to start. The profile directory exists, is empty or the named profile, and has mode 0700.
type LaunchSpec struct {
	ProfileDir string
	// Env is the browser's whole environment, NAME=value.
	Env []string
	// Budget bounds the time until the browser is usable.
	Budget time.Duration
	// Owns proves, before the first byte is sent there, that an endpoint is loopback and belongs to a process or to what is below it; its
	// error is a refusal. Nil proves nothing: the caller proves it after the launch.
	Owns func(context.Context, Process, netip.AddrPort) error
}

// Browser is one browser process with one connection. All methods are safe for concurrent use. After Lost is closed every method
// returns an error; nothing is retried inside.
type Browser interface {
	Process() Process
	// Endpoint is the address that the connection goes to, for the proof that the process tree owns it.
	Endpoint() netip.AddrPort
	// Lost is closed when the connection or the process is gone.
	Lost() <-chan struct{}
	// Contexts lists the top-level page contexts. A failing look-up of one context fails the whole list, except for contexts that have
	// no window at all (B15).
	Contexts(ctx context.Context) ([]BrowserContext, error)
	// Locate re-reads window and bounds of one context: the protocol's half of the re-proof. A context that is gone is a *[Refusal]
	// with trigger tab_gone.
	Locate(ctx context.Context, c ContextKey) (BrowserContext, error)
	// Close ends connection and process; the process is gone when it returns or ctx is over.
	Close(ctx context.Context) error
}

// Reconnector is the ability to make a lost connection anew to the same living browser. The lost Browser is not closed; the one returned has
// the same process and takes its place. Callers bound and count the attempts.
type Reconnector interface {
	Reconnect(ctx context.Context) (Browser, error)
}

// BrowserContext is one top-level context as the protocol sees it. Title is page-controlled and never decides a binding.
type BrowserContext struct {
	Key    ContextKey
	Window WindowKey
	// Bounds are the protocol's claim about the window in device pixels of the root, after the adapter applied the product's own
	// convention (client or frame rectangle) and scale: always the client rectangle.
	Bounds    Rect
	Minimised bool
	Title     string
	// Visible is true or false when the adapter can prove it, else nil.
	Visible *bool
	// Document identifies the main document now; it changes with every cross-document navigation.
	Document DocumentKey
}

// Outcome is what an ability reports after dispatch. An ability that returns a *[Refusal] dispatched nothing.
type Outcome struct {
	Effect        Effect
	Route         Route
	Trust         Trust
	Requested     int
	Delivered     int
	FocusEmulated bool
	// Before is the value that was replaced; nil where there was none to read. See [Receipt].
	Before *string
	// Refusal is a code found after dispatch.
	Refusal *Refusal
}

// Navigator loads a URL in a context and returns when the new document is committed and loaded, or ctx is over (effect unknown).
type Navigator interface {
	Navigate(ctx context.Context, c ContextKey, url string) (Outcome, error)
}

// Snapshotter lists what can be acted on. The snapshot is of one document; a document that changed meanwhile is an error of kind
// ref_retired (reason document).
type Snapshotter interface {
	Snapshot(ctx context.Context, c ContextKey, maxNodes int) (PageSnapshot, error)
}

// PageSnapshot is a snapshot in protocol terms.
type PageSnapshot struct {
	Document   DocumentKey
	Provenance Provenance
	Total      int
	Omitted    map[string]int
	Nodes      []PageNode
}

// PageNode is one node in protocol terms; Node addresses it, Frame is as in [Ref].
type PageNode struct {
	Node       NodeKey
	Role       string
	Name       string
	Value      string
	States     []string
	Actions    []Action
	Frame      string
	Visibility string
}

// NodeRef is what the core hands back to an adapter: the node with the document and the identity it was seen with. An adapter refuses
// with trigger ref_retired when document, node, role or name differ now.
type NodeRef struct {
	Document DocumentKey
	Node     NodeKey
	Role     string
	Name     string
	// Value is what a caller who replaces text expects to replace; nil expects nothing. An adapter refuses with trigger value_changed when the
	// control holds something else at the moment of the replacement.
	Value *string
}

// Clicker activates a node. Route is one of trusted_input, keyboard, dom_event; visible says whether the tab is the visible one.
type Clicker interface {
	Click(ctx context.Context, c ContextKey, n NodeRef, route Route) (Outcome, error)
}

// Typer enters text into a node.
type Typer interface {
	Type(ctx context.Context, c ContextKey, n NodeRef, text string, mode TypeMode, replace bool) (Outcome, error)
}

// ContextKeeper opens and closes tabs in a window.
type ContextKeeper interface {
	// OpenContext opens a background tab in the window of the given context.
	OpenContext(ctx context.Context, beside ContextKey) (BrowserContext, error)
	CloseContext(ctx context.Context, c ContextKey) (Outcome, error)
}

// NativeWindow is a window as the window system sees it.
type NativeWindow struct {
	ID uint32
	// OwnerPID is the window system's own word (XRes on X11), not the client's claim.
	OwnerPID int
	// Bounds is the client rectangle in root coordinates.
	Bounds Rect
	// Mapped is false for minimised and withdrawn windows.
	Mapped    bool
	Minimised bool
}

// NativePlatform is the window system as a proof of its own. Errors are *[Refusal] values with triggers environment, wrong_target,
// endpoint_owner, generation_changed or not_a_browser.
type NativePlatform interface {
	// Identify reads pid, start time and executable of a process.
	Identify(ctx context.Context, pid int) (Process, error)
	// SameProcess proves that p still is the process it was.
	SameProcess(ctx context.Context, p Process) error
	// Window reads one window and proves that p owns it.
	Window(ctx context.Context, id uint32, p Process) (NativeWindow, error)
	// Windows lists the managed top-level windows that p owns.
	Windows(ctx context.Context, p Process) ([]NativeWindow, error)
	// OwnsEndpoint proves that addr is loopback and that its listener belongs to p's process tree.
	OwnsEndpoint(ctx context.Context, p Process, addr netip.AddrPort) error
	// Observe starts to watch what happens to the desk, for the side effects of a receipt. Stop it with [DeskObserver.Stop].
	Observe(ctx context.Context) (DeskObserver, error)
	Close() error
}

// DeskObserver collects the desk effects of one operation, event-driven.
type DeskObserver interface {
	// Stop closes the observation and says what windows of the process tree of p did since Observe.
	Stop(ctx context.Context, p Process) (DeskEffects, error)
}

// DeskEffects are the desk's share of [SideEffects]. Moved says that a window that was there before has another place or size; no flag of a
// receipt tells of it, for nothing that an engine declares moves a window. It is disclosed where no call was in flight.
type DeskEffects struct {
	Opened       []uint32
	Closed       bool
	Foregrounded bool
	Raised       bool
	Moved        bool
	MovedPointer bool
}

// Occluder is the ability of a [NativePlatform] to say how much of a window other windows cover: covered, partly_covered or visible_tab.
type Occluder interface {
	Cover(ctx context.Context, id uint32) (State, error)
}

// Actor performs the gestures behind the tools that share [ActRequest].
type Actor interface {
	Act(ctx context.Context, c ContextKey, g Gesture) (Outcome, error)
}

// Gesture is one [ActRequest] in protocol terms. Node and To are nil where the request names no ref.
type Gesture struct {
	Action Action
	Route  Route
	Kind   string
	Node   *NodeRef
	To     *NodeRef
	Text   string
	Files  []string
	Root   string
}
