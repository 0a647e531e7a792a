package scope

import (
	"errors"
	"strings"
)

// absent is the subject token of a level that is not there. Encode never
// produces it: a literal underscore is escaped.
const absent = "_"

const upperHex = "0123456789ABCDEF"

var (
	errEscape    = errors.New("has a malformed percent escape")
	errCanonical = errors.New("is not in canonical form")
)

// Encode percent-encodes an identifier byte by byte. Lower-case ASCII letters,
// digits and "-" stand for themselves; everything else becomes %XX with
// upper-case hex digits. The result is therefore free of separators, of NATS,
// LIKE and query-language wildcards and of control characters, and stays
// injective under case folding, because upper-case letters are escaped too.
func Encode(id string) string {
	n := 0
	for i := range len(id) {
		if !unreserved(id[i]) {
			n++
		}
	}
	if n == 0 {
		return id
	}
	var b strings.Builder
	b.Grow(len(id) + 2*n)
	for i := range len(id) {
		c := id[i]
		if unreserved(c) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
	return b.String()
}

// Decode is the inverse of [Encode]. Any spelling that Encode would not
// produce is refused: two spellings of one identifier would be two subjects,
// two partitions, and a place that erasure misses.
func Decode(token string) (string, error) {
	if !strings.Contains(token, "%") {
		return token, checkCanonical(token, token)
	}
	var b strings.Builder
	b.Grow(len(token))
	for i := 0; i < len(token); i++ {
		if token[i] != '%' {
			b.WriteByte(token[i])
			continue
		}
		if i+2 >= len(token) {
			return "", errEscape
		}
		hi, lo := strings.IndexByte(upperHex, token[i+1]), strings.IndexByte(upperHex, token[i+2])
		if hi < 0 || lo < 0 {
			return "", errEscape
		}
		b.WriteByte(byte(hi<<4 | lo))
		i += 2
	}
	return b.String(), checkCanonical(b.String(), token)
}

func checkCanonical(id, token string) error {
	if id == "" || Encode(id) != token {
		return errCanonical
	}
	return nil
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-'
}
