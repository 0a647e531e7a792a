package e2e

import (
	"slices"
	"strings"
	"testing"

	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// row is one line of the behaviour table: earlier messages, a message, and the
// facts that must hold afterwards.
type row struct {
	name  string
	known []turn
	said  []turn
	check func(t *testing.T, i *instance, who scope.Selector, before, after []api.Fact)
}

// behaves holds every row.
func behaves(t *testing.T, i *instance) {
	for n, r := range behaviour {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			who := i.person("row-" + string(rune('a'+n)))
			on, sel := i.in(t), of(who)
			on.say(who, r.known...)
			on.settled(sel, len(r.known))
			before := on.facts(sel)
			on.say(who, r.said...)
			on.settled(sel, len(r.known)+len(r.said))
			r.check(t, on, sel, before, on.facts(sel))
		})
	}
}

var behaviour = []row{
	{
		name: "a name is added",
		said: []turn{"My name is Bo"},
		check: func(t *testing.T, _ *instance, _ scope.Selector, _, after []api.Fact) {
			wantOne(t, after, "Bo")
		},
	},
	{
		name: "a conversation gives name, work, field and preference",
		said: []turn{
			"user: Hello, Nora here. I'm a hydrologist at Fenwick Labs.",
			"assistant: What do you study there?",
			"user: River ice and sediment. For plotting I'd take Julia over Matlab.",
		},
		check: func(t *testing.T, _ *instance, _ scope.Selector, _, after []api.Fact) {
			for _, want := range []string{"Nora", "hydrologist", "Fenwick Labs", "ice and sediment", "Julia"} {
				wantSome(t, after, want)
			}
		},
	},
	{
		name: "a greeting gives nothing",
		said: []turn{"hello"},
		check: func(t *testing.T, _ *instance, _ scope.Selector, _, after []api.Fact) {
			wantNone(t, after)
		},
	},
	{
		name:  "what is known already changes nothing",
		known: []turn{"I like Python"},
		said:  []turn{"I like Python"},
		check: func(t *testing.T, i *instance, _ scope.Selector, before, after []api.Fact) {
			f := wantOne(t, after, "Python")
			if f.ID != before[0].ID || f.Revision != before[0].Revision {
				t.Errorf("was %s@%d, is %s@%d", before[0].ID, before[0].Revision, f.ID, f.Revision)
			}
			if len(f.SourceEpisodeIDs) != 2 {
				t.Errorf("sources: %v", f.SourceEpisodeIDs)
			}
		},
	},
	{
		name:  "a move updates the same fact, and history shows both",
		known: []turn{"I live in Oslo"},
		said:  []turn{"I moved to Bergen last week"},
		check: func(t *testing.T, i *instance, _ scope.Selector, before, after []api.Fact) {
			f := wantOne(t, after, "Bergen")
			if f.ID != before[0].ID || f.Revision != 2 {
				t.Errorf("was %s, is %s@%d", before[0].ID, f.ID, f.Revision)
			}
			eventually(t, "history", func() error {
				h, err := i.api.History(t.Context(), f.ID)
				if err != nil {
					return err
				}
				if len(h.Changes) != 2 || !strings.Contains(h.Changes[1].OldMemory, "Oslo") || !strings.Contains(h.Changes[1].NewMemory, "Bergen") {
					t.Fatalf("history: %+v", h.Changes)
				}
				if !h.Changes[1].After.ValidFrom.Before(h.Changes[1].AppliedAt) {
					t.Errorf("last week is not dated: valid from %v", h.Changes[1].After.ValidFrom)
				}
				return nil
			})
		},
	},
	{
		name:  "a refinement is merged",
		known: []turn{"I work in tech"},
		said:  []turn{"I work at Fenwick as a senior engineer"},
		check: func(t *testing.T, _ *instance, _ scope.Selector, before, after []api.Fact) {
			wantSome(t, after, "Fenwick")
			wantSome(t, after, "senior engineer")
			if !slices.ContainsFunc(after, func(f api.Fact) bool { return f.ID == before[0].ID && f.Revision == 2 }) {
				t.Errorf("%s was not updated: %v", before[0].ID, texts(after))
			}
		},
	},
	{
		name:  "a new employer keeps the occupation",
		known: []turn{"I'm a hydrologist at Fenwick Labs."},
		said:  []turn{"I've left Fenwick, I'm with Tarn Institute now."},
		check: func(t *testing.T, _ *instance, _ scope.Selector, _, after []api.Fact) {
			wantSome(t, after, "Tarn Institute")
			wantSome(t, after, "hydrologist")
			for _, text := range texts(after) {
				if strings.Contains(text, "Fenwick") {
					t.Errorf("still valid: %s", text)
				}
			}
		},
	},
	{
		name:  "a negation ends a fact",
		known: []turn{"I'm vegetarian"},
		said:  []turn{"I started eating meat again"},
		check: func(t *testing.T, _ *instance, _ scope.Selector, before, after []api.Fact) {
			if len(before) == 0 {
				t.Error("nothing was known")
			}
			for _, text := range texts(after) {
				if strings.Contains(text, "vegetarian") {
					t.Errorf("still valid: %s", text)
				}
			}
		},
	},
	{
		name: "a question is no fact",
		said: []turn{"Do you think I should move to Berlin?"},
		check: func(t *testing.T, _ *instance, _ scope.Selector, _, after []api.Fact) {
			wantNone(t, after)
		},
	},
	{
		name: "another person's taste is theirs",
		said: []turn{"My brother Tom hates cilantro"},
		check: func(t *testing.T, i *instance, _ scope.Selector, _, after []api.Fact) {
			f := wantSome(t, after, "cilantro")
			if !strings.Contains(f.Text, "Tom") || f.Subject == "user" {
				t.Errorf("%s: %s", f.Subject, f.Text)
			}
			e, err := i.api.Explain(t.Context(), f.ID)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(e.Entities, func(e api.Entity) bool { return e.Name == "Tom" && e.Type == "person" }) {
				t.Errorf("entities: %+v", e.Entities)
			}
		},
	},
	{
		name:  "a new number replaces the old",
		known: []turn{"my phone number ends in 41"},
		said:  []turn{"my new number ends in 42"},
		check: func(t *testing.T, _ *instance, _ scope.Selector, before, after []api.Fact) {
			f := wantOne(t, after, "42")
			if f.ID != before[0].ID {
				t.Errorf("was %s, is %s", before[0].ID, f.ID)
			}
		},
	},
}

func wantNone(t *testing.T, facts []api.Fact) {
	t.Helper()
	if len(facts) > 0 {
		t.Errorf("want nothing, got %q", texts(facts))
	}
}

// wantOne wants exactly one fact, which says text.
func wantOne(t *testing.T, facts []api.Fact, text string) api.Fact {
	t.Helper()
	if len(facts) != 1 || !strings.Contains(facts[0].Text, text) {
		t.Fatalf("want one fact with %q, got %q", text, texts(facts))
	}
	return facts[0]
}

// wantSome wants a fact that says text.
func wantSome(t *testing.T, facts []api.Fact, text string) api.Fact {
	t.Helper()
	for _, f := range facts {
		if strings.Contains(f.Text, text) {
			return f
		}
	}
	t.Errorf("no fact says %q: %q", text, texts(facts))
	return api.Fact{}
}
