package query

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/memory"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

func said1(id string, s scope.Scope, at time.Time, ordinal uint64) memory.Episode {
	return memory.Episode{ID: id, Source: source, Scope: s, Role: "user", Content: "said " + id, Timestamp: at, Ordinal: ordinal}
}

func idsOf(episodes []api.Episode) []string {
	var out []string
	for _, e := range episodes {
		out = append(out, e.ID)
	}
	return out
}

func TestRecentWidens(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, s := range []scope.Scope{
		{Project: "default", User: "nora", Agent: "a1", Session: "s1"}, {Project: "default", User: "nora", Session: "s2"},
		{Project: "default", Agent: "a1"}, {Project: "rival", User: "nora", Agent: "a1", Session: "s1"},
	} {
		r.store.put(said1(fmt.Sprint(i), s, noon.Add(time.Duration(-i)*time.Minute), 1))
	}
	for query, want := range map[string][]string{
		"all=true&limit=9":                             {"0", "1", "2"},
		"limit=9&user=nora":                            {"0", "1"},
		"limit=9&user=":                                {"2"},
		"limit=9&user":                                 {"2"},
		"limit=9&agent=a1":                             {"0", "2"},
		"limit=9&user=nora&agent=":                     {"1"},
		"limit=9&session=s1":                           {"0"},
		"all=true&limit=9&project=rival":               {"3"},
		"all=true&limit=9&project=other":               nil,
		"all=true&limit=2":                             {"0", "1"},
		"all=true&limit=9&after=2026-04-02T11:58:30Z":  {"0", "1"},
		"all=true&limit=9&before=2026-04-02T11:59:30Z": {"1", "2"},
		"all=true&limit=9&before=2026-04-02":           nil,
		"limit=9&after=2026-04-02&user=nora":           {"0", "1"},
		"limit=9&user=%6Eora":                          {"0", "1"},
		"limit=9&user=nor%25":                          nil,
		"limit=9&user=*":                               nil,
		"all=true&limit=9&after=" + url.QueryEscape("2026-04-02T13:58:30+02:00"): {"0", "1"},
	} {
		out := into[api.EpisodePage](t, r.do(http.MethodGet, "/v1/episodes?"+query, ""), 200)
		if diff := cmp.Diff(want, idsOf(out.Episodes)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

func TestRecentPagesHaveNoGapAndNoRepeat(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var want []string
	for i := range 12 { // several scopes, and the same instant and ordinal for many
		s := scope.Scope{Project: "default", User: fmt.Sprint("u", i%3), Session: "s"}
		r.store.put(said1(fmt.Sprintf("e%02d", i/3), s, noon.Add(time.Duration(i/6)*time.Second), uint64(i/6)))
	}
	all, err := r.client.Recent(t.Context(), everyone, client.ListEpisodes{Limit: 1000})
	if err != nil || len(all.Episodes) != 12 || all.Next != "" {
		t.Fatalf("%d episodes, %q, %v", len(all.Episodes), all.Next, err)
	}
	key := func(e api.Episode) string { return e.User + e.ID }
	for _, e := range all.Episodes {
		want = append(want, key(e))
	}
	for limit := 1; limit <= 12; limit++ {
		var got []string
		cursor := ""
		for pages := 0; ; pages++ {
			p, err := r.client.Recent(t.Context(), everyone, client.ListEpisodes{Limit: limit, Cursor: cursor})
			if err != nil || len(p.Episodes) == 0 {
				t.Fatalf("limit %d, page %d: empty, %v", limit, pages, err)
			}
			for _, e := range p.Episodes {
				got = append(got, key(e))
			}
			if cursor = p.Next; cursor == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, diff)
		}
	}
}

func TestRecentReturnsTwentyUnlessALimitIsGiven(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 30 {
		r.store.put(said1(fmt.Sprintf("e%02d", i), scope.Scope{Project: "default", User: "nora"}, noon.Add(time.Duration(i)*time.Second), uint64(i+1)))
	}
	first, err := r.client.Recent(t.Context(), everyone, client.ListEpisodes{})
	if err != nil || len(first.Episodes) != 20 || first.Next == "" {
		t.Fatalf("%d episodes, next %q, %v", len(first.Episodes), first.Next, err)
	}
	rest, err := r.client.Recent(t.Context(), everyone, client.ListEpisodes{Cursor: first.Next})
	if err != nil || len(rest.Episodes) != 10 || rest.Next != "" || rest.Episodes[9].ID != "e00" {
		t.Errorf("%v, next %q, %v", idsOf(rest.Episodes), rest.Next, err)
	}
	within := client.ListEpisodes{After: noon.Add(3 * time.Second), Before: noon.Add(6 * time.Second)}
	between, err := r.client.Recent(t.Context(), everyone, within)
	if diff := cmp.Diff([]string{"e05", "e04"}, idsOf(between.Episodes)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestRecentWaitsForAWrite(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w, err := r.client.Record(t.Context(), api.Record{Scope: noraBody, Messages: api.Messages{{Content: "a"}}}, "")
	if err != nil {
		t.Fatal(err)
	}
	path := "/v1/episodes?limit=1&all=true&at=" + w.At
	if out := into[api.EpisodePage](t, r.do(http.MethodGet, path, ""), 200); !out.Stale {
		t.Error("a write that is not stored is not told as missing")
	}
	if out := into[api.Found](t, r.do(http.MethodPost, "/v1/search", `{"text":"x","all":true,"at":"`+w.At+`"}`), 200); !out.Stale {
		t.Error("search is not stale")
	}
	r.store.put(said1(w.Episodes[0].ID, noraBody.In("default"), noon, 1))
	if out := into[api.EpisodePage](t, r.do(http.MethodGet, path, ""), 200); out.Stale || len(out.Episodes) != 1 {
		t.Errorf("%+v", out)
	}
	if p := r.do(http.MethodGet, path+"&project=rival", "").problem(t); p.Field != "at" || p.Status != 400 {
		t.Errorf("a token of another project: %+v", p)
	}
	r.store.fail(errDown)
	if p := r.do(http.MethodGet, path, "").problem(t); p.Status != 503 {
		t.Errorf("%+v", p)
	}
}
