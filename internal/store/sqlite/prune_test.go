package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/store"
	"palimpsest/internal/store/storetest"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestPruneCostsWhatItPrunes: the read of due facts follows their index, and closing 100
// facts writes some ten pages for each, among 100,000 as among 20,000.
func TestPruneCostsWhatItPrunes(t *testing.T) {
	t.Parallel()
	const due = 100
	few, many := pruneOf(t, 20_000, due), pruneOf(t, 100_000, due)
	t.Logf("bytes written to close %d facts: %d among 20,000, %d among 100,000", due, few, many)
	if most := int64(due * 12 * 4096); 2*many > 3*few || many > most {
		t.Errorf("%d bytes among 20,000 facts, %d among 100,000, of %d at most", few, many, most)
	}
}

// pruneOf returns how many bytes a store of n facts writes to close those of them that
// are due.
func pruneOf(t *testing.T, n, due int) int64 {
	t.Helper()
	const scopes = 20
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "memory.db")
	s := openAt(t, Config{Path: path})
	revision := make([]uint64, scopes)
	owner := func(i int) scope.Scope { return scope.Scope{Project: "p", User: fmt.Sprint(i)} }
	apply := func(i int, facts []events.Fact) {
		t.Helper()
		revision[i]++
		e := events.EffectCommitted{Header: events.Header{Scope: owner(i)}, Revision: revision[i], Rule: "turn", Facts: facts, CommittedAt: at}
		if err := s.Apply(t.Context(), e, revision[i]); err != nil {
			t.Fatal(err)
		}
	}
	batch := 0
	for facts := range slices.Chunk(storetest.Fading(n, due, at), n/scopes) {
		apply(batch, facts)
		batch++
	}
	for _, detail := range planOf(t, s, decayed.all) {
		if strings.HasPrefix(detail, "SCAN") || strings.Contains(detail, "TEMP B-TREE") {
			t.Errorf("the read of due facts: %s", detail)
		}
	}
	found, err := s.Decayed(t.Context(), store.DecayQuery{At: at, Limit: 1000})
	if err != nil || len(found) != due {
		t.Fatalf("%d due, %v", len(found), err)
	}
	var busy, logged, copied int
	if _, err := s.reads.one(t.Context(), `PRAGMA wal_checkpoint(TRUNCATE)`, nil, &busy, &logged, &copied); err != nil || busy != 0 {
		t.Fatalf("busy %d, %v", busy, err)
	}
	byScope := map[scope.Scope][]string{}
	for _, d := range found {
		byScope[d.Scope] = append(byScope[d.Scope], d.ID)
	}
	for i := range scopes {
		facts, err := s.FactsByID(t.Context(), owner(i), byScope[owner(i)])
		if err != nil {
			t.Fatal(err)
		}
		var closed []events.Fact
		for _, f := range facts {
			f.Revision, f.ValidUntil = 2, &at
			closed = append(closed, f.Fact)
		}
		apply(i, closed)
	}
	if left, err := s.Decayed(t.Context(), store.DecayQuery{At: at, Limit: 1000}); err != nil || len(left) > 0 {
		t.Fatalf("%d left, %v", len(left), err)
	}
	return logSize(t, path)
}

func logSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
