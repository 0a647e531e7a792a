package scheduler

import (
	"slices"
	"sync"
	"time"

	"palimpsest/pkg/scope"
)

// maxAgenda bounds the entries of one project; the sweep finds what is left
// out.
const maxAgenda = 4096

// agenda holds scopes to look at again soon, in turns by project: those for
// which no slot was free, and those whose newest effect the store had not
// applied when its commit was heard of.
type agenda struct {
	mu       sync.Mutex
	projects []string // in the order of their turns
	entries  map[string][]entry
}

type entry struct {
	fact scope.Scope
	// revision is what the store must have applied; 0 for none.
	revision uint64
	// added is when the entry was first made, due when to look.
	added, due time.Time
}

// add makes an entry, or brings forward the one that the scope has.
func (a *agenda) add(e entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.entries == nil {
		a.entries = make(map[string][]entry)
	}
	project := e.fact.Project
	list, known := a.entries[project]
	if !known {
		a.projects = append(a.projects, project)
	}
	i := slices.IndexFunc(list, func(x entry) bool { return x.fact == e.fact })
	switch {
	case i >= 0:
		list[i].revision = max(list[i].revision, e.revision)
		if e.due.Before(list[i].due) {
			list[i].due = e.due
		}
	case len(list) < maxAgenda:
		list = append(list, e)
	}
	a.entries[project] = list
}

// waiting reports whether the project has entries.
func (a *agenda) waiting(project string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.entries[project]) > 0
}

// turns lists the projects that have entries.
func (a *agenda) turns() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.projects)
}

// take removes and returns the entries that are due, at most n of each project,
// one of each project in turn.
func (a *agenda) take(now time.Time, n map[string]int) []entry {
	a.mu.Lock()
	defer a.mu.Unlock()
	var taken [][]entry
	kept := a.projects[:0]
	for _, project := range a.projects {
		var mine []entry
		list := slices.DeleteFunc(a.entries[project], func(e entry) bool {
			// Before it was added the clock was set back, and nothing is known of when.
			if len(mine) >= n[project] || e.due.After(now) && !now.Before(e.added) {
				return false
			}
			mine = append(mine, e)
			return true
		})
		taken = append(taken, mine)
		if len(list) == 0 {
			delete(a.entries, project)
			continue
		}
		a.entries[project] = list
		kept = append(kept, project)
	}
	a.projects = kept
	return inTurns(taken)
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
