package lex

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Marks are what two texts may differ in although almost all their words are
// the same, and mean different things.
type Marks struct {
	Numbers []string // digits without grouping; numerals in words as digits
	Dates   []string // names of months and weekdays, in English
	Names   []string // capitalised words, folded
	Negated bool     // the text denies something, or says that it ended
}

// MarksOf reads the marks of a text, each list sorted and without repetitions.
// Names need the text's original case. A capitalised word that begins a
// sentence counts unless it is a stop word.
func MarksOf(text string) Marks {
	var m Marks
	text = compose(text)
	end := 0
	first := true
	for w := range split(text) {
		first = first || startsSentence(text[end:w.start])
		m.read(w, first)
		first, end = false, w.end
	}
	for _, list := range []*[]string{&m.Numbers, &m.Dates, &m.Names} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return m
}

// Differ reports whether any kind of mark differs.
func (m Marks) Differ(o Marks) bool {
	return m.Negated != o.Negated || !slices.Equal(m.Numbers, o.Numbers) ||
		!slices.Equal(m.Dates, o.Dates) || !slices.Equal(m.Names, o.Names)
}

func (m *Marks) read(w word, first bool) {
	folded := withoutPossessive(Fold(w.text))
	capital := startsUpper(w.text)
	if isNegation(folded) {
		m.Negated = true
	}
	if digits, ok := numeral(folded, w); ok {
		m.Numbers = append(m.Numbers, digits)
		return
	}
	if date, ok := dateName(folded, capital); ok {
		m.Dates = append(m.Dates, date)
		return
	}
	if capital && !isFunctionWord(folded) && (!first || !isNegation(folded)) {
		m.Names = append(m.Names, folded)
	}
}

func startsSentence(gap string) bool { return strings.ContainsAny(gap, ".!?…\n。！？") }

func startsUpper(w string) bool {
	r, _ := utf8.DecodeRuneInString(w)
	return unicode.IsUpper(r) || unicode.IsTitle(r)
}

// numeral returns the digits of a number, or of a numeral above one in words
// ("one" is a pronoun as often as a number).
func numeral(folded string, w word) (string, bool) {
	if w.script == number || strings.ContainsFunc(folded, unicode.IsDigit) {
		return strings.ReplaceAll(folded, ",", ""), true
	}
	digits, ok := numerals(folded)
	return digits, ok
}

func isFunctionWord(w string) bool {
	if w == "user" || w == "пользователь" || w == "пользователя" {
		return true
	}
	return isStopWord(w) || stem(w, scriptOf(w)) == ""
}

func isMark(r rune) bool { return unicode.Is(unicode.M, r) }
