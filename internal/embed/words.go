package embed

// Words compares single words by meaning. It is safe for concurrent use.
type Words interface {
	// Word returns the number of a folded word, from 0; ok is false for one that it
	// does not know.
	Word(folded string) (number int, ok bool)
	// Likeness is the cosine similarity of two words by their numbers, or 0 where it
	// is below least.
	Likeness(a, b int, least float64) float64
	// Weight is the length of the vector that a word, by its number, adds to that of a
	// text: some 0.3 for words that occur in most texts, 0.8 for rare ones.
	Weight(word int) float64
}

// WordsOf returns what compares the words of the texts that e embeds, nil where nothing
// does. It looks through a wrapper that has Unwrap, and through [Fallback].
func WordsOf(e Embedder) Words {
	for {
		switch own := e.(type) {
		case Words:
			return own
		case fallback:
			e = own.main
		case interface{ Unwrap() Embedder }:
			e = own.Unwrap()
		default:
			return nil
		}
	}
}
