package decide

import (
	"cmp"
	"slices"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// Breaker bounds how often one thing that is known may change: a client in a
// loop must neither bury what a fact said before nor fill the audit stream. It
// counts versions, so that it knows the same after a restart and in a replica.
type Breaker struct {
	// Limit is how many changes within Window are let through; 0 means all.
	Limit  int
	Window time.Duration
}

// Full reports whether a thing of these versions, in which nothing is missing,
// has changed Limit times within Window before at, and if so, when there is room
// for the next change. Said is the time of the statement that would change it.
//
// A live statement, decided on within Window, counts by the time of its decision. An
// import covers years within minutes: there a change counts only if it also lies
// within Window by the time of its statement, so that the breaker trips where it
// would have tripped then.
func (b Breaker) Full(versions []events.Fact, said, at time.Time) (due time.Time, full bool) {
	if b.Limit <= 0 || len(versions) <= b.Limit {
		return due, false
	}
	newest := make(map[string]uint64, 1)
	for _, v := range versions {
		newest[v.ID] = max(newest[v.ID], v.Revision)
	}
	var changes []time.Time
	first := true // becoming known is no change
	for _, v := range slices.SortedFunc(slices.Values(versions), inOrder) {
		if history(v, newest[v.ID]) {
			continue
		}
		live := b.near(said, at) && b.near(saidAt(v), v.UpdatedAt)
		if !first && b.near(v.UpdatedAt, at) && (live || b.near(saidAt(v), said)) {
			changes = append(changes, v.UpdatedAt)
		}
		first = false
	}
	if len(changes) < b.Limit {
		return due, false
	}
	slices.SortFunc(changes, time.Time.Compare)
	return changes[len(changes)-b.Limit].Add(b.Window), true
}

// Crowded reports whether what is known of a thing around the time of a statement
// is as much as would have been let through then. One more value of the past
// changes nothing that holds, but a loop that is read again, once it is over,
// must not become a hundred thousand of them.
func (b Breaker) Crowded(versions []events.Fact, said time.Time) bool {
	n := 0
	for _, v := range versions {
		if b.near(saidAt(v), said) {
			n++
		}
	}
	return b.Limit > 0 && n > b.Limit
}

func inOrder(v, w events.Fact) int {
	return cmp.Or(v.CreatedAt.Compare(w.CreatedAt), cmp.Compare(v.ID, w.ID), cmp.Compare(v.Revision, w.Revision))
}

// near compares without regard to which is later: a clock that was set back must
// not keep the future's changes in the count for long.
func (b Breaker) near(t, u time.Time) bool { return t.Sub(u).Abs() < b.Window }

// history reports whether a version was closed when it became known: it states a
// former fact, and changes nothing that holds.
func history(v events.Fact, newest uint64) bool {
	return v.Revision == 1 && newest == 1 && v.ValidUntil != nil && !v.ValidUntil.After(v.UpdatedAt)
}

// saidAt is when it was said what made a version: for one that was closed and
// nothing took its place, when it ended.
func saidAt(v events.Fact) time.Time {
	if v.Revision > 1 && v.ValidUntil != nil && v.SupersededBy == "" {
		return *v.ValidUntil
	}
	return memory.StatedAt(v)
}
