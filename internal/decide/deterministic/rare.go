package deterministic

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"palimpsest/internal/lex"
)

// rareWords are so many of a text's words that every text alike by at least
// that Jaccard has one of them: it may lack only few. Taken are those that look
// rarest, so that most questions end with them. Empty where too few of the
// words are searched by.
//
// Of n words such a text shares at least least·n, because the union has no
// fewer than n (the prefix filter of Chaudhuri, Ganti and Kaushik 2006).
func rareWords(words lex.Set, least float64) string {
	shared := int(math.Ceil(least*float64(len(words)) - 1e-9))
	n := len(words) - shared + 1
	found := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return len(lex.Terms(w)) == 0 })
	if len(found) < n {
		return ""
	}
	slices.SortStableFunc(found, func(a, b string) int {
		return cmp.Or(cmp.Compare(digits(b), digits(a)), cmp.Compare(len(b), len(a)))
	})
	return strings.Join(found[:n], " ")
}

// digits is 1 for a word that holds a number.
func digits(word string) int {
	if strings.ContainsFunc(word, unicode.IsDigit) {
		return 1
	}
	return 0
}
