package bench

import (
	"math/rand/v2"
	"strings"
)

// vocabulary is how many different words the texts have.
const vocabulary = 20_000

// word is the one of a rank, from 0: pronounceable, different for each rank
// below 512,000, and the same in every run.
func word(rank int) string {
	const consonants, vowels = "bdfghjklmnprstvz", "aeiou"
	const syllables = len(consonants) * len(vowels)
	// Neighbouring ranks look nothing alike: the factor is prime to the number
	// of words there can be.
	n := rank * 7919 % (syllables * syllables * syllables)
	var b strings.Builder
	for range 3 {
		s := n % syllables
		b.WriteByte(consonants[s/len(vowels)])
		b.WriteByte(vowels[s%len(vowels)])
		n /= syllables
	}
	b.WriteByte('n') // no ending that stemming would take off
	return b.String()
}

// names is how many different names there are.
const names = 10_000

// name is a capitalised word of those that are no other word of the texts.
func name(i int) string {
	w := word(2*vocabulary + i%names)
	return strings.ToUpper(w[:1]) + w[1:]
}

// speech draws words as a language does: few of them often.
type speech struct {
	*rand.Rand
	zipf *rand.Zipf
}

func newSpeech(seed uint64) speech {
	r := rand.New(rand.NewPCG(seed, seed))
	return speech{r, rand.NewZipf(r, 1.1, 5, vocabulary-1)}
}

func (s speech) words(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = word(int(s.zipf.Uint64()))
	}
	return strings.Join(words, " ")
}

// verbs relate people to things; none is a stop word.
var verbs = []string{"likes", "dislikes", "owns", "builds", "studies", "sells", "paints", "collects", "teaches", "repairs"}
