package deterministic_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"palimpsest/internal/decide"
	"palimpsest/internal/decide/decidetest"
	"palimpsest/internal/decide/deterministic"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// BenchmarkDecide decides a batch of 100 candidates on an empty memory.
func BenchmarkDecide(b *testing.B) {
	owner := scope.Scope{Project: "default", User: "bo"}
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	var batch []events.Candidate
	for i := range 100 {
		thing := fmt.Sprintf("thing number %d of a long list", i%60)
		batch = append(batch, events.Candidate{
			ID: fmt.Sprint(i), Kind: events.FactSemantic, Subject: "user", Predicate: "likes", Object: thing,
			Text: "The user likes " + thing + ".", Confidence: 1, Explicit: true, Cardinality: events.Many,
			SourceEpisodeIDs: []string{fmt.Sprint("e", i)}, Ordinal: uint64(i + 1), EventTime: at, RuleID: "bench",
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		known := decide.Known{Scope: owner, At: at, Cause: "m", Lookup: decidetest.NewMemory(owner), Breaker: decide.Breaker{Limit: 20, Window: time.Hour}}
		if _, err := deterministic.New().Decide(context.Background(), batch, known); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(batch))/b.Elapsed().Seconds(), "candidates/s")
}
