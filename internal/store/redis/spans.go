package redis

import (
	"context"

	"palimpsest/pkg/scope"
)

// maxSpans bounds how many selectors are remembered.
const maxSpans = 4096

// spanned returns the fact scopes that a selector spans; maxPlaces+1 of them mean more than
// maxPlaces. It remembers them. A scope that exists is never removed, so the number of scopes
// shows whether there is a new one, and code that removes a scope must clear the memory.
// An empty list is not remembered: the check would cost as much as the search.
func (s *Store) spanned(ctx context.Context, t *tenure, sel scope.Selector) ([]scope.Scope, error) {
	if facts, ok := t.spans.Get(sel.String()); ok {
		return facts, nil
	}
	a, err := s.search(ctx, s.searchArgs(of(kindState).within(t.layout, sel), maxPlaces+1, returning("okey")...))
	if err != nil {
		return nil, err
	}
	facts, err := owners{}.ofAll(a.rows)
	if err == nil && len(facts) > 0 {
		t.spans.Put(sel.String(), facts, maxSpans)
	}
	return facts, err
}
