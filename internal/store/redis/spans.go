package redis

import (
	"context"
	"sync"

	"palimpsest/pkg/scope"
)

// maxSpans bounds how many selectors are remembered.
const maxSpans = 4096

// spans remembers which fact scopes a selector spanned, so that they need not be
// asked for before what they hold. A scope that is there stays there, and another is
// counted before it holds anything: whoever lets one go must have them forgotten.
type spans struct {
	mu     sync.Mutex
	scopes map[span]spanned
}

// spanned are the fact scopes of a selector when so many had been opened; one more
// than maxPlaces stands for many.
type spanned struct {
	facts    []scope.Scope
	openings string
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

func (m *spans) of(sel scope.Selector) spanned {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.scopes[spanOf(sel)]
}

func (m *spans) note(sel scope.Selector, found spanned) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.scopes == nil || len(m.scopes) >= maxSpans {
		m.scopes = map[span]spanned{}
	}
	m.scopes[spanOf(sel)] = found
}

func (m *spans) forget(sel scope.Selector) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.scopes, spanOf(sel))
}

// spanned returns the fact scopes that a selector spans. None is not remembered: what
// would be asked then is as much as looking again.
func (s *Store) spanned(ctx context.Context, t *tenure, sel scope.Selector) (found spanned, err error) {
	if found = t.spans.of(sel); len(found.facts) > 0 {
		return found, nil
	}
	var count any
	if sel.User != nil {
		if count, err = s.call(ctx, t.countOf(sel)...); err != nil { // before the search that it validates
			return found, err
		}
	}
	a, err := s.search(ctx, s.searchArgs(of(kindState).within(t.layout, sel), maxPlaces+1, returning("okey")...))
	if err != nil {
		return found, err
	}
	found = spanned{make([]scope.Scope, len(a.rows)), text(count)}
	known := owners{}
	for i, row := range a.rows {
		if found.facts[i], err = known.of(row.get("okey")); err != nil {
			return found, err
		}
	}
	if len(found.facts) > 0 {
		t.spans.note(sel, found)
	}
	return found, nil
}

// countOf asks how many scopes were opened among those of a selector of one user, or
// more.
func (l layout) countOf(sel scope.Selector) []any {
	return []any{"GET", l.openings(sel.Project, *sel.User)}
}
