package sqlite

import "slices"

// candidate is a row that a search found, before it is read.
type candidate struct {
	score float64
	row   int64
	place int
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

// ranking hands out candidates best first. Hardly ever is more than the first
// handful asked for, so each request selects what it takes and sorts no more.
type ranking struct{ rest []candidate }

func (r *ranking) len() int { return len(r.rest) }

// take removes and returns the best n.
func (r *ranking) take(n int) []candidate {
	if n >= len(r.rest) {
		out := r.rest
		r.rest = nil
		slices.SortFunc(out, compareCandidates)
		return out
	}
	best := make([]candidate, n) // a heap, the worst on top
	copy(best, r.rest)
	for i := n/2 - 1; i >= 0; i-- {
		sink(best, i)
	}
	for _, c := range r.rest[n:] {
		if c.better(best[0]) {
			best[0] = c
			sink(best, 0)
		}
	}
	worst := best[0]
	r.rest = slices.DeleteFunc(r.rest, func(c candidate) bool { return !worst.better(c) })
	slices.SortFunc(best, compareCandidates)
	return best
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
