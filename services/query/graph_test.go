package query

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/store"
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

// TestEntityTimeline: a place where the user lived has the version that said so,
// although it has no link any more. Versions that never held, and those about others,
// are left out.
func TestEntityTimeline(t *testing.T) {
	t.Parallel()
	r := related(t)
	owner := nora.Fact()
	r.store.entities[owner] = append(r.store.entities[owner], events.Entity{ID: "o", CanonicalName: "Oslo", Type: events.EntityPlace, FirstSeen: noon})
	version := func(id string, revision uint64, text, object string, from, days int, links ...string) store.Fact {
		f := fact1(id, revision, text)
		f.Scope, f.Object, f.EntityIDs, f.ValidFrom = owner, object, links, noon.AddDate(0, 0, from)
		if days >= 0 {
			f.ValidUntil = ptr(f.ValidFrom.AddDate(0, 0, days))
		}
		return f
	}
	r.store.versions = []store.Fact{
		version("home", 1, "The user lives in Oslo.", "Oslo", -90, 30, "o"),
		version("home", 2, "The user lives in Leeds.", "Leeds", -60, 0, "l"), // confirmed since
		version("cat", 1, "The user's cat stays in Oslo with Ida.", "cat", -95, 0, "o"),
	}
	r.store.facts = append(r.store.facts,
		version("home", 3, "The user lives in Leeds.", "Leeds", -60, -1, "l"),
		version("cat", 2, "The user's cat stays in Oslo with Ida.", "cat", -95, 20),
		version("job", 1, "The user works in Osloville.", "Osloville", -30, -1),
	)
	r.store.edges[owner] = append(r.store.edges[owner],
		events.Edge{ID: "5", SourceID: "u", TargetID: "o", Type: events.EdgeRelation, ValidFrom: noon, ValidUntil: ptr(noon), Evidence: []string{"home", "cat", "an episode"}})
	of := scope.Selector{User: &nora.User, Agent: &nora.Agent}
	for name, want := range map[string][]string{
		"Oslo":  {"cat@2 The user's cat stays in Oslo with Ida.", "home@1 The user lives in Oslo."},
		"Leeds": {"home@3 The user lives in Leeds."},
	} {
		got, err := r.client.Timeline(t.Context(), of, name, 0)
		var lines []string
		for _, f := range got.Facts {
			lines = append(lines, fmt.Sprintf("%s@%d %s", f.ID, f.Revision, f.Text))
		}
		if diff := cmp.Diff(want, lines); err != nil || diff != "" || got.Name != name {
			t.Errorf("%s, %q: %v (-want +got):\n%s", name, got.Name, err, diff)
		}
	}
	if got, err := r.client.Timeline(t.Context(), of, "Oslo", 1); err != nil || len(got.Facts) != 1 || got.Facts[0].ID != "home" {
		t.Errorf("the newest: %+v, %v", got, err)
	}
	if p := r.do(http.MethodGet, "/v1/entities/Nobody/timeline?user=nora", "").problem(t); p.Status != http.StatusNotFound {
		t.Errorf("%+v", p)
	}
}
