package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Schedule is a cron expression on the wall clock of a location. Every time
// that it names comes once a day, also on the days when the clock is changed:
// one that the clock skips fires at the moment of the change, one that it
// passes twice fires the first time.
type Schedule struct {
	spec cron.Schedule // reads wall clock times written as if they were UTC
	loc  *time.Location
}

// ParseCron reads a five-field cron expression on the wall clock of loc; nil means UTC. It refuses
// one that never fires.
func ParseCron(expr string, loc *time.Location) (*Schedule, error) {
	if strings.Contains(expr, "TZ=") {
		return nil, fmt.Errorf("cron %q: name the time zone by tz, not in the expression", expr)
	}
	// The parser takes an empty list for one that no time matches.
	for _, field := range strings.Fields(expr) {
		if slices.Contains(strings.Split(field, ","), "") {
			return nil, fmt.Errorf("cron %q: %q has an empty member", expr, field)
		}
	}
	spec, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(expr)
	if err != nil {
		return nil, fmt.Errorf("cron %q: %w", expr, err)
	}
	if s, ok := spec.(*cron.SpecSchedule); ok {
		s.Location = time.UTC
	}
	if loc == nil {
		loc = time.UTC
	}
	if spec.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("cron %q: never fires", expr)
	}
	return &Schedule{spec: spec, loc: loc}, nil
}

// After returns the first fire later than t. [Schedule.instant] is monotone and
// takes t's own wall clock time to t or earlier, so the search can begin there.
func (s *Schedule) After(t time.Time) time.Time {
	for wall := s.wall(t); ; {
		if wall = s.spec.Next(wall); wall.IsZero() {
			return time.Time{}
		}
		if at := s.instant(wall); at.After(t) {
			return at
		}
	}
}

// horizons are how far [Schedule.Last] looks back, so that a schedule of
// minutes is not walked through years.
var horizons = [...]time.Duration{time.Hour, 25 * time.Hour, 8 * 24 * time.Hour, 32 * 24 * time.Hour, 367 * 24 * time.Hour, 8 * 366 * 24 * time.Hour}

// Last returns the newest fire at or before now, the zero time if there was
// none in eight years.
func (s *Schedule) Last(now time.Time) time.Time {
	for _, h := range horizons {
		var newest time.Time
		for at := s.After(now.Add(-h)); !at.IsZero() && !at.After(now); at = s.After(at) {
			newest = at
		}
		if !newest.IsZero() {
			return newest
		}
	}
	return time.Time{}
}

// wall writes the wall clock's time at t as if it were UTC.
func (s *Schedule) wall(t time.Time) time.Time {
	t = t.In(s.loc)
	_, offset := t.Zone()
	return t.Add(time.Duration(offset) * time.Second).UTC()
}

// instant is the inverse of wall: the first instant at which the wall clock
// shows that time or, where it skips it, a later one.
func (s *Schedule) instant(wall time.Time) time.Time {
	at := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, s.loc)
	start, end := at.ZoneBounds()
	switch shown := s.wall(at); {
	case shown.After(wall): // skipped, and at is behind the change
		return start.UTC()
	case shown.Before(wall): // skipped, and at is before it
		return end.UTC()
	}
	if !start.IsZero() {
		_, offset := start.Add(-time.Second).Zone()
		if first := wall.Add(-time.Duration(offset) * time.Second); first.Before(start) {
			return first
		}
	}
	return at.UTC()
}
