package grammar

import (
	"slices"
	"strings"
)

func toSet(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, w := range list {
		set[w] = true
	}
	return set
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// Phrases finds phrases of one or more words by their first word, longest
// first.
type Phrases map[string][][]string

// NewPhrases makes the set of phrases of words between spaces.
func NewPhrases(list []string) Phrases {
	p := make(Phrases, len(list))
	for _, s := range list {
		words := strings.Fields(s)
		if len(words) > 0 {
			p[words[0]] = append(p[words[0]], words)
		}
	}
	for _, alternatives := range p {
		slices.SortStableFunc(alternatives, func(a, b []string) int { return len(b) - len(a) })
	}
	return p
}

// At is the number of tokens of the longest phrase at i, or 0.
func (p Phrases) At(ts []Token, i int) int {
	if i >= len(ts) {
		return 0
	}
	for _, words := range p[ts[i].Low] {
		if HasWords(ts[i:], words) {
			return len(words)
		}
	}
	return 0
}

// HasWords reports whether tokens begin with words.
func HasWords(ts []Token, words []string) bool {
	if len(words) > len(ts) {
		return false
	}
	for j, w := range words {
		if ts[j].Low != w {
			return false
		}
	}
	return true
}

// EndOf reports whether tokens end in a phrase of the set, or in a word with a
// suffix of it.
func (p Phrases) EndOf(ts []Token) bool {
	if endsIn(p, ts[len(ts)-1].Low) {
		return true
	}
	const longest = 5
	for i := max(0, len(ts)-longest); i < len(ts)-1; i++ {
		if p.At(ts, i) == len(ts)-i {
			return true
		}
	}
	return false
}

// longestSuffix bounds, in bytes, the suffixes of a set: a text may be one word of
// 256 KiB.
const longestSuffix = 64

// endsIn reports whether a word is in the set, or has a suffix that is.
func endsIn(set Phrases, word string) bool {
	if len(set[word]) > 0 && len(set[word][len(set[word])-1]) == 1 {
		return true
	}
	return set.suffixOf(word, 0)
}

// Suffixed reports whether a word has a suffix of the set: "*ed".
func (p Phrases) Suffixed(word string) bool {
	const shortest = 3 // of what a suffix is added to
	return p.suffixOf(word, shortest)
}

// suffixOf reports whether a suffix of the set ends the word, and begins at least at from.
func (p Phrases) suffixOf(word string, from int) bool {
	for i := max(from, len(word)-longestSuffix); i < len(word); i++ {
		if _, ok := p["*"+word[i:]]; ok {
			return true
		}
	}
	return false
}
