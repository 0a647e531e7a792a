package query

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// narrowable puts facts and episodes of two topics, one of them about an entity, in
// front of lists and searches.
func narrowable(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	oslo, tea := fact1("oslo", 1, "Nora lives in Oslo."), fact1("tea", 1, "Nora drinks tea.")
	oslo.Metadata, oslo.EntityIDs, oslo.SourceEpisodeIDs = map[string]any{"topic": "home"}, []string{"place"}, []string{"e1"}
	tea.Metadata, tea.Kind = map[string]any{"topic": "food"}, events.FactOpinion
	e1 := said1("e1", scope.Scope{Project: "default", User: "nora", Session: "s1"}, noon.Add(-24*time.Hour), 1)
	e2 := said1("e2", scope.Scope{Project: "default", User: "nora", Session: "s1"}, noon.Add(-60*24*time.Hour), 2)
	other := said1("e1", scope.Scope{Project: "default", User: "ben"}, noon.Add(-time.Hour), 1)
	e2.Metadata = map[string]any{"topic": "food"}
	for _, f := range []*store.Fact{&oslo, &tea} {
		f.Scope = scope.Scope{Project: "default", User: "nora"}
	}
	r.store.facts = []store.Fact{oslo, tea}
	r.store.entities[oslo.Scope] = []events.Entity{{ID: "place", CanonicalName: "Oslo"}}
	for _, e := range []memory.Episode{e1, e2, other} {
		r.store.put(e)
	}
	r.store.text = []store.Hit{{Score: 4, Fact: &oslo}, {Score: 3, Fact: &tea}, {Score: 2, Episode: &e1}, {Score: 1, Episode: &e2}, {Score: 1, Episode: &other}}
	return r
}

func TestSearchNarrows(t *testing.T) {
	t.Parallel()
	r := narrowable(t)
	for body, want := range map[string][]string{
		`"filters":{"field":"metadata.topic","operator":"eq","value":"home"}`: {"fact oslo"},
		`"filters":{"NOT":{"field":"metadata.topic","operator":"exists"}}`:    {"episode e1"},
		`"filters":{"field":"type","operator":"eq","value":"episode"}`:        {"episode e1", "episode e2"},
		`"filters":{"OR":[]}`:                           nil,
		`"filters":{"AND":[]},"types":["fact"]`:         {"fact oslo", "fact tea"},
		`"entity":"Oslo"`:                               {"fact oslo", "episode e1"},
		`"entity":"Rome"`:                               nil,
		`"entity":"Oslo","types":["fact"]`:              {"fact oslo"},
		`"episode_window":"30d","types":["episode"]`:    {"episode e1"},
		`"episode_window":"24h30m","types":["episode"]`: {"episode e1"},
		`"episode_window":"1h"`:                         {"fact oslo", "fact tea"},
	} {
		out := into[api.Found](t, r.do(http.MethodPost, "/v1/search", `{"user":"nora","text":"what",`+body+`}`), 200)
		got := map[string]bool{}
		for _, id := range hitIDs(out) {
			got[id] = true
		}
		wanted := map[string]bool{}
		for _, id := range want {
			wanted[id] = true
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

func TestNarrowingIsChecked(t *testing.T) {
	t.Parallel()
	r := narrowable(t)
	for body, want := range map[string][2]string{
		`"filters":{"AND":[{"field":"catgory","operator":"eq","value":"x"}]}`: {"filters.AND[0].field", `"category"`},
		`"filters":{"field":"category","operator":"eq"}`:                      {"filters.value", "is required"},
		`"filters":[]`:               {"filters", "must be an object"},
		`"filters":{}`:               {"filters", "must have"},
		`"filters":"x"`:              {"filters", "must be an object"},
		`"episode_window":"soon"`:    {"episode_window", "30d"},
		`"episode_window":"-3d"`:     {"episode_window", "30d"},
		`"episode_window":"999999d"`: {"episode_window", "30d"},
	} {
		p := r.do(http.MethodPost, "/v1/search", `{"user":"nora","text":"what",`+body+`}`).problem(t)
		if p.Status != http.StatusBadRequest || p.Field != want[0] || !strings.Contains(p.Detail, want[1]) {
			t.Errorf("%s: %+v", body, p)
		}
	}
	if p := r.do(http.MethodPost, "/v1/search", `{"all":true,"text":"what","entity":"Oslo"}`).problem(t); p.Field != "entity" {
		t.Errorf("entity of everybody: %+v", p)
	}
	if p := r.do(http.MethodGet, "/v1/facts?user=nora&filters="+url.QueryEscape(`{"NOT":1}`), "").problem(t); p.Field != "filters.NOT" {
		t.Errorf("facts: %+v", p)
	}
}

func TestListsNarrow(t *testing.T) {
	t.Parallel()
	r := narrowable(t)
	user := "nora"
	sel := scope.Selector{Project: "default", User: &user}
	food := json.RawMessage(`{"field":"metadata.topic","operator":"eq","value":"food"}`)
	for _, tc := range []struct {
		list client.ListFacts
		want []string
	}{
		{client.ListFacts{Filters: food}, []string{"tea"}},
		{client.ListFacts{Entity: "Oslo"}, []string{"oslo"}},
		{client.ListFacts{Entity: "Oslo", Filters: food}, nil},
		{client.ListFacts{Kinds: []string{"opinion", "semantic"}, Filters: food}, []string{"tea"}},
	} {
		page, err := r.client.Facts(t.Context(), sel, tc.list)
		if diff := cmp.Diff(tc.want, factIDs(page.Facts)); diff != "" || err != nil {
			t.Errorf("%+v: %v\n%s", tc.list, err, diff)
		}
	}
	for _, tc := range []struct {
		narrow client.Narrow
		want   []string
	}{
		{client.Narrow{Filters: food}, []string{"e2"}},
		{client.Narrow{Entity: "Oslo"}, []string{"e1"}},
		{client.Narrow{EpisodeWindow: "30d"}, []string{"e1"}},
	} {
		page, err := r.client.Recent(t.Context(), sel, client.ListEpisodes{Narrow: tc.narrow})
		if diff := cmp.Diff(tc.want, idsOf(page.Episodes)); diff != "" || err != nil {
			t.Errorf("%+v: %v\n%s", tc.narrow, err, diff)
		}
	}
}
