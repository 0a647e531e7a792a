package timex

import "time"

// grain is the precision of a period.
type grain uint8

const (
	hour grain = iota + 1
	part       // of a day
	day
	week
	month
	season
	year
)

// period is a stretch of time as a question names it.
type period struct {
	from, to time.Time
	grain    grain
	// yearless says that the question gives no year: the period is the latest that
	// has begun.
	yearless bool
	// fixed says that the question gives the year.
	fixed bool
	// weekday says that the question names a day of the week, counted from now.
	weekday bool
}

func (p period) valid() bool { return p.from.Before(p.to) && p.from.Year() >= 1 && p.to.Year() <= 9999 }

// start is the first moment of t's period.
func start(t time.Time, g grain) time.Time {
	y, m, d := t.Date()
	switch g {
	case hour:
		return t.Truncate(time.Hour)
	case week:
		d -= (int(t.Weekday()) + 6) % 7 // weeks begin on Monday (ISO 8601)
	case month:
		d = 1
	case season:
		m, d = m-m%3, 1 // meteorological, of the northern hemisphere
	case year:
		m, d = time.January, 1
	}
	return time.Date(y, m, d, 0, 0, 0, 0, t.Location())
}

// shift moves t by n periods.
func shift(t time.Time, g grain, n int) time.Time {
	switch g {
	case hour:
		return t.Add(time.Duration(n) * time.Hour)
	case week:
		return t.AddDate(0, 0, 7*n)
	case month:
		return t.AddDate(0, n, 0)
	case season:
		return t.AddDate(0, 3*n, 0)
	case year:
		return t.AddDate(n, 0, 0)
	}
	return t.AddDate(0, 0, n)
}

// periodOf is the whole period n after (before, if negative) that of t.
func periodOf(t time.Time, g grain, n int) period {
	from := shift(start(t, g), g, n)
	return period{from: from, to: shift(from, g, 1), grain: g}
}

// ago is the period n before now: a calendar day, month or year, for weeks and
// hours the time about then.
func (r *reader) ago(g grain, n int) period {
	p := periodOf(r.now, g, -n)
	switch g {
	case hour:
		at := shift(r.now, hour, -n)
		return period{from: at.Add(-30 * time.Minute), to: at.Add(30 * time.Minute), grain: hour}
	case week:
		at := shift(r.today, week, -n)
		return period{from: at.AddDate(0, 0, -3), to: at.AddDate(0, 0, 4), grain: week}
	}
	return p
}

// date is a day of the calendar, false if there is none such.
func date(y int, m time.Month, d int, in *time.Location) (period, bool) {
	from := time.Date(y, m, d, 0, 0, 0, 0, in)
	return period{from: from, to: from.AddDate(0, 0, 1), grain: day}, from.Month() == m && from.Day() == d && y >= 1
}

// latest is the newest such day that has begun.
func (r *reader) latest(m time.Month, d int) (period, bool) {
	for y := r.now.Year(); y > r.now.Year()-9; y-- { // 29 February may be eight years back
		if p, ok := date(y, m, d, r.now.Location()); ok && !p.from.After(r.now) {
			p.yearless = true
			return p, true
		}
	}
	return period{}, false
}

// moved is p by n years, for a period without a year.
func (p period) moved(n int) period {
	p.from, p.to = p.from.AddDate(n, 0, 0), p.to.AddDate(n, 0, 0)
	return p
}

// weekdayBack is the newest such day before today, less n weeks.
func (r *reader) weekdayBack(d time.Weekday, n int) period {
	back := (int(r.today.Weekday()) - int(d) + 7) % 7
	if back == 0 {
		back = 7
	}
	p := periodOf(r.today.AddDate(0, 0, -back-7*n), day, 0)
	p.weekday = true
	return p
}

// isoWeek is a week by its number of the year (ISO 8601).
func isoWeek(y, n int, in *time.Location) (period, bool) {
	if n < 1 || n > 53 {
		return period{}, false
	}
	fourth := time.Date(y, time.January, 4, 0, 0, 0, 0, in) // in week 1 of every year
	p := periodOf(fourth, week, n-1)
	got, _ := p.from.ISOWeek()
	return p, got == y
}

// hull covers both; a zero bound is open.
func hull(a, b period) period {
	if b.from.Before(a.from) {
		a.from = b.from
	}
	if b.to.IsZero() || !a.to.IsZero() && b.to.After(a.to) {
		a.to = b.to
	}
	a.grain = max(a.grain, b.grain)
	return a
}
