package redis

import "sync"

// maxSaid bounds how many rows of episodes are remembered, and maxSaidText their
// content in bytes.
const (
	maxSaid     = 2048
	maxSaidText = 2048
)

// saidRows remembers rows of episodes that this process wrote or read, by their keys: an
// episode is read by its tick, and as a turn before the next ones. A row never changes.
// One that is gone is in no lookup, and nobody asks for it.
type saidRows struct {
	mu   sync.Mutex
	rows map[string]fields
}

func (r *saidRows) note(key string, row fields) {
	if len(row["c"]) > maxSaidText {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rows == nil || len(r.rows) >= maxSaid {
		r.rows = map[string]fields{}
	}
	r.rows[key] = row
}

// of returns the row of a key; nil where it is not remembered.
func (r *saidRows) of(key string) fields {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rows[key]
}
