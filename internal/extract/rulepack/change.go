package rulepack

import (
	"fmt"
	"slices"
	"strings"

	"palimpsest/internal/extract/rulepack/grammar"
)

// Change is the form of a statement that one value took the place of another, of
// whatever attribute: "we swapped the Corsa for a Skoda". The decider finds the fact
// that holds the old value.
//
// A pattern begins where a clause does. Its parts are words ("a|b_c": either, a space
// written "_"), @set, a capture {old}, {new} or {topic}, "~" for up to five words
// (behind a capture {old} and words, a time: "died in May"), and ";" for what joins two clauses or sentences. A part that ends in "?" may be
// absent. A change without {old} replaces the value that the turn before names; one
// with {topic} replaces the day, date or number of the fact about the topic.
//
// In [Pack.Endings] a pattern captures {old} alone and tells that a value is over, in
// [Pack.Beginnings] it captures {new} alone. Together, in one sentence or two that follow
// each other, they are a change.
type Change struct {
	ID       string   `yaml:"id"`
	Patterns []string `yaml:"patterns"`
	// Reply says that the turn before names the old value.
	Reply bool `yaml:"reply"`
	// Loose takes a new value that is written without a capital for an old one with
	// a capital.
	Loose bool `yaml:"loose"`
	// Lasting leaves out what is so for a part of a day: "Lindt is closed today, I'm in
	// Rome now". The other forms tell what was done, be it today.
	Lasting bool `yaml:"lasting"`
	// Alone says that the end of a value without a new one ends the fact that holds it.
	Alone bool `yaml:"alone"`
	// Single says that only a fact of cardinality one is changed: "it's Go, not Bash"
	// does not end the use of Bash.
	Single bool `yaml:"single"`
}

// Bounds of captures and gaps, in words.
const (
	longestValue = 6
	longestGap   = 5
)

type framePart struct {
	set      grammar.Phrases
	capture  string // old, new, topic
	gap      bool
	when     bool // a gap that tells when something ended: "died in May"
	link     bool
	optional bool
}

// frame is a compiled pattern of a [Change].
type frame struct {
	change *Change
	parts  []framePart
	bound  bool // what matches reaches the end of a clause or a phrase
}

// compileFrame reads one pattern; captures are those that it has.
func compileFrame(c *Change, src string, sets map[string]grammar.Phrases) (f frame, captures []string, err error) {
	f.change = c
	for field := range strings.FieldsSeq(src) {
		var p framePart
		if rest, ok := strings.CutSuffix(field, "?"); ok {
			p.optional, field = true, rest
		}
		switch {
		case field == "~":
			n := len(f.parts)
			p.gap, p.when = true, n > 1 && f.parts[n-1].set != nil && f.parts[n-2].capture == "old"
		case field == ";":
			p.link = true
		case strings.HasPrefix(field, "{"):
			p.capture = strings.Trim(field, "{}")
			if !slices.Contains([]string{"old", "new", "topic"}, p.capture) {
				return frame{}, nil, fmt.Errorf("%s: %s is none of {old}, {new}, {topic}", src, field)
			}
			captures = append(captures, p.capture)
		default:
			var list []string
			for alternative := range strings.SplitSeq(field, "|") {
				name, isSet := strings.CutPrefix(alternative, "@")
				if isSet && sets[name] == nil {
					return frame{}, nil, fmt.Errorf("%s: unknown set %s", src, alternative)
				}
				if !isSet {
					list = append(list, strings.ReplaceAll(alternative, "_", " "))
					continue
				}
				for _, phrases := range sets[name] {
					for _, words := range phrases {
						list = append(list, strings.Join(words, " "))
					}
				}
			}
			p.set = grammar.NewPhrases(list)
		}
		f.parts = append(f.parts, p)
	}
	return f, captures, nil
}

func (l *language) addChanges(p Pack, sets map[string]grammar.Phrases) error {
	for _, group := range [...]struct {
		name    string
		changes []Change
		to      *[]frame
	}{{"changes", p.Changes, &l.frames}, {"endings", p.Endings, &l.endings}, {"beginnings", p.Beginnings, &l.beginnings}} {
		for i := range group.changes {
			c := &group.changes[i]
			for _, src := range c.Patterns {
				f, captures, err := compileFrame(c, src, sets)
				if err == nil {
					err = c.captures(group.name, src, captures)
				}
				if err != nil {
					return &PackError{Pack: p.ID, Pattern: group.name + "." + c.ID, Field: "patterns", Reason: err.Error()}
				}
				f.bound = group.name != "changes"
				*group.to = append(*group.to, f)
			}
		}
	}
	return nil
}

// captures says what a pattern lacks, or has too much of.
func (c *Change) captures(group, src string, have []string) error {
	old := slices.Contains(have, "old") || slices.Contains(have, "topic")
	switch {
	case group == "endings" && !slices.Equal(have, []string{"old"}):
		return fmt.Errorf("%s: needs {old} alone", src)
	case group == "beginnings" && !slices.Equal(have, []string{"new"}):
		return fmt.Errorf("%s: needs {new} alone", src)
	case group == "changes" && (!slices.Contains(have, "new") || old == c.Reply):
		return fmt.Errorf("%s: needs {new}, and {old} or {topic} unless it is a reply", src)
	}
	return nil
}

// framed is where the captures of a frame stand, and where it ends.
type framed struct {
	old, new, topic grammar.Span
	end             int
}

// at matches the parts from one on at a token.
func (f *frame) at(lx *grammar.Grammar, ts []grammar.Token, part, i int, got *framed) bool {
	if part == len(f.parts) {
		got.end = i
		return !f.bound && f.parts[part-1].capture == "" || lx.Bounds(ts, i)
	}
	p := &f.parts[part]
	return f.step(lx, ts, part, i, got) || p.optional && f.at(lx, ts, part+1, i, got)
}

// step matches one part at a token, and those behind it.
func (f *frame) step(lx *grammar.Grammar, ts []grammar.Token, part, i int, got *framed) bool {
	p := &f.parts[part]
	switch {
	case p.gap:
		for n := 1; n <= longestGap && i+n <= len(ts) && ts[i+n-1].Word; n++ {
			if p.when && !lx.Is(ts[i], grammar.Preposition) && !lx.StopsValue(ts, i) && !lx.Dated(ts[i:i+n]) {
				continue // "Lindt closed the plant" does not close Lindt
			}
			if f.at(lx, ts, part+1, i+n, got) {
				return true
			}
		}
		return false
	case p.link:
		n := lx.Linked(ts, i)
		return n > 0 && f.at(lx, ts, part+1, i+n, got)
	case p.capture != "":
		return f.take(lx, ts, part, i, got)
	}
	for ; i < len(ts); i++ {
		for _, words := range p.set[ts[i].Low] {
			if grammar.HasWords(ts[i:], words) && f.at(lx, ts, part+1, i+len(words), got) {
				return true
			}
		}
		if part == 0 || lx.Fillers.At(ts, i) != 1 {
			return false
		}
	}
	return false
}

// take captures the fewest words that let the rest match; the last part takes what
// reaches the end of the value.
func (f *frame) take(lx *grammar.Grammar, ts []grammar.Token, part, i int, got *framed) bool {
	for n := 1; n <= longestValue && i+n <= len(ts); n++ {
		t := ts[i+n-1]
		if !t.Word && (t.Low != "%" || n == 1) || t.Quoted || lx.Is(t, grammar.Speaker|grammar.Asking|grammar.Negator|grammar.Reporting) || lx.Is(t, grammar.And) {
			return false
		}
		if next := part + 1; f.parts[part].capture == "new" && next < len(f.parts) && (f.parts[next].gap || f.parts[next].optional) && !lx.Bounds(ts, i+n) {
			continue
		}
		old := *got
		s := grammar.Span{From: i, To: i + n}
		switch f.parts[part].capture {
		case "old":
			got.old = s
		case "new":
			got.new = s
		default:
			got.topic = s
		}
		if f.at(lx, ts, part+1, i+n, got) {
			return true
		}
		*got = old
	}
	return false
}
