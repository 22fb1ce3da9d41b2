package cdp

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// The scripts, one a file; each says what it returns. All run in isolated worlds.
var (
	//go:embed js/probe.js
	probeScript string
	//go:embed js/focus.js
	focusScript string
	//go:embed js/clicks.js
	clicksScript string
	//go:embed js/settle.js
	settleScript string
	//go:embed js/press.js
	pressScript string
	//go:embed js/prepare.js
	prepareScript string
	//go:embed js/readback.js
	readbackScript string
	//go:embed js/hidden.js
	hiddenScript string
)

// objectGroup names the handles of one action, so that they can be released together.
const objectGroup = "acceptance"

// world returns the isolated world of a frame, making it when the frame's document has none.
func (s *session) world(ctx context.Context, frame cdp.FrameID) (runtime.ExecutionContextID, error) {
	s.mu.Lock()
	id, ok := s.worlds[frame]
	generation := s.generation
	s.mu.Unlock()
	if ok {
		return id, nil
	}
	res, err := call(ctx, s, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: frame, WorldName: objectGroup})
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	if s.generation == generation && len(s.worlds) < maxSessions {
		s.worlds[frame] = res.ExecutionContextID
	}
	s.mu.Unlock()
	return res.ExecutionContextID, nil
}

// forgetWorld drops a world that turned out to be dead.
func (s *session) forgetWorld(frame cdp.FrameID) {
	s.mu.Lock()
	delete(s.worlds, frame)
	s.mu.Unlock()
}

// inWorld runs f with the isolated world of a frame, a second time with a new world when the first died with its document.
func (s *session) inWorld(ctx context.Context, frame cdp.FrameID, f func(runtime.ExecutionContextID) error) error {
	for again := true; ; again = false {
		w, err := s.world(ctx, frame)
		if err != nil {
			return err
		}
		if err = f(w); !again || !contextMissing(err) {
			return err
		}
		s.forgetWorld(frame)
	}
}

// evaluate runs an expression in the isolated world of the main frame.
func evaluate[T any](ctx context.Context, s *session, expression string) (T, error) {
	return evaluateIn[T](ctx, s, expression, nil)
}

// evaluateIn is evaluate for an expression that may be a promise: with await it waits for it.
func evaluateIn[T any](ctx context.Context, s *session, expression string, await *bool) (T, error) {
	var v T
	s.mu.Lock()
	frame := s.main
	s.mu.Unlock()
	yes := true
	err := s.inWorld(ctx, frame, func(w runtime.ExecutionContextID) error {
		res, err := call(ctx, s, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, ContextID: w, ReturnByValue: &yes, Silent: &yes, AwaitPromise: await})
		if err != nil {
			return err
		}
		return value(res.Result, res.ExceptionDetails, &v)
	})
	return v, err
}

// resolve returns a handle of a node in the isolated world of its frame.
func (s *session) resolve(ctx context.Context, n node) (runtime.RemoteObjectID, error) {
	var id runtime.RemoteObjectID
	err := s.inWorld(ctx, n.frame, func(w runtime.ExecutionContextID) error {
		res, err := call(ctx, s, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: n.backend, ExecutionContextID: w, ObjectGroup: objectGroup})
		if err != nil {
			return err
		}
		if res.Object == nil || res.Object.ObjectID == "" {
			return violation("resolveNode without an object")
		}
		id = res.Object.ObjectID
		return nil
	})
	if nodeMissing(err) {
		return "", errNode
	}
	return id, err
}

// on starts a function with a node as this.
func (s *session) on(object runtime.RemoteObjectID, script string, args ...any) *pending {
	yes := true
	p := runtime.CallFunctionOnParams{FunctionDeclaration: script, ObjectID: object, ReturnByValue: &yes, Silent: &yes}
	for _, a := range args {
		b, err := jsonv2.Marshal(a, chromedp.DefaultMarshalOptions)
		if err != nil {
			return &pending{s: s, err: fmt.Errorf("encode an argument: %w", err)}
		}
		p.Arguments = append(p.Arguments, &runtime.CallArgument{Value: b})
	}
	return s.send("Runtime.callFunctionOn", p)
}

// resultOf waits for a function started with on.
func resultOf[T any](ctx context.Context, p *pending) (T, error) {
	var v T
	var res runtime.CallFunctionOnResult
	if err := p.wait(ctx, &res); err != nil {
		return v, err
	}
	return v, value(res.Result, res.ExceptionDetails, &v)
}

// value decodes a result by value.
func value(res *runtime.RemoteObject, exception *runtime.ExceptionDetails, v any) error {
	if exception != nil || res == nil {
		return violation("a script of ours threw")
	}
	if len(res.Value) == 0 {
		return nil
	}
	if err := jsonv2.Unmarshal(res.Value, v, chromedp.DefaultUnmarshalOptions); err != nil {
		return violation("a script's result does not decode")
	}
	return nil
}

// release frees the handles of an action; nobody waits for it.
func (s *session) release() {
	p := s.send("Runtime.releaseObjectGroup", runtime.ReleaseObjectGroupParams{ObjectGroup: objectGroup})
	p.forget()
}
