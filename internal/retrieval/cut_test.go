package retrieval

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUnknownScoresLow: a hit scores less if no text holds most of the question.
func TestUnknownScoresLow(t *testing.T) {
	t.Parallel()
	turns := conversation(turn("a", "Ines", "The canoe is green."), turn("b", "Ines", "We planted leeks."))
	best := func(question string) float64 {
		return search(t, turns.store(question), Query{Text: question, Limit: 9, Episodes: true}).Hits[0].Score
	}
	if green, borrowed := best("Is the canoe green?"), best("Is the borrowed canoe registered?"); green <= borrowed {
		t.Errorf("a question that is known scores %v, one that is not %v", green, borrowed)
	}
}

func TestMinScore(t *testing.T) {
	t.Parallel()
	const question = "Is the canoe green?"
	turns := conversation(turn("a", "Ines", "The canoe is green."), turn("b", "Ines", "We planted leeks, all green."))
	asked := Query{Text: question, Limit: 9, Episodes: true}
	all := search(t, turns.store(question), asked)
	if len(all.Hits) != 2 {
		t.Fatalf("found %v", ids(all))
	}
	for _, fusion := range []string{FusionScores, FusionRRF} {
		e := engine(t, turns.store(question), func(c *Config) { c.Fusion = fusion })
		cut := asked
		hits, err := e.Search(t.Context(), cut)
		if err != nil {
			t.Fatal(err)
		}
		cut.MinScore = hits.Hits[0].Score
		hits, err = e.Search(t.Context(), cut)
		if err != nil || !cmp.Equal(ids(hits), []string{"1"}) {
			t.Errorf("%s: found %v, %v", fusion, ids(hits), err)
		}
	}
}

// TestDiversity: with it a repetition comes after something else.
func TestDiversity(t *testing.T) {
	t.Parallel()
	const question = "Which boats did we paint?"
	turns := conversation(
		turn("a", "Ines", "We paint boats, the red canoe."), turn("b", "Ines", "We paint boats, the red canoe."), turn("c", "Ines", "A ferry, boats, all grey now."))
	for diversity, want := range map[float64]int{0: 2, 0.9: 1} {
		e := engine(t, turns.store(question), func(c *Config) { c.Fusion, c.Diversity = FusionScores, diversity })
		got, err := e.Search(t.Context(), Query{Text: question, Limit: 3, Episodes: true})
		if err != nil || slices.Index(ids(got), "3") != want {
			t.Errorf("diversity %v: found %v, %v", diversity, ids(got), err)
		}
	}
}
