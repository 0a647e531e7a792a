package deterministic

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"palimpsest/internal/lex"
	"palimpsest/pkg/events"
)

// vocabulary is what texts that are much alike are made of.
var vocabulary = []string{
	"The", "user", "likes", "Will", "will", "Oslo", "Oslo's", "oslo", "node-41", "41", "10,000", "10000", "two", "2", "21",
	"17th", "3.14", "don't", "jazz", "board", "games", "Malmö", "北京", "a", "of", "Monday", "not", "e-mail",
}

// TestRareWordsMissNothing: whatever two texts are taken for the same, the
// second is found by the rare words of the first.
func TestRareWordsMissNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom(vocabulary), 1, 12).Draw(t, "words")
		other := slices.Clone(words)
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			other[rapid.IntRange(0, len(other)-1).Draw(t, "at")] = rapid.SampledFrom(vocabulary).Draw(t, "word")
		}
		text, known := strings.Join(words, " "), strings.Join(other, " ")
		object := strings.Join(words[rapid.IntRange(0, len(words)-1).Draw(t, "object"):], " ")
		d := &decision{c: events.Candidate{Text: text, Object: object}, words: lex.NewSet(text), marks: lex.MarksOf(text)}
		rare := d.rare(alike)
		if rare == "" || lex.Jaccard(d.words, lex.NewSet(known)) < alike || differs(d.marks, known) {
			return
		}
		held := lex.Terms(known)
		if !slices.ContainsFunc(lex.Terms(rare), func(term string) bool { return slices.Contains(held, term) }) {
			t.Fatalf("%q is not found by %q, the rare words of %q", known, rare, text)
		}
	})
}
