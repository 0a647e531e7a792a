package scheduler

import (
	"slices"
	"sync"

	"palimpsest/pkg/scope"
)

// maxLine bounds a line. One that had to leave somebody out takes nobody in any
// more until it has come to its end: then a sweep finds who was left out, and
// begins with them.
const maxLine = 4096

// line names the scopes of one project that wait for a slot of one rule.
type line struct{ project, rule string }

// agenda holds the scopes in which a rule is due and had no slot: first come
// first served, the lines in turns. While anybody waits in a line, whoever comes
// joins its end, so that the scopes that speak most do not keep the others from
// their slots.
type agenda struct {
	most  int // in a line
	mu    sync.Mutex
	order []line // in the order of their turns
	lines map[line]*waiting
}

// waiting is what stands in a line.
type waiting struct {
	facts []scope.Scope
	known map[scope.Scope]bool
	// called have left the line and may come back.
	called int
	// leftOut: it was full when somebody came, and is closed.
	leftOut bool
}

// join puts a scope at the end of a line, unless it waits there already. It
// reports whether it had to, and found room.
func (a *agenda) join(l line, fact scope.Scope) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lines == nil {
		a.lines = make(map[line]*waiting)
	}
	w := a.lines[l]
	if w == nil {
		w = &waiting{known: make(map[scope.Scope]bool)}
		a.lines[l] = w
		a.order = append(a.order, l)
	}
	switch {
	case w.known[fact]:
		return false
	case w.leftOut || len(w.facts) >= a.most:
		w.leftOut = true
		return false
	}
	w.facts = append(w.facts, fact)
	w.known[fact] = true
	return true
}

// occupied reports whether somebody would be passed over by whoever took a slot
// now.
func (a *agenda) occupied(l line) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lines[l] != nil
}

// turns lists the lines, of one project or, for "", of all.
func (a *agenda) turns(project string) []line {
	a.mu.Lock()
	defer a.mu.Unlock()
	var lines []line
	for _, l := range a.order {
		if project == "" || l.project == project {
			lines = append(lines, l)
		}
	}
	return lines
}

// call takes the head of a line and moves the line behind the others; settle
// must follow.
func (a *agenda) call(l line) (scope.Scope, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := a.lines[l]
	if w == nil || len(w.facts) == 0 {
		return scope.Scope{}, false
	}
	fact := w.facts[0]
	w.facts = w.facts[1:]
	w.called++
	delete(w.known, fact)
	if i := slices.Index(a.order, l); i >= 0 {
		a.order = append(slices.Delete(a.order, i, i+1), l)
	}
	return fact, true
}

// fate is what became of a scope that was called.
type fate int

const (
	served   fate = iota
	unserved      // no slot was free: it is the head of its line again
	failed        // it could not be looked at: the others go first
)

// settle takes a scope back that was called and not served. It reports whether
// the line has come to an end and had left somebody out.
func (a *agenda) settle(l line, fact scope.Scope, as fate) (leftOut bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := a.lines[l]
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
	delete(a.lines, l)
	a.order = slices.DeleteFunc(a.order, func(x line) bool { return x == l })
	return w.leftOut
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
