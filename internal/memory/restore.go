package memory

import (
	"time"

	"palimpsest/pkg/events"
)

// Restored is a closed or archived fact as it was before, brought back at an instant. An
// end of its own counts where it is still ahead then.
func Restored(f events.Fact, at time.Time) events.Fact {
	if f.ArchivedAt != nil && f.OwnEnd == nil {
		f.OwnEnd = f.ValidUntil // archiving leaves the end where it is
	}
	f.ValidUntil, f.OwnEnd, f.ArchivedAt, f.SupersededBy = f.OwnEnd, nil, nil, ""
	if f.ValidUntil != nil && !f.ValidUntil.After(at) {
		f.ValidUntil = nil
	}
	f.RestoredAt = &at
	return f
}

// StatedAt is when it was last said that a fact holds: at its event time, or when a
// caller brought it back, whichever is later.
func StatedAt(f events.Fact) time.Time {
	if f.RestoredAt != nil && f.RestoredAt.After(f.EventTime) {
		return *f.RestoredAt
	}
	return f.EventTime
}
