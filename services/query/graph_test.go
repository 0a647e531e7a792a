package query

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// related is a rig where Nora works at Fenwick in the memory of two agents, in one of
// which Fenwick is in Leeds, which is in a cycle with it.
func related(t *testing.T) *rig {
	r := newRig(t)
	other := nora
	other.Agent, other.Session = "coach", ""
	for _, owner := range []scope.Scope{nora.Fact(), other.Fact()} {
		f := fact1("f"+owner.Agent, 1, "Nora works at Fenwick.")
		f.Scope = owner
		r.store.facts = append(r.store.facts, f)
		r.store.entities[owner] = []events.Entity{
			{ID: "u", CanonicalName: "user", Type: events.EntityPerson, Aliases: []string{"Nora"}, MentionCount: 2, FirstSeen: noon, LastUpdated: noon},
			{ID: "f", CanonicalName: "Fenwick", Type: events.EntityOrganization, MentionCount: 1, FirstSeen: noon, LastUpdated: noon},
		}
		r.store.edges[owner] = []events.Edge{{ID: "1", SourceID: "u", TargetID: "f", Type: events.EdgeRelation, Predicate: "work", ValidFrom: noon}}
	}
	r.store.entities[nora.Fact()] = append(r.store.entities[nora.Fact()], events.Entity{ID: "l", CanonicalName: "Leeds", Type: events.EntityPlace, FirstSeen: noon})
	past := noon
	r.store.edges[nora.Fact()] = append(r.store.edges[nora.Fact()],
		events.Edge{ID: "2", SourceID: "f", TargetID: "l", Type: events.EdgeRelation, Predicate: "located_in", ValidFrom: noon},
		events.Edge{ID: "3", SourceID: "l", TargetID: "f", Type: events.EdgeCausal, Predicate: "holds", ValidFrom: noon},
		events.Edge{ID: "4", SourceID: "u", TargetID: "l", Type: events.EdgeRelation, Predicate: "lives_in", ValidFrom: noon, ValidUntil: &past},
	)
	return r
}

func TestEntities(t *testing.T) {
	t.Parallel()
	r := related(t)
	of := scope.Selector{User: &nora.User}
	page, err := r.client.Entities(t.Context(), of, 2, "")
	if err != nil || len(page.Entities) != 2 || page.Next == "" {
		t.Fatalf("%+v, %v", page, err)
	}
	if e := page.Entities[0]; e.Name != "Fenwick" || e.MentionCount != 2 {
		t.Errorf("of two agents: %+v", e)
	}
	page, err = r.client.Entities(t.Context(), of, 2, page.Next)
	if err != nil || len(page.Entities) != 1 || page.Entities[0].Name != "user" || page.Next != "" {
		t.Errorf("second page: %+v, %v", page, err)
	}
	for query, n := range map[string]int{"?user=nora&type=place": 1, "?user=eve": 0, "?all=true&project=rival": 0} {
		if got := into[api.EntityPage](t, r.do(http.MethodGet, "/v1/entities"+query, ""), http.StatusOK); got.Entities == nil || len(got.Entities) != n {
			t.Errorf("%s: %+v, want %d", query, got, n)
		}
	}
	if p := r.do(http.MethodGet, "/v1/entities", "").problem(t); p.Code != api.CodeScopeMissing {
		t.Errorf("without a scope: %+v", p)
	}
}

func TestEntityRelations(t *testing.T) {
	t.Parallel()
	r := related(t)
	of := scope.Selector{User: &nora.User, Agent: &nora.Agent}
	for depth, want := range map[int][]string{
		0: {"user work Fenwick"},
		4: {"user work Fenwick", "Fenwick located_in Leeds", "Leeds holds Fenwick"}, // and not where the user lived
	} {
		got, err := r.client.Relations(t.Context(), of, "user", depth)
		var lines []string
		for _, e := range got.Relations {
			lines = append(lines, e.Source+" "+e.Predicate+" "+e.Target)
		}
		if diff := cmp.Diff(want, lines); err != nil || diff != "" {
			t.Errorf("depth %d: %v (-want +got):\n%s", depth, err, diff)
		}
	}
	info, err := r.client.Entity(t.Context(), of, "Fenwick")
	if err != nil || len(info.Relations) != 3 || info.Description != "Fenwick is an organization, mentioned once since "+noon.Format("2006-01-02")+"." {
		t.Errorf("%+v, %v", info, err)
	}
	if p := r.do(http.MethodGet, "/v1/entities/Nobody?user=nora", "").problem(t); p.Status != http.StatusNotFound {
		t.Errorf("%+v", p)
	}
	if p := r.do(http.MethodGet, "/v1/entities/user/relations?user=nora&depth=99", "").problem(t); p.Field != "depth" {
		t.Errorf("%+v", p)
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	r := related(t)
	got, err := r.client.Stats(t.Context(), scope.Selector{User: &nora.User, Agent: &nora.Agent})
	if err != nil || got.Facts != 1 || got.Orphans != 1 || got.Entities != 3 || got.Relations != 3 || got.Edges["causal"] != 1 || got.Types["place"] != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
