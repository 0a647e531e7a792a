package redis

import (
	"context"
	"sync"

	"palimpsest/pkg/scope"
)

// maxSpans bounds how many selectors are remembered.
const maxSpans = 4096

// spans caches which fact scopes a selector spans, so that a read need not look them
// up first; maxPlaces+1 scopes mean more than maxPlaces. A scope that exists is
// never removed, so the number of scopes shows whether there is a new one. Code that
// removes a scope must clear this cache.
type spans struct {
	mu     sync.Mutex
	scopes map[span][]scope.Scope
}

// span is a selector by its values.
type span struct {
	scope.Scope
	user, agent, session bool // named, be it as absent
}

func spanOf(sel scope.Selector) (s span) {
	s.Project = sel.Project
	for _, l := range []struct {
		level *string
		id    *string
		named *bool
	}{{sel.User, &s.User, &s.user}, {sel.Agent, &s.Agent, &s.agent}, {sel.Session, &s.Session, &s.session}} {
		if *l.named = l.level != nil; *l.named {
			*l.id = *l.level
		}
	}
	return s
}

func (m *spans) of(sel scope.Selector) []scope.Scope {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.scopes[spanOf(sel)]
}

func (m *spans) note(sel scope.Selector, found []scope.Scope) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.scopes == nil || len(m.scopes) >= maxSpans {
		m.scopes = map[span][]scope.Scope{}
	}
	m.scopes[spanOf(sel)] = found
}

func (m *spans) forget(sel scope.Selector) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.scopes, spanOf(sel))
}

// clear forgets all selectors.
func (m *spans) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scopes = nil
}

// spanned returns the fact scopes that a selector spans. None is not remembered: what
// would be asked then is as much as looking again.
func (s *Store) spanned(ctx context.Context, t *tenure, sel scope.Selector) ([]scope.Scope, error) {
	if facts := t.spans.of(sel); len(facts) > 0 {
		return facts, nil
	}
	a, err := s.search(ctx, s.searchArgs(of(kindState).within(t.layout, sel), maxPlaces+1, returning("okey")...))
	if err != nil {
		return nil, err
	}
	facts, known := make([]scope.Scope, len(a.rows)), owners{}
	for i, row := range a.rows {
		if facts[i], err = known.of(row.get("okey")); err != nil {
			return nil, err
		}
	}
	if len(facts) > 0 {
		t.spans.note(sel, facts)
	}
	return facts, nil
}
