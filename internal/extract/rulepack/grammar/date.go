package grammar

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Calendar holds the words of dates in one language. General date parsers read
// a date out of any text ("may", "sat", "second"), guess the language and cost a
// hundred times a clause; this one reads what a clause says beside its pattern.
type Calendar struct {
	Months   map[string]int    `yaml:"months"`   // name: 1 to 12
	Seasons  map[string]int    `yaml:"seasons"`  // name: month it begins in
	Weekdays map[string]int    `yaml:"weekdays"` // name: 0 (Sunday) to 6
	Units    map[string]string `yaml:"units"`    // name: d, w, m or y
	Shifts   map[string]string `yaml:"shifts"`   // phrase: -1d, +1w, …
	Numbers  map[string]int    `yaml:"numbers"`
	Last     []string          `yaml:"last"`
	Next     []string          `yaml:"next"`
	This     []string          `yaml:"this"`
	Ago      []string          `yaml:"ago"`
	In       []string          `yaml:"in"`     // "in three weeks", "in March"
	Since    []string          `yaml:"since"`  // "since 2019"
	On       []string          `yaml:"on"`     // before a weekday or day of a month
	Parts    []string          `yaml:"parts"`  // of a day: "Friday night"
	Vague    []string          `yaml:"vague"`  // before a month: "late March"
	End      []string          `yaml:"end"`    // of these, the ones that name its last day
	Feasts   map[string]string `yaml:"feasts"` // name: 12-25, month and day
	Every    []string          `yaml:"every"`  // before a weekday that recurs
	From     []string          `yaml:"from"`   // "two weeks from Friday"
	After    []string          `yaml:"after"`  // "Friday after next": one week more
	Clock    []string          `yaml:"clock"`  // before a time of day: at
	Hours    []string          `yaml:"hours"`  // in a time of day: half, past, pm
	Ordinals map[string]int    `yaml:"ordinals"`
}

// Moment is a date that a clause names, at the start of its day, month or year
// in the speaker's zone.
type Moment struct {
	At   time.Time
	Span Span // the tokens that name it
}

// When finds the first date among the tokens, counted from now. tense chooses
// the side of a date that has one on each: "in March" is the last one of a past
// clause and the next one of a future clause.
func (lx *Grammar) When(ts []Token, now time.Time, tense string) (Moment, bool) {
	cal := &lx.Calendar
	for i := range ts {
		if i > 0 && slices.Contains(cal.Every, ts[i-1].Low) && cal.repeats(ts[i].Low) {
			continue // "every Tuesday"
		}
		if n, at, ok := lx.dateAt(ts[i:], now, tense); ok {
			n += lx.clock(ts[i+n:])
			from := i
			if from > 0 && lx.Is(ts[from-1], Article) {
				from-- // "on the 15th of May"
			}
			for from > 0 && (slices.Contains(cal.On, ts[from-1].Low) || slices.Contains(cal.In, ts[from-1].Low) || slices.Contains(cal.Since, ts[from-1].Low)) {
				from--
			}
			return Moment{At: at, Span: Span{From: from, To: i + n}}, true
		}
	}
	return Moment{}, false
}

func (lx *Grammar) dateAt(ts []Token, now time.Time, tense string) (n int, at time.Time, ok bool) {
	cal := &lx.Calendar
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	word := func(i int) string {
		if i < len(ts) {
			return ts[i].Low
		}
		return ""
	}
	if n := lx.shifts.At(ts, 0); n > 0 {
		words := make([]string, n)
		for i := range n {
			words[i] = ts[i].Low
		}
		m, at, ok := shift(n, today, cal.Shifts[strings.Join(words, " ")])
		return cal.daytime(m, word), at, ok
	}
	for _, layout := range [...]string{time.DateOnly, "2.1.2006", "2/1/2006"} {
		if t, err := time.ParseInLocation(layout, word(0), now.Location()); err == nil {
			return 1, t, true
		}
	}
	dir := direction(tense)
	if d, ok := dayOf(word(2)); ok && word(1) == "the" && !digits(word(2)) && slices.Contains(cal.On, word(0)) && cal.Months[word(3)] == 0 && word(3) != "of" {
		return 3, monthday(today, d, dir), true // "on the 14th"
	}
	if d, ok := dayOf(word(1)); ok && word(0) == "the" && !digits(word(1)) && lx.ends(ts[2:]) {
		return 2, monthday(today, d, dir), true // "the dentist is the 14th at 3"
	}
	switch {
	case slices.Contains(cal.Last, word(0)):
		return cal.relative(word(1), word(2), today, -1)
	case slices.Contains(cal.Next, word(0)):
		return cal.relative(word(1), word(2), today, 1)
	case slices.Contains(cal.This, word(0)):
		return cal.relative(word(1), word(2), today, 0)
	}
	if count, ok := cal.number(word(0)); ok && slices.Contains(cal.Ago, word(2)) {
		if day, named := cal.Weekdays[strings.TrimSuffix(word(1), "s")]; named { // "two Sundays ago"
			return 3, nextWeekday(today, time.Weekday(day), -1).AddDate(0, 0, 7-7*count), true
		}
	}
	if count, ok := cal.number(word(0)); ok && cal.Units[word(1)] != "" {
		if slices.Contains(cal.Ago, word(2)) {
			return shift(3, today, strconv.Itoa(-count)+cal.Units[word(1)])
		}
		if slices.Contains(cal.From, word(2)) {
			if n, base, ok := lx.dateAt(ts[3:min(len(ts), 9)], now, "future"); ok {
				return shift(n+3, base, "+"+strconv.Itoa(count)+cal.Units[word(1)])
			}
		}
	}
	if slices.Contains(cal.Since, word(0)) {
		if count, ok := cal.number(word(1)); ok && cal.Units[word(2)] != "" {
			return shift(3, today, strconv.Itoa(-count)+cal.Units[word(2)])
		}
	}
	if _, named := year(word(1)); slices.Contains(cal.In, word(0)) && !named {
		if count, ok := cal.number(word(1)); ok && cal.Units[word(2)] != "" {
			return shift(3, today, "+"+strconv.Itoa(count)+cal.Units[word(2)])
		}
	}
	if day, ok := cal.Weekdays[word(0)]; ok {
		if dir == 0 {
			return 0, time.Time{}, false
		}
		if slices.Contains(cal.After, word(1)) && slices.Contains(cal.Next, word(2)) && dir > 0 {
			return 3, nextWeekday(today, time.Weekday(day), 1).AddDate(0, 0, 7), true // "Friday after next"
		}
		return cal.weekday(word, today, time.Weekday(day), dir)
	}
	return cal.absolute(word, today, dir)
}

// absolute reads "March", "March 5 2024", "5 March", "in 2019".
func (cal *Calendar) absolute(word func(int) string, today time.Time, dir int) (n int, at time.Time, ok bool) {
	if slices.Contains(cal.In, word(0)) || slices.Contains(cal.Since, word(0)) {
		if y, ok := year(word(1)); ok {
			return 2, time.Date(y, 1, 1, 0, 0, 0, 0, today.Location()), true
		}
		for skip := 1; skip < 5; skip++ {
			if n, at, ok := cal.monthly(func(i int) string { return word(i + skip) }, today, dir, false); ok {
				return n + skip, at, true
			}
			if n, at, ok := cal.season(func(i int) string { return word(i + skip) }, today, dir); ok {
				return n + skip, at, true
			}
			if y, ok := year(word(skip)); ok && skip > 1 {
				return skip + 1, time.Date(y, 1, 1, 0, 0, 0, 0, today.Location()), true
			}
			if next := word(skip); next != "the" && next != "of" && !slices.Contains(cal.Vague, next) {
				break
			}
		}
		return 0, time.Time{}, false
	}
	if slices.Contains(cal.Vague, word(0)) {
		last := slices.Contains(cal.End, word(0))
		skip := 1
		for word(skip) == "of" || word(skip) == "the" {
			skip++
		}
		if n, at, ok := cal.monthly(func(i int) string { return word(i + skip) }, today, dir, false); ok {
			if last && at.Day() == 1 {
				at = at.AddDate(0, 1, -1)
			}
			return n + skip, at, true
		}
	}
	for n := 3; n > 0 && dir != 0; n-- {
		name := word(0)
		for i := 1; i < n; i++ {
			name += " " + word(i)
		}
		if md, ok := cal.Feasts[name]; ok {
			return cal.feast(md, n, word, today, dir)
		}
	}
	if _, ok := cal.Seasons[word(0)]; ok {
		if _, named := year(word(1)); named || word(1) == "of" {
			return cal.season(word, today, dir)
		}
	}
	return cal.monthly(word, today, dir, true)
}

// onSide moves a day of this year to the side of today that dir names.
func onSide(at, today time.Time, dir int) time.Time {
	switch {
	case dir < 0 && at.After(today):
		return at.AddDate(-1, 0, 0)
	case dir >= 0 && at.Before(today.AddDate(0, -1, 1)):
		return at.AddDate(1, 0, 0)
	}
	return at
}

// monthly reads a month with its day and year; withDay requires a day, since a
// month's name alone may be a verb or a person.
func (cal *Calendar) monthly(word func(int) string, today time.Time, dir int, withDay bool) (n int, at time.Time, ok bool) {
	day, i := 0, 0
	if d, ok := cal.day(word(0)); ok {
		day, i = d, 1
		if word(1) == "of" {
			i = 2
		}
	}
	month, ok := cal.Months[word(i)]
	if !ok {
		return 0, time.Time{}, false
	}
	i++
	if day == 0 {
		if d, ok := cal.day(word(i)); ok {
			day = d
			i++
		} else if d, ok := cal.day(word(i + 1)); ok && word(i) == "the" {
			day = d
			i += 2
		}
	}
	if withDay && day == 0 {
		if _, ok := year(word(i)); !ok {
			return 0, time.Time{}, false
		}
	}
	y, named := 0, false
	if word(i) == "," {
		y, named = year(word(i + 1))
		if named {
			i += 2
		}
	} else if y, named = year(word(i)); named {
		i++
	}
	if named {
		return i, time.Date(y, time.Month(month), max(day, 1), 0, 0, 0, 0, today.Location()), true
	}
	at = time.Date(today.Year(), time.Month(month), max(day, 1), 0, 0, 0, 0, today.Location())
	return i, onSide(at, today, dir), true
}

// relative reads "last week", "next Friday", "this month".
func (cal *Calendar) relative(word, after string, today time.Time, dir int) (n int, at time.Time, ok bool) {
	if day, ok := cal.Weekdays[word]; ok {
		n := 2
		if slices.Contains(cal.Parts, after) {
			n = 3
		}
		return n, nextWeekday(today, time.Weekday(day), cmp.Or(dir, 1)), true
	}
	if month := cmp.Or(cal.Months[word], cal.Seasons[word]); month > 0 {
		at = time.Date(today.Year(), time.Month(month), 1, 0, 0, 0, 0, today.Location())
		if dir < 0 && !at.Before(today) {
			at = at.AddDate(-1, 0, 0)
		}
		if dir > 0 && !at.After(today) {
			at = at.AddDate(1, 0, 0)
		}
		return 2, at, true
	}
	unit := cal.Units[word]
	if unit == "" {
		return 0, time.Time{}, false
	}
	if dir == 0 {
		return 2, today, true
	}
	return shift(2, today, strconv.Itoa(dir)+unit)
}

// number reads the count before a unit: at most four digits, so that no date
// leaves the calendar.
func (cal *Calendar) number(word string) (int, bool) {
	if n, ok := cal.Numbers[word]; ok {
		return n, true
	}
	if len(word) > 4 {
		return 0, false
	}
	n, err := strconv.Atoi(word)
	return n, err == nil && n > 0
}

func shift(n int, from time.Time, by string) (int, time.Time, bool) {
	if by == "" {
		return 0, time.Time{}, false
	}
	count, err := strconv.Atoi(by[:len(by)-1])
	if err != nil {
		return 0, time.Time{}, false
	}
	at := from
	switch by[len(by)-1] {
	case 'd':
		at = from.AddDate(0, 0, count)
	case 'w':
		at = from.AddDate(0, 0, 7*count)
	case 'm':
		at = from.AddDate(0, count, 0)
	case 'y':
		at = from.AddDate(count, 0, 0)
	}
	return n, at, at.Year() >= 1 && at.Year() <= 9999
}

// nextWeekday is the nearest such day after (dir 1) or before (-1) today.
func nextWeekday(today time.Time, day time.Weekday, dir int) time.Time {
	ahead := (int(day) - int(today.Weekday()) + 7) % 7
	if dir > 0 {
		if ahead == 0 {
			ahead = 7
		}
		return today.AddDate(0, 0, ahead)
	}
	back := (7 - ahead) % 7
	if back == 0 {
		back = 7
	}
	return today.AddDate(0, 0, -back)
}

// monthday is the nearest such day of a month before (dir -1) or after today.
func monthday(today time.Time, day, dir int) time.Time {
	at := time.Date(today.Year(), today.Month(), day, 0, 0, 0, 0, today.Location())
	switch {
	case dir < 0 && at.After(today):
		return at.AddDate(0, -1, 0)
	case dir >= 0 && at.Before(today):
		return at.AddDate(0, 1, 0)
	}
	return at
}

// digits reports whether a word is a plain number.
func digits(word string) bool {
	_, err := strconv.Atoi(word)
	return err == nil
}

func direction(tense string) int {
	switch tense {
	case "past":
		return -1
	case "future":
		return 1
	}
	return 0
}

func year(word string) (int, bool) {
	n, err := strconv.Atoi(word)
	return n, err == nil && len(word) == 4 && n >= 1900 && n < 2200
}

func dayOf(word string) (int, bool) {
	for _, suffix := range [...]string{"st", "nd", "rd", "th"} {
		word = strings.TrimSuffix(word, suffix)
	}
	n, err := strconv.Atoi(word)
	return n, err == nil && len(word) <= 2 && n >= 1 && n <= 31
}

// IsNumber reports whether a word is a number: "14", "twenty-one".
func (lx *Grammar) IsNumber(s string) bool {
	if Digit(s) {
		return true
	}
	tens, ones, compound := strings.Cut(s, "-")
	_, ok := lx.Calendar.Numbers[tens]
	if compound && ok {
		_, ok = lx.Calendar.Numbers[ones]
	}
	return ok
}

// ordinal reports whether a number is that of a rank: "my dad's 70th".
func ordinal(number string) bool {
	return strings.HasSuffix(number, "th") || strings.HasSuffix(number, "st") || strings.HasSuffix(number, "nd") || strings.HasSuffix(number, "rd")
}

// Dated reports whether the tokens hold a date.
func (lx *Grammar) Dated(ts []Token) bool {
	_, ok := lx.When(ts, time.Unix(0, 0).UTC(), "past")
	return ok
}
