package retrieval

import (
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"palimpsest/internal/lex"
	"palimpsest/internal/store"
)

// question is a text as scoring reads it.
type question struct {
	terms []string // distinct, in order, without the names of speakers
	ids   []termID
	// weights are the terms' inverse document frequencies, of which total is the sum
	// over those that any text holds.
	weights []float64
	total   float64
	named   map[string]bool
	when    bool
	month   time.Month // 0 where none is named
	own     bool       // it is about the asker
}

// ask reads a question that is asked of what counts describes and of the speakers.
func ask(text string, counts store.TextCounts, speakers map[string]bool) *question {
	q := &question{named: map[string]bool{}, month: monthIn(text)}
	words := questionWords(text)
	names := map[string]bool{}
	for speaker := range speakers {
		for _, w := range lex.Words(speaker) {
			if slices.Contains(words, w) {
				q.named[speaker] = true
				for _, term := range lex.Terms(w) {
					names[term] = true
				}
			}
		}
	}
	for _, w := range words {
		q.when = q.when || slices.Contains(whenWords, w)
		q.own = q.own || slices.Contains(ownWords, w)
	}
	for _, term := range lex.Terms(text) {
		if names[term] || slices.Contains(q.terms, term) || len(q.terms) == maxQuestionTerms {
			continue
		}
		n := float64(counts.Holding[term])
		weight := math.Log1p((max(0, float64(counts.Documents)-n) + 0.5) / (n + 0.5))
		q.terms, q.ids, q.weights = append(q.terms, term), append(q.ids, idOf(term)), append(q.weights, weight)
		if n > 0 {
			q.total += weight
		}
	}
	if q.total == 0 { // nothing is known of the terms
		for _, weight := range q.weights {
			q.total += weight
		}
	}
	return q
}

// maxQuestionTerms bounds the work of a question that is a whole document.
const maxQuestionTerms = 64

var (
	whenWords = []string{"when", "когда"}
	ownWords  = []string{"i", "my", "me", "mine", "myself", "i'm", "i've", "я", "мой", "моя", "мое", "мои", "моего", "моей", "моих", "меня", "мне", "мной"}
)

// questionWords are folded, without a possessive ending.
func questionWords(text string) []string {
	words := lex.Words(text)
	for i, w := range words {
		words[i] = strings.TrimSuffix(w, "'s")
	}
	return words
}

// withoutNames is the text without the names of speakers; the text itself where
// nothing else is left.
func withoutNames(text string, speakers map[string]bool) string {
	names := map[string]bool{}
	for speaker := range speakers {
		for _, w := range lex.Words(speaker) {
			names[w] = true
		}
	}
	left := slices.DeleteFunc(strings.Fields(text), func(field string) bool {
		words := questionWords(field)
		return len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !names[w] })
	})
	if len(left) == 0 {
		return text
	}
	return strings.Join(left, " ")
}

// monthIn is the first month that a text names in English, with a capital letter:
// may and march are words as well.
func monthIn(text string) time.Month {
	for field := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		for m := time.January; m <= time.December; m++ {
			if field == m.String() {
				return m
			}
		}
	}
	return 0
}
