package rulepack

import (
	"strings"
	"unicode"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// reading returns the languages that read a text: of those of its script that have
// markers the one with most of them in the text, else in the user's turn before;
// of equals the first. Languages without markers read every text of their script.
func (x *Extractor) reading(content string, before []memory.Episode) []*language {
	var out, marked []*language
	reads := make(map[*unicode.RangeTable]bool, 2)
	for _, l := range x.languages {
		ok, known := reads[l.script]
		if !known {
			ok = l.reads(content)
			reads[l.script] = ok
		}
		switch {
		case !ok:
		case len(l.lx.Markers) == 0:
			out = append(out, l)
		default:
			marked = append(marked, l)
		}
	}
	if len(marked) < 2 {
		return append(out, marked...)
	}
	best, found := mostMarked(content, marked)
	for i := len(before) - 1; i >= 0 && found == 0; i-- {
		if before[i].Role == events.RoleUser && before[i].Mode != events.ModeIncognito {
			best, found = mostMarked(before[i].Content, marked)
		}
	}
	return append(out, best)
}

// mostMarked returns the language with the most markers in a text, and how many.
func mostMarked(text string, marked []*language) (best *language, most int) {
	counts := make([]int, len(marked))
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' }) {
		word = strings.ToLower(word)
		if i := strings.IndexAny(word, "'’"); i > 0 {
			word = word[:i] + "'"
		}
		for i, l := range marked {
			if l.lx.Markers[word] {
				counts[i]++
			}
		}
	}
	best = marked[0]
	for i, n := range counts {
		if n > most {
			best, most = marked[i], n
		}
	}
	return best, most
}

// Of the words of a text in a language that a pack reads, this share at least is
// frequent there or is in a pattern. Texts with fewer words than fewWords may be in
// any language.
const (
	markedShare = 0.3
	fewWords    = 12
)

// Reads reports whether a pack reads the language of texts of one user. It is true
// where that cannot be known: of a few words, and of a script whose pack knows no
// frequent words.
func (x *Extractor) Reads(texts []string) bool {
	var words []string
	for _, text := range texts {
		words = append(words, strings.FieldsFunc(strings.ToLower(blank(text)), func(r rune) bool {
			return !unicode.IsLetter(r) && r != '\'' && r != '’'
		})...)
	}
	letters := 0
	for _, w := range words {
		letters += len([]rune(w))
	}
	const wordLength = 4 // where words are not written apart, letters tell how much was said
	if max(len(words), letters/wordLength) < fewWords {
		return true
	}
	whole := strings.Join(words, " ")
	for _, l := range x.languages {
		if l.reads(whole) && (len(l.lx.Markers) == 0 || l.share(words) >= markedShare) {
			return true
		}
	}
	return false
}

// share is how many of the words are markers, 0 to 1.
func (l *language) share(words []string) float64 {
	n := 0
	for _, w := range words {
		if i := strings.IndexAny(w, "'’"); i > 0 {
			w = w[:i] + "'"
		}
		if l.lx.Markers[w] {
			n++
		}
	}
	return float64(n) / float64(max(len(words), 1))
}
