package retrieval

import (
	"context"
	"slices"
	"testing"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// predicated is a fact of a predicate and an object.
func predicated(f store.Fact, predicate, object string) store.Fact {
	f.Predicate, f.Object = predicate, object
	return f
}

// TestPredicatesAnswer a question whose words neither the fact nor its turn has, and
// better than texts that have one of them.
func TestPredicatesAnswer(t *testing.T) {
	t.Parallel()
	turns := conversation(
		turn("a", "", "I'm a hydrologist at Fenwick."), turn("b", "", "It costs a living to park there."), turn("c", "", "Nothing of note."),
		turn("d", "", "My brother is Jonas."), turn("e", "", "Jonas is a baker."), turn("f", "", "The work on the bridge goes on."),
	)
	facts := []store.Fact{
		predicated(known("mine", asker, "The user works as a hydrologist at Fenwick.", "1"), "work", "hydrologist at fenwick"),
		predicated(known("brother", asker, "The user's brother is named Jonas.", "4"), "has_brother", "jonas"),
		predicated(known("his", "Jonas", "Jonas works as a baker.", "5"), "work", "baker"),
	}
	for question, want := range map[string]string{
		"What do I do for a living?":   "mine",
		"Where does Ana work?":         "mine", // the user whose memory it is
		"What does she do for work?":   "mine",
		"What is my brother's job?":    "his",
		"What does Jonas do for work?": "his",
	} {
		f := turns.store(question)
		f.text = func(ctx context.Context, sel scope.Selector, q store.SearchQuery) (hits []store.Hit, _ error) {
			if q.Target == store.Facts {
				for i := range facts {
					hits = append(hits, store.Hit{Score: 1, Fact: &facts[i]})
				}
				return hits, nil
			}
			return turns.store(question+" hydrologist baker").text(ctx, sel, q)
		}
		q := everything(question)
		q.Scope.User = new(string)
		*q.Scope.User = "ana"
		if got := ids(search(t, f, q)); got[0] != want {
			t.Errorf("%q: found %v, want %s first", question, got, want)
		}
	}
}

// TestNameStandsForARelative ranks a text with the name of a relative as one with the
// word for it, unless the question asks for the name.
func TestNameStandsForARelative(t *testing.T) {
	t.Parallel()
	turns := conversation(
		turn("a", "", "My daughter Ilse was born here."), turn("b", "", "Ilse swells up from hazelnuts and eats none."), turn("c", "", "The eaves want paint."),
	)
	facts := []store.Fact{predicated(known("her", asker, "The user has a daughter named Ilse.", "1"), "has_daughter", "Ilse")}
	const question = "What can't my daughter eat?"
	got := search(t, turns.store(question+" ilse eats", facts...), everything(question))
	if ids(got)[0] != "2" || got.Hits[0].Features["own_coverage"] < 0.99*weights[ownCoverage] {
		t.Errorf("found %v, want 2 first with all words of the question", got.Hits)
	}
	const name = "What is my daughter called?"
	if got := ids(search(t, turns.store(name+" ilse eats", facts...), everything(name))); got[0] != "1" {
		t.Errorf("%q: found %v", name, got)
	}
}

// TestFactWithoutTheAnswer ranks a fact whose predicate is asked for behind its message
// where the message alone has a word of the question.
func TestFactWithoutTheAnswer(t *testing.T) {
	t.Parallel()
	const question = "At which college was my course?"
	turns := conversation(turn("a", "", "I began evening classes at Fenwick College."), turn("b", "", "Nothing of note."))
	fact := predicated(known("f", asker, "The user attends evening classes.", "1"), "attends", "evening classes")
	if got := ids(search(t, turns.store(question+" classes", fact), everything(question))); got[0] != "1" {
		t.Errorf("found %v, want the message first", got)
	}
}

// TestPronounGoesOn counts a text about "she" as one about a person whom the question and the
// text before mention.
func TestPronounGoesOn(t *testing.T) {
	t.Parallel()
	const question = "What did the doctor tell me to avoid?"
	for text, want := range map[string]float64{"I saw the doctor.": 0, "I painted the eaves.": 1} {
		turns := conversation(turn("a", "", text), turn("a", "", "She told me to avoid liquorice."))
		got := search(t, turns.store(question), everything(question))
		i := slices.Index(ids(got), "2")
		if i < 0 || (got.Hits[i].Features["other"] != 0) != (want != 0) {
			t.Errorf("%q: %v", text, got.Hits)
		}
	}
}
