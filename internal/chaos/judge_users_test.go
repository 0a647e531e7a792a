package chaos

import (
	"context"
	"testing"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// scopes is a store that holds something in these.
type scopes struct {
	store.StateReader
	store.EpisodeReader
	store.FactReader
	store.Ledger
	store.Exporter
	held []scope.Scope
}

func (s scopes) Projects(context.Context) ([]string, error) {
	return []string{"another", scope.DefaultProject}, nil
}

func (s scopes) Scopes(_ context.Context, sel scope.Selector, yield func(scope.Scope) bool) error {
	for _, fact := range s.held {
		if sel.Match(fact) && !yield(fact) {
			return nil
		}
	}
	return nil
}

// TestForeignScopesAreWrong: what is stored where nobody spoke is counted, in
// any project and at any level.
func TestForeignScopesAreWrong(t *testing.T) {
	t.Parallel()
	w := drawn(t, Size{Seed: 1, Episodes: 20, Users: 2, Kills: 1})
	var held []scope.Scope
	for _, u := range w.Users {
		held = append(held, u.scope())
	}
	one := held[0]
	foreign := []scope.Scope{
		{Project: "another", User: one.User, Agent: one.Agent},
		{Project: one.Project, User: one.User},
		{Project: one.Project, User: "nobody", Agent: one.Agent},
	}
	for n := range len(foreign) + 1 {
		j := &judge{workload: w}
		j.evidence.Store = scopes{held: append(held[:len(held):len(held)], foreign[:n]...)}
		if err := j.foreign(t.Context()); err != nil || j.verdict.Wrong != n || len(j.verdict.Findings) != n {
			t.Errorf("%d foreign scopes: %v, %+v", n, err, j.verdict)
		}
	}
}
