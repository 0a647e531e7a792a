package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

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

// BenchmarkSearch measures searches in one scope of n facts against the bare
// engine: an FTS5 query over the same texts, a scan of the same vectors.
func BenchmarkSearch(b *testing.B) {
	const dimensions = 256
	for _, n := range []int{1_000, 100_000} {
		s := openAt(b, Config{Path: filepath.Join(b.TempDir(), "memory.db")})
		fact := scope.Scope{Project: "p", User: "ana"}
		fillFacts(b, s, fact, n, dimensions)
		query := benchVector(rand.New(rand.NewPCG(9, 9)), dimensions)
		for _, text := range []string{"word300 word5000", "word0 word2 word300"} {
			b.Run(fmt.Sprintf("text/%d/%s", n, strings.ReplaceAll(text, " ", "+")), func(b *testing.B) {
				ours := timed(b, func() error {
					_, err := s.SearchText(b.Context(), scope.Under(fact), text, store.SearchQuery{Target: store.Facts, Limit: 20})
					return err
				})
				bare := timedOnce(b, 20, func() error {
					rows, err := s.reads.db.QueryContext(b.Context(), `SELECT rowid FROM temp.bare WHERE bare MATCH ? ORDER BY rank LIMIT 20`, orTerms(text))
					return drainRows(rows, err)
				})
				b.ReportMetric(float64(bare)/float64(ours), "bare/ours")
			})
		}
		b.Run(fmt.Sprintf("vector/%d", n), func(b *testing.B) {
			ours := timed(b, func() error {
				_, err := s.SearchVector(b.Context(), scope.Under(fact), query, store.SearchQuery{Target: store.Facts, Limit: 20})
				return err
			})
			sl := s.drawer.find(slabKey{store.Facts, 1})
			var sink float32
			bare := timedOnce(b, 20, func() error {
				for i := range sl.rows {
					sink += dot(query, sl.values[i*dimensions:(i+1)*dimensions])
				}
				return nil
			})
			_ = sink
			b.ReportMetric(float64(bare)/float64(ours), "bare/ours")
		})
	}
}

func timed(b *testing.B, f func() error) time.Duration {
	b.Helper()
	if err := f(); err != nil { // loads what stays in memory
		b.Fatal(err)
	}
	for b.Loop() {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
	return b.Elapsed() / time.Duration(b.N)
}

func timedOnce(b *testing.B, n int, f func() error) time.Duration {
	b.Helper()
	start := time.Now()
	for range n {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start) / time.Duration(n)
}

func orTerms(text string) string {
	terms := indexTerms(text)
	for i, t := range terms {
		terms[i] = `"` + t + `"`
	}
	return strings.Join(terms, " OR ")
}

func drainRows(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

func benchVector(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = r.Float32() - 0.5
	}
	return unit(v)
}

// fillFacts stores n embedded facts, and their texts once more in a bare table.
func fillFacts(b *testing.B, s *Store, fact scope.Scope, n, dimensions int) {
	b.Helper()
	v, r := newVocabulary(), rand.New(rand.NewPCG(3, 4))
	s.reads.db.SetMaxOpenConns(1) // the bare table is temporary
	if _, err := s.reads.db.ExecContext(b.Context(), `PRAGMA query_only = 0; CREATE VIRTUAL TABLE temp.bare USING fts5 (terms, content = '', tokenize = 'ascii')`); err != nil {
		b.Fatal(err)
	}
	tx, err := s.reads.db.BeginTx(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	const group = 500
	for from := 0; from < n; from += group {
		e := events.EffectCommitted{Header: events.Header{Scope: fact}, Revision: uint64(from/group + 1), Rule: "turn", CommittedAt: time.Unix(1, 0)}
		var vectors []store.Vector
		for i := from; i < from+group; i++ {
			f := events.Fact{ID: fmt.Sprintf("f%07d", i), Revision: 1, Kind: events.FactSemantic, Text: v.text(10), CreatedAt: time.Unix(int64(i), 0)}
			e.Facts = append(e.Facts, f)
			vectors = append(vectors, store.Vector{Ref: store.VectorRef{Target: store.Facts, Scope: fact, ID: f.ID, Revision: 1}, Values: benchVector(r, dimensions)})
			if _, err := tx.ExecContext(b.Context(), `INSERT INTO temp.bare (rowid, terms) VALUES (?, ?)`, i+1, strings.Join(indexTerms(f.Text), " ")); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.Apply(b.Context(), e, e.Revision); err != nil {
			b.Fatal(err)
		}
		if err := s.PutVectors(b.Context(), vectors); err != nil {
			b.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		b.Fatal(err)
	}
}
