package timex

import (
	"strings"
	"time"

	"palimpsest/internal/lex"
)

// which is a determiner: last, this, next.
type which struct {
	n int // periods from that of now
	// rolling says that the period ends now ("the past week") where it is not one
	// of the calendar ("last week").
	rolling bool
}

func (r *reader) which(i int, definite bool) (int, which) {
	if n := r.phrase(i, "this past", "this last", "these past", "these last"); n > 0 {
		return n, which{-1, true}
	}
	w := r.word(i)
	switch w {
	case "last", "latest":
		return 1, which{-1, definite}
	case "past":
		return 1, which{-1, true}
	case "previous", "prior":
		return 1, which{-1, false}
	case "this", "current", "этот", "эта", "это", "этой", "этом", "эту", "этого", "эти", "этих", "этим":
		return 1, which{0, false}
	case "next", "coming", "upcoming":
		return 1, which{1, false}
	}
	for _, d := range [...]struct {
		stem string
		is   which
	}{
		{"позапрошл", which{-2, false}}, {"прошл", which{-1, false}}, {"предыдущ", which{-1, false}},
		{"последн", which{-1, true}}, {"текущ", which{}}, {"нынешн", which{}},
		{"следующ", which{1, false}}, {"будущ", which{1, false}},
	} {
		if strings.HasPrefix(w, d.stem) {
			return 1, d.is
		}
	}
	return 0, which{}
}

// relative reads "last week", "the past 3 days", "this morning", "next Friday".
func (r *reader) relative(i int, definite bool) (int, period) {
	if p, n := r.beforeLast(i); n > 0 {
		return n, p
	}
	n, w := r.which(i, definite)
	if n == 0 {
		return 0, period{}
	}
	if c, _, most := r.count(i + n); c > 0 {
		if g, ok := unit(r.word(i + n + c)); ok && most <= limits[g] {
			return n + c + 1, r.rolling(g, most, w.n)
		}
		return 0, period{}
	}
	word := r.word(i + n)
	if g, ok := unit(word); ok && !(g == day && w.n == 0) {
		if w.rolling || g <= day {
			return n + 1, r.rolling(g, 1, w.n)
		}
		return n + 1, periodOf(r.now, g, w.n)
	}
	p, ok := r.relativeTo(word, w)
	if !ok {
		return 0, period{}
	}
	return n + 1, p
}

// rolling is the n units up to now, or from now on.
func (r *reader) rolling(g grain, n, direction int) period {
	if direction > 0 {
		return period{from: r.now, to: shift(r.today, g, n).AddDate(0, 0, 1), grain: g}
	}
	if g == hour {
		return period{from: shift(r.now, hour, -n), to: r.now.Add(time.Minute), grain: g}
	}
	return period{from: shift(r.today, g, -n), to: r.today.AddDate(0, 0, 1), grain: g}
}

// relativeTo returns the last, this or next period of a name, such as a weekday, a
// month or a season.
func (r *reader) relativeTo(word string, w which) (period, bool) {
	if d, ok := lex.Weekday(word); ok && !plural(word) {
		switch {
		case w.n < 0:
			return r.weekdayBack(d, -1-w.n), true
		case w.n == 0:
			return weekdayOf(periodOf(r.now, week, 0), d), true
		}
		p := r.weekdayBack(d, -1)
		if !p.from.After(r.today) {
			p = r.weekdayBack(d, -2)
		}
		return p, true
	}
	if m, ok := lex.Month(word); ok {
		return r.nearby(periodOf(time.Date(r.now.Year(), m, 1, 0, 0, 0, 0, r.now.Location()), month, 0), w), true
	}
	if m, ok := seasonNamed(word); ok {
		return r.nearby(periodOf(time.Date(r.now.Year(), m, 1, 0, 0, 0, 0, r.now.Location()), season, 0), w), true
	}
	if d, ok := partNamed(word); ok {
		if w.n < 0 {
			return partOf(periodOf(r.today, day, -1), d), true
		}
		return partOf(periodOf(r.today, day, w.n), d), true
	}
	switch word {
	case "weekend", "weekends", "выходные", "выходных":
		return r.weekend(w), true
	case "quarter", "квартал", "квартале", "квартала":
		first := start(r.now, month)
		first = shift(first, month, -(int(first.Month())-1)%3+3*w.n)
		return period{from: first, to: shift(first, month, 3), grain: season}, true
	}
	return period{}, false
}

// nearby takes a period of this year to the last, this or next one. The last has
// ended.
func (r *reader) nearby(p period, w which) period {
	for w.n < 0 && p.to.After(r.now) {
		p = p.moved(-1)
	}
	for w.n > 0 && !p.from.After(r.now) {
		p = p.moved(1)
	}
	if w.n < -1 {
		p = p.moved(w.n + 1)
	}
	return p
}

// weekend is Saturday and Sunday; the last one is over or, on a weekday, the one
// just past.
func (r *reader) weekend(w which) period {
	p := periodOf(r.now, week, w.n)
	p.from = p.from.AddDate(0, 0, 5)
	p.grain = week
	return p
}

func weekdayOf(w period, d time.Weekday) period {
	return periodOf(w.from.AddDate(0, 0, (int(d)+6)%7), day, 0)
}

// beforeLast reads "week before last", "Friday before last".
func (r *reader) beforeLast(i int) (period, int) {
	if r.phrase(i+1, "before last") == 0 {
		return period{}, 0
	}
	if g, ok := unit(r.word(i)); ok && g >= week {
		return periodOf(r.now, g, -2), 3
	}
	if d, ok := lex.Weekday(r.word(i)); ok {
		return r.weekdayBack(d, 1), 3
	}
	if r.word(i) == "weekend" {
		return r.weekend(which{n: -2}), 3
	}
	return period{}, 0
}

func plural(weekday string) bool {
	return strings.HasSuffix(weekday, "days") || strings.HasSuffix(weekday, "ам")
}

// seasonNamed gives the first month of a season.
func seasonNamed(word string) (time.Month, bool) {
	switch word {
	case "winter", "зимой", "зима", "зиму", "зимы":
		return time.December, true
	case "spring", "весной", "весна", "весну", "весны":
		return time.March, true
	case "summer", "летом", "лето", "лета":
		return time.June, true
	case "autumn", "fall", "осенью", "осень", "осени":
		return time.September, true
	}
	return 0, false
}
