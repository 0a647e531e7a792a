package lex

import (
	"slices"
	"strings"
)

// idiom is words that mean something else together.
type idiom struct {
	words []string
	plain string
}

// Plain replaces the idioms of a question by plain words, for example "for a living"
// by words for a job. The rest of the text stays as it is.
func Plain(text string) string {
	var out strings.Builder
	tokens, copied := Tokens(text), 0
	for i := 0; i < len(tokens); i++ {
		for _, one := range everyday().idioms[tokens[i].Word] {
			end := i + len(one.words)
			if end > len(tokens) || !slices.EqualFunc(tokens[i:end], one.words, func(t Token, w string) bool { return t.Word == w }) {
				continue
			}
			out.WriteString(text[copied:tokens[i].Start])
			out.WriteString(one.plain)
			copied, i = tokens[end-1].End, end-1
			break
		}
	}
	if copied == 0 {
		return text
	}
	return out.String() + text[copied:]
}
