package sqlite

import (
	"math"
	"slices"
)

// candidate is a row that a search found, before it is read.
type candidate struct {
	score float64
	row   int64
}

// better orders candidates: by score, and the newer row of equals. No row
// occurs twice, so no two candidates are equal.
func (c candidate) better(d candidate) bool {
	if c.score != d.score {
		return c.score > d.score
	}
	return c.row > d.row
}

func compareCandidates(c, d candidate) int {
	if c.better(d) {
		return -1
	}
	return 1
}

// unbeaten is better than every candidate that is found.
var unbeaten = candidate{score: math.Inf(1)}

// ranker returns, best first, the n best candidates of those that after is
// better than. Hardly ever is more than the first handful asked for, so nothing
// else is kept or sorted.
type ranker func(n int, after candidate) []candidate

// top gathers the best n candidates of those that after is better than.
type top struct {
	n     int
	after candidate
	heap  []candidate // the worst on top
}

// floor is the score under which no candidate is taken any more.
func (t *top) floor() float64 {
	if len(t.heap) < t.n {
		return math.Inf(-1)
	}
	return t.heap[0].score
}

// offer takes c if it is among the best so far, and says whether it is.
func (t *top) offer(c candidate) bool {
	switch {
	case !t.after.better(c):
		return false
	case len(t.heap) < t.n:
		t.heap = append(t.heap, c)
		for i := len(t.heap) - 1; i > 0 && t.heap[(i-1)/2].better(t.heap[i]); i = (i - 1) / 2 {
			t.heap[i], t.heap[(i-1)/2] = t.heap[(i-1)/2], t.heap[i]
		}
		return true
	case c.better(t.heap[0]):
		t.heap[0] = c
		sink(t.heap, 0)
		return true
	}
	return false
}

// take ends the gathering.
func (t *top) take() []candidate {
	slices.SortFunc(t.heap, compareCandidates)
	return t.heap
}

// sink restores the heap below i.
func sink(heap []candidate, i int) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if next := child + 1; next < len(heap) && heap[child].better(heap[next]) {
			child = next
		}
		if !heap[i].better(heap[child]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
