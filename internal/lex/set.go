package lex

import "slices"

// Set is the distinct words of a text, sorted.
type Set []string

// NewSet returns the token set of a text.
func NewSet(text string) Set {
	words := Words(text)
	for i, w := range words {
		words[i] = withoutPossessive(w)
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// Has reports whether the set holds a folded word.
func (s Set) Has(w string) bool {
	_, found := slices.BinarySearch(s, w)
	return found
}

// Contains reports whether every word of t is in s.
func (s Set) Contains(t Set) bool { return common(s, t) == len(t) }

// Jaccard is |a ∩ b| / |a ∪ b|, from 0 to 1 (Jaccard 1901). Empty sets resemble
// nothing, not even each other.
func Jaccard(a, b Set) float64 {
	both := common(a, b)
	if both == 0 {
		return 0
	}
	return float64(both) / float64(len(a)+len(b)-both)
}

func common(a, b Set) int {
	n := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			n++
			i++
			j++
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	return n
}

func withoutPossessive(w string) string {
	if n := len(w); n > 2 && w[n-2] == '\'' && w[n-1] == 's' {
		return w[:n-2]
	}
	return w
}
