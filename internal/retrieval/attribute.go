package retrieval

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

// attributes are the predicates of the facts that a question asks for, as far as its
// phrases tell, each with the index terms that ask for it. "My brother's job" is no
// question for the brother.
func attributes(words []string) map[string][]string {
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
			if isRelation(predicate) {
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

// isRelation reports whether facts of a predicate name a relative, a friend or a pet of
// their subject.
func isRelation(predicate string) bool { return strings.HasPrefix(predicate, "has_") }

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
