package query

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/store"
	"palimpsest/pkg/api"
)

// moved puts a fact into the store that was restated half an hour ago, and one
// that was not.
func moved(r *rig) {
	before, now, other := fact1("f", 1, "Nora lives in Oslo."), fact1("f", 2, "Nora lives in Bergen."), fact1("g", 1, "Nora likes tea.")
	now.ValidFrom = noon.Add(-30 * time.Minute)
	before.ValidUntil = &now.ValidFrom
	r.store.facts, r.store.versions = []store.Fact{now, other}, []store.Fact{before}
	r.store.text = []store.Hit{{Score: 1, Fact: &other}}
}

func factTexts(facts []api.Fact) []string {
	var out []string
	for _, f := range facts {
		out = append(out, f.Text)
	}
	return out
}

func TestTheVersionOfThen(t *testing.T) {
	t.Parallel()
	const tea, oslo, bergen = "Nora likes tea.", "Nora lives in Oslo.", "Nora lives in Bergen."
	r := newRig(t)
	moved(r)
	for at, want := range map[string]struct{ list, one []string }{
		"2026-04-02T10:59:00Z": {nil, nil},
		"2026-04-02T11:00:00Z": {[]string{tea, oslo}, []string{oslo}},
		"2026-04-02T11:29:59Z": {[]string{tea, oslo}, []string{oslo}},
		"2026-04-02T11:30:00Z": {[]string{tea, bergen}, []string{bergen}},
	} {
		page := into[api.FactPage](t, r.do(http.MethodGet, "/v1/facts?user=nora&valid_at="+at, ""), 200)
		if diff := cmp.Diff(want.list, factTexts(page.Facts)); diff != "" {
			t.Errorf("list at %s (-want +got):\n%s", at, diff)
		}
		a := r.do(http.MethodGet, "/v1/facts/f?valid_at="+at, "")
		if want.one == nil {
			if p := a.problem(t); p.Status != 404 {
				t.Errorf("fact at %s: %+v", at, p)
			}
			continue
		}
		if f := into[api.Fact](t, a, 200); f.Text != want.one[0] {
			t.Errorf("fact at %s: %q", at, f.Text)
		}
	}
	for _, path := range []string{"/v1/facts/f?valid_at=then", "/v1/facts/f?revision=1&valid_at=2026-01-01"} {
		if p := r.do(http.MethodGet, path, "").problem(t); p.Status != 400 || p.Field != "valid_at" {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

func TestSearchFindsTheVersionOfThen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	moved(r)
	for body, want := range map[string][]string{
		`{"user":"nora","text":"where does Nora live?","valid_at":"2026-04-02T11:10:00Z","explain":true}`: {"fact f", "fact g"},
		`{"user":"nora","text":"Oslo","valid_at":"2026-04-02T11:10:00Z","kinds":["opinion"]}`:             {"fact g"},
		`{"user":"nora","text":"Oslo","valid_at":"2026-04-02T11:10:00Z","types":["episode"]}`:             nil,
		`{"user":"nora","text":"Oslo","valid_at":"2026-04-02T11:10:00Z","after":"2026-04-03"}`:            {"fact g"},
		`{"user":"nora","text":"Oslo","valid_at":"2026-04-02T11:40:00Z"}`:                                 {"fact g"},
		`{"user":"nora","text":"Oslo"}`:                                                  {"fact g"},
		`{"user":"ben","text":"Oslo","valid_at":"2026-04-02T11:10:00Z"}`:                 nil,
		`{"user":"nora","session":"s1","text":"Oslo","valid_at":"2026-04-02T11:10:00Z"}`: nil,
	} {
		out := into[api.Found](t, r.do(http.MethodPost, "/v1/search", body), 200)
		if diff := cmp.Diff(want, hitIDs(out)); diff != "" || len(out.Degraded) > 0 {
			t.Errorf("%s: degraded %v (-want +got):\n%s", body, out.Degraded, diff)
		}
		for _, h := range out.Results {
			if h.ID == "f" && (h.Text != "Nora lives in Oslo." || h.Channels["earlier"].Rank != 1) {
				t.Errorf("%s: %+v", body, h)
			}
		}
	}
}
