package redis

import (
	"sync"
	"time"
)

// maxSaid bounds how many rows of episodes are remembered, maxSaidText the bytes of
// each, and saidFor how long.
const (
	maxSaid     = 2048
	maxSaidText = 2048
	saidFor     = time.Minute
)

// saidRows remembers rows of episodes that this process wrote or read, by their keys: an
// episode is read by its tick, and as a turn before the next ones. A row changes only
// where its user is erased and an episode of the same id is stored again: a process that
// erases forgets at once, another one within saidFor.
type saidRows struct {
	mu   sync.Mutex
	rows map[string]saidRow
}

type saidRow struct {
	fields
	at time.Time
}

func (r *saidRows) note(key string, row fields, now time.Time) {
	if len(row["b"])+len(row["c"]) > maxSaidText {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rows == nil || len(r.rows) >= maxSaid {
		r.rows = map[string]saidRow{}
	}
	r.rows[key] = saidRow{row, now}
}

// of returns the row of a key; nil where it is not remembered.
func (r *saidRows) of(key string, now time.Time) fields {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := r.rows[key]
	if now.Sub(row.at).Abs() >= saidFor {
		delete(r.rows, key)
		return nil
	}
	return row.fields
}

// forget forgets all rows.
func (r *saidRows) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = nil
}
