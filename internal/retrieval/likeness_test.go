package retrieval

import (
	"math"
	"slices"
	"testing"
	"time"

	"palimpsest/internal/lex"
	"palimpsest/internal/store"
)

// kinds is a table in which words of one kind are alike.
type kinds map[string]int

func (k kinds) Word(folded string) (int, bool) { n, ok := k[folded]; return n, ok }

func (k kinds) Likeness(a, b int, least float64) float64 {
	switch {
	case a == b:
		return 1
	case a/10 == b/10:
		return 0.65
	}
	return 0
}

// Weight is that of a common word for the first of a kind.
func (k kinds) Weight(word int) float64 { return []float64{0.35, 0.9}[min(1, word%10)] }

// TestCommonWords: a common word says less than another that as few texts hold, where few
// texts are searched.
func TestCommonWords(t *testing.T) {
	t.Parallel()
	table := contentOf(kinds{"new": 10, "lathe": 21})
	counts := store.TextCounts{Documents: 10, Holding: map[string]uint64{"new": 1, "lath": 1}}
	score := func(few float64, text string) float64 {
		asked := ask("Which new lathe?", counts, nil, nil)
		asked.compareBy(table, questionWords("Which new lathe?"), few)
		return asked.match(termsOf(text), 8).bm25
	}
	for few, want := range map[float64]float64{0: 1, 0.5: 0.71, 1: 0.5} {
		if got := score(few, "A new year.") / score(few, "A lathe shop."); math.Abs(got-want) > 0.01 {
			t.Errorf("few %v: a common word counts %.2f of another, want %.2f", few, got, want)
		}
	}
}

func TestLikeness(t *testing.T) {
	t.Parallel()
	table := contentOf(kinds{"instrument": 10, "violin": 11, "the": 12, "cellar": 20})
	counts := store.TextCounts{Documents: 10, Holding: map[string]uint64{"playing": 1, "play": 1}}
	asked := ask("Which instrument does Lucy play?", counts, nil, nil)
	asked.compareBy(table, questionWords("Which instrument does Lucy play?"), 0)
	of := func(text string) float64 {
		return asked.like(asked.match(termsOf(text), 8), asked.meanings.compare(wordsOf(table, text)))
	}
	none, like, exact := of("The cellar is damp."), of("A violin is in the cellar."), of("The instrument is in the cellar.")
	if none != 0 || like <= none || exact <= like {
		t.Errorf("unlike %v, alike %v, the same %v", none, like, exact)
	}
	if all := of("Lucy plays an instrument"); all < 0.99 || all > 1 {
		t.Errorf("all words: %v", all)
	}
	if got := wordsOf(table, "A violin, the violin and a Violin"); !slices.Equal(got, []int32{11}) {
		t.Errorf("words %v", got)
	}
	if got := wordsOf(nil, "A violin"); got != nil {
		t.Errorf("words without a table: %v", got)
	}
	asked.compareBy(nil, nil, 0)
	if got := asked.meanings.compare([]int32{11}); got != nil {
		t.Errorf("likenesses without a table: %v", got)
	}
}

func TestTense(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]tense{
		"Where do I work now?":              asksNow,
		"What is my current address?":       asksNow,
		"Где я сейчас работаю?":             asksNow,
		"Who teaches me these days?":        asksNow,
		"What do I read at the moment?":     asksNow,
		"Where did I live before?":          asksBefore,
		"What did my old flat cost?":        asksBefore,
		"What car did I use to drive?":      anyTense,
		"What car used to be mine?":         asksBefore,
		"How old is my daughter?":           anyTense,
		"Where do I keep the old letters?":  anyTense,
		"Кем я работал раньше?":             asksBefore,
		"What does my sister do at school?": anyTense,
	} {
		if got := tenseOf(lex.Words(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"We met Ines at the station.":       true,
		"It rained. Then it stopped.":       false,
		"Yesterday I'm sure I saw nothing.": false,
		"":                                  false,
	} {
		if got := holdsName(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]bool{
		"Who cleans the house?": true, "Where is it?": true, "What is it called?": true, "What do I eat?": false,
	} {
		if got := asksName(questionWords(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestLateness(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := span{first, first.AddDate(0, 0, 10)}
	for days, want := range map[int]float64{0: -1, 5: 0, 10: 1} {
		if got := s.lateness(first.AddDate(0, 0, days)); got != want {
			t.Errorf("after %d days: %v, want %v", days, got, want)
		}
	}
	if got := (span{first, first}).lateness(first); got != 0 {
		t.Errorf("of one time: %v", got)
	}
}
