package scheduler

import (
	"sync"

	"palimpsest/pkg/events"
)

// maxHanded is how many commits are remembered: more than a process works on at
// a time.
const maxHanded = 1024

// handed holds the ticks that were issued when a commit released its slot. The
// commit does not name them, so that without handed a tick that could not be
// published would be issued again only when it is overdue, and not with the
// redelivery of the commit.
type handed struct {
	mu    sync.Mutex
	ticks map[string][]events.Payload // by the commit's id
	order []string
}

// note remembers the ticks of a commit, in place of the oldest's.
func (h *handed) note(id string, ticks []events.Payload) {
	if len(ticks) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ticks == nil {
		h.ticks = make(map[string][]events.Payload)
	}
	if len(h.order) >= maxHanded {
		delete(h.ticks, h.order[0])
		h.order = h.order[1:]
	}
	h.ticks[id], h.order = ticks, append(h.order, id)
}

// of returns the ticks of a commit that comes again.
func (h *handed) of(id string) (ticks []events.Payload, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ticks, ok = h.ticks[id]
	return ticks, ok
}
