// Package attribute reads in the words of a question which predicates of facts it asks
// for: "where do I live" asks for lives_in.
package attribute

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"palimpsest/internal/lex"
)

//go:embed attributes.txt
var attributesFile string

// phrase is a way to ask for attributes.
type phrase struct {
	words      [][]string // each may be several that stand side by side
	terms      []string   // of the single words, empty where a word is no index term
	content    []string   // all index terms
	predicates []string
}

var phrases = sync.OnceValue(func() []phrase { return readPhrases(attributesFile) })

func readPhrases(table string) []phrase {
	var all []phrase
	for line := range strings.Lines(table) {
		line, _, _ = strings.Cut(line, "#")
		predicates, ways, found := strings.Cut(line, ":")
		if !found {
			continue
		}
		for way := range strings.SplitSeq(ways, "|") {
			p := phrase{predicates: strings.Fields(predicates), content: lex.Terms(strings.ReplaceAll(way, "_", " "))}
			for word := range strings.FieldsSeq(way) {
				p.words = append(p.words, strings.Split(lex.Fold(word), "_"))
				term := ""
				if terms := lex.Terms(word); len(terms) == 1 && !strings.Contains(word, "_") {
					term = terms[0]
				}
				p.terms = append(p.terms, term)
			}
			all = append(all, p)
		}
	}
	return all
}

// Asked returns the predicates of the facts that a question asks for, as far as its
// phrases tell, each with the index terms that ask for it. Words are folded and without a
// possessive ending. A predicate whose facts may be about something else has no terms.
// "My brother's job" is no question for the brother.
func Asked(words []string) map[string][]string {
	terms := map[string]bool{}
	for _, w := range words {
		for _, t := range lex.Terms(w) {
			terms[t] = true
			for _, s := range lex.Synonyms(t) {
				if s.Weight == 1 {
					terms[s.Term] = true
				}
			}
		}
	}
	var asked []phrase
	for _, p := range phrases() {
		if p.in(words, terms) {
			asked = append(asked, p)
		}
	}
	found, people := map[string][]string{}, map[string][]string{}
	for _, p := range asked {
		if slices.ContainsFunc(asked, p.within) {
			continue
		}
		for _, predicate := range p.predicates {
			to := found
			if IsRelation(predicate) {
				to = people
			}
			if name, perhaps := strings.CutSuffix(predicate, "?"); !perhaps {
				to[name] = append(to[name], p.content...)
			} else if to[name] == nil {
				to[name] = []string{}
			}
		}
	}
	if len(found) == 0 {
		return people
	}
	return found
}

// IsRelation reports whether facts of a predicate name a relative, a friend or a pet of
// their subject.
func IsRelation(predicate string) bool { return strings.HasPrefix(predicate, "has_") }

// Relations returns the predicates of the relation that an index term names, nil for a
// term that names none.
func Relations(term string) []string { return steps()[term] }

// steps are the predicates of relations by index term.
var steps = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{
		"compani": {"work"}, "employ": {"work"}, "workplac": {"work"}, "firm": {"work"}, "компан": {"work"}, "фирм": {"work"},
		"wife": {"has_wife", "has_partner"}, "husband": {"has_husband", "has_partner"},
		"жен": {"has_wife", "has_partner"}, "муж": {"has_husband", "has_partner"},
	}
	for _, p := range phrases() {
		if len(p.words) != 1 || len(p.words[0]) != 1 || p.terms[0] == "" {
			continue
		}
		for _, predicate := range p.predicates {
			if predicate = strings.TrimSuffix(predicate, "?"); IsRelation(predicate) && !slices.Contains(all[p.terms[0]], predicate) {
				all[p.terms[0]] = append(all[p.terms[0]], predicate)
			}
		}
	}
	return all
})

func (p phrase) in(words []string, terms map[string]bool) bool {
	for i, run := range p.words {
		if !(p.terms[i] != "" && terms[p.terms[i]]) && !containsRun(words, run) {
			return false
		}
	}
	return true
}

func containsRun(words, run []string) bool {
	for i := range len(words) - len(run) + 1 {
		if slices.Equal(words[i:i+len(run)], run) {
			return true
		}
	}
	return false
}

// within reports whether another phrase has all words of p and more.
func (p phrase) within(other phrase) bool {
	own, all := slices.Concat(p.words...), slices.Concat(other.words...)
	return len(own) < len(all) && !slices.ContainsFunc(own, func(w string) bool { return !slices.Contains(all, w) })
}
