package query

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// A question about a time alone is answered in pages, which count from the first
// page's instant.
func TestSearchInOrderOfTime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	full := scope.Scope{Project: "default", User: "nora", Session: "s1"}
	for i, id := range []string{"a", "b", "c"} {
		r.store.put(said1(id, full, noon.Add(time.Duration(i)*time.Minute), uint64(i+1)))
	}
	r.store.put(said1("earlier", full, noon.AddDate(0, 0, -3), 4))
	q := api.Search{
		Selector: api.Selector{User: ptr("nora")}, Text: "What did we talk about yesterday?", Limit: 2,
		Now: &api.Instant{Time: noon.AddDate(0, 0, 1)},
	}
	var got []string
	for range 3 {
		out, err := r.client.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Join(hitIDs(out), ", "))
		if q.Cursor, q.Now = out.Next, nil; out.Next == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"episode a, episode b", "episode c"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	q.Cursor = "?"
	if _, err := r.client.Search(t.Context(), q); err == nil || !strings.Contains(err.Error(), "cursor") {
		t.Errorf("a cursor of others: %v", err)
	}
}

func TestSearchBoundsByName(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	into[api.Found](t, r.do(http.MethodPost, "/v1/search", `{"text":"x","all":true,"after":"last_month","before":"2026-W10","now":"2026-03-20"}`), 200)
	after, before := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	if q := r.store.asked[0]; !q.After.Equal(after) || !q.Before.Equal(before) {
		t.Errorf("%v to %v", q.After, q.Before)
	}
	for _, a := range []answer{
		r.do(http.MethodPost, "/v1/search", `{"text":"x","all":true,"after":"soon"}`),
		r.do(http.MethodGet, "/v1/episodes?all=true&limit=5&after=soon", ""),
	} {
		if p := a.problem(t); p.Status != http.StatusBadRequest || p.Field != "after" || !strings.Contains(p.Detail, "last_week") {
			t.Errorf("%+v", p)
		}
	}
	into[api.EpisodePage](t, r.do(http.MethodGet, "/v1/episodes?all=true&limit=5&after=last_week", ""), 200)
}
