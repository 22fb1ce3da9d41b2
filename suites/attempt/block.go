package attempt

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/engine-acceptance/acceptance/engine"
	"github.com/engine-acceptance/acceptance/evidence"
	"github.com/engine-acceptance/acceptance/matrix"
	"github.com/engine-acceptance/acceptance/suites/stage"
)

// collectEvery is how often the oracles are drained between the rounds of a block, so that none of them has to keep all of it.
const collectEvery = 500 * time.Millisecond

// lane is where in a block a call is made.
type lane struct {
	block, step string
	round, lane int
}

type laneKey struct{}

func laneOf(ctx context.Context) *lane {
	l, _ := ctx.Value(laneKey{}).(*lane)
	return l
}

// Block carries the steps inside a block out: each round does every lane once, the lanes of a round at the same time. The whole block is one
// window of time. The order of things within a round differs from round to round, by numbers drawn from the row's name, so that a row that
// is done again is done alike.
func (a *Attempt) Block(ctx context.Context, block matrix.Step) error {
	spread := block.Duration("spread")
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(a.Contract.ID))
	random := rand.New(rand.NewPCG(seed.Sum64(), 1))
	if err := a.collect(ctx); err != nil {
		return err
	}
	none := slices.ContainsFunc(a.Contract.Expect.Blocks, func(r matrix.BlockExpect) bool { return r.Of == block.Name && r.None })
	var before *system
	if none {
		var err error
		if before, err = a.look(ctx); err != nil {
			return a.fault("harness", "look at the system before refusals: %v", err)
		}
	}
	a.inFlight = true
	last := time.Now()
	var failed error
	for round := 1; round <= block.Int("times") && failed == nil; round++ {
		if failed = a.goThrough(ctx, block, 0, round); failed != nil {
			break
		}
		var all sync.WaitGroup
		errs := make([]error, len(block.Lanes))
		order := random.Perm(len(block.Lanes))
		delays := make([]time.Duration, len(block.Lanes))
		for i := range delays {
			if spread > 0 {
				delays[i] = time.Duration(random.Int64N(int64(spread)))
			}
		}
		if block.Bool("in_turn") {
			for i := range block.Lanes {
				errs[i] = a.goThrough(ctx, block, i+1, round)
			}
			order = nil
		}
		for _, i := range order {
			all.Go(func() {
				if err := pause(ctx, delays[i]); err != nil {
					errs[i] = err
					return
				}
				errs[i] = a.goThrough(ctx, block, i+1, round)
			})
		}
		all.Wait()
		failed = errors.Join(errs...)
		if time.Since(last) > collectEvery {
			if err := a.collect(ctx); err != nil {
				return err
			}
			last = time.Now()
		}
	}
	repliedNS := stage.Mono()
	err := a.closeWindow(ctx)
	a.inFlight = false
	switch {
	case err != nil:
		return err
	case failed != nil:
		return failed
	case none:
		return a.unchanged(ctx, before, repliedNS)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// goThrough goes once through one lane, 0 being what a round begins with. A call that was refused ends it, and is no error; an engine that is gone ends the block.
func (a *Attempt) goThrough(ctx context.Context, block matrix.Step, i, round int) error {
	for _, s := range block.Lane(i) {
		s = s.InRound(round)
		do, known := a.verbs[s.Verb]
		if !known {
			return errors.New("no verb " + s.Verb)
		}
		err := do(context.WithValue(ctx, laneKey{}, &lane{block.Name, s.Name, round, i}), a, s)
		switch {
		case errors.Is(err, errGone):
			return ErrStopped
		case errors.Is(err, ErrStopped):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// errGone is a [ErrStopped] after which no call can be answered any more.
var errGone = errors.Join(ErrStopped, errors.New("the engine is gone"))

// laneCall makes one call inside a block.
func (a *Attempt) laneCall(ctx context.Context, l lane, op engine.Operation, args map[string]any, aim Aim) (*engine.Result, error) {
	body, err := json.Marshal(args)
	if err != nil {
		return nil, a.fault("harness", "encode arguments of %s: %v", op, err)
	}
	call := newCall(op, body, aim)
	call.Block, call.Round, call.Lane = l.block, l.round, l.lane
	raw, result := a.dispatch(ctx, op, body, call)
	call.ClosedNS = call.ReplyNS
	a.nameMu.Lock()
	a.text.trajectory(l.step, op, body, raw, call.Carrier, call)
	a.nameMu.Unlock()
	if call.Snapshot != nil {
		// What a snapshot lists is judged where a row asks for it; hundreds of equal lists say no more than their number.
		call.Snapshot.Nodes = nil
	}
	a.observe(evidence.Observation{Kind: evidence.KindCall, Step: l.step, MonoNS: call.StartNS, Call: call})
	switch {
	case call.Carrier == "gone":
		return nil, errGone
	case result == nil || result.Status != engine.StatusOK:
		return result, ErrStopped
	}
	return result, nil
}
