package local

import (
	"cmp"
	"math"
	"slices"
	"unicode/utf8"

	"palimpsest/internal/embed"
	"palimpsest/internal/lex"
)

// The weights of one occurrence of a feature, relative to a whole word.
const (
	weightPair = 0.8 // two neighbouring characters of a script without spaces
	weightGram = 0.8 // all n-grams of one length of a word with one character
)

// minGram and maxGram bound the characters of an n-gram.
const (
	minGram = 3
	maxGram = 5
)

// Seeds keep the kinds of features apart: a word is not its own n-gram.
const (
	seedWord uint64 = 0x9e3779b97f4a7c15
	seedPair uint64 = 0xc2b2ae3d27d4eb4f
	seedGram uint64 = 0x165667b19e3779f9
)

// feature is a hashed word, pair or n-gram, and the weight of one occurrence.
type feature struct {
	hash   uint64
	weight float32
}

// features is the multiset of a text's features; it is reused between texts.
type features struct {
	list  []feature
	ends  []int    // scratch: byte offsets of the characters of a word
	terms []string // scratch
}

// read replaces the features by those of text.
func (f *features) read(text string) {
	f.list = f.list[:0]
	var before uint64 // the character before, 0 for none
	for _, w := range lex.Words(text) {
		h := hash(seedWord, w)
		rarity := f.rarity(w)
		f.add(h, rarity)
		if !isCharacter(w) {
			f.readGrams(w, rarity)
			before = 0
			continue
		}
		if before != 0 {
			f.add(mix(before*3^h^seedPair), weightPair)
		}
		before = h
	}
}

// readGrams adds the n-grams of "⟨word⟩", so that inflected, compound and
// misspelt words keep much in common, in any language. A word that is shorter
// than an n-gram would only be counted twice.
func (f *features) readGrams(w string, rarity float32) {
	f.ends = append(f.ends[:0], 0)
	for i, r := range w {
		f.ends = append(f.ends, i+utf8.RuneLen(r))
	}
	runes := len(f.ends) - 1
	if runes < minGram {
		return
	}
	// A word of n characters has about n n-grams: their length as a vector, and
	// so the word's share of the text, must not grow with n.
	weight := weightGram * rarity / float32(math.Sqrt(float64(runes)))
	for n := minGram; n <= maxGram; n++ {
		// One position before the word and one behind it hold the marks.
		for at := -1; at+n <= runes+1; at++ {
			h := seedGram + uint64(n)
			if at < 0 {
				h = mix(h ^ '<')
			}
			from, to := max(at, 0), min(at+n, runes)
			h = hash(h, w[f.ends[from]:f.ends[to]])
			if at+n > runes {
				h = mix(h ^ '>')
			}
			f.add(h, weight)
		}
	}
}

func (f *features) add(h uint64, weight float32) {
	f.list = append(f.list, feature{h, weight})
}

// project writes the unit vector of the features to v, which must be zero.
// Each feature adds ± its weight, damped by 1 + ln(occurrences), to one
// dimension; signs make collisions cancel on average (Weinberger et al. 2009).
func (f *features) project(v []float32) {
	slices.SortFunc(f.list, func(a, b feature) int { return cmp.Compare(a.hash, b.hash) })
	for i := 0; i < len(f.list); {
		first, n := f.list[i], 0
		for ; i < len(f.list) && f.list[i].hash == first.hash; i++ {
			n++
		}
		w := first.weight
		if n > 1 {
			w *= 1 + float32(math.Log(float64(n)))
		}
		if first.hash>>63 == 1 {
			w = -w
		}
		v[first.hash%Dimensions] += w
	}
	embed.Normalise(v)
}

// rarity stands in for inverse document frequency, without a corpus. The words
// that the text index leaves out weigh least; of the others, in any language,
// the more often one is used, the shorter it is (Zipf 1935). It runs from 0.1
// to 1.
func (f *features) rarity(w string) float32 {
	if isCharacter(w) {
		return 0.5 // neither frequent nor rare
	}
	n := utf8.RuneCountInString(w)
	if n < len(rarities) { // asking costs more than all else
		if f.terms = lex.AppendTerms(f.terms[:0], w); len(f.terms) == 0 {
			return 0.1
		}
	}
	if w[0] >= '0' && w[0] <= '9' {
		return 1
	}
	return rarities[min(n, len(rarities)-1)]
}

var rarities = [...]float32{0, 0.3, 0.5, 0.8, 0.9, 1}

// isCharacter reports whether a word is one character of a script without
// spaces, Thai (the first of them) or later; lex splits those.
func isCharacter(w string) bool {
	const firstUnspaced = '\u0E00'
	r, n := utf8.DecodeRuneInString(w)
	return n == len(w) && r >= firstUnspaced
}

// hash is FNV-1a over s from seed, mixed.
func hash(seed uint64, s string) uint64 {
	h := seed ^ 0xcbf29ce484222325
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return mix(h)
}

// mix spreads every bit over the whole word (SplitMix64's finaliser).
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
