package rulepack

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// token is one word or mark. Tokens that an engine step supplied (the missing
// subject of "and want to…") have no place in the text: start == end.
type token struct {
	low        string // folded; contractions are written out
	text       string // as typed
	start, end int    // bytes of the source
	word       bool   // letters or digits rather than a mark
	quoted     bool   // between quotation marks
	// class holds the classes of low if classed is set.
	class   class
	classed bool
}

func (t token) virtual() bool { return t.start == t.end }

// capital reports whether the token is written like a name.
func (t token) capital() bool {
	r, _ := utf8.DecodeRuneInString(t.text)
	return unicode.IsUpper(r)
}

// rename makes another word of a token.
func (t *token) rename(low string) { t.low, t.classed = low, false }

func virtual(words ...string) []token {
	out := make([]token, len(words))
	for i, w := range words {
		out[i] = token{low: w, text: w, word: true}
	}
	return out
}

// tokenize cuts text at the word boundaries of UAX #29 (which leaves each
// ideograph a word of its own), glues what they cut within one written word
// (addresses, "C++", "well-known"), writes contractions out, and keeps line
// breaks as tokens.
func (lx *lexicon) tokenize(text string) []token {
	out := make([]token, 0, len(text)/5+4)
	state := -1
	at := 0
	for rest := text; rest != ""; {
		n := 0
		if at == 0 || isSpace(text[at-1]) {
			n = addressLen(rest)
		}
		if n > 0 {
			out = append(out, token{low: strings.ToLower(rest[:n]), text: rest[:n], start: at, end: at + n, word: true})
			rest, at, state = rest[n:], at+n, -1
			continue
		}
		var w string
		w, rest, state = uniseg.FirstWordInString(rest, state)
		start := at
		at += len(w)
		r, _ := utf8.DecodeRuneInString(w)
		switch {
		case strings.Contains(w, "\n"):
			out = append(out, token{low: "\n", text: "\n", start: start, end: at})
		case unicode.IsSpace(r) || unicode.IsControl(r):
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			out = lx.appendWord(out, w, start)
		default:
			out = append(out, token{low: w, text: w, start: start, end: at})
		}
	}
	out = lx.phrased(lx.glue(text, out))
	for i := range out {
		out[i].class, out[i].classed = lx.words[out[i].low], true
	}
	return out
}

// phrased writes phrases as the ones that patterns know.
func (lx *lexicon) phrased(ts []token) []token {
	out := make([]token, 0, len(ts))
	for i := 0; i < len(ts); i++ {
		t := ts[i]
		if n := lx.rephrased.at(ts, i); n > 0 {
			words := make([]string, n)
			for j := range n {
				words[j] = ts[i+j].low
			}
			t.end = ts[i+n-1].end
			i += n - 1
			for word := range strings.FieldsSeq(lx.rephrase[strings.Join(words, " ")]) {
				t.low, t.text = word, word
				out = append(out, t)
			}
			continue
		}
		out = append(out, t)
	}
	return out
}

// appendWord writes "I'm" as "i am" and "Anna's" as "anna 's"; all parts stand
// at the same place.
func (lx *lexicon) appendWord(out []token, w string, start int) []token {
	low := strings.ToLower(strings.ReplaceAll(w, "’", "'"))
	if parts, ok := lx.contractions[low]; ok {
		for _, p := range parts {
			out = append(out, token{low: p, text: w, start: start, end: start + len(w), word: true})
		}
		return out
	}
	if i := strings.IndexByte(low, '\''); i > 0 && len(low) > i+1 && lx.prefixes[low[:i+1]] != "" {
		cut := strings.IndexAny(w, "'’")
		cut += len(w[cut:]) - len(strings.TrimLeft(w[cut:], "'’"))
		out = append(out, token{low: lx.prefixes[low[:i+1]], text: w[:cut], start: start, end: start + cut, word: true})
		return lx.appendWord(out, w[cut:], start+cut)
	}
	if stem, ok := strings.CutSuffix(low, "'s"); ok && stem != "" {
		cut := strings.LastIndexAny(w, "'’")
		return append(out,
			token{low: stem, text: w[:cut], start: start, end: start + cut, word: true},
			token{low: "'s", text: w[cut:], start: start + cut, end: start + len(w), word: true})
	}
	if lx.rewrite[low] != "" {
		low = lx.rewrite[low]
	}
	return append(out, token{low: low, text: w, start: start, end: start + len(w), word: true})
}

// glue joins adjacent tokens of one written word: "well-known", "C++", "5:30",
// "@handle", "Dr.".
func (lx *lexicon) glue(text string, in []token) []token {
	out := in[:0]
	for i := 0; i < len(in); i++ {
		t, joined := in[i], false
		for {
			n := lx.glued(in, t, i)
			if n == 0 {
				break
			}
			i += n
			t.end, t.word = in[i].end, true
			t.text = text[t.start:t.end]
			joined = true
		}
		if joined {
			t.low = strings.TrimSuffix(strings.ToLower(t.text), ".")
		}
		out = append(out, t)
	}
	return out
}

// glued is how many tokens behind in[i], which t ends with, belong to t.
func (lx *lexicon) glued(in []token, t token, i int) int {
	if i+1 >= len(in) || t.end != in[i+1].start {
		return 0
	}
	next := in[i+1]
	more := i+2 < len(in) && in[i+2].word && in[i+2].start == next.end
	switch {
	case !t.word:
		if (t.text == "@" || t.text == "+" && digit(next.text)) && next.word {
			return 1
		}
	case (next.text == "-" || next.text == "/" || next.text == "&") && more,
		next.text == ":" && more && digit(t.text) && digit(in[i+2].text):
		return 2
	case (next.text == "+" || next.text == "#") && len(t.text) <= 3,
		next.text == "." && lx.abbreviated(in, i+1):
		return 1
	}
	return 0
}

func digit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

// addressLen is the length of an e-mail address or URL at the start of s, or 0.
func addressLen(s string) int {
	if c := s[0]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') {
		return 0
	}
	end := strings.IndexFunc(s, unicode.IsSpace)
	if end < 0 {
		end = len(s)
	}
	chunk := strings.TrimRight(s[:end], ".,;:!?)]}>\"'")
	at := strings.IndexByte(chunk, '@')
	if at > 0 && strings.IndexByte(chunk[at:], '.') > 1 || strings.Contains(chunk, "://") {
		return len(chunk)
	}
	return 0
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' }
