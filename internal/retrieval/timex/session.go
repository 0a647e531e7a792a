package timex

import "strings"

// sessionsAt reads sessions by their order: "our second session", "three sessions
// ago", "sessions 2 through 4", "the last time we talked".
func (r *reader) sessionsAt(i int) (int, Sessions) {
	for _, read := range [...]func(int) (int, Sessions){
		r.oneBefore, r.sessionsAgo, r.sessionRange, r.sessionNumbers, r.nthSession, r.firstOrLast, r.timeWeTalked,
	} {
		n, s := read(i)
		if n > 0 && s.First > 0 && s.First <= s.Last && r.ours(i+n) {
			return n, s
		}
	}
	return 0, Sessions{}
}

// ours refuses "first conversation with Dr. Lee", which is none with the one asked,
// "last chat about dogs", whose place among all is unknown, and "chat app".
func (r *reader) ours(i int) bool {
	if about[r.word(i)] && strings.Trim(r.gap(i), ".?!") == r.gap(i) && r.word(i+1) != "" || compounds[r.word(i)] {
		return false
	}
	switch r.word(i) {
	case "with":
		return r.word(i+1) == "you" || r.word(i+1) == "me" || r.word(i+1) == "us"
	case "с", "со":
		return r.word(i+1) == "тобой" || r.word(i+1) == "вами" || r.word(i+1) == "мной"
	}
	return true
}

func sessionNoun(word string) bool {
	switch word {
	case "session", "sessions", "conversation", "conversations", "discussion", "discussions", "chat", "chats", "talk", "talks":
		return true
	}
	for _, stem := range [...]string{"сесси", "разговор", "бесед", "сеанс", "обсуждени", "диалог"} {
		if strings.HasPrefix(word, stem) {
			return true
		}
	}
	return word == "чат" || word == "чате" || word == "чата" || word == "чатов"
}

func newest(first, last int) Sessions { return Sessions{First: first, Last: last, FromEnd: true} }

// sessionsAgo reads "three sessions ago"; one ago is the newest.
func (r *reader) sessionsAgo(i int) (int, Sessions) {
	n, least, most := r.count(i)
	if n == 0 {
		least, most = 1, 1
	}
	if !sessionNoun(r.word(i+n)) || !backward[r.word(i+n+1)] || n == 0 && r.word(i+1) != "назад" {
		return 0, Sessions{}
	}
	return n + 2, newest(least, most)
}

// oneBefore reads "not the last discussion, but the one before that" and "the
// session before last".
func (r *reader) oneBefore(i int) (int, Sessions) {
	the := r.phrase(i, "the")
	at := i + the
	if sessionNoun(r.word(at)) || r.word(at) == "one" {
		if r.phrase(at+1, "before last") > 0 {
			return the + 3, newest(2, 2)
		}
	}
	if n := r.phrase(at, "second to last", "next to last", "second last", "last but one", "penultimate", "third to last"); n > 0 && sessionNoun(r.word(at+n)) {
		k := 2
		if r.word(at) == "third" {
			k = 3
		}
		return the + n + 1, newest(k, k)
	}
	n := r.phrase(i, "not the last", "not our last", "не последний", "не последняя", "не последнюю", "не в последней", "не в последнем")
	if n == 0 || !sessionNoun(r.word(i+n)) {
		return 0, Sessions{}
	}
	n++
	n += r.phrase(i+n, "but", "а")
	c := r.phrase(i+n, "the one before", "the previous one", "the one prior", "предыдущий", "предыдущая", "предыдущую", "в предыдущей", "в предыдущем")
	if c == 0 {
		return 0, Sessions{}
	}
	n += c
	n += r.phrase(i+n, "that", "it", "this")
	return n, newest(2, 2)
}

// sessionRange reads "sessions 2 through 4", "the third to fifth sessions", "с 3 по
// 5 сессию".
func (r *reader) sessionRange(i int) (int, Sessions) {
	n := r.phrase(i, "between", "from", "over", "с", "со", "между")
	opener := r.word(i)
	n += r.phrase(i+n, "the", "our")
	before := sessionNoun(r.word(i + n))
	if before {
		n += 1 + r.phrase(i+n+1, "numbers", "number", "номер", "номера")
	}
	c, first := r.place(i + n)
	if c == 0 {
		return 0, Sessions{}
	}
	n += c
	if sessionNoun(r.word(i + n)) {
		before = true
		n++
	}
	c = r.joint(i+n, opener)
	if w := r.word(i + n); c < 0 && (w == "and" || w == "и") {
		c = 1
	}
	if c < 0 {
		return 0, Sessions{}
	}
	n += c
	n += r.phrase(i+n, "the", "our", "session")
	c, last := r.place(i + n)
	if c == 0 {
		return 0, Sessions{}
	}
	n += c
	if sessionNoun(r.word(i + n)) {
		n++
	} else if !before {
		return 0, Sessions{}
	}
	return n, Sessions{First: first, Last: last}
}

// place is a number or an ordinal.
func (r *reader) place(i int) (n, value int) {
	if n, value = r.ordinal(i); n > 0 {
		return n, value
	}
	if v, ok := digits(r.word(i)); ok {
		return 1, v
	}
	return 0, 0
}

// sessionNumbers reads "session 6", "session number 6", "сессия №6".
func (r *reader) sessionNumbers(i int) (int, Sessions) {
	if !sessionNoun(r.word(i)) || r.gap(i) != "" && r.gap(i) != "#" && r.gap(i) != "№" {
		return 0, Sessions{}
	}
	n := 1 + r.phrase(i+1, "number", "no", "nr", "номер")
	v, ok := digits(r.word(i + n))
	if !ok {
		return 0, Sessions{}
	}
	return n + 1, Sessions{First: v, Last: v}
}

// firstOrLast reads "the last two sessions", "our first conversation", "this
// session", "в прошлом разговоре".
func (r *reader) firstOrLast(i int) (int, Sessions) {
	w := r.word(i)
	c, least, most := r.count(i + 1)
	if c > 0 && least < most {
		least = most
	}
	if c == 0 {
		least = 1
	}
	if !sessionNoun(r.word(i + 1 + c)) {
		return r.reversed(i)
	}
	n := 2 + c
	switch {
	case w == "first" || strings.HasPrefix(w, "перв"):
		return n, Sessions{First: 1, Last: least}
	case w == "last" || w == "latest" || w == "previous" || w == "past" || w == "recent" ||
		strings.HasPrefix(w, "последн") || strings.HasPrefix(w, "прошл") || strings.HasPrefix(w, "предыдущ"):
		return n, newest(1, least)
	case w == "this" || w == "current" || strings.HasPrefix(w, "текущ") || w == "этой" || w == "этом" || w == "этот" || w == "эту":
		return n, newest(1, 1)
	case strings.HasPrefix(w, "предпоследн") || strings.HasPrefix(w, "позапрошл"):
		return n, newest(2, 2)
	}
	return 0, Sessions{}
}

// reversed reads "две последние сессии".
func (r *reader) reversed(i int) (int, Sessions) {
	c, _, most := r.count(i)
	if c == 0 || !sessionNoun(r.word(i+c+1)) {
		return 0, Sessions{}
	}
	switch w := r.word(i + c); {
	case strings.HasPrefix(w, "последн"), w == "last", w == "latest", w == "recent":
		return c + 2, newest(1, most)
	case strings.HasPrefix(w, "перв"), w == "first":
		return c + 2, Sessions{First: 1, Last: most}
	}
	return 0, Sessions{}
}

// nthSession reads "17th discussion", "вторая сессия".
func (r *reader) nthSession(i int) (int, Sessions) {
	n, v := r.ordinal(i)
	if n == 0 || !sessionNoun(r.word(i+n)) {
		return 0, Sessions{}
	}
	return n + 1, Sessions{First: v, Last: v}
}

// timeWeTalked reads "the first time we talked", "when we last spoke", "last time",
// "в прошлый раз". "The last time we talked about dogs" is of no session that the
// order knows.
func (r *reader) timeWeTalked(i int) (int, Sessions) {
	n, s := r.occasion(i)
	if n == 0 {
		return 0, s
	}
	if talked := r.talked(i + n); talked > 0 {
		n += talked
		if about[r.word(i+n)] {
			return 0, s
		}
		return n, s
	}
	last := r.word(i+n) == "" || strings.ContainsAny(r.gap(i+n-1), ".,?!")
	if r.word(i) == "when" || r.word(i) == "когда" || !last && r.word(i+n-1) == "time" {
		return 0, s
	}
	return n, s
}

var (
	about     = words("about regarding concerning of о об обо про насчет")
	compounds = words("app apps room rooms group groups bot bots show shows server window history")
)

func (r *reader) occasion(i int) (int, Sessions) {
	if n := r.phrase(i, "first time", "when we first", "когда мы впервые", "в первый раз", "в самый первый раз", "впервые"); n > 0 {
		return n, Sessions{First: 1, Last: 1}
	}
	if n := r.phrase(i, "last time", "when we last", "в последний раз", "в прошлый раз", "прошлый раз"); n > 0 {
		return n, newest(1, 1)
	}
	if n := r.phrase(i, "time before last", "в позапрошлый раз"); n > 0 {
		return n, newest(2, 2)
	}
	return 0, Sessions{}
}

// talked reads "we talked", "мы с тобой говорили".
func (r *reader) talked(i int) int {
	n := r.phrase(i, "that")
	c := r.phrase(i+n, "we", "i", "you and i", "you", "мы с тобой", "мы с вами", "мы", "я")
	switch n += c; r.word(i - 1) {
	case "first", "last", "впервые", "раз": // the pronoun stands before
	default:
		if c == 0 {
			return 0
		}
	}
	switch r.word(i + n) {
	case "talked", "spoke", "chatted", "met", "conversed", "talk", "spoken", "говорили", "разговаривали", "общались", "беседовали", "болтали", "поговорили", "виделись", "встретились", "встречались":
		n++
	default:
		return 0
	}
	return n + r.phrase(i+n, "to you", "with you", "to each other", "с тобой", "с вами")
}
