package sqlite

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// BenchmarkPrune finds and closes 1,000 facts among as many as the name says, in 100
// scopes. It reports the time of the read, and of the effects that close them.
func BenchmarkPrune(b *testing.B) {
	const due, scopes = 1000, 100
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			fact := func(i int) events.Fact {
				text := fmt.Sprintf("fact %d of many", i)
				f := events.Fact{
					ID: events.HashID("f", text), Revision: 1, Kind: events.FactSemantic, Subject: "user", Predicate: "likes", Object: text, Text: text,
					Hash: text, Confidence: 0.9, DecayRate: 0.1, EventTime: at, CreatedAt: at, UpdatedAt: at, ValidFrom: at, SourceEpisodeIDs: []string{"e"},
				}
				if i%(n/due) == 0 {
					f.Confidence = 0.01
				}
				return f
			}
			for b.Loop() {
				b.StopTimer()
				s := openAt(b, Config{Path: filepath.Join(b.TempDir(), "memory.db")})
				revision := make([]uint64, scopes)
				apply := func(i int, facts []events.Fact) {
					revision[i]++
					e := events.EffectCommitted{
						Header: events.Header{Scope: scope.Scope{Project: "p", User: fmt.Sprint(i)}}, Revision: revision[i], Rule: "turn", Facts: facts, CommittedAt: at,
					}
					if err := s.Apply(b.Context(), e, revision[i]); err != nil {
						b.Fatal(err)
					}
				}
				var all []events.Fact
				for i := range n {
					if all = append(all, fact(i)); len(all) == 500 {
						apply(i/500%scopes, all)
						all = nil
					}
				}
				b.StartTimer()
				began := time.Now()
				found, err := s.Decayed(b.Context(), store.DecayQuery{At: at, Limit: due})
				read := time.Since(began)
				if err != nil || len(found) != due {
					b.Fatalf("%d found, %v", len(found), err)
				}
				byScope := map[scope.Scope][]string{}
				for _, d := range found {
					byScope[d.Scope] = append(byScope[d.Scope], d.ID)
				}
				for i := range scopes {
					ids := byScope[scope.Scope{Project: "p", User: fmt.Sprint(i)}]
					for part := range slices.Chunk(ids, events.MaxUpkeepFacts) {
						facts, err := s.FactsByID(b.Context(), scope.Scope{Project: "p", User: fmt.Sprint(i)}, part)
						if err != nil {
							b.Fatal(err)
						}
						var closed []events.Fact
						for _, f := range facts {
							f.Revision, f.ValidUntil = 2, &at
							closed = append(closed, f.Fact)
						}
						apply(i, closed)
					}
				}
				b.ReportMetric(float64(read.Microseconds())/1000, "read-ms")
				b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "prune-ms")
				if left, err := s.Decayed(b.Context(), store.DecayQuery{At: at, Limit: due}); err != nil || len(left) > 0 {
					b.Fatalf("%d left, %v", len(left), err)
				}
			}
		})
	}
}
