package deterministic

import (
	"slices"

	"palimpsest/internal/lex"
)

// differs reports whether a text has other numbers, dates or names, or denies
// what the other affirms.
func differs(m lex.Marks, text string) bool { return m.Differ(lex.MarksOf(text)) }

// differInDetail leaves names aside: of two texts with one triple, only a
// number, a date or a negation can tell two facts apart.
func differInDetail(m lex.Marks, text string) bool {
	o := lex.MarksOf(text)
	return m.Negated != o.Negated || !slices.Equal(m.Numbers, o.Numbers) || !slices.Equal(m.Dates, o.Dates)
}
