package retrieval

import (
	"slices"
	"strings"
	"sync"
	"unicode"

	"palimpsest/internal/lex"
)

// valueKinds are the kinds of values that a question asks for, or that a text holds.
type valueKinds uint8

const (
	dayKind    valueKinds = 1 << iota // a day, a date or an hour
	amountKind                        // money
	countKind                         // a number
	placeKind
)

// expected are the kinds that a question asks for by its words.
func expected(words []string) (k valueKinds) {
	for i, w := range words {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch w {
		case "when", "когда":
			k |= dayKind
		case "what", "which":
			if next == "time" || next == "day" || next == "days" || next == "date" {
				k |= dayKind
			}
		case "where", "wheres", "where's", "где", "куда":
			k |= placeKind
		case "сколько":
			k |= countKind | amountKind
		case "how":
			switch next {
			case "much":
				k |= amountKind
			case "old", "many", "long", "tall", "often", "far", "big", "large":
				k |= countKind
			}
		}
	}
	return k
}

var (
	moneyWords = sync.OnceValue(func() map[string]bool {
		return setOf(`pound pounds quid euro euros dollar dollars buck bucks grand cent cents pence percent рублей рубля рубль тысяч`)
	})
	placeWords = sync.OnceValue(func() map[string]bool { return setOf(`in at to from on near by outside around off`) })
)

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// kindsIn are the kinds of values that a text holds.
func kindsIn(text string, terms []termID) (k valueKinds) {
	if slices.ContainsFunc(terms, func(id termID) bool { return timeWords()[id] }) {
		k |= dayKind
	}
	before := ""
	for field := range strings.FieldsSeq(text) {
		field = strings.Trim(field, ".,;:!?()\"'")
		if field == "" {
			continue
		}
		first := []rune(field)[0]
		_, numeral := lex.Number(strings.ToLower(field))
		switch digits := strings.ContainsAny(field, "0123456789"); {
		case strings.ContainsAny(field, "£$€₽"), moneyWords()[strings.ToLower(field)]:
			k |= amountKind
		case digits:
			k |= countKind
			if ordinal(field) || strings.Contains(field, ":") {
				k |= dayKind
			} else if len(field) > 2 {
				k |= amountKind
			}
		case numeral && field != "one":
			k |= countKind
		case unicode.IsUpper(first) && isTime(field):
			k |= dayKind
		case unicode.IsUpper(first) && placeWords()[before]:
			k |= placeKind
		}
		before = strings.ToLower(field)
	}
	return k
}

func isTime(word string) bool {
	word = lex.Fold(word)
	_, month := lex.Month(word)
	_, day := lex.Weekday(word)
	return month || day
}

func ordinal(field string) bool {
	for _, ending := range []string{"st", "nd", "rd", "th", "am", "pm"} {
		if number, found := strings.CutSuffix(strings.ToLower(field), ending); found && strings.Trim(number, "0123456789") == "" {
			return true
		}
	}
	return false
}

// othersVerbs are those of the third person besides words that end in s.
var othersVerbs = sync.OnceValue(func() map[string]bool {
	return setOf(`can can't cannot could couldn't will won't would wouldn't had hadn't did didn't should must may might wasn't isn't hasn't doesn't just also never always got`)
})

// pronounWords stand for a person whom an earlier text names.
var pronounWords = []string{"he", "she", "they", "he's", "she's", "they're", "он", "она", "они"}

// aboutOther is the index term of somebody else than the speaker who is the subject of a
// text: it begins with a name and a verb of the third person, or with the name in the
// genitive. It is empty where the speaker may be the subject.
func aboutOther(text string) string {
	fields := strings.Fields(text[:min(len(text), 128)])
	if len(fields) < 2 {
		return ""
	}
	first := lex.Fold(strings.TrimRight(fields[0], ","))
	if slices.Contains(pronounWords, first) {
		return first
	}
	if !unicode.IsUpper([]rune(fields[0])[0]) || slices.Contains(ownWords, first) {
		return ""
	}
	name, genitive := strings.CutSuffix(first, "'s")
	terms, verb := lex.Terms(name), lex.Fold(fields[1])
	if len(terms) == 0 || !genitive && !othersVerbs()[verb] && (len(verb) < 2 || !strings.HasSuffix(verb, "s") || strings.HasSuffix(verb, "ss")) {
		return ""
	}
	return terms[0]
}
