package sqlite

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

const (
	benchDimensions = 256
	benchLimit      = 20
	benchQueries    = 16 // of each form, asked in turns
)

// BenchmarkSearch measures text and vector searches in one scope against the
// bare engines, in turns in one run: an FTS5 query over the same texts that
// finds the same rows, and a scan of the same vectors by the same arithmetic. It
// reports medians of ours over bare; search is both together. Cold is the text
// search with nothing in memory but SQLite's pages.
func BenchmarkSearch(b *testing.B) {
	for _, target := range []store.Target{store.Facts, store.Episodes} {
		for _, n := range []int{1_000, 100_000} {
			name := map[store.Target]string{store.Facts: "facts", store.Episodes: "episodes"}[target]
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				c := newContest(b, target, n)
				for _, form := range []string{"rare", "common", "several", "name"} {
					b.Run(form, func(b *testing.B) { c.run(b, queriesOf(form, n)) })
				}
			})
		}
	}
}

// queriesOf returns questions over what contestText writes.
func queriesOf(form string, n int) []string {
	r := rand.New(rand.NewPCG(7, 7))
	queries := make([]string, benchQueries)
	for i := range queries {
		switch form {
		case "rare":
			queries[i] = fmt.Sprintf("word%d word%d", 2000+r.IntN(3000), 2000+r.IntN(3000))
		case "common":
			queries[i] = fmt.Sprintf("word%d", r.IntN(4))
		case "several":
			queries[i] = fmt.Sprintf("word%d word%d word%d word%d word%d", r.IntN(4), 4+r.IntN(16), 20+r.IntN(80), 100+r.IntN(400), 500+r.IntN(2000))
		case "name":
			queries[i] = fmt.Sprintf("Person%d", r.IntN(n/10))
		}
	}
	return queries
}

func contestText(v vocabulary, i int) string { return v.text(9) + fmt.Sprintf("Person%d", i/10) }

// contest is a store of one scope, and beside it the bare engines.
type contest struct {
	store  *Store
	target store.Target
	scope  scope.Scope
	bare   *sql.DB
	values []float32
}

func newContest(b *testing.B, target store.Target, n int) *contest {
	b.Helper()
	c := &contest{
		store:  openAt(b, Config{Path: filepath.Join(b.TempDir(), "memory.db")}),
		target: target, scope: scope.Scope{Project: "p", User: "ana"},
	}
	path := "file:" + filepath.Join(b.TempDir(), "bare.db") + "?_pragma=cache_size(-65536)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)"
	var err error
	if c.bare, err = sql.Open("sqlite", path); err != nil {
		b.Fatal(err)
	}
	c.bare.SetMaxOpenConns(1)
	b.Cleanup(func() { _ = c.bare.Close() })
	if _, err := c.bare.ExecContext(b.Context(), `CREATE VIRTUAL TABLE bare USING fts5 (terms, content = '', tokenize = 'ascii'); BEGIN`); err != nil {
		b.Fatal(err)
	}
	v := newVocabulary()
	texts := make([]string, n)
	for i := range texts {
		texts[i] = contestText(v, i)
		if _, err := c.bare.ExecContext(b.Context(), `INSERT INTO bare (rowid, terms) VALUES (?, ?)`, i+1, strings.Join(indexTerms(texts[i]), " ")); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := c.bare.ExecContext(b.Context(), `COMMIT`); err != nil {
		b.Fatal(err)
	}
	if target == store.Facts {
		fillFacts(b, c.store, c.scope, texts)
	} else {
		fillEpisodes(b, c.store, c.scope, texts)
	}
	c.embed(b)
	return c
}

// embed gives every row a vector.
func (c *contest) embed(b *testing.B) {
	b.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	for {
		pending, err := c.store.PendingVectors(b.Context(), 0, 1000)
		if err != nil {
			b.Fatal(err)
		}
		if len(pending) == 0 {
			return
		}
		vectors := make([]store.Vector, len(pending))
		for i, p := range pending {
			vectors[i] = store.Vector{Ref: p.Ref, Values: benchVector(r, benchDimensions)}
			c.values = append(c.values, vectors[i].Values...)
		}
		if err := c.store.PutVectors(b.Context(), vectors); err != nil {
			b.Fatal(err)
		}
	}
}

func (c *contest) run(b *testing.B, queries []string) {
	vectors := make([][]float32, len(queries))
	r := rand.New(rand.NewPCG(9, 9))
	for i := range vectors {
		vectors[i] = benchVector(r, benchDimensions)
	}
	q := store.SearchQuery{Target: c.target, Limit: benchLimit}
	sel := scope.Under(c.scope)
	scores := make([]float32, len(c.values)/benchDimensions)
	runs := []func(i int) error{
		func(i int) error { _, err := c.store.SearchText(b.Context(), sel, queries[i], q); return err },
		func(i int) error { return c.match(b, orTerms(queries[i])) },
		func(i int) error { _, err := c.store.SearchVector(b.Context(), sel, vectors[i], q); return err },
		func(i int) error {
			for row := range scores {
				scores[row] = dot(vectors[i], c.values[row*benchDimensions:(row+1)*benchDimensions])
			}
			return nil
		},
	}
	cold := medians(b, 1, len(queries), func(i int) error {
		c.store.lists, c.store.rows = newLRU[listKey, postingList](1), newLRU[rowKey, store.Hit](1)
		return runs[0](i)
	})
	c.store.lists = newLRU[listKey, postingList](DefaultTextMemory)
	c.store.rows = newLRU[rowKey, store.Hit](DefaultTextMemory / 2)
	for i := range queries { // both engines have read their pages
		for _, run := range runs {
			if err := run(i); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ResetTimer()
	took := medians(b, b.N, len(queries), runs...)
	text, match, vector, scan := took[0], took[1], took[2], took[3]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(text/match, "text/bare")
	b.ReportMetric(cold[0]/match, "cold/bare")
	b.ReportMetric(vector/scan, "vector/bare")
	b.ReportMetric((text+vector)/(match+scan), "search/bare")
	b.ReportMetric(text/1e3, "text-µs")
	b.ReportMetric(vector/1e3, "vector-µs")
}

// medians runs each function rounds times over n questions, in turns, and
// returns their medians in nanoseconds.
func medians(b *testing.B, rounds, n int, runs ...func(i int) error) []float64 {
	b.Helper()
	took := make([][]float64, len(runs))
	for round := range rounds * n {
		for j, run := range runs {
			start := time.Now()
			if err := run(round % n); err != nil {
				b.Fatal(err)
			}
			took[j] = append(took[j], float64(time.Since(start)))
		}
	}
	out := make([]float64, len(runs))
	for j := range took {
		slices.Sort(took[j])
		out[j] = took[j][len(took[j])/2]
	}
	return out
}

func (c *contest) match(b *testing.B, terms string) error {
	rows, err := c.bare.QueryContext(b.Context(), `SELECT rowid FROM bare WHERE bare MATCH ? ORDER BY bm25(bare) LIMIT ?`, terms, benchLimit)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var row int64
		if err := rows.Scan(&row); err != nil {
			return err
		}
	}
	return rows.Err()
}

func orTerms(text string) string {
	terms := indexTerms(text)
	for i, t := range terms {
		terms[i] = `"` + t + `"`
	}
	return strings.Join(terms, " OR ")
}

func benchVector(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = r.Float32() - 0.5
	}
	return unit(v)
}

// fillFacts stores a fact for each text, 500 an effect.
func fillFacts(b testing.TB, s *Store, fact scope.Scope, texts []string) {
	b.Helper()
	id, revision := 0, uint64(0)
	for group := range slices.Chunk(texts, 500) {
		revision++
		e := events.EffectCommitted{Header: events.Header{Scope: fact}, Revision: revision, Rule: "turn", CommittedAt: time.Unix(1, 0)}
		for _, text := range group {
			e.Facts = append(e.Facts, events.Fact{ID: fmt.Sprintf("f%07d", id), Revision: 1, Kind: events.FactSemantic, Text: text, CreatedAt: time.Unix(int64(id), 0)})
			id++
		}
		if err := s.Apply(b.Context(), e, revision); err != nil {
			b.Fatal(err)
		}
	}
}

// fillEpisodes stores an episode for each text, 500 a commit.
func fillEpisodes(b *testing.B, s *Store, fact scope.Scope, texts []string) {
	b.Helper()
	id := 0
	for group := range slices.Chunk(texts, 500) {
		err := s.write(b.Context(), func(w *writer) error {
			for _, text := range group {
				e := testEpisode(fact.User, fmt.Sprintf("e%07d", id))
				e.Scope.Project, e.Content = fact.Project, text
				id++
				n, err := s.prepareEpisode(e)
				if err != nil {
					return err
				}
				if _, err := w.putEpisode(n); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSearchAmongScopes measures a search in a scope of 10 facts where
// there are 10 scopes and where there are 10,000: others' rows must not cost.
func BenchmarkSearchAmongScopes(b *testing.B) {
	var stores []*Store
	for _, scopes := range []int{10, 10_000} {
		s := openAt(b, Config{Path: filepath.Join(b.TempDir(), "memory.db")})
		v := newVocabulary()
		for u := range scopes {
			texts := make([]string, 10)
			for i := range texts {
				texts[i] = contestText(v, i)
			}
			fillFacts(b, s, scope.Scope{Project: "p", User: fmt.Sprintf("u%d", u)}, texts)
		}
		stores = append(stores, s)
	}
	ask := func(s *Store, scopes int) func(int) error {
		return func(i int) error {
			sel := scope.Under(scope.Scope{Project: "p", User: fmt.Sprintf("u%d", i*scopes/1000)})
			_, err := s.SearchText(b.Context(), sel, "word0 word1 word7 person0", store.SearchQuery{Target: store.Facts, Limit: benchLimit})
			return err
		}
	}
	b.ResetTimer()
	b.ReportMetric(0, "ns/op")
	for name, kept := range map[string]int64{"cold": 1, "warm": DefaultTextMemory} {
		for _, s := range stores {
			s.lists, s.rows = newLRU[listKey, postingList](kept), newLRU[rowKey, store.Hit](kept)
		}
		few, many := ask(stores[0], 10), ask(stores[1], 10_000)
		medians(b, 1, 1000, few, many)
		took := medians(b, b.N, 1000, few, many)
		b.ReportMetric(took[1]/1e3, name+"-µs")
		b.ReportMetric(took[1]/took[0], name+"-many/few")
	}
}
