package redis

import (
	"time"

	"palimpsest/internal/store"
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
type saidRows struct{ store.Memo[string, saidRow] }

type saidRow struct {
	fields
	at time.Time
}

func (r *saidRows) note(key string, row fields, now time.Time) {
	if len(row["b"])+len(row["c"]) <= maxSaidText {
		r.Put(key, saidRow{row, now}, maxSaid)
	}
}

// of returns the row of a key; nil where it is not remembered.
func (r *saidRows) of(key string, now time.Time) fields {
	row, _ := r.Get(key)
	if now.Sub(row.at).Abs() >= saidFor {
		return nil
	}
	return row.fields
}
