package deterministic

import (
	"regexp"
	"slices"
	"strings"

	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// A statement of change that names no attribute ("we swapped the Corsa for a
// Skoda") moves the facts of most predicates. It leaves keptPredicates alone:
// the past, traits from birth, feelings and plans stay beside the new value.
var keptPredicates = []string{
	"did", "lived_in", "from", "born_in", "birthday", "age", "name", "degree", "quit", "likes", "dislikes", "thinks",
	"fears", "wants_to", "plans_to", "skill", "instruction", "copes_by", "is", "family_role", "condition", "gender", "pronouns", "allergic_to", "blood_type",
}

// endedPredicates are those of keptPredicates that end with a value that no other
// fact holds: "the trip to Crete fell through".
var endedPredicates = []string{"plans_to", "condition"}

// keptRelations are the relatives that a statement of change does not replace.
var keptRelations = []string{
	"mother", "father", "parent", "sister", "brother", "sibling", "son", "daughter", "child", "children", "kid", "cousin",
	"aunt", "uncle", "grandmother", "grandfather", "nephew", "niece", "twin", "friend",
}

// phrasedPredicates are the predicates whose objects are phrases around a thing: "go to yoga on
// Thursdays". A change moves the thing and leaves the rest.
var phrasedPredicates = []string{"habit", "hobby", "upcoming", "goal", "works_on", "deadline", "copes_by"}

// movable reports whether a change that names no attribute may move facts of a
// predicate.
func movable(predicate string) bool {
	relation, related := strings.CutPrefix(predicate, "has_")
	return predicate != "" && !slices.Contains(keptPredicates, predicate) && (!related || !slices.Contains(keptRelations, relation))
}

// shapes are values that stand in an object as one token among others, and are moved
// alone: the day of an appointment, an address, a number.
var shapes = []*regexp.Regexp{
	regexp.MustCompile(`(?i)[^\s@]+@[^\s@]+\.[^\s@]*[a-z]`),
	regexp.MustCompile(`(?i)\b(?:\d{1,2}(?:st|nd|rd|th)? (?:of )?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* \d{1,2}(?:st|nd|rd|th)?)\b`),
	regexp.MustCompile(`(?i)\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b`),
	regexp.MustCompile(`(?i)\b\d[\d:.]*(?: ?[ap]m)? (?:to|until|till|-) \d[\d:.]*(?: ?[ap]m)?\b`),
	regexp.MustCompile(`\+?\d[\d ()-]{5,}\d`),
	regexp.MustCompile(`\b\d[\d.,:]*(?:k|kg|am|pm)?\b`),
}

// mostly is the shape of a value that is little more than that: "June 14", but not
// "iPhone 15".
func mostly(value string) (shape *regexp.Regexp, at []int) {
	shape, at = shapeIn(value)
	if shape == nil || (at[1]-at[0])*2 <= len(value) {
		return nil, nil
	}
	return shape, at
}

// shapeIn is the first shape that a value has, and where. It is nil for a value
// without one.
func shapeIn(value string) (shape *regexp.Regexp, at []int) {
	for _, s := range shapes {
		if at := s.FindStringIndex(value); at != nil {
			return s, at
		}
	}
	return nil, nil
}

// movedObject is the object of a fact with a new value in the place of the old one. It
// reports false where the fact has no place for such a value: a day is no name of a
// dentist.
func movedObject(f events.Fact, old, value string) (string, bool) {
	if f.Predicate == memory.PredicateWork {
		return movedWork(f.Object, old, value)
	}
	if shape, at := mostly(value); shape != nil {
		place := shape.FindStringIndex(f.Object)
		if place == nil {
			if f.Predicate == "upcoming" && slices.Contains(shapes[1:3], shape) {
				return f.Object + " on " + value[at[0]:at[1]], true
			}
			return value, names(f, old) && !slices.Contains(shapes[1:4], shape)
		}
		if place[0] == 0 && !slices.Contains(phrasedPredicates, f.Predicate) && !slices.Contains(shapes[1:4], shape) {
			return value, true // with its unit
		}
		return f.Object[:place[0]] + value[at[0]:at[1]] + f.Object[place[1]:], true
	}
	if slices.Contains(phrasedPredicates, f.Predicate) {
		if from, to := placeOf(f.Object, old); to > from {
			return f.Object[:from] + value + f.Object[to:], true
		}
	}
	for _, naming := range [...]string{" named ", " called "} {
		if kind, _, ok := strings.Cut(f.Object, naming); ok && !strings.Contains(value, naming) && startsCapital(value) {
			return kind + naming + value, true
		}
	}
	return value, true
}

// movedWork moves the part of a job that the old value is.
func movedWork(object, old, value string) (string, bool) {
	job := memory.ParseWork(object)
	for _, p := range [...]*string{&job.Employer, &job.Role, &job.Field} {
		if from, to := placeOf(*p, old); to > from {
			if p == &job.Role {
				value = article(value)
			}
			*p = value
			return job.String(), true
		}
	}
	return "", false
}

func article(role string) string {
	for _, a := range [...]string{"a ", "an ", "the "} {
		if strings.HasPrefix(role, a) {
			return role
		}
	}
	if strings.ContainsRune("aeiouAEIOU", rune(role[0])) {
		return "an " + role
	}
	return "a " + role
}

// wordOf is where an object holds a value, or, of one word, another form of it: "Сбере"
// for "Сбера". Both are 0 for nowhere.
func wordOf(object, value string) (from, to int) {
	if from = strings.Index(strings.ToLower(object), strings.ToLower(value)); from >= 0 {
		return from, from + len(value)
	}
	stem := lex.Terms(value)
	if len(stem) != 1 {
		return 0, 0
	}
	at := 0
	for word := range strings.FieldsSeq(object) {
		from = at + strings.Index(object[at:], word)
		if at = from + len(word); slices.Equal(lex.Terms(word), stem) {
			return from, at
		}
	}
	return 0, 0
}

// placeOf is where an object holds a value, with the rest of a name that the value
// is a part of: "Fiat Panda" for "Panda".
func placeOf(object, value string) (from, to int) {
	if value == "" || len(strings.ToLower(object)) != len(object) {
		return 0, 0
	}
	if from, to = wordOf(object, value); to == 0 {
		return 0, 0
	}
	for to < len(object) && object[to] != ' ' && object[to] != ',' {
		to++
	}
	if !startsCapital(object[from:]) {
		return from, to
	}
	for {
		before := strings.TrimRight(object[:from], " ")
		at := strings.LastIndexByte(before, ' ') + 1
		if at == len(before) || !startsCapital(before[at:]) {
			break
		}
		from = at
	}
	for {
		rest := strings.TrimLeft(object[to:], " ")
		if rest == "" || !startsCapital(rest) || len(rest) == len(object[to:]) {
			break
		}
		end := strings.IndexAny(rest, " ,")
		if end < 0 {
			end = len(rest)
		}
		to = len(object) - len(rest) + end
	}
	return from, to
}

func startsCapital(s string) bool {
	return s != "" && (s[0] >= 'A' && s[0] <= 'Z' || s[0] >= '0' && s[0] <= '9')
}
