package timex

import (
	"strings"
	"time"
)

// Reading is the time that a question names.
type Reading struct {
	// Window is [From, To); a zero bound is open. Both are zero where the question
	// names no date.
	From, To time.Time
	// Slack is how far on each side of the window a vague date ("38 days ago") may
	// be meant, where nothing is within.
	Slack time.Duration
	// Sessions names sessions by their order; the zero value none.
	Sessions Sessions
	// Rest is the text without the words of time.
	Rest string
	// Spans are the words of time, as byte offsets into the text, in order.
	Spans []Span
	// Only says that the question asks for all that belongs to the time, and for
	// nothing in particular.
	Only bool
}

// Sessions are the sessions First to Last, both from 1, of all in order of time:
// counted from the first, or backwards from the newest where FromEnd is set. A
// First of 0 names none.
type Sessions struct {
	First, Last int
	FromEnd     bool
}

// Span is a stretch of a text, [Start, End) in bytes.
type Span struct{ Start, End int }

// Found reports whether the question names a time.
func (r Reading) Found() bool { return r.Dated() || r.Sessions.First > 0 }

// Dated reports whether the question names dates.
func (r Reading) Dated() bool { return !r.From.IsZero() || !r.To.IsZero() }

// Holds reports whether t is within the window.
func (r Reading) Holds(t time.Time) bool {
	return (r.From.IsZero() || !t.Before(r.From)) && (r.To.IsZero() || t.Before(r.To))
}

// Read reads the time that a question names, counted from now in its zone. Of a
// date without a year it takes the latest that has begun, of several dates what
// they share, or else all between them.
func Read(text string, now time.Time) Reading {
	r := &reader{tokens: tokenize(text), now: now, today: start(now, day)}
	var out Reading
	var all []period
	var spans []wordSpan
	for i := 0; i < len(r.tokens); {
		if n, s := r.sessionsAt(i); n > 0 {
			out.Sessions = s
			spans = append(spans, wordSpan{i, i + n})
			i += n
			continue
		}
		if n, p := r.bounded(i); n > 0 && !r.habitual(i) {
			all = append(all, p)
			spans = append(spans, wordSpan{i, i + n})
			i += n
			continue
		}
		i++
	}
	out.From, out.To = window(all)
	if out.Dated() {
		out.Slack = slack[r.slack]
	}
	r.finish(text, &out, spans)
	return out
}

var slack = map[grain]time.Duration{
	part: 2 * time.Hour, day: 24 * time.Hour, week: 7 * 24 * time.Hour, month: 31 * 24 * time.Hour, year: 366 * 24 * time.Hour,
}

// Start is the first moment of the time that text names and nothing else, words
// joined by spaces or underscores: last_week, yesterday, 2024-W19.
func Start(text string, now time.Time) (time.Time, bool) {
	r := Read(strings.ReplaceAll(text, "_", " "), now)
	return r.From, r.Rest == "" && !r.From.IsZero()
}

// reader reads one question.
type reader struct {
	tokens     []token
	now, today time.Time
	slack      grain // of the vaguest date
}

type wordSpan struct{ from, to int }

// habitual reports whether what stands at i is said to recur.
func (r *reader) habitual(i int) bool {
	switch r.word(i - 1) {
	case "every", "each", "каждый", "каждую", "каждое", "каждые":
		return true
	}
	return false
}

// window is what the periods share or, of periods apart, all between them.
func window(all []period) (from, to time.Time) {
	if len(all) == 0 {
		return from, to
	}
	sum := all[0]
	for _, p := range all[1:] {
		if both := meet(sum, p); both.from.Before(both.to) || both.to.IsZero() {
			sum = both
			continue
		}
		switch {
		case p.fixed && !sum.fixed: // "last Friday on 23 January 2022" counts from then
			sum = p
		case p.fixed || !sum.fixed:
			sum = hull(sum, p)
		}
	}
	return sum.from, sum.to
}

// meet is what two periods share; a zero bound is open.
func meet(a, b period) period {
	if b.from.After(a.from) {
		a.from = b.from
	}
	if a.to.IsZero() || !b.to.IsZero() && b.to.Before(a.to) {
		a.to = b.to
	}
	return a
}

// period reads one period at i: the first word is its own or an article.
func (r *reader) period(i int) (int, period) {
	at, definite := i, false
	if r.word(i) == "the" {
		at, definite = i+1, true
	}
	n, p := r.simple(at, definite)
	if n == 0 || !p.valid() {
		return 0, period{}
	}
	n, p = r.narrowed(i, at+n, p)
	if p.grain <= part {
		r.slack = max(r.slack, part)
	}
	return n, p
}

func (r *reader) simple(at int, definite bool) (int, period) {
	for _, read := range [...]func(int, bool) (int, period){r.partOfPeriod, r.named, r.agoAt, r.relative, r.dated, r.weekdayAt, r.weekendAt} {
		if n, p := read(at, definite); n > 0 {
			return n, p
		}
	}
	return 0, period{}
}

// narrowed adds what narrows a period behind it: a part of a day, the week of a
// day, the day of a week.
func (r *reader) narrowed(i, next int, p period) (int, period) {
	if p.weekday {
		n := r.phrase(next, "of", "in", "on", "на")
		if c, w := r.relative(next+n, false); c > 0 && w.grain == week {
			next, p = next+n+c, weekdayOf(periodOf(w.from, week, 0), p.from.Weekday())
		}
	} else if p.grain == week {
		n := r.phrase(next, "on", "в", "во")
		if c, d := r.weekdayAt(next+n, false); c > 0 && n > 0 {
			next, p = next+n+c, weekdayOf(periodOf(p.from, week, 0), d.from.Weekday())
		}
	}
	if p.grain == day {
		if n, d := r.dayPartAt(next); n > 0 {
			next, p = next+n, partOf(p, d)
		}
	}
	return next - i, p
}

// finish removes the words of time from the text, and reports in out.Only whether
// the question asks for nothing else.
func (r *reader) finish(text string, out *Reading, spans []wordSpan) {
	out.Rest = text
	if len(spans) == 0 {
		return
	}
	var rest strings.Builder
	at := 0
	taken := make([]bool, len(r.tokens))
	for _, s := range spans {
		for s.from > 0 && !taken[s.from-1] && prepositions[r.word(s.from-1)] {
			s.from--
		}
		for k := s.from; k < s.to; k++ {
			taken[k] = true
		}
		span := Span{r.tokens[s.from].Start, r.tokens[s.to-1].End}
		out.Spans = append(out.Spans, span)
		rest.WriteString(text[at:span.Start])
		rest.WriteByte(' ')
		at = span.End
	}
	rest.WriteString(text[at:])
	out.Rest = strings.Join(strings.Fields(rest.String()), " ")
	out.Only = out.Found()
	for k, t := range r.tokens {
		out.Only = out.Only && (taken[k] || generic(t.Word))
	}
}

var prepositions = words("in on at of for from over during since about around the back within sometime earlier later throughout " +
	"в во на за с со к о об около течение примерно где-то еще раньше ранее")
