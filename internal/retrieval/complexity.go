package retrieval

import (
	"strings"

	"palimpsest/internal/lex"
)

// Complexity says how much a question asks for.
type Complexity string

// The complexities.
const (
	Simple  Complexity = "simple"
	Complex Complexity = "complex"
)

// complexTerms is the number of content terms above which a question is complex.
const complexTerms = 12

// Limit is how many results a question gets that names no limit.
func (c Complexity) Limit() int {
	if c == Complex {
		return 20
	}
	return 5
}

// Budget is how many tokens a context for the question has that names none.
func (c Complexity) Budget() int {
	if c == Complex {
		return 3000
	}
	return 1000
}

// ComplexityOf judges a question: complex if it asks why or when, has more than
// 12 content terms, or holds two questions.
func ComplexityOf(text string) Complexity {
	if strings.Count(text, "?") > 1 || len(lex.Terms(text)) > complexTerms {
		return Complex
	}
	for _, w := range lex.Words(text) {
		switch w {
		case "why", "when", "почему", "зачем", "когда":
			return Complex
		}
	}
	return Simple
}
