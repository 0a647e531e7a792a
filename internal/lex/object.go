package lex

import "strings"

// Object is the object of a fact as it is compared: folded, without article and
// closing punctuation. "C", "C++" and "C#" stay three.
func Object(object string) string {
	s := strings.Join(strings.Fields(Fold(object)), " ")
	s = strings.Trim(s, ` .,;:!?"'`)
	for _, article := range []string{"a ", "an ", "the "} {
		if rest, ok := strings.CutPrefix(s, article); ok && rest != "" {
			return rest
		}
	}
	return s
}
