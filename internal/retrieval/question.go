package retrieval

import (
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"palimpsest/internal/lex"
	"palimpsest/internal/retrieval/attribute"
	"palimpsest/internal/store"
)

// question is a text as scoring reads it.
type question struct {
	terms []string // distinct, in order, without the names of speakers
	forms []form   // forms of the terms, those of one term together
	// weights are the terms' inverse document frequencies, of which total is the sum
	// over those that any text holds.
	weights []float64
	total   float64
	held    uint64 // bit i: a text holds term i
	named   map[string]bool
	when    bool       // it asks for a time or a number
	month   time.Month // 0 where none is named
	own     bool       // it is about the asker
	tense   tense
	kinds   valueKinds // that it asks for
	naming  bool       // it asks who, where or for a name
	// attributes are the predicates that it asks for, of those that have one of
	// subjects as a name.
	attributes map[string][]string
	subjects   map[string]bool // words
	known      float64         // total of the sum of weights
	meanings   meanings
}

// ask reads a question that is asked of what counts describes, of the speakers, and
// of an asker with these names.
func ask(text string, counts store.TextCounts, speakers, askers map[string]bool) *question {
	q := &question{named: map[string]bool{}, subjects: map[string]bool{}, month: monthIn(text)}
	words := questionWords(text)
	q.attributes = attribute.Asked(words)
	names := map[string]bool{}
	named := false
	for _, w := range words {
		q.subjects[w] = true
		if askers[w] {
			named = true
			for _, term := range lex.Terms(w) {
				names[term] = true
			}
		}
	}
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
	q.kinds = expected(words)
	q.when, q.naming, q.tense = asksNumber(words), asksName(words), tenseOf(words)
	for _, term := range lex.Terms(text) {
		if !names[term] && !slices.Contains(q.terms, term) && len(q.terms) < maxQuestionTerms {
			q.add(term, counts)
		}
	}
	for i := range len(words) - 1 {
		q.addPhrase(words[i], words[i+1], counts)
	}
	exact := map[termID]bool{}
	for i := range q.terms {
		exact[idOf(q.terms[i])] = true
	}
	q.forms = slices.DeleteFunc(q.forms, func(f form) bool { return exact[f.id] && f.id != idOf(q.terms[f.of]) })
	q.own = asksOfAsker(words, q.terms, named, len(speakers) > 0)
	q.weigh(counts.Documents > 0)
	return q
}

// weigh sums the weights; counted tells that texts were counted.
func (q *question) weigh(counted bool) {
	sum := 0.0
	q.total = 0
	for i, weight := range q.weights {
		if sum += weight; q.held&(1<<i) != 0 {
			q.total += weight
		}
	}
	if q.known = 1; counted {
		q.known = q.total / max(sum, math.SmallestNonzeroFloat32)
	}
	if q.total == 0 { // nothing is known of the terms
		q.total = sum
	}
}

// form is a term of the question, or a synonym of one.
type form struct {
	id    termID
	of    int // index of the term
	share float64
	// weight is the inverse document frequency, no more than that of the term, by
	// share.
	weight float64
}

// add appends a term with its synonyms. One that no text holds weighs as much as the
// most frequent synonym.
func (q *question) add(term string, counts store.TextCounts) {
	of, most := len(q.terms), counts.Holding[term]
	synonyms := lex.Synonyms(term)
	if most == 0 {
		for _, s := range synonyms {
			most = max(most, counts.Holding[s.Term])
		}
	}
	weight := rarityOf(most, counts.Documents)
	if lex.SaysLittle(term) {
		weight *= littleShare
	}
	q.terms, q.weights = append(q.terms, term), append(q.weights, weight)
	q.forms = append(q.forms, form{id: idOf(term), of: of, share: 1, weight: weight})
	for _, s := range synonyms {
		if n := counts.Holding[s.Term]; n > 0 && len(q.forms) < maxForms {
			q.forms = append(q.forms, form{idOf(s.Term), of, s.Weight, s.Weight * min(weight, rarityOf(n, counts.Documents))})
		}
	}
	if most > 0 {
		q.held |= 1 << of
	}
}

// addPhrase appends the synonyms of two words that stand side by side to the term of the
// first of them that is one.
func (q *question) addPhrase(first, second string, counts store.TextCounts) {
	synonyms := lex.Synonyms(first + "_" + second)
	if len(synonyms) == 0 {
		return
	}
	of := slices.IndexFunc(lex.Terms(first+" "+second), func(t string) bool { return slices.Contains(q.terms, t) })
	if of < 0 {
		return
	}
	of = slices.Index(q.terms, lex.Terms(first + " " + second)[of])
	for _, s := range synonyms {
		if n := counts.Holding[s.Term]; n > 0 && len(q.forms) < maxForms {
			q.forms = append(q.forms, form{idOf(s.Term), of, s.Weight, s.Weight * min(q.weights[of], rarityOf(n, counts.Documents))})
			q.held |= 1 << of
		}
	}
}

// littleShare is what a word that says little weighs.
const littleShare = 0.4

// rarityOf is the inverse document frequency of a term that n texts hold.
func rarityOf(n, documents uint64) float64 {
	held := float64(n)
	return math.Log1p((max(0, float64(documents)-held) + 0.5) / (held + 0.5))
}

// maxForms bounds the synonyms of a question.
const maxForms = 2 * maxQuestionTerms

// withSynonyms is a text with the synonyms of its words behind it.
func withSynonyms(text string) string {
	var all strings.Builder
	all.WriteString(text)
	add := func(of string) {
		for _, s := range lex.Synonyms(of) {
			all.WriteByte(' ')
			all.WriteString(s.Word)
		}
	}
	terms := lex.Terms(text)
	for _, term := range terms[:min(len(terms), maxQuestionTerms)] {
		add(term)
	}
	words := questionWords(text)
	for i := range min(len(words), maxQuestionTerms) - 1 {
		add(words[i] + "_" + words[i+1])
	}
	return all.String()
}

// maxQuestionTerms bounds the work of a question that is a whole document.
const maxQuestionTerms = 64

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
