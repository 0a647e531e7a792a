package retrieval_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/memory"
	"palimpsest/internal/retrieval"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// BenchmarkSearchEpisodes measures a question about one scope among that many, which
// have so many episodes in all, in sessions of 40. The scopes are asked by turns.
func BenchmarkSearchEpisodes(b *testing.B) {
	for _, of := range []struct{ scopes, episodes int }{{1, 2_000}, {1, 20_000}, {1, 100_000}, {10_000, 100_000}} {
		b.Run(fmt.Sprint(of.episodes, "in", of.scopes), func(b *testing.B) {
			s := talk(b, of.episodes, of.scopes)
			engine, err := retrieval.New(retrieval.DefaultConfig(), s, embed.Only(local.New()))
			if err != nil {
				b.Fatal(err)
			}
			r := rand.New(rand.NewPCG(7, 7))
			var took []time.Duration
			for b.Loop() {
				q := retrieval.Query{Scope: scope.Under(talker(len(took) % of.scopes)), Text: sentence(r), Limit: 10, Episodes: true}
				began := time.Now()
				if _, err := engine.Search(b.Context(), q); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2])/1e6, "p50-ms")
			b.ReportMetric(float64(took[len(took)*95/100])/1e6, "p95-ms")
			b.ReportMetric(float64(took[len(took)*99/100])/1e6, "p99-ms")
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.HeapAlloc)/1e6, "heap-MB")
		})
	}
}

func talker(n int) scope.Scope { return scope.Scope{Project: "p", User: fmt.Sprint("user", n)} }

// talk stores n episodes of so many scopes.
func talk(b *testing.B, n, scopes int) *sqlite.Store {
	b.Helper()
	s, err := sqlite.Open(b.Context(), sqlite.Config{Path: filepath.Join(b.TempDir(), "memory.db"), Embedder: local.New().Info()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	r := rand.New(rand.NewPCG(1, 2))
	var batch []memory.Episode
	for i := range n {
		own := talker(i % scopes)
		own.Session = fmt.Sprint("s", i/scopes/40)
		batch = append(batch, memory.Episode{
			ID: fmt.Sprint(i), Source: "bench", Scope: own, Role: events.RoleUser,
			Content: sentence(r) + sentence(r), Timestamp: time.Unix(int64(i)*60, 0), ArrivedAt: time.Unix(int64(i)*60, 0), Mode: events.ModePersistent,
		})
		if len(batch) == 500 || i == n-1 {
			if _, err := s.PutEpisodes(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			embedPending(b, s)
			batch = nil
		}
	}
	return s
}

func embedPending(b *testing.B, s *sqlite.Store) {
	b.Helper()
	pending, err := s.PendingVectors(b.Context(), 0, 500)
	if err != nil {
		b.Fatal(err)
	}
	vectors := make([]store.Vector, len(pending))
	for i, p := range pending {
		values, err := local.New().Embed(b.Context(), []string{p.Text})
		if err != nil {
			b.Fatal(err)
		}
		vectors[i] = store.Vector{Ref: p.Ref, Values: values[0]}
	}
	if err := s.PutVectors(b.Context(), vectors); err != nil {
		b.Fatal(err)
	}
}
