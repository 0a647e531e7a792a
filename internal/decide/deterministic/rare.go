package deterministic

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"palimpsest/internal/lex"
)

// rare are words of which a fact that says the same as the candidate has one:
// a number or a name, in which the two may not differ, or so many of the words
// that it cannot lack all of them. Empty where there are none to search by.
func (d *decision) rare(least float64) string {
	object := lex.NewSet(d.c.Object)
	best := ""
	for _, w := range slices.Concat(d.marks.Names, slices.DeleteFunc(slices.Clone(d.marks.Numbers), spelled)) {
		if len(lex.Terms(w)) > 0 && (best == "" || rarer(object, w, best) < 0) {
			best = w
		}
	}
	if best != "" {
		return best
	}
	return rareWords(d.words, object, least)
}

// spelled reports whether a number may stand in another text as one word.
func spelled(number string) bool {
	n, err := strconv.Atoi(number)
	return err == nil && (n <= 20 || strings.Trim(number[1:], "0") == "")
}

// rareWords are so many of a text's words that every text alike by at least
// that Jaccard has one of them: it may lack only few. Taken are those that look
// rarest, so that most questions end with them. Empty where too few of the
// words are searched by.
//
// Of n words such a text shares at least least·n, because the union has no
// fewer than n (the prefix filter of Chaudhuri, Ganti and Kaushik 2006).
func rareWords(words, object lex.Set, least float64) string {
	shared := int(math.Ceil(least*float64(len(words)) - 1e-9))
	n := len(words) - shared + 1
	found := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return len(lex.Terms(w)) == 0 })
	if len(found) < n {
		return ""
	}
	slices.SortStableFunc(found, func(a, b string) int { return rarer(object, a, b) })
	return strings.Join(found[:n], " ")
}

// rarer orders words by how rare they look in a memory whose facts say much the
// same of many objects: numbers, then words of the object, then the longest.
func rarer(object lex.Set, a, b string) int {
	rank := func(w string) int {
		switch {
		case strings.ContainsFunc(w, unicode.IsDigit):
			return 0
		case object.Has(w):
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(len(b), len(a)))
}
