package retrieval_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/retrieval"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// BenchmarkSearch measures a question to the engine against the same searches
// of the store one after the other: what embedding, fusion and the rows asked
// for beyond the limit add.
func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, fact := filled(b, n)
			engine, err := retrieval.New(retrieval.DefaultConfig(), s, embed.Only(local.New()))
			if err != nil {
				b.Fatal(err)
			}
			r := rand.New(rand.NewPCG(5, 5))
			var took [2][]time.Duration
			for range 64 * b.N {
				text := sentence(r)
				whole := timed(b, func(ctx context.Context) error {
					_, err := engine.Search(ctx, retrieval.Query{Scope: scope.Under(fact), Text: text, Limit: 10, Facts: true})
					return err
				})
				legs := timed(b, func(ctx context.Context) error {
					q := store.SearchQuery{Target: store.Facts, Limit: 10}
					if _, err := s.SearchText(ctx, scope.Under(fact), text, q); err != nil {
						return err
					}
					vectors, err := local.New().Embed(ctx, []string{text})
					if err == nil {
						_, err = s.SearchVector(ctx, scope.Under(fact), vectors[0], q)
					}
					return err
				})
				took[0], took[1] = append(took[0], whole), append(took[1], legs)
			}
			slices.Sort(took[0])
			slices.Sort(took[1])
			whole, legs := took[0][len(took[0])/2], took[1][len(took[1])/2]
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(whole)/1e3, "µs")
			b.ReportMetric(float64(whole)/float64(legs), "engine/legs")
		})
	}
}

func timed(b *testing.B, f func(context.Context) error) time.Duration {
	b.Helper()
	start := time.Now()
	if err := f(b.Context()); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// sentence draws words as a language does: few of them often.
func sentence(r *rand.Rand) string {
	zipf := rand.NewZipf(r, 1.1, 5, 20_000)
	var text strings.Builder
	for range 8 {
		fmt.Fprintf(&text, "word%d ", zipf.Uint64())
	}
	return text.String()
}

// filled is a store of one scope with n embedded facts.
func filled(b *testing.B, n int) (*sqlite.Store, scope.Scope) {
	b.Helper()
	s, err := sqlite.Open(b.Context(), sqlite.Config{Path: filepath.Join(b.TempDir(), "memory.db"), Embedder: local.New().Info()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	fact, r := scope.Scope{Project: "p", User: "ana"}, rand.New(rand.NewPCG(1, 2))
	for from := 0; from < n; from += 500 {
		e := events.EffectCommitted{Header: events.Header{Scope: fact}, Revision: uint64(from/500 + 1), Rule: "turn", CommittedAt: time.Unix(1, 0)}
		for i := from; i < from+500; i++ {
			e.Facts = append(e.Facts, events.Fact{ID: fmt.Sprintf("f%07d", i), Revision: 1, Kind: events.FactSemantic, Text: sentence(r), CreatedAt: time.Unix(int64(i), 0)})
		}
		if err := s.Apply(b.Context(), e, e.Revision); err != nil {
			b.Fatal(err)
		}
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
	return s, fact
}
