package scheduler

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// maxBehind is how long is waited for the store to apply an effect.
const maxBehind = 30 * time.Second

// maxLagging bounds the scopes that are looked at; the sweep finds the others.
const maxLagging = 4096

// lagging holds the scopes that are looked at again once the store has applied their
// next effect: its commit was heard of before that, or there are more episodes than the
// tick under way covers. Another process may hear of the commit.
type lagging struct {
	mu     sync.Mutex
	scopes map[scope.Scope]lag
}

// lag says since when the store owes which revision, and when to look.
type lag struct {
	revision   uint64
	since, due time.Time
}

// add makes an entry, or raises the revision of the one that the scope has.
func (l *lagging) add(fact scope.Scope, revision uint64, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.scopes == nil {
		l.scopes = make(map[scope.Scope]lag)
	}
	e, known := l.scopes[fact]
	switch {
	case known:
		e.revision = max(e.revision, revision)
	case len(l.scopes) >= maxLagging:
		return
	default:
		e = lag{revision: revision, since: now, due: now.Add(revisitInterval)}
	}
	l.scopes[fact] = e
}

// has reports whether a scope is to be looked at, or may have been refused.
func (l *lagging) has(fact scope.Scope) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.scopes[fact]
	return known || len(l.scopes) >= maxLagging
}

// due lists the scopes to look at now, those that have waited longest first.
func (l *lagging) due(now time.Time) []scope.Scope {
	l.mu.Lock()
	defer l.mu.Unlock()
	var facts []scope.Scope
	for fact, e := range l.scopes {
		// Before it was added the clock was set back, and nothing is known of when.
		if !e.due.After(now) || now.Before(e.since) {
			facts = append(facts, fact)
		}
	}
	slices.SortFunc(facts, func(a, b scope.Scope) int {
		return cmp.Or(l.scopes[a].since.Compare(l.scopes[b].since), strings.Compare(a.String(), b.String()))
	})
	return facts
}

// seen takes the revision that the store has. It reports whether the wait for the
// scope is over, and removes the entry then.
func (l *lagging) seen(fact scope.Scope, revision uint64, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.scopes[fact]
	if revision < e.revision && now.Sub(e.since).Abs() < maxBehind {
		e.due = now.Add(max(revisitInterval, now.Sub(e.since).Abs()/4))
		l.scopes[fact] = e
		return false
	}
	delete(l.scopes, fact)
	return true
}

// caughtUp looks at the scopes that the store has caught up with.
func (s *Service) caughtUp(ctx context.Context, now time.Time) ([]events.Payload, error) {
	var out []events.Payload
	for _, fact := range s.lagging.due(now) {
		look, err := s.look(ctx, fact)
		if err != nil {
			return out, err
		}
		if !s.lagging.seen(fact, look.Revision, now) {
			continue
		}
		ticks, err := s.ticks(ctx, look, slices.Concat(s.rules, s.off), woken)
		out = append(out, ticks...)
		if err != nil {
			s.lagging.add(fact, look.Revision, now)
			return out, err
		}
	}
	return out, nil
}
