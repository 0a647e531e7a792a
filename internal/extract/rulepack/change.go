package rulepack

import (
	"fmt"
	"slices"
	"strings"

	"palimpsest/pkg/events"
)

// Change is the form of a statement that one value took the place of another, of
// whatever attribute: "we swapped the Corsa for a Skoda". The decider finds the fact
// that holds the old value.
//
// A pattern begins where a clause does. Its parts are words ("a|b_c": either, a space
// written "_"), @set, a capture {old}, {new} or {topic}, "~" for up to five words,
// and ";" for what joins two clauses or sentences. A part that ends in "?" may be
// absent. A change without {old} replaces the value that the turn before names; one
// with {topic} replaces the day, date or number of the fact about the topic.
type Change struct {
	ID       string   `yaml:"id"`
	Patterns []string `yaml:"patterns"`
	// Reply says that the turn before names the old value.
	Reply bool `yaml:"reply"`
	// Loose takes a new value that is written without a capital for an old one with
	// a capital.
	Loose bool `yaml:"loose"`
}

// Bounds of captures and gaps, in words.
const (
	longestValue = 6
	longestGap   = 5
)

type framePart struct {
	set      phrases
	capture  string // old, new, topic
	gap      bool
	link     bool
	optional bool
}

// frame is a compiled pattern of a [Change].
type frame struct {
	change *Change
	parts  []framePart
}

// compileFrame reads one pattern.
func compileFrame(c *Change, src string, sets map[string]phrases) (frame, error) {
	f := frame{change: c}
	var captures []string
	for field := range strings.FieldsSeq(src) {
		var p framePart
		if rest, ok := strings.CutSuffix(field, "?"); ok {
			p.optional, field = true, rest
		}
		switch {
		case field == "~":
			p.gap = true
		case field == ";":
			p.link = true
		case strings.HasPrefix(field, "{"):
			p.capture = strings.Trim(field, "{}")
			if !slices.Contains([]string{"old", "new", "topic"}, p.capture) {
				return frame{}, fmt.Errorf("%s: %s is none of {old}, {new}, {topic}", src, field)
			}
			captures = append(captures, p.capture)
		default:
			var list []string
			for alternative := range strings.SplitSeq(field, "|") {
				name, isSet := strings.CutPrefix(alternative, "@")
				if isSet && sets[name] == nil {
					return frame{}, fmt.Errorf("%s: unknown set %s", src, alternative)
				}
				if !isSet {
					list = append(list, strings.ReplaceAll(alternative, "_", " "))
				}
				for _, phrases := range sets[name] {
					for _, words := range phrases {
						list = append(list, strings.Join(words, " "))
					}
				}
			}
			p.set = newPhrases(list)
		}
		f.parts = append(f.parts, p)
	}
	old := slices.Contains(captures, "old") || slices.Contains(captures, "topic")
	if !slices.Contains(captures, "new") || old == c.Reply {
		return frame{}, fmt.Errorf("%s: needs {new}, and {old} or {topic} unless it is a reply", src)
	}
	return f, nil
}

func (l *language) addChanges(p Pack, sets map[string]phrases) error {
	for i := range p.Changes {
		c := &p.Changes[i]
		for _, src := range c.Patterns {
			f, err := compileFrame(c, src, sets)
			if err != nil {
				return &PackError{Pack: p.ID, Pattern: "changes." + c.ID, Field: "patterns", Reason: err.Error()}
			}
			l.frames = append(l.frames, f)
		}
	}
	return nil
}

// framed is where the captures of a frame stand.
type framed struct{ old, new, topic span }

// at matches the parts from one on at a token.
func (f *frame) at(lx *lexicon, ts []token, part, i int, got *framed) bool {
	if part == len(f.parts) {
		return i == len(ts) || !ts[i].word || !lx.naming(ts[i]) && (f.parts[part-1].capture == "" || lx.is(ts[i], isStop|isPreposition|isJoint) || lx.stopsValue(ts, i))
	}
	p := &f.parts[part]
	return f.step(lx, ts, part, i, got) || p.optional && f.at(lx, ts, part+1, i, got)
}

// step matches one part at a token, and those behind it.
func (f *frame) step(lx *lexicon, ts []token, part, i int, got *framed) bool {
	p := &f.parts[part]
	switch {
	case p.gap:
		for n := 1; n <= longestGap && i+n <= len(ts) && ts[i+n-1].word; n++ {
			if f.at(lx, ts, part+1, i+n, got) {
				return true
			}
		}
		return false
	case p.link:
		n := lx.linked(ts, i)
		return n > 0 && f.at(lx, ts, part+1, i+n, got)
	case p.capture != "":
		return f.take(lx, ts, part, i, got)
	}
	for ; i < len(ts); i++ {
		if n := p.set.at(ts, i); n > 0 && f.at(lx, ts, part+1, i+n, got) {
			return true
		}
		if part == 0 || lx.fillers.at(ts, i) != 1 {
			return false
		}
	}
	return false
}

// take captures the fewest words that let the rest match; the last part takes what
// reaches the end of the value.
func (f *frame) take(lx *lexicon, ts []token, part, i int, got *framed) bool {
	for n := 1; n <= longestValue && i+n <= len(ts); n++ {
		t := ts[i+n-1]
		if !t.word || t.quoted || lx.is(t, isSpeaker|isAsking|isNegator) || lx.is(t, isAnd) {
			return false
		}
		old := *got
		s := span{i, i + n}
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

// stopsValue reports whether a word or phrase at i is not part of the value before it: "now".
func (lx *lexicon) stopsValue(ts []token, i int) bool {
	return lx.nowadays.at(ts, i) > 0 || lx.tails.at(ts, i) > 0 || lx.fillers.at(ts, i) > 0 || lx.dated(ts[i:min(len(ts), i+2)])
}

// linked is the length of what joins two clauses or sentences at i.
func (lx *lexicon) linked(ts []token, i int) int {
	from := i
	for i < len(ts) && (!ts[i].word && !ts[i].quoted || lx.is(ts[i], isJoint|isFiller|isLead)) && ts[i].low != "'s" {
		i++
	}
	return i - from
}

// changes reads the statements of change.
func (r *reading) changes(sentences []sentence) {
	if len(r.l.frames) == 0 || r.scene {
		return
	}
	for i := range sentences {
		r.changeIn(sentences, i)
	}
}

// changeIn reads the statement of change that begins in sentence i, and may end in the
// next.
func (r *reading) changeIn(sentences []sentence, i int) {
	lx := r.l.lx
	if sentences[i].asks {
		return
	}
	ts, _ := r.l.enter(sentences[i].tokens)
	own := len(ts)
	if own == 0 || own > longestChange || lx.uncertain(ts) {
		return
	}
	ts = ts[:own:own]
	if i+1 < len(sentences) && !sentences[i+1].asks && len(sentences[i+1].tokens) <= longestChange && !lx.uncertain(sentences[i+1].tokens) {
		ts = append(append(ts, token{low: ".", text: "."}), sentences[i+1].tokens...)
	}
	for at := range own {
		if at > 0 && ts[at-1].word && !lx.is(ts[at-1], isJoint) {
			continue // no clause begins here
		}
		for k := range r.l.frames {
			var got framed
			f := &r.l.frames[k]
			if f.at(lx, ts, 0, at, &got) && r.change(f.change, ts, &got) {
				return
			}
		}
	}
}

// longestChange bounds, in tokens, the sentences in which a change is looked for.
const longestChange = 40

// uncertain reports whether a sentence supposes, hedges or plans.
func (lx *lexicon) uncertain(ts []token) bool {
	for i, t := range ts {
		if t.quoted || lx.is(t, isUnreal|isModal) || lx.hedges.at(ts, i) > 0 || lx.planned.at(ts, i) > 0 {
			return true
		}
	}
	return false
}

// change drafts what a match of a frame means.
func (r *reading) change(c *Change, ts []token, got *framed) bool {
	lx := r.l.lx
	value := r.value(ts[got.new.from:got.new.to])
	old := r.value(ts[got.old.from:got.old.to])
	topic := got.topic.to > got.topic.from
	if topic {
		old = r.value(ts[got.topic.from:got.topic.to])
	}
	if c.Reply {
		old = r.spokenOf(value)
	}
	if len(value) == 0 || len(old) == 0 || lx.is(value[0], isEmpty|isIt) || lx.is(old[0], isEmpty|isIt|isOther) ||
		topic && !lx.shaped(value) {
		return false
	}
	named := func(ts []token) bool {
		return slices.ContainsFunc(ts, func(t token) bool { return t.capital() || digit(t.low) })
	}
	if !c.Loose && named(old) && !named(value) || slices.EqualFunc(old, value, func(a, b token) bool { return a.low == b.low }) {
		return false
	}
	ends := events.Triple{Subject: subjectUser, Object: source(old)}
	object := source(value)
	for i := range r.drafts {
		d := &r.drafts[i]
		if d.Negated || d.Subject != subjectUser || d.Category == "event" || !strings.Contains(strings.ToLower(d.Object), strings.ToLower(object)) {
			continue
		}
		d.Retracts = append(d.Retracts, ends)
		d.Moves = d.Moves || c.Loose && strings.EqualFold(d.Object, object)
		return true
	}
	// The move comes first: what else the sentence ends is then no longer known by the
	// old value.
	r.drafts = slices.Insert(r.drafts, 0, events.Candidate{
		Kind: events.FactSemantic, Category: "biography", Subject: subjectUser, Object: object,
		Text: lx.changed(ends.Object, object), EvidenceQuote: r.l.evidence(r.text, ts[min(got.old.from, got.new.from, got.topic.from):max(got.old.to, got.new.to)]),
		Confidence: 0.8, Explicit: true, Sensitivity: events.SensitivityNone, Cardinality: events.Many,
		Retracts: []events.Triple{ends}, Moves: true, EventTime: r.said, RuleID: "change." + c.ID,
	})
	return true
}

// changed is the sentence that one value took the place of another.
func (lx *lexicon) changed(old, value string) string {
	return strings.NewReplacer("{S}", capitalize(lx.subject), "{old}", old, "{new}", value).Replace(lx.changedText)
}

// value cuts what is no part of a value off its ends.
func (r *reading) value(ts []token) []token {
	lx := r.l.lx
	for len(ts) > 0 && (lx.is(ts[0], isOwn|isPreposition|isArticle) || lx.nowadays.at(ts, 0) == 1) {
		ts = ts[1:]
	}
	return r.l.trim(ts)
}

// shaped reports whether a value is a day, a date, a number or an address.
func (lx *lexicon) shaped(ts []token) bool {
	return slices.ContainsFunc(ts, func(t token) bool { return lx.shape(t) != "" })
}

// shape is what kind of value a word is: a day, a number or an address; empty for
// any other.
func (lx *lexicon) shape(t token) string {
	stem := strings.TrimSuffix(t.low, "s")
	switch {
	case strings.Contains(t.low, "@"):
		return "address"
	case digit(t.low) || t.low[0] == '+' && len(t.low) > 1:
		return "number"
	}
	if _, ok := lx.calendar.Weekdays[t.low]; ok {
		return "day"
	}
	if _, ok := lx.calendar.Weekdays[stem]; ok {
		return "day"
	}
	if _, ok := lx.calendar.Numbers[t.low]; ok {
		return "number"
	}
	return ""
}

// spokenOf is what the turns before name in the place of a value: of the same shape,
// with the noun beside it, or a name for a name.
func (r *reading) spokenOf(value []token) []token {
	lx := r.l.lx
	shape := ""
	for _, t := range value {
		shape = or(shape, lx.shape(t))
	}
	if shape == "" && !slices.ContainsFunc(value, token.capital) {
		return nil
	}
	const turns = 2
	for i := len(r.before) - 1; i >= 0 && i >= len(r.before)-turns; i-- {
		ts := lx.tokenize(blank(r.before[i].Content))
		for at := len(ts) - 1; at >= 0; at-- {
			t := ts[at]
			switch {
			case !t.word:
			case shape != "" && lx.shape(t) == shape:
				return r.around(ts, at, shape)
			case shape == "" && at > 0 && t.capital() && !lx.is(t, isSpeaker|isStop|isNotName|isHearer|isAuxiliary|isAsking|isLead):
				from := at
				for from > 1 && ts[from-1].word && ts[from-1].capital() && !lx.is(ts[from-1], isSpeaker|isStop|isNotName|isHearer) {
					from--
				}
				return ts[from : at+1]
			}
		}
	}
	return nil
}

// around is a value and the noun beside it: "Tuesday 's standup".
func (r *reading) around(ts []token, at int, shape string) []token {
	lx := r.l.lx
	if shape == "address" {
		return ts[at : at+1]
	}
	from := at
	for from > 0 && ts[from-1].word && (ts[from-1].capital() || lx.shape(ts[from-1]) != "") && !lx.is(ts[from-1], isSpeaker|isStop|isHearer|isLead) && lx.shape(ts[at]) != "day" {
		from--
	}
	out := slices.Clone(ts[from : at+1])
	if at+2 < len(ts) && ts[at+1].low == "'s" && ts[at+2].word {
		out = append(out, ts[at+2])
	}
	return out
}
