package scheduler

import (
	"sync"

	"palimpsest/pkg/scope"
)

// claimed names the claim of a rule in a scope.
type claimed struct {
	fact scope.Scope
	rule string
}

// resumed are the claims whose ticks this process has published again since it
// started, until it has seen all that stood then.
type resumed struct {
	mu    sync.Mutex
	ended bool
	seen  map[claimed]bool
}

// visit is what a sweep is for.
func (r *resumed) visit() visit {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return sweeping
	}
	return resuming
}

// first reports whether a claim was not met before, and remembers it.
func (r *resumed) first(c claimed) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = make(map[claimed]bool)
	}
	known := r.seen[c]
	r.seen[c] = true
	return !known
}

func (r *resumed) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended, r.seen = true, nil
}
