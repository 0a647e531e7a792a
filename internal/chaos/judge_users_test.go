package chaos

import (
	"context"
	"testing"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
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

// TestForeignScopesAreWrong: rows under a scope without a publisher are counted,
// in any project and at any level.
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

// behind is a store that has stored none of the episodes in its ledger yet.
type behind struct {
	scopes
	pending uint64
}

func (behind) State(_ context.Context, fact scope.Scope) (memory.State, error) {
	return memory.State{Scope: fact}, nil
}

func (behind) EpisodeRange(context.Context, scope.Scope, events.Range) ([]memory.Episode, error) {
	return nil, nil
}

func (behind) Facts(context.Context, scope.Selector, store.FactQuery) ([]store.Fact, error) {
	return nil, nil
}

func (b behind) Accounts(context.Context, scope.Selector, []string) (out []store.Account, err error) {
	for _, fact := range b.held {
		out = append(out, store.Account{Scope: fact, Rule: "turn", Pending: b.pending})
	}
	return out, nil
}

// TestLatenessIsNoLoss: an episode that EPISODES holds and the store lacks waits, and
// the facts of its user are not judged; one that EPISODES lacks is lost.
func TestLatenessIsNoLoss(t *testing.T) {
	t.Parallel()
	w := drawn(t, Size{Seed: 1, Episodes: 20, Users: 2, Kills: 1})
	record := Record{Acks: make([]Acks, len(w.Voices))}
	published := map[string]bool{}
	for n, v := range w.Voices {
		for _, s := range v.Steps {
			record.Acks[n] = append(record.Acks[n], 1)
			published[w.Users[v.User].Episodes[s.Episode].ID] = true
		}
	}
	for name, gone := range map[string]map[string]bool{"late": {}, "gone": published} {
		j := &judge{workload: w, record: record, gone: gone, waiting: map[scope.Scope]uint64{}}
		j.evidence.Store = behind{scopes{held: []scope.Scope{w.Users[0].scope(), w.Users[1].scope()}}, 1}
		if err := j.users(t.Context()); err != nil {
			t.Fatal(err)
		}
		pending, lost := len(published), 0
		if name == "gone" {
			pending, lost = 0, len(published)
		}
		if j.verdict.Pending != pending || j.verdict.Lost != lost {
			t.Errorf("%s: %d pending, %d lost; want %d and %d", name, j.verdict.Pending, j.verdict.Lost, pending, lost)
		}
	}
	j := &judge{}
	j.account("a", store.Account{Accepted: 5, Pending: 3, Skipped: 2}, 5)
	if j.verdict.Pending != 3 || j.verdict.Lost != 2 || j.verdict.Unbalanced != 0 {
		t.Errorf("account: %+v", j.verdict)
	}
}
