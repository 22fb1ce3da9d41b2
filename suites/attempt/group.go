package attempt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/stage"
)

// group is what several calls have in common whose window of time is closed once: those of steps that stand beside each other, and those
// of a step that is repeated. Its calls come from several goroutines.
type group struct {
	mu    sync.Mutex
	calls []evidence.Observation
}

// member is one step of a group, as the context of its calls knows it.
type member struct {
	group *group
	step  string
}

type memberKey struct{}

func memberOf(ctx context.Context) *member {
	m, _ := ctx.Value(memberKey{}).(*member)
	return m
}

// runGroup carries out steps that stand beside each other, and repeats those that are to be repeated. Each caller makes its calls one after
// the other; nothing waits between them. What the steps do to pages and desk is collected when the last has returned.
func (a *Attempt) runGroup(ctx context.Context, steps []matrix.Step, verbs map[string]Do) error {
	a.step = steps[0].Name
	if err := a.collect(ctx); err != nil { // what came before belongs to the time before
		return err
	}
	refusable := slices.ContainsFunc(steps, func(s matrix.Step) bool { return a.expectsRefusal(s.Name) })
	var before *system
	if refusable {
		var err error
		if before, err = a.look(ctx); err != nil {
			return a.fault("harness", "look at the system before a refusal: %v", err)
		}
	}
	g := &group{}
	var wait sync.WaitGroup
	infos := make([]evidence.StepInfo, len(steps))
	failed := make([]error, len(steps))
	a.inFlight = true
	for i, s := range steps {
		do, known := verbs[s.Verb]
		infos[i] = evidence.StepInfo{Verb: s.Verb, StartNS: stage.Mono(), Outcome: "done"}
		if !known {
			failed[i] = fmt.Errorf("no verb %q", s.Verb)
			continue
		}
		wait.Go(func() {
			failed[i] = a.callers(context.WithValue(ctx, memberKey{}, &member{g, s.Name}), s, do)
			infos[i].EndNS = stage.Mono()
		})
	}
	wait.Wait()
	closeErr := a.closeWindow(ctx)
	closed := stage.Mono()
	a.inFlight = false
	slices.SortStableFunc(g.calls, func(x, y evidence.Observation) int { return int(x.Call.StartNS - y.Call.StartNS) })
	refused, last := false, int64(0)
	for _, o := range g.calls {
		o.Call.ClosedNS = closed
		if o.Call.Status == engine.StatusRefused && a.expectsRefusal(o.Step) {
			refused, last = true, max(last, o.Call.ReplyNS)
		}
		a.observe(o)
	}
	if closeErr != nil {
		return closeErr
	}
	if refused {
		if err := a.unchanged(ctx, before, last); err != nil {
			return err
		}
	}
	var stopped error
	for i, s := range steps {
		if err := failed[i]; err != nil && !errors.Is(err, ErrStopped) {
			infos[i].Outcome, infos[i].Note = "failed", string(a.rules.Bytes([]byte(err.Error())))
		}
		a.observe(evidence.Observation{Kind: evidence.KindStep, Step: s.Name, StepInfo: &infos[i]})
		stopped = errors.Join(stopped, failed[i])
		// A single call that had to be delivered and was not ends the row, as it does outside of a group: what it names is not there. Of many
		// calls some may be refused; the judge counts them.
		if s.Calls() == 1 && !a.expectsRefusal(s.Name) && slices.ContainsFunc(g.calls, func(o evidence.Observation) bool {
			return o.Step == s.Name && o.Call.Status != engine.StatusOK
		}) {
			stopped = errors.Join(stopped, ErrStopped)
		}
	}
	return stopped
}

// callers has every caller of a step make its calls. The first error of each ends what that caller does.
func (a *Attempt) callers(ctx context.Context, s matrix.Step, do Do) error {
	errs := make([]error, max(s.Int("callers"), 1))
	var wait sync.WaitGroup
	for i := range errs {
		wait.Go(func() {
			for range max(s.Int("times"), 1) {
				if errs[i] = do(ctx, a, s); errs[i] != nil {
					return
				}
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// callInGroup makes one call of a group: nothing is collected and no window of time is closed before the group's end.
func (a *Attempt) callInGroup(ctx context.Context, m *member, op engine.Operation, args map[string]any, aim Aim) (*engine.Result, error) {
	body, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("encode arguments of %s: %w", op, err)
	}
	call := newCall(op, body, aim)
	call.Grouped = true
	raw, result := a.dispatch(ctx, op, body, call)
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	a.text.trajectory(m.step, op, body, raw, call.Carrier, call)
	m.group.calls = append(m.group.calls, evidence.Observation{Kind: evidence.KindCall, Step: m.step, Call: call})
	return result, nil
}
