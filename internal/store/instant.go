package store

import (
	"time"

	"palimpsest/pkg/events"
)

// WholeMicros brings a fact's instants to UTC and whole microseconds, which is
// what a backend keeps: columns and body must never disagree about them.
func WholeMicros(f events.Fact) events.Fact {
	for _, t := range []*time.Time{&f.EventTime, &f.CreatedAt, &f.UpdatedAt, &f.ValidFrom} {
		*t = InOffset(t.UnixMicro(), 0)
	}
	for _, t := range []**time.Time{&f.ValidUntil, &f.ArchivedAt, &f.OwnEnd, &f.RestoredAt} {
		if *t != nil {
			whole := InOffset((*t).UnixMicro(), 0)
			*t = &whole
		}
	}
	return f
}

// CeilMicros is the first whole microsecond that is not before t: an exclusive
// upper bound for instants of whole microseconds.
func CeilMicros(t time.Time) int64 {
	us := t.UnixMicro()
	if t.Nanosecond()%1000 != 0 {
		us++
	}
	return us
}

// InOffset is the instant of us microseconds since 1970 in an offset from UTC, in
// seconds.
func InOffset(us int64, offset int) time.Time {
	t := time.UnixMicro(us).UTC()
	if offset == 0 {
		return t
	}
	return t.In(time.FixedZone("", offset))
}
