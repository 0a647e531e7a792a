package store

import "time"

// late is the age of a fact from which a store treats it as put back.
const late = time.Hour

// PutBack returns when a store counts a fact as accessed that it gets long after the fact
// was created: it holds what another store lost, or an import brought. A nil clock is that
// of the system.
func PutBack(now func() time.Time) func() time.Time {
	if now == nil {
		now = time.Now
	}
	return func() time.Time { return now().Add(-late) }
}
