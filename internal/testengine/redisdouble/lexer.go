package redisdouble

import (
	"strings"
)

// token is a piece of a query.
type token struct {
	// kind is the character itself for punctuation; else one of the kinds below.
	kind rune
	text string
	at   int
}

const (
	endToken   rune = -(iota + 1)
	wordToken       // a term, escapes resolved
	quoteToken      // between double quotes
	nameToken       // @name
	paramToken      // $name
	arrowToken      // =>
	compareToken
)

const punctuation = "(){}[]:|-+~*;%"

// lex cuts a query into tokens; the last is endToken.
func lex(query string) ([]token, error) {
	var list []token
	for at := 0; at < len(query); {
		c := query[at]
		start := at
		switch {
		case c == ' ' || c == '\t' || c == '\n':
			at++
		case strings.HasPrefix(query[at:], "=>"):
			at += 2
			list = append(list, token{arrowToken, "=>", start})
		case strings.IndexByte("=!<>", c) >= 0:
			for at < len(query) && strings.IndexByte("=!<>", query[at]) >= 0 {
				at++
			}
			list = append(list, token{compareToken, query[start:at], start})
		case c == '"':
			end := strings.IndexByte(query[at+1:], '"')
			if end < 0 || strings.Contains(query[at:at+1+end], `\`) {
				return nil, errUnknown("quotes", []string{query[at:]})
			}
			list = append(list, token{quoteToken, query[at+1 : at+1+end], start})
			at += end + 2
		case c == '@' || c == '$':
			word, next := lexWord(query, at+1)
			if word == "" {
				return nil, syntaxError(token{text: string(c), at: at})
			}
			kind := nameToken
			if c == '$' {
				kind = paramToken
			}
			list = append(list, token{kind, word, start})
			at = next
		case strings.IndexByte(punctuation, c) >= 0:
			at++
			list = append(list, token{rune(c), string(c), start})
		default:
			word, next := lexWord(query, at)
			if word == "" {
				return nil, errUnknown("character", []string{query[at:]})
			}
			list = append(list, token{wordToken, word, start})
			at = next
		}
	}
	return append(list, token{kind: endToken, at: len(query)}), nil
}

// lexWord reads a term: anything but punctuation, unless that is escaped. A dot
// may stand in a number.
func lexWord(query string, at int) (word string, next int) {
	var out strings.Builder
	for at < len(query) {
		c := query[at]
		if c == '\\' && at+1 < len(query) {
			at++
			c = query[at]
		} else if !wordByte(c) && (c != '.' || strings.Trim(out.String(), "0123456789") != "" || out.Len() == 0) {
			break
		}
		out.WriteByte(c)
		at++
	}
	return out.String(), at
}

func wordByte(c byte) bool {
	return c == '_' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

func syntaxError(t token) error {
	return refusal("Syntax error at offset %d near %s", t.at, t.text)
}
