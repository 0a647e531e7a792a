package retrieval_test

import (
	"cmp"
	"path/filepath"
	"testing"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/memory"
	"palimpsest/internal/retrieval"
	"palimpsest/internal/store/sqlite"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// triples are facts with the entities at both ends, if any.
var triples = []struct {
	subject, predicate, object, text string
	relates                          bool
}{
	{"user", "has_brother", "Stepan", "The user has a brother named Stepan.", true},
	{"user", "has_sister", "Ana", "The user has a sister named Ana.", true},
	{"user", "work", "at Initech", "The user works at Initech.", true},
	{"Stepan", "has_wife", "Oksana", "Stepan has a wife named Oksana.", true},
	{"Karim", "has_wife", "Leila", "Karim has a wife named Leila.", true},
	{"Oksana", "work", "as a florist", "Oksana works as a florist.", false},
	{"Leila", "work", "as a dentist", "Leila works as a dentist.", false},
	{"Ana", "work", "at Globex", "Ana works at Globex.", true},
	{"Globex", "located_in", "Lisbon", "Globex is in Lisbon.", true},
	{"Initech", "located_in", "Tampere", "Initech is in Tampere.", true},
	{"user", "drives", "a Saab", "The user drives a Saab.", false},
	{"user", "has_contact", "Ilmar", "The user has a dentist named Ilmar.", true},
	{"user", "has_contact", "Oda", "The user has a landlord named Oda.", true},
	{"Ilmar", "lives_in", "Turku", "Ilmar lives in Turku.", false},
	{"Oda", "lives_in", "Oulu", "Oda lives in Oulu.", false},
}

// related returns an engine over the triples, of which one effect makes facts,
// entities and edges.
func related(t *testing.T, change func(*retrieval.Config)) *retrieval.Engine {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "memory.db"), Embedder: local.New().Info()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	ana := scope.Scope{Project: "p", User: "ana"}
	effect := events.EffectCommitted{Header: events.Header{Scope: ana}, Revision: 1, Rule: "turn", CommittedAt: wednesday}
	entities := map[string]events.Entity{}
	entity := func(name string) string {
		if name == "at Globex" || name == "at Initech" {
			name = name[len("at "):]
		}
		id := memory.EntityID(ana, name, events.EntityPerson)
		entities[id] = events.Entity{ID: id, CanonicalName: name, Type: events.EntityPerson, FirstSeen: wednesday, LastUpdated: wednesday}
		return id
	}
	for _, f := range triples {
		fact := events.Fact{
			ID: f.text, Revision: 1, Kind: events.FactSemantic, Subject: f.subject, Predicate: f.predicate, Object: f.object, Text: f.text,
			Hash: memory.HashText(f.text), Confidence: 0.9, ValidFrom: wednesday, EventTime: wednesday, CreatedAt: wednesday, RuleID: "r",
		}
		if f.relates {
			from, to := entity(f.subject), entity(f.object)
			fact.EntityIDs = []string{from, to}
			effect.Edges = append(effect.Edges, events.Edge{
				ID: f.text, SourceID: from, TargetID: to, Type: events.EdgeRelation, Predicate: f.predicate, Weight: 1, Confidence: 0.9,
				Evidence: []string{f.text}, ValidFrom: wednesday, CreatedAt: wednesday,
			})
		}
		effect.Facts = append(effect.Facts, fact)
	}
	for _, e := range entities {
		effect.Entities = append(effect.Entities, e)
	}
	if err := s.Apply(t.Context(), effect, 1); err != nil {
		t.Fatal(err)
	}
	c := retrieval.DefaultConfig()
	if change != nil {
		change(&c)
	}
	e, err := retrieval.New(c, s, embed.Only(local.New()))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func aboutNow(text string) retrieval.Query {
	q := asked(text)
	q.ValidAt, q.Explain, q.Limit = wednesday, true, 3
	return q
}

// TestQuestionsOfRelations: a question reaches over two relations facts that share no
// word with it.
func TestQuestionsOfRelations(t *testing.T) {
	t.Parallel()
	e := related(t, nil)
	for text, want := range map[string]string{
		"What does my brother's wife do?":            "Oksana works as a florist.",
		"What is the job of the wife of my brother?": "Oksana works as a florist.",
		"What does Karim's wife do for work?":        "Leila works as a dentist.",
		"Where does my sister work?":                 "Ana works at Globex.",
		"In which city is the company of my sister?": "Globex is in Lisbon.",
		"In which country is my sister's company?":   "Globex is in Lisbon.",
		"Where does my dentist live?":                "Ilmar lives in Turku.",
	} {
		out, err := e.Search(t.Context(), aboutNow(text))
		if err != nil || len(out.Degraded) > 0 {
			t.Fatalf("%q: %v, degraded %v", text, err, out.Degraded)
		}
		found := false
		for _, h := range out.Hits {
			if h.Fact.Subject == "Oda" && h.Features["graph"] > 0 {
				t.Errorf("%q reaches the landlord", text)
			}
			if h.Fact.Text == want {
				found = true
				if h.Features["graph"] <= 0 || h.Channels["graph"].Rank == 0 {
					t.Errorf("%q: the graph has no share in %+v", text, h)
				}
			}
		}
		if !found {
			t.Errorf("%q: %+v", text, out.Hits)
		}
	}
}

// TestAnEntityReachesFactsThroughEdges: what an edge relates to a named entity is found,
// and is not without the channel.
func TestAnEntityReachesFactsThroughEdges(t *testing.T) {
	t.Parallel()
	reached := func(change func(*retrieval.Config)) (share float64) {
		q := aboutNow("Tell me everything about Ana")
		q.Limit = 10
		out, err := related(t, change).Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range out.Hits {
			if h.Fact.Text == "Globex is in Lisbon." {
				share = cmp.Or(h.Features["graph"], -1)
			}
		}
		return share
	}
	if share := reached(nil); share <= 0 {
		t.Errorf("the fact on the second edge has %v", share)
	}
	if share := reached(func(c *retrieval.Config) { c.Graph = 0 }); share > 0 {
		t.Errorf("a channel of no weight has %v", share)
	}
}
