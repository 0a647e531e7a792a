package timex

import (
	"strings"
	"time"

	"palimpsest/internal/lex"
)

// bounded reads a period with what bounds it: "between … and …", "since …".
func (r *reader) bounded(i int) (int, period) {
	if n, p := r.fromTo(i); n > 0 {
		return n, p
	}
	if r.word(i) == "from" {
		n, p := r.period(i + 1)
		if c := r.phrase(i+1+n, "onwards", "onward", "on"); n > 0 && c > 0 {
			return 1 + n + c, period{from: p.from}
		}
	}
	n, side := r.side(i)
	if n == 0 {
		return r.period(i)
	}
	c, p := r.period(i + n)
	if c == 0 {
		return 0, period{}
	}
	c += n
	switch side {
	case sinceIt:
		c += r.phrase(i+c, "on", "onwards", "onward")
		return c, period{from: p.from}
	case afterIt:
		return c, period{from: p.to}
	case beforeIt:
		return c, period{to: p.from}
	}
	return c, period{to: p.to}
}

type side uint8

const (
	sinceIt side = iota
	afterIt
	beforeIt
	untilIt
)

func (r *reader) side(i int) (int, side) {
	switch r.word(i) {
	case "since", "начиная":
		n := 1 + r.phrase(i+1, "с", "со")
		return n, sinceIt
	case "с", "со":
		return 1, sinceIt
	case "starting":
		if n := r.phrase(i+1, "from", "on", "in"); n > 0 {
			return 1 + n, sinceIt
		}
	case "after", "после":
		return 1, afterIt
	case "before", "prior", "до":
		return 1 + r.phrase(i+1, "to"), beforeIt
	case "until", "till", "til":
		return 1, untilIt
	case "up":
		return r.phrase(i, "up until", "up till", "up to"), untilIt
	case "вплоть":
		return r.phrase(i, "вплоть до"), untilIt
	case "по":
		return 1, untilIt
	}
	return 0, 0
}

// endpoint is one end of a range: a period, a mere day of a month, or now.
type endpoint struct {
	period
	bare int // the day of a month to be had from the other end
	now  bool
}

func (r *reader) endpoint(i int) (int, endpoint) {
	skip := r.phrase(i, "on", "in", "the beginning of", "the end of")
	if n := r.phrase(i, "now", "right now", "the present", "present", "сейчас", "сих пор", "сегодняшнего дня", "настоящего времени"); n > 0 {
		return n, endpoint{now: true}
	}
	if n, p := r.period(i + skip); n > 0 {
		return n + skip, endpoint{period: p}
	}
	the := r.phrase(i, "the")
	if n, d := r.dayNumber(i + the); n > 0 {
		return n + the, endpoint{bare: d}
	}
	if m, ok := lex.Month(r.word(i)); ok {
		p := r.begun(periodOf(time.Date(r.now.Year(), m, 1, 0, 0, 0, 0, r.now.Location()), month, 0))
		return 1, endpoint{period: p}
	}
	if y, ok := r.year(i); ok {
		return 1, endpoint{period: periodOf(time.Date(y, 1, 1, 0, 0, 0, 0, r.now.Location()), year, 0)}
	}
	return 0, endpoint{}
}

// fromTo reads "between … and …", "from … to …", "… through …", "May 8–12".
func (r *reader) fromTo(i int) (int, period) {
	opener := ""
	n := 0
	switch w := r.word(i); w {
	case "between", "from", "over", "during", "между", "с", "со", "от":
		opener, n = w, 1
	}
	c, a := r.endpoint(i + n)
	if c == 0 {
		return 0, period{}
	}
	n += c
	c = r.joint(i+n, opener)
	if c < 0 {
		return 0, period{}
	}
	d, b := r.endpoint(i + n + c)
	if d == 0 || a.now || a.bare > 0 && b.bare > 0 {
		return 0, period{}
	}
	if p, ok := r.span(a, b); ok {
		return n + c + d, p
	}
	return 0, period{}
}

// joint reads what joins two ends and returns its words, -1 if there is none; a
// dash has no word.
func (r *reader) joint(i int, opener string) int {
	switch r.gap(i - 1) {
	case "-", "–", "—", "--":
		return 0
	}
	switch r.word(i) {
	case "through", "thru", "until", "till", "til", "to", "по", "до":
		return 1
	case "up":
		if r.word(i+1) == "to" || r.word(i+1) == "until" {
			return 2
		}
	case "and", "и":
		if opener == "between" || opener == "между" {
			return 1
		}
	}
	return -1
}

// span is all from a to b.
func (r *reader) span(a, b endpoint) (period, bool) {
	switch {
	case b.now:
		return period{from: a.from, to: r.today.AddDate(0, 0, 1), grain: a.grain}, a.from.Before(r.now)
	case b.bare > 0:
		p, ok := r.sameMonth(a.period, b.bare)
		return period{from: a.from, to: p.to, grain: day}, ok && a.from.Before(p.to)
	case a.bare > 0:
		p, ok := r.sameMonth(b.period, a.bare)
		return period{from: p.from, to: b.to, grain: day}, ok && p.from.Before(b.to)
	}
	switch {
	case a.yearless && !b.yearless:
		a.period = a.moved(b.from.Year() - a.from.Year())
		if a.from.After(b.from) {
			a.period = a.moved(-1)
		}
	case b.yearless:
		b.period = b.moved(a.from.Year() - b.from.Year())
		if b.from.Before(a.from) {
			b.period = b.moved(1)
		}
	case a.weekday && a.from.After(b.from):
		if b.period = periodOf(b.from, day, 7); b.from.After(r.now) {
			a.period, b.period = periodOf(a.from, day, -7), periodOf(b.from, day, -7)
		}
	}
	return period{from: a.from, to: b.to, grain: max(a.grain, b.grain)}, a.from.Before(b.to)
}

func (r *reader) sameMonth(p period, d int) (period, bool) {
	if p.grain != day {
		return period{}, false
	}
	return date(p.from.Year(), p.from.Month(), d, p.from.Location())
}

// partOfPeriod reads "early May", "the end of last year", "в начале мая", "the
// week of May 8th", "the first week of June".
func (r *reader) partOfPeriod(i int, _ bool) (int, period) {
	if n := r.phrase(i, "week of", "week beginning", "week starting", "неделя", "неделю", "неделе"); n > 0 {
		if c, p := r.period(i + n); c > 0 && p.grain <= day {
			return n + c, periodOf(p.from, week, 0)
		}
	}
	if n, k := r.ordinal(i); n > 0 && k <= 5 && r.phrase(i+n, "week of") > 0 {
		if c, p := r.period(i + n + 2); c > 0 && p.grain == month {
			from := p.from.AddDate(0, 0, 7*(k-1))
			return n + 2 + c, period{from: from, to: from.AddDate(0, 0, 7), grain: week}
		}
	}
	n, third := r.third(i)
	if n == 0 {
		return 0, period{}
	}
	c, p := r.period(i + n)
	if c == 0 || p.grain < week || p.to.IsZero() {
		return 0, period{}
	}
	step := p.to.Sub(p.from) / 3
	from := start(p.from.Add(time.Duration(third)*step), day)
	to := start(p.from.Add(time.Duration(third+1)*step), day)
	if third == 2 {
		to = p.to
	}
	return n + c, period{from: from, to: to, grain: week}
}

func (r *reader) third(i int) (n, third int) {
	if r.word(i) == "the" {
		i++
		n++
	}
	switch w := r.word(i); {
	case w == "early":
		return n + 1, 0
	case w == "mid" || w == "middle" && r.word(i+1) != "of":
		return n + 1, 1
	case w == "late":
		return n + 1, 2
	case strings.HasPrefix(w, "начал") && len(w) <= len("начале"):
		return n + 1, 0
	case strings.HasPrefix(w, "середин"):
		return n + 1, 1
	case w == "конце" || w == "конец" || w == "конца":
		return n + 1, 2
	}
	for third, phrases := range [...][]string{{"beginning of", "start of"}, {"middle of"}, {"end of"}} {
		if c := r.phrase(i, phrases...); c > 0 {
			return n + c, third
		}
	}
	return 0, 0
}

// weekdayAt reads a day of the week, the newest before today, and what of a date
// may follow it ("Monday, May 8th").
func (r *reader) weekdayAt(i int, _ bool) (int, period) {
	word := r.word(i)
	d, ok := lex.Weekday(word)
	if !ok || plural(word) {
		return 0, period{}
	}
	if len(word) < len("friday") && !r.tokens[i].capital {
		return 0, period{} // "sat" and "sun" are words
	}
	for skip := range 2 {
		if skip == 1 && r.word(i+1) != "the" {
			break
		}
		if n, p := r.dayMonth(i + 1 + skip); n > 0 {
			return 1 + skip + n, p
		}
		if n, p := r.monthDay(i + 1 + skip); n > 0 {
			return 1 + skip + n, p
		}
	}
	return 1, r.weekdayBack(d, 0)
}

// weekendAt reads "over the weekend", "на выходных": that of this week if it has
// begun, else the last one.
func (r *reader) weekendAt(i int, _ bool) (int, period) {
	switch r.word(i) {
	case "weekend", "выходных", "выходные":
		if !r.led(i) && r.word(i-1) != "on" && r.word(i-1) != "at" && r.word(i-2) != "at" && r.word(i-1) != "на" {
			return 0, period{}
		}
	default:
		return 0, period{}
	}
	p := r.weekend(which{})
	if p.from.After(r.now) {
		p = r.weekend(which{n: -1})
	}
	return 1, p
}
