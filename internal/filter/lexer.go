package filter

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"palimpsest/internal/lex"
)

// The kinds of tokens.
type tokenKind int

const (
	endToken tokenKind = iota
	wordToken
	quotedToken // a name in double quotes
	textToken   // a string in single quotes
	numberToken
	signToken
)

// token is a part of a WHERE fragment. Value is what it stands for, without quotes.
type token struct {
	kind  tokenKind
	from  int // in bytes
	value string
}

// String is a token for errors.
func (t token) String() string {
	switch t.kind {
	case endToken:
		return "the end"
	case textToken:
		return "'" + lex.Clip(t.value) + "'"
	case quotedToken:
		return `"` + lex.Clip(t.value) + `"`
	case wordToken, numberToken, signToken:
	}
	return lex.Clip(t.value)
}

type lexer struct {
	text string
	at   int
}

func isWord(r rune, first bool) bool {
	return r == '_' || unicode.IsLetter(r) || !first && unicode.IsDigit(r)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (l *lexer) next() (token, *Error) {
	rest := strings.TrimLeft(l.text[l.at:], " \t\r\n")
	l.at = len(l.text) - len(rest)
	t := token{from: l.at}
	if rest == "" {
		return t, nil
	}
	n := 0
	r, _ := utf8.DecodeRuneInString(rest)
	switch c := rest[0]; {
	case strings.HasPrefix(rest, "--") || strings.HasPrefix(rest, "/*"):
		return t, refuse("comments are not supported")
	case c == '\'' || c == '"':
		return l.quoted(t, rest)
	case isDigit(c) || len(rest) > 1 && (c == '-' || c == '+' || c == '.') && (isDigit(rest[1]) || rest[1] == '.'):
		t.kind = numberToken
		for n = 1; n < len(rest) && (isDigit(rest[n]) || strings.IndexByte(".eE", rest[n]) >= 0 ||
			strings.IndexByte("+-", rest[n]) >= 0 && (rest[n-1] == 'e' || rest[n-1] == 'E')); n++ {
		}
	case isWord(r, true):
		t.kind = wordToken
		for n < len(rest) {
			r, size := utf8.DecodeRuneInString(rest[n:])
			if !isWord(r, n == 0) {
				break
			}
			n += size
		}
	default:
		t.kind, n = signToken, 1
		for _, sign := range []string{"<=", ">=", "<>", "!=", "=="} {
			if strings.HasPrefix(rest, sign) {
				n = 2
			}
		}
		if n == 1 && !strings.ContainsRune("=<>(),.", r) {
			return t, refuse("unsupported character %q", r)
		}
	}
	t.value = rest[:n]
	l.at += n
	return t, nil
}

// quoted reads a string or a quoted name, in which a doubled quote stands for one.
func (l *lexer) quoted(t token, rest string) (token, *Error) {
	quote := rest[:1]
	t.kind = textToken
	if quote == `"` {
		t.kind = quotedToken
	}
	for i := 1; i < len(rest); i++ {
		if rest[i] != quote[0] {
			continue
		}
		if i+1 < len(rest) && rest[i+1] == quote[0] {
			i++
			continue
		}
		t.value = strings.ReplaceAll(rest[1:i], quote+quote, quote)
		l.at += i + 1
		return t, nil
	}
	return t, refuse("a quote is not closed")
}
