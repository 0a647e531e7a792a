package telemetry_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/internal/telemetry"
	"palimpsest/pkg/events"
)

type sizes struct{ store.Health }

func (sizes) Stats(context.Context) (store.Stats, error) { return store.Stats{Facts: 7}, nil }

func TestMetricsAreServed(t *testing.T) {
	t.Parallel()
	m := telemetry.New()
	m.WatchStore(sizes{})
	m.WatchStages(func() []pipeline.StageStats {
		return []pipeline.StageStats{{Service: "ingest", Stage: "ingest-00", InFlight: 3}}
	})
	m.WatchLetters(func(context.Context) (uint64, error) { return 5, nil })
	m.Observe(pipeline.Observation{Service: "ingest", Stage: "ingest-00", Verdict: "bury", Code: "id_conflict", Redelivered: true, Duration: time.Millisecond})
	m.Committed(effect(t))
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`palimpsest_messages_total{service="ingest",stage="ingest-00",verdict="bury"} 1`,
		`palimpsest_dead_letters_total{code="id_conflict",service="ingest"} 1`,
		`palimpsest_redeliveries_total{service="ingest",stage="ingest-00"} 1`,
		`palimpsest_handler_seconds_count{service="ingest",stage="ingest-00"} 1`,
		`palimpsest_churn_held_total 2`,
		`palimpsest_store_rows{kind="facts"} 7`,
		`palimpsest_in_flight{service="ingest",stage="ingest-00"} 3`,
		"palimpsest_dead_letters 5",
		"go_goroutines",
	} {
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("%s is missing", want)
		}
	}
}

// effect keeps two candidates from changing a fact; a third, which was held and
// counted before, makes room for them.
func effect(t *testing.T) events.EffectCommitted {
	t.Helper()
	e := events.EffectCommitted{Released: []string{"c1"}}
	for _, a := range []struct {
		candidate string
		reason    events.Reason
	}{{"c1", events.ReasonChurn}, {"c2", events.ReasonChurn}, {"c3", events.ReasonChurn}, {"c4", events.ReasonDuplicate}} {
		noop, err := events.NewNoop(events.Provenance{
			ID: "d-" + a.candidate, CandidateID: a.candidate, RequestID: "r", PromotionTS: time.Unix(1, 0), RuleID: "r",
			Reason: a.reason, DecidedBy: "rules@v1",
		}, "f")
		if err != nil {
			t.Fatal(err)
		}
		e.Applied = append(e.Applied, events.Applied{Delta: noop, FactID: "f"})
	}
	return e
}
