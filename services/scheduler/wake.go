package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// stored looks at a scope in which something was said or a session ended.
func (s *Service) stored(ctx context.Context, in events.Event[events.EpisodeStored]) ([]events.Payload, error) {
	fact := in.Data.Scope
	state, err := s.deps.Schedule.State(ctx, fact)
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	v := visitOf(in.Meta)
	ends, err := s.switches(ctx, fact, v == wokenAgain)
	if err != nil {
		return nil, err
	}
	ticks, err := s.ticks(ctx, state, s.rules, v)
	return append(ends, ticks...), err
}

func visitOf(m events.Meta) visit {
	if m.Delivery > 1 {
		return wokenAgain
	}
	return woken
}

// ticks issues what is due in a scope. Rules without a free slot go to the
// agenda.
func (s *Service) ticks(ctx context.Context, state memory.State, rules []rule, v visit) ([]events.Payload, error) {
	var out []events.Payload
	for _, r := range rules {
		t, err := s.tick(ctx, r, state, v)
		if errors.Is(err, errFull) {
			s.await(state)
			continue
		}
		if err != nil {
			return out, fmt.Errorf("rule %s: %w", r.ID, err)
		}
		out = append(out, payloads(t)...)
	}
	return out, nil
}

// await puts a scope on the agenda until a slot is free.
func (s *Service) await(state memory.State) {
	now := s.deps.Now()
	s.agenda.add(entry{fact: state.Scope, added: now, due: now.Add(agendaInterval)})
}

// maxWakeAge is how old a commit may be to wake anybody: a consumer that begins
// at the stream's beginning leaves what lies far back to the sweep.
const maxWakeAge = 5 * time.Minute

// committed issues the next tick of a rule whose watermark moved.
func (s *Service) committed(ctx context.Context, in events.Event[commit]) ([]events.Payload, error) {
	c := in.Data
	now := s.deps.Now()
	if c.Watermark == nil || now.Sub(in.Arrived) > maxWakeAge {
		return nil, nil
	}
	s.slots.release(c.Scope.Project, c.Rule)
	if s.agenda.waiting(c.Scope.Project) {
		nudge(s.agendaReady)
	}
	r, ok := s.rule(c.Rule)
	if !ok {
		return nil, nil
	}
	state, err := s.deps.Schedule.State(ctx, c.Scope)
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	if c.Incarnation != state.Incarnation {
		return nil, nil
	}
	behind := state.Revision < c.Revision
	if behind {
		state = ahead(state, c)
	}
	out, err := s.ticks(ctx, state, []rule{r}, visitOf(in.Meta))
	if behind && err == nil && len(out) == 0 {
		// Until the store has applied it, an episode that is announced finds the
		// claim of this effect in its way, and this is the only wake-up left.
		s.agenda.add(entry{fact: c.Scope, revision: c.Revision, added: now, due: now.Add(agendaInterval)})
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
	state.Watermarks = marks
	return state
}

// maxBehind is how long the agenda waits for the store to apply an effect.
const maxBehind = 30 * time.Second

// revisit looks at the scopes of the agenda, as far as their projects have
// slots.
func (s *Service) revisit(ctx context.Context, now time.Time) ([]events.Payload, error) {
	free := make(map[string]int)
	for _, project := range s.agenda.turns() {
		n, err := s.slots.free(ctx, project, now)
		if err != nil {
			return nil, err
		}
		free[project] = n
	}
	var out []events.Payload
	var failed error
	for _, e := range s.agenda.take(now, free) {
		if failed != nil {
			s.agenda.add(e)
			continue
		}
		ticks, err := s.revisitOne(ctx, e, now)
		if err != nil {
			failed = err
			s.agenda.add(e)
		}
		out = append(out, ticks...)
	}
	return settled(out, failed)
}

func (s *Service) revisitOne(ctx context.Context, e entry, now time.Time) ([]events.Payload, error) {
	state, err := s.deps.Schedule.State(ctx, e.fact)
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	if state.Revision < e.revision && now.Sub(e.added) < maxBehind {
		e.due = now.Add(agendaInterval)
		s.agenda.add(e)
		return nil, nil
	}
	return s.ticks(ctx, state, s.rules, woken)
}

// settled is what a run that failed half-way returns: ticks that are claimed
// must be published, and what failed is met again by the next run.
func settled(out []events.Payload, err error) ([]events.Payload, error) {
	if len(out) > 0 {
		return out, nil
	}
	return nil, err
}
