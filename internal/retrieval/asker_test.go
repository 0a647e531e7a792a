package retrieval

import (
	"slices"
	"testing"

	"palimpsest/internal/lex"
	"palimpsest/internal/store"
)

func TestAsksOfAsker(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Where do I live?":            true,
		"What is my job?":             true,
		"Where do my parents live?":   false,
		"Where does Piotr live?":      false,
		"Какая у меня машина?":        true,
		"Как зовут мою дочь?":         false,
		"What is my brother's email?": false,
	} {
		if got := asksOfAsker(questionWords(text), lex.Terms(text), false, false); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestAboutRelation(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"My colleague Hannah drives a bus.":   true,
		"Our old neighbour moved.":            true,
		"Моя сестра живёт в Томске.":          true,
		"I drive a bus.":                      false,
		"I went to Rome with my wife.":        false,
		"My bus is late, my brother told me.": false,
		"":                                    false,
	} {
		if got := aboutRelation(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestAsksNumber(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"When do we leave?": true, "How old is Ada?": true, "Сколько стоит билет?": true, "How do I get home?": false, "What is how?": false,
	} {
		if got := asksNumber(questionWords(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestSynonymsFind checks that facts with a synonym of a word in the question are
// found, after facts with the word itself.
func TestSynonymsFind(t *testing.T) {
	t.Parallel()
	const question = "Which vehicle does Tobias have?"
	turns := conversation(turn("a", "Ines", "A grey car."), turn("b", "Ines", "A grey vehicle."), turn("c", "Ines", "A grey stone."))
	got := search(t, turns.store(withSynonyms(question)), Query{Text: question, Limit: 9, Episodes: true})
	if got := ids(got)[:2]; !slices.Equal(got, []string{"2", "1"}) {
		t.Errorf("found %v", got)
	}
	if got.Hits[1].Features["own_coverage"] >= got.Hits[0].Features["own_coverage"] {
		t.Errorf("a synonym counts as the word: %v", got.Hits)
	}
}

// TestFactsOfOthersNearby checks that a fact about a relative or friend comes after
// one about the asker.
func TestFactsOfOthersNearby(t *testing.T) {
	t.Parallel()
	facts := []store.Fact{known("cousin", "user", "The user has a cousin named Ada."), known("mine", "user", "The user wants to be named Bo.")}
	for question, want := range map[string]string{"What is my name?": "mine", "What is my cousin's name?": "cousin"} {
		if got := ids(search(t, said{}.store(withSynonyms(question), facts...), everything(question))); got[0] != want {
			t.Errorf("%q: found %v", question, got)
		}
	}
}
