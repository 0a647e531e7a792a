package scheduler

import (
	"context"
	"fmt"
	"sync"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// switched returns the ends of those open sessions of one fact scope that had
// been silent for grace when another began. It looks at the registry alone, so
// that a lost wake-up is made up for by the next: a session that spoke again
// since the other began goes on, and two that alternate end nothing.
func switched(open []memory.Session, grace time.Duration) []events.SessionEnded {
	var newest time.Time
	for _, s := range open {
		if s.Live && s.FirstSeen.After(newest) {
			newest = s.FirstSeen
		}
	}
	var ends []events.SessionEnded
	for _, s := range open {
		if s.Live && s.FirstSeen.Before(newest) && !s.LastSeen.Add(grace).After(newest) {
			ends = append(ends, endOf(s, events.EndSwitched, newest))
		}
	}
	return ends
}

func endOf(s memory.Session, cause events.EndCause, at time.Time) events.SessionEnded {
	return events.SessionEnded{
		Scope:       s.Scope,
		Cause:       cause,
		Timestamp:   events.Timestamp{Time: at.UTC()},
		LastOrdinal: s.LastOrdinal,
	}
}

// switches publishes the ends that a wake-up for a fact scope brings to light;
// again, where the attempt before may not have published them.
func (s *Service) switches(ctx context.Context, look store.Standing, again bool) ([]events.Payload, error) {
	if look.Scope.Session != "" || look.Open < 2 {
		return nil, nil // the scope is its only session, or none was left for another
	}
	open, err := s.deps.Schedule.OpenSessions(ctx, look.Scope)
	if err != nil {
		return nil, fmt.Errorf("list open sessions: %w", err)
	}
	if len(open) < 2 {
		return nil, nil
	}
	var out []events.Payload
	for _, end := range switched(open, s.cfg.SwitchGrace) {
		if s.announced.first(announcementOf(end), s.deps.Now()) || again {
			out = append(out, end)
		}
	}
	return out, nil
}

// maxEnds bounds the ends of one run; the next run finds the rest.
const maxEnds = 1000

// idle ends the sessions in which nothing arrived for SessionIdle.
func (s *Service) idle(ctx context.Context, now time.Time) ([]events.Payload, error) {
	var out []events.Payload
	err := s.deps.Schedule.IdleSessions(ctx, now.Add(-s.cfg.SessionIdle), func(session memory.Session) bool {
		end := endOf(session, events.EndIdle, session.LastSeen.Add(s.cfg.SessionIdle))
		if s.announced.first(announcementOf(end), now) {
			out = append(out, end)
		}
		return len(out) < maxEnds
	})
	if err != nil {
		return settled(out, fmt.Errorf("list idle sessions: %w", err))
	}
	return out, nil
}

// announcedFor is how long the finding of a sweep is not published again while its
// reader has not settled it: the reader may be busy or down.
const announcedFor = 5 * time.Minute

// announced remembers what sweeps published lately. Forgetting one costs a
// message that changes nothing.
type announced struct {
	mu   sync.Mutex
	last map[announcement]time.Time
}

// announcement is the end of a session at an ordinal, or the release of a hold.
type announcement struct {
	scope   scope.Scope
	ordinal uint64
	hold    string
}

func announcementOf(end events.SessionEnded) announcement {
	return announcement{scope: end.Scope, ordinal: end.LastOrdinal}
}

// first reports whether it was not published within announcedFor, and remembers
// it.
func (a *announced) first(key announcement, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, ok := a.last[key]; ok && now.Sub(at).Abs() < announcedFor {
		return false
	}
	if len(a.last) >= 4*maxEnds {
		for k, at := range a.last {
			if now.Sub(at).Abs() >= announcedFor {
				delete(a.last, k)
			}
		}
	}
	if a.last == nil || len(a.last) >= 4*maxEnds {
		a.last = make(map[announcement]time.Time)
	}
	a.last[key] = now
	return true
}
