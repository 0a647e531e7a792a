package timex

import (
	"strings"
	"time"

	"palimpsest/internal/lex"
)

// leads may stand before a month, a season or a year that is no name or number of
// anything else then.
var leads = words("in since until till before after during of over early mid late throughout " +
	"в во с со до после к за на по весь всю начале середине конце начала конца")

func (r *reader) led(i int) bool {
	switch r.word(i - 1) {
	case "and", "or", "и", "или":
		_, ok := lex.Month(r.word(i - 2))
		return ok
	}
	return leads[r.word(i-1)] || r.word(i-1) == "the" && leads[r.word(i-2)]
}

// dated reads a day, month or year of the calendar.
func (r *reader) dated(i int, definite bool) (int, period) {
	for _, read := range [...]func(int) (int, period){r.numeric, r.isoWeekAt, r.dayMonth, r.monthDay, r.monthAt, r.seasonAt, r.yearAt} {
		if n, p := read(i); n > 0 {
			return n, p
		}
	}
	return r.dayOfMonth(i, definite)
}

// year reads four digits of our times.
func (r *reader) year(i int) (int, bool) {
	w := r.word(i)
	if len(w) != 4 || w[0] != '1' && w[0] != '2' {
		return 0, false
	}
	y, ok := lex.Number(w)
	return y, ok && y >= 1900 && y < 2200
}

// yearBehind reads the year of a date: "2023", ", 2023", "of 2023", "2023 года".
func (r *reader) yearBehind(i int) (n, y int) {
	n = r.phrase(i, "of", "in")
	y, ok := r.year(i + n)
	if !ok || strings.Contains(r.gap(i-1), "?") {
		return 0, 0
	}
	n++
	switch r.word(i + n) {
	case "года", "году", "год", "г":
		n++
	}
	return n, y
}

// dayNumber reads the day of a date.
func (r *reader) dayNumber(i int) (n, d int) {
	if n, d = r.ordinal(i); n == 0 {
		if v, ok := digits(r.word(i)); ok {
			n, d = 1, v
		}
	}
	if d < 1 || d > 31 {
		return 0, 0
	}
	return n, d
}

// dayMonth reads "8 May 2023", "8th of May", "восьмого мая".
func (r *reader) dayMonth(i int) (int, period) {
	n, d := r.dayNumber(i)
	if n == 0 {
		return 0, period{}
	}
	n += r.phrase(i+n, "of")
	m, ok := lex.Month(r.word(i + n))
	if !ok {
		return 0, period{}
	}
	return r.complete(i, n+1, m, d)
}

// monthDay reads "May 8th, 2023", "May the 8th".
func (r *reader) monthDay(i int) (int, period) {
	m, ok := lex.Month(r.word(i))
	if !ok {
		return 0, period{}
	}
	n := 1 + r.phrase(i+1, "the")
	c, d := r.dayNumber(i + n)
	if c == 0 {
		return 0, period{}
	}
	return r.complete(i, n+c, m, d)
}

// complete adds the year to a day of a month.
func (r *reader) complete(i, n int, m time.Month, d int) (int, period) {
	if c, y := r.yearBehind(i + n); c > 0 {
		p, ok := date(y, m, d, r.now.Location())
		p.fixed = true
		return (n + c) * one(ok), p
	}
	p, ok := r.latest(m, d)
	if !ok {
		return 0, period{}
	}
	return n, p
}

// monthAt reads "May 2023", and a month alone where a preposition makes it one:
// May, March and August are other words too.
func (r *reader) monthAt(i int) (int, period) {
	m, ok := lex.Month(r.word(i))
	if !ok {
		return 0, period{}
	}
	if c, y := r.yearBehind(i + 1); c > 0 {
		p := periodOf(time.Date(y, m, 1, 0, 0, 0, 0, r.now.Location()), month, 0)
		p.fixed = true
		return 1 + c, p
	}
	if !r.led(i) {
		return 0, period{}
	}
	p := periodOf(time.Date(r.now.Year(), m, 1, 0, 0, 0, 0, r.now.Location()), month, 0)
	return 1, r.begun(p)
}

// begun is the latest such period that has begun.
func (r *reader) begun(p period) period {
	if p.from.After(r.now) {
		p = p.moved(-1)
	}
	p.yearless = true
	return p
}

// seasonAt reads "in the summer", "summer of 2022", "летом".
func (r *reader) seasonAt(i int) (int, period) {
	m, ok := seasonNamed(r.word(i))
	if !ok {
		return 0, period{}
	}
	if c, y := r.yearBehind(i + 1); c > 0 {
		return 1 + c, periodOf(time.Date(y, m, 1, 0, 0, 0, 0, r.now.Location()), season, 0)
	}
	switch r.word(i) {
	case "летом", "зимой", "осенью", "весной":
	default:
		if !r.led(i) {
			return 0, period{}
		}
	}
	return 1, r.begun(periodOf(time.Date(r.now.Year(), m, 1, 0, 0, 0, 0, r.now.Location()), season, 0))
}

// yearAt reads "in 2023", "2023 год".
func (r *reader) yearAt(i int) (int, period) {
	n := r.phrase(i, "year")
	y, ok := r.year(i + n)
	if !ok {
		return 0, period{}
	}
	at := i + n
	suffix := 0
	if r.gap(at) == "-" && (r.word(at+1) == "м" || r.word(at+1) == "го") {
		suffix++
	}
	switch r.word(at + suffix + 1) {
	case "года", "году", "год", "годом", "г":
		suffix++
	}
	if n == 0 && suffix == 0 && !r.led(i) {
		return 0, period{}
	}
	return n + 1 + suffix, periodOf(time.Date(y, 1, 1, 0, 0, 0, 0, r.now.Location()), year, 0)
}

// numeric reads 2023-05-08, 2023/05/08, 08.05.2023, 5/8/2023 (month first, as far
// as there is such a month) and 2023-05.
func (r *reader) numeric(i int) (int, period) {
	if parts := strings.Split(r.word(i), "."); len(parts) == 3 && len(parts[2]) == 4 {
		d, okD := digits(parts[0])
		m, okM := digits(parts[1])
		y, okY := lex.Number(parts[2])
		p, ok := date(y, time.Month(m), d, r.now.Location())
		return one(okD && okM && okY && ok), p
	}
	a, okA := lex.Number(r.word(i))
	b, okB := lex.Number(r.word(i + 1))
	c, okC := lex.Number(r.word(i + 2))
	sep := r.gap(i)
	if !okA || !okB || sep != "-" && sep != "/" || len(r.word(i+1)) > 2 {
		return 0, period{}
	}
	if _, ok := r.year(i); ok {
		if okC && r.gap(i+1) == sep {
			p, ok := date(a, time.Month(b), c, r.now.Location())
			return 3 * one(ok), p
		}
		p := periodOf(time.Date(a, time.Month(b), 1, 0, 0, 0, 0, r.now.Location()), month, 0)
		return 2 * one(b >= 1 && b <= 12 && len(r.word(i+1)) == 2), p
	}
	if _, ok := r.year(i + 2); !ok || !okC || r.gap(i+1) != sep {
		return 0, period{}
	}
	if a > 12 {
		a, b = b, a
	}
	p, ok := date(c, time.Month(a), b, r.now.Location())
	return 3 * one(ok), p
}

func one(ok bool) int {
	if ok {
		return 1
	}
	return 0
}

// isoWeekAt reads 2023-W19, W19, "week 19 of 2023", "calendar week 19".
func (r *reader) isoWeekAt(i int) (int, period) {
	if y, ok := r.year(i); ok && r.gap(i) == "-" {
		if w, ok := weekNumber(r.word(i + 1)); ok {
			p, ok := isoWeek(y, w, r.now.Location())
			return 2 * one(ok), p
		}
	}
	if y, w, ok := strings.Cut(r.word(i), "w"); ok && len(y) == 4 {
		if y, ok := lex.Number(y); ok {
			n, _ := lex.Number(w)
			p, ok := isoWeek(y, n, r.now.Location())
			return one(ok), p
		}
	}
	n := r.phrase(i, "calendar week", "iso week", "week", "неделя", "неделю", "неделе", "недели")
	named := n == 2
	w, ok := digits(r.word(i + n))
	if !ok || n == 0 {
		w, ok = weekNumber(r.word(i))
		n, named = 0, ok && r.tokens[i].capital
	}
	if !ok {
		return 0, period{}
	}
	if c, y := r.yearBehind(i + n + 1); c > 0 {
		p, ok := isoWeek(y, w, r.now.Location())
		return (n + 1 + c) * one(ok), p
	}
	p, ok := isoWeek(r.now.Year(), w, r.now.Location())
	if ok && p.from.After(r.now) {
		p, ok = isoWeek(r.now.Year()-1, w, r.now.Location())
	}
	return (n + 1) * one(ok && named), p
}

// weekNumber reads w19.
func weekNumber(word string) (int, bool) {
	number, ok := strings.CutPrefix(word, "w")
	if !ok || len(number) != 2 {
		return 0, false
	}
	return digits(number)
}

// dayOfMonth reads "the 8th" where nothing follows that it could count, and
// "8-го числа".
func (r *reader) dayOfMonth(i int, definite bool) (int, period) {
	n, d := r.ordinal(i)
	if n == 0 || d > 31 {
		return 0, period{}
	}
	end := r.word(i+n) == "" || strings.ContainsAny(r.gap(i+n-1), ".,?!")
	switch {
	case r.word(i+n) == "числа":
		n++
	case definite && end && r.word(i-2) == "on":
	default:
		return 0, period{}
	}
	for back := range 12 {
		first := shift(start(r.now, month), month, -back)
		if p, ok := date(first.Year(), first.Month(), d, r.now.Location()); ok && !p.from.After(r.now) {
			return n, p
		}
	}
	return 0, period{}
}
