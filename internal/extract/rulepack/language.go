package rulepack

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"palimpsest/internal/extract/rulepack/grammar"
	"palimpsest/internal/extract/rulepack/pattern"
)

// language is a pack, compiled.
type language struct {
	name, version string
	script        *unicode.RangeTable
	lx            *grammar.Grammar
	patterns      []rulePattern
	// byHead finds patterns by the word they begin with, headless are those that
	// may begin with any.
	byHead   map[string][]int
	headless []int
	// within finds the patterns of rules that are tried anywhere, by their first word.
	within map[string][]int

	relations  grammar.Phrases
	relationOf map[string]*Relation
	pet        *Relation // of an animal that no relation names; nil for none
	answers    []answer
	frames     []frame // of changes
	endings    []frame
	beginnings []frame
	kinds      map[*Rule][]kind
	// also finds the patterns of the rules that others name in [Rule.Also].
	also map[string][]int

	speakerWord, ownWord, namingWord string
}

type rulePattern struct {
	rule *Rule
	*pattern.Pattern
}

type answer struct {
	Answer
	asks []*pattern.Pattern
}

func compileLanguage(p Pack) (*language, error) {
	script, ok := unicode.Scripts[p.Script]
	if !ok {
		return nil, &PackError{Pack: p.ID, Field: "script", Reason: "no script is called " + p.Script}
	}
	if len(p.Lexicon.Speaker) == 0 || len(p.Lexicon.Own) == 0 || p.Lexicon.Subject == "" || p.Lexicon.Possessive == "" {
		return nil, &PackError{Pack: p.ID, Field: "lexicon", Reason: "speaker, own, subject and possessive are required"}
	}
	l := &language{
		name: p.Language, version: p.Version, script: script, lx: p.Lexicon.Compile(),
		byHead: make(map[string][]int), kinds: make(map[*Rule][]kind), relationOf: make(map[string]*Relation), also: make(map[string][]int), within: make(map[string][]int),
		speakerWord: p.Lexicon.Speaker[0], ownWord: p.Lexicon.Own[0], namingWord: "named",
	}
	if len(p.Lexicon.Naming) > 0 {
		l.namingWord = p.Lexicon.Naming[0]
	}
	sets := make(map[string]grammar.Phrases, len(p.Sets))
	for name, list := range p.Sets {
		sets[name] = grammar.NewPhrases(list)
	}
	var relations []string
	for i := range p.Relations {
		r := &p.Relations[i]
		for _, w := range r.Words {
			relations = append(relations, w)
			if l.pet == nil && r.Category == "pet" {
				l.pet = r
			}
			if l.relationOf[w] == nil { // those of an overlay come first
				l.relationOf[w] = r
			}
		}
	}
	l.relations = grammar.NewPhrases(relations)
	sets["relation"] = l.relations
	if err := l.addRules(p, sets); err != nil {
		return nil, err
	}
	if err := l.addKinds(p); err != nil {
		return nil, err
	}
	if len(l.lx.Markers) > 0 {
		l.mark(p.Lexicon)
	}
	if err := l.addChanges(p, sets); err != nil {
		return nil, err
	}
	return l, l.addAnswers(p, sets)
}

// mark adds the words of patterns, and those of the lexicon that are the language's
// own, to its markers.
func (l *language) mark(lx grammar.Lexicon) {
	for _, list := range [][]string{lx.Speaker, lx.Own, lx.Verbs, slices.Collect(maps.Keys(lx.Rewrite)), slices.Collect(maps.Keys(lx.Third))} {
		for _, w := range list {
			l.lx.Markers[w] = true
		}
	}
	for _, p := range l.patterns {
		for _, w := range p.Words() {
			l.lx.Markers[w] = true
		}
	}
}

func (l *language) addRules(p Pack, sets map[string]grammar.Phrases) error {
	for i := range p.Rules {
		for _, id := range p.Rules[i].Also {
			l.also[id] = nil
		}
	}
	for i := range p.Rules {
		r := &p.Rules[i]
		for _, src := range r.Patterns {
			prog, err := pattern.Compile(src, sets, r.List || r.Joined)
			if err != nil {
				return &PackError{Pack: p.ID, Pattern: r.ID, Field: "patterns", Reason: src + ": " + err.Error()}
			}
			for _, tpl := range []string{r.Object, r.Text, r.Predicate} {
				for _, name := range templateNames(tpl) {
					if !slices.Contains(prog.Slots, name) && !optionalIn(tpl, name) {
						return &PackError{Pack: p.ID, Pattern: r.ID, Field: "patterns", Reason: src + ": captures no {" + name + "} for " + tpl}
					}
				}
			}
			n := len(l.patterns)
			l.patterns = append(l.patterns, rulePattern{rule: r, Pattern: prog})
			if _, second := l.also[r.ID]; second {
				l.also[r.ID] = append(l.also[r.ID], n)
				continue
			}
			index := l.byHead
			switch {
			case r.Anywhere && prog.Heads == nil:
				return &PackError{Pack: p.ID, Pattern: r.ID, Field: "anywhere", Reason: src + ": begins with no word"}
			case r.Anywhere:
				index = l.within
			case prog.Heads == nil:
				l.headless = append(l.headless, n)
			}
			for w := range prog.Heads {
				index[w] = append(index[w], n)
			}
		}
	}
	return nil
}

func (l *language) addAnswers(p Pack, sets map[string]grammar.Phrases) error {
	for _, a := range p.Answers {
		out := answer{Answer: a}
		for _, src := range a.Ask {
			prog, err := pattern.Compile(src, sets, false)
			if err != nil {
				return &PackError{Pack: p.ID, Pattern: "answers." + a.ID, Field: "ask", Reason: src + ": " + err.Error()}
			}
			out.asks = append(out.asks, prog)
		}
		l.answers = append(l.answers, out)
	}
	return nil
}

// find returns the first pattern, in the order of the pack, that matches at.
func (l *language) find(ts []grammar.Token, mo *pattern.Memo, at int, f pattern.Flags, accept func(*Rule) bool) (*Rule, *pattern.Match) {
	headed := l.byHead[ts[at].Low]
	for i, j := 0, 0; i < len(headed) || j < len(l.headless); {
		var n int
		switch {
		case j == len(l.headless) || i < len(headed) && headed[i] < l.headless[j]:
			n = headed[i]
			i++
		default:
			n = l.headless[j]
			j++
		}
		p := l.patterns[n]
		if !accept(p.rule) {
			continue
		}
		if m := l.try(p, ts, mo, at, f); m != nil {
			return p.rule, m
		}
	}
	return nil, nil
}

// try matches one pattern; nil if its rule leaves out what it captures.
func (l *language) try(p rulePattern, ts []grammar.Token, mo *pattern.Memo, at int, f pattern.Flags) *pattern.Match {
	m := p.Match(l.lx, ts, mo, at, f)
	if m == nil || p.rule.Anchored && !l.anchored(m) || p.rule.Dated && !l.lx.Dated(m.Tokens) || !l.fitting(p.rule, m) {
		return nil
	}
	return m
}

// findAlso returns the first match of the rules that rule reads a clause again with.
func (l *language) findAlso(rule *Rule, ts []grammar.Token, mo *pattern.Memo, at int, f pattern.Flags) (*Rule, *pattern.Match) {
	for _, id := range rule.Also {
		for _, n := range l.also[id] {
			if m := l.try(l.patterns[n], ts, mo, at, f); m != nil {
				return l.patterns[n].rule, m
			}
		}
	}
	return nil, nil
}

// anchored reports whether a match has a date, or a capture a name or a number.
func (l *language) anchored(m *pattern.Match) bool {
	lx := l.lx
	if lx.Dated(m.Tokens) {
		return true
	}
	for _, s := range m.Captured {
		for _, t := range m.Tokens[s.From:s.To] {
			if t.Capital() && !lx.Is(t, grammar.Speaker) || grammar.Digit(t.Low) {
				return true
			}
		}
	}
	return false
}

// reads reports whether the text is in the language's script; a bare number is
// in any.
func (l *language) reads(text string) bool {
	mine, other, digits := 0, 0, 0
	for word := range strings.FieldsSeq(text) {
		if grammar.AddressLen(word) > 0 {
			continue
		}
		for _, r := range word {
			switch {
			case unicode.IsDigit(r):
				digits++
			case !unicode.IsLetter(r):
			case unicode.Is(l.script, r):
				mine++
			default:
				other++
			}
		}
	}
	return mine >= other && mine+digits > 0
}

// template names are {o}, {o|title}; [ ] encloses what is left out where a
// capture in it is absent.
func templateNames(tpl string) []string {
	var out []string
	for rest := tpl; ; {
		_, after, ok := strings.Cut(rest, "{")
		if !ok {
			return out
		}
		name, tail, _ := strings.Cut(after, "}")
		name, _, _ = strings.Cut(name, "|")
		if name != "S" && name != "S's" && name != "O" && name != "when" && name != "old" {
			out = append(out, name)
		}
		rest = tail
	}
}

func optionalIn(tpl, name string) bool {
	open := strings.Index(tpl, "[")
	at := strings.Index(tpl, "{"+name)
	return open >= 0 && open < at && strings.Index(tpl[open:], "]") > 0
}
