package lex

import (
	"slices"
	"strings"
)

// maxName bounds the bytes of a name that Nearest looks at: the distance takes time
// with its length.
const maxName = 64

// Nearest returns the name with the least edit distance, the first by spelling of
// several; empty where none is known.
func Nearest(name string, known []string) string {
	name = name[:min(len(name), maxName)]
	best, least := "", -1
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := distance(name, k); least < 0 || d < least {
			best, least = k, d
		}
	}
	return best
}

// Clip shortens a text to 64 bytes, so that an error or an answer does not repeat a
// long one.
func Clip(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// distance is the number of bytes to insert, delete or replace to make b of a
// (Levenshtein 1966).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
