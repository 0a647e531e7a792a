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
