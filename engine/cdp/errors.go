package cdp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto"

	"github.com/engine-acceptance/acceptance/engine"
)

// The faults of a connection or a session, below the level of refusals.
var (
	// errViolation: the browser sent what the protocol forbids, or too much of it. The connection is over.
	errViolation = errors.New("protocol violation")
	// errLost: the connection or the process is gone.
	errLost = errors.New("connection lost")
	// errGone: the target is closed.
	errGone = errors.New("target closed")
	// errCrashed: the renderer of the target crashed.
	errCrashed = errors.New("renderer crashed")
	// errDialog: a JavaScript dialog is open, so the page answers nothing.
	errDialog = errors.New("dialog open")
	// errNavigated: the main document changed.
	errNavigated = errors.New("document changed")
	// errNode: the node is gone or another.
	errNode = errors.New("node gone")
)

func refusal(op engine.Operation, code engine.Code, trigger string, detail engine.Detail) *engine.Refusal {
	return &engine.Refusal{Code: code, Operation: op, Trigger: trigger, Detail: detail}
}

func routeUnavailable(op engine.Operation, trigger, limitation, reason string) *engine.Refusal {
	return refusal(op, engine.CodeRouteUnavailable, trigger, engine.Detail{EngineFamily: engine.FamilyChromium, Product: engine.ProductChromium,
		RequiredProtocol: engine.ProtocolCDP, Limitation: limitation, Reason: reason})
}

func launchFailed(reason string) *engine.Refusal {
	return routeUnavailable(engine.OpPrepare, "launch_failed", "launch_failed", reason)
}

func unavailable(op engine.Operation, trigger, limitation string, a engine.Action, r engine.Route) *engine.Refusal {
	return refusal(op, engine.CodeActionUnavailable, trigger, engine.Detail{Action: a, Route: r, Limitation: limitation})
}

func cannot(op engine.Operation, limitation string, a engine.Action, r engine.Route) *engine.Refusal {
	return unavailable(op, "control_cannot", limitation, a, r)
}

func retired(op engine.Operation, reason string) *engine.Refusal {
	return refusal(op, engine.CodeRefStale, "ref_retired", engine.Detail{Reason: reason})
}

// refuse maps a fault that was met before anything was dispatched to a refusal. Every fault has one; what is unknown is "unresponsive",
// for the browser did not do what the protocol promises.
func refuse(op engine.Operation, a engine.Action, r engine.Route, err error) *engine.Refusal {
	if already := engine.AsRefusal(err); already != nil {
		named := *already
		named.Operation = op
		return &named
	}
	var wire *cdproto.Error
	switch {
	case errors.Is(err, errDialog):
		return unavailable(op, "dialog", "dialog_open", a, r)
	case errors.Is(err, errViolation):
		return routeUnavailable(op, "protocol_violation", "protocol_violation", "")
	case errors.Is(err, errLost):
		return refusal(op, engine.CodeBindingStale, "generation_changed", engine.Detail{Reason: "connection"})
	case errors.Is(err, errCrashed):
		return refusal(op, engine.CodeTabNotFound, "tab_gone", engine.Detail{Reason: "renderer_crashed"})
	case errors.Is(err, errGone):
		return refusal(op, engine.CodeTabNotFound, "tab_gone", engine.Detail{Reason: "closed"})
	case errors.Is(err, errNavigated):
		return retired(op, "document")
	case errors.Is(err, errNode):
		return retired(op, "node")
	case errors.As(err, &wire) && targetMissing(wire):
		return refusal(op, engine.CodeTabNotFound, "tab_gone", engine.Detail{Reason: "closed"})
	}
	return routeUnavailable(op, "unresponsive", "unresponsive", "")
}

// afterDispatch is the outcome of a fault that was met after the first byte of input had left: unknown, with the code that was found.
func afterDispatch(out engine.Outcome, op engine.Operation, a engine.Action, err error) engine.Outcome {
	out.Effect = engine.EffectUnknown
	out.Refusal = refuse(op, a, out.Route, err)
	return out
}

func targetMissing(e *cdproto.Error) bool {
	return strings.Contains(e.Message, "No target with given id") || strings.Contains(e.Message, "Session with given id not found")
}

// windowMissing says that a target has no native window, which is no fault (B15).
func windowMissing(err error) bool {
	var e *cdproto.Error
	return errors.As(err, &e) && strings.Contains(e.Message, "Browser window not found")
}

// contextMissing says that an isolated world died with its document.
func contextMissing(err error) bool {
	var e *cdproto.Error
	return errors.As(err, &e) && (strings.Contains(e.Message, "Cannot find context with specified id") ||
		strings.Contains(e.Message, "Execution context was destroyed") || strings.Contains(e.Message, "uniqueContextId not found") ||
		strings.Contains(e.Message, "Node with given id does not belong to the document"))
}

// nodeMissing says that a backend node id names nothing any more.
func nodeMissing(err error) bool {
	var e *cdproto.Error
	return errors.As(err, &e) && (strings.Contains(e.Message, "No node") || strings.Contains(e.Message, "Could not find node") ||
		strings.Contains(e.Message, "does not belong to the document") || strings.Contains(e.Message, "Could not compute box model") ||
		strings.Contains(e.Message, "Node is detached"))
}

// violation wraps what was wrong with a message.
func violation(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errViolation, fmt.Sprintf(format, args...))
}

// contextError says why a context is over: the document changed (see whileDocument), or time is up.
func contextError(ctx context.Context) error {
	return fmt.Errorf("no answer in time: %w", context.Cause(ctx))
}

func errorHas(err error, text string) bool {
	var e *cdproto.Error
	return errors.As(err, &e) && strings.Contains(e.Message, text)
}
