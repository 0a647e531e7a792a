package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// vocabulary draws words as a language does: few of them often.
type vocabulary struct{ zipf *rand.Zipf }

func newVocabulary() vocabulary {
	return vocabulary{rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 5, 20_000)}
}

func (v vocabulary) text(words int) string {
	var b strings.Builder
	for range words {
		fmt.Fprintf(&b, "word%d ", v.zipf.Uint64())
	}
	return b.String()
}

// BenchmarkPutEpisode measures 256 callers against the same rows inserted in
// batches of 256, with the same indexes, by one loop that checks nothing.
func BenchmarkPutEpisode(b *testing.B) {
	for b.Loop() {
		const callers, each = 256, 80
		v := newVocabulary()
		texts := make([]string, callers*each)
		for i := range texts {
			texts[i] = v.text(15)
		}
		s := openAt(b, Config{Path: filepath.Join(b.TempDir(), "memory.db")})
		if err := s.watchRule(b.Context(), "turn"); err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for i := range each {
					e := testEpisode(fmt.Sprintf("u%d", c), fmt.Sprintf("id-%d", i))
					e.Content = texts[c*each+i]
					if _, err := s.PutEpisode(context.Background(), e); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		stored := float64(len(texts)) / time.Since(start).Seconds()

		raw := openAt(b, Config{Path: filepath.Join(b.TempDir(), "raw.db")})
		start = time.Now()
		insertRaw(b, raw, texts, callers)
		limit := float64(len(texts)) / time.Since(start).Seconds()
		b.ReportMetric(stored, "episodes/s")
		b.ReportMetric(limit, "raw-episodes/s")
		b.ReportMetric(stored/limit, "of-raw")
	}
}

func insertRaw(b *testing.B, s *Store, texts []string, scopes int) {
	b.Helper()
	err := s.write(b.Context(), func(w *writer) error {
		for i, text := range texts {
			if i%256 == 0 && i > 0 {
				if err := w.exec("COMMIT"); err != nil {
					return err
				}
				if err := w.exec("BEGIN IMMEDIATE"); err != nil {
					return err
				}
			}
			sc, id := int64(i%scopes), fmt.Sprintf("id-%d", i)
			if err := w.exec(`INSERT INTO episodes (scope_id, place_id, ordinal, id, source, ts, ts_offset, arrived, role, mode,
			  flags, seq, node, correlation, prompt, metadata, content) VALUES (?, ?, ?, ?, 'app', ?, 0, ?, 'user', 'persistent', 0, 0, '', '', '', NULL, ?)`,
				sc, sc, i, id, i, i, text); err != nil {
				return err
			}
			terms := indexTerms(text)
			if err := w.exec(`INSERT INTO episode_text (rowid, terms) VALUES (?, ?)`, docID(int64(i+1), len(terms)), tokens(sc, terms)); err != nil {
				return err
			}
			if err := w.exec(`INSERT INTO vector_queue (target, row) VALUES (2, ?)`, i+1); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkFactsOf reads what a decider asks before it takes up one thing more
// of 5,000 that a user likes.
func BenchmarkFactsOf(b *testing.B) {
	const known = 5000
	s := openAt(b, Config{Path: filepath.Join(b.TempDir(), "memory.db")})
	ana := scope.Scope{Project: "p", User: "ana"}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for revision := range uint64(known / 250) {
		e := events.EffectCommitted{Header: events.Header{Scope: ana}, Revision: revision + 1, Rule: "turn", CommittedAt: at}
		for i := range uint64(250) {
			game := fmt.Sprintf("board game number %d", revision*250+i)
			e.Facts = append(e.Facts, events.Fact{
				ID: game, Revision: 1, Kind: events.FactSemantic, Subject: "user", Predicate: "likes", Object: game,
				Text: "The user likes " + game + ".", Hash: memory.HashText(game), Cardinality: events.Many, Confidence: 1,
				EventTime: at, CreatedAt: at, UpdatedAt: at, ValidFrom: at, SourceType: events.SourceConversation,
				SourceRole: events.RoleUser, SourceEpisodeIDs: []string{game}, RuleID: "preference.likes",
			})
		}
		if err := s.Apply(b.Context(), e, revision+1); err != nil {
			b.Fatal(err)
		}
	}
	for name, ask := range map[string]func() ([]store.Fact, error){
		"predicate": func() ([]store.Fact, error) { return s.FactsByPredicate(b.Context(), ana, "user", "likes") },
		"triple": func() ([]store.Fact, error) {
			return s.FactsByTriple(b.Context(), ana, []events.Triple{{Subject: "user", Predicate: "likes", Object: "one more"}})
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := ask(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
