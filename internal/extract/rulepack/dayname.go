package rulepack

import (
	"slices"
	"time"
)

// weekday reads "Friday night", "Friday the 27th", "Friday, December 4".
func (cal *Calendar) weekday(word func(int) string, today time.Time, day time.Weekday, dir int) (n int, at time.Time, ok bool) {
	if d, ok := dayOf(word(2)); ok && word(1) == "the" && !digits(word(2)) && word(3) != "of" {
		return 3, monthday(today, d, dir), true
	}
	for _, skip := range [...]int{1, 2} {
		if skip == 2 && word(1) != "," && word(1) != "the" {
			break
		}
		if n, at, ok := cal.monthly(func(i int) string { return word(i + skip) }, today, dir, true); ok {
			return n + skip, at, true
		}
	}
	return cal.daytime(1, word), nextWeekday(today, day, dir), true
}

// daytime is n with the part of a day that may follow.
func (cal *Calendar) daytime(n int, word func(int) string) int {
	if slices.Contains(cal.Parts, word(n)) {
		return n + 1
	}
	return n
}

// season reads "summer", "summer of 2021", "spring 2019".
func (cal *Calendar) season(word func(int) string, today time.Time, dir int) (n int, at time.Time, ok bool) {
	month, ok := cal.Seasons[word(0)]
	if !ok {
		return 0, time.Time{}, false
	}
	n = 1
	if word(1) == "of" {
		n = 2
	}
	if y, ok := year(word(n)); ok {
		return n + 1, time.Date(y, time.Month(month), 1, 0, 0, 0, 0, today.Location()), true
	}
	at = time.Date(today.Year(), time.Month(month), 1, 0, 0, 0, 0, today.Location())
	return 1, onSide(at, today, dir), n == 1
}

// feast reads the name of a day that has a date of its own: "Christmas 2023".
func (cal *Calendar) feast(md string, word func(int) string, today time.Time, dir int) (n int, at time.Time, ok bool) {
	day, err := time.Parse("01-02", md)
	if err != nil {
		return 0, time.Time{}, false
	}
	n = 1
	if word(1) == "day" || word(1) == "eve" {
		n = 2
	}
	if word(1) == "eve" {
		day = day.AddDate(0, 0, -1)
	}
	y, named := year(word(n))
	if named {
		return n + 1, time.Date(y, day.Month(), day.Day(), 0, 0, 0, 0, today.Location()), true
	}
	return n, onSide(time.Date(today.Year(), day.Month(), day.Day(), 0, 0, 0, 0, today.Location()), today, dir), true
}
