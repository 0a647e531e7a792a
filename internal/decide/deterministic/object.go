package deterministic

import (
	"strings"
	"unicode"

	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

func sameKey(f events.Fact, c events.Candidate) bool {
	return f.Subject != "" && f.Predicate != "" && f.Subject == c.Subject && f.Predicate == c.Predicate
}

func tripleOf(c events.Candidate) events.Triple {
	return events.Triple{Subject: c.Subject, Predicate: c.Predicate, Object: c.Object}
}

func sameTriple(f events.Fact, c events.Candidate) bool {
	return sameKey(f, c) && plain(f.Object) == plain(c.Object)
}

// plain is an object as it is compared.
func plain(object string) string { return lex.Object(object) }

// says reports whether the known object tells all that the candidate's does.
func says(f events.Fact, c events.Candidate) bool {
	if f.Predicate == memory.PredicateWork {
		return plain(mergeWork(f.Object, c.Object)) == plain(f.Object)
	}
	return covers(f.Object, c.Object)
}

// unnamed reports whether a candidate mentions a relative whom the known fact names: "my
// wife is asleep" does not take Klara's place.
func unnamed(c events.Candidate, known events.Fact) bool {
	isName := func(s string) bool { return strings.ContainsFunc(s, unicode.IsUpper) }
	return strings.HasPrefix(c.Predicate, "has_") && c.Object != "" && !isName(c.Object) && isName(known.Object)
}

// covers reports whether whole names part and more: part begins it ("Oslo,
// Norway" and "Oslo"), or stands between its commas ("Norway"). The end of a
// name alone is another name ("New York" and "York").
func covers(whole, part string) bool {
	w, p := plain(whole), plain(part)
	if w == p {
		return true
	}
	if p == "" {
		return false
	}
	if rest, ok := strings.CutPrefix(w, p); ok && !startsWord(rest) {
		return true
	}
	for piece := range strings.FieldsFuncSeq(w, func(r rune) bool { return strings.ContainsRune(",;()", r) }) {
		if plain(piece) == p {
			return true
		}
	}
	return false
}

func startsWord(s string) bool {
	for _, r := range s {
		return unicode.IsLetter(r) || unicode.IsNumber(r) || strings.ContainsRune("+#'-.", r)
	}
	return false
}

// refines reports whether newer repeats all the words of known and adds some.
func refines(known, newer string) bool {
	a, b := lex.NewSet(known), lex.NewSet(newer)
	return len(a) > 0 && len(b) > len(a) && b.Contains(a)
}

// names reports whether an ended object refers to that of a known fact: it is the
// same, or all its terms are in the known one. An empty object refers to all.
func names(f events.Fact, object string) bool {
	if plain(object) == "" {
		return true
	}
	if f.Predicate == memory.PredicateWork {
		_, changed := memory.WithoutWork(memory.ParseWork(f.Object), memory.ParseWork(object))
		return changed
	}
	if plain(f.Object) == plain(object) {
		return true
	}
	known := terms(f.Object)
	for _, t := range terms(object) {
		if !contains(known, t) {
			return false
		}
	}
	return len(terms(object)) > 0
}

func terms(object string) []string { return lex.Terms(object) }

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// mergeWork is memory.MergeWork, but keeps the longer spelling of what both
// name ("Fenwick" and "Fenwick Labs", "engineer" and "senior engineer").
func mergeWork(known, newer string) string {
	old, add := memory.ParseWork(known), memory.ParseWork(newer)
	for _, p := range [...]struct {
		old string
		add *string
	}{{old.Role, &add.Role}, {old.Employer, &add.Employer}, {old.Field, &add.Field}} {
		if *p.add != "" && lex.NewSet(p.old).Contains(lex.NewSet(plain(*p.add))) {
			*p.add = p.old
		}
	}
	return memory.MergeWork(old, add).String()
}

// objectIn reads the object of a text that rewrites a known fact: the text between
// the words around the known object. It is empty if they do not match.
func objectIn(text string, known events.Fact) string {
	before, after, ok := strings.Cut(known.Text, known.Object)
	if known.Object == "" || !ok || len(text) < len(before)+len(after) {
		return ""
	}
	rest, okBefore := strings.CutPrefix(text, before)
	object, okAfter := strings.CutSuffix(rest, after)
	if !okBefore || !okAfter {
		return ""
	}
	return strings.TrimSpace(object)
}
