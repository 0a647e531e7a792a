package redis

import (
	"fmt"
	"testing"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// searcher looks for what agents of one user hold, as another process does, which
// remembers the scopes that there were.
type searcher struct {
	t *testing.T
	s *Store
}

func (r searcher) finds(what string, want int) {
	r.t.Helper()
	sel := scope.Under(scope.Scope{Project: ana.Project, User: ana.User})
	hits, err := r.s.SearchText(r.t.Context(), sel, "note", store.SearchQuery{Target: store.Facts, Limit: 100})
	if err != nil || len(hits) != want {
		r.t.Errorf("%s: %d facts, %v; want %d", what, len(hits), err, want)
	}
}

func agentOf(i int) scope.Scope {
	return scope.Scope{Project: ana.Project, User: ana.User, Agent: fmt.Sprintf("agent %d", i)}
}

func remember(t *testing.T, s *Store, in scope.Scope, revision uint64) {
	t.Helper()
	e := benchEffect("note", revision)
	e.Scope = in
	e.Facts = e.Facts[:1]
	if err := s.Apply(t.Context(), e, revision); err != nil {
		t.Fatal(err)
	}
}

// TestNewScopeIsFoundAtOnce: who remembers the scopes of a user finds what was written
// into another as soon as that is done, be they few or many.
func TestNewScopeIsFoundAtOnce(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	writer, reader := openNew(t, cfg), searcher{t, openAt(t, cfg)}
	reader.finds("nothing yet", 0)
	for i := range maxPlaces + 3 {
		remember(t, writer, agentOf(i), 1)
		reader.finds(fmt.Sprintf("%d scopes", i+1), i+1)
	}
}

// TestHalfOpenedScopeIsOpenedAnew: one that died while it opened a scope leaves
// nothing behind that hides what is written there later.
func TestHalfOpenedScopeIsOpenedAnew(t *testing.T) {
	t.Parallel()
	state := func(t *testing.T, s *Store, p place) {
		t.Helper()
		b := newBatch(p)
		b.state = p.scopeFields(kindState, p.fact)
		if _, err := s.commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for name, halfway := range map[string]func(t *testing.T, s *Store, p place){
		"before it was counted": state,
		"before it was written to": func(t *testing.T, s *Store, p place) {
			t.Helper()
			state(t, s, p)
			if _, err := s.call(t.Context(), "INCR", p.tenure.openings(p.fact.Project, p.fact.User)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			dead, writer := openNew(t, cfg), openAt(t, cfg)
			early, late := searcher{t, openAt(t, cfg)}, searcher{t, openAt(t, cfg)}
			remember(t, dead, agentOf(0), 1)
			early.finds("before", 1)
			halfway(t, dead, dead.place(agentOf(1)))
			late.finds("halfway", 1)
			remember(t, writer, agentOf(1), 1)
			for _, r := range []searcher{early, late} {
				r.finds("after", 2)
			}
		})
	}
}

// TestCountThatWentBack: a counter may be lost while what was counted is still there.
func TestCountThatWentBack(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	writer, reader := openNew(t, cfg), searcher{t, openAt(t, cfg)}
	remember(t, writer, agentOf(0), 1)
	reader.finds("before", 1)
	remember(t, writer, agentOf(1), 1)
	counter := writer.layout().openings(ana.Project, ana.User)
	if _, err := writer.call(t.Context(), "SET", counter, 1); err != nil {
		t.Fatal(err)
	}
	reader.s.lose() // as a new connection tells it
	reader.finds("after", 2)
}
