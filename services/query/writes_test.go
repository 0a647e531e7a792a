package query

import (
	"errors"
	"net/http"
	"testing"

	"palimpsest/internal/memory"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
)

// A write is done once the rules that run on every episode have passed it.
func TestWriteState(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	record := func() api.Written {
		t.Helper()
		w, err := r.client.Record(t.Context(), api.Record{Scope: noraBody, Messages: api.Messages{{Content: "a"}}}, "")
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	stored := func(w api.Written, ordinal uint64) {
		e := said1(w.Episodes[0].ID, noraBody.In("default"), noon, ordinal)
		e.CorrelationID = w.CorrelationID
		r.store.put(e)
	}
	want := func(w api.Written, status string, results int) {
		t.Helper()
		got, err := r.client.WriteState(t.Context(), w.At)
		if err != nil || got.Status != status || len(got.Results) != results || got.At != w.At {
			t.Errorf("%+v, %v; want %s with %d results", got, err, status, results)
		}
	}
	w, later := record(), record()
	want(w, "accepted", 0)
	r.store.states[noraBody.In("default").Fact()] = memory.State{Watermarks: map[string]uint64{"turn": 1}}
	stored(w, 1)
	stored(later, 2)
	r.store.settle("default", events.Outcome{CorrelationID: w.CorrelationID, Rule: "turn", EpisodeIDs: []string{w.Episodes[0].ID}, Results: []events.Result{
		{Event: events.ChangeAdd, DeltaID: "d", FactID: "f", Revision: 1, Memory: "a", Reason: events.ReasonNew},
	}})
	want(w, "done", 1)
	want(later, "accepted", 0)
	for _, path := range []string{"/v1/writes/nonsense", "/v1/writes/" + w.At + "?project=rival"} {
		if p := r.do(http.MethodGet, path, "").problem(t); p.Field != "at" || p.Status != http.StatusBadRequest {
			t.Errorf("%s: %+v", path, p)
		}
	}
	r.store.fail(errDown)
	var p *api.Problem
	if _, err := r.client.WriteState(t.Context(), w.At); !errors.As(err, &p) || p.Status != http.StatusServiceUnavailable {
		t.Errorf("store down: %v", err)
	}
}
