package redis

import (
	"slices"
	"testing"
	"time"

	"palimpsest/internal/store"
	"palimpsest/internal/store/storetest"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestPruneCostsWhatItPrunes: to find and close the facts that are due takes the same
// commands among 5,000 facts as among 500.
func TestPruneCostsWhatItPrunes(t *testing.T) {
	t.Parallel()
	const due = 50
	few, many := pruneOf(t, 500, due), pruneOf(t, 5_000, due)
	t.Logf("to prune %d: %v among 500, %v among 5,000", due, few, many)
	for name, n := range many {
		if n > few[name] {
			t.Errorf("%s: %d among 500 facts, %d among 5,000", name, few[name], n)
		}
	}
}

// pruneOf prunes a store of n facts and returns the commands that it took.
func pruneOf(t *testing.T, n, due int) map[string]int {
	t.Helper()
	s := openNew(t, countedConfig(t))
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	owner := scope.Scope{Project: "p", User: "ana"}
	revision := uint64(0)
	apply := func(facts []events.Fact) {
		t.Helper()
		revision++
		e := events.EffectCommitted{Header: events.Header{Scope: owner}, Revision: revision, Rule: "turn", Facts: facts, CommittedAt: at}
		if err := s.Apply(t.Context(), e, revision); err != nil {
			t.Fatal(err)
		}
	}
	for batch := range slices.Chunk(storetest.Fading(n, due, at), 250) {
		apply(batch)
	}
	sent := &counts{sent: map[string]int{}}
	addHook(s, sent)
	found, err := s.Decayed(t.Context(), store.DecayQuery{At: at, Limit: 1000})
	if err != nil || len(found) != due {
		t.Fatalf("%d due, %v", len(found), err)
	}
	var ids []string
	for _, d := range found {
		ids = append(ids, d.ID)
	}
	facts, err := s.FactsByID(t.Context(), owner, ids)
	if err != nil {
		t.Fatal(err)
	}
	var closed []events.Fact
	for _, f := range facts {
		f.Revision, f.ValidUntil = 2, &at
		closed = append(closed, f.Fact)
	}
	apply(closed)
	return sent.now()
}
