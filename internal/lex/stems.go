package lex

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// stems remembers what [stem] made of words: most of a text are few words, and
// a stemmer costs more than all else that reading a text does. Each word has one
// place, where the newest takes it. The words are at most [maxTerm] bytes long,
// so that all of it is less than a megabyte.
var stems = struct {
	seed   maphash.Seed
	places [4096]atomic.Pointer[stemmed]
}{seed: maphash.MakeSeed()}

// stemmed is a word and its index form.
type stemmed struct {
	word, form string
	script     script
}

// stemOf is [stem] for words of at most [maxTerm] bytes.
func stemOf(w string, s script) string {
	place := &stems.places[maphash.String(stems.seed, w)%uint64(len(stems.places))]
	if known := place.Load(); known != nil && known.word == w && known.script == s {
		return known.form
	}
	word := strings.Clone(w) // not the text that it stands in
	made := &stemmed{word: word, form: stem(word, s), script: s}
	place.Store(made)
	return made.form
}
