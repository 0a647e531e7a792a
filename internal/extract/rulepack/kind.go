package rulepack

import (
	"slices"
	"strings"

	"palimpsest/internal/extract/rulepack/grammar"
	"palimpsest/internal/extract/rulepack/pattern"
)

// Kind says what no value of some predicates or rules is, so that each pattern need
// not: nobody speaks "abominably", and nobody owns "Spanish". A pattern whose value is
// of another kind does not match, and the next one is tried. A phrase "@set" stands
// for a set, "*ly" for a suffix.
type Kind struct {
	Of     []string `yaml:"of"`     // predicates and ids of rules
	Begins []string `yaml:"begins"` // no value begins with one of these
	Ends   []string `yaml:"ends"`   // no value ends in one of these
	// A value must begin with one of Opens and end in one of Closes. Names says that
	// it must begin with a capital.
	Opens  []string `yaml:"opens"`
	Closes []string `yaml:"closes"`
	Names  bool     `yaml:"names"`
}

// kind is a compiled [Kind].
type kind struct {
	begins, ends, opens, closes grammar.Phrases
	names                       bool
}

func (l *language) addKinds(p Pack) error {
	list := func(words []string) (grammar.Phrases, error) {
		var out []string
		for _, w := range words {
			name, isSet := strings.CutPrefix(w, "@")
			if !isSet {
				out = append(out, w)
				continue
			}
			if p.Sets[name] == nil {
				return nil, &PackError{Pack: p.ID, Pattern: "kinds", Field: "set", Reason: "unknown set " + w}
			}
			out = append(out, p.Sets[name]...)
		}
		return grammar.NewPhrases(out), nil
	}
	for _, k := range p.Kinds {
		var c kind
		var err error
		c.names = k.Names
		for _, f := range [...]struct {
			to    *grammar.Phrases
			words []string
		}{{&c.begins, k.Begins}, {&c.ends, k.Ends}, {&c.opens, k.Opens}, {&c.closes, k.Closes}} {
			if *f.to, err = list(f.words); err != nil {
				return err
			}
		}
		for i := range p.Rules {
			if rule := &p.Rules[i]; slices.Contains(k.Of, rule.ID) || slices.Contains(k.Of, rule.Predicate) {
				l.kinds[rule] = append(l.kinds[rule], c)
			}
		}
	}
	return nil
}

// fits reports whether a value may be one of the rule's. Negations are not judged:
// a value that is denied may be anything.
func (l *language) fits(rule *Rule, value []grammar.Token) bool {
	if len(l.kinds[rule]) == 0 {
		return true
	}
	if value = l.trim(value); len(value) == 0 {
		return true
	}
	for _, k := range l.kinds[rule] {
		switch {
		case k.names && !value[0].Capital(), len(k.opens) > 0 && k.opens.At(value, 0) == 0, len(k.closes) > 0 && !k.closes.EndOf(value):
			return false
		case len(k.begins) > 0 && k.begins.At(value, 0) > 0, len(k.ends) > 0 && k.ends.EndOf(value):
			return false
		}
	}
	return true
}

// fitting reports whether the value of a match is of the kind that its rule states, and
// no capture is the rest of an adverbial: "for ages".
func (l *language) fitting(rule *Rule, m *pattern.Match) bool {
	for _, s := range m.Captured {
		if s.From > 0 && s.To > s.From && l.lx.Tails.At(m.Tokens, s.From-1) == s.To-s.From+1 {
			return false
		}
	}
	if len(l.kinds[rule]) == 0 {
		return true
	}
	value := m.Get("o")
	if len(value) == 0 {
		return true
	}
	if !rule.List {
		return l.fits(rule, value)
	}
	return slices.ContainsFunc(l.items(value), func(item []grammar.Token) bool { return l.fits(rule, item) })
}
