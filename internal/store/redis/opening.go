package redis

import (
	"context"
	"fmt"
	"sync"

	"palimpsest/internal/memory"
	"palimpsest/pkg/scope"
)

// A scope is opened before anything is written to it: first its state is there, then
// the count of openings grows, and only then comes the first write, with which the
// state says that it is open. Whoever finds one that is not, since another died in
// between, begins anew. So who knows the scopes of a selector, and as of which count,
// knows by the count alone whether there may be more that hold something; see [spans].

// fieldOpen of a state says that its scope was opened. (The field open is a session's.)
const fieldOpen = "born"

// maxOpened bounds how many scopes a process remembers as open.
const maxOpened = 1 << 16

// opened remembers scopes that were found open, or opened: they stay so for a tenure.
type opened struct {
	mu   sync.Mutex
	tags map[string]struct{}
}

func (o *opened) has(p place) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.tags[p.tag]
	return ok
}

func (o *opened) note(p place) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tags == nil || len(o.tags) >= maxOpened {
		o.tags = map[string]struct{}{}
	}
	o.tags[p.tag] = struct{}{}
}

// openings counts how often a scope of a user (be it the absent one) was opened. A
// count of a whole project would be one more write for each; the index counts them.
func (l layout) openings(project, user string) string {
	return l.shared(keyOpenings, token(project, user))
}

// openScopes does all that comes before the first write. Twice does no harm, but that
// readers look again.
func (s *Store) openScopes(ctx context.Context, t *tenure, places ...place) error {
	if len(places) == 0 {
		return nil
	}
	var counts [][]any
	states := make([]scriptCall, len(places))
	for i, p := range places {
		b := newBatch(p)
		b.state = p.scopeFields(kindState, p.fact)
		states[i] = b.call()
		counts = append(counts, []any{"INCR", t.openings(p.fact.Project, p.fact.User)})
	}
	if _, err := s.guardedAll(ctx, t, commitScript, states); err != nil {
		return fmt.Errorf("open scopes: %w", err)
	}
	if _, err := s.pipe(ctx, counts); err != nil {
		return fmt.Errorf("open scopes: %w", err)
	}
	for _, p := range places {
		t.opened.note(p)
	}
	return nil
}

// openFor opens the scopes that episodes are of, where that was not done.
func (s *Store) openFor(ctx context.Context, t *tenure, es []memory.Episode) error {
	var unknown []place
	var asks [][]any
	seen := map[scope.Scope]bool{}
	for _, e := range es {
		fact := e.Scope.Fact()
		if seen[fact] {
			continue
		}
		seen[fact] = true
		p := t.place(fact)
		if t.opened.has(p) {
			continue
		}
		unknown = append(unknown, p)
		asks = append(asks, []any{"HGET", p.state(), fieldOpen})
	}
	replies, err := s.pipe(ctx, asks)
	if err != nil {
		return err
	}
	var shut []place
	for i, p := range unknown {
		if replies[i] == nil {
			shut = append(shut, p)
		} else {
			t.opened.note(p)
		}
	}
	return s.openScopes(ctx, t, shut...)
}
