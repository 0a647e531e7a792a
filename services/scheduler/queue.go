package scheduler

import (
	"slices"
	"sync"

	"palimpsest/pkg/scope"
)

// maxQueue bounds a queue. A queue that overflowed accepts nothing until it is
// empty. Then a sweep finds the scopes that it refused, and begins with them.
const maxQueue = 4096

// queue names the scopes of one project that wait for a slot of one rule.
type queue struct{ project, rule string }

// waitQueue holds the scopes in which a rule is due and had no slot. A queue is
// served first come first served, and the queues in turns. While a queue has an
// entry, every further scope joins its end, so that busy scopes do not keep the
// others from their slots.
type waitQueue struct {
	most   int // in a queue
	mu     sync.Mutex
	order  []queue // in the order of their turns
	queues map[queue]*entries
}

// entries are the scopes of one queue.
type entries struct {
	facts []scope.Scope
	known map[scope.Scope]bool
	// called counts the scopes that have left the queue and may come back.
	called int
	// overflowed: the queue refused a scope, and accepts none until it is empty.
	overflowed bool
}

// join appends a scope to a queue, unless it waits there already. It reports
// whether it appended the scope.
func (a *waitQueue) join(q queue, fact scope.Scope) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.queues == nil {
		a.queues = make(map[queue]*entries)
	}
	w := a.queues[q]
	if w == nil {
		w = &entries{known: make(map[scope.Scope]bool)}
		a.queues[q] = w
		a.order = append(a.order, q)
	}
	switch {
	case w.known[fact]:
		return false
	case w.overflowed || len(w.facts) >= a.most:
		w.overflowed = true
		return false
	}
	w.facts = append(w.facts, fact)
	w.known[fact] = true
	return true
}

// occupied reports whether a scope waits, or was called and may come back.
func (a *waitQueue) occupied(q queue) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.queues[q] != nil
}

// turns lists the queues of one project or, for "", of all, in the order of their
// turns.
func (a *waitQueue) turns(project string) []queue {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []queue
	for _, q := range a.order {
		if project == "" || q.project == project {
			list = append(list, q)
		}
	}
	return list
}

// call takes the head of a queue and moves the queue behind the others; settle
// must follow.
func (a *waitQueue) call(q queue) (scope.Scope, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := a.queues[q]
	if w == nil || len(w.facts) == 0 {
		return scope.Scope{}, false
	}
	fact := w.facts[0]
	w.facts = w.facts[1:]
	w.called++
	delete(w.known, fact)
	if i := slices.Index(a.order, q); i >= 0 {
		a.order = append(slices.Delete(a.order, i, i+1), q)
	}
	return fact, true
}

// fate is the result of a call.
type fate int

const (
	served   fate = iota
	unserved      // no slot was free: the scope is the head of its queue again
	failed        // the scope could not be read: the others go first
)

// settle takes back a scope that was called and not served. It reports whether the
// queue is empty and had overflowed.
func (a *waitQueue) settle(q queue, fact scope.Scope, as fate) (overflowed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := a.queues[q]
	w.called--
	if as != served && !w.known[fact] {
		at := 0
		if as == failed {
			at = len(w.facts)
		}
		w.facts = slices.Insert(w.facts, at, fact)
		w.known[fact] = true
	}
	if len(w.facts) > 0 || w.called > 0 {
		return false
	}
	delete(a.queues, q)
	a.order = slices.DeleteFunc(a.order, func(x queue) bool { return x == q })
	return w.overflowed
}

// inTurns deals the lists out: the first of each, then the second of each, and so on.
func inTurns[T any](lists [][]T) []T {
	var out []T
	for i, more := 0, true; more; i++ {
		more = false
		for _, l := range lists {
			if i < len(l) {
				out, more = append(out, l[i]), true
			}
		}
	}
	return out
}
