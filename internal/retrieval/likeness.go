package retrieval

import (
	"math"
	"slices"

	"palimpsest/internal/embed"
	"palimpsest/internal/lex"
)

// maxWords bounds the distinct words of a text that are compared by meaning.
const maxWords = 512

// wordsOf are the numbers of the distinct words of a text that table knows. Stop words
// and single characters say nothing by themselves.
func wordsOf(table embed.Words, text string) []int32 {
	if table == nil {
		return nil
	}
	var numbers []int32
	seen := map[string]bool{}
	for _, w := range lex.Words(text) {
		if len(numbers) == maxWords {
			break
		}
		if seen[w] {
			continue
		}
		seen[w] = true
		if n, ok := numberOf(table, w); ok && !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

func numberOf(table embed.Words, word string) (int32, bool) {
	if len(word) < 2 || len(lex.Terms(word)) != 1 {
		return 0, false
	}
	n, ok := table.Word(word)
	return int32(n), ok
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
// compares none.
func (q *question) compareBy(table embed.Words, words []string) {
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
			if n, ok := numberOf(table, w); ok {
				q.meanings.asked[i] = n
			}
		}
	}
}
