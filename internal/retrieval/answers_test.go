package retrieval

import (
	"context"
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
