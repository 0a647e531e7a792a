package grammar

import (
	"slices"
	"strings"
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

// day reads the day of a month: "14", "14th", "fourteenth".
func (cal *Calendar) day(word string) (int, bool) {
	if d, ok := cal.Ordinals[word]; ok {
		return d, true
	}
	return dayOf(word)
}

// repeats reports whether a word names a time that comes again after "every".
func (cal *Calendar) repeats(word string) bool {
	_, weekday := cal.Weekdays[word]
	return weekday || cal.Seasons[word] > 0 || cal.Months[word] > 0
}

// clock is how many tokens tell the time of day: "at half past ten", "at 6:40".
func (lx *Grammar) clock(ts []Token) int {
	cal := &lx.Calendar
	n := 0
	if len(ts) > 1 && slices.Contains(cal.Clock, ts[0].Low) {
		n = 1
	}
	from := n
	for n < len(ts) && n < from+5 && !ts[n].Quoted && (slices.Contains(cal.Hours, ts[n].Low) || lx.IsNumber(ts[n].Low) && (from > 0 || n == 0 && clocked(ts[n].Low))) {
		n++
	}
	if n == from {
		return 0
	}
	return n
}

// clocked reports whether a word is a time of day by itself: "6:40", "3pm".
func clocked(word string) bool {
	return Digit(word) && (strings.Contains(word, ":") || strings.HasSuffix(word, "am") || strings.HasSuffix(word, "pm"))
}

// ends reports whether nothing that a day of a month could belong to follows: "the 2nd
// grade".
func (lx *Grammar) ends(ts []Token) bool {
	return len(ts) == 0 || !ts[0].Word || lx.Is(ts[0], And|Joint|Preposition|Tail) || lx.clock(ts) > 0
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

// feast reads the name of a day that has a date of its own: "Christmas 2023". The name
// has n words.
func (cal *Calendar) feast(md string, n int, word func(int) string, today time.Time, dir int) (end int, at time.Time, ok bool) {
	day, err := time.Parse("01-02", md)
	if err != nil {
		return 0, time.Time{}, false
	}
	switch word(n) {
	case "eve":
		day = day.AddDate(0, 0, -1)
		n++
	case "day":
		n++
	}
	y, named := year(word(n))
	if named {
		return n + 1, time.Date(y, day.Month(), day.Day(), 0, 0, 0, 0, today.Location()), true
	}
	return n, onSide(time.Date(today.Year(), day.Month(), day.Day(), 0, 0, 0, 0, today.Location()), today, dir), true
}
