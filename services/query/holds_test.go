package query

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
)

// held is a candidate on a fact, held for n seconds at noon.
func held(id, factID string, n int) store.Hold {
	at, due := noon.Add(-time.Duration(n)*time.Second), noon.Add(time.Hour)
	return store.Hold{Scope: nora, Hold: events.Hold{
		ID: id, Why: "churn", FactID: factID, Rule: "turn", HeldAt: at, Since: at.Add(-time.Minute), Count: 9, Due: &due,
		Candidate: events.Candidate{ID: id, Text: "Nora lives in Oslo.", Object: "Oslo", EventTime: noon, SourceEpisodeIDs: []string{"e1"}},
	}}
}

func TestListHolds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.holds = []store.Hold{held("h1", "f", 3), held("h2", "g", 2), held("h3", "f", 1)}
	due := noon.Add(time.Hour)
	want := api.Hold{
		Scope: api.ScopeOf(nora), ID: "h1", Why: "churn", FactID: "f", Text: "Nora lives in Oslo.", Object: "Oslo", EventTime: noon,
		Sources: []string{"e1"}, Rule: "turn", Count: 9, HeldAt: noon.Add(-3 * time.Second), Since: noon.Add(-63 * time.Second), Due: &due,
	}
	page, err := r.client.Holds(t.Context(), everyone, 2, "")
	if err != nil || len(page.Holds) != 2 || page.Next == "" {
		t.Fatalf("%+v, %v", page, err)
	}
	if diff := cmp.Diff(want, page.Holds[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	page, err = r.client.Holds(t.Context(), everyone, 2, page.Next)
	if err != nil || len(page.Holds) != 1 || page.Holds[0].ID != "h3" || page.Next != "" {
		t.Errorf("second page: %+v, %v", page, err)
	}
	for query, n := range map[string]int{"?all=true&fact=f": 2, "?user=nora": 3, "?user=eve": 0, "?all=true&project=rival": 0} {
		if got := into[api.HoldPage](t, r.do(http.MethodGet, "/v1/holds"+query, ""), http.StatusOK); got.Holds == nil || len(got.Holds) != n {
			t.Errorf("%s: %+v, want %d", query, got, n)
		}
	}
	for _, query := range []string{"?limit=-1", "?cursor=x", "?user=nora&session=s"} {
		if p := r.do(http.MethodGet, "/v1/holds"+query, "").problem(t); p.Status != http.StatusUnprocessableEntity && p.Status != http.StatusBadRequest {
			t.Errorf("%s: %+v", query, p)
		}
	}
}

// Two scopes may hold the same at the same time; a page may end between them.
func TestListHoldsEqualInTwoScopes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one, two := held("h", "f", 1), held("h", "f", 1)
	two.Scope.User = "zoe"
	r.store.holds = []store.Hold{one, two}
	all, next := []api.Scope{}, ""
	for range 2 {
		page, err := r.client.Holds(t.Context(), everyone, 1, next)
		if err != nil || len(page.Holds) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		all, next = append(all, page.Holds[0].Scope), page.Next
	}
	if diff := cmp.Diff([]api.Scope{api.ScopeOf(one.Scope), api.ScopeOf(two.Scope)}, all); diff != "" || next != "" {
		t.Errorf("next %q (-want +got):\n%s", next, diff)
	}
}

func TestReleaseHold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.holds = []store.Hold{held("h1", "f", 3)}
	r.store.facts = []store.Fact{fact1("f", 2, "Nora lives in Oslo.")}
	r.obey(func(events.CommandRequested) events.Outcome { return changed(events.ChangeUpdate, "f") })
	out, err := r.client.Release(t.Context(), "h1")
	if err != nil || out.Status != "done" || out.Fact == nil || out.Fact.ID != "f" {
		t.Fatalf("%+v, %v", out, err)
	}
	want := events.CommandRequested{
		Header: events.Header{Scope: nora}, CommandRef: events.CommandRef{RequestID: out.CorrelationID, Op: events.OpRelease},
		Actor: "api:anonymous", HoldID: "h1", At: noon,
	}
	if diff := cmp.Diff(want, r.command(t)); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	out, err = r.client.Dismiss(t.Context(), "h1")
	want.CommandRef = events.CommandRef{RequestID: out.CorrelationID, Op: events.OpDismiss}
	sent := r.publisher.sent()
	if diff := cmp.Diff(events.Payload(want), sent[len(sent)-1].p); diff != "" || err != nil {
		t.Errorf("dismiss: %v (-want +got):\n%s", err, diff)
	}
	for _, path := range []string{"/v1/holds/none/release", "/v1/holds/h1/release?project=rival", "/v1/holds/none/dismiss"} {
		if p := r.do(http.MethodPost, path, "").problem(t); p.Status != http.StatusNotFound {
			t.Errorf("%s: %+v", path, p)
		}
	}
}
