package decide

import (
	"testing"
	"time"

	"palimpsest/pkg/events"
)

func TestBreaker(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	at := func(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }
	// changed is revision n of a fact that became known a day before, decided
	// and said at a minute.
	changed := func(n, minute int) events.Fact {
		return events.Fact{ID: "f", Revision: uint64(n), CreatedAt: noon.AddDate(0, 0, -1), UpdatedAt: at(minute), EventTime: at(minute)}
	}
	known := changed(1, -24*60)
	closed := changed(4, 3)
	closed.EventTime, closed.ValidUntil = known.EventTime, &closed.UpdatedAt
	past := closed
	past.ID, past.Revision = "g", 1
	long := at(-600)
	for name, tt := range map[string]struct {
		versions []events.Fact
		said, at int       // minutes
		due      time.Time // zero where there is room
	}{
		"too few":                 {[]events.Fact{known, changed(2, 1), changed(3, 2)}, 10, 10, time.Time{}},
		"full":                    {[]events.Fact{known, changed(2, 1), changed(3, 2), changed(4, 3)}, 10, 10, at(61)},
		"more than full":          {[]events.Fact{changed(5, 9), known, changed(2, 1), changed(3, 2), changed(4, 3)}, 10, 10, at(62)},
		"one has left the window": {[]events.Fact{known, changed(2, 1), changed(3, 2), changed(4, 3)}, 61, 61, time.Time{}},
		"becoming known":          {[]events.Fact{changed(1, 0), changed(2, 1), changed(3, 2)}, 10, 10, time.Time{}},
		"closing":                 {[]events.Fact{known, changed(2, 1), changed(3, 2), closed}, 10, 10, at(61)},
		"history":                 {[]events.Fact{known, changed(2, 1), changed(3, 2), past}, 10, 10, time.Time{}},
		"said long ago":           {[]events.Fact{known, changed(2, 1), changed(3, 2), changed(4, 3)}, -600, 10, time.Time{}},
		"a clock that was ahead":  {[]events.Fact{known, changed(2, 601), changed(3, 602), changed(4, 603)}, 10, 10, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			due, full := Breaker{Limit: 3, Window: time.Hour}.Full(tt.versions, at(tt.said), at(tt.at))
			if full == tt.due.IsZero() || !due.Equal(tt.due) {
				t.Errorf("full %v, due %v, want %v", full, due, tt.due)
			}
		})
	}
	if _, full := (Breaker{}).Full([]events.Fact{known, closed}, long, noon); full {
		t.Error("the zero breaker trips")
	}
}
