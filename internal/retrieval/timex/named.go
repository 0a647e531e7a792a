package timex

import (
	"strings"
	"time"
)

// named reads days by name: today, yesterday, the day before yesterday.
func (r *reader) named(i int, _ bool) (int, period) {
	for _, d := range [...]struct {
		phrases []string
		days    int
	}{
		{[]string{"day before yesterday", "позавчера"}, -2},
		{[]string{"day after tomorrow", "послезавтра"}, 2},
		{[]string{"yesterday", "вчера"}, -1},
		{[]string{"today", "сегодня"}, 0},
		{[]string{"tomorrow", "завтра"}, 1},
	} {
		if n := r.phrase(i, d.phrases...); n > 0 {
			return n, periodOf(r.today, day, d.days)
		}
	}
	switch w := r.word(i); {
	case w == "tonight":
		return 1, partOf(periodOf(r.today, day, 0), evening)
	case strings.HasPrefix(w, "вчерашн"):
		return 1, periodOf(r.today, day, -1)
	case strings.HasPrefix(w, "сегодняшн"):
		return 1, periodOf(r.today, day, 0)
	}
	return 0, period{}
}

// dayPart is a part of a day in hours from its start.
type dayPart struct{ from, to int }

var (
	morning   = dayPart{4, 12}
	afternoon = dayPart{12, 18}
	evening   = dayPart{17, 24}
	night     = dayPart{18, 30}
)

func partOf(p period, d dayPart) period {
	at := func(hours int) time.Time {
		y, m, day := p.from.Date()
		return time.Date(y, m, day, hours, 0, 0, 0, p.from.Location()) // by the clock where its hand moves
	}
	return period{from: at(d.from), to: at(d.to), grain: part}
}

func partNamed(word string) (dayPart, bool) {
	switch word {
	case "morning", "утром", "утро", "утра", "утром-то":
		return morning, true
	case "afternoon", "днем", "день", "дня":
		return afternoon, true
	case "evening", "вечером", "вечер", "вечера":
		return evening, true
	case "night", "ночью", "ночь", "ночи":
		return night, true
	}
	return dayPart{}, false
}

// dayPartAt reads "morning", "in the morning", "at night", "утром" behind a day.
func (r *reader) dayPartAt(i int) (int, dayPart) {
	n := r.phrase(i, "in the", "at", "during the")
	switch r.word(i + n) {
	case "день", "дня": // parts of a day behind "this" alone
		return 0, dayPart{}
	}
	if d, ok := partNamed(r.word(i + n)); ok {
		return n + 1, d
	}
	return 0, dayPart{}
}

// unit reads a unit of time.
func unit(word string) (grain, bool) {
	switch word {
	case "hour", "hours", "час", "часа", "часов", "часы":
		return hour, true
	case "day", "days", "день", "дня", "дней", "дни", "сутки", "суток":
		return day, true
	case "week", "weeks", "неделя", "неделю", "недели", "недель", "неделе", "неделей":
		return week, true
	case "month", "months", "месяц", "месяца", "месяцев", "месяце", "месяцы", "месяцем":
		return month, true
	case "year", "years", "год", "года", "лет", "году", "годом", "годы":
		return year, true
	}
	return 0, false
}

// ago reads "three days ago", "a week back", "год назад".
func (r *reader) agoAt(i int, _ bool) (int, period) {
	n, least, most := r.count(i)
	if n == 0 {
		least, most = 1, 1
	}
	switch r.word(i + n) {
	case "fortnight":
		if backward[r.word(i+n+1)] {
			return n + 2, r.vaguely(week, 2, 2)
		}
	case "полгода":
		if backward[r.word(i+n+1)] {
			return n + 2, r.vaguely(month, 6, 6)
		}
	}
	g, ok := unit(r.word(i + n))
	if !ok || !backward[r.word(i+n+1)] || n == 0 && r.word(i+n+1) != "назад" || most > limits[g] {
		return 0, period{}
	}
	if r.word(i+n+2) == "today" {
		n++
	}
	return n + 2, r.vaguely(g, least, most)
}

func (r *reader) vaguely(g grain, least, most int) period {
	p := hull(r.ago(g, most), r.ago(g, least))
	p.grain = g
	r.slack = max(r.slack, g)
	return p
}

var backward = words("ago back назад")

// limits keep dates within the calendar.
var limits = map[grain]int{hour: 9999, day: 9999, week: 5000, month: 1200, year: 500}
