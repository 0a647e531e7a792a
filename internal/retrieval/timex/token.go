package timex

import (
	"strings"

	"palimpsest/internal/lex"
)

// token is one word of the question.
type token struct {
	lex.Token
	gap     string // the text between it and the next word, without spaces
	capital bool   // it begins with an upper-case letter
}

// tokenize reads at most maxWords words: a question has its time within those, and
// a longer text is a document.
func tokenize(text string) []token {
	words := lex.Tokens(text)
	words = words[:min(len(words), maxWords)]
	tokens := make([]token, 0, len(words))
	for i, w := range words {
		next := len(text)
		if i+1 < len(words) {
			next = words[i+1].Start
		}
		w.Word = strings.TrimSuffix(w.Word, "'s")
		first := text[w.Start:w.End]
		tokens = append(tokens, token{
			Token: w, gap: strings.TrimSpace(text[w.End:next]),
			capital: first != strings.ToLower(first),
		})
	}
	return tokens
}

const maxWords = 400

// set is a list of words.
type set map[string]bool

func words(list string) set {
	s := set{}
	for word := range strings.FieldsSeq(list) {
		s[word] = true
	}
	return s
}

// word is the folded word at i, empty beyond either end.
func (r *reader) word(i int) string {
	if i < 0 || i >= len(r.tokens) {
		return ""
	}
	return r.tokens[i].Word
}

func (r *reader) gap(i int) string {
	if i < 0 || i >= len(r.tokens) {
		return ""
	}
	return r.tokens[i].gap
}

// phrase returns the number of words of the first of the phrases that stands at i,
// 0 if none does. Longer phrases must come first.
func (r *reader) phrase(i int, phrases ...string) int {
	for _, p := range phrases {
		if n := r.matches(i, p); n > 0 {
			return n
		}
	}
	return 0
}

func (r *reader) matches(i int, phrase string) (n int) {
	for {
		w := r.word(i + n)
		rest, ok := strings.CutPrefix(phrase, w)
		if !ok || w == "" || rest != "" && rest[0] != ' ' {
			return 0
		}
		n++
		if rest == "" {
			return n
		}
		phrase = rest[1:]
	}
}
