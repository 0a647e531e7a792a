package telemetry_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/internal/telemetry"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

// sizes stands for a memory store that can be counted.
type sizes struct{ store.Store }

func (sizes) Stats(context.Context) (store.Stats, error) {
	return store.Stats{Facts: 7, Holds: 2, Bytes: 4096}, nil
}

func (sizes) Projects(context.Context) ([]string, error) { return []string{"a", "b"}, nil }

func (sizes) Accounts(_ context.Context, sel scope.Selector, _ []string) ([]store.Account, error) {
	if sel.Project == "b" {
		return []store.Account{{Rule: "turn", Accepted: 4, Consolidated: 1, Pending: 2, Skipped: 1, Decided: 5}}, nil
	}
	return []store.Account{{Rule: "turn", Accepted: 10, Consolidated: 10, Held: 3}}, nil
}

func (sizes) State(context.Context, scope.Scope) (s memory.State, err error) { return s, errDown }

// full are metrics in which every figure has been told once.
func full(t *testing.T) *telemetry.Metrics {
	t.Helper()
	m := telemetry.New()
	m.WatchBuild("v1")
	m.WatchStore(sizes{})
	m.WatchLedger(sizes{}, []string{"turn", "session"})
	m.WatchStages(func() []pipeline.StageStats {
		return []pipeline.StageStats{{Service: "ingest", Stage: "ingest-00", InFlight: 3, Failing: true}}
	})
	m.WatchBacklog(func(context.Context) ([]pipeline.Progress, error) {
		return []pipeline.Progress{{Stream: "TICKS", Consumer: "extractor", Pending: 9, Unacked: 1}}, nil
	})
	m.WatchStreams(func(context.Context) ([]pipeline.StreamSize, error) {
		return []pipeline.StreamSize{{Stream: "TICKS", Messages: 10, Bytes: 1000}}, nil
	})
	m.WatchLetters(func(context.Context) (uint64, error) { return 5, nil })
	m.WatchDisk(func() (free, reserve int64) { return 100, 10 })
	m.WatchReady(func(context.Context) api.Readiness {
		return api.Readiness{Checks: map[string]api.Check{"nats": {OK: true}, "memory": {}}}
	})
	m.WatchStalls(func() pipeline.Stalls {
		return pipeline.Stalls{Stages: []string{"decider"}, ScopeCount: 4, Delayed: map[string]uint64{"extractor": 6}}
	})
	m.Observe(pipeline.Observation{
		Service: "ingest", Stage: "ingest-00", Verdict: "bury", Code: "id_conflict", Redelivered: true, Panicked: true,
		Duration: time.Millisecond, Waited: time.Second,
	})
	m.Observe(pipeline.Observation{Service: "decider", Stage: "decider", Verdict: "ack", Letters: []string{events.CodeFactConflict}})
	m.Committed(effect(t))
	_, _ = m.Store(sizes{}).State(t.Context(), scope.Scope{})
	m.ExportFailed("traces")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/facts/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	m.HTTP(mux, nil).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/facts/f-1", nil))
	return m
}

func TestMetricsAreServed(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	full(t).Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`palimpsest_messages_total{service="ingest",stage="ingest-00",verdict="bury"} 1`,
		`palimpsest_dead_letters_total{code="id_conflict",service="ingest"} 1`,
		`palimpsest_dead_letters_total{code="fact_conflict",service="decider"} 1`,
		`palimpsest_redeliveries_total{service="ingest",stage="ingest-00"} 1`,
		`palimpsest_panics_total{service="ingest",stage="ingest-00"} 1`,
		`palimpsest_handler_seconds_count{service="ingest",stage="ingest-00"} 1`,
		`palimpsest_wait_seconds_sum{service="ingest",stage="ingest-00"} 1`,
		`palimpsest_churn_held_total 2`,
		`palimpsest_deltas_total{kind="noop",reason="churn"} 3`,
		`palimpsest_store_rows{kind="facts"} 7`,
		`palimpsest_store_rows{kind="holds"} 2`,
		`palimpsest_store_bytes 4096`,
		`palimpsest_ledger_episodes{rule="turn",state="accepted"} 14`,
		`palimpsest_ledger_episodes{rule="turn",state="pending"} 2`,
		`palimpsest_ledger_episodes{rule="session",state="accepted"} 0`,
		`palimpsest_ledger_candidates{rule="turn",state="held"} 3`,
		`palimpsest_in_flight{service="ingest",stage="ingest-00"} 3`,
		`palimpsest_stage_failing{service="ingest",stage="ingest-00"} 1`,
		`palimpsest_consumer_pending{consumer="extractor",stream="TICKS"} 9`,
		`palimpsest_stream_bytes{stream="TICKS"} 1000`,
		`palimpsest_backend_errors_total{backend="memory",operation="state"} 1`,
		`palimpsest_backend_seconds_count{backend="memory",operation="state"} 1`,
		`palimpsest_http_requests_total{code="404",method="GET",route="/v1/facts/{id}"} 1`,
		`palimpsest_dependency_up{dependency="memory"} 0`,
		`palimpsest_dependency_up{dependency="nats"} 1`,
		`palimpsest_stalled_stages 1`,
		`palimpsest_stalled_scopes 4`,
		`palimpsest_delayed_messages{stage="extractor"} 6`,
		`palimpsest_disk_reserve_bytes 10`,
		"palimpsest_dead_letters 5",
		`palimpsest_build_info{go_version="go1.`,
		"go_goroutines",
	} {
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("%s is missing", want)
		}
	}
}

// TestReference keeps docs/metrics.md to what there is.
func TestReference(t *testing.T) {
	t.Parallel()
	families, err := full(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| name | type | unit | labels | what |\n|---|---|---|---|---|\n")
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "palimpsest_") {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n",
				f.GetName(), strings.ToLower(f.GetType().String()), unit(f), labels(f), f.GetHelp())
		}
	}
	const path, begin, end = "../../docs/metrics.md", "<!-- metrics -->\n", "<!-- /metrics -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	have, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the list", path)
	}
	if have == b.String() {
		return
	}
	if !*update {
		t.Fatalf("%s lists other metrics than there are; -update writes it:\n%s", path, b.String())
	}
	if err := os.WriteFile(path, []byte(head+begin+b.String()+end+tail), 0o600); err != nil {
		t.Fatal(err)
	}
}

func unit(f *dto.MetricFamily) string {
	switch name := strings.TrimSuffix(f.GetName(), "_total"); {
	case strings.HasSuffix(name, "_seconds"):
		return "seconds"
	case strings.HasSuffix(name, "_bytes"):
		return "bytes"
	case strings.HasSuffix(name, "_info"), strings.HasSuffix(name, "_up"), strings.HasSuffix(name, "_failing"):
		return "0 or 1"
	}
	return "count"
}

func labels(f *dto.MetricFamily) string {
	var names []string
	for _, pair := range f.GetMetric()[0].GetLabel() {
		names = append(names, "`"+pair.GetName()+"`")
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
