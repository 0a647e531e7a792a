package scheduler

import (
	"sync"

	"palimpsest/pkg/events"
)

// runs are the rules that callers want to read a scope now. Such a rule is due, and
// waits for a slot as others do: callers of one project delay no other. A restart
// forgets the runs that wait; the rule's cadence finds the episodes later.
type runs struct {
	mu sync.Mutex
	to map[claimed]run
}

// run is how far a rule is to read a scope.
type run struct{ to, incarnation uint64 }

// ask remembers a run, unless too many wait.
func (q *runs) ask(in events.EpisodeStored) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.to == nil {
		q.to = make(map[claimed]run)
	}
	c := claimed{in.Scope, in.Run}
	had, known := q.to[c]
	if !known && len(q.to) >= maxQueue {
		return
	}
	if had.incarnation != in.Incarnation {
		had.to = 0
	}
	q.to[c] = run{max(had.to, in.LastOrdinal), in.Incarnation}
}

// of returns the ordinal up to which a rule is to read a scope, and 0 if no run waits or
// the rule has read that far.
func (q *runs) of(c claimed, watermark, incarnation uint64) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	wanted, known := q.to[c]
	switch {
	case !known:
		return 0
	case wanted.to <= watermark || wanted.incarnation < incarnation:
		delete(q.to, c)
		return 0
	}
	return wanted.to
}
