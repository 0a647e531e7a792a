package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// stored looks once at a scope in which something was said or a session ended,
// however many wake-ups say so.
func (s *Service) stored(ctx context.Context, in []events.Event[events.EpisodeStored]) ([]events.Payload, error) {
	fact := in[0].Data.Scope
	look, err := s.look(ctx, fact)
	if err != nil {
		return nil, err
	}
	v := said
	for _, e := range in {
		if e.Delivery > 1 {
			v = wokenAgain
		}
		if e.Data.Run != "" {
			s.runs.ask(e.Data)
		}
	}
	ends, err := s.switches(ctx, look, v == wokenAgain)
	if err != nil {
		return nil, err
	}
	ticks, err := s.ticks(ctx, look, slices.Concat(s.rules, s.off), v)
	return append(ends, ticks...), err
}

func (s *Service) look(ctx context.Context, fact scope.Scope) (store.Standing, error) {
	look, err := s.deps.Schedule.Look(ctx, fact)
	if err != nil {
		return look, fmt.Errorf("look at the scope: %w", err)
	}
	return look, nil
}

func visitOf(m events.Meta) visit {
	if m.Delivery > 1 {
		return wokenAgain
	}
	return woken
}

// ticks issues the due ticks of a scope. Rules without a free slot wait in a
// queue.
func (s *Service) ticks(ctx context.Context, look store.Standing, rules []rule, v visit) ([]events.Payload, error) {
	var out []events.Payload
	for _, r := range rules {
		t, err := s.tick(ctx, r, look.Pending(r.ID), v)
		if errors.Is(err, errFull) {
			s.await(ctx, r, look.State)
			continue
		}
		if err != nil {
			return out, fmt.Errorf("rule %s: %w", r.ID, err)
		}
		out = append(out, payloads(t)...)
	}
	return out, nil
}

// await queues a scope until a slot is free. If one is free already, other scopes
// were before it. It reports whether it appended the scope.
func (s *Service) await(ctx context.Context, r rule, state memory.State) (joined bool) {
	project := state.Scope.Project
	joined = s.waiting.join(queue{project, r.ID}, state.Scope)
	if n, err := s.slots.free(ctx, project, r.ID, s.deps.Now()); err != nil || n > 0 {
		nudge(s.queueReady)
	}
	return joined
}

// maxWakeAge is the greatest age of a commit that wakes a scope. A consumer that
// begins at the start of the stream leaves older ones to the sweep.
const maxWakeAge = 5 * time.Minute

// erased passes what needs no tick: the scopes of the user are gone.
func (s *Service) erased(context.Context, events.Event[events.UserErased]) ([]events.Payload, error) {
	return nil, nil
}

// committed issues the next tick of a rule whose watermark moved, and hands on
// the slot that the commit gave back. Where these could not be published, the
// message comes again, and they are issued again.
func (s *Service) committed(ctx context.Context, in events.Event[commit]) ([]events.Payload, error) {
	c := in.Data
	if slices.ContainsFunc(s.upkeep, func(r rule) bool { return r.ID == c.Rule }) {
		nudge(s.pruned)
		return nil, nil
	}
	now := s.deps.Now()
	if c.Watermark == nil || now.Sub(in.Arrived) > maxWakeAge {
		return nil, nil
	}
	mine := s.slots.release(claimed{c.Scope, c.Rule}, *c.Watermark, now)
	if c.Rule == s.answering {
		s.endRequest(c.Scope)
	}
	v := visitOf(in.Meta)
	var out []events.Payload
	if !mine || c.More || s.lagging.has(c.Scope) {
		// Otherwise this process issued the tick, and the tick covered all episodes up to
		// the commit. A process that meets the claim during the commit looks again. A
		// process that met the claim earlier may be dead, so the commit says More.
		var err error
		if out, err = s.follow(ctx, c, v); err != nil {
			return out, err
		}
	}
	next, again := s.handed.of(in.ID)
	if v != wokenAgain || !again {
		// The next look into the queues meets the same error.
		var err error
		if next, err = s.serve(ctx, c.Scope.Project, 1); err != nil {
			nudge(s.queueReady)
		}
		s.handed.note(in.ID, next)
	}
	return append(out, next...), nil
}

// follow looks at the scope and rule of a commit.
func (s *Service) follow(ctx context.Context, c commit, v visit) ([]events.Payload, error) {
	r, ok := s.rule(c.Rule)
	if !ok {
		return nil, nil
	}
	look, err := s.look(ctx, c.Scope)
	if err != nil {
		return nil, err
	}
	if c.Incarnation != look.Incarnation {
		return nil, nil
	}
	behind := look.Revision < c.Revision
	if behind {
		look.State = ahead(look.State, c)
	}
	out, err := s.ticks(ctx, look, []rule{r}, v)
	if behind && err == nil && len(out) == 0 {
		// Until the store has applied it, an episode that is announced finds the
		// claim of this effect in its way, and this is the only wake-up left.
		s.lagging.add(c.Scope, c.Revision, s.deps.Now())
	}
	return out, err
}

// ahead is the state as it will be once the store has applied the commit.
func ahead(state memory.State, c commit) memory.State {
	marks := maps.Clone(state.Watermarks)
	if marks == nil {
		marks = make(map[string]uint64)
	}
	marks[c.Rule] = max(marks[c.Rule], *c.Watermark)
	state.Watermarks, state.Revision = marks, max(state.Revision, c.Revision)
	return state
}

// revisit looks at the scopes that the store has caught up with, and serves the
// queues until no slot is free.
func (s *Service) revisit(ctx context.Context, now time.Time) ([]events.Payload, error) {
	out, err := s.caughtUp(ctx, now)
	if err != nil {
		return settled(out, err)
	}
	ticks, err := s.serve(ctx, "", maxServed)
	if len(ticks) == maxServed {
		nudge(s.queueReady)
	}
	return settled(append(out, ticks...), err)
}

// maxServed bounds the ticks of one look into the queues: they are published
// together, and the next look follows at once.
const maxServed = 64

// serve calls the waiting scopes of one project or, for "", of all, until n ticks
// are issued, no slot is free or the queues are empty. It returns the issued ticks
// also with an error.
func (s *Service) serve(ctx context.Context, project string, n int) ([]events.Payload, error) {
	var out []events.Payload
	for called := true; called; {
		called = false
		for _, q := range s.waiting.turns(project) {
			if len(out) >= n {
				return out, nil
			}
			ticks, ok, err := s.callOne(ctx, q)
			out = append(out, ticks...)
			if err != nil {
				return out, err
			}
			called = called || ok
		}
	}
	return out, nil
}

// callOne calls the head of a queue if the rule has a slot. It reports whether
// there was anything to do.
func (s *Service) callOne(ctx context.Context, q queue) ([]events.Payload, bool, error) {
	r, ok := s.rule(q.rule)
	if !ok {
		return nil, false, nil
	}
	if n, err := s.slots.free(ctx, q.project, q.rule, s.deps.Now()); err != nil || n == 0 {
		return nil, false, err
	}
	fact, ok := s.waiting.call(q)
	if !ok {
		return nil, false, nil
	}
	t, err := s.recall(ctx, r, fact)
	as := failed
	switch {
	case err == nil:
		as = served
	case errors.Is(err, errFull):
		as = unserved
	}
	if s.waiting.settle(q, fact, as) {
		nudge(s.sweepAgain)
	}
	if as == unserved {
		return nil, false, nil
	}
	return payloads(t), err == nil, err
}

// recall looks again at a scope that has waited.
func (s *Service) recall(ctx context.Context, r rule, fact scope.Scope) (*events.TickIssued, error) {
	look, err := s.look(ctx, fact)
	if err != nil {
		return nil, err
	}
	return s.tick(ctx, r, look.Pending(r.ID), called)
}

// settled is what a run that failed half-way returns: ticks that are claimed
// must be published, and what failed is met again by the next run.
func settled(out []events.Payload, err error) ([]events.Payload, error) {
	if len(out) > 0 {
		return out, nil
	}
	return nil, err
}
