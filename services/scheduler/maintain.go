package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

const (
	// maxUpkeep bounds the facts that are under maintenance at a time, and a page.
	maxUpkeep = 1000
	// maxUpkeepPages bounds the due facts that one run looks at.
	maxUpkeepPages = 100
	// maxTended bounds the facts under maintenance that are remembered.
	maxTended = 1 << 16
	// settlesIn is how long a fact under maintenance counts for maxUpkeep. One that
	// takes longer may never settle, and must not keep others waiting.
	settlesIn = time.Minute
)

// tending is when facts were last put under maintenance. A fact that is due again was
// not settled. Forgetting one costs a tick that changes nothing.
type tending map[announcement]time.Time

func tendingOf(step string, d store.Decayed) announcement {
	return announcement{scope: d.Scope, ordinal: d.Incarnation, hold: step + d.ID}
}

// note remembers that a fact is under maintenance.
func (t tending) note(key announcement, now time.Time) {
	if len(t) >= maxTended {
		maps.DeleteFunc(t, func(_ announcement, at time.Time) bool { return now.Sub(at).Abs() >= announcedFor })
	}
	if len(t) >= maxTended {
		clear(t)
	}
	t[key] = now
}

// maintain issues the ticks of the maintenance rules that fired. The store decides
// which facts and entities are due: a fact that was pruned is not due again, nor an
// entity that has its summary. The store's order is the
// cursor, so a run that was stopped goes on where it stood, and a second one
// finds nothing.
func (s *Service) maintain(ctx context.Context, now time.Time) ([]events.Payload, error) {
	var out []events.Payload
	for _, r := range s.upkeep {
		ticks, err := s.upkeepTicks(ctx, r, now)
		out = append(out, ticks...)
		if err != nil {
			return settled(out, fmt.Errorf("rule %s: %w", r.ID, err))
		}
	}
	return out, nil
}

func (s *Service) upkeepTicks(ctx context.Context, r rule, now time.Time) ([]events.Payload, error) {
	if err := s.openFire(ctx, r, now); err != nil {
		return nil, err
	}
	f, open := s.fires.get(r.ID)
	if !open {
		return nil, nil
	}
	var out []events.Payload
	left := false
	for _, step := range r.Steps {
		due, some, err := s.untended(ctx, step, f.at, now)
		if err != nil {
			return out, fmt.Errorf("list what is due for %s: %w", step, err)
		}
		left = left || some
		out = append(out, s.composeUpkeep(r, step, due, now)...)
	}
	if left {
		return out, nil
	}
	if err := s.deps.Schedule.SetLastFire(ctx, r.ID, f.at); err != nil {
		return out, fmt.Errorf("store last fire: %w", err)
	}
	s.fires.remove(r.ID)
	return out, nil
}

// untended returns due facts or entities that are not under way, and whether any is due. It looks
// behind those that are: some may never settle. Those that come again take the room
// that the others leave.
func (s *Service) untended(ctx context.Context, step string, at, now time.Time) (list []store.Decayed, some bool, err error) {
	var again []store.Decayed
	read := s.deps.Schedule.Decayed
	if step == events.StepEnrich {
		read = s.deps.Schedule.Undescribed
	}
	room := maxUpkeep
	for page := range maxUpkeepPages {
		due, err := read(ctx, store.DecayQuery{At: at, Offset: page * maxUpkeep, Limit: maxUpkeep})
		if err != nil {
			return nil, true, err
		}
		some = some || len(due) > 0
		for _, d := range due {
			began, known := s.tending[tendingOf(step, d)]
			switch since := now.Sub(began).Abs(); {
			case !known:
				list = append(list, d)
			case since >= announcedFor:
				again = append(again, d)
			case since < settlesIn:
				room--
			}
		}
		if len(due) < maxUpkeep || len(list) >= room {
			break
		}
	}
	list = append(list, again...)
	return list[:min(len(list), max(room, 0))], some, nil
}

// composeUpkeep makes the ticks of one step, some for each scope.
func (s *Service) composeUpkeep(r rule, step string, due []store.Decayed, now time.Time) []events.Payload {
	var order []scope.Scope
	byScope := map[scope.Scope][]string{}
	incarnation := map[scope.Scope]uint64{}
	for _, d := range due {
		s.tending.note(tendingOf(step, d), now)
		if byScope[d.Scope] == nil {
			order = append(order, d.Scope)
		}
		byScope[d.Scope] = append(byScope[d.Scope], d.ID)
		incarnation[d.Scope] = d.Incarnation
	}
	most, class := events.MaxUpkeepFacts, memory.UpkeepClass(r.Rule, step)
	if step == events.StepEnrich {
		most = events.MaxUpkeepEntities
	}
	var out []events.Payload
	for _, fact := range order {
		for ids := range slices.Chunk(byScope[fact], most) {
			out = append(out, events.TickIssued{Batch: events.Batch{
				Header: events.Header{Scope: fact, Incarnation: incarnation[fact]}, Rule: r.ID, Class: class, Cause: events.CauseMaintenance,
				Upkeep: &events.Upkeep{Step: step, FactIDs: ids, At: now.Truncate(time.Microsecond)},
			}})
		}
	}
	return out
}
