package static

import (
	"math"
	"math/bits"
	"sync/atomic"

	"palimpsest/internal/embed"
)

var _ embed.Words = (*Embedder)(nil)

// Word implements [embed.Words]: it knows the words that are one token of the table.
func (e *Embedder) Word(folded string) (number int, ok bool) {
	tokenizer, err := e.tokenizer()
	if err != nil {
		return 0, false // Embed reports it
	}
	id, ok := tokenizer.Word(folded)
	return int(id), ok && int(id) < len(e.table.scales) && e.table.scales[id] != 0
}

// Likeness implements [embed.Words].
func (e *Embedder) Likeness(a, b int, least float64) float64 {
	one, other := e.table.sketch(a), e.table.sketch(b)
	if one.length == 0 || other.length == 0 || one.differ(other) > mostDiffering(least) {
		return 0
	}
	x, y := e.table.row(a), e.table.row(b)
	y = y[:len(x)]
	sum := int32(0)
	for i := range x {
		sum += int32(int8(x[i])) * int32(int8(y[i]))
	}
	if like := float64(sum) / (one.length * other.length); like >= least {
		return like
	}
	return 0
}

// Weight implements [embed.Words].
func (e *Embedder) Weight(word int) float64 {
	return e.table.sketch(word).length * float64(e.table.scales[word])
}

// sketch is a bit for each of the first 256 numbers of a row, set where it is
// positive, and the length of the row. The bits in which two sketches differ tell the
// angle of their rows within some 6 degrees (Charikar 2002), at a hundredth of the cost.
type sketch struct {
	signs  [4]uint64
	length float64
}

func (s *sketch) differ(other *sketch) int {
	n := 0
	for i, w := range s.signs {
		n += bits.OnesCount64(w ^ other.signs[i])
	}
	return n
}

// mostDiffering is the number of bits beyond which two rows are hardly as alike as
// least.
func mostDiffering(least float64) int {
	const slack = 8
	return int(256*math.Acos(least)/math.Pi) + slack
}

// sketches are those of a table's rows, made when they are first asked for.
type sketches []atomic.Pointer[sketch]

func (t *table) row(token int) []byte {
	if t.of != nil {
		token = t.of[token]
	}
	return t.rows[token*t.dimensions:][:t.dimensions]
}

func (t *table) sketch(token int) *sketch {
	at := &t.sketches[token]
	if s := at.Load(); s != nil {
		return s
	}
	s, sum := &sketch{}, 0.0
	for i, b := range t.row(token) {
		x := int8(b)
		if sum += float64(x) * float64(x); x > 0 && i < 256 {
			s.signs[i/64] |= 1 << (i % 64)
		}
	}
	s.length = math.Sqrt(sum)
	at.Store(s)
	return s
}
