package query

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// searchable puts two facts of two scopes and an episode in front of both
// channels.
func searchable(r *rig) {
	a, b := fact1("a", 1, "Nora lives in Oslo."), fact1("b", 1, "Ben lives in Oslo.")
	a.SessionIDs, b.Scope = []string{"s1"}, scope.Scope{Project: "default", User: "ben"}
	e := said1("e", scope.Scope{Project: "default", User: "nora", Agent: "assistant", Session: "s1"}, noon, 1)
	r.store.text = []store.Hit{{Score: 3, Fact: &a}, {Score: 2, Fact: &b}, {Score: 1, Episode: &e}}
	r.store.vector = []store.Hit{{Score: 0.9, Fact: &b}, {Score: 0.8, Episode: &e}}
}

func hitIDs(f api.Found) []string {
	var out []string
	for _, h := range f.Results {
		out = append(out, h.Type+" "+h.ID)
	}
	return out
}

func TestSearch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	searchable(r)
	for _, tc := range []struct {
		body string
		want []string
	}{
		{`{"all":true,"text":"Oslo"}`, []string{"fact b", "episode e", "fact a"}},
		{`{"all":true,"query":"Oslo","text":"Oslo"}`, []string{"fact b", "episode e", "fact a"}},
		{`{"all":true,"query":"Oslo"}`, []string{"fact b", "episode e", "fact a"}},
		{`{"all":true,"text":"Oslo","types":["fact"]}`, []string{"fact b", "fact a"}},
		{`{"all":true,"text":"Oslo","types":["episode"]}`, []string{"episode e"}},
		{`{"text":"Oslo","user":"nora"}`, []string{"episode e", "fact a"}},
		{`{"text":"Oslo","user":"nora","session":"s1"}`, []string{"episode e", "fact a"}},
		{`{"text":"Oslo","session":"s2"}`, nil},
		{`{"text":"Oslo","user":""}`, nil},
		{`{"all":true,"text":"Oslo","limit":1}`, []string{"fact b"}},
		{`{"all":true,"text":"Oslo","after":"2026-01-01","before":null,"kinds":[]}`, []string{"fact b", "episode e", "fact a"}},
	} {
		out := into[api.Found](t, r.do(http.MethodPost, "/v1/search", tc.body), 200)
		if diff := cmp.Diff(tc.want, hitIDs(out)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.body, diff)
		}
		last := 1.0
		for _, h := range out.Results {
			if h.Score > last || h.Score <= 0 || h.Channels != nil {
				t.Errorf("%s: %+v", tc.body, h)
			}
			last = h.Score
		}
	}
}

func TestSearchExplains(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	searchable(r)
	out, err := r.client.Search(t.Context(), api.Search{Selector: api.Selector{All: true}, Text: "when and why?", Explain: true})
	if err != nil || out.Complexity != "complex" {
		t.Fatalf("%+v, %v", out, err)
	}
	want := map[string]api.Channel{"text": {Rank: 2, Score: 2}, "vector": {Rank: 1, Score: 0.9}}
	if diff := cmp.Diff(want, out.Results[0].Channels); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSearchAsksTheStore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	body := `{"text":"x","user":"nora","session":"s1","kinds":["opinion"],"after":"2026-01-01","before":"2026-02-01T00:00:00+01:00","now":"2026-03-01","limit":7}`
	into[api.Found](t, r.do(http.MethodPost, "/v1/search", body), 200)
	after, before := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 31, 23, 0, 0, 0, time.UTC)
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	want := []store.SearchQuery{
		{Target: store.Facts, Limit: 57, Session: ptr("s1"), Kinds: []events.FactKind{"opinion"}, ValidAt: now, After: after, Before: before},
		{Target: store.Episodes, Limit: 150, ValidAt: now, After: after, Before: before},
	}
	same := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })
	if diff := cmp.Diff(want, r.store.asked, same, cmpopts.IgnoreFields(store.SearchQuery{}, "Counts")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.store.selected[0].Session != nil || *r.store.selected[1].Session != "s1" {
		t.Errorf("%v", r.store.selected)
	}
}

func TestSearchDegrades(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	searchable(r)
	r.embedder.err = errDown
	out, err := r.client.Search(t.Context(), api.Search{Selector: api.Selector{All: true}, Text: "Oslo"})
	if err != nil || len(out.Results) != 3 {
		t.Fatalf("%+v, %v", out, err)
	}
	if diff := cmp.Diff([]string{"vector"}, out.Degraded); diff != "" {
		t.Error(diff)
	}
	r.store.textErr = errDown
	a := r.do(http.MethodPost, "/v1/search", `{"text":"secret question","all":true}`)
	p := a.problem(t)
	if p.Status != 503 || p.Code != api.CodeStoreUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("%+v %v", p, a.header)
	}
	if strings.Contains(r.logs.String(), "secret") || strings.Contains(a.body, "10.0.0.7") {
		t.Errorf("content or addresses leak: %s %s", r.logs, a.body)
	}
}

func TestSearchPublishesAccesses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	searchable(r)
	c := fact1("c", 1, "Nora likes Oslo.")
	r.store.text = append(r.store.text, store.Hit{Score: 0.5, Fact: &c})
	r.store.states[nora] = memory.State{Incarnation: 2} // the earlier incarnation was erased
	if _, err := r.client.Search(t.Context(), api.Search{Selector: api.Selector{All: true}, Text: "Oslo"}); err != nil {
		t.Fatal(err)
	}
	got := map[scope.Scope][]string{}
	for _, s := range r.publisher.sent() {
		e := s.p.(events.FactReturned)
		if got[e.Scope] != nil || !e.At.Equal(noon) || e.Incarnation != r.store.states[e.Scope].Incarnation {
			t.Errorf("%+v", e)
		}
		got[e.Scope] = e.FactIDs
	}
	want := map[scope.Scope][]string{nora: {"a", "c"}, {Project: "default", User: "ben"}: {"b"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSearchOutlivesItsAccessEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	searchable(r)
	r.publisher.hook = func(ctx context.Context, _ events.Meta, _ events.Payload) error {
		<-ctx.Done() // a broker that does not answer
		return ctx.Err()
	}
	out, err := r.client.Search(t.Context(), api.Search{Selector: api.Selector{All: true}, Text: "Oslo"})
	if err != nil || len(out.Results) != 3 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestSearchMinScore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	searchable(r)
	asked := api.Search{Selector: api.Selector{All: true}, Text: "Oslo"}
	for cut, want := range map[float64]int{0: 3, 1: 0} {
		asked.MinScore = &cut
		if out, err := r.client.Search(t.Context(), asked); err != nil || len(out.Results) != want {
			t.Errorf("min_score %v: %+v, %v", cut, out, err)
		}
	}
	if p := r.do(http.MethodPost, "/v1/search", `{"text":"x","all":true,"min_score":1.5}`).problem(t); p.Status != 422 && p.Status != 400 {
		t.Errorf("%+v", p)
	}
}
