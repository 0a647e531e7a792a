package redis

import (
	"fmt"
	"testing"

	"palimpsest/internal/memory"
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

// TestErasedScopesAreForgotten: behind an erasure, as many new scopes of the user are found
// as there were before.
func TestErasedScopesAreForgotten(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	r := searcher{t, s}
	for _, from := range []int{0, 2} {
		for i := range 2 {
			remember(t, s, agentOf(from+i), 1)
		}
		r.finds(fmt.Sprintf("agents from %d on", from), 2)
		if _, err := s.Erase(t.Context(), memory.Whom{Project: ana.Project, Is: func(user string) bool { return user == ana.User }}); err != nil {
			t.Fatal(err)
		}
		r.finds("after the erasure", 0)
	}
}
