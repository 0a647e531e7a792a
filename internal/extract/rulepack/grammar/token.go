package grammar

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Plain is tokens without their places in another text.
func Plain(ts []Token) []Token {
	out := make([]Token, 0, len(ts))
	for _, t := range ts {
		out = append(out, Token{Low: t.Low, Text: t.Text, Word: t.Word})
	}
	return out
}

// Span is a half-open range of tokens.
type Span struct{ From, To int }

// Source is the text from the first to the last of the tokens, as typed.
func Source(ts []Token) string {
	var b strings.Builder
	for i, t := range ts {
		if i > 0 && t.Start == ts[i-1].Start && t.End == ts[i-1].End && !t.Virtual() {
			continue // another part of the same contraction
		}
		if i > 0 && (t.Start > ts[i-1].End || t.Virtual()) && t.Low != "," && t.Low != "'s" {
			b.WriteByte(' ')
		}
		b.WriteString(t.Text)
	}
	return b.String()
}

// Token is one word or mark. Tokens that an engine step supplied (the missing
// subject of "and want to…") have no place in the text: Start == End.
type Token struct {
	Low        string // folded; contractions are written out
	Text       string // as typed
	Start, End int    // bytes of the source
	Word       bool   // letters or digits rather than a mark
	Quoted     bool   // between quotation marks
	// class holds the classes of low if classed is set.
	class   Class
	classed bool
}

// Virtual reports whether the token has no place in the text.
func (t Token) Virtual() bool { return t.Start == t.End }

// Capital reports whether the token is written like a name.
func (t Token) Capital() bool {
	r, _ := utf8.DecodeRuneInString(t.Text)
	return unicode.IsUpper(r)
}

// Rename makes another word of a token.
func (t *Token) Rename(low string) { t.Low, t.classed = low, false }

// Virtual makes tokens without a place in the text.
func Virtual(words ...string) []Token {
	out := make([]Token, len(words))
	for i, w := range words {
		out[i] = Token{Low: w, Text: w, Word: true}
	}
	return out
}

// Tokenize cuts text at the word boundaries of UAX #29 (which leaves each
// ideograph a word of its own), glues what they cut within one written word
// (addresses, "C++", "well-known"), writes contractions out, and keeps line
// breaks as tokens.
func (lx *Grammar) Tokenize(text string) []Token {
	out := make([]Token, 0, len(text)/5+4)
	state := -1
	at := 0
	for rest := text; rest != ""; {
		n := 0
		if at == 0 || isSpace(text[at-1]) {
			n = AddressLen(rest)
		}
		if n > 0 {
			out = append(out, Token{Low: strings.ToLower(rest[:n]), Text: rest[:n], Start: at, End: at + n, Word: true})
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
			out = append(out, Token{Low: "\n", Text: "\n", Start: start, End: at})
		case unicode.IsSpace(r) || unicode.IsControl(r):
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			out = lx.appendWord(out, w, start)
		default:
			out = append(out, Token{Low: w, Text: w, Start: start, End: at})
		}
	}
	out = lx.phrased(lx.glue(text, out))
	for i := range out {
		out[i].class, out[i].classed = lx.Words[out[i].Low], true
	}
	return out
}

// phrased writes phrases as the ones that patterns know.
func (lx *Grammar) phrased(ts []Token) []Token {
	out := make([]Token, 0, len(ts))
	for i := 0; i < len(ts); i++ {
		t := ts[i]
		if n := lx.rephrased.At(ts, i); n > 0 {
			words := make([]string, n)
			for j := range n {
				words[j] = ts[i+j].Low
			}
			t.End = ts[i+n-1].End
			i += n - 1
			for word := range strings.FieldsSeq(lx.rephrase[strings.Join(words, " ")]) {
				t.Low, t.Text = word, word
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
func (lx *Grammar) appendWord(out []Token, w string, start int) []Token {
	low := strings.ToLower(strings.ReplaceAll(w, "’", "'"))
	if parts, ok := lx.contractions[low]; ok {
		for _, p := range parts {
			out = append(out, Token{Low: p, Text: w, Start: start, End: start + len(w), Word: true})
		}
		return out
	}
	if i := strings.IndexByte(low, '\''); i > 0 && len(low) > i+1 && lx.prefixes[low[:i+1]] != "" {
		cut := strings.IndexAny(w, "'’")
		cut += len(w[cut:]) - len(strings.TrimLeft(w[cut:], "'’"))
		out = append(out, Token{Low: lx.prefixes[low[:i+1]], Text: w[:cut], Start: start, End: start + cut, Word: true})
		return lx.appendWord(out, w[cut:], start+cut)
	}
	if stem, ok := strings.CutSuffix(low, "'s"); ok && stem != "" {
		cut := strings.LastIndexAny(w, "'’")
		return append(out,
			Token{Low: stem, Text: w[:cut], Start: start, End: start + cut, Word: true},
			Token{Low: "'s", Text: w[cut:], Start: start + cut, End: start + len(w), Word: true})
	}
	if lx.rewrite[low] != "" {
		low = lx.rewrite[low]
	}
	return append(out, Token{Low: low, Text: w, Start: start, End: start + len(w), Word: true})
}

// glue joins adjacent tokens of one written word: "well-known", "C++", "5:30",
// "@handle", "Dr.".
func (lx *Grammar) glue(text string, in []Token) []Token {
	out := in[:0]
	for i := 0; i < len(in); i++ {
		t, joined := in[i], false
		for {
			n := lx.glued(in, t, i)
			if n == 0 {
				break
			}
			i += n
			t.End, t.Word = in[i].End, true
			t.Text = text[t.Start:t.End]
			joined = true
		}
		if joined {
			t.Low = strings.TrimSuffix(strings.ToLower(t.Text), ".")
		}
		out = append(out, t)
	}
	return out
}

// glued is how many tokens behind in[i], which t ends with, belong to t.
func (lx *Grammar) glued(in []Token, t Token, i int) int {
	if i+1 >= len(in) || t.End != in[i+1].Start {
		return 0
	}
	next := in[i+1]
	more := i+2 < len(in) && in[i+2].Word && in[i+2].Start == next.End
	switch {
	case !t.Word:
		if (t.Text == "@" || t.Text == "+" && Digit(next.Text)) && next.Word {
			return 1
		}
	case (next.Text == "-" || next.Text == "/" || next.Text == "&") && more,
		next.Text == ":" && more && Digit(t.Text) && Digit(in[i+2].Text):
		return 2
	case (next.Text == "+" || next.Text == "#") && len(t.Text) <= 3,
		next.Text == "." && lx.abbreviated(in, i+1):
		return 1
	}
	return 0
}

// Digit reports whether a word begins with a digit.
func Digit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

// AddressLen is the length of an e-mail address or URL at the start of s, or 0.
func AddressLen(s string) int {
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
