package redis

import (
	"fmt"
	"testing"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
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
		if n > few[name] && name != "PING" {
			t.Errorf("%s: %d among 500 facts, %d among 5,000", name, few[name], n)
		}
	}
}

// pruneOf prunes a store of n facts and returns the commands that it took.
func pruneOf(t *testing.T, n, due int) map[string]int {
	t.Helper()
	s := openNew(t, testConfig(t))
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
	var all []events.Fact
	for i := range n {
		text := fmt.Sprintf("fact %06d of many", i)
		f := events.Fact{
			ID: events.HashID("f", text), Revision: 1, Kind: events.FactSemantic, Subject: "user", Predicate: "likes", Object: text, Text: text,
			Hash: memory.HashText(text), Confidence: 0.9, DecayRate: 0.1, EventTime: at, CreatedAt: at, UpdatedAt: at, ValidFrom: at, SourceEpisodeIDs: []string{"e"},
		}
		if i%(n/due) == 0 {
			f.Confidence = 0.01
		}
		if all = append(all, f); len(all) == 250 {
			apply(all)
			all = nil
		}
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
