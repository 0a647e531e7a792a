package retrieval

import (
	"hash/maphash"
	"math"
	"slices"

	"palimpsest/internal/embed"
	"palimpsest/internal/lex"
)

// maxWords bounds the distinct words of a text that are compared by meaning.
const maxWords = 512

// contentWords is a table without the words that say nothing by themselves: stop words
// and single characters. It remembers the words that it was asked for by their hashes, for
// they may be those of a user who is erased.
type contentWords struct {
	embed.Words
	known *remembered[uint64, int32] // -1 for one that says nothing, or that the table does not know
}

// contentOf returns the words of a table that say something, nil for no table.
func contentOf(table embed.Words) embed.Words {
	if table == nil {
		return nil
	}
	return contentWords{table, newRemembered[uint64, int32]()}
}

func (c contentWords) Word(folded string) (number int, ok bool) {
	key := maphash.String(termSeed, folded)
	n, known := c.known.get(key, func(int32) int { return 1 })
	if !known {
		n = -1
		if len(folded) > 1 && len(lex.Terms(folded)) == 1 {
			if number, ok := c.Words.Word(folded); ok {
				n = int32(number)
			}
		}
		c.known.put(key, n, 1)
	}
	return int(n), n >= 0
}

// wordsOf are the numbers of the distinct words of a text that table knows.
func wordsOf(table embed.Words, text string) []int32 {
	if table == nil {
		return nil
	}
	var numbers []int32
	seen := map[int]bool{}
	for _, w := range lex.Words(text) {
		if n, ok := table.Word(w); ok && !seen[n] {
			if seen[n] = true; len(seen) > maxWords {
				break
			}
			numbers = append(numbers, int32(n))
		}
	}
	return numbers
}

// leastLikeness is a similarity that words of unlike meaning have.
const leastLikeness = 0.3

// meanings compares the words of texts with those of a question by their meaning.
// It is the late interaction of Khattab and Zaharia 2020 over a table of words.
type meanings struct {
	table embed.Words
	asked []int32 // by term of the question; -1 for one that the table does not know
	slot  []int32 // by number of a word: 1 + where its likenesses begin
	likes []float32
	room  []float32 // of the answers to come
}

// compare returns how like the most like word of a text is to each term of the
// question, from 0 to 1.
func (l *meanings) compare(words []int32) []float32 {
	if l.table == nil {
		return nil
	}
	if len(l.room) < len(l.asked) {
		l.room = make([]float32, 256*len(l.asked))
	}
	best := l.room[:len(l.asked):len(l.asked)]
	l.room = l.room[len(l.asked):]
	for _, w := range words {
		for i, like := range l.of(w) {
			best[i] = max(best[i], like)
		}
	}
	return best
}

func (l *meanings) of(word int32) []float32 {
	if int(word) >= len(l.slot) {
		l.slot = append(l.slot, make([]int32, max(int(word)+1, 1<<15)-len(l.slot))...)
	}
	if l.slot[word] == 0 {
		l.slot[word] = int32(len(l.likes)) + 1
		for _, asked := range l.asked {
			like := 0.0
			if asked >= 0 {
				like = max(0, l.table.Likeness(int(asked), int(word), leastLikeness)-leastLikeness) / (1 - leastLikeness)
			}
			l.likes = append(l.likes, float32(like))
		}
	}
	at := l.slot[word] - 1
	return l.likes[at:][:len(l.asked)]
}

// raise makes each number of a at least that of b.
func raise(a, b []float32) {
	for i := range b {
		a[i] = max(a[i], b[i])
	}
}

// like is the share of the question's weight that a text holds, where a word of like
// meaning counts by its likeness.
func (q *question) like(m match, likes []float32) float64 {
	sum, total := 0.0, 0.0
	for i, w := range q.weights {
		total += w
		best := 0.0
		if i < len(likes) {
			best = float64(likes[i])
		}
		switch {
		case m.mask&(1<<i) != 0:
			best = 1
		case m.akin&(1<<i) != 0:
			best = max(best, synonymCover)
		}
		sum += w * best
	}
	return min(1, sum/max(total, math.SmallestNonzeroFloat32))
}

// compareBy lets the words of texts be compared with the question's by table; nil
// compares none. Few is 1 where few texts are searched, 0 where many.
func (q *question) compareBy(table embed.Words, words []string, few float64) {
	q.meanings.table = table
	if table == nil {
		return
	}
	q.meanings.asked = make([]int32, len(q.terms))
	for i := range q.meanings.asked {
		q.meanings.asked[i] = -1
	}
	for _, w := range words {
		terms := lex.Terms(w)
		if len(terms) != 1 {
			continue
		}
		if i := slices.Index(q.terms, terms[0]); i >= 0 {
			if n, ok := table.Word(w); ok && q.meanings.asked[i] < 0 {
				q.meanings.asked[i] = int32(n)
				q.temper(i, table.Weight(n), few)
			}
		}
	}
}

// temper lets a term weigh less by how common its word is: among few texts, each word is
// rare. The length of a word's vector tells how much it says.
func (q *question) temper(term int, length, few float64) {
	share := math.Pow(min(1, length/fullLength), few)
	q.weights[term] *= share
	for i := range q.forms {
		if q.forms[i].of == term {
			q.forms[i].weight *= share
		}
	}
}

// fullLength is the length of the vector of a word that says something by itself.
const fullLength = 0.7
