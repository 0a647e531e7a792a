package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestSearchKnowsTheRevisionThatWasRead: a decider that reads a revision and then
// searches finds what that revision holds, however close behind the commit it is.
// Else it would decide that something known is new, on a basis that is not stale.
func TestSearchKnowsTheRevisionThatWasRead(t *testing.T) {
	t.Parallel()
	const effects, factsEach = 30, 20
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "memory.db")})
	fact := scope.Scope{Project: "default", User: "nora"}
	text := "tea"
	for n := range 100 { // makes the update of memory after a commit slow
		text += fmt.Sprintf(" w%d", n)
	}
	writer, ctx := errgroup.WithContext(t.Context())
	writer.Go(func() error {
		for revision := uint64(1); revision <= effects; revision++ {
			e := events.EffectCommitted{Header: events.Header{Scope: fact}, Revision: revision, Rule: "turn", CommittedAt: time.Unix(1, 0)}
			for n := range factsEach {
				e.Facts = append(e.Facts, events.Fact{
					ID: fmt.Sprintf("f%d-%d", revision, n), Kind: events.FactSemantic, Revision: 1, Text: text, CreatedAt: time.Unix(1, 0),
				})
			}
			if err := s.Apply(t.Context(), e, revision); err != nil {
				return err
			}
		}
		return nil
	})
	words, sel := strings.Join(strings.Fields(text)[:40], " "), scope.Exactly(fact)
	for known := uint64(0); known < effects; {
		state, err := s.State(ctx, fact)
		if err != nil {
			t.Fatal(errors.Join(err, writer.Wait()))
		}
		if known = state.Revision; known == 0 {
			continue
		}
		for _, query := range []string{"tea", words} { // many words keep many lists in memory
			hits, err := s.SearchText(t.Context(), sel, query, store.SearchQuery{Target: store.Facts, Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			if least := int(known) * factsEach; len(hits) < least {
				t.Fatalf("%d facts found, at revision %d there are %d", len(hits), known, least)
			}
		}
	}
	if err := writer.Wait(); err != nil {
		t.Fatal(err)
	}
}
