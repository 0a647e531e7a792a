package retrieval_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/filter"
	"palimpsest/internal/memory"
	"palimpsest/internal/retrieval"
	"palimpsest/internal/store"
	"palimpsest/internal/store/redis"
	"palimpsest/internal/store/sqlite"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// The server that BenchmarkScale measures, if any, as for the tests of the Redis store.
const redisVariable = "TEST_REDIS_URL"

// topics is how many values of metadata the rows have by turns.
const topics = 1_000

// BenchmarkScale measures a question about one scope among that many, which have so
// many facts or episodes in all, in sessions of 40: the engine, each channel alone, and
// the engine with a filter that one of 1,000 rows matches.
// The scopes are asked by turns. Select sizes by name: the largest takes minutes to fill.
func BenchmarkScale(b *testing.B) {
	backends := []string{"sqlite"}
	if os.Getenv(redisVariable) != "" {
		backends = append(backends, "redis", "redis-hnsw")
	}
	for _, backend := range backends {
		for _, target := range []store.Target{store.Episodes, store.Facts} {
			for _, of := range []struct{ rows, scopes int }{{1_000, 1}, {2_000, 1}, {100_000, 1}, {1_000_000, 1}, {100_000, 10_000}} {
				name := map[store.Target]string{store.Facts: "facts", store.Episodes: "episodes"}[target]
				b.Run(fmt.Sprintf("%s/%s/%din%d", backend, name, of.rows, of.scopes), func(b *testing.B) {
					began := time.Now()
					s := talk(b, backend, target, of.rows, of.scopes)
					b.Logf("filled in %s", time.Since(began))
					measureScale(b, s, target, of.scopes)
				})
			}
		}
	}
}

func measureScale(b *testing.B, s store.Store, target store.Target, scopes int) {
	engine, err := retrieval.New(retrieval.DefaultConfig(), s, embed.Only(local.New()))
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, 7))
	took := map[string][]time.Duration{}
	ask := func(what string, search func(context.Context, retrieval.Query) error) {
		q := retrieval.Query{
			Scope: scope.Under(talker(len(took[what]) % scopes)), Text: sentence(r), Limit: 10,
			Episodes: target == store.Episodes, Facts: target == store.Facts,
		}
		began := time.Now()
		if err := search(b.Context(), q); err != nil {
			b.Fatalf("%s: %v", what, err)
		}
		took[what] = append(took[what], time.Since(began))
	}
	leg := func(name string) func(context.Context, retrieval.Query) error {
		return func(ctx context.Context, q retrieval.Query) error { _, err := engine.Leg(ctx, name, q); return err }
	}
	ask("load", leg("vector"))
	for b.Loop() {
		ask("whole", func(ctx context.Context, q retrieval.Query) error {
			found, err := engine.Search(ctx, q)
			if err == nil && len(found.Degraded) > 0 {
				b.Errorf("%v did not answer", found.Degraded)
			}
			return err
		})
		ask("text", leg("text"))
		ask("vector", leg("vector"))
		ask("filter", func(ctx context.Context, q retrieval.Query) error {
			q.Filter = &store.Filter{Expr: filter.Cond{
				Field: filter.Field{Name: "metadata", Path: "topic"}, Op: filter.Eq, Values: []filter.Value{filter.NumberValue(float64(len(took["filter"]) % topics))},
			}}
			_, err := engine.Search(ctx, q)
			return err
		})
	}
	for _, what := range []string{"whole", "text", "vector", "filter", "load"} {
		list := took[what]
		slices.Sort(list)
		for _, p := range []int{50, 95, 99} {
			b.ReportMetric(float64(list[len(list)*p/100])/1e6, fmt.Sprintf("%s-p%d-ms", what, p))
		}
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/1e6, "heap-MB")
	b.ReportMetric(0, "ns/op")
}

func talker(n int) scope.Scope { return scope.Scope{Project: "p", User: fmt.Sprint("user", n)} }

func openScale(b *testing.B, backend string) store.Store {
	b.Helper()
	var s store.Store
	var err error
	if backend == "sqlite" {
		s, err = sqlite.Open(b.Context(), sqlite.Config{Path: filepath.Join(b.TempDir(), "memory.db"), Embedder: local.New().Info()})
	} else {
		s, err = redis.Open(b.Context(), redis.Config{
			URL: os.Getenv(redisVariable), Namespace: fmt.Sprint("scale", time.Now().UnixNano()), Embedder: local.New().Info(),
			Vectors: map[string]redis.VectorIndex{"redis": redis.Flat, "redis-hnsw": redis.HNSW}[backend],
		})
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// talk stores n facts or episodes of so many scopes.
func talk(b *testing.B, backend string, target store.Target, n, scopes int) store.Store {
	b.Helper()
	s := openScale(b, backend)
	r := rand.New(rand.NewPCG(1, 2))
	const batch = 500
	for from := 0; from < n; from += batch {
		var episodes []memory.Episode
		effects := map[scope.Scope]*events.EffectCommitted{}
		for i := from; i < min(n, from+batch); i++ {
			own, text, at := talker(i%scopes), sentence(r)+sentence(r), time.Unix(int64(i)*60, 0)
			if target == store.Facts {
				e := cmp.Or(effects[own], &events.EffectCommitted{
					Header: events.Header{Scope: own}, Revision: uint64(from/max(scopes, batch) + 1), Rule: "turn", CommittedAt: at,
				})
				e.Facts = append(e.Facts, events.Fact{
					ID: fmt.Sprintf("f%07d", i), Revision: 1, Kind: events.FactSemantic, Text: text, Hash: memory.HashText(text),
					CreatedAt: at, EventTime: at, ValidFrom: at, UpdatedAt: at, Confidence: 0.9,
					Metadata: map[string]any{"topic": i % topics},
				})
				effects[own] = e
				continue
			}
			own.Session = fmt.Sprint("s", i/scopes/40)
			episodes = append(episodes, memory.Episode{
				ID: fmt.Sprint(i), Source: "bench", Scope: own, Role: events.RoleUser,
				Content: text, Timestamp: at, ArrivedAt: at, Mode: events.ModePersistent,
				Metadata: map[string]any{"topic": i % topics},
			})
		}
		if len(episodes) > 0 {
			if _, err := s.PutEpisodes(b.Context(), episodes); err != nil {
				b.Fatal(err)
			}
		}
		for _, e := range effects {
			if err := s.Apply(b.Context(), *e, e.Revision); err != nil {
				b.Fatal(err)
			}
		}
		embedPending(b, s, min(n, from+batch)-from)
	}
	return s
}

// embedPending embeds n texts.
func embedPending(b *testing.B, s store.Store, n int) {
	b.Helper()
	for n > 0 {
		pending, err := s.PendingVectors(b.Context(), 0, n)
		if err != nil {
			b.Fatal(err)
		}
		if len(pending) == 0 {
			b.Fatalf("%d texts are not pending", n)
		}
		n -= len(pending)
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
}
