package query

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// aged is a fact that was last read days ago.
func aged(id string, owner scope.Scope, strength, rate float64, days int) store.Fact {
	at := noon.AddDate(0, 0, -days)
	return store.Fact{
		Fact: events.Fact{
			ID: id, Revision: 1, Kind: events.FactSemantic, Text: id, Confidence: strength, DecayRate: rate, CreatedAt: at, ValidFrom: at, EventTime: at,
		},
		Scope: owner.Fact(), Strength: strength, LastAccessed: at,
	}
}

func TestWeakFacts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.facts = []store.Fact{
		aged("fresh", nora, 0.9, 0.1, 0),
		aged("fading", nora, 0.9, 0.1, 30), // 0.9 · exp(-0.1 · 30^0.8) = 0.20
		aged("hasty", nora, 1, 1, 0),       // due in 3.9 days
		aged("sure", nora, 0.25, 0, 300),   // weak, and never pruned
		aged("other", scope.Scope{Project: nora.Project, User: "bob"}, 0.1, 0.1, 1),
	}
	got := into[api.WeakPage](t, r.do(http.MethodGet, "/v1/facts/weak?user=nora", ""), http.StatusOK)
	due := map[string]bool{}
	for _, f := range got.Facts {
		due[f.ID] = f.PrunedAt != nil && f.PrunedAt.After(noon)
	}
	if want := map[string]bool{"fading": true, "hasty": true, "sure": false}; !cmp.Equal(want, due) {
		t.Errorf("weak are %v, want %v", due, want)
	}
	for _, f := range got.Facts {
		if f.ID == "hasty" && f.PrunedAt.Sub(noon) > 4*24*time.Hour {
			t.Errorf("pruned at %v", f.PrunedAt)
		}
	}
	if p := r.do(http.MethodGet, "/v1/facts/weak", "").problem(t); p.Status < http.StatusBadRequest {
		t.Errorf("without a scope: %+v", p)
	}
}

func TestWeakFactsComeInPages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := range 5 {
		r.store.facts = append(r.store.facts, aged(fmt.Sprintf("f%d", n), nora, 0.1, 0.1, n+1))
	}
	seen, cursor := map[string]bool{}, ""
	for range 5 {
		page, err := r.client.WeakFacts(t.Context(), scope.Selector{Project: nora.Project, User: &nora.User}, 2, cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range page.Facts {
			seen[f.ID] = true
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(seen) != 5 {
		t.Errorf("seen %v", seen)
	}
}
