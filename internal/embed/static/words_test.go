package static

import (
	"math"
	"testing"

	"palimpsest/internal/embed"
)

// TestWords compares words as the embedder compares texts of one word.
func TestWords(t *testing.T) {
	t.Parallel()
	e, err := New()
	if err != nil {
		t.Fatal(err)
	}
	number := func(word string) int {
		n, ok := e.Word(word)
		if !ok {
			t.Fatalf("%q is unknown", word)
		}
		return n
	}
	for _, pair := range [][2]string{{"pet", "dog"}, {"instrument", "violin"}, {"illness", "flu"}, {"job", "work"}} {
		texts, err := e.Embed(t.Context(), pair[:])
		if err != nil {
			t.Fatal(err)
		}
		want := 0.0
		for i, x := range texts[0] {
			want += float64(x) * float64(texts[1][i])
		}
		a, b := number(pair[0]), number(pair[1])
		got := e.Likeness(a, b, 0.3)
		if math.Abs(got-want) > 0.02 || got != e.Likeness(b, a, 0.3) {
			t.Errorf("%v: likeness %.3f, want %.3f", pair, got, want)
		}
	}
	if got := e.Likeness(number("dog"), number("dog"), 0.3); math.Abs(got-1) > 1e-6 {
		t.Errorf("a word is like itself by %v", got)
	}
	if got := e.Likeness(number("violin"), number("weather"), 0.3); got != 0 {
		t.Errorf("words of other meanings: %v", got)
	}
	if common, rare := e.Weight(number("new")), e.Weight(number("thyroid")); common > 0.3 || rare < 0.8 || rare > 1 {
		t.Errorf("a common word weighs %.2f, a rare one %.2f", common, rare)
	}
	for _, word := range []string{"", "qqzzyx", "two words", "собака"} {
		if _, ok := e.Word(word); ok {
			t.Errorf("%q is a word of the table", word)
		}
	}
	if embed.WordsOf(embed.Fallback(e, e, Covers)) == nil {
		t.Error("the words of a fallback are unknown")
	}
}
