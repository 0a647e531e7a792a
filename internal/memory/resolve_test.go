package memory

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/events"
)

// TestPlanRelatesTheUser: facts about the user relate the user to the entities that
// their objects name, wherever the names stand there, and closing a fact by a later
// batch closes its edges.
func TestPlanRelatesTheUser(t *testing.T) {
	t.Parallel()
	w := newWorld()
	about := func(id, predicate, object, text string) *events.Fact {
		f := fact(id, text, noon, "e1")
		f.Subject, f.Predicate, f.Object = SubjectUser, predicate, object
		return f
	}
	b := batch(
		addFact("d1", about("f1", "work", "as a hydrologist at Fenwick Labs", "The user works as a hydrologist at Fenwick Labs.")),
		addFact("d2", about("f2", "name", "Nora", "The user's name is Nora.")),
		addFact("d3", about("f3", "likes", "tea", "The user likes tea.")),
		addFact("d4", about("f4", "has_brother", "Emil and Jonas", "The user has brothers named Emil and Jonas.")),
	)
	b.Mentions = map[string][]events.Mention{
		"d1": {{Name: "Fenwick Labs", Type: events.EntityOrganization}},
		"d2": {{Name: "Nora", Type: events.EntityPerson}},
		"d4": {{Name: "Emil", Type: events.EntityPerson}, {Name: "Jonas", Type: events.EntityPerson}},
	}
	w.commit(t, w.input(b))
	relations := func() (list []string) {
		for _, e := range w.edges {
			if e.Type == events.EdgeRelation && e.ValidUntil == nil {
				list = append(list, w.entities[e.SourceID].CanonicalName+" "+e.Predicate+" "+w.entities[e.TargetID].CanonicalName)
			}
		}
		slices.Sort(list)
		return list
	}
	if diff := cmp.Diff([]string{"user has_brother Emil", "user has_brother Jonas", "user work Fenwick Labs"}, relations()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	nora, known := Resolve(slices.Collect(maps.Values(w.entities)), "nora", events.EntityPerson)
	if !known || nora.CanonicalName != SubjectUser || nora.MentionCount != 3 {
		t.Errorf("nora is %+v", nora)
	}
	quit := batch(deleteFacts("d5", events.ReasonNegation, "f1"))
	quit.Mentions, quit.Candidates[0].EventTime = nil, noon.Add(time.Hour)
	w.commit(t, w.input(quit))
	if diff := cmp.Diff([]string{"user has_brother Emil", "user has_brother Jonas"}, relations()); diff != "" {
		t.Errorf("after the user left (-want +got):\n%s", diff)
	}
}
