package memory

import "strings"

// Work is the composed object of a fact with predicate "work": any part may be
// absent. Role keeps its article ("a hydrologist").
type Work struct {
	Role, Employer, Field string
	// russian markers compose it, as in the parsed text.
	russian bool
}

// PredicateWork is the predicate whose objects are composed as [Work].
const PredicateWork = "work"

// ParseWork reads "as a ROLE at EMPLOYER in FIELD", in English or Russian
// ("РОЛЬ в EMPLOYER в сфере FIELD"). Text without a marker is a role.
func ParseWork(object string) Work {
	var w Work
	rest := " " + strings.TrimSpace(object)
	rest, w.Field = cutLast(rest, " in ", " в сфере ")
	rest, w.Employer = cutFirst(rest, " at ", " в компании ")
	w.Role = strings.TrimSpace(strings.TrimPrefix(rest, " as "))
	w.russian = russian(object)
	return w
}

// String composes the object again.
func (w Work) String() string {
	role, at, in := "as ", "at ", "in "
	if w.russian {
		role, at, in = "", "в компании ", "в сфере "
	}
	parts := make([]string, 0, 3)
	for _, p := range [...]struct{ marker, value string }{{role, w.Role}, {at, w.Employer}, {in, w.Field}} {
		if p.value != "" {
			parts = append(parts, p.marker+p.value)
		}
	}
	return strings.Join(parts, " ")
}

// MergeWork merges a known job with a later statement: the parts that newer names
// are replaced, the others stay. A new role without an employer keeps the employer
// only if it shares a word with the old role ("engineer", "senior engineer"):
// another trade usually means another employer.
func MergeWork(known, newer Work) Work {
	out := known
	out.russian = newer.russian
	if newer.Role != "" && known.Role != "" && newer.Employer == "" && !shareWord(known.Role, newer.Role) {
		out.Employer, out.Field = "", ""
	}
	for _, p := range [...]struct {
		to   *string
		from string
	}{{&out.Role, newer.Role}, {&out.Employer, newer.Employer}, {&out.Field, newer.Field}} {
		if p.from != "" {
			*p.to = p.from
		}
	}
	return out
}

// WithoutWork removes the parts that ended names from a known job; an empty ended
// removes all. Names may be shortened ("Fenwick" for "Fenwick Labs"). changed is
// false if ended names no known part.
func WithoutWork(known, ended Work) (rest Work, changed bool) {
	if ended == (Work{}) {
		return Work{}, known != (Work{})
	}
	rest = known
	for _, p := range [...]struct {
		to   *string
		from string
	}{{&rest.Role, ended.Role}, {&rest.Employer, ended.Employer}, {&rest.Field, ended.Field}} {
		if p.from != "" && *p.to != "" && shareWord(*p.to, p.from) {
			*p.to, changed = "", true
		}
	}
	return rest, changed
}

func cutFirst(s string, markers ...string) (before, after string) {
	for _, m := range markers {
		if b, a, ok := strings.Cut(s, m); ok {
			return b, strings.TrimSpace(a)
		}
	}
	return s, ""
}

func cutLast(s string, markers ...string) (before, after string) {
	for _, m := range markers {
		if i := strings.LastIndex(s, m); i >= 0 {
			return s[:i], strings.TrimSpace(s[i+len(m):])
		}
	}
	return s, ""
}

func shareWord(a, b string) bool {
	words := map[string]bool{"a": true, "an": true, "the": true, "of": true, "and": true}
	for w := range strings.FieldsSeq(Normalize(a)) {
		if !words[w] {
			words["="+w] = true
		}
	}
	for w := range strings.FieldsSeq(Normalize(b)) {
		if words["="+w] {
			return true
		}
	}
	return false
}

func russian(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 'А' && r <= 'я' || r == 'ё' || r == 'Ё' }) >= 0
}
