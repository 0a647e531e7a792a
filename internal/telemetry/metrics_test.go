package telemetry_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/internal/telemetry"
	"palimpsest/pkg/events"
)

var errDown = errors.New("down")

// counting is a store that says how often it was asked.
type counting struct {
	sizes
	asked int
	err   error
}

func (c *counting) Stats(context.Context) (store.Stats, error) {
	c.asked++
	return store.Stats{Facts: uint64(c.asked)}, c.err
}

func scrape(m *telemetry.Metrics) string {
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return rec.Body.String()
}

// TestScrapesShareAnAnswer: frequent scrapes do not query the store more often.
func TestScrapesShareAnAnswer(t *testing.T) {
	t.Parallel()
	m, c := telemetry.New(), &counting{}
	m.WatchStore(c)
	for range 3 {
		if text := scrape(m); !strings.Contains(text, `palimpsest_store_rows{kind="facts"} 1`) {
			t.Fatalf("not the first answer:\n%s", text)
		}
	}
	if c.asked != 1 {
		t.Errorf("asked %d times", c.asked)
	}
}

// TestUnansweredQuestionHidesNothingElse: a store that is down takes its own
// figures away, and no others.
func TestUnansweredQuestionHidesNothingElse(t *testing.T) {
	t.Parallel()
	m := telemetry.New()
	m.WatchStore(&counting{err: errDown})
	m.WatchLetters(func(context.Context) (uint64, error) { return 5, nil })
	text := scrape(m)
	if strings.Contains(text, "palimpsest_store_rows") || !strings.Contains(text, "palimpsest_dead_letters 5") {
		t.Errorf("got:\n%s", text)
	}
}

// TestAnswersAreNoFaults: what a contract promises to answer is no error of the
// backend.
func TestAnswersAreNoFaults(t *testing.T) {
	t.Parallel()
	m := telemetry.New()
	s := m.Store(refusing{})
	_ = s.Apply(t.Context(), events.EffectCommitted{}, 1)
	if text := scrape(m); strings.Contains(text, `palimpsest_backend_errors_total{backend="memory",operation="apply"} 1`) ||
		!strings.Contains(text, `palimpsest_backend_seconds_count{backend="memory",operation="apply"} 1`) {
		t.Errorf("got:\n%s", text)
	}
}

type refusing struct{ store.Store }

func (refusing) Apply(context.Context, events.EffectCommitted, uint64) error { return store.ErrBehind }

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

type idle struct{ store.Store }

func (idle) PutEpisodes(context.Context, []memory.Episode) ([]store.Put, error) { return nil, nil }

// TestTimingAllocatesNothing outside a trace: it stands on the way of every
// episode.
func TestTimingAllocatesNothing(t *testing.T) {
	s, ctx := telemetry.New().Store(idle{}), t.Context()
	if n := testing.AllocsPerRun(1000, func() { _, _ = s.PutEpisodes(ctx, nil) }); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}
