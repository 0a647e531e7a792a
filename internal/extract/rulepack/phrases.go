package rulepack

import (
	"slices"
	"strings"
)

// phrases finds phrases of one or more words by their first word, longest
// first.
type phrases map[string][][]string

func newPhrases(list []string) phrases {
	p := make(phrases, len(list))
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

// at is the number of tokens of the longest phrase at i, or 0.
func (p phrases) at(ts []token, i int) int {
	if i >= len(ts) {
		return 0
	}
	for _, words := range p[ts[i].low] {
		if hasWords(ts[i:], words) {
			return len(words)
		}
	}
	return 0
}

func hasWords(ts []token, words []string) bool {
	if len(words) > len(ts) {
		return false
	}
	for j, w := range words {
		if ts[j].low != w {
			return false
		}
	}
	return true
}

// endOf reports whether tokens end in a phrase of the set, or in a word with a
// suffix of it.
func (p phrases) endOf(ts []token) bool {
	if endsIn(p, ts[len(ts)-1].low) {
		return true
	}
	const longest = 5
	for i := max(0, len(ts)-longest); i < len(ts)-1; i++ {
		if p.at(ts, i) == len(ts)-i {
			return true
		}
	}
	return false
}

// longestSuffix bounds, in bytes, the suffixes of a set: a text may be one word of
// 256 KiB.
const longestSuffix = 64

// endsIn reports whether a word is in the set, or has a suffix that is.
func endsIn(set phrases, word string) bool {
	if len(set[word]) > 0 && len(set[word][len(set[word])-1]) == 1 {
		return true
	}
	return set.suffixOf(word, 0)
}

// suffixed reports whether a word has a suffix of the set: "*ed".
func (p phrases) suffixed(word string) bool {
	const shortest = 3 // of what a suffix is added to
	return p.suffixOf(word, shortest)
}

// suffixOf reports whether a suffix of the set ends the word, and begins at least at from.
func (p phrases) suffixOf(word string, from int) bool {
	for i := max(from, len(word)-longestSuffix); i < len(word); i++ {
		if _, ok := p["*"+word[i:]]; ok {
			return true
		}
	}
	return false
}
